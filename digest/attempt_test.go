package digest_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/outbox/templates/render"
)

// submitting replaces the Submit of a bench.
func (b *bench) submitting(t testing.TB, submit func(context.Context, api.SubmitRequest) (api.SubmitAnswer,
	error), change ...func(*digest.Options)) {
	t.Helper()
	parts := b.parts()
	parts.Submit = submit
	b.remake(t, parts, change...)
}

// hanging is an outbox that does not answer before the context ends.
type hanging struct{ reached chan struct{} }

func hang() hanging { return hanging{make(chan struct{}, 1)} }

func (h hanging) submit(ctx context.Context, _ api.SubmitRequest) (api.SubmitAnswer, error) {
	h.reached <- struct{}{}
	<-ctx.Done()
	return api.SubmitAnswer{}, ctx.Err()
}

// cutOff works until a submit hangs, if one does, ends that by its context, and lets the lease end.
func (b *bench) cutOff(t testing.TB, h hanging) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Work(ctx)
	}()
	select {
	case <-h.reached:
		cancel()
		<-done
	case <-done:
	}
	b.Advance(time.Minute)
}

// TestASubmitThatHangs is cut off, and tried again when its lease has ended.
func TestASubmitThatHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stuck := hang()
	b.submitting(t, stuck.submit)
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 2, 8, 0, 1, 0, time.UTC))
	for range 3 {
		b.cutOff(t, stuck)
	}
	b.submitting(t, b.mails.submit)
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(b.mails.all()) != 1 || runs[0].State != api.DigestSubmitted || runs[0].Attempts != 4 {
		t.Errorf("runs %+v", runs)
	}
}

// TestASubmitThatAlwaysHangs fails its run when the attempts are spent. That is reported, and the events are
// sent when the outbox answers again: in the next run, or in this one that is run again.
func TestASubmitThatAlwaysHangs(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		b := setup(t)
		tune := func(o *digest.Options) { o.Attempts, o.Drop = 3, drop }
		calls, stuck := 0, hang()
		b.submitting(t, func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
			calls++
			return stuck.submit(ctx, req)
		}, tune)
		b.add(t, about("ann", "1", "Bo"))
		b.Set(time.Date(2030, 1, 2, 8, 0, 1, 0, time.UTC))
		for range 6 {
			b.cutOff(t, stuck)
		}
		runs := b.runs(t, "ann")
		if calls != 3 || len(runs) != 1 || runs[0].State != api.DigestFailed || runs[0].Attempts != 3 ||
			!strings.Contains(runs[0].Reason, "attempt 3 did not end") {
			t.Fatalf("%d submits, runs %+v", calls, runs)
		}
		if told := b.told(t); len(told) != 1 || !strings.HasPrefix(told[0], "digestFailed ") {
			t.Errorf("told %v", told)
		}
		if state, err := b.State(t.Context()); err != nil || state.Open != 0 {
			t.Errorf("%+v, %v", state, err)
		}
		b.submitting(t, b.mails.submit, tune)
		if drop {
			if _, err := b.Runs.Retry(t.Context(), "", runs[0].Run); err != nil {
				t.Fatal(err)
			}
			b.settle(t)
		} else {
			b.morning(t)
		}
		if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 1 {
			t.Errorf("drop %v: %d mails", drop, len(all))
		}
	}
}

// TestTheLastAttemptIsCutOffAfterItsMail: the outbox has the mail of the last attempt, and its worker died
// before it knew. The run is submitted, and its events are in no other mail.
func TestTheLastAttemptIsCutOffAfterItsMail(t *testing.T) {
	t.Parallel()
	b, stuck := setup(t), hang()
	b.submitting(t, func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
		if _, err := b.mails.submit(ctx, req); err != nil {
			t.Error(err)
		}
		return stuck.submit(ctx, req)
	}, func(o *digest.Options) { o.Attempts = 1 })
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 2, 8, 0, 1, 0, time.UTC))
	b.cutOff(t, stuck)
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(runs) != 1 || runs[0].State != api.DigestSubmitted || runs[0].QueueID != "mail-0" {
		t.Errorf("runs %+v", runs)
	}
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 {
		t.Errorf("%d mails", len(all))
	}
}

// TestASubmitThatComesLate: a worker stalls before its last submit reaches the outbox, for longer than its
// lease. Its run fails meanwhile, and its events return. The submit is refused when it comes, so that each
// event is in one email; also if the run was run again, when its events stay with it.
func TestASubmitThatComesLate(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		b := setup(t)
		tune := func(o *digest.Options) { o.Attempts, o.Drop = 1, drop }
		reached, thawed, worked := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var once sync.Once
		b.submitting(t, func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
			once.Do(func() {
				close(reached)
				<-thawed
			})
			return b.mails.submit(ctx, req)
		}, tune)
		b.add(t, about("ann", "1", "Bo"))
		b.Set(time.Date(2030, 1, 2, 8, 0, 1, 0, time.UTC))
		go func() {
			defer close(worked)
			_, _ = b.Work(t.Context())
		}()
		<-reached
		b.Advance(time.Minute)
		b.settle(t) // another worker
		runs := b.runs(t, "ann")
		if len(runs) != 1 || runs[0].State != api.DigestFailed {
			t.Fatalf("drop %v: runs %+v", drop, runs)
		}
		if drop {
			if _, err := b.Runs.Retry(t.Context(), "", runs[0].Run); err != nil {
				t.Fatal(err)
			}
		}
		close(thawed)
		<-worked
		b.settle(t)
		if n := len(b.mails.all()); n != 0 && !drop {
			t.Errorf("%d mails of a run that failed", n)
		}
		b.morning(t)
		if all := b.mails.all(); len(all) != 1 || saidIn(t, all[0]).Total != 1 {
			t.Errorf("drop %v: %d mails, runs %+v", drop, len(all), b.runs(t, "ann"))
		}
	}
}

