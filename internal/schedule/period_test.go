package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/schedule"
)

// next lists the periods of a cadence after an instant: "2026-11-22 2026-11-22T08:00:00Z, …".
func next(t *testing.T, c schedule.Cadence, after time.Time, loc *time.Location, count int) string {
	t.Helper()
	var periods []string
	for range count {
		p, ok := c.Next(after, loc)
		if !ok {
			return strings.Join(append(periods, "never"), ", ")
		}
		if p.At.Location() != loc {
			t.Errorf("%s is in %s, want %s", p.At, p.At.Location(), loc)
		}
		periods, after = append(periods, p.ID+" "+p.At.Format(time.RFC3339)), p.At
	}
	return strings.Join(periods, ", ")
}

// TestPeriods has pitfalls of wall clocks and calendars, and the periods that come.
func TestPeriods(t *testing.T) {
	t.Parallel()
	daily := func(hour, minute int) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Daily, Hour: hour, Minute: minute}
	}
	weekly := func(hour int, days ...time.Weekday) schedule.Cadence {
		c := schedule.Cadence{Mode: schedule.Weekly, Hour: hour}
		for _, day := range days {
			c.Weekdays[day] = true
		}
		return c
	}
	monthly := func(day int) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Monthly, Day: day, Hour: 8}
	}
	hourly := func(minute int) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Hourly, Minute: minute}
	}
	crons := func(text string) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Custom, Cron: cron(t, text)}
	}
	slots := schedule.Cadence{Mode: schedule.Custom, Slots: []schedule.Slot{{Weekday: time.Friday, At: 1020},
		{Weekday: time.Sunday, At: 150}, {Weekday: time.Monday, At: 510}}}
	const york, zurich, santiago, apia, auckland = "America/New_York", "Europe/Zurich", "America/Santiago",
		"Pacific/Apia", "Pacific/Auckland"
	for _, row := range []struct {
		what, zone string
		cadence    schedule.Cadence
		after      string
		want       string
	}{
		{"a time in the gap", york, daily(2, 30), "2026-03-07T12:00:00-05:00",
			"2026-03-08 2026-03-08T03:00:00-04:00, 2026-03-09 2026-03-09T02:30:00-04:00"},
		{"a cron in the gap", york, crons("30 2 * * *"), "2026-03-07T12:00:00-05:00",
			"2026-03-08T02:30 2026-03-08T03:00:00-04:00, 2026-03-09T02:30 2026-03-09T02:30:00-04:00"},
		{"a time that comes twice", york, daily(1, 30), "2026-10-31T12:00:00-04:00",
			"2026-11-01 2026-11-01T01:30:00-04:00, 2026-11-02 2026-11-02T01:30:00-05:00"},
		{"a cron that comes twice", york, crons("30 1 * * *"), "2026-10-31T12:00:00-04:00",
			"2026-11-01T01:30 2026-11-01T01:30:00-04:00, 2026-11-02T01:30 2026-11-02T01:30:00-05:00"},
		{"between a time that comes twice", york, daily(1, 30), "2026-11-01T01:10:00-05:00",
			"2026-11-02 2026-11-02T01:30:00-05:00"},
		{"a midnight in the gap", santiago, daily(0, 0), "2026-09-05T12:00:00-04:00",
			"2026-09-06 2026-09-06T01:00:00-03:00, 2026-09-07 2026-09-07T00:00:00-03:00"},
		{"a midnight that comes twice", santiago, daily(0, 0), "2026-04-03T12:00:00-03:00",
			"2026-04-04 2026-04-04T00:00:00-03:00, 2026-04-05 2026-04-05T00:00:00-04:00"},
		{"a date that never was", apia, daily(8, 0), "2011-12-28T12:00:00-10:00",
			"2011-12-29 2011-12-29T08:00:00-10:00, 2011-12-31 2011-12-31T08:00:00+14:00"},
		{"midnight after a date that never was", apia, daily(0, 0), "2011-12-29T12:00:00-10:00",
			"2011-12-31 2011-12-31T00:00:00+14:00, 2012-01-01 2012-01-01T00:00:00+14:00"},
		{"a weekday that never was", apia, weekly(8, time.Friday), "2011-12-28T12:00:00-10:00",
			"2012-W01 2012-01-06T08:00:00+14:00"},
		{"a month whose day never was", apia, monthly(30), "2011-12-01T12:00:00-10:00",
			"2012-01 2012-01-30T08:00:00+14:00"},
		{"hours of a date that never was", apia, hourly(20), "2011-12-29T23:00:00-10:00",
			"2011-12-29T23 2011-12-29T23:20:00-10:00, 2011-12-31T00 2011-12-31T00:20:00+14:00"},
		{"24 hours are not a day", zurich, daily(8, 0), "2026-03-28T08:00:00+01:00",
			"2026-03-29 2026-03-29T08:00:00+02:00, 2026-03-30 2026-03-30T08:00:00+02:00"},
		{"monthly on the 31st", zurich, monthly(31), "2026-01-01T00:00:00+01:00",
			"2026-01 2026-01-31T08:00:00+01:00, 2026-02 2026-02-28T08:00:00+01:00," +
				" 2026-03 2026-03-31T08:00:00+02:00, 2026-04 2026-04-30T08:00:00+02:00"},
		{"the 29th of a leap year", zurich, monthly(29), "2028-02-01T00:00:00+01:00",
			"2028-02 2028-02-29T08:00:00+01:00"},
		{"the 1st by default", zurich, monthly(0), "2026-12-01T08:00:00+01:00",
			"2027-01 2027-01-01T08:00:00+01:00"},
		{"the weekday is that of the zone", auckland, weekly(8, time.Monday), "2026-11-22T18:59:59Z",
			"2026-W48 2026-11-23T08:00:00+13:00, 2026-W49 2026-11-30T08:00:00+13:00"},
		{"the offset is that of the season", zurich, monthly(1), "2026-02-15T00:00:00Z",
			"2026-03 2026-03-01T08:00:00+01:00, 2026-04 2026-04-01T08:00:00+02:00"},
		{"late within the hour, not again", zurich, daily(8, 0), "2026-11-24T08:00:00.000000001+01:00",
			"2026-11-25 2026-11-25T08:00:00+01:00"},
		{"an instant before it", zurich, daily(8, 0), "2026-11-24T07:59:59.999999999+01:00",
			"2026-11-24 2026-11-24T08:00:00+01:00"},

		{"several hours fall on the end of a gap", zurich, hourly(0), "2026-03-29T01:30:00+01:00",
			"2026-03-29T03 2026-03-29T03:00:00+02:00, 2026-03-29T04 2026-03-29T04:00:00+02:00"},
		{"several crons fall on the end of a gap", zurich, crons("0,15,30 2 * * *"), "2026-03-29T01:30:00+01:00",
			"2026-03-29T02:30 2026-03-29T03:00:00+02:00, 2026-03-30T02:00 2026-03-30T02:00:00+02:00"},
		{"an hour within the gap", zurich, hourly(20), "2026-03-29T01:30:00+01:00",
			"2026-03-29T02 2026-03-29T03:00:00+02:00, 2026-03-29T03 2026-03-29T03:20:00+02:00"},
		{"an hour that comes twice", zurich, hourly(20), "2026-10-25T01:30:00+02:00",
			"2026-10-25T02 2026-10-25T02:20:00+02:00, 2026-10-25T03 2026-10-25T03:20:00+01:00"},
		{"the end of the hour that comes twice", zurich, daily(3, 0), "2026-10-25T02:30:00+01:00",
			"2026-10-25 2026-10-25T03:00:00+01:00, 2026-10-26 2026-10-26T03:00:00+01:00"},
		{"a gap of 30 minutes", "Australia/Lord_Howe", daily(2, 15), "2026-10-03T12:00:00Z",
			"2026-10-04 2026-10-04T02:30:00+11:00"},
		{"years of weeks are those of ISO 8601", "UTC", weekly(8), "2026-12-27T00:00:00Z",
			"2026-W53 2026-12-28T08:00:00Z, 2027-W01 2027-01-04T08:00:00Z"},
		{"several weekdays", "UTC", weekly(8, time.Sunday, time.Monday, time.Friday), "2026-12-31T00:00:00Z",
			"2026-W53-5 2027-01-01T08:00:00Z, 2026-W53-7 2027-01-03T08:00:00Z, 2027-W01-1 2027-01-04T08:00:00Z"},
		{"times of the week", zurich, slots, "2026-03-27T12:00:00+01:00",
			"2026-03-27T17:00 2026-03-27T17:00:00+01:00, 2026-03-29T02:30 2026-03-29T03:00:00+02:00," +
				" 2026-03-30T08:30 2026-03-30T08:30:00+02:00, 2026-04-03T17:00 2026-04-03T17:00:00+02:00"},
		{"either day of a cron", "UTC", crons("0 8 13 * 5"), "2026-11-11T00:00:00Z",
			"2026-11-13T08:00 2026-11-13T08:00:00Z, 2026-11-20T08:00 2026-11-20T08:00:00Z," +
				" 2026-11-27T08:00 2026-11-27T08:00:00Z, 2026-12-04T08:00 2026-12-04T08:00:00Z," +
				" 2026-12-11T08:00 2026-12-11T08:00:00Z, 2026-12-13T08:00 2026-12-13T08:00:00Z"},
		{"both days of a cron with a star", "UTC", crons("0 8 */10 * fri"), "2026-11-11T00:00:00Z",
			"2026-12-11T08:00 2026-12-11T08:00:00Z, 2027-01-01T08:00 2027-01-01T08:00:00Z"},
		{"29 February", "UTC", crons("0 8 29 2 *"), "2024-02-29T08:00:00Z",
			"2028-02-29T08:00 2028-02-29T08:00:00Z"},
		{"30 February", "UTC", crons("0 8 30 2 *"), "2024-02-29T08:00:00Z", "never"},
		{"a cron beyond 5 years", "UTC", crons("0 8 29 2 *"), "2096-02-29T08:00:00Z", "never"},
		{"no cron", "UTC", schedule.Cadence{Mode: schedule.Custom}, "2096-02-29T08:00:00Z", "never"},
		{"no mode", "UTC", schedule.Cadence{}, "2096-02-29T08:00:00Z", "never"},
		{"no such hour", "UTC", daily(24, 0), "2096-02-29T08:00:00Z", "never"},
		{"the first year", "UTC", daily(0, 0), "0000-12-30T08:00:00Z",
			"0001-01-01 0001-01-01T00:00:00Z, 0001-01-02 0001-01-02T00:00:00Z"},
		{"the last year", "UTC", daily(0, 0), "9999-12-30T08:00:00Z", "9999-12-31 9999-12-31T00:00:00Z, never"},
		{"before 1970", "UTC", crons("45 23 * * *"), "1969-12-30T23:45:00Z",
			"1969-12-31T23:45 1969-12-31T23:45:00Z"},
		{"a date that came twice", "America/Sitka", daily(8, 0), "1867-10-17T12:00:00Z",
			"1867-10-18 1867-10-18T08:00:00+14:58, 1867-10-19 1867-10-19T08:00:00+14:58," +
				" 1867-10-20 1867-10-20T08:00:00-09:01"},
	} {
		want := strings.Split(row.want, ", ")
		if got := next(t, row.cadence, instant(t, row.after), zone(t, row.zone), len(want)); got != row.want {
			t.Errorf("%s: %s after %s:\n got %s\nwant %s", row.what, row.cadence, row.after, got, row.want)
		}
	}
}

