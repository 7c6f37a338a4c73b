package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/schedule"
)

// slots reads "mon 08:30, fri 17:00".
func slots(t testing.TB, text string) (all []schedule.Slot) {
	t.Helper()
	for part := range strings.SplitSeq(text, ", ") {
		w := window(t, part+"-00:00")
		for day, on := range w.Days {
			if on {
				all = append(all, schedule.Slot{Weekday: time.Weekday(day), At: w.From})
			}
		}
	}
	return all
}

// TestCadenceIsChecked has a cadence and its wrong fields: a key, or a key and the message.
func TestCadenceIsChecked(t *testing.T) {
	t.Parallel()
	custom := func(text string) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Custom, Slots: slots(t, text)}
	}
	crons := func(text string) schedule.Cadence {
		return schedule.Cadence{Mode: schedule.Custom, Cron: cron(t, text)}
	}
	of := func(mode schedule.Mode, hour, minute, day int) schedule.Cadence {
		return schedule.Cadence{Mode: mode, Hour: hour, Minute: minute, Day: day}
	}
	const apart = "cron: must be at least 15 minutes apart, but "
	const seldom = "cron: must come at least once in 5 years"
	for what, row := range map[string]struct {
		cadence schedule.Cadence
		want    []string
	}{
		"no mode":            {schedule.Cadence{}, []string{"mode: must be hourly, daily"}},
		"another mode":       {schedule.Cadence{Mode: "Daily"}, []string{"mode: "}},
		"hourly":             {of(schedule.Hourly, 99, 59, 99), nil},
		"hourly, wrong":      {of(schedule.Hourly, 0, 60, 0), []string{"minute: must be 0 to 59"}},
		"daily":              {of(schedule.Daily, 23, 59, 99), nil},
		"daily, wrong":       {of(schedule.Daily, 24, -1, 0), []string{"hour: ", "minute: "}},
		"weekly":             {of(schedule.Weekly, 0, 0, 0), nil},
		"weekly, wrong":      {of(schedule.Weekly, -1, 0, 0), []string{"hour: must be 0 to 23"}},
		"monthly":            {of(schedule.Monthly, 0, 0, 31), nil},
		"monthly, no day":    {of(schedule.Monthly, 0, 0, 0), nil},
		"monthly, wrong":     {of(schedule.Monthly, 0, 0, 32), []string{"day: must be 1 to 31"}},
		"nothing custom":     {schedule.Cadence{Mode: schedule.Custom}, []string{"times: "}},
		"one time":           {custom("mon 08:30"), nil},
		"times 15 min apart": {custom("mon 08:30, mon 08:45, mon 08:15"), nil},
		"times too close": {custom("mon 08:30, fri 17:00, mon 08:16"),
			[]string{"times[0].at: Monday 08:30 must be at least 15 minutes after Monday 08:16 of times[2]"}},
		"the same time": {custom("mon 08:30, mon 08:30"), []string{"times[1].at: "}},
		"too close over the week's end": {custom("sun 00:05, wed 12:00, sat 23:55"),
			[]string{"times[0].at: Sunday 00:05 must be at least 15 minutes after Saturday 23:55 of times[2]"}},
		"no such times": {schedule.Cadence{Mode: schedule.Custom, Slots: []schedule.Slot{{Weekday: 7}, {At: 1440},
			{Weekday: -1, At: -1}}}, []string{"times[0].weekday: ", "times[1].at: ",
			"times[2].weekday: ", "times[2].at: "}},
		"times go before a cron": {schedule.Cadence{Mode: schedule.Custom, Slots: slots(t, "mon 08:30"),
			Cron: cron(t, "* * * * *")}, nil},
		"cron":                 {crons("*/15 * * * *"), nil},
		"cron, 29 February":    {crons("0 8 29 2 *"), nil},
		"cron each minute":     {crons("* * * * *"), []string{apart + "00:00 is followed by 00:01"}},
		"cron too often":       {crons("0,50 * * * *"), []string{apart + "00:50 is followed by 01:00"}},
		"cron around midnight": {crons("55 23 * * *"), nil},
		"cron too often around midnight": {crons("5,55 0,23 * * *"),
			[]string{apart + "23:55 is followed by 00:05"}},
		"cron, 30 February":              {crons("0 8 30 2 *"), []string{seldom}},
		"cron, 31 April":                 {crons("0 8 31 4,6,9,11 *"), []string{seldom}},
		"cron, 29 February on some days": {crons("0 8 29 2 */2"), []string{seldom}},
		"cron, New Year on Mondays":      {crons("0 8 */31 1 1"), []string{seldom}},
	} {
		var got []string
		for _, f := range row.cadence.Check() {
			got = append(got, f.Key+": "+f.Message)
		}
		near := cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })
		if diff := cmp.Diff(row.want, got, near); diff != "" {
			t.Errorf("%s: wrong fields (-want +got):\n%s", what, diff)
		}
	}
}

