package ui

import (
	"net/http"
	"net/url"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend/replies"
)

// replayFilter selects dead letters to replay.
type replayFilter struct {
	filter
	Reason string // of the explanation of their error; empty: any
}

// Narrowed reports whether the filter may replay all that it selects. Nobody means all of the instance.
func (f replayFilter) Narrowed() bool { return f.Account+f.Tag+f.Reason != "" }

// Because returns the URL of the page with another reason; empty: any.
func (f replayFilter) Because(reason string) string {
	f.Reason = reason
	return address("/replay", f.values())
}

func (f replayFilter) values() url.Values {
	return values(map[string]string{"account": f.Account, "tag": f.Tag, "reason": f.Reason})
}

// query returns the query of the dead letters.
func (f replayFilter) query() api.OutboxQuery {
	q := f.filter.query()
	q.Reason = f.Reason
	return q
}

// replayView is the data of the page of failed messages by reason, where they are replayed.
type replayView struct {
	Filter     replayFilter
	Reasons    []api.DeadLetterReason // of all that account and tag select
	Letters    []api.OutboxMessage
	Pager      pager
	Correction *correction

	next string // URL of the next letters of a file
}

// Total returns the number of messages that the filter selects.
func (v replayView) Total() int { return v.Pager.Total }

// Chosen returns the reason of the filter; nil: none.
func (v replayView) Chosen() *api.DeadLetterReason {
	for i := range v.Reasons {
		if v.Reasons[i].Reason == v.Filter.Reason {
			return &v.Reasons[i]
		}
	}
	return nil
}

// Replayable reports whether replayAll can take the filter: the failed messages of an account, optionally
// with a tag.
func (f filter) Replayable() bool {
	return f.Account != "" && f == filter{State: api.Failed, Account: f.Account, Tag: f.Tag}
}

// ReplayURL returns the URL of the page that confirms replaying the messages of the filter.
func (f filter) ReplayURL() string { return address("/replay", f.values()) }

// ReasonsURL returns the URL of the page that groups failed messages of the filter by reason; empty: the
// filter has more than an account and a tag, which that page does not know.
func (f filter) ReasonsURL() string {
	if f.State != api.Failed || f != (filter{State: api.Failed, Account: f.Account, Tag: f.Tag}) {
		return ""
	}
	return replayFilter{filter: f}.Because("")
}

// confirmReplay shows failed messages by reason, and asks which to replay.
func (u *UI) confirmReplay(w http.ResponseWriter, r *http.Request) error {
	f, err := readReplay(r, r.URL.Query().Get)
	if err != nil {
		return err
	}
	ctx, view := r.Context(), replayView{Filter: f}
	found, err := u.Outbox.Reader.DeadLetterReasons(ctx, f.filter.query())
	if err != nil {
		return err
	}
	q, page := f.query(), pageOf(r.URL.Query())
	q.Page, q.PageSize = page, rowsFor(r)
	if collects(r) != nil { // pages would shift while messages are sent again
		q.Page, q.Cursor = 0, r.URL.Query().Get("cursor")
	}
	letters, err := u.Outbox.Reader.DeadLetters(ctx, q)
	if err != nil {
		return err
	}
	view.Reasons, view.Letters = found.Reasons, letters.DeadLetters
	if letters.Cursor != "" {
		next := f.values()
		next.Set("cursor", letters.Cursor)
		view.next = address("/replay", next)
	}
	view.Pager = pager{letters.PageNumbers, rowsPerPage, "/replay", f.values()}
	if view.Correction, err = u.corrections(r); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "replay", "Send again", view)
}

// replayAll replays the failed messages of a filter, or those that are ticked. Those replayed meanwhile are
// skipped.
func (u *UI) replayAll(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f, err := readReplay(r, r.PostForm.Get)
	if err != nil {
		return err
	}
	req := api.ReplayRequest{Account: f.Account, Tag: f.Tag, Reason: f.Reason,
		AccountTrouble: r.PostForm.Get("trouble") != "", Bound: boundTo(r) != ""}
	switch ticked := r.PostForm.Get("which") == "ticked"; {
	case ticked && len(r.PostForm["id"]) == 0:
		return redirectWith(w, r, f.Because(f.Reason), flash{Text: "Tick the messages first.", Bad: true})
	case ticked:
		if req, err = tickedOf(r.PostForm["id"], req); err != nil {
			return err
		}
	case !f.Narrowed():
		return fault.New(fault.Invalid, "", "Choose an account, a tag or a reason of the messages to send again")
	}
	c, err := ownCorrections(r)
	if err != nil {
		return err
	}
	if c.Gateway != nil || c.Account != "" {
		req.Corrections = &api.Corrections{Gateway: c.Gateway, Account: c.Account}
	}
	answer, err := u.Outbox.Operations.ReplayAll(r.Context(), req)
	if err != nil {
		return undone(w, r, f.Because(f.Reason), err)
	}
	u.log.InfoContext(r.Context(), "dead letters replayed from the pages", "account", f.Account, "reason",
		f.Reason, "replayed", answer.Replayed, "skipped", answer.Skipped)
	text := plural(answer.Replayed, "message is", "messages are") + " due again."
	if answer.Skipped > 0 {
		text += " " + plural(answer.Skipped, "message was", "messages were") +
			" skipped: no longer failed, without content, over a quota, or with suppressed recipients only."
	}
	if req.IDs != nil {
		return done(w, r, f.Because(f.Reason), "%s", text)
	}
	return done(w, r, f.With("").URL(), "%s", text)
}

// tickedOf returns a request for the ticked messages, within the account of the filter.
func tickedOf(ticked []string, req api.ReplayRequest) (api.ReplayRequest, error) {
	for _, id := range ticked {
		if !ids.MatchString(id) {
			return req, unknown()
		}
	}
	return api.ReplayRequest{IDs: ticked[:min(len(ticked), rowsPerPage)], Account: req.Account,
		Bound: req.Bound}, nil
}

// readReplay reads the filter of the failed messages.
func readReplay(r *http.Request, get func(string) string) (replayFilter, error) {
	account, err := ownAccount(r, get("account"))
	f := replayFilter{filter{State: api.Failed, Account: account, Tag: get("tag")}, get("reason")}
	switch {
	case err != nil:
		return f, err
	case len(f.Account) > 256 || len(f.Tag) > 256:
		return f, fault.New(fault.Invalid, "", "The account or the tag is longer than 256 bytes")
	case f.Reason != "" && !replies.Known(f.Reason):
		return f, fault.New(fault.Invalid, "", "The reason %q isn't known. /replay lists the reasons of failed messages",
			f.Reason)
	}
	return f, nil
}
