package digest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/outbox/suppression"
)

// morning moves the clock to a little after eight of the next morning.
func (b *bench) morning(t testing.TB) {
	t.Helper()
	now := b.Now()
	next := time.Date(now.Year(), now.Month(), now.Day(), 8, 0, 1, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	b.Advance(next.Sub(now))
	b.settle(t)
}

// TestEachEventIsInOneMail: an event that comes after a run began is in the next one.
func TestEachEventIsInOneMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.add(t, about("ann", "1", "Cy"), about("ann", "2", "Bo"))
	b.settle(t)
	if n := len(b.mails.all()); n != 1 {
		t.Fatalf("%d mails on the first day", n)
	}
	b.morning(t)
	all := b.mails.all()
	if len(all) != 2 {
		t.Fatalf("%d mails", len(all))
	}
	if d := saidIn(t, all[1]); d.Total != 2 || len(d.Groups) != 2 {
		t.Errorf("the second says %+v", d)
	}
	for i, r := range b.runs(t, "ann") {
		if want := fmt.Sprintf("2030-01-%02d", 3-i); r.Period != want {
			t.Errorf("run %d has the period %s, want %s", i, r.Period, want)
		}
	}
}

// TestARepeatedKeyIsOneEvent: the second answer is the first, and another event under the key is refused.
func TestARepeatedKeyIsOneEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := about("ann", "1", "Bo")
	e.IdempotencyKey = "k1"
	first := b.add(t, e)[0]
	b.Advance(26 * time.Hour)
	again := b.add(t, e)[0]

	if again.Idempotency == nil || again.Idempotency.Status != "HIT" || again.ID != first.ID ||
		!again.Due.Equal(*first.Due) {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := e
	other.Title = "Another"
	answer, err := b.AddEvents(t.Context(), "", api.DigestEventsRequest{Events: []api.DigestEvent{other, e}})
	if err != nil || answer.Events[0].Code != "IdempotencyKeyReused" || answer.Events[0].StatusCode != 422 ||
		!answer.Events[1].Success {
		t.Errorf("%+v, %v", answer, err)
	}
	b.morning(t)
	if d := saidIn(t, b.mails.all()[0]); d.Total != 1 {
		t.Errorf("said %+v", d)
	}
}

// TestKeysOfDaysSideBySide: a key is known for two days, whatever keys come before and after it, and by a
// process whose clock is a day behind. Then it is free.
func TestKeysOfDaysSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status := func(key string) string {
		e := about("ann", key, "Bo")
		e.IdempotencyKey = key
		return b.add(t, e)[0].Idempotency.Status
	}
	for day := range 6 {
		for ago, want := range []string{"MISS", "HIT", "HIT", "MISS"} {
			if ago > day {
				break
			}
			key := fmt.Sprint("k", day-ago)
			if ago == 3 { // a key of that day that no one has asked for since
				key += " long ago"
				b.Advance(-3 * 24 * time.Hour)
				status(key)
				b.Advance(3 * 24 * time.Hour)
			}
			if got := status(key); got != want {
				t.Errorf("on day %d the key %q is a %s, want %s", day, key, got, want)
			}
		}
		b.Advance(-24 * time.Hour)
		if got := status(fmt.Sprint("k", day)); got != "HIT" {
			t.Errorf("a day before day %d its key is a %s", day, got)
		}
		b.Advance(2 * 24 * time.Hour)
	}
}

