package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
)

// scripted is an events API that answers what a test says.
type scripted struct {
	mu    sync.Mutex
	name  string
	asked []string
	pages func(from, to time.Time, page string) (Page, error)
}

// Name returns the name of the source.
func (s *scripted) Name() string { return cmp.Or(s.name, "main") }

// Page notes what it is asked for.
func (s *scripted) Page(_ context.Context, from, to time.Time, page string) (Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("%s to %s, page %q", from.Sub(startOfTime), to.Sub(startOfTime), page))
	return s.pages(from, to, page)
}

// sources returns sources that never change.
func sources(all ...Source) func(context.Context) ([]Source, error) {
	return func(context.Context) ([]Source, error) { return all, nil }
}

func (s *scripted) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.asked
	s.asked = nil
	return all
}

// delivery is an event of the API some time before the tests begin.
func delivery(n int, before time.Duration) provider.Event {
	return provider.Event{
		Provider: provider.Mailgun, Kind: provider.Delivered, Key: fmt.Sprintf("e%d", n),
		Recipient: "ann@example.net", Time: startOfTime.Add(-before),
		Metadata: map[string]string{"postroom_id": ann},
	}
}

func setupReconcile(t *testing.T, s *scripted) *bundle {
	t.Helper()
	return setup(t, func(o *Options) { o.Sources = sources(s) })
}

