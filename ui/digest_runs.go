package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

var digestRunStates = []string{api.DigestPending, api.DigestProcessing, api.DigestSubmitted, api.DigestSent,
	api.DigestSkipped, api.DigestFailed}

type digestRunsView struct {
	Filter  url.Values // as it was asked for
	States  []string
	Trouble string // why there are none; empty: they were read
	Runs    []api.DigestRun
	cursorPager
	Part string // URL of the rows, for the script; empty: nothing changes
}

// Any reports whether there is a filter.
func (v digestRunsView) Any() bool { return len(v.Filter) > 0 }

// Get returns a value of the filter.
func (v digestRunsView) Get(name string) string { return v.Filter.Get(name) }

// at returns the URL of the same rows with another parameter; empty: without it.
func (v digestRunsView) at(name, value string) string {
	f := url.Values{}
	for key, all := range v.Filter {
		f[key] = all
	}
	if value != "" {
		f.Set(name, value)
	}
	return address("/digests/runs", f)
}

// readRunQuery reads the filter of a URL. The error has all of its faults.
func readRunQuery(in url.Values) (api.DigestRunQuery, error) {
	q := api.DigestRunQuery{Account: in.Get("account"), Recipient: in.Get("recipient"), State: in.Get("state"),
		CursorQuery: api.CursorQuery{PageSize: rowsPerPage}}
	var wrong fault.Fields
	if q.State != "" && !slices.Contains(digestRunStates, q.State) {
		wrong.Add("state", "is not a state")
	}
	var err error
	if q.After, err = readSince(in.Get("after")); err != nil {
		wrong.Add("after", "is not a date and time such as 2026-01-31T08:30, or an age such as 7d")
	}
	if q.Before, err = readSince(in.Get("before")); err != nil {
		wrong.Add("before", "is not a date and time such as 2026-01-31T08:30, or an age such as 7d")
	}
	return q, fault.InvalidFields(wrong)
}

func (u *UI) digestRuns(w http.ResponseWriter, r *http.Request) error {
	in, status := r.URL.Query(), http.StatusOK
	v := digestRunsView{States: digestRunStates, Filter: values(map[string]string{
		"account": filterText(in, "account"), "recipient": filterText(in, "recipient"),
		"state": filterText(in, "state"), "after": filterText(in, "after"), "before": filterText(in, "before")})}
	q, err := readRunQuery(v.Filter)
	var got api.DigestRunPage
	if err == nil {
		q.Cursor = clip(in.Get("cursor"), 1024)
		got, err = u.Digests.Runs.List(r.Context(), boundTo(r), q)
	}
	if err != nil {
		if status, v.Trouble, err = troubleOf(err, q.Account == ""); err != nil {
			return err
		}
	}
	v.Runs = got.Runs
	v.cursorPager = cursors(func(cursor string) string { return v.at("cursor", cursor) }, q.Cursor, got.Cursor)
	if q.Cursor == "" && v.Trouble == "" {
		v.Part = v.at("part", "rows")
	}
	return u.show(w, r, status, "digestruns", "Runs of digests", v)
}

type digestRunView struct{ api.DigestRun }

// Live reports whether the run may change without a visit.
func (v digestRunView) Live() bool {
	return v.State == api.DigestPending || v.State == api.DigestProcessing || v.State == api.DigestSubmitted
}

// Again reports whether the run can be tried again. If its mail failed, the mail can be sent again instead.
// If its events returned, they are in the next run.
func (v digestRunView) Again() bool {
	return v.State == api.DigestFailed && v.QueueID == "" && len(v.Groups) > 0
}

func (u *UI) digestRun(w http.ResponseWriter, r *http.Request) error {
	run, err := u.Digests.Runs.Get(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "digestrun", "Run of "+run.Recipient, digestRunView{run})
}

func (u *UI) retryRun(w http.ResponseWriter, r *http.Request) error {
	at := "/digests/runs/" + url.PathEscape(r.PathValue("id"))
	_, err := u.Digests.Runs.Retry(r.Context(), boundTo(r), r.PathValue("id"))
	switch {
	case fault.Is(err, fault.NotFound):
		return err
	case err != nil:
		return undone(w, r, at, err)
	}
	return done(w, r, at, "Run restarted.")
}

// runReason returns why a run was skipped or failed, as part of a sentence.
func runReason(reason string) string {
	words := map[string]string{
		"empty": "no events are pending", "off": "the recipient turned it off",
		"suppressed": "the address is suppressed",
		"left":       "the recipient unsubscribed", "erased": "the person was erased",
		"address":  "there is no address",
		"template": "the template failed", "cancelled": "its message was cancelled",
	}[reason]
	return cmp.Or(words, reason)
}