func TestCadenceAsText(t *testing.T) {
	t.Parallel()
	at := func(mode schedule.Mode, day int, days ...time.Weekday) schedule.Cadence {
		c := schedule.Cadence{Mode: mode, Hour: 8, Minute: 5, Day: day}
		for _, day := range days {
			c.Weekdays[day] = true
		}
		return c
	}
	for _, row := range []struct {
		cadence    schedule.Cadence
		key, words string
	}{
		{at(schedule.Hourly, 9, 1), "hourly@05", "every hour at minute 5"},
		{at(schedule.Daily, 9, 1), "daily@08:05", "every day at 08:05"},
		{at(schedule.Weekly, 9), "weekly@mon@08:05", "every Monday at 08:05"},
		{at(schedule.Weekly, 0, 0, 4, 1), "weekly@mon,thu,sun@08:05", "every Monday, Thursday and Sunday at 08:05"},
		{at(schedule.Weekly, 0, 4, 1), "weekly@mon,thu@08:05", "every Monday and Thursday at 08:05"},
		{at(schedule.Monthly, 0), "monthly@1@08:05", "on the 1st of each month at 08:05"},
		{at(schedule.Monthly, 2), "monthly@2@08:05", "on the 2nd of each month at 08:05"},
		{at(schedule.Monthly, 11), "monthly@11@08:05", "on the 11th of each month at 08:05"},
		{at(schedule.Monthly, 12), "monthly@12@08:05", "on the 12th of each month at 08:05"},
		{at(schedule.Monthly, 13), "monthly@13@08:05", "on the 13th of each month at 08:05"},
		{at(schedule.Monthly, 23), "monthly@23@08:05", "on the 23rd of each month at 08:05"},
		{at(schedule.Monthly, 30), "monthly@30@08:05", "on the 30th or last day of each month at 08:05"},
		{at(schedule.Monthly, 31), "monthly@31@08:05", "on the last day of each month at 08:05"},
		{schedule.Cadence{Mode: schedule.Custom, Slots: slots(t, "sun 00:00, fri 17:00, mon 08:30, fri 17:00")},
			"custom@mon@08:30,fri@17:00,sun@00:00", "every Monday at 08:30, Friday at 17:00 and Sunday at 00:00"},
		{schedule.Cadence{Mode: schedule.Custom, Slots: slots(t, "mon 08:30"), Cron: cron(t, "* * * * *")},
			"custom@mon@08:30", "every Monday at 08:30"},
		{schedule.Cadence{Mode: schedule.Custom, Cron: cron(t, "0 8 * * MON-FRI")}, "custom@0 8 * * 1-5",
			"at the times of cron 0 8 * * 1-5"},
		{schedule.Cadence{Mode: schedule.Custom}, "custom@", "at the times of cron "},
	} {
		if key, words := row.cadence.String(), row.cadence.Words(); key != row.key || words != row.words {
			t.Errorf("%+v is %q, %q, want %q, %q", row.cadence, key, words, row.key, row.words)
		}
	}
}