// once reconciles if that is due, and answers how far it is.
func (b *bundle) once(s Source) progress {
	b.t.Helper()
	b.reconcileIfDue(b.t.Context(), s)
	p, err := b.keys.progress(b.t.Context(), s.Name())
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func TestReconciliationGoesOnWhereItWas(t *testing.T) {
	s := &scripted{}
	b := setupReconcile(t, s)
	s.pages = func(_, _ time.Time, page string) (Page, error) {
		switch page {
		case "":
			return Page{Events: []provider.Event{delivery(1, 20*time.Hour), delivery(2, 19*time.Hour)},
				Until: startOfTime.Add(-19 * time.Hour), Next: "p2"}, nil
		case "p2":
			return Page{Events: []provider.Event{delivery(3, time.Hour)}, Broken: 1,
				Until: startOfTime.Add(-time.Hour), Next: "p3"}, nil
		}
		return Page{}, nil
	}
	p := b.once(s)
	if want := (progress{Position: startOfTime.Add(-settled), Ran: startOfTime, Events: 3,
		Broken: 1}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	want := []string{`-24h0m0s to -5m0s, page ""`, `-24h0m0s to -5m0s, page "p2"`,
		`-24h0m0s to -5m0s, page "p3"`}
	if diff := gocmp.Diff(want, s.take()); diff != "" {
		t.Error(diff)
	}
	b.advance(59 * time.Minute)
	b.once(s)
	if got := s.take(); got != nil {
		t.Errorf("asked too early: %v", got)
	}
	b.advance(time.Minute)
	s.pages = func(_, _ time.Time, _ string) (Page, error) {
		return Page{Events: []provider.Event{delivery(3, time.Hour)}}, nil
	}
	b.once(s)
	if diff := gocmp.Diff([]string{`-35m0s to 55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(map[string]int64{"received": 4, "applied": 3, "duplicates": 1},
		b.counts("mailgun")); diff != "" {
		t.Error(diff)
	}
}

// The position never goes beyond what is in the inbox, whatever breaks.
func TestReconciliationBrokenOff(t *testing.T) {
	s := &scripted{}
	b := setupReconcile(t, s)
	s.pages = func(_, _ time.Time, page string) (Page, error) {
		if page == "" {
			return Page{Events: []provider.Event{delivery(1, 20*time.Hour)}, Until: startOfTime.Add(-20 * time.Hour),
				Next: "p2"}, nil
		}
		return Page{}, errors.New("the connection broke")
	}
	p := b.once(s)
	if !p.Position.Equal(startOfTime.Add(-20*time.Hour)) || p.Error == "" || p.Events != 1 {
		t.Errorf("%+v", p)
	}
	s.take()
	b.advance(time.Hour)
	s.pages = func(_, _ time.Time, _ string) (Page, error) { return Page{}, nil }
	if p = b.once(s); p.Error != "" || !p.Position.Equal(startOfTime.Add(55*time.Minute)) {
		t.Errorf("%+v", p)
	}
	if diff := gocmp.Diff([]string{`-20h30m0s to 55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
}

// With a full inbox nothing is noted as read that was not accepted.
func TestReconciliationWaitsForRoom(t *testing.T) {
	s := &scripted{}
	b := setup(t, func(o *Options) { o.Sources, o.MaxFacts = sources(s), 1 })
	if err := b.tell(said("delivered", "ann@example.net", byEcho)); err != nil {
		t.Fatal(err)
	}
	s.pages = func(_, _ time.Time, _ string) (Page, error) {
		return Page{Events: []provider.Event{delivery(1, time.Hour)}, Until: startOfTime.Add(-time.Hour)}, nil
	}
	p := b.once(s)
	if !p.Position.IsZero() || p.Error == "" {
		t.Errorf("%+v", p)
	}
	if err := b.tell(said("delivered", "ann@example.net", byEcho)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
}

// What was not looked at for days is let go, and said.
func TestReconciliationAfterALongPause(t *testing.T) {
	s := &scripted{pages: func(_, _ time.Time, _ string) (Page, error) { return Page{}, nil }}
	b := setupReconcile(t, s)
	b.once(s)
	s.take()
	b.advance(10 * 24 * time.Hour)
	b.once(s)
	if diff := gocmp.Diff([]string{`168h0m0s to 239h55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
}

// One process reconciles. When it ends, another one does.
func TestOneProcessReconciles(t *testing.T) {
	t.Parallel()
	one := &scripted{pages: func(_, _ time.Time, _ string) (Page, error) { return Page{}, nil }}
	two := &scripted{pages: one.pages}
	a := setup(t, func(o *Options) { o.Sources, o.Every = sources(one), 50*time.Millisecond })
	b := setupOn(t, a.db, func(o *Options) { o.Sources, o.Every = sources(two), 50*time.Millisecond })
	stop := a.run()
	a.eventually("the first process has reconciled, and noted when", func() bool {
		s, err := a.Status(t.Context())
		return err == nil && s.Reconciliation[0].Ran != nil
	})
	one.take()
	b.run()
	a.advance(time.Hour)
	b.advance(time.Hour)
	a.eventually("the first process goes on", func() bool { return len(one.take()) > 0 })
	if got := two.take(); got != nil {
		t.Errorf("both reconcile: %v", got)
	}
	stop()
	b.advance(time.Hour)
	b.eventually("the second process takes over", func() bool { return len(two.take()) > 0 })
	s, err := b.Status(t.Context())
	if err != nil || len(s.Reconciliation) != 1 || s.Reconciliation[0].Ran == nil ||
		s.Reconciliation[0].Source != "main" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Each source has its own position, error and note; one that is gone has no metrics.
func TestEachSourceHasItsOwnPosition(t *testing.T) {
	one := &scripted{name: "one", pages: func(_, _ time.Time, _ string) (Page, error) {
		return Page{Note: "it tells no opens"}, nil
	}}
	two := &scripted{name: "two", pages: func(_, _ time.Time, _ string) (Page, error) {
		return Page{}, errors.New("the connection broke")
	}}
	b := setup(t, func(o *Options) { o.Sources = sources(one, two) })
	first, second := b.once(one), b.once(two)
	if !first.Position.Equal(startOfTime.Add(-settled)) || first.Error != "" || !second.Position.IsZero() ||
		!strings.Contains(second.Error, "two: the connection broke") {
		t.Errorf("%+v, %+v", first, second)
	}
	s, err := b.Status(t.Context())
	if err != nil || len(s.Reconciliation) != 2 || s.Reconciliation[0].Note != "it tells no opens" ||
		s.Reconciliation[1].Source != "two" || s.Reconciliation[1].Error == "" {
		t.Errorf("%+v, %v", s.Reconciliation, err)
	}
}

// throttled is the error of a provider that asks to wait.
func throttled(wait time.Duration) error {
	return &smtpsend.Error{Verdict: smtpsend.Throttle, RetryAfter: wait, Status: 429}
}

// A short wait is waited; after a long one, and while a gateway is paused, the next run continues.
func TestReconciliationObeysRetryAfter(t *testing.T) {
	var waits []time.Duration
	answers := []error{throttled(7 * time.Second), throttled(0), nil}
	s := &scripted{pages: func(_, _ time.Time, _ string) (Page, error) {
		err := answers[0]
		answers = answers[1:]
		return Page{}, err
	}}
	b := setup(t, func(o *Options) {
		o.Sources = sources(s)
		o.Wait = func(_ context.Context, d time.Duration) { waits = append(waits, d) }
	})
	if p := b.once(s); p.Error != "" || len(answers) != 0 {
		t.Errorf("%+v, %v", p, answers)
	}
	if diff := gocmp.Diff([]time.Duration{7 * time.Second, throttledFor}, waits); diff != "" {
		t.Error(diff)
	}
	b.advance(time.Hour)
	answers = []error{throttled(3 * time.Hour)}
	if p := b.once(s); !p.Resume.Equal(b.now().Add(3 * time.Hour)) {
		t.Errorf("%+v", p)
	}
	b.advance(2 * time.Hour)
	b.once(s) // asks nothing: there is no answer left
	b.advance(time.Hour)
	answers = []error{ErrPaused}
	if p := b.once(s); !strings.Contains(p.Error, "paused") {
		t.Errorf("%+v", p)
	}
}

// An API whose list has no end is given up.
func TestReconciliationWithAnEndlessList(t *testing.T) {
	n := 0
	s := &scripted{pages: func(_, _ time.Time, _ string) (Page, error) {
		n++
		return Page{Next: fmt.Sprint(n)}, nil
	}}
	b := setupReconcile(t, s)
	if p := b.once(s); !strings.Contains(p.Error, "no end") || n != mostPages {
		t.Errorf("%+v after %d pages", p, n)
	}
}