// TestAnOutboxThatIsAwaySpendsNoAttempt, however long it is away.
func TestAnOutboxThatIsAwaySpendsNoAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *digest.Options) { o.Attempts = 2 })
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errBusy)
	b.morning(t)
	for range 20 {
		b.Advance(time.Minute)
		b.settle(t)
	}
	if runs := b.runs(t, "ann"); len(runs) != 1 || runs[0].State != api.DigestPending || runs[0].Attempts != 0 ||
		!strings.Contains(runs[0].Reason, "does not answer") {
		t.Errorf("runs %+v", runs)
	}
	b.mails.failWith(nil)
	b.Advance(time.Minute)
	b.settle(t)
	if n := len(b.mails.all()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// stored is a stored template that misses no variable silently.
func stored(t testing.TB, html string) func(context.Context, api.SubmitRequest) error {
	t.Helper()
	one, err := render.Parse(render.Source{Subject: "News", HTML: html}, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, req api.SubmitRequest) error {
		var params map[string]any
		if err := json.Unmarshal(req.Render.Params, &params); err != nil {
			return err
		}
		_, err := one.Render(ctx, render.Input{Data: map[string]any{"params": params}, Strict: true})
		return err
	}
}

// TestATemplateThatMissesAVariable holds its run, which says what is missing, and fails when its attempts are
// spent. That is reported. No event is lost: the run's events, and later ones, are sent after the template is
// fixed.
func TestATemplateThatMissesAVariable(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} { // the template is fixed before, or after the run failed
		b := setup(t)
		broken, mended := stored(t, "{{params.digest.total}} for {{params.digest.company}}"), stored(t,
			"{{params.digest.total}}")
		template := broken
		b.submitting(t, func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
			if err := template(ctx, req); err != nil {
				return api.SubmitAnswer{}, err
			}
			return b.mails.submit(ctx, req)
		}, func(o *digest.Options) { o.Attempts = 3 })
		b.add(t, about("ann", "1", "Bo"))
		b.morning(t)
		runs := b.runs(t, "ann")
		if len(runs) != 1 || runs[0].State != api.DigestPending || runs[0].Attempts != 1 ||
			!strings.HasPrefix(runs[0].Reason, "TemplateVariablesMissing") {
			t.Fatalf("held as %+v", runs)
		}
		b.add(t, about("ann", "2", "Bo"))
		want, told := 2, 0 // mails
		if late {
			for range 3 {
				b.Advance(time.Hour)
				b.settle(t)
			}
			want, told = 1, 1
		}
		if all := b.told(t); len(all) != told || told > 0 && !strings.Contains(all[0],
			"digestFailed TemplateVariablesMissing") {
			t.Errorf("told %q", all)
		}
		template = mended
		b.Advance(time.Hour)
		b.settle(t)
		b.morning(t)
		total := 0
		for _, m := range b.mails.all() {
			total += saidIn(t, m).Total
		}
		if total != 2 || len(b.mails.all()) != want {
			t.Errorf("mended late %v: %d events in %d mails", late, total, len(b.mails.all()))
		}
	}
}

// TestARunWhoseTemplateWasDeletedChoosesAgain: the account's template, or a kind's. The first choice would
// fail each time.
func TestARunWhoseTemplateWasDeletedChoosesAgain(t *testing.T) {
	t.Parallel()
	for deleted, want := range map[string]string{"digest": "", "of the kind": "digest"} {
		b := setup(t)
		there, submit := map[string]bool{"digest": true, "of the kind": true}, b.mails.submit
		parts := b.parts()
		parts.HasTemplate = func(_ context.Context, _, name string) (bool, error) { return there[name], nil }
		parts.Submit = func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
			there[deleted] = false // between the choice of the run and its mail
			if req.Template != "" && !there[req.Template] {
				return api.SubmitAnswer{}, fault.New(fault.NotFound, "TemplateNotFound", "not found [%s]", req.Template)
			}
			return submit(ctx, req)
		}
		b.remake(t, parts)
		if deleted != "digest" {
			if _, err := b.Kinds.Create(t.Context(), "", api.DigestKind{Category: "comment",
				Template: deleted}); err != nil {
				t.Fatal(err)
			}
		}
		b.add(t, about("ann", "1", "Bo"))
		b.morning(t)
		run := b.runs(t, "ann")[0]
		if run.State != api.DigestPending || !strings.Contains(run.Reason, "chooses its template again") {
			t.Errorf("without %q: %+v", deleted, run)
		}
		b.Advance(time.Minute)
		b.settle(t)
		all := b.mails.all()
		if len(all) != 1 || all[0].Template != want || all[0].Template == "" && all[0].Text == "" {
			t.Errorf("without %q: mails %+v, want one by the template %q", deleted, all, want)
		}
		if run := b.runs(t, "ann")[0]; run.State != api.DigestSubmitted || run.Reason != "" || run.Attempts != 2 {
			t.Errorf("without %q: %+v", deleted, run)
		}
	}
}
