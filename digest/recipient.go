package digest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
)

// recipient is a reader as it is stored.
type recipient struct {
	readerKey
	version                 string // empty if there is none yet
	email, name, locale, tz string
	preferences             map[string]api.DigestPreference
	quietHours              []api.DigestQuiet
	paused                  time.Time // nothing is sent before; zero if not paused
	created, updated        time.Time

	lasts      map[string]string // last period by mode and category, as the fields last:…
	categories []string          // in which something may wait
	old        map[string]finishing

	zone  *time.Location
	lost  bool // the zone tz is gone: UTC is used
	quiet schedule.Quiet
}

// finishing is a schedule whose preference was changed shortly before it was due.
type finishing struct {
	Preference api.DigestPreference `json:"p"`
	Categories []string             `json:"c"`
}

// Prefixes of the fields of a recipient.
const (
	lastField     = "last:"
	categoryField = "c:"
	oldField      = "old:"
)

// urgentCategory is the first character of the list of urgent events of a category. Names of
// categories have no control characters.
const urgentCategory = separator

func readRecipient(k readerKey, from map[string]string) *recipient {
	r := &recipient{readerKey: k, version: from["version"], email: from["email"], name: from["name"],
		locale: from["locale"], tz: from["tz"], paused: redisdb.ParseTime(from["paused"]),
		created: redisdb.ParseTime(from["created"]), updated: redisdb.ParseTime(from["updated"]),
		preferences: map[string]api.DigestPreference{}, lasts: map[string]string{}, old: map[string]finishing{}}
	if text := from["preferences"]; text != "" {
		_ = json.Unmarshal([]byte(text), &r.preferences) // written by us
	}
	if text := from["quiet"]; text != "" {
		_ = json.Unmarshal([]byte(text), &r.quietHours)
	}
	for field, value := range from {
		if name, ok := strings.CutPrefix(field, lastField); ok {
			r.lasts[name] = value
		} else if name, ok := strings.CutPrefix(field, categoryField); ok {
			r.categories = append(r.categories, name)
		} else if name, ok := strings.CutPrefix(field, oldField); ok {
			var f finishing
			_ = json.Unmarshal([]byte(value), &f)
			r.old[name] = f
		}
	}
	slices.Sort(r.categories)
	r.settle()
	return r
}

// settle derives the zone and the quiet hours.
func (r *recipient) settle() {
	r.zone, r.lost = time.UTC, false
	if r.tz != "" {
		zone, err := schedule.Zone(r.tz)
		if err != nil {
			r.lost = true
		} else {
			r.zone = zone
		}
	}
	r.quiet, _ = quietOf(r.quietHours)
}

// last returns the last period that a category had in a mode.
func (r *recipient) last(mode, category string) string { return r.lasts[mode+":"+category] }

// lastMail returns when a category was last sent immediately; zero means never.
func (r *recipient) lastMail(category string) time.Time {
	at, _ := time.Parse(instant, r.last(immediate, category))
	return at
}

// fill sets fields that are not known yet.
func (r *recipient) fill(email, name, locale, tz string) {
	r.email, r.name, r.locale = cmp.Or(r.email, email), cmp.Or(r.name, name), cmp.Or(r.locale, locale)
	if r.tz == "" && tz != "" {
		r.tz = tz
		r.settle()
	}
}

// wish is a schedule with the categories that have it.
type wish struct {
	cadence
	schedule   string
	categories []string
}

// wishes returns the schedules of categories, in the order of their names. Categories that are off have none.
// Without an address there is none for any.
func (o Options) wishes(r *recipient, categories []string, kinds map[string]*api.DigestKind) []wish {
	byKey := map[string]*wish{}
	for _, category := range categories {
		w, ok := o.wish(r, category, kinds)
		switch {
		case !ok:
		case byKey[w.schedule] == nil:
			byKey[w.schedule] = &w
		default:
			byKey[w.schedule].categories = append(byKey[w.schedule].categories, category)
		}
	}
	var all []wish
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	return all
}

// wish returns the schedule of a category. ok is false if it is off.
func (o Options) wish(r *recipient, category string, kinds map[string]*api.DigestKind) (w wish, ok bool) {
	name, urgent := strings.CutPrefix(category, urgentCategory)
	w = wish{cadence: o.wanted(r, name, kinds[name]), categories: []string{category}}
	if w.mode == off {
		return w, false
	}
	if w.schedule = w.key(); urgent {
		w.cadence, w.schedule = cadence{mode: immediate}, urgentSchedule
	}
	return w, true
}

// dueFirst returns when the first email of a schedule is due for an event of a category that comes now.
func (o Options) dueFirst(r *recipient, w wish, category string, now time.Time) (time.Time, bool) {
	if w.schedule == urgentSchedule {
		if r.paused.After(now) {
			return r.paused, true
		}
		return now, true
	}
	if w.mode == immediate {
		return o.soon(r, w.gap, r.lastMail(category), now), true
	}
	p, ok := o.next(r, w.cadence, r.last(w.mode, category), now)
	return p.due, ok
}

// addressWait is how long events wait for the address of their recipient.
const addressWait = 24 * time.Hour

// plan returns when each schedule is due for which something waits, by member of due, in pairs.
func (o Options) plan(r *recipient, kinds map[string]*api.DigestKind, now time.Time) (plans []string) {
	add := func(schedule string, due time.Time) {
		plans = append(plans, entry{r.readerKey, schedule}.member(), strconv.FormatInt(due.UnixMilli(), 10))
	}
	if r.email == "" {
		if len(r.categories) > 0 {
			add(addressSchedule, now.Add(addressWait))
		}
		return plans
	}
	if len(o.unwanted(r, kinds)) > 0 {
		add(off, now)
	}
	busy := map[string]bool{} // categories whose old schedule finishes first
	for _, f := range r.old {
		for _, category := range f.Categories {
			busy[category] = true
		}
	}
	for _, w := range o.wishes(r, r.categories, kinds) {
		var first time.Time
		for _, category := range w.categories {
			due, ok := o.dueFirst(r, w, category, now)
			if ok && !busy[category] && (first.IsZero() || due.Before(first)) {
				first = due
			}
		}
		if !first.IsZero() {
			add(w.schedule, first)
		}
	}
	return plans
}

// unwanted returns the categories that are off, and in which something may wait from before.
func (o Options) unwanted(r *recipient, kinds map[string]*api.DigestKind) (all []string) {
	for _, category := range r.categories {
		name := strings.TrimPrefix(category, urgentCategory)
		if o.wanted(r, name, kinds[name]).mode == off {
			all = append(all, category)
		}
	}
	return all
}

// members returns the members of due that a recipient may have, except for old schedules.
func (o Options) members(r *recipient, kinds map[string]*api.DigestKind) []string {
	all := []string{entry{r.readerKey, addressSchedule}.member(), entry{r.readerKey, recheck}.member(),
		entry{r.readerKey, off}.member()}
	for _, w := range o.wishes(r, r.categories, kinds) {
		if _, finishes := r.old[w.schedule]; !finishes {
			all = append(all, entry{r.readerKey, w.schedule}.member())
		}
	}
	return all
}