// TestCountsAreExactBeyondKeep: events beyond digest.keep are counted, with their actors and their
// last title.
func TestCountsAreExactBeyondKeep(t *testing.T) {
	t.Parallel()
	b, plain := setup(t, func(o *digest.Options) { o.Keep = 7 }), setup(t)
	for i := range 100 {
		e := about("ann", fmt.Sprint(i%4), fmt.Sprint("actor ", i%9))
		e.Title = fmt.Sprint("Post ", i%4, " changed ", i)
		at := start.Add(time.Duration(i*7919%100) * -time.Minute)
		e.OccurredAt, e.Payload = &at, []byte(fmt.Sprintf(`{"n":%d,"list":[]}`, i))
		e.Priority = []string{"low", "normal", "high"}[i%3]
		b.add(t, e)
		plain.add(t, e)
	}
	waits, err := b.Waiting(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || waits.Counts["comment"] != 100 || len(waits.Events) != 7 {
		t.Errorf("waiting: %+v, %v", waits, err)
	}
	b.morning(t)
	plain.morning(t)
	got, want := string(b.mails.all()[0].Render.Params), string(plain.mails.all()[0].Render.Params)
	if got != want {
		t.Errorf("with 7 events kept:\n%s\nwith all:\n%s", got, want)
	}
}

// TestTenThousandEventsOfOneLine, and one more, about one thing and about thousands: counts and the remainder
// are exact.
func TestTenThousandEventsOfOneLine(t *testing.T) {
	t.Parallel()
	const n = 10_001
	for _, things := range []int{1, 3_000} {
		b := setup(t)
		var list []api.DigestEvent
		for i := range n {
			e := about("ann", fmt.Sprint(i%things), fmt.Sprint("actor ", i%9_000))
			list = append(list, e)
			if len(list) == 1000 || i == n-1 {
				b.add(t, list...)
				list = nil
			}
		}
		b.morning(t)
		all := b.mails.all()
		if len(all) != 1 {
			t.Fatalf("%d mails", len(all))
		}
		d, lines := saidIn(t, all[0]), 0
		for _, g := range d.Groups {
			lines += g.Count
			if things == 1 && (g.Count != n || len(g.Actors) != 3 || g.Others != 9_000-3) {
				t.Errorf("the line has %d events of %d actors and %d others", g.Count, len(g.Actors), g.Others)
			}
		}
		shown := min(things, 50)
		if d.Total != n || len(d.Groups) != shown || d.Rest.Groups != things-shown || d.Rest.Events != n-lines {
			t.Errorf("%d things: %d events, %d in %d lines, the rest is %+v", things, d.Total, lines, len(d.Groups),
				d.Rest)
		}
		if r := b.runs(t, "ann"); len(r) != 1 || r[0].Events != n {
			t.Errorf("runs %+v", r)
		}
	}
}

// TestRemovedEventsAreNotMailed, by key and by entity, folded ones too.
func TestRemovedEventsAreNotMailed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Keep = 3 })
	for i := range 10 {
		b.add(t, about("ann", "17", fmt.Sprint(i)))
	}
	keyed := about("ann", "18", "Bo")
	keyed.IdempotencyKey = "k"
	b.add(t, keyed, about("ann", "19", "Bo"))
	for _, q := range []struct {
		removal api.DigestEventRemoval
		want    int
	}{
		{api.DigestEventRemoval{Recipients: []string{"ann", "bob"}, Category: "comment",
			EntityType: "post", EntityID: "17"}, 10},
		{api.DigestEventRemoval{Recipients: []string{"ann"}, Key: "k"}, 1},
		{api.DigestEventRemoval{Recipients: []string{"ann"}, Key: "k"}, 0},
		{api.DigestEventRemoval{Recipients: []string{"ann"}, Category: "comment", EntityType: "post",
			EntityID: "1"}, 0},
	} {
		if got, err := b.Remove(t.Context(), "", q.removal); err != nil || got.Deleted != q.want {
			t.Errorf("%+v: %+v, %v, want %d", q.removal, got, err, q.want)
		}
	}
	b.morning(t)
	if d := saidIn(t, b.mails.all()[0]); d.Total != 1 || d.Groups[0].EntityID != "19" {
		t.Errorf("said %+v", d)
	}
}

// TestEmptyIsSkipped: if everything was removed, there is no mail, and a run that says so.
func TestEmptyIsSkipped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	if _, err := b.Remove(t.Context(), "", api.DigestEventRemoval{Recipients: []string{"ann"},
		Category: "comment", EntityType: "post", EntityID: "1"}); err != nil {
		t.Fatal(err)
	}
	b.morning(t)
	runs := b.runs(t, "ann")

	if len(b.mails.all()) != 0 || len(runs) != 1 || runs[0].State != api.DigestSkipped ||
		runs[0].Reason != "empty" {
		t.Errorf("runs %+v", runs)
	}
}

// TestImmediateGathers: the first immediately, events within the gap at its end.
func TestImmediateGathers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "immediate", Gap: "5m"}})
	if r := b.add(t, about("ann", "1", "Bo"))[0]; r.State != "immediate" || !r.Due.Equal(start) {
		t.Errorf("answered %+v", r)
	}
	b.settle(t)
	for range 3 {
		b.Advance(time.Minute)
		if r := b.add(t, about("ann", "2", "Bo"))[0]; !r.Due.Equal(start.Add(5 * time.Minute)) {
			t.Errorf("answered %+v, due %v", r, r.Due)
		}
		b.settle(t)
	}
	if n := len(b.mails.all()); n != 1 {
		t.Fatalf("%d mails within the gap", n)
	}
	b.Advance(2 * time.Minute)
	b.settle(t)
	all := b.mails.all()
	if len(all) != 2 || saidIn(t, all[1]).Total != 3 {
		t.Fatalf("%d mails", len(all))
	}
}

