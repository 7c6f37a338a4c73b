package digest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/schedule"
)

// Reader is a recipient as a page shows it, on which readers choose themselves.
type Reader struct {
	Recipient string // id
	Name      string // empty: not known
	TZ        string // time zone that is used
	Zone      *time.Location
	Choices   []Choice // by category; the last is of all others
}

// Choice is what a reader has of a category.
type Choice struct {
	Category string // * stands for all others
	Title    string // of its kind; the category if it has none
	Required bool   // it can't be off
	// Preference is that which is used. Its hour, minute, weekdays and day are set for every mode: with them
	// begins a change to a mode that needs them.
	Preference api.DigestPreference
	Next       time.Time // when an event that comes now would be mailed; zero: never
	Now        bool      // that is at once
}

// Readers returns the recipients of an account with an address, with titles in a language.
func (r *Recipients) Readers(ctx context.Context, account, address, tag string) ([]Reader, error) {
	found, err := r.at(ctx, account, address)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	kinds, err := r.kinds.of(ctx, account)
	if err != nil {
		return nil, err
	}
	now := r.opts.Now()
	var all []Reader
	for _, one := range found {
		reader := Reader{Recipient: one.id, Name: one.name, TZ: one.zone.String(), Zone: one.zone}
		for _, category := range append(known(one, kinds), rest) {
			reader.Choices = append(reader.Choices, r.opts.choice(one, category, kinds[category], tag, now))
		}
		all = append(all, reader)
	}
	slices.SortFunc(all, func(a, b Reader) int { return cmp.Compare(a.Recipient, b.Recipient) })
	return all, nil
}

// known returns the categories that a recipient had events of, or may choose for.
func known(r *recipient, kinds map[string]*api.DigestKind) []string {
	names := map[string]bool{}
	for category := range kinds {
		names[category] = true
	}
	for category := range r.preferences {
		names[category] = true
	}
	for _, category := range r.categories {
		names[strings.TrimPrefix(category, urgentCategory)] = true
	}
	for last := range r.lasts { // by mode and category
		_, category, _ := strings.Cut(last, ":")
		names[strings.TrimPrefix(category, urgentCategory)] = true
	}
	delete(names, rest)
	return slices.Sorted(maps.Keys(names))
}

// choice returns what a recipient has of a category.
func (o Options) choice(r *recipient, category string, k *api.DigestKind, tag string, now time.Time) Choice {
	p := o.preference(r, category, k)
	c, wrong := o.cadenceOf(p, "")
	if wrong != nil {
		p = api.DigestPreference{Mode: string(schedule.Daily)}
		c = o.wanted(r, category, k)
	}
	one := Choice{Category: category, Title: titleOf(k, category, tag), Required: k != nil && k.Required,
		Preference: p}
	switch c.mode {
	case off:
	case immediate:
		one.Next = o.soon(r, 0, time.Time{}, now)
		one.Now = one.Next.Equal(now)
	default:
		next, _ := o.next(r, c, r.last(c.mode, category), now)
		one.Next = next.due
	}
	hour, minute := o.Hour, 0
	if p.Hour != nil {
		hour = *p.Hour
	}
	if p.Minute != nil {
		minute = *p.Minute
	}
	one.Preference.Hour, one.Preference.Minute = &hour, &minute
	one.Preference.Day = max(1, p.Day)
	if len(p.Weekdays) == 0 {
		one.Preference.Weekdays = []string{weekdayNames[time.Monday]}
	}
	return one
}
