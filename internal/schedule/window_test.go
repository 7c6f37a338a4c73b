package schedule_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/schedule"
)

// window reads "mon,tue 08:00-20:00"; without days, "08:00-20:00".
func window(t testing.TB, text string) schedule.Window {
	t.Helper()
	days, hours, _ := strings.Cut(text, " ")
	var names []string
	if hours == "" {
		hours = days
	} else {
		names = strings.Split(days, ",")
	}
	from, until, _ := strings.Cut(hours, "-")
	w, wrong := schedule.ParseWindow(names, from, until)
	if len(wrong) > 0 {
		t.Fatalf("window %q: %v", text, wrong)
	}
	return w
}

// instant reads a time in RFC 3339.
func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestNext has a window, an instant, and when the window opens; "" is at once.
func TestNext(t *testing.T) {
	t.Parallel()
	const zurich, york, howe, katmandu, apia = "Europe/Zurich", "America/New_York", "Australia/Lord_Howe",
		"Asia/Kathmandu", "Pacific/Apia"
	for _, row := range []struct{ what, zone, window, at, next string }{
		{"before it", zurich, "08:00-20:00", "2026-06-01T07:59:59.999+02:00", "2026-06-01T08:00:00+02:00"},
		{"its first instant", zurich, "08:00-20:00", "2026-06-01T08:00:00+02:00", ""},
		{"its last instant", zurich, "08:00-20:00", "2026-06-01T19:59:59.999+02:00", ""},
		{"its end", zurich, "08:00-20:00", "2026-06-01T20:00:00+02:00", "2026-06-02T08:00:00+02:00"},
		{"friday evening", zurich, "mon,tue,wed,thu,fri 08:00-20:00", "2026-06-05T21:00:00+02:00",
			"2026-06-08T08:00:00+02:00"},
		{"a week later", zurich, "mon 08:00-20:00", "2026-06-01T20:00:00+02:00", "2026-06-08T08:00:00+02:00"},
		{"the zone decides the day", york, "mon 08:00-20:00", "2026-06-02T01:00:00+02:00", ""},
		{"over midnight, the day it begins", zurich, "fri 22:00-06:00", "2026-06-06T05:59:00+02:00", ""},
		{"over midnight, the next day", zurich, "fri 22:00-06:00", "2026-06-06T22:00:00+02:00",
			"2026-06-12T22:00:00+02:00"},
		{"over the end of the week", zurich, "sat 22:00-06:00", "2026-06-07T05:59:00+02:00", ""},
		{"until midnight", zurich, "sat 22:00-00:00", "2026-06-07T00:00:00+02:00", "2026-06-13T22:00:00+02:00"},
		{"24 hours, the next morning", zurich, "sat 08:00-08:00", "2026-06-07T07:59:00+02:00", ""},
		{"24 hours, its end", zurich, "sat 08:00-08:00", "2026-06-07T08:00:00+02:00", "2026-06-13T08:00:00+02:00"},
		{"always", zurich, "00:00-00:00", "2026-06-07T08:00:00+02:00", ""},

		{"begins in the gap", zurich, "02:30-05:00", "2026-03-29T01:59:59+01:00", "2026-03-29T03:00:00+02:00"},
		{"lies in the gap", zurich, "02:10-02:50", "2026-03-29T01:00:00+01:00", "2026-03-30T02:10:00+02:00"},
		{"ends in the gap", zurich, "01:00-02:30", "2026-03-29T03:00:00+02:00", "2026-03-30T01:00:00+02:00"},
		{"the hour that comes twice, first", zurich, "02:00-03:00", "2026-10-25T02:59:00+02:00", ""},
		{"the hour that comes twice, second", zurich, "02:00-03:00", "2026-10-25T02:00:00+01:00", ""},
		{"ends in the hour that comes twice", zurich, "01:00-02:30", "2026-10-25T02:30:00+02:00",
			"2026-10-25T02:00:00+01:00"},
		{"and ends again", zurich, "01:00-02:30", "2026-10-25T02:30:00+01:00", "2026-10-26T01:00:00+01:00"},
		{"begins in the hour that comes twice", zurich, "sun 02:30-02:45", "2026-10-25T02:45:00+02:00",
			"2026-10-25T02:30:00+01:00"},
		{"clocks change before it opens", york, "sun 08:00-20:00", "2026-03-07T12:00:00-05:00",
			"2026-03-08T08:00:00-04:00"},
		{"back an hour before it opens", york, "sun 08:00-20:00", "2026-10-31T12:00:00-04:00",
			"2026-11-01T08:00:00-05:00"},
		{"a gap of 30 minutes", howe, "02:15-02:45", "2026-10-04T01:59:00+10:30", "2026-10-04T02:30:00+11:00"},
		{"30 minutes twice", howe, "01:30-02:00", "2026-04-05T01:30:00+10:30", ""},
		{"between them", howe, "01:00-01:45", "2026-04-05T01:50:00+11:00", "2026-04-05T01:30:00+10:30"},
		{"an offset of 5:45", katmandu, "08:00-20:00", "2026-06-01T02:14:59Z", "2026-06-01T08:00:00+05:45"},
		{"the day that was skipped", apia, "fri 08:00-12:00", "2011-12-29T12:00:00-10:00",
			"2012-01-06T08:00:00+14:00"},
		{"over the day that was skipped", apia, "fri 08:00-02:00", "2011-12-29T12:00:00-10:00",
			"2011-12-31T00:00:00+14:00"},
		{"its end", apia, "fri 08:00-02:00", "2011-12-31T02:00:00+14:00", "2012-01-06T08:00:00+14:00"},
		{"before 1900", zurich, "08:00-20:00", "1800-01-01T00:00:00Z", "1800-01-01T08:00:00+00:34"},
		{"before 1970", "UTC", "mon 08:00-20:00", "1969-12-30T23:59:59.5Z", "1970-01-05T08:00:00Z"},
		{"far away", zurich, "02:30-05:00", "9999-03-28T01:59:59+01:00", "9999-03-28T03:00:00+02:00"},
	} {
		w, loc, at := window(t, row.window), zone(t, row.zone), instant(t, row.at)
		got := w.Next(at, loc)
		if open := w.Open(at, loc); open != (row.next == "") {
			t.Errorf("%s: open is %v", row.what, open)
		}
		if row.next == "" && got != at {
			t.Errorf("%s: %s opens %s, want it open", row.what, row.window, got)
		}
		if row.next != "" && (got.Location() != loc || got.Format(time.RFC3339) != row.next) {
			t.Errorf("%s: %s opens %s, want %s", row.what, row.window, got.Format(time.RFC3339Nano), row.next)
		}
	}
}

