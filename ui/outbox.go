package ui

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type outboxView struct {
	Filter  filter
	Counted bool            // the tabs have counts, for the account and the stream of the filter
	Whole   bool            // the whole instance is shown, so sending can be paused
	Sending api.QueueStatus // both streams
	Bulk    api.QueueStatus // the bulk stream alone
	Tabs    []tab
	Rows    []api.OutboxMessage
	Pager   pager
	stretch // instead of pages, for a search and for a file
}

// tab filters the outbox by a state, and counts its messages.
type tab struct {
	State   api.State // empty: all
	Count   int
	Counted bool // Completed messages have left the outbox, and are not counted
	URL     string
	Current bool
}

// outbox shows the messages of a filter, oldest first. The script asks for parts of the page; each part reads
// only its own data.
func (u *UI) outbox(w http.ResponseWriter, r *http.Request) error {
	f, err := ownFilter(r, r.URL.Query())
	if err != nil {
		return err
	}
	view := outboxView{Filter: f, Whole: boundTo(r) == ""}
	part := r.URL.Query().Get("part")
	if part != "rows" {
		if err := u.countOutbox(r.Context(), &view); err != nil {
			return err
		}
	}
	if part != "counts" {
		if err := u.listOutbox(r, &view); err != nil {
			return err
		}
	}
	return u.show(w, r, http.StatusOK, "outbox", "Outbox", view)
}

// countOutbox fills in the tabs with their counts, and for the whole instance whether sending is paused.
func (u *UI) countOutbox(ctx context.Context, v *outboxView) error {
	f := v.Filter
	v.Counted = f.Tag == "" && f.Search == "" && f.After.IsZero() && f.Before.IsZero()
	var j api.Jobs
	var err error
	if v.Counted {
		if j, err = u.Outbox.Queues.Jobs(ctx, api.CounterQuery{Account: f.Account, Lane: f.Lane}); err != nil {
			return err
		}
	}
	if v.Whole {
		if v.Sending, err = u.Outbox.Queues.QueueStatus(ctx, "submit"); err != nil {
			return err
		}
		if v.Bulk, err = u.Outbox.Queues.QueueStatus(ctx, "bulk"); err != nil {
			return err
		}
	}
	counts := map[api.State]int{
		api.Waiting: j.Waiting, api.Active: j.Active, api.Scheduled: j.Scheduled, api.Delayed: j.OnlyDelayed(),
		api.Paused: j.Paused, api.Failed: j.Failed, "": j.Pending() + j.Failed,
	}
	for _, state := range append([]api.State{""}, states...) {
		n, counted := counts[state]
		v.Tabs = append(v.Tabs, tab{State: state, Count: n, Counted: v.Counted && counted, URL: f.With(state).URL(),
			Current: f.State == state})
	}
	return nil
}

// listOutbox fills in a page of messages.
func (u *UI) listOutbox(r *http.Request, v *outboxView) error {
	q, page := v.Filter.query(), pageOf(r.URL.Query())
	q.Page, q.PageSize = page, rowsFor(r)
	if v.Filter.Scans() || collects(r) != nil { // pages of a file would shift while messages leave
		q.Page, q.Cursor = 0, r.URL.Query().Get("cursor")
	}
	got, err := u.Outbox.Reader.Within(searchFor).List(r.Context(), q)
	if err != nil {
		return err
	}
	v.Rows = got.Messages
	v.stretch = stretch{First: v.Filter.URL(), Further: q.Cursor != "", Cursor: got.Cursor}
	if got.Cursor != "" {
		next := v.Filter.values()
		next.Set("cursor", got.Cursor)
		v.Next, v.Short = address("/outbox", next), len(got.Messages) < q.PageSize
	}
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/outbox", v.Filter.values()}
	return nil
}

// switched is the result of pausing or resuming a queue, by its name and whether it is paused.
var switched = map[string]map[bool]string{
	"submit": {true: "Sending is paused. Running attempts finish; Postroom accepts new messages, which wait.",
		false: "Sending resumed."},
	"bulk": {true: "Bulk sending is paused. Transactional email continues.", false: "Bulk sending resumed."},
	"digests": {true: "Digests are paused. Postroom still accepts events, and sends due digests when you resume.",
		false: "Digests resumed."},
	"documents": {true: "Indexing is paused. The search finds new changes when you resume.",
		false: "Indexing resumed."},
	"notify": {true: "Webhooks are paused. Their deliveries wait.", false: "Webhooks resumed."},
}

// setPaused pauses or resumes a queue.
func (u *UI) setPaused(paused bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		name := r.PathValue("queue")
		words, ok := switched[name]
		if !ok {
			return fault.New(fault.NotFound, "", "There is no such queue")
		}
		if err := parseForm(w, r); err != nil {
			return err
		}
		if err := u.Outbox.Queues.SetPaused(r.Context(), name, paused); err != nil {
			return err
		}
		return done(w, r, local(r.PostForm.Get("back")), "%s", words[paused])
	}
}
