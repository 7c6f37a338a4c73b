package ui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/outbox"
)

// states are the states of the outbox, in the order in which a message may pass through them.
var states = []api.State{api.Waiting, api.Active, api.Scheduled, api.Delayed, api.Paused,
	api.Failed, api.Completed}

// filter selects messages of the outbox. It is in the URL of the page.
type filter struct {
	State   api.State
	Account string
	Lane    api.Lane
	Tag     string
	Search  string
	After   time.Time // accepted at this time or later
	Before  time.Time // accepted before this time
}

// shortDay is the format of a browser's field for date and time. In a URL it is UTC.
const shortDay = "2006-01-02T15:04"

// readFilter reads a filter of a URL or a form. The error has all of its faults.
func readFilter(v url.Values) (filter, error) {
	f, wrong := readNarrowing(v, 256)
	f.State = api.State(v.Get("state"))
	if f.State != "" && !slices.Contains(states, f.State) {
		wrong.Add("state", "is not a state")
	}
	return f, fault.InvalidFields(wrong)
}

// ownFilter is readFilter, restricted to what the caller may see.
func ownFilter(r *http.Request, v url.Values) (filter, error) {
	f, err := readFilter(v)
	if err == nil {
		f.Account, err = ownAccount(r, f.Account)
	}
	return f, err
}

// readNarrowing reads a filter without state. longest is the maximum length of its search in bytes.
func readNarrowing(v url.Values, longest int) (f filter, wrong fault.Fields) {
	f = filter{
		Account: strings.TrimSpace(v.Get("account")), Lane: api.Lane(v.Get("lane")),
		Tag: strings.TrimSpace(v.Get("tag")), Search: strings.TrimSpace(v.Get("search")),
	}
	if f.Lane != "" && f.Lane != api.Transactional && f.Lane != api.Bulk {
		wrong.Add("lane", "is neither transactional nor bulk")
	}
	for key, text := range map[string]string{"account": f.Account, "tag": f.Tag, "search": f.Search} {
		most := 256
		if key == "search" {
			most = longest
		}
		if len(text) > most {
			wrong.Add(key, "is longer than %d bytes", most)
		}
	}
	for key, into := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		var err error
		if *into, err = readSince(v.Get(key)); err != nil {
			wrong.Add(key, "is not a date and time such as 2026-01-31T08:30, or an age such as 7d")
		}
	}
	return f, wrong
}

// readMoment parses a time of a browser's field or an API client. Empty: the zero time.
func readMoment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{shortDay, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Parse(time.RFC3339Nano, s)
}

// readSince parses an age (7d, 24h) or what readMoment parses.
func readSince(s string) (time.Time, error) {
	if age, err := schedule.ParseDuration(s); err == nil && age >= 0 {
		return time.Now().Add(-age), nil
	}
	return readMoment(s)
}

func (f filter) query() api.OutboxQuery {
	state := f.State
	if state == api.Delayed {
		state = outbox.OnlyDelayed // scheduled is a tab of its own
	}
	return api.OutboxQuery{
		State: state, Account: f.Account, Lane: f.Lane, Tag: f.Tag, Search: f.Search, CreatedAfter: f.After,
		CreatedBefore: f.Before,
	}
}

// Scans reports whether messages must be read instead of an index. If so, the page does not refresh them.
func (f filter) Scans() bool { return f.Tag != "" || f.Search != "" }

// Any reports whether the filter is not empty.
func (f filter) Any() bool { return f != filter{} }

// With returns the filter with another state.
func (f filter) With(s api.State) filter {
	f.State = s
	return f
}

func (f filter) values() url.Values {
	return values(map[string]string{
		"state": string(f.State), "account": f.Account, "lane": string(f.Lane), "tag": f.Tag, "search": f.Search,
		"after": fieldMoment(f.After), "before": fieldMoment(f.Before),
	})
}

// values returns the parameters that are not empty.
func values(all map[string]string) url.Values {
	v := url.Values{}
	for name, value := range all {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// fieldMoment returns a time for a URL, in the shortest format that is exact.
func fieldMoment(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(t.Truncate(time.Minute)):
		return t.UTC().Format(shortDay)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (f filter) AfterField() string { return formMoment(f.After) }

func (f filter) BeforeField() string { return formMoment(f.Before) }

func formMoment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(shortDay)
}

// URL returns the URL of the outbox's page with this filter.
func (f filter) URL() string { return address("/outbox", f.values()) }

// CancelURL returns the URL of the page that confirms cancelling the selected messages.
func (f filter) CancelURL() string { return address("/cancel", f.values()) }

// Part returns the URL of a part of the page, for the script.
func (f filter) Part(part string, page int) string {
	v := f.values()
	v.Set("part", part)
	if page > 0 {
		v.Set("page", strconv.Itoa(page+1))
	}
	return address("/outbox", v)
}

// Pairs returns the filter as hidden fields of a form.
func (f filter) Pairs() []pair {
	v := f.values()
	pairs := make([]pair, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		pairs = append(pairs, pair{name, v.Get(name)})
	}
	return pairs
}

type pair struct{ Name, Value string }

func address(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
