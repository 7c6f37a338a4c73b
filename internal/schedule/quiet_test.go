package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/schedule"
)

// quiet reads "22:00-07:00; sat,sun 07:00-12:00".
func quiet(t testing.TB, text string) (q schedule.Quiet) {
	t.Helper()
	for part := range strings.SplitSeq(text, "; ") {
		if part != "" {
			q = append(q, window(t, part))
		}
	}
	return q
}

// TestQuiet has quiet hours, an instant, and their end; "" is at once.
func TestQuiet(t *testing.T) {
	t.Parallel()
	const zurich, apia = "Europe/Zurich", "Pacific/Apia"
	for _, row := range []struct{ what, zone, quiet, at, end string }{
		{"none", zurich, "", "2026-11-24T23:00:00+01:00", ""},
		{"before them", zurich, "22:00-07:00", "2026-11-24T21:59:59.999+01:00", ""},
		{"their first instant", zurich, "22:00-07:00", "2026-11-24T22:00:00+01:00", "2026-11-25T07:00:00+01:00"},
		{"their last instant", zurich, "22:00-07:00", "2026-11-25T06:59:59.999+01:00", "2026-11-25T07:00:00+01:00"},
		{"their end", zurich, "22:00-07:00", "2026-11-25T07:00:00+01:00", ""},
		{"one window after the other", zurich, "22:00-07:00; sat,sun 07:00-12:00", "2026-11-28T03:00:00+01:00",
			"2026-11-28T12:00:00+01:00"},
		{"windows that overlap", zurich, "22:00-07:00; sat 06:00-23:00", "2026-11-28T03:00:00+01:00",
			"2026-11-29T07:00:00+01:00"},
		{"over the end of the week", zurich, "sat 00:00-00:00; sun 00:00-00:00; 22:00-07:00",
			"2026-11-27T22:00:00+01:00", "2026-11-30T07:00:00+01:00"},
		{"all but a minute", zurich, "mon 00:01-00:00; tue,wed,thu,fri,sat,sun 00:00-00:00",
			"2026-11-30T00:01:30+01:00", "2026-12-07T00:00:00+01:00"},
		{"all", zurich, "00:00-00:00", "2026-11-30T00:01:30+01:00", ""},
		{"the zone decides", "America/New_York", "22:00-07:00", "2026-11-24T12:59:00+01:00",
			"2026-11-24T07:00:00-05:00"},

		{"they end in the gap", zurich, "22:00-02:30", "2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"},
		{"all time between them is in the gap", zurich, "03:00-02:00", "2026-03-29T01:00:00+01:00",
			"2026-03-30T02:00:00+02:00"},
		{"they end in the hour that comes twice", zurich, "22:00-02:30", "2026-10-25T01:00:00+02:00",
			"2026-10-25T02:30:00+02:00"},
		{"and once more", zurich, "22:00-02:30", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00"},
		{"until the hour that comes twice is over", zurich, "22:00-03:00", "2026-10-25T01:00:00+02:00",
			"2026-10-25T03:00:00+01:00"},
		{"the day that was skipped", apia, "thu 12:00-00:00; sat 00:00-08:00", "2011-12-29T12:00:00-10:00",
			"2011-12-31T08:00:00+14:00"},
	} {
		q, loc, at := quiet(t, row.quiet), zone(t, row.zone), instant(t, row.at)
		end := q.End(at, loc)
		if in := q.In(at, loc); in != (row.end != "" || row.what == "all") {
			t.Errorf("%s: in is %v", row.what, in)
		}
		if row.end == "" && end != at {
			t.Errorf("%s: %s ends %s, want at once", row.what, row.quiet, end)
		}
		if row.end != "" && (end.Format(time.RFC3339Nano) != row.end || end.Location() != loc) {
			t.Errorf("%s: %s ends %s, want %s", row.what, row.quiet, end.Format(time.RFC3339Nano), row.end)
		}
		if longest := q.Longest(); end.Sub(at) > longest {
			t.Errorf("%s: %s is %s, longer than %s", row.what, row.quiet, end.Sub(at), longest)
		}
	}
}

func TestQuietIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":            nil,
		"22:00-07:00": nil,
		"mon 00:01-00:00; tue,wed,thu,fri,sat,sun 00:00-00:00": nil,
		"00:00-00:00":              {"quiet"},
		"12:00-12:00":              {"quiet"},
		"20:00-08:00; 08:00-20:00": {"quiet"},
		"mon,wed,fri,sun 00:00-00:00; tue,thu,sat 12:00-12:00; tue,thu,sat 00:00-13:00": {"quiet"},
		strings.Repeat("22:00-07:00; ", 20):                                             nil,
		strings.Repeat("22:00-07:00; ", 21):                                             {"quiet"},
	} {
		if diff := cmp.Diff(want, keys(quiet(t, text).Check())); diff != "" {
			t.Errorf("%q: wrong fields (-want +got):\n%s", text, diff)
		}
	}
	q := schedule.Quiet{{From: -1, Until: 1440}, {From: 0, Until: 1439}, {From: 1440}}
	want := []string{"quiet[0].from", "quiet[0].until", "quiet[2].from"}
	if diff := cmp.Diff(want, keys(q.Check())); diff != "" {
		t.Errorf("wrong fields (-want +got):\n%s", diff)
	}
}

