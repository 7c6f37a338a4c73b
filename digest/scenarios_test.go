package digest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
)

// The scenarios are errors that are reported for digests of other programs. Each describes theirs by its
// documents, its source or its reports, and shows ours.

// said returns the entities of each email, in order.
func (b *bench) said(t testing.TB) (all [][]string) {
	t.Helper()
	for _, m := range b.mails.all() {
		var entities []string
		for _, g := range saidIn(t, m).Groups {
			entities = append(entities, g.EntityID)
		}
		all = append(all, entities)
	}
	return all
}

// TestNovuTwoTriggersWithinASecond: Novu guards a digest by a lock of 1.5 seconds, and two triggers at the
// same time made two digests (its issue 2569). Ours makes one, of both events.
func TestNovuTwoTriggersWithinASecond(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var both sync.WaitGroup
	for i := range 10 {
		both.Go(func() {
			e := about("ann", "1", strconv.Itoa(i))
			answer, err := b.AddEvents(t.Context(), "", api.DigestEventsRequest{DigestEvent: e})
			if err != nil || answer.State != "waiting" {
				t.Errorf("%+v, %v", answer, err)
			}
		})
	}
	both.Wait()
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 10 {
		t.Errorf("%d mails", len(all))
	}
}

// TestSentryAddDuringADigest: Sentry moves a timeline aside by a rename, and an add while the digest is
// made goes to a new one. So does ours: the mail that is being made does not change, and the next one has
// the event.
func TestSentryAddDuringADigest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parts, added := b.parts(), false
	parts.Submit = func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
		if !added {
			added = true
			b.add(t, about("ann", "1", "Cy"), about("ann", "2", "Cy"))
			return api.SubmitAnswer{}, errors.New("the connection broke") // the mail is made again
		}
		return b.mails.submit(ctx, req)
	}
	b.remake(t, parts)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.Advance(time.Minute)
	b.settle(t)
	if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 1 {
		t.Fatalf("mails %v", b.said(t))
	}
	b.morning(t)
	if all := b.mails.all(); len(all) != 2 || saidIn(t, all[1]).Total != 2 {
		t.Errorf("mails %v", b.said(t))
	}
}

// TestSentryWorkerDeadAfterItsSnapshot: Sentry's records expire, by default after an hour, whether they were
// sent or not. Our snapshots have no lifetime: the run continues after days, with the same content.
func TestSentryWorkerDeadAfterItsSnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dead := setupOn(t, b)
	died, kill := context.WithCancel(t.Context())
	parts := dead.parts()
	parts.Submit = func(ctx context.Context, _ api.SubmitRequest) (api.SubmitAnswer, error) {
		kill() // nothing that it does from now on reaches Redis
		return api.SubmitAnswer{}, ctx.Err()
	}
	dead.remake(t, parts)
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 2, 8, 0, 1, 0, time.UTC))
	_, _ = dead.Work(died)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].State != api.DigestProcessing || len(b.mails.all()) != 0 {
		t.Fatalf("runs of the dead worker: %+v", runs)
	}
	for _, key := range b.keys(t, "*digest-taken*") {
		if left := b.db.Client().TTL(t.Context(), key).Val(); left != -1 {
			t.Errorf("%s goes in %v", key, left)
		}
	}
	b.add(t, about("ann", "2", "Bo"))
	b.Advance(50 * time.Hour)
	b.settle(t)
	all := b.said(t) // both were made at the same time
	slices.SortFunc(all, slices.Compare)
	if diff := cmp.Diff([][]string{{"1"}, {"2"}}, all); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}

// setupOn returns another process on the Redis of a bench, with its clock and its outbox.
func setupOn(t testing.TB, b *bench) *bench {
	t.Helper()
	other := on(t, b.db)
	other.Clock, other.mails = b.Clock, b.mails
	other.remake(t, other.parts())
	return other
}

func (b *bench) keys(t testing.TB, pattern string) []string {
	t.Helper()
	keys, err := b.db.Client().Keys(t.Context(), pattern).Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %s: %v, %v", pattern, keys, err)
	}
	return keys
}

// TestSchedulerAwayForTwoHours: other schedulers compare the hour of the clock with the schedule's. One that
// was away over that hour sends nothing on that day, and one that comes back twice within it sends twice.
// Ours sends one mail when it comes back, for the requested day.
func TestSchedulerAwayForTwoHours(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 2, 10, 0, 0, 0, time.UTC))
	b.add(t, about("ann", "2", "Bo")) // events are added in the meantime
	b.settle(t)
	setupOn(t, b).settle(t)
	runs := b.runs(t, "ann")
	if diff := cmp.Diff([][]string{{"2", "1"}}, b.said(t)); diff != "" || runs[0].Period != "2030-01-02" {
		t.Errorf("runs %+v, mails (-want +got):\n%s", runs, diff)
	}
	b.add(t, about("ann", "3", "Bo"))
	b.morning(t)
	if runs := b.runs(t, "ann"); len(runs) != 2 || runs[0].Period != "2030-01-03" {
		t.Errorf("the next day: %+v", runs)
	}
}

