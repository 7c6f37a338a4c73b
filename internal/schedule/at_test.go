package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/schedule"
)

func TestAt(t *testing.T) {
	t.Parallel()
	const zurich, york, howe, apia = "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"
	// want is an instant, or "!" and a part of the error.
	for _, row := range []struct{ zone, text, want string }{
		{zurich, "2026-12-24T08:00", "2026-12-24T08:00:00+01:00"},
		{zurich, "2026-06-24T08:00:05", "2026-06-24T08:00:05+02:00"},
		{"Asia/Kathmandu", "2026-12-24T08:00", "2026-12-24T08:00:00+05:45"},
		{"UTC", "2024-02-29T23:59:59", "2024-02-29T23:59:59Z"},
		{zurich, "2026-12-24T08:00:00Z", "2026-12-24T09:00:00+01:00"},
		{zurich, "2026-12-24T08:00:00.25-05:00", "2026-12-24T14:00:00.25+01:00"},
		{zurich, "9999-12-31T23:59", "9999-12-31T23:59:00+01:00"},
		{york, "0000-01-01T00:00:00Z", "-0001-12-31T19:03:58-04:56"},

		{zurich, "2026-03-29T01:59", "2026-03-29T01:59:00+01:00"},
		{zurich, "2026-03-29T02:00",
			"!2026-03-29T02:00 does not exist in Europe/Zurich: its clocks jump to 2026-03-29T03:00"},
		{zurich, "2026-03-29T02:59:59", "!jump to 2026-03-29T03:00:00"},
		{zurich, "2026-03-29T03:00", "2026-03-29T03:00:00+02:00"},
		{zurich, "2026-10-25T02:30", "2026-10-25T02:30:00+02:00"},
		{zurich, "2026-10-25T03:00", "2026-10-25T03:00:00+01:00"},
		{york, "2026-03-08T02:30", "!jump to 2026-03-08T03:00"},
		{york, "2026-11-01T01:30", "2026-11-01T01:30:00-04:00"},
		{york, "2026-11-01T02:00", "2026-11-01T02:00:00-05:00"},
		{howe, "2026-10-04T02:15", "!jump to 2026-10-04T02:30"},
		{howe, "2026-10-04T02:30", "2026-10-04T02:30:00+11:00"},
		{howe, "2026-04-05T01:45", "2026-04-05T01:45:00+11:00"},
		{apia, "2011-12-29T23:59", "2011-12-29T23:59:00-10:00"},
		{apia, "2011-12-30T12:00", "!jump to 2011-12-31T00:00"},
		{apia, "2011-12-31T00:00", "2011-12-31T00:00:00+14:00"},

		{zurich, "", "!must be a time such as"},
		{zurich, "2026-12-24", "!must be"},
		{zurich, "2026-12-24 08:00", "!must be"},
		{zurich, "2026-12-24T8:00", "!must be"},
		{zurich, "2026-12-24T8:00:05", "!must be"},
		{zurich, "2026-12-24T08:00:05.5", "!must be"},
		{zurich, "2026-12-24T24:00", "!must be"},
		{zurich, "2026-02-29T08:00", "!must be"},
		{zurich, "2026-12-24T08:00+01:00", "!must be"},
		{zurich, "2026-12-24t08:00:00z", "!must be"},
		{zurich, "2026-12-24T08:00:00+25:00", "!must be"},
		{zurich, "10000-01-01T00:00", "!must be"},
		{zurich, " 2026-12-24T08:00", "!must be"},
	} {
		loc := zone(t, row.zone)
		got, err := schedule.At(row.text, loc)
		if part, bad := strings.CutPrefix(row.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s %q is %s, %v, want an error with %q", row.zone, row.text, got, err, part)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339Nano) != row.want || got.Location() != loc {
			t.Errorf("%s %q is %s, %v, want %s", row.zone, row.text, got.Format(time.RFC3339Nano), err, row.want)
		}
	}
}

// TestAtEachMinute writes down what clocks show at each minute around their changes, and reads it.
func TestAtEachMinute(t *testing.T) {
	t.Parallel()
	for name, day := range map[string]string{"Europe/Zurich": "2026-10-25", "America/New_York": "2026-03-08",
		"Australia/Lord_Howe": "2026-04-05", "Pacific/Apia": "2011-12-30", "Asia/Kathmandu": "1986-01-01",
		"America/Sitka": "1867-10-18"} {
		loc, begin := zone(t, name), instant(t, day+"T00:00:00Z").Add(-24*time.Hour)
		read := map[string]time.Time{}
		for minute := range 3 * 24 * 60 {
			at := begin.Add(time.Duration(minute) * time.Minute)
			text := at.In(loc).Format("2006-01-02T15:04:05")
			want, again := read[text]
			if !again {
				want, read[text] = at, at
			}
			if got, err := schedule.At(text, loc); err != nil || !got.Equal(want) {
				t.Errorf("%s %s is %s, %v, want %s", name, text, got, err, want.In(loc))
			}
		}
	}
}

func FuzzAt(f *testing.F) {
	f.Add("2026-12-24T08:00", "Europe/Zurich")
	f.Add("2011-12-30T12:00:05", "Pacific/Apia")
	f.Add("2026-12-24T08:00:00.5+01:00", "UTC")
	f.Fuzz(func(t *testing.T, text, name string) {
		loc, err := schedule.Zone(name)
		if err != nil {
			loc = time.UTC
		}
		at, err := schedule.At(text, loc)
		if err != nil {
			return
		}
		if len(text) <= len("2006-01-02T15:04:05") && !strings.HasPrefix(at.Format("2006-01-02T15:04:05"), text) {
			t.Errorf("%q in %s is %s", text, loc, at)
		}
	})
}