// shows reports whether a place's calendar and clock are in a window.
func shows(w schedule.Window, at time.Time) bool {
	today, yesterday := w.Days[at.Weekday()], w.Days[(at.Weekday()+6)%7]
	if w.Days == [7]bool{} {
		today, yesterday = true, true
	}
	clock := schedule.Clock(at.Hour()*60 + at.Minute())
	if w.From < w.Until {
		return today && w.From <= clock && clock < w.Until
	}
	return today && clock >= w.From || yesterday && clock < w.Until
}

// TestNextIsTheFirstOpenMinute compares with a scan of every minute, around the days on which clocks change.
func TestNextIsTheFirstOpenMinute(t *testing.T) {
	t.Parallel()
	changes := map[string][]string{
		"Europe/Zurich":       {"2026-03-29", "2026-10-25", "2041-03-31"},
		"America/New_York":    {"2026-03-08", "2026-11-01", "2099-03-08"},
		"Australia/Lord_Howe": {"2026-04-05", "2026-10-04"},
		"Asia/Kathmandu":      {"1986-01-01", "2026-01-01"},
		"Pacific/Apia":        {"2011-12-30", "2021-04-04"},
		"Africa/Casablanca":   {"2026-02-15", "2026-03-22"},
		"UTC":                 {"2026-12-31"},
	}
	names := make([]string, 0, len(changes))
	for name := range changes {
		names = append(names, name)
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.SampledFrom(names).Draw(r, "zone")
		loc, day := zone(t, name), instant(t, rapid.SampledFrom(changes[name]).Draw(r, "day")+"T00:00:00Z")
		at := day.Add(time.Duration(rapid.IntRange(-9*24*3600, 2*24*3600).Draw(r, "seconds")) * time.Second)
		w := schedule.Window{From: schedule.Clock(rapid.IntRange(0, 1439).Draw(r, "from")),
			Until: schedule.Clock(rapid.IntRange(0, 1439).Draw(r, "until"))}
		for i := range w.Days {
			w.Days[i] = rapid.Float64Range(0, 1).Draw(r, "day of week") < 0.3
		}
		want := at
		for begin := at.Truncate(time.Minute); !shows(w, want.In(loc)); {
			begin = begin.Add(time.Minute)
			want = begin
			if want.Sub(at) > 15*24*time.Hour {
				r.Fatalf("%s: %v opens on none of 15 days", name, w)
			}
		}
		if got := w.Next(at, loc); !got.Equal(want) {
			r.Errorf("%s: after %s %v opens %s, want %s", name, at.In(loc), w, got, want.In(loc))
		}
		if got, want := w.Open(at, loc), want.Equal(at); got != want {
			r.Errorf("%s: %v is open at %s: %v, want %v", name, w, at.In(loc), got, want)
		}
	})
}

func FuzzParseWindow(f *testing.F) {
	f.Add("mon,tue", "08:00", "20:00", int64(1780000000), "Europe/Zurich")
	f.Add("sat", "22:00", "06:00", int64(1325203200), "Pacific/Apia")
	f.Add("funday", "24:00", "", int64(-1<<62), "Local")
	f.Fuzz(func(t *testing.T, days, from, until string, unix int64, name string) {
		loc, err := schedule.Zone(name)
		if err != nil {
			loc = time.UTC
		}
		w, wrong := schedule.ParseWindow(strings.Split(days, ","), from, until)
		at := time.Unix(unix, 0)
		next := w.Next(at, loc)
		if len(wrong) == 0 && (unix > -1e15 && unix < 1e15) && (next.Before(at) || !w.Open(next, loc)) {
			t.Errorf("%v opens %s after %s in %s", w, next, at, loc)
		}
	})
}