func TestAskedIsTheLocalTime(t *testing.T) {
	t.Parallel()
	c := schedule.Cadence{Mode: schedule.Daily, Hour: 2, Minute: 30}
	p, ok := c.Next(instant(t, "2026-03-08T00:00:00-05:00"), zone(t, "America/New_York"))
	if !ok || p.Asked != "2026-03-08T02:30" || p.At.Hour() != 3 {
		t.Errorf("got %+v, %v", p, ok)
	}
}

// TestPeriodsOfEachMinute writes down the first instant at which clocks show each time or a later one, and
// compares.
func TestPeriodsOfEachMinute(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02T15:04"
	for name, day := range map[string]string{"Europe/Zurich": "2026-10-25", "America/New_York": "2026-03-08",
		"Australia/Lord_Howe": "2026-04-05", "Pacific/Apia": "2011-12-30", "Antarctica/Troll": "2026-10-25",
		"America/Sitka": "1867-10-18", "Pacific/Kwajalein": "1969-09-30"} {
		loc, begin := zone(t, name), instant(t, day+"T00:00:00Z").Add(-72*time.Hour)
		// Clocks show whole minutes at whole seconds only, before zones had whole minutes.
		var latest string
		first, order := map[string]time.Time{}, []string{}
		for second := range 6 * 24 * 3600 {
			at := begin.Add(time.Duration(second) * time.Second)
			_, offset := at.In(loc).Zone()
			if (at.Unix()+int64(offset))%60 != 0 {
				continue
			}
			if text := at.In(loc).Format(layout); text > latest {
				first[text], latest, order = at, text, append(order, text)
			}
		}
		for _, minute := range []int{0, 7, 30, 59} {
			c, after := schedule.Cadence{Mode: schedule.Hourly, Minute: minute}, begin.Add(time.Hour)
			for _, text := range order {
				if first[text].Before(begin.Add(time.Hour+time.Second)) || text[14:] != two(minute) {
					continue
				}
				p, ok := c.Next(after, loc)
				for ok && p.Asked < text && first[p.Asked].IsZero() { // in a gap
					p, ok = c.Next(p.At, loc)
				}
				if !ok || p.Asked != text || !p.At.Equal(first[text]) {
					t.Fatalf("%s: %s is %s at %s, want %s at %s", name, c, p.Asked, p.At, text, first[text].In(loc))
				}
				after = p.At
			}
		}
	}
}

