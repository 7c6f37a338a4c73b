package schedule_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/schedule"
)

//go:embed testdata/zones.txt
var zoneNames string

// The years that the tests of all zones look at.
var (
	zonesBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	zonesEnd   = time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC)
)

// datesSkipped are the dates in these years that never were.
var datesSkipped = map[string]string{"Pacific/Apia": "2011-12-30", "Pacific/Fakaofo": "2011-12-30"}

// longGaps are the zones whose clocks jumped by more than an hour in these years, and the longest jump.
// Pacific/Fakaofo's clocks jumped with Pacific/Apia's.
var longGaps = map[string]time.Duration{
	"America/Bahia_Banderas": 2 * time.Hour, "America/Indiana/Winamac": 2 * time.Hour,
	"Antarctica/Casey": 3 * time.Hour, "Antarctica/Davis": 2 * time.Hour, "Antarctica/Troll": 2 * time.Hour,
	"Europe/Simferopol": 2 * time.Hour, "Pacific/Apia": 24 * time.Hour,
}

// wholeZones are the zones for which the test looks at all days of these years.
var wholeZones = []string{"America/New_York", "Europe/Zurich", "Africa/Casablanca", "Pacific/Apia"}

// change is a change of a zone's clocks, in seconds.
type change struct {
	wall        int64 // since 1970, what clocks show before it
	jump        int64 // forward
	since, left int64 // the time from the change before and to the next one if it is within days
}

// zones returns the changes of clocks in these years in all zones of the IANA. Changes that look the same on
// the wall are the changes of the first of their zones.
func zones(t *testing.T) map[*time.Location][]change {
	zones, seen, count := map[*time.Location][]change{}, map[change]bool{}, 0
	near := func(apart time.Duration) int64 {
		if apart > 0 && apart < 7*24*time.Hour {
			return int64(apart.Seconds())
		}
		return 0
	}
	for name := range strings.Lines(zoneNames) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, "#") {
			continue
		}
		loc := zone(t, name)
		count++
		zones[loc] = nil
		_, at := zonesBegin.In(loc).ZoneBounds()
		for !at.IsZero() && at.Before(zonesEnd) {
			before, next := at.Add(-time.Second), time.Time{}
			_, next = at.ZoneBounds()
			begin, _ := before.ZoneBounds()
			_, was := before.Zone()
			_, is := at.Zone()
			c := change{wall: at.Unix() + int64(was), jump: int64(is - was), since: near(at.Sub(begin)),
				left: near(next.Sub(at))}
			if !seen[c] {
				zones[loc], seen[c] = append(zones[loc], c), true
			}
			at = next
		}
	}
	if count < 500 {
		t.Fatalf("there are %d zones", count)
	}
	return zones
}

// repeat is a cadence, and the clocks of a date on which it comes, in minutes.
type repeat struct {
	cadence schedule.Cadence
	on      func(date time.Time) []int
}

func repeats(t *testing.T) []repeat {
	daily := func(minute int) func(time.Time) []int {
		return func(time.Time) []int { return []int{minute} }
	}
	hourly := func(minute int) func(time.Time) []int {
		return func(time.Time) (minutes []int) {
			for hour := range 24 {
				minutes = append(minutes, hour*60+minute)
			}
			return minutes
		}
	}
	onDays := func(minute int, days ...time.Weekday) func(time.Time) []int {
		return func(date time.Time) []int {
			if slices.Contains(days, date.Weekday()) {
				return []int{minute}
			}
			return nil
		}
	}
	lastDay := func(date time.Time) []int {
		if date.AddDate(0, 0, 1).Day() == 1 {
			return []int{135}
		}
		return nil
	}
	slots := func(date time.Time) []int {
		switch date.Weekday() {
		case time.Sunday:
			return []int{15, 120, 150}
		case time.Friday:
			return []int{1439}
		}
		return nil
	}
	quarters := func(time.Time) []int { return []int{0, 15, 30, 45, 120, 135, 150, 165} }
	return []repeat{
		{schedule.Cadence{Mode: schedule.Hourly}, hourly(0)},
		{schedule.Cadence{Mode: schedule.Hourly, Minute: 20}, hourly(20)},
		{schedule.Cadence{Mode: schedule.Daily}, daily(0)},
		{schedule.Cadence{Mode: schedule.Daily, Hour: 2, Minute: 30}, daily(150)},
		{schedule.Cadence{Mode: schedule.Daily, Hour: 8}, daily(480)},
		{schedule.Cadence{Mode: schedule.Daily, Hour: 23, Minute: 59}, daily(1439)},
		{schedule.Cadence{Mode: schedule.Weekly, Weekdays: [7]bool{true}, Hour: 2, Minute: 30},
			onDays(150, time.Sunday)},
		{schedule.Cadence{Mode: schedule.Weekly, Weekdays: [7]bool{time.Thursday: true, time.Friday: true}},
			onDays(0, time.Thursday, time.Friday)},
		{schedule.Cadence{Mode: schedule.Monthly, Day: 31, Hour: 2, Minute: 15}, lastDay},
		{schedule.Cadence{Mode: schedule.Custom, Slots: []schedule.Slot{{time.Sunday, 150}, {time.Sunday, 15},
			{time.Friday, 1439}, {time.Sunday, 120}}}, slots},
		{schedule.Cadence{Mode: schedule.Custom, Cron: cron(t, "*/15 0,2 * * *")}, quarters},
	}
}

