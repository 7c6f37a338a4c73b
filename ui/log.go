package ui

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// statuses are those of the email log, in the order in which a message may pass through them.
var statuses = []api.MessageStatus{
	api.StatusQueued, api.StatusSending, api.StatusSent, api.StatusDead, api.StatusFailed, api.StatusCancelled,
	api.StatusSuppressed,
}

// longestSearch is that of the log, which finds idempotency keys, too.
const longestSearch = 1024

// logFilter is what the log's page is narrowed to, as it stands in the page's address.
type logFilter struct {
	Status api.MessageStatus
	filter
}

// readLogFilter reads a filter off an address, and names all that is wrong with it.
func readLogFilter(v url.Values) (logFilter, error) {
	narrowing, wrong := readNarrowing(v, longestSearch)
	f := logFilter{Status: api.MessageStatus(v.Get("status")), filter: narrowing}
	if f.Status != "" && !slices.Contains(statuses, f.Status) {
		wrong = append(wrong, fault.Field{Key: "status", Message: "is none of the statuses there are"})
	}
	if len(v.Get("cursor")) > 1024 {
		wrong = append(wrong, fault.Field{Key: "cursor", Message: "is longer than 1024 bytes"})
	}
	return f, fault.InvalidFields(wrong)
}

// query asks the log for what the filter leaves.
func (f logFilter) query() api.LogQuery {
	return api.LogQuery{
		Status: f.Status, Account: f.Account, Lane: f.Lane, Tag: f.Tag, Search: f.Search, CreatedAfter: f.After,
		CreatedBefore: f.Before,
	}
}

// Scans reports whether messages must be read to answer, rather than an index: then the page doesn't ask for
// them all the time.
func (f logFilter) Scans() bool { return f.Tag != "" || f.Search != "" }

// Any reports whether the filter narrows anything.
func (f logFilter) Any() bool { return f != logFilter{} }

// values are the filter as it stands in an address.
func (f logFilter) values() url.Values {
	v := f.filter.values()
	if f.Status != "" {
		v.Set("status", string(f.Status))
	}
	return v
}

// URL is the address of the log's page with this filter.
func (f logFilter) URL() string { return address("/log", f.values()) }

// Part is the address of a part of the page, for the script.
func (f logFilter) Part(part string) string { return f.with("part", part) }

// From is the address of the messages after a cursor.
func (f logFilter) From(cursor string) string { return f.with("cursor", cursor) }

func (f logFilter) with(key, value string) string {
	v := f.values()
	v.Set(key, value)
	return address("/log", v)
}

// DeadURL is the address of the dead letters among what account and lane leave.
func (f logFilter) DeadURL() string {
	return logFilter{Status: api.StatusDead, filter: filter{Account: f.Account, Lane: f.Lane}}.URL()
}

// logView is the log's page.
type logView struct {
	Filter   logFilter
	Counters api.Counters // of the filter's account and lane
	Tabs     []logTab
	Rows     []api.LoggedMessage
	Total    int
	Older    string // address of the next rows; empty: there are none
	Further  bool   // these are such rows
}

// logTab narrows the log to a status.
type logTab struct {
	Status  api.MessageStatus // empty: all
	URL     string
	Current bool
}

// logPage shows the messages that a filter leaves, newest first. It goes on by cursor and not by page: what
// arrives meanwhile would push rows from one page to the next.
func (u *UI) logPage(w http.ResponseWriter, r *http.Request) error {
	f, err := readLogFilter(r.URL.Query())
	if err != nil {
		return err
	}
	view, part := logView{Filter: f}, r.URL.Query().Get("part")
	for _, status := range append([]api.MessageStatus{""}, statuses...) {
		to := f
		to.Status = status
		view.Tabs = append(view.Tabs, logTab{status, to.URL(), f.Status == status})
	}
	if part != "rows" {
		if view.Counters, err = u.Outbox.Counters(r.Context(), api.CounterQuery{Account: f.Account,
			Lane: f.Lane}); err != nil {
			return err
		}
	}
	if part != "counts" {
		q := f.query()
		q.PageSize, q.Cursor = rowsPerPage, r.URL.Query().Get("cursor")
		got, err := u.Outbox.Messages(r.Context(), q)
		if err != nil {
			return err
		}
		view.Rows, view.Total, view.Further = got.Messages, got.Total, q.Cursor != ""
		if got.Cursor != "" {
			view.Older = f.From(got.Cursor)
		}
	}
	return u.show(w, r, http.StatusOK, "log", "Log", view)
}

// lastWord is why a message waits or was not sent, or what the relay said when it was. Of a failed one the
// reason, if there is one, is why its dead letter was deleted: what it failed with says more.
func lastWord(m api.LoggedMessage) string {
	switch {
	case m.Status == api.StatusSent:
		return m.Response
	case m.Error != nil && (m.Reason == "" || m.Status == api.StatusDead || m.Status == api.StatusFailed):
		return m.Error.Message
	}
	return m.Reason
}
