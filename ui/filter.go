package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// states are those of the outbox, in the order in which a message may pass through them.
var states = []api.State{api.Waiting, api.Active, api.Delayed, api.Paused, api.Failed}

// filter is what the outbox's page is narrowed to, as it stands in the page's address.
type filter struct {
	State   api.State
	Account string
	Lane    api.Lane
	Tag     string
	Search  string
	After   time.Time // accepted at this moment or later
	Before  time.Time // accepted before this moment
}

// shortDay is how a browser's field for date and time writes; in an address it means UTC.
const shortDay = "2006-01-02T15:04"

// readFilter reads a filter off an address or a form, and names all that is wrong with it.
func readFilter(v url.Values) (filter, error) {
	f, wrong := readNarrowing(v, 256)
	f.State = api.State(v.Get("state"))
	if f.State != "" && !slices.Contains(states, f.State) {
		wrong = append(wrong, fault.Field{Key: "state", Message: "is none of the states there are"})
	}
	return f, fault.InvalidFields(wrong)
}

// readNarrowing reads all of a filter but what messages stand at, with a search of so many bytes at most.
func readNarrowing(v url.Values, longest int) (f filter, wrong []fault.Field) {
	f = filter{
		Account: strings.TrimSpace(v.Get("account")), Lane: api.Lane(v.Get("lane")),
		Tag: strings.TrimSpace(v.Get("tag")), Search: strings.TrimSpace(v.Get("search")),
	}
	refuse := func(key, why string) { wrong = append(wrong, fault.Field{Key: key, Message: why}) }
	if f.Lane != "" && f.Lane != api.Transactional && f.Lane != api.Bulk {
		refuse("lane", "is neither transactional nor bulk")
	}
	for key, text := range map[string]string{"account": f.Account, "tag": f.Tag, "search": f.Search} {
		most := 256
		if key == "search" {
			most = longest
		}
		if len(text) > most {
			refuse(key, fmt.Sprintf("is longer than %d bytes", most))
		}
	}
	for key, into := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		var err error
		if *into, err = readMoment(v.Get(key)); err != nil {
			refuse(key, "is not a date and time such as 2026-01-31T08:30")
		}
	}
	return f, wrong
}

// readMoment reads a moment as a browser's field or an API's client writes it. None: the zero time.
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

// query asks the outbox for what the filter leaves.
func (f filter) query() api.OutboxQuery {
	return api.OutboxQuery{
		State: f.State, Account: f.Account, Lane: f.Lane, Tag: f.Tag, Search: f.Search, CreatedAfter: f.After,
		CreatedBefore: f.Before,
	}
}

// Scans reports whether the outbox must read messages to answer, rather than an index: then the page doesn't
// ask for them all the time.
func (f filter) Scans() bool {
	return f.Tag != "" || f.Search != "" || !f.After.IsZero() || !f.Before.IsZero() || f.Account != "" &&
		(f.State != "" || f.Lane != "")
}

// Any reports whether the filter narrows anything.
func (f filter) Any() bool { return f != filter{} }

// Narrow reports whether anything but the state, which has buttons of its own, is narrowed.
func (f filter) Narrow() bool {
	f.State = ""
	return f.Any()
}

// With is the filter with another state.
func (f filter) With(s api.State) filter {
	f.State = s
	return f
}

// values are the filter as it stands in an address.
func (f filter) values() url.Values {
	v := url.Values{}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("state", string(f.State))
	set("account", f.Account)
	set("lane", string(f.Lane))
	set("tag", f.Tag)
	set("search", f.Search)
	set("after", fieldMoment(f.After))
	set("before", fieldMoment(f.Before))
	return v
}

// fieldMoment writes a moment for an address, as short as it can be.
func fieldMoment(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Equal(t.Truncate(time.Minute)):
		return t.UTC().Format(shortDay)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// AfterField and BeforeField are what the fields of the form show.
func (f filter) AfterField() string { return formMoment(f.After) }

// BeforeField is the counterpart of AfterField.
func (f filter) BeforeField() string { return formMoment(f.Before) }

func formMoment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(shortDay)
}

// URL is the address of the outbox's page with this filter.
func (f filter) URL() string { return address("/", f.values()) }

// CancelURL is the address of the page that confirms cancelling what the filter leaves.
func (f filter) CancelURL() string { return address("/cancel", f.values()) }

// Part is the address of a part of the page, for the script.
func (f filter) Part(part string, page int) string {
	v := f.values()
	v.Set("part", part)
	if page > 0 {
		v.Set("page", strconv.Itoa(page+1))
	}
	return address("/", v)
}

// Pairs are the filter as the hidden fields of a form.
func (f filter) Pairs() []pair {
	v := f.values()
	pairs := make([]pair, 0, len(v))
	for name := range v {
		pairs = append(pairs, pair{name, v.Get(name)})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.Name, b.Name) })
	return pairs
}

type pair struct{ Name, Value string }

func address(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