// TestUrgentPassesQuietHours, and takes nothing else with it.
func TestUrgentPassesQuietHours(t *testing.T) {
	t.Parallel()
	b := setup(t)
	quiet := []api.DigestQuiet{{From: "22:00", Until: "07:00"}}
	email := "ann@example.com"
	if _, _, err := b.Put(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &email, Quiet: &quiet,
		Preferences: map[string]*api.DigestPreference{"comment": {Mode: "immediate"}}}); err != nil {
		t.Fatal(err)
	}
	e := about("ann", "2", "Bo")
	e.Priority = "urgent"
	r := b.add(t, about("ann", "1", "Bo"), e)
	if want := time.Date(2030, 1, 2, 7, 0, 0, 0, time.UTC); !r[0].Due.Equal(want) || !r[1].Due.Equal(start) {
		t.Errorf("due %v and %v", r[0].Due, r[1].Due)
	}
	b.settle(t)
	all := b.mails.all()
	if len(all) != 1 || saidIn(t, all[0]).Groups[0].EntityID != "2" {
		t.Fatalf("%d mails in the night", len(all))
	}
	b.morning(t)
	if all = b.mails.all(); len(all) != 2 || saidIn(t, all[1]).Groups[0].EntityID != "1" {
		t.Fatalf("%d mails", len(all))
	}
}

// TestWhoIsNotMailed: off, suppressed, left; and required kinds of those who left.
func TestWhoIsNotMailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.Kinds.Create(t.Context(), "", api.DigestKind{Category: "security",
		Required: true}); err != nil {
		t.Fatal(err)
	}
	b.prefer(t, "off", map[string]*api.DigestPreference{"comment": {Mode: "off"}})
	for _, e := range []suppression.Entry{
		{Address: "dead@example.com", Account: "default", Reason: suppression.HardBounce, Source: "test"},
		{Address: "left@example.com", Account: "default", Reason: suppression.Unsubscribe,
			List: digest.ListID("default"), Source: "test"},
	} {
		if _, err := b.stopped.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	security := about("left", "1", "Bo")
	security.Category = "security"
	r := b.add(t, about("off", "1", "Bo"), about("dead", "1", "Bo"), about("left", "1", "Bo"), security)
	for i, want := range []string{"dropped off", "dropped suppressed", "dropped left", "waiting "} {
		if got := r[i].State + " " + r[i].Reason; got != want {
			t.Errorf("event %d: %q, want %q", i, got, want)
		}
	}
	b.morning(t)
	all := b.mails.all()
	if len(all) != 1 || all[0].To[0].Address != "left@example.com" || all[0].ListID != "" {
		t.Errorf("mails %+v", all)
	}
}

// TestAFailedRunReturnsItsEventsOnce: then they are dropped, and told.
func TestAFailedRunReturnsItsEventsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts, o.Keep = 2, 2 })
	b.add(t, about("ann", "1", "Bo"), about("ann", "1", "Cy"), about("ann", "2", "Bo"))
	b.mails.failWith(errors.New("the template hangs"))
	b.morning(t)
	b.Advance(time.Minute)
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].State != api.DigestFailed || runs[0].Attempts != 2 {
		t.Fatalf("runs %+v", runs)
	}
	b.mails.failWith(nil)
	b.add(t, about("ann", "3", "Bo"))
	b.morning(t)
	all := b.mails.all()
	if len(all) != 1 {
		t.Fatalf("%d mails", len(all))
	}
	if d := saidIn(t, all[0]); d.Total != 4 || len(d.Groups) != 3 {
		t.Errorf("said %+v", d)
	}
}

// TestWithoutAnAddressEventsWait for a day, and are then reported.
func TestWithoutAnAddressEventsWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"ann", "bob"} {
		e := about(id, "1", "Bo")
		e.Email = ""
		if r := b.add(t, e)[0]; r.State != "waiting" || r.Reason != "address" || r.Due != nil {
			t.Errorf("answered %+v", r)
		}
	}
	if answer, err := b.Send(t.Context(), "", api.DigestAccount{}, "bob"); fault.CodeOf(err) != "NoAddress" {
		t.Errorf("sent to nobody: %+v, %v", answer, err)
	}
	b.Advance(time.Hour)
	b.prefer(t, "ann", nil)
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 || all[0].To[0].Address != "ann@example.com" {
		t.Fatalf("mails %+v", all)
	}
	b.Advance(24 * time.Hour)
	b.settle(t)
	runs := b.runs(t, "bob")

	if len(runs) != 1 || runs[0].State != api.DigestSkipped || runs[0].Reason != "address" ||
		runs[0].Events != 1 {
		t.Errorf("runs %+v", runs)
	}
}

