package ui

import (
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// replayView is the data of the page that confirms replaying the failed messages of an account.
type replayView struct {
	Filter     filter
	Total      int
	Correction *correction
}

// Replayable reports whether replayAll can take the filter: the failed messages of an account, optionally
// with a tag.
func (f filter) Replayable() bool {
	return f.Account != "" && f == filter{State: api.Failed, Account: f.Account, Tag: f.Tag}
}

// ReplayURL returns the URL of the page that confirms replaying the messages of the filter.
func (f filter) ReplayURL() string { return address("/replay", f.values()) }

func (u *UI) confirmReplay(w http.ResponseWriter, r *http.Request) error {
	f, err := readReplay(r, r.URL.Query().Get)
	if err != nil {
		return err
	}
	view := replayView{Filter: f}
	if view.Total, err = u.total(r.Context(), f); err != nil {
		return err
	}
	if view.Correction, err = u.corrections(r); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "replay", "Send again", view)
}

// replayAll replays the failed messages of an account. Those replayed meanwhile are skipped.
func (u *UI) replayAll(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f, err := readReplay(r, r.PostForm.Get)
	if err != nil {
		return err
	}
	req := api.ReplayRequest{Account: f.Account, Tag: f.Tag, AccountTrouble: r.PostForm.Get("trouble") != "",
		Bound: boundTo(r) != ""}
	c, err := ownCorrections(r)
	if err != nil {
		return err
	}
	if c.Gateway != nil || c.Account != "" {
		req.Corrections = &api.Corrections{Gateway: c.Gateway, Account: c.Account}
	}
	answer, err := u.Outbox.ReplayAll(r.Context(), req)
	if err != nil {
		return undone(w, r, f.URL(), err)
	}
	u.log.InfoContext(r.Context(), "dead letters replayed from the pages", "account", f.Account, "replayed",
		answer.Replayed, "skipped", answer.Skipped)
	text := plural(answer.Replayed, "message is", "messages are") + " due again."
	if answer.Skipped > 0 {
		text += " " + plural(answer.Skipped, "message was", "messages were") +
			" left alone: no longer failed, or without content."
	}
	return done(w, r, f.With("").URL(), "%s", text)
}

// readReplay reads the filter of the failed messages.
func readReplay(r *http.Request, get func(string) string) (filter, error) {
	account, err := ownAccount(r, get("account"))
	f := filter{State: api.Failed, Account: account, Tag: get("tag")}
	if err != nil {
		return f, err
	}
	if f.Account == "" || len(f.Account) > 256 || len(f.Tag) > 256 {
		return f, fault.New(fault.Invalid, "", "The account whose messages are to be sent again is missing")
	}
	return f, nil
}
