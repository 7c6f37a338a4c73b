package digest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/redisdb"
)

// TestAFailedRunIsTakenOverUntilItIsTold: if a process dies after its run failed, and before the events
// returned and that is reported, another one does the rest.
func TestAFailedRunIsTakenOverUntilItIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 1 })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errors.New("the template is gone"))
	stream := redisdb.Key(0, "events")
	if err := b.db.Client().Set(t.Context(), stream, "no stream", 0).Err(); err != nil { // emits fail
		t.Fatal(err)
	}
	b.morning(t)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].State != api.DigestFailed {
		t.Fatalf("runs %+v", runs)
	}
	if _, err := b.Runs.Retry(t.Context(), "", runs[0].Run); fault.CodeOf(err) != "RunState" {
		t.Errorf("a retry of what is not told yet: %v", err)
	}
	if err := b.db.Client().Del(t.Context(), stream).Err(); err != nil {
		t.Fatal(err)
	}
	b.Advance(time.Minute) // the lease ends
	b.settle(t)
	if all := b.told(t); len(all) != 1 {
		t.Errorf("told: %q", all)
	}
	b.mails.failWith(nil)
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 1 {
		t.Errorf("%d mails", len(all))
	}
}

// TestARetryMailsNothingEmpty: a run whose events were dropped, as they had failed before, is not retried.
func TestARetryMailsNothingEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 1 })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errors.New("the template is gone"))
	b.morning(t)
	b.morning(t)
	b.mails.failWith(nil)
	runs := b.runs(t, "ann")
	if len(runs) != 2 || runs[0].State != api.DigestFailed {
		t.Fatalf("runs %+v", runs)
	}
	for _, r := range runs {
		if _, err := b.Runs.Retry(t.Context(), "", r.Run); fault.CodeOf(err) != "RunState" {
			t.Errorf("the retry of a run of the period %s: %v", r.Period, err)
		}
	}
	b.settle(t)
	if all := b.mails.all(); len(all) != 0 {
		t.Errorf("%d mails", len(all))
	}
}

// TestARunThatDropsIsRetried: with Options.Drop a failed run keeps its events, and a retry mails them.
func TestARunThatDropsIsRetried(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts, o.Drop = 1, true })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errors.New("the template is gone"))
	b.morning(t)
	b.mails.failWith(nil)
	runs := b.runs(t, "ann")
	if len(runs) != 1 {
		t.Fatalf("runs %+v", runs)
	}
	if _, err := b.Runs.Retry(t.Context(), "", runs[0].Run); err != nil {
		t.Fatal(err)
	}
	b.settle(t)
	if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 1 {
		t.Errorf("%d mails", len(all))
	}
}

// TestAnAcceptedMailIsFoundAgain: the outbox accepted the mail of a run, the answer was lost, and the
// template was deleted since. The run is submitted, and its events are in no other mail.
func TestAnAcceptedMailIsFoundAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 1 })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.mute = true
	b.morning(t)
	b.mails.mute = false
	b.mails.failWith(errors.New("the template is gone"))
	b.Advance(time.Minute) // the lease ends
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].State != api.DigestSubmitted || runs[0].QueueID != "mail-0" {
		t.Fatalf("runs %+v", runs)
	}
	b.mails.failWith(nil)
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 {
		t.Errorf("%d mails", len(all))
	}
}