// TestAChangeOfPreferencesPlansAnew: daily to weekly, and a run that is due soon finishes first.
func TestAChangeOfPreferencesPlansAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	weekly := map[string]*api.DigestPreference{"*": {Mode: "weekly", Weekdays: []string{"fri"}}}
	b.add(t, about("ann", "1", "Bo"), about("bob", "1", "Bo"))
	b.prefer(t, "ann", weekly)
	b.Advance(time.Date(2030, 1, 2, 7, 50, 0, 0, time.UTC).Sub(start))
	b.prefer(t, "bob", weekly)
	b.morning(t)
	all := b.mails.all()
	if len(all) != 1 || all[0].To[0].Address != "bob@example.com" {
		t.Fatalf("mails on Wednesday: %+v", all)
	}
	b.add(t, about("bob", "2", "Bo"))
	b.morning(t) // Thursday
	b.morning(t) // Friday
	if n := len(b.mails.all()); n != 3 {
		t.Errorf("%d mails", n)
	}
	runs := b.runs(t, "bob")
	if len(runs) != 2 || runs[0].Period != "2030-W01" || runs[1].Period != "2030-01-02" {
		t.Errorf("runs %+v", runs)
	}
}

// TestAfterAnOutageThereIsOneMail, named by the newest period.
func TestAfterAnOutageThereIsOneMail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "hourly", Minute: new(15)}})
	b.add(t, about("ann", "1", "Bo"))
	b.Advance(50 * time.Hour)
	b.settle(t)
	b.add(t, about("ann", "2", "Bo"))
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].Period != "2030-01-04T04" {
		t.Errorf("runs %+v", runs)
	}
}

// TestPausedUntil: nothing before, everything in one mail then.
func TestPausedUntil(t *testing.T) {
	t.Parallel()
	b := setup(t)
	end := start.AddDate(0, 0, 9).Add(3 * time.Hour)
	email := "ann@example.com"
	if _, _, err := b.Put(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &email,
		PausedUntil: &end}); err != nil {
		t.Fatal(err)
	}
	for day := range 9 {
		if r := b.add(t, about("ann", fmt.Sprint(day), "Bo"))[0]; !r.Due.Equal(end) {
			t.Errorf("day %d: due %v, want %v", day, r.Due, end)
		}
		b.Advance(24 * time.Hour)
		b.settle(t)
	}
	if n := len(b.mails.all()); n != 0 {
		t.Fatalf("%d mails in the pause", n)
	}
	b.Advance(3 * time.Hour)
	b.settle(t)
	if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 9 {
		t.Errorf("%d mails", len(all))
	}
}

// TestSendNow sends all waiting events, in a separate run.
func TestSendNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	answer, err := b.Send(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || answer.State != api.DigestPending || answer.Run == "" {
		t.Fatalf("%+v, %v", answer, err)
	}
	b.settle(t)
	again, err := b.Send(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || again.State != api.DigestSkipped || again.Reason != "empty" {
		b.Advance(time.Millisecond)
		if again, err = b.Send(t.Context(), "", api.DigestAccount{}, "ann"); err != nil || again.Reason != "empty" {
			t.Errorf("%+v, %v", again, err)
		}
	}
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 {
		t.Errorf("%d mails", len(all))
	}
	run, err := b.Runs.Get(t.Context(), "", answer.Run)
	if err != nil || len(run.Groups) != 1 || len(run.EventIDs) != 1 || run.State != api.DigestSubmitted {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestForgottenRecipientsLeaveNothing.
func TestForgottenRecipientsLeaveNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.morning(t)
	b.add(t, about("ann", "2", "Bo"))
	if err := b.Delete(t.Context(), "", api.DigestAccount{}, "ann"); err != nil {
		t.Fatal(err)
	}
	keys, err := b.db.Client().Keys(t.Context(), "*ann*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("left: %v, %v", keys, err)
	}
	b.morning(t)
	if n := len(b.mails.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// TestARunWaitsForAQuota: that its account may have no more messages spends no attempt.
func TestARunWaitsForAQuota(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 2 })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(&fault.Error{Kind: fault.Limited, Code: "QuotaExceeded", RetryAfter: time.Hour})
	b.morning(t)
	for range 5 {
		b.Advance(time.Hour)
		b.settle(t)
	}
	if r := b.runs(t, "ann"); len(r) != 1 || r[0].State != api.DigestPending || r[0].Attempts > 1 {
		t.Errorf("runs %+v", r)
	}
	b.mails.failWith(nil)
	b.Advance(time.Hour)
	b.settle(t)
	if n := len(b.mails.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
}
