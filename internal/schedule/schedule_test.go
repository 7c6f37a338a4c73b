package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// zone returns a zone that exists.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := schedule.Zone(name)
	if err != nil {
		t.Fatalf("zone %s: %v", name, err)
	}
	return loc
}

func TestClock(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"00:00": 0, "08:00": 480, "23:59": 1439, "24:00": -1, "8:00": -1,
		"08:0": -1, "08:60": -1, "08:00:00": -1, "08:00 ": -1, "+8:00": -1, "": -1, "０8:00": -1} {
		c, err := schedule.ParseClock(text)
		if want < 0 {
			if err == nil {
				t.Errorf("%q is %v, want an error", text, c)
			}
			continue
		}
		if err != nil || int(c) != want || c.String() != text {
			t.Errorf("%q is %v (%d minutes), %v, want %d", text, c, int(c), err, want)
		}
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Zurich", "America/Argentina/Buenos_Aires", "Etc/GMT+2",
		"America/Port-au-Prince", "Antarctica/DumontDUrville", "America/North_Dakota/New_Salem"} {
		if loc, err := schedule.Zone(name); err != nil || loc.String() != name {
			t.Errorf("zone %q is %v, %v", name, loc, err)
		}
	}
	for _, name := range []string{"", "Local", "utc", "CEST", "CET", "EST", "EST5EDT", "GMT", "Z", "Japan",
		"+02:00", "-0800", "UTC+2", "Europe", "Europe/", "/Europe/Zurich", "Europe//Zurich", "Europe/./Zurich",
		"europe/zurich", "Mars/Olympus", "../etc/passwd", "../../etc/passwd", "/etc/localtime",
		"Europe/../Europe/Zurich", "posix/Europe/Zurich", "right/Europe/Zurich",
		" Europe/Zurich", "Europe/Zurich\n", "Europe\\Zurich"} {
		if loc, err := schedule.Zone(name); err == nil {
			t.Errorf("zone %q is %v, want an error", name, loc)
		}
	}
}

func TestParseWindow(t *testing.T) {
	t.Parallel()
	every := [7]bool{}
	week := [7]bool{false, true, true, true, true, true, false}
	for what, row := range map[string]struct {
		days        []string
		from, until string
		want        schedule.Window
		wrong       []string
	}{
		"every day": {nil, "08:00", "20:00", schedule.Window{Days: every, From: 480, Until: 1200}, nil},
		"a week": {[]string{"mon", "tue", "wed", "thu", "fri"}, "08:00", "20:00",
			schedule.Window{Days: week, From: 480, Until: 1200}, nil},
		"a day twice": {[]string{"sat", "sat"}, "22:00", "06:00",
			schedule.Window{Days: [7]bool{6: true}, From: 1320, Until: 360}, nil},
		"24 hours": {nil, "08:00", "08:00", schedule.Window{From: 480, Until: 480}, nil},
		"no such day": {[]string{"mon", "tue", "Wed", "sunday"}, "08:00", "20:00", schedule.Window{},
			[]string{"days[2]", "days[3]"}},
		"no clocks":        {nil, "", "", schedule.Window{}, []string{"from", "until"}},
		"no such time":     {nil, "08:00", "24:00", schedule.Window{}, []string{"until"}},
		"everything wrong": {[]string{""}, "8", "x", schedule.Window{}, []string{"days[0]", "from", "until"}},
	} {
		got, faults := schedule.ParseWindow(row.days, row.from, row.until)
		if diff := cmp.Diff(row.wrong, keys(faults)); diff != "" {
			t.Errorf("%s: wrong fields (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(row.want, got); diff != "" && row.wrong == nil {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func keys(faults []fault.Field) (keys []string) {
	for _, f := range faults {
		keys = append(keys, f.Key)
	}
	return keys
}
