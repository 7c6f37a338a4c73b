package ui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/newsletter/audience"
)

type digestsView struct {
	Account  string // whose runs; empty for default
	Paused   bool
	State    *digest.State // the instance's; nil for callers who are bound to an account
	Trouble  string        // why there are no runs; empty if they were read
	Failed   []api.DigestRun
	Newest   []api.DigestRun
	Live     string // URL of the numbers, for the script
	Switches bool   // the caller may pause the queue
}

// runsShown is how many runs the overview and the page of a recipient show.
const runsShown = 10

func (u *UI) digestOverview(w http.ResponseWriter, r *http.Request) error {
	account := filterText(r.URL.Query(), "account")
	v := digestsView{Account: account, Switches: boundTo(r) == "",
		Live: address("/digests", values(map[string]string{"account": account, "part": "live"}))}
	status := http.StatusOK
	queued, err := u.Outbox.Queues.QueueStatus(r.Context(), queue.Digests)
	if err != nil {
		return err
	}
	v.Paused = queued.Paused
	if boundTo(r) == "" {
		state, err := u.Digests.State(r.Context())
		if err != nil {
			return err
		}
		v.State = &state
	}
	if err := u.overviewRuns(r.Context(), boundTo(r), &v); err != nil {
		if status, v.Trouble, err = troubleOf(err, account == ""); err != nil {
			return err
		}
	}
	return u.show(w, r, status, "digests", "Digests", v)
}

// overviewRuns fills in the account's newest runs.
func (u *UI) overviewRuns(ctx context.Context, bound string, v *digestsView) error {
	for state, into := range map[string]*[]api.DigestRun{api.DigestFailed: &v.Failed, "": &v.Newest} {
		page, err := u.Digests.Runs.List(ctx, bound, api.DigestRunQuery{Account: v.Account, State: state,
			CursorQuery: api.CursorQuery{PageSize: runsShown}})
		if err != nil {
			return err
		}
		*into = page.Runs
	}
	return nil
}

// troubleOf returns the status and the message of a page whose filter was refused. With byDefault the caller
// named no account, so a missing account "default" isn't an error. It returns other errors.
func troubleOf(err error, byDefault bool) (status int, words string, _ error) {
	switch {
	case fault.Is(err, fault.NotFound) && byDefault:
		return http.StatusOK, sentence(err), nil
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Invalid):
		return api.StatusOf(wordsOf(err).Kind), sentence(err), nil
	}
	return 0, "", err
}

// filterText returns a text of a filter, without spaces around it.
func filterText(in url.Values, name string) string { return clip(strings.TrimSpace(in.Get(name)), 256) }

func digestPath(what, account, id string) string {
	return "/digests/" + what + "/" + url.PathEscape(account) + "/" + url.PathEscape(id)
}

// digestOf returns the account and the ID in the path of a page.
func digestOf(r *http.Request) (api.DigestAccount, string) {
	return api.DigestAccount{Account: r.PathValue("account")}, r.PathValue("id")
}

func digestFormAccount(r *http.Request) string {
	if account := strings.TrimSpace(r.PostForm.Get("account")); account != "" {
		return account
	}
	return cmp.Or(boundTo(r), audience.DefaultAccount)
}
