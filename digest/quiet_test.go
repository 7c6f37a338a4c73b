package digest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
)

// TestQuietHoursBeginBeforeTheWorkerComes: mail that was due before quiet hours, immediately or by a
// schedule, waits for their end if no worker passed it to the outbox by then. So does a second attempt. The
// period stays the one before.
func TestQuietHoursBeginBeforeTheWorkerComes(t *testing.T) {
	t.Parallel()
	day := func(hour, minute int) time.Time { return time.Date(2030, 1, 2, hour, minute, 0, 0, time.UTC) }
	for name, p := range map[string]api.DigestPreference{
		"immediate": {Mode: "immediate", Gap: "5m"},
		"hourly":    {Mode: "hourly", Minute: new(30)},
		"daily":     {Mode: "daily", Hour: new(9), Minute: new(30)}, // long before the quiet hours
		"again":     {Mode: "daily", Hour: new(21), Minute: new(30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(o *digest.Options) { o.Stagger = 10 * time.Minute })
			b.Set(day(9, 0))
			quiet := []api.DigestQuiet{{From: "22:00", Until: "07:00"}}
			email := "ann@example.com"
			if _, _, err := b.Put(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &email, Quiet: &quiet,
				Preferences: map[string]*api.DigestPreference{"*": &p}}); err != nil {
				t.Fatal(err)
			}
			if name != "daily" {
				b.Set(day(21, 20))
			}
			due := *b.add(t, about("ann", "1", "Bo"))[0].Due
			if due.After(day(22, 0)) {
				t.Fatalf("due %v", due)
			}
			if name == "again" {
				b.mails.failWith(errors.New("the template hangs"))
				b.Set(day(21, 59))
				b.settle(t)
				b.mails.failWith(nil)
			}
			for at := day(22, 0); at.Before(day(31, 0)); at = at.Add(10 * time.Minute) {
				b.Set(at)
				b.settle(t)
				if at.Equal(day(23, 0)) && name != "again" {
					b.add(t, about("ann", "2", "Bo"))
				}
			}
			if n := len(b.mails.all()); n != 0 {
				t.Fatalf("%d mails in the night", n)
			}
			b.Set(day(31, 10))
			b.settle(t)
			all, runs := b.mails.all(), b.runs(t, "ann")
			if len(all) != 1 || len(runs) != 1 {
				t.Fatalf("%d mails, runs %+v", len(all), runs)
			}
			want := map[string]string{"hourly": "2030-01-03T06", "daily": "2030-01-02", "again": "2030-01-02"}[name]
			total := map[bool]int{true: 1, false: 2}[name == "again"]
			if want != "" && runs[0].Period != want || saidIn(t, all[0]).Total != total {
				t.Errorf("run %+v says %+v", runs[0], saidIn(t, all[0]))
			}
		})
	}
}

// TestAnUrgentMailIsTriedAgainInQuietHours, as it passes them.
func TestAnUrgentMailIsTriedAgainInQuietHours(t *testing.T) {
	t.Parallel()
	b := setup(t)
	quiet := []api.DigestQuiet{{From: "03:00", Until: "07:00"}}
	email := "ann@example.com"
	if _, _, err := b.Put(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &email,
		Quiet: &quiet}); err != nil {
		t.Fatal(err)
	}
	e := about("ann", "1", "Bo")
	e.Priority = "urgent"
	b.add(t, e)
	b.mails.failWith(fault.New(fault.Unprocessable, "TemplateFault", "broken"))
	b.settle(t)
	b.mails.failWith(nil)
	b.Advance(time.Minute)
	b.settle(t)
	if n := len(b.mails.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
}
