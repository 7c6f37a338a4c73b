package digest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
)

// The day of events below is made and counted by code of its own. It knows nothing of schedules, periods or
// groups but what docs/digests.md says of them. It finds a time of the wall clock by trying every minute.

// heldoutZones are zones with halves and quarters of an hour, with clocks that change by half an hour or by
// two, with recent rules, and at both ends of the world.
var heldoutZones = []string{"UTC", "America/New_York", "America/Santiago", "America/St_Johns", "Asia/Gaza",
	"Asia/Kathmandu", "Africa/Casablanca", "Africa/Cairo", "Australia/Lord_Howe", "Europe/Dublin", "Europe/Kyiv",
	"Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Nuuk",
	"America/Ciudad_Juarez", "Antarctica/Troll", "Asia/Qostanay"}

// wanted is what a reader asked for, on its clock and outside its quiet hours.
type wanted struct {
	*reader
	mode         string // immediate, hourly, daily, weekly, monthly, times or cron
	day          time.Weekday
	date         int // day of the month
	hour, minute int
	gap          time.Duration

	due     time.Time // when waiting events are due, or the next
	period  string    // the period of the mail at due; empty for immediate
	waiting map[string]*line
	mailed  map[string]time.Time // at once, by category
}

// reader is who is mailed.
type reader struct {
	zone        *time.Location
	from, until int64 // quiet hours, in minutes of the day; equal: none
}

func (r *reader) quiet(wall int64) bool {
	minute := (wall%1440 + 1440) % 1440
	if r.from <= r.until {
		return minute >= r.from && minute < r.until
	}
	return minute >= r.from || minute < r.until
}

// loud returns the first time from a time on that is outside quiet hours.
func (r *reader) loud(at time.Time) time.Time {
	for r.quiet(onTheWall(at, r.zone)) {
		at = at.Truncate(time.Minute).Add(time.Minute)
	}
	return at
}

func (w *wanted) preference() *api.DigestPreference {
	day := strings.ToLower(w.day.String()[:3])
	switch w.mode {
	case "immediate":
		return &api.DigestPreference{Mode: w.mode, Gap: w.gap.String()}
	case "hourly":
		return &api.DigestPreference{Mode: w.mode, Minute: &w.minute}
	case "weekly":
		return &api.DigestPreference{Mode: w.mode, Hour: &w.hour, Minute: &w.minute, Weekdays: []string{day}}
	case "monthly":
		return &api.DigestPreference{Mode: w.mode, Hour: &w.hour, Minute: &w.minute, Day: w.date}
	case "times": // each day of the week at noon, and one day again
		p := &api.DigestPreference{Mode: "custom"}
		for at := range 7 {
			p.Times = append(p.Times, api.DigestWeekTime{Weekday: strings.ToLower(time.Weekday(at).String()[:3]),
				At: "12:00"})
		}
		again := fmt.Sprintf("%02d:%02d", w.cronHour(), w.minute)
		p.Times = append(p.Times, api.DigestWeekTime{Weekday: day, At: again})
		return p
	case "cron":
		return &api.DigestPreference{Mode: "custom", Cron: fmt.Sprintf("%d */%d * * 1-5", w.minute, w.cronHour())}
	}
	return &api.DigestPreference{Mode: w.mode, Hour: &w.hour, Minute: &w.minute}
}

// cronHour is an hour from 1 to 8.
func (w *wanted) cronHour() int { return 1 + w.hour%8 }

// asked returns the period that comes with a minute of the wall clock; "" if none does.
func (w *wanted) asked(wall time.Time) string {
	minute := wall.Format("2006-01-02T15:04")
	if w.mode == "times" {
		if wall.Hour() == 12 && wall.Minute() == 0 || wall.Weekday() == w.day && wall.Hour() == w.cronHour() &&
			wall.Minute() == w.minute {
			return minute
		}
		return ""
	}
	switch {
	case w.mode == "immediate" || wall.Minute() != w.minute:
	case w.mode == "hourly":
		return wall.Format("2006-01-02T15")
	case w.mode == "cron":
		if wall.Hour()%w.cronHour() == 0 && wall.Weekday() != time.Saturday && wall.Weekday() != time.Sunday {
			return minute
		}
	case wall.Hour() != w.hour:
	case w.mode == "daily":
		return wall.Format("2006-01-02")
	case w.mode == "monthly":
		if last := wall.AddDate(0, 0, 1-wall.Day()).AddDate(0, 1, -1).Day(); wall.Day() == min(w.date, last) {
			return wall.Format("2006-01")
		}
	case wall.Weekday() == w.day:
		year, week := wall.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	}
	return ""
}