func TestLongestQuiet(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "22:00-07:00": 18 * time.Hour,
		"22:00-07:00; sat,sun 00:00-00:00": 2 * (2 + 48 + 7) * time.Hour, "00:00-00:00": 14 * 24 * time.Hour} {
		if got := quiet(t, text).Longest(); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestQuietEndsAtTheFirstMinuteOutside compares with a scan of every minute, around changes of clocks.
func TestQuietEndsAtTheFirstMinuteOutside(t *testing.T) {
	t.Parallel()
	days := []string{"Europe/Zurich 2026-03-29", "Europe/Zurich 2026-10-25", "Australia/Lord_Howe 2026-04-05",
		"Pacific/Apia 2011-12-30", "Africa/Casablanca 2026-02-15", "Antarctica/Troll 2026-10-25"}
	rapid.Check(t, func(r *rapid.T) {
		name, day, _ := strings.Cut(rapid.SampledFrom(days).Draw(r, "day"), " ")
		loc := zone(t, name)
		at := instant(t, day+"T00:00:00Z").Add(time.Duration(rapid.IntRange(-3*24*60, 24*60).Draw(r, "minute")) *
			time.Minute)
		var q schedule.Quiet
		for n := range rapid.IntRange(0, 4).Draw(r, "windows") {
			w := schedule.Window{From: schedule.Clock(rapid.IntRange(0, 1439).Draw(r, fmt.Sprint("from", n))),
				Until: schedule.Clock(rapid.IntRange(0, 1439).Draw(r, fmt.Sprint("until", n)))}
			for i := range w.Days {
				w.Days[i] = rapid.Bool().Draw(r, "day of week")
			}
			q = append(q, w)
		}
		if len(q.Check()) > 0 {
			return
		}
		want := at
		for q.In(want, loc) {
			want = want.Add(time.Minute)
		}
		if got := q.End(at, loc); !got.Equal(want) || want.Sub(at) > q.Longest() {
			r.Errorf("%s: %v from %s end %s, want %s; longest %s", name, q, at.In(loc), got, want.In(loc), q.Longest())
		}
	})
}

func FuzzQuiet(f *testing.F) {
	f.Add(0, 0, byte(0), 0, 0, byte(0), int64(1774745000), "Europe/Zurich")
	f.Add(1320, 420, byte(0), 420, 720, byte(3), int64(1325203200), "Pacific/Apia")
	f.Add(-1<<63, 1<<62, byte(1), 1439, 1438, byte(255), int64(-1<<63), "UTC")
	f.Fuzz(func(t *testing.T, from, until int, days byte, from2, until2 int, days2 byte, unix int64,
		name string) {
		q := schedule.Quiet{{From: schedule.Clock(from), Until: schedule.Clock(until)},
			{From: schedule.Clock(from2), Until: schedule.Clock(until2)}}
		for i := range 7 {
			q[0].Days[i], q[1].Days[i] = days>>i&1 == 1, days2>>i&1 == 1
		}
		loc, err := schedule.Zone(name)
		if err != nil {
			loc = time.UTC
		}
		at := time.Unix(unix, 0)
		end, longest := q.End(at, loc), q.Longest()
		if len(q.Check()) == 0 && unix > -1e15 && unix < 1e15 &&
			(end.Before(at) || q.In(end, loc) || end.Sub(at) > longest) {
			t.Errorf("%v from %s end %s in %s; longest %s", q, at.In(loc), end, loc, longest)
		}
	})
}
