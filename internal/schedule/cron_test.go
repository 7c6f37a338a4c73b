package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/schedule"
)

// cron reads a cron that is right.
func cron(t testing.TB, text string) schedule.Cron {
	t.Helper()
	c, err := schedule.ParseCron(text)
	if err != nil {
		t.Fatalf("cron %q: %v", text, err)
	}
	return c
}

// TestParseCron has crons and how String writes them; "!" and a part of the error.
func TestParseCron(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0 8 * * 1-5":               "0 8 * * 1-5",
		"  0\t08 * * MON-fri ":      "0 8 * * 1-5",
		"0 8 * * 1,2,3,4,5":         "0 8 * * 1-5",
		"*/15 * * * *":              "0,15,30,45 * * * *",
		"*/1 */1 */1 */1 */1":       "* * * * *",
		"0-59 0-23 1-31 1-12 0-7":   "* * * * *",
		"* * * * *":                 "* * * * *",
		"10-30/10,5,5 9-17/4 * * *": "5,10,20,30 9,13,17 * * *",
		"0 8 * jan,Mar-may *":       "0 8 * 1,3-5 *",
		"0 8 * * 7":                 "0 8 * * 0",
		"0 8 * * sun,6":             "0 8 * * 0,6",
		"0 8 * * 5-7":               "0 8 * * 0,5,6",
		"0 8 * * sat-sun":           "0 8 * * 0,6",
		"0 8 * * mon-sun":           "0 8 * * *",
		"0 8 * * */7":               "0 8 * * 0",
		"0 8 13 * 5":                "0 8 13 * 5",
		"0 8 13 * 0-6":              "0 8 * * *", // either day matches, so each does
		"0 8 1-31 * 5":              "0 8 * * *",
		"0 8 * * 5":                 "0 8 * * 5",
		"0 8 13 * *":                "0 8 13 * *",
		"0 8 */2 * *":               "0 8 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * *",
		"0 8 */10 * 5":              "0 8 */10 * 5", // both days must match
		"0 8 */31,5 * 5":            "0 8 */31,5 * 5",
		"0 8 5 * */3":               "0 8 5 * */3",
		"0 8 1,5 * */3":             "0 8 */31,5 * 0,3,6",
		"0 0 30 2 *":                "0 0 30 2 *",
		"59 23 31 12 6":             "59 23 31 12 6",

		"":                               "!must have five fields",
		"@daily":                         "!it has 1",
		"0 0 8 * * *":                    "!it has 6",
		"0 8 * *":                        "!it has 4",
		"60 8 * * *":                     `!minute: "60" must be 0 to 59`,
		"0 24 * * *":                     "!hour: ",
		"0 8 0 * *":                      `!day of the month: "0" must be 1 to 31`,
		"0 8 * 13 *":                     `!month: "13" must be 1 to 12, or jan to dec`,
		"0 8 * * 8":                      "!day of the week: ",
		"0 8 * * monday":                 `!"monday" must be 0 to 7, or sun to sat`,
		"0 8 * mon *":                    `!month: "mon"`,
		"0 8 jan * *":                    `!day of the month: "jan"`,
		"0 8 ? * 1":                      `!"?" must be`,
		"0 8 L * *":                      `!"l" must be`,
		"0 8 15W * *":                    `!"15w" must be`,
		"0 8 * * 5#2":                    `!"5#2" must be`,
		"0 17-8 * * *":                   "!the range 17-8 goes backwards",
		"0 8 * * 5-1":                    "!backwards",
		"5/15 8 * * *":                   "!minute: a step needs",
		"*/0 8 * * *":                    `!the step "0" must be 1 to 59`,
		"*/60 8 * * *":                   "!the step",
		"*/ 8 * * *":                     `!the step ""`,
		"*/+5 8 * * *":                   `!the step "+5"`,
		"+5 8 * * *":                     `!"+5" must`,
		"-5 8 * * *":                     `!"" must`,
		"5- 8 * * *":                     `!"" must`,
		"1-2-3 8 * * *":                  `!"2-3" must`,
		"*-5 8 * * *":                    `!"*" must`,
		"**  8 * * *":                    `!"**" must`,
		", 8 * * *":                      `!"" must`,
		"0,, 8 * * *":                    `!"" must`,
		"0 8 * * *\n":                    "!day of the week: ",
		"1.5 8 * * *":                    `!"1.5" must`,
		"0x5 8 * * *":                    `!"0x5" must`,
		"٣ 8 * * *":                      "!minute: ",
		"9999999999999999999999 8 * * *": "!minute: ",
	} {
		c, err := schedule.ParseCron(text)
		if part, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) || !c.IsZero() {
				t.Errorf("%q is %q, %v, want an error with %q", text, c, err, part)
			}
			continue
		}
		if err != nil || c.String() != want {
			t.Errorf("%q is %q, %v, want %q", text, c, err, want)
		}
		if again, err := schedule.ParseCron(want); err != nil || again != c {
			t.Errorf("%q is %+v, %v, and %q is %+v", want, again, err, text, c)
		}
	}
	if text := (schedule.Cron{}).String(); text != "" {
		t.Errorf("no cron is %q", text)
	}
}

// TestCronIsCheckedAsCronDoes compares with the rule of cron(8), day by day and minute by minute.
func TestCronIsCheckedAsCronDoes(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02T15:04"
	for text, comes := range map[string]func(at time.Time) bool{
		"0 8 13 * 5": func(at time.Time) bool {
			return at.Format("15:04") == "08:00" && (at.Day() == 13 || at.Weekday() == time.Friday)
		},
		"*/20 22-23,0 */2 2,12 1-5": func(at time.Time) bool {
			return at.Minute()%20 == 0 && (at.Hour() >= 22 || at.Hour() == 0) && at.Day()%2 == 1 &&
				(at.Month() == 2 || at.Month() == 12) && at.Weekday() >= 1 && at.Weekday() <= 5
		},
		"59 23 29-31 feb,apr *": func(at time.Time) bool {
			return at.Format("15:04") == "23:59" && at.Day() >= 29 && (at.Month() == 2 || at.Month() == 4)
		},
	} {
		c := schedule.Cadence{Mode: schedule.Custom, Cron: cron(t, text)}
		at := instant(t, "2027-11-01T00:00:00Z")
		p, ok := c.Next(at.Add(-time.Minute), time.UTC)
		for ; at.Year() < 2029; at = at.Add(time.Minute) {
			if comes(at) != (p.At.Equal(at)) || !ok {
				t.Fatalf("%s: %s comes: %v, want %v; next is %s", text, at.Format(layout), !comes(at), comes(at), p.At)
			}
			if p.At.Equal(at) {
				p, ok = c.Next(at, time.UTC)
			}
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, text := range []string{"0 8 * * 1-5", "*/15 0,12 */2,5 jan-mar sat-sun", "5/15 8 * * *", "@daily",
		"0 8 1,5 * */3", "9999999999999999999999 8 * * *", "* * * * */7", "0 8 ? * L"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := schedule.ParseCron(text)
		if err != nil {
			return
		}
		again, err := schedule.ParseCron(c.String())
		if err != nil || again != c || again.String() != c.String() {
			t.Errorf("%q is %q, which is %q, %v", text, c, again, err)
		}
		cadence := schedule.Cadence{Mode: schedule.Custom, Cron: c}
		after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		wrong := cadence.Check()
		if p, ok := cadence.Next(after, time.UTC); !ok && wrong == nil || ok && !p.At.After(after) {
			t.Errorf("%q comes at %s: %v, wrong is %v", text, p.At, ok, wrong)
		}
	})
}