// walk calls do with each minute after a time, and with the newest period that comes with it, or "", until do
// returns false. A time that clocks jump over comes after the jump, and a time that comes twice comes once.
func (w *wanted) walk(from time.Time, do func(at time.Time, period string) bool) {
	seen := map[string]bool{}
	at := from.Truncate(time.Minute)
	for before := onTheWall(at, w.zone); ; {
		at = at.Add(time.Minute)
		wall, newest := onTheWall(at, w.zone), ""
		for before = min(before, wall-1); before < wall; {
			before++
			if p := w.asked(time.Unix(before*60, 0).UTC()); p != "" && !seen[p] {
				seen[p], newest = true, p
			}
		}
		before = wall
		if !do(at, newest) {
			return
		}
	}
}

// look moves due to the first mail after a time, unless something waits. Times only rise.
func (w *wanted) look(now time.Time, category string) {
	switch {
	case w.mode == "immediate":
		due := now
		if end := w.mailed[category].Add(w.gap); end.After(now) {
			due = end
		}
		if due = w.loud(due); len(w.waiting) == 0 || due.Before(w.due) {
			w.due = due
		}
	case !w.due.After(now):
		newest := ""
		w.walk(now.Add(-26*time.Hour), func(at time.Time, period string) bool {
			newest = max(newest, period)
			if newest == "" || w.quiet(onTheWall(at, w.zone)) {
				return true
			}
			if !at.After(now) {
				newest = ""
				return true
			}
			w.due, w.period = at, newest
			return false
		})
	}
}

// work is a worker that looks at a time. It returns the period of the mail that it makes and the lines of
// that; "" if it makes none, as nothing is due, or quiet hours began in the meantime.
func (w *wanted) work(now time.Time) (period string, lines map[string]*line) {
	if len(w.waiting) == 0 || w.due.After(now) {
		return "", nil
	}
	if w.mode != "immediate" { // deferred mail is sent as the newest period's
		w.walk(w.due.Add(-26*time.Hour), func(at time.Time, period string) bool {
			if at.After(now) {
				return false
			}
			w.period = max(w.period, period)
			return true
		})
	}
	if at := w.loud(now); at.After(now) {
		w.due = at
		return "", nil
	}
	lines, w.waiting = w.waiting, map[string]*line{}
	if w.mode != "immediate" {
		return w.period, lines
	}
	for group := range lines {
		category, _, _ := strings.Cut(group, " ")
		if end := w.mailed[category].Add(w.gap); end.After(now) {
			if at := w.loud(end); len(w.waiting) == 0 || at.Before(w.due) {
				w.due = at
			}
			w.waiting[group] = lines[group]
		}
	}
	for group := range w.waiting {
		delete(lines, group)
	}
	for group := range lines {
		category, _, _ := strings.Cut(group, " ")
		w.mailed[category] = now
	}
	return now.Format("2006-01-02T15:04:05.000Z"), lines
}

// onTheWall returns what a clock shows, in minutes as if it were UTC.
func onTheWall(at time.Time, zone *time.Location) int64 {
	_, offset := at.In(zone).Zone()
	return (at.Unix() + int64(offset)) / 60
}

// heldout is a day of events, with its own count.
type heldout struct {
	*bench
	dice    *rand.Rand
	readers []map[string]*wanted // by category
	want    map[string]map[string]*line
	putOff  int // mails that waited for the end of quiet hours which began before the worker came
}

// line is a line of an email.
type line struct {
	Events int
	Actors map[string]bool
}