// two writes a minute as clocks do.
func two(minute int) string { return schedule.Clock(minute).String()[3:] }

func FuzzCadence(f *testing.F) {
	f.Add(byte(0), 0, 20, byte(0), 0, uint16(0), uint16(0), "", int64(1774745000), "Europe/Zurich")
	f.Add(byte(1), 8, 0, byte(0), 0, uint16(0), uint16(0), "", int64(1325203200), "Pacific/Apia")
	f.Add(byte(2), 2, 30, byte(3), 0, uint16(0), uint16(0), "", int64(1772900000), "America/New_York")
	f.Add(byte(3), 0, 0, byte(0), 31, uint16(0), uint16(0), "", int64(-1<<63), "America/Santiago")
	f.Add(byte(4), 0, 0, byte(0), 0, uint16(150), uint16(9000), "", int64(1<<62), "UTC")
	f.Add(byte(4), 0, 0, byte(0), 0, uint16(0), uint16(0), "*/15 0-3 * * *", int64(1325203200), "Pacific/Apia")
	f.Add(byte(4), 0, 0, byte(0), 0, uint16(0), uint16(0), "* * 29 2 */2", int64(4000000000), "UTC")
	modes := []schedule.Mode{schedule.Hourly, schedule.Daily, schedule.Weekly, schedule.Monthly,
		schedule.Custom, ""}
	f.Fuzz(func(t *testing.T, mode byte, hour, minute int, days byte, day int, slot, other uint16, text string,
		unix int64, name string) {
		c := schedule.Cadence{Mode: modes[int(mode)%len(modes)], Hour: hour, Minute: minute, Day: day}
		for i := range c.Weekdays {
			c.Weekdays[i] = days>>i&1 == 1
		}
		for _, s := range []uint16{slot, other} {
			if s != 0 {
				c.Slots = append(c.Slots, schedule.Slot{Weekday: time.Weekday(s / 1440), At: schedule.Clock(s % 1440)})
			}
		}
		c.Cron, _ = schedule.ParseCron(text)
		loc, err := schedule.Zone(name)
		if err != nil {
			loc = time.UTC
		}
		checkFuzzed(t, c, time.Unix(unix, 0), loc)
	})
}

