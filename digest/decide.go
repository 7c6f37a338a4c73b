package digest

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// planned is the plan for a schedule that came due.
type planned struct {
	schedule, period string
	categories       []string          // whose events are sent; empty for nothing now
	lasts            map[string]string // fields of the recipient to set with it; empty to remove
	due              time.Time         // when the period was due, in the zone of now; zero if as planned
	later            time.Time         // when it is due instead; zero means never
	reason           string            // why its events are dropped instead
}

// decide returns the plan for a recipient's schedule that came due at a time. Preferences, zones and their
// rules may have changed since it was planned.
func (o Options) decide(r *recipient, schedule string, kinds map[string]*api.DigestKind, since,
	now time.Time) planned {
	p := planned{schedule: schedule, lasts: map[string]string{}}
	switch {
	case r.version == "":
		return p
	case schedule == addressSchedule && r.email != "":
		return p // the address came, and with it a plan
	case schedule == addressSchedule:
		p.categories, p.period, p.reason = r.categories, now.UTC().Format(instant), noAddress
		return p
	}
	if schedule == off {
		p.categories, p.period, p.reason = o.unwanted(r, kinds), now.UTC().Format(instant), off
		return p
	}
	w, ok := o.wishOf(r, schedule, kinds)
	if !ok {
		return p
	}
	if at := o.mayMail(r, schedule, now); at.After(now) {
		p.later = at
		return p
	}
	if w.mode == immediate {
		return o.decideImmediate(r, w, p, now)
	}
	for _, category := range w.categories {
		newest, ok := o.newest(r, w.cadence, r.last(w.mode, category), since, now)
		if ok {
			p.categories = append(p.categories, category)
			if newest.id > p.period {
				p.period, p.due = newest.id, newest.due
			}
			continue
		}
		if next, ok := o.next(r, w.cadence, r.last(w.mode, category), now); ok &&
			(p.later.IsZero() || next.due.Before(p.later)) {
			p.later = next.due
		}
	}
	for _, category := range p.categories {
		p.lasts[lastField+w.mode+":"+category] = p.period
	}
	if _, finishes := r.old[schedule]; finishes {
		p.lasts[oldField+schedule] = ""
	}
	return p
}

// wishOf returns a schedule with its current categories, and the ones that it finishes before a change.
func (o Options) wishOf(r *recipient, schedule string, kinds map[string]*api.DigestKind) (wish, bool) {
	all := o.wishes(r, r.categories, kinds)
	i := slices.IndexFunc(all, func(w wish) bool { return w.schedule == schedule })
	old, finishes := r.old[schedule]
	if !finishes {
		if i < 0 {
			return wish{}, false
		}
		return all[i], true
	}
	c, wrong := o.cadenceOf(old.Preference, "")
	w := wish{cadence: c, schedule: schedule}
	if i >= 0 {
		w.categories = all[i].categories
	}
	for _, category := range old.Categories {
		if o.wanted(r, category, kinds[category]).mode != off && !slices.Contains(w.categories, category) {
			w.categories = append(w.categories, category)
		}
	}
	return w, wrong == nil
}

// decideImmediate is decide for immediate mail: not within the gap after the last.
func (o Options) decideImmediate(r *recipient, w wish, p planned, now time.Time) planned {
	p.period = now.UTC().Format(instant)
	for _, category := range w.categories {
		due := now
		if w.schedule != urgentSchedule {
			due = o.soon(r, w.gap, r.lastMail(category), now)
		}
		if due.After(now) {
			if p.later.IsZero() || due.Before(p.later) {
				p.later = due
			}
			continue
		}
		p.categories = append(p.categories, category)
		p.lasts[lastField+immediate+":"+category] = p.period
	}
	if _, finishes := r.old[w.schedule]; finishes {
		p.lasts[oldField+w.schedule] = ""
	}
	return p
}

// everything is the plan for sending everything that waits now. It leaves the schedules' periods as they are.
func (o Options) everything(r *recipient, now time.Time) planned {
	p := planned{schedule: nowSchedule, categories: r.categories, period: now.UTC().Format(instant),
		lasts: map[string]string{}}
	if len(p.categories) == 0 {
		p.categories = []string{"-"} // nothing waits in it: the run is skipped
	}
	return p
}

// lane returns the lane, the template and whether mail has the list of digests, of categories.
func (o Options) lane(categories []string, kinds map[string]*api.DigestKind) (lane api.Lane, template string,
	listed bool) {
	lane = o.Lane
	for _, category := range categories {
		k := kinds[strings.TrimPrefix(category, urgentCategory)]
		listed = listed || k == nil || !k.Required
		if k != nil && len(categories) == 1 {
			template = k.Template
			if k.Lane != "" {
				lane = k.Lane
			}
		}
	}
	return lane, template, listed
}

// writeFields writes fields for a script.
func writeFields(fields map[string]string) (string, error) {
	if fields == nil {
		fields = map[string]string{}
	}
	raw, err := json.Marshal(fields)
	return string(raw), err
}
