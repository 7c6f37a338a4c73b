package digest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
)

// The day of events below is made and counted by code of its own. It knows nothing of schedules, periods or
// groups but what docs/digests.md says of them. It finds a time of the wall clock by trying every minute.

// heldoutZones are zones with halves and quarters of an hour, with clocks that change by half an hour or
// by two, with rules of the last years, and at both ends of the world.
var heldoutZones = []string{"UTC", "America/New_York", "America/Santiago", "America/St_Johns", "Asia/Gaza",
	"Asia/Kathmandu", "Africa/Casablanca", "Africa/Cairo", "Australia/Lord_Howe", "Europe/Dublin", "Europe/Kyiv",
	"Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Nuuk",
	"America/Ciudad_Juarez", "Antarctica/Troll", "Asia/Qostanay"}

// wanted is what a reader asked for: hourly, daily or weekly, on its clock.
type wanted struct {
	mode         string
	day          time.Weekday
	hour, minute int
	zone         *time.Location

	due    time.Time // the next
	period string
}

func (w *wanted) preference() *api.DigestPreference {
	p := &api.DigestPreference{Mode: w.mode, Minute: &w.minute}
	if w.mode != "hourly" {
		p.Hour = &w.hour
	}
	if w.mode == "weekly" {
		p.Weekdays = []string{strings.ToLower(w.day.String()[:3])}
	}
	return p
}

// name is that of the schedule.
func (w *wanted) name() string {
	switch w.mode {
	case "hourly":
		return fmt.Sprintf("hourly@%02d", w.minute)
	case "daily":
		return fmt.Sprintf("daily@%02d:%02d", w.hour, w.minute)
	}
	return fmt.Sprintf("weekly@%s@%02d:%02d", strings.ToLower(w.day.String()[:3]), w.hour, w.minute)
}

// asked returns the period that comes with a minute of the wall clock; "" if none does.
func (w *wanted) asked(wall time.Time) string {
	switch {
	case wall.Minute() != w.minute:
	case w.mode == "hourly":
		return wall.Format("2006-01-02T15")
	case wall.Hour() != w.hour:
	case w.mode == "daily":
		return wall.Format("2006-01-02")
	case wall.Weekday() == w.day:
		year, week := wall.ISOWeek()
		return fmt.Sprintf("%d-W%02d", year, week)
	}
	return ""
}

// look moves due to the first mail after a time. Times only rise.
func (w *wanted) look(now time.Time) {
	if w.due.After(now) {
		return
	}
	seen := map[string]bool{} // what came, so that it does not count when clocks are put back
	at := now.Truncate(time.Minute).Add(-26 * time.Hour)
	before := onTheWall(at, w.zone)
	for {
		at = at.Add(time.Minute)
		wall, newest := onTheWall(at, w.zone), ""
		for before = min(before, wall-1); before < wall; {
			before++ // and through what clocks jump over
			if p := w.asked(time.Unix(before*60, 0).UTC()); p != "" && !seen[p] {
				seen[p], newest = true, p
			}
		}
		before = wall
		if newest != "" && at.After(now) {
			w.due, w.period = at, newest
			return
		}
	}
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
}

// line is a line of a mail.
type line struct {
	Events int
	Actors map[string]bool
}

// reader makes a reader with a zone and with preferences of its own.
func (h *heldout) reader(t testing.TB) {
	t.Helper()
	name := heldoutZones[h.dice.IntN(len(heldoutZones))]
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	one := map[string]*wanted{}
	preferences := map[string]*api.DigestPreference{}
	for _, category := range []string{"*", "like"} {
		w := &wanted{mode: []string{"hourly", "daily", "weekly"}[h.dice.IntN(3)], hour: h.dice.IntN(24),
			minute: []int{0, 15, 30, 45}[h.dice.IntN(4)], day: time.Weekday(h.dice.IntN(7)), zone: zone}
		one[category], preferences[category] = w, w.preference()
	}
	id := fmt.Sprint("r", len(h.readers))
	email := id + "@example.com"
	if _, _, err := h.Put(t.Context(), "", id, api.DigestRecipientRequest{Email: &email, TZ: &name,
		Preferences: preferences}); err != nil {
		t.Fatal(err)
	}
	h.readers = append(h.readers, one)
}

// event hands in an event of a reader, and counts it.
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
	w.look(h.Now())
	if r := h.take(t, e)[0]; r.Due == nil || !r.Due.Equal(w.due) {
		t.Errorf("%s at %v in %s: due %v, want %v", w.name(), h.Now(), w.zone, r.Due, w.due)
	}
	mail := e.Recipient + " " + w.name() + " " + w.period
	if h.want[mail] == nil {
		h.want[mail] = map[string]*line{}
	}
	group := category + " " + e.EntityID
	if h.want[mail][group] == nil {
		h.want[mail][group] = &line{Actors: map[string]bool{}}
	}
	h.want[mail][group].Events++
	h.want[mail][group].Actors[e.Actor.Name] = true
}

// next returns when the next mail is due; zero: none is.
func (h *heldout) next() (next time.Time) {
	for _, one := range h.readers {
		for _, w := range one {
			if w.due.After(h.Now()) && (next.IsZero() || w.due.Before(next)) {
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
		mail := of.Recipient + " " + run.Schedule + " " + run.Period
		if all[mail] != nil {
			t.Errorf("there are two mails: %s", mail)
		}
		all[mail] = map[string]string{}
		said, total := saidIn(t, m), 0
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

// TestADayOfEventsIsCountedTwice takes in a day of events of readers all over the world, and compares the
// mails with a count of its own: their periods, their lines, and how many events and actors each has.
func TestADayOfEventsIsCountedTwice(t *testing.T) {
	t.Parallel()
	// On these days clocks change in America, Europe, Australia, Egypt, Chile, Gaza, or the year does.
	for _, begin := range []string{"2026-03-07T22", "2026-03-28T02", "2026-04-04T02", "2026-04-23T12",
		"2026-09-05T20", "2026-10-24T12", "2026-10-31T22", "2026-12-31T03"} {
		seed := rand.Uint64()
		t.Run(begin, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			h := &heldout{dice: rand.New(rand.NewPCG(seed, 0)), want: map[string]map[string]*line{},
				bench: setup(t, func(o *digest.Options) { o.Cap, o.CapCategory, o.Keep = 1000, 1000, 2 })}
			at, err := time.Parse("2006-01-02T15", begin)
			if err != nil {
				t.Fatal(err)
			}
			h.Set(at)
			for range 40 {
				h.reader(t)
			}
			for h.Now().Before(at.Add(26 * time.Hour)) {
				for range h.dice.IntN(4) {
					h.event(t)
				}
				h.Advance(time.Duration(h.dice.IntN(600)) * time.Second)
				h.settle(t)
			}
			for next := h.next(); !next.IsZero(); next = h.next() {
				h.Set(next)
				h.settle(t)
			}
			if diff := cmp.Diff(h.flat(), h.mailed(t)); diff != "" || len(h.want) < 40 {
				t.Errorf("%d mails (-want +got):\n%s", len(h.want), diff)
			}
		})
	}
}
