package digest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/schedule"
)

// Reader is a recipient as a page shows it, on which readers choose themselves.
type Reader struct {
	Recipient string // id
	Name      string // empty if not known
	TZ        string // time zone that is used
	Zone      *time.Location
	Choices   []Choice // by category; the last is of all others
}

// Choice is a reader's setting for a category.
type Choice struct {
	Category string // * stands for all others
	Title    string // its kind's; the category if it has none
	Required bool   // it can't be off
	// Preference is the one that is used. Its hour, minute, weekdays and day are set for every mode, as defaults
	// for a change to a mode that needs them.
	Preference api.DigestPreference
	Own        bool        // the recipient has it for this category itself
	Words      string      // the preference as a part of a sentence, such as: every day at 08:00
	Times      []time.Time // the next three times when events would be sent; one if immediately, none if never
	Next       time.Time   // when an event that comes now would be sent; zero means never
	Now        bool        // that is at once
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
	var all []Reader
	for _, one := range found {
		all = append(all, r.opts.reader(one, kinds, tag))
	}
	slices.SortFunc(all, func(a, b Reader) int { return cmp.Compare(a.Recipient, b.Recipient) })
	return all, nil
}

// Reader returns one recipient, with titles in its own language, or NotFound.
func (r *Recipients) Reader(ctx context.Context, bound string, q api.DigestAccount, id string) (Reader,
	error) {
	one, err := r.find(ctx, bound, q.Account, id)
	if err != nil {
		return Reader{}, err
	}
	kinds, err := r.kinds.of(ctx, one.account)
	return r.opts.reader(one, kinds, one.locale), err
}

// reader returns what a recipient has of each category that it may choose for.
func (o Options) reader(one *recipient, kinds map[string]*api.DigestKind, tag string) Reader {
	reader := Reader{Recipient: one.id, Name: one.name, TZ: one.zone.String(), Zone: one.zone}
	now := o.Now()
	for _, category := range append(known(one, kinds), rest) {
		reader.Choices = append(reader.Choices, o.choice(one, category, kinds[category], tag, now))
	}
	return reader
}

// Words returns a preference as a part of a sentence, such as: every day at 08:00. An unusable preference has
// its mode only.
func (r *Recipients) Words(p api.DigestPreference) string {
	c, wrong := r.opts.cadenceOf(p, "")
	if wrong != nil {
		return p.Mode
	}
	return c.words()
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
	_, own := r.preferences[category]
	one := Choice{Category: category, Title: titleOf(k, category, tag), Required: k != nil && k.Required,
		Preference: p, Own: own, Words: c.words(), Times: o.timesOf(r, c, category, now)}
	if len(one.Times) > 0 {
		one.Next = one.Times[0]
		one.Now = c.mode == immediate && one.Next.Equal(now)
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

// timesOf returns the next times at which a cadence sends a category.
func (o Options) timesOf(r *recipient, c cadence, category string, now time.Time) (times []time.Time) {
	switch c.mode {
	case off:
		return nil
	case immediate:
		return []time.Time{o.soon(r, 0, time.Time{}, now)}
	}
	at := now
	for len(times) < nextTimes {
		p, ok := o.next(r, c, r.last(c.mode, category), at)
		if !ok {
			break
		}
		times, at = append(times, p.due), p.due
	}
	return times
}