// join makes a reader with a zone, quiet hours and preferences of its own.
func (h *heldout) join(t testing.TB) {
	t.Helper()
	name := heldoutZones[h.dice.IntN(len(heldoutZones))]
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	who := &reader{zone: zone}
	req := api.DigestRecipientRequest{TZ: &name, Preferences: map[string]*api.DigestPreference{}}
	switch h.dice.IntN(8) {
	case 0, 1, 2:
		who.from, who.until = int64(h.dice.IntN(1440)), int64(h.dice.IntN(1440))
	case 3: // all but some minutes, which workers miss for days
		who.from = int64(h.dice.IntN(1440))
		who.until = (who.from + 1440 - int64(1+h.dice.IntN(4))) % 1440
	}
	if who.from != who.until {
		clock := func(minute int64) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }
		req.Quiet = &[]api.DigestQuiet{{From: clock(who.from), Until: clock(who.until)}}
	}
	one := map[string]*wanted{}
	modes := []string{"immediate", "hourly", "daily", "weekly", "monthly", "times", "cron"}
	for i, category := range []string{"*", "like"} {
		w := &wanted{reader: who, mode: modes[h.dice.IntN(len(modes))], hour: h.dice.IntN(24),
			minute: []int{0, 30}[h.dice.IntN(2)] + 15*i, day: time.Weekday(h.dice.IntN(7)),
			date: 1 + h.dice.IntN(31), gap: time.Duration(h.dice.IntN(40)*2+i) * time.Minute,
			waiting: map[string]*line{}, mailed: map[string]time.Time{}}
		one[category], req.Preferences[category] = w, w.preference()
	}
	id := fmt.Sprint("r", len(h.readers))
	email := id + "@example.com"
	req.Email = &email
	if _, _, err := h.Put(t.Context(), "", id, req); err != nil {
		t.Fatal(err)
	}
	h.readers = append(h.readers, one)
}

// event submits an event for a reader, and counts it.
func (h *heldout) event(t testing.TB) {
	t.Helper()
	n := h.dice.IntN(len(h.readers))
	category := []string{"comment", "like", "follow"}[h.dice.IntN(3)]
	w := h.readers[n][category]
	if w == nil {
		w = h.readers[n]["*"]
	}
	e := api.DigestEvent{Recipient: fmt.Sprint("r", n), Category: category, EntityType: "post",
		EntityID: fmt.Sprint(h.dice.IntN(4)), Actor: &api.DigestActor{Name: fmt.Sprint("actor ", h.dice.IntN(6))}}
	w.look(h.Now(), category)
	if r := h.add(t, e)[0]; r.Due == nil || !r.Due.Equal(w.due) {
		t.Errorf("%s of %s at %v in %s (quiet %d to %d): due %v, want %v", w.mode, e.Recipient, h.Now(), w.zone,
			w.from, w.until, r.Due, w.due)
	}
	group := category + " " + e.EntityID
	if w.waiting[group] == nil {
		w.waiting[group] = &line{Actors: map[string]bool{}}
	}
	w.waiting[group].Events++
	w.waiting[group].Actors[e.Actor.Name] = true
}

// work has the digests and the count do what is due.
func (h *heldout) work(t testing.TB) {
	t.Helper()
	h.settle(t)
	for n, one := range h.readers {
		for category, w := range one {
			due := w.due
			period, lines := w.work(h.Now())
			if w.due.After(due) && period == "" {
				h.putOff++
			}
			if len(lines) == 0 {
				continue
			}
			mail := fmt.Sprintf("r%d %s %s %s", n, w.preference().Mode, liked(category), period)
			if h.want[mail] == nil {
				h.want[mail] = map[string]*line{}
			}
			for group, l := range lines {
				h.want[mail][group] = l
			}
		}
	}
}

// liked tells the two schedules of a reader apart.
func liked(category string) string {
	if category == "like" {
		return "likes"
	}
	return "others"
}

// next returns when the next email is due; zero if none is.
func (h *heldout) next() (next time.Time) {
	for _, one := range h.readers {
		for _, w := range one {
			if len(w.waiting) > 0 && (next.IsZero() || w.due.Before(next)) {
				next = w.due
			}
		}
	}
	return next
}

