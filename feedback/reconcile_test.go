package feedback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
)

// scripted is an events API that answers what a test says.
type scripted struct {
	mu    sync.Mutex
	asked []string
	pages func(from, to time.Time, page string) (Page, error)
}

// RoundTrip implements http.RoundTripper. It answers as Mailgun does. The address of a further page has the
// range of the first.
func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	from, to := atSecond(q.Get("begin")), atSecond(q.Get("end"))
	page := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v3/example.com/events"), "/")
	s.asked = append(s.asked, fmt.Sprintf("%s to %s, page %q", from.Sub(startOfTime), to.Sub(startOfTime), page))
	got, err := s.pages(from, to, page)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, e := range got.Events {
		items = append(items, map[string]any{"event": "delivered", "id": e.Key, "recipient": e.Recipient,
			"timestamp": e.Time.Unix(), "user-variables": e.Metadata})
	}
	for range got.Broken {
		items = append(items, "no event")
	}
	next := ""
	if got.Next != "" {
		next = "https://api.mailgun.net/v3/example.com/events/" + got.Next + "?" + q.Encode()
	}
	body, err := json.Marshal(map[string]any{"items": items, "paging": map[string]string{"next": next}})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
}

func atSecond(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0)
}

// mailgun is the events API with the script as its transport.
func (s *scripted) mailgun(t *testing.T) *Mailgun {
	t.Helper()
	m, err := NewMailgun(MailgunOptions{APIKey: mailgunKey, Domain: "example.com", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	return m
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
	return setup(t, func(o *Options) { o.Mailgun = s.mailgun(t) })
}

// once reconciles if that is due, and answers how far it is.
func (b *bundle) once() progress {
	b.t.Helper()
	b.reconcileIfDue(b.t.Context())
	p, err := b.keys.progress(b.t.Context())
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
	p := b.once()
	if want := (progress{Position: startOfTime.Add(-settled), Ran: startOfTime, Events: 3,
		Broken: 1}); p != want {
		t.Errorf("%+v, want %+v", p, want)
	}
	want := []string{`-24h0m0s to -5m0s, page ""`, `-24h0m0s to -5m0s, page "p2"`,
		`-24h0m0s to -5m0s, page "p3"`}
	if diff := cmp.Diff(want, s.take()); diff != "" {
		t.Error(diff)
	}
	b.advance(59 * time.Minute)
	b.once()
	if got := s.take(); got != nil {
		t.Errorf("asked too early: %v", got)
	}
	b.advance(time.Minute)
	s.pages = func(_, _ time.Time, _ string) (Page, error) {
		return Page{Events: []provider.Event{delivery(3, time.Hour)}}, nil
	}
	b.once()
	if diff := cmp.Diff([]string{`-35m0s to 55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int64{"received": 4, "applied": 3, "duplicates": 1},
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
	p := b.once()
	if !p.Position.Equal(startOfTime.Add(-20*time.Hour)) || p.Error == "" || p.Events != 1 {
		t.Errorf("%+v", p)
	}
	s.take()
	b.advance(time.Hour)
	s.pages = func(_, _ time.Time, _ string) (Page, error) { return Page{}, nil }
	if p = b.once(); p.Error != "" || !p.Position.Equal(startOfTime.Add(55*time.Minute)) {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]string{`-20h30m0s to 55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
}

// With a full inbox nothing is noted as read that was not taken in.
func TestReconciliationWaitsForRoom(t *testing.T) {
	s := &scripted{}
	b := setup(t, func(o *Options) { o.Mailgun, o.MaxFacts = s.mailgun(t), 1 })
	if err := b.tell(said("delivered", "ann@example.net", byEcho)); err != nil {
		t.Fatal(err)
	}
	s.pages = func(_, _ time.Time, _ string) (Page, error) {
		return Page{Events: []provider.Event{delivery(1, time.Hour)}, Until: startOfTime.Add(-time.Hour)}, nil
	}
	p := b.once()
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
	b.once()
	s.take()
	b.advance(10 * 24 * time.Hour)
	b.once()
	if diff := cmp.Diff([]string{`168h0m0s to 239h55m0s, page ""`}, s.take()); diff != "" {
		t.Error(diff)
	}
}

// One process reconciles. When it ends, another one does.
func TestOneProcessReconciles(t *testing.T) {
	t.Parallel()
	one := &scripted{pages: func(_, _ time.Time, _ string) (Page, error) { return Page{}, nil }}
	two := &scripted{pages: one.pages}
	a := setup(t, func(o *Options) { o.Mailgun, o.Every = one.mailgun(t), 50*time.Millisecond })
	b := setupOn(t, a.db, func(o *Options) { o.Mailgun, o.Every = two.mailgun(t), 50*time.Millisecond })
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
		s.Reconciliation[0].Source != "mailgun" {
		t.Errorf("%+v, %v", s, err)
	}
}