// TestEveryZone looks at the periods around each change of clocks, in each zone of the IANA, from 2000 to
// 2037. In some zones it looks at whole years.
func TestEveryZone(t *testing.T) {
	t.Parallel()
	all, gaps := repeats(t), map[string]time.Duration{}
	for loc, changes := range zones(t) {
		for _, c := range changes {
			if gap := time.Duration(c.jump) * time.Second; gap > max(time.Hour, gaps[loc.String()]) {
				gaps[loc.String()] = gap
			}
		}
		t.Run(loc.String(), func(t *testing.T) {
			t.Parallel()
			for _, c := range changes {
				around := time.Unix(c.wall, 0).UTC().Truncate(24 * time.Hour)
				for _, r := range all {
					checkPeriods(t, r, loc, around.AddDate(0, 0, -2), around.AddDate(0, 0, 2))
				}
			}
			if !slices.Contains(wholeZones, loc.String()) {
				return
			}
			for _, r := range all {
				if r.cadence.Mode != schedule.Hourly {
					checkPeriods(t, r, loc, zonesBegin, zonesEnd)
				}
			}
		})
	}
	if diff := cmp.Diff(longGaps, gaps); diff != "" {
		t.Errorf("jumps of more than an hour (-want +got):\n%s", diff)
	}
}

// checkPeriods looks at the periods of a cadence from one date to the end of another.
func checkPeriods(t *testing.T, r repeat, loc *time.Location, from, to time.Time) {
	t.Helper()
	const layout = "2006-01-02T15:04"
	name := loc.String()
	// All clocks show the day before the first date.
	after := time.Date(from.Year(), from.Month(), from.Day()-1, 0, 0, 0, 0, loc)
	var last, next schedule.Period
	ok := true
	step := func() {
		last = next
		if next, ok = r.cadence.Next(after, loc); !ok {
			t.Fatalf("%s: %s does not come after %s", name, r.cadence, after)
		}
		after = next.At
		if !next.At.After(last.At) || next.ID <= last.ID {
			t.Errorf("%s: %s: %s at %s comes after %s at %s", name, r.cadence, next.ID, next.At, last.ID, last.At)
		}
	}
	for step(); next.Asked < from.Format(layout); {
		step()
	}
	for date := from; !date.After(to); date = date.AddDate(0, 0, 1) {
		for _, minute := range r.on(date) {
			wall := date.Add(time.Duration(minute) * time.Minute)
			asked, before := wall.Format(layout), next.At.Add(-time.Second).Format("2006-01-02T15:04:05")
			if datesSkipped[name] == date.Format(time.DateOnly) {
				if next.Asked == asked {
					t.Errorf("%s: %s: %s never was, but comes at %s", name, r.cadence, asked, next.At)
					step()
				}
				continue
			}
			if before >= asked {
				t.Errorf("%s: %s: %s comes at %s, but should be earlier", name, r.cadence, asked, next.At)
			}
			if next.Asked != asked {
				if shows := next.At.Format(layout); shows < next.Asked || next.Asked < asked {
					t.Errorf("%s: %s: %s does not come, but %s at %s", name, r.cadence, asked, next.Asked, next.At)
				}
				continue
			}
			_, offset := next.At.Zone()
			if late := time.Unix(next.At.Unix()+int64(offset), 0).Sub(wall); late < 0 ||
				late > max(time.Hour, longGaps[name]) {
				t.Errorf("%s: %s: %s comes %s late, at %s", name, r.cadence, asked, late, next.At)
			}
			step()
		}
	}
}