// checkFuzzed looks at some periods of any cadence.
func checkFuzzed(t *testing.T, c schedule.Cadence, after time.Time, loc *time.Location) {
	layouts := map[schedule.Mode]string{schedule.Hourly: "2006-01-02T15", schedule.Daily: "2006-01-02",
		schedule.Monthly: "2006-01", schedule.Custom: "2006-01-02T15:04"}
	wrong := c.Check()
	_, _ = c.Words(), c.String()
	var last schedule.Period
	for n := range 5 {
		p, ok := c.Next(after, loc)
		if !ok {
			year := after.Year()
			if len(wrong) == 0 && year > -1e6 && year < 9994 && c.Mode != schedule.Custom {
				t.Errorf("%s does not come after %s", c, after)
			}
			return
		}
		wall, err := time.Parse("2006-01-02T15:04", p.Asked)
		if err != nil || p.At.Format("2006-01-02T15:04:05") < p.Asked || !p.At.After(after) {
			t.Errorf("%s asks for %s and comes at %s", c, p.Asked, p.At)
		}
		if n > 0 && (p.ID <= last.ID || p.At.Sub(last.At) > c.Span()) {
			t.Errorf("%s: %s at %s comes after %s at %s", c, p.ID, p.At, last.ID, last.At)
		}
		if layout := layouts[c.Mode]; layout != "" && wall.Format(layout) != p.ID {
			t.Errorf("%s: the period of %s is %s", c, p.Asked, p.ID)
		}
		if again, _ := c.Next(p.At.Add(-time.Nanosecond), loc); again != p {
			t.Errorf("%s comes at %v, and a moment before is %v", c, p, again)
		}
		last, after = p, p.At
	}
}

func BenchmarkNext(b *testing.B) {
	loc, at := zone(b, "America/New_York"), instant(b, "2026-05-01T00:00:00-04:00")
	for _, c := range []schedule.Cadence{{Mode: schedule.Hourly}, {Mode: schedule.Daily},
		{Mode: schedule.Weekly}, {Mode: schedule.Monthly}, {Mode: schedule.Custom, Cron: cron(b, "0 8 * * 1-5")},
		{Mode: schedule.Custom, Cron: cron(b, "0 8 30 2 *")}} {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Next(at, loc)
			}
		})
	}
}
