package ui

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// statuses are the statuses and outcomes of the email log, in the order in which a message may pass through
// them.
var statuses = []api.MessageStatus{
	api.StatusQueued, api.StatusSending, api.StatusSent, api.StatusDead, api.StatusFailed, api.StatusCancelled,
	api.StatusSuppressed, api.OutcomeDelivered, api.OutcomeOpened, api.OutcomeClicked, api.OutcomeUnsubscribed,
	api.OutcomeBounced, api.OutcomeComplained,
}

// longestSearch is the maximum length of a search of the log, which also finds idempotency keys.
const longestSearch = 1024

// logFilter selects messages of the log. It is in the URL of the page.
type logFilter struct {
	Status api.MessageStatus
	filter
}

// readLogFilter reads a filter of a URL. The error has all of its faults.
func readLogFilter(v url.Values) (logFilter, error) {
	narrowing, wrong := readNarrowing(v, longestSearch)
	f := logFilter{Status: api.MessageStatus(v.Get("status")), filter: narrowing}
	if f.Status != "" && !slices.Contains(statuses, f.Status) {
		wrong.Add("status", "is not a status")
	}
	if len(v.Get("cursor")) > 1024 {
		wrong.Add("cursor", "is longer than 1024 bytes")
	}
	return f, fault.InvalidFields(wrong)
}

func (f logFilter) query() api.LogQuery {
	return api.LogQuery{
		Status: f.Status, Account: f.Account, Lane: f.Lane, Tag: f.Tag, Search: f.Search, CreatedAfter: f.After,
		CreatedBefore: f.Before,
	}
}

// Any reports whether the filter is not empty.
func (f logFilter) Any() bool { return f != logFilter{} }

func (f logFilter) values() url.Values {
	v := f.filter.values()
	if f.Status != "" {
		v.Set("status", string(f.Status))
	}
	return v
}

// URL returns the URL of the log's page with this filter.
func (f logFilter) URL() string { return address("/log", f.values()) }

// Part returns the URL of a part of the page, for the script.
func (f logFilter) Part(part string) string { return f.with("part", part) }

// From returns the URL of the messages after a cursor.
func (f logFilter) From(cursor string) string { return f.with("cursor", cursor) }

func (f logFilter) with(key, value string) string {
	v := f.values()
	v.Set(key, value)
	return address("/log", v)
}

// Counted reports whether there are counts for the filter. There are none by tag, text and time.
func (f logFilter) Counted() bool { return !f.Scans() && f.After.IsZero() && f.Before.IsZero() }

// FailedURL returns the URL of the messages of the filter's account and lane that failed.
func (f logFilter) FailedURL() string {
	return logFilter{Status: api.StatusFailed, filter: filter{Account: f.Account, Lane: f.Lane}}.URL()
}

// DeadURL returns the URL of the dead letters of the filter's account and lane.
func (f logFilter) DeadURL() string {
	return logFilter{Status: api.StatusDead, filter: filter{Account: f.Account, Lane: f.Lane}}.URL()
}

type logView struct {
	Filter   logFilter
	Counters api.Counters // of the filter's account and lane
	Tabs     []logTab
	Rows     []api.LoggedMessage
	Total    int
	stretch
}

// logTab is a link to the messages of a status.
type logTab struct {
	Status  api.MessageStatus // empty: all
	URL     string
	Current bool
}

// logPage shows the messages of a filter, newest first. It uses cursors instead of pages: new messages would
// shift the rows of pages.
func (u *UI) logPage(w http.ResponseWriter, r *http.Request) error {
	f, err := readLogFilter(r.URL.Query())
	if err == nil {
		f.Account, err = ownAccount(r, f.Account)
	}
	if err != nil {
		return err
	}
	view, part := logView{Filter: f}, r.URL.Query().Get("part")
	for _, status := range append([]api.MessageStatus{""}, statuses...) {
		to := f
		to.Status = status
		view.Tabs = append(view.Tabs, logTab{status, to.URL(), f.Status == status})
	}
	if part != "rows" && f.Counted() {
		if view.Counters, err = u.Outbox.Queues.Counters(r.Context(), api.CounterQuery{Account: f.Account,
			Lane: f.Lane}); err != nil {
			return err
		}
	}
	if part != "counts" {
		q := f.query()
		q.PageSize, q.Cursor = rowsFor(r), r.URL.Query().Get("cursor")
		got, err := u.Outbox.Reader.Within(searchFor).Messages(r.Context(), q)
		if err != nil {
			return err
		}
		view.Rows, view.Total = got.Messages, got.Total
		view.stretch = stretch{First: f.URL(), Further: q.Cursor != "", Cursor: got.Cursor, Newest: true}
		if got.Cursor != "" {
			view.Next, view.Short = f.From(got.Cursor), len(got.Messages) < q.PageSize
		}
	}
	return u.show(w, r, http.StatusOK, "log", "Log", view)
}

// lastWord returns why a message waits or was not sent, or the relay's reply to a sent one. For a failed
// message it is the error, because the reason is why its dead letter was deleted. Of one that came back it is
// what the recipient's server said.
func lastWord(m api.LoggedMessage) string {
	switch {
	case m.Outcome != nil && m.Outcome.Status.IsBad() && m.Outcome.String() != "":
		return m.Outcome.String()
	case m.Status == api.StatusSent:
		return m.Response
	case m.Error != nil && (m.Reason == "" || m.Status == api.StatusDead || m.Status == api.StatusFailed):
		return m.Error.Message
	}
	return m.Reason
}