// TestNovuClockTimesAreLocal: times of Novu's timed digests are in UTC. Ours are on the reader's clock,
// before and after it changes.
func TestNovuClockTimesAreLocal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Set(time.Date(2030, 3, 30, 12, 0, 0, 0, time.UTC)) // clocks of Zurich change on the 31st
	for _, c := range []struct{ who, zone, first, second string }{
		{"ann", "Europe/Zurich", "2030-03-31T06:00:00Z", "2030-04-01T06:00:00Z"},
		{"bob", "Asia/Kathmandu", "2030-03-31T02:15:00Z", "2030-04-01T02:15:00Z"},
		{"cyd", "Australia/Lord_Howe", "2030-03-30T21:00:00Z", "2030-03-31T21:00:00Z"},
	} {
		email := c.who + "@example.com"
		one, _, err := b.Put(t.Context(), "", c.who, api.DigestRecipientRequest{Email: &email, TZ: &c.zone})
		if err != nil {
			t.Fatal(err)
		}
		due := b.add(t, about(c.who, "1", "Bo"))[0].Due.UTC().Format(time.RFC3339)
		second := one.Next[1].At.UTC().Format(time.RFC3339)
		if due != c.first || second != c.second {
			t.Errorf("%s: due %s, then %s; want %s, then %s", c.zone, due, second, c.first, c.second)
		}
	}
}

// TestAWeeklyDigestThatFails: where only a success is noted, a digest that fails each week starts over,
// and has nothing to resume. Ours is tried again within the week, keeps what it is about, and says why it
// failed.
func TestAWeeklyDigestThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 3 })
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "weekly"}})
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errors.New("the template hangs"))
	for range 14 * 24 {
		b.Advance(time.Hour)
		b.settle(t)
	}
	runs := b.runs(t, "ann")
	if len(runs) != 2 || runs[0].Period != "2030-W03" || runs[1].Period != "2030-W02" {
		t.Fatalf("runs %+v", runs)
	}
	for _, r := range runs {
		if r.State != api.DigestFailed || r.Attempts != 3 || r.Reason == "" || r.Events != 1 {
			t.Errorf("run %+v", r)
		}
	}
	b.mails.failWith(nil)
	b.add(t, about("ann", "2", "Bo"))
	b.Advance(7 * 24 * time.Hour)
	b.settle(t)
	// The event of the first week was returned once, failed again, and was reported as dropped.
	if diff := cmp.Diff([][]string{{"2"}}, b.said(t)); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
	if told := b.told(t); len(told) != 2 {
		t.Errorf("told %v", told)
	}
}

// TestOldEventsAreNotMailedAgain: if a digest asks for the last day's events, a queue that was stuck and then
// runs every waiting job sends the same things several times. Ours sends each event once, in one email for
// all that was missed.
func TestOldEventsAreNotMailedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []string
	for day := range 4 {
		want = append(want, fmt.Sprint(3-day)) // the newest first
		b.add(t, about("ann", fmt.Sprint(day), "Bo"))
		b.Advance(24 * time.Hour) // nothing is made
	}
	other := setupOn(t, b)
	for range 5 {
		b.settle(t)
		other.settle(t)
		b.Advance(12 * time.Hour)
	}
	if diff := cmp.Diff([][]string{want}, b.said(t)); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}

// TestFridayIsNotSaturday: a cron of working days in UTC sent readers far from it mail on their Saturday
// (daily.dev, issue 1768). Our days are the reader's.
func TestFridayIsNotSaturday(t *testing.T) {
	t.Parallel()
	b := setup(t)
	email, zone := "ann@example.com", "Pacific/Auckland"
	days := api.DigestPreference{Mode: "weekly", Hour: new(8),
		Weekdays: []string{"mon", "tue", "wed", "thu", "fri"}}
	_, _, err := b.Put(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &email, TZ: &zone,
		Preferences: map[string]*api.DigestPreference{"*": &days}})
	if err != nil {
		t.Fatal(err)
	}
	auckland, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	mailed := map[time.Weekday]int{}
	for hour := range 14 * 24 {
		b.add(t, about("ann", fmt.Sprint(hour), "Bo"))
		before := len(b.mails.all())
		b.Advance(time.Hour)
		b.settle(t)
		mailed[b.Now().In(auckland).Weekday()] += len(b.mails.all()) - before
	}
	want := map[time.Weekday]int{time.Sunday: 0, time.Monday: 2, time.Tuesday: 2, time.Wednesday: 2,
		time.Thursday: 2, time.Friday: 2, time.Saturday: 0}
	if diff := cmp.Diff(want, mailed); diff != "" {
		t.Errorf("mails by day in %s (-want +got):\n%s", zone, diff)
	}
}