// flat returns the count of each line as text.
func (h *heldout) flat() map[string]map[string]string {
	all := map[string]map[string]string{}
	for mail, groups := range h.want {
		all[mail] = map[string]string{}
		for group, l := range groups {
			all[mail][group] = fmt.Sprintf("%d events by %d", l.Events, len(l.Actors))
		}
	}
	return all
}

// mailed returns what was mailed, in the form of flat.
func (h *heldout) mailed(t testing.TB) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, m := range h.mails.all() {
		var of struct{ DigestRun, Recipient string }
		if err := json.Unmarshal(m.Metadata, &of); err != nil {
			t.Fatal(err)
		}
		run, err := h.Runs.Get(t.Context(), "", of.DigestRun)
		if err != nil {
			t.Fatal(err)
		}
		said, total := saidIn(t, m), 0
		mode, _, _ := strings.Cut(run.Schedule, "@")
		mail := fmt.Sprintf("%s %s %s %s", of.Recipient, mode, liked(said.Groups[0].Category), run.Period)
		if all[mail] != nil {
			t.Errorf("there are two mails: %s", mail)
		}
		all[mail] = map[string]string{}
		for _, g := range said.Groups {
			all[mail][g.Category+" "+g.EntityID] = fmt.Sprintf("%d events by %d", g.Count, len(g.Actors)+g.Others)
			total += g.Count
		}
		if said.Total != total || said.Rest.Events != 0 || run.Events != total {
			t.Errorf("%s: %d events in lines, the mail says %d, its run %d", mail, total, said.Total, run.Events)
		}
	}
	return all
}

// TestADayOfEventsIsCountedTwice adds a day of events for readers all over the world, and compares the emails
// with its own count. It compares periods, lines, and how many events and actors each has. Workers come up to
// 20 minutes late.
func TestADayOfEventsIsCountedTwice(t *testing.T) {
	t.Parallel()
	var putOff atomic.Int64
	t.Cleanup(func() {
		if putOff.Load() == 0 {
			t.Error("no quiet hours began before a worker came")
		}
	})
	// On these days clocks change in America, Europe, Australia, Egypt, Chile, Gaza, or the year does.
	for _, begin := range []string{"2026-03-07T22", "2026-03-28T02", "2026-04-04T02", "2026-04-23T12",
		"2026-09-05T20", "2026-10-24T12", "2026-10-31T22", "2026-12-31T03"} {
		for n := range 2 {
			seed := rand.Uint64()
			t.Run(fmt.Sprint(begin, " ", n), func(t *testing.T) {
				t.Parallel()
				t.Logf("seed %d", seed)
				putOff.Add(int64(countDay(t, begin, seed)))
			})
		}
	}
}

// countDay plays a day. It returns how many emails were deferred because quiet hours had begun.
func countDay(t *testing.T, begin string, seed uint64) (putOff int) {
	t.Helper()
	h := &heldout{dice: rand.New(rand.NewPCG(seed, 0)), want: map[string]map[string]*line{},
		bench: setup(t, func(o *digest.Options) { o.Cap, o.CapCategory, o.Keep = 1000, 1000, 2 })}
	at, err := time.Parse("2006-01-02T15", begin)
	if err != nil {
		t.Fatal(err)
	}
	h.Set(at)
	for range 24 {
		h.join(t)
	}
	for h.Now().Before(at.Add(26 * time.Hour)) {
		for range h.dice.IntN(4) {
			h.event(t)
		}
		h.Advance(time.Duration(h.dice.IntN(1200)) * time.Second)
		h.work(t)
	}
	for next := h.next(); !next.IsZero(); next = h.next() {
		h.Set(next.Add(time.Duration(h.dice.IntN(1200)) * time.Second))
		h.work(t)
	}
	if diff := cmp.Diff(h.flat(), h.mailed(t)); diff != "" || len(h.want) < 30 {
		t.Errorf("%d mails (-want +got):\n%s", len(h.want), diff)
	}
	return h.putOff
}
