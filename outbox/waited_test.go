package outbox

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// wait is a wait in the timeline of a message.
type wait struct {
	From, Until string // since the beginning of the test; Until empty: it still waits
	Reason      string
}

func (b *bundle) waitsOf(t *testing.T, id string, begin time.Time) (all []wait) {
	t.Helper()
	got, err := b.Reader.MessageEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range got.Events {
		if e.Event != string(waited) {
			continue
		}
		w := wait{From: e.Date.Sub(begin).String(), Reason: e.Reason}
		if e.Until != nil {
			w.Until = e.Until.Sub(begin).String()
		}
		all = append(all, w)
	}
	return all
}

// TestWaitsAreInTheTimeline: each wait has its beginning, its end and its reason, even after the message was
// sent or cancelled. A wait that continues is one wait, and short ones are left out.
func TestWaitsAreInTheTimeline(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: time.Hour})
	var begin time.Time
	waits := func(id string) []wait { return b.waitsOf(t, id, begin) }
	later := func(d time.Duration) {
		b.clock.Advance(d)
		sweep(t, b)
	}
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	begin = b.clock.Now()
	crowd := func(d time.Duration) { b.sender.crowded = b.clock.Now().Add(d) }
	crowd(30 * time.Second)
	b.deliver(t, id)
	const connections, limit = "the relay: all connections are taken", "the limit of the relay"
	if diff := cmp.Diff([]wait{{"0s", "", connections}}, waits(id)); diff != "" {
		t.Error(diff)
	}
	later(10 * time.Second)
	b.sender.crowded = time.Time{} // so that the sweeper wakes it
	later(time.Second)
	crowd(500 * time.Millisecond)
	b.deliver(t, id) // the same wait continues
	later(500 * time.Millisecond)
	later(500 * time.Millisecond)
	b.sender.full = b.clock.Now().Add(time.Minute)
	b.deliver(t, id)
	later(time.Minute)
	b.deliver(t, id)
	want := []wait{{"0s", "11.5s", connections}, {"12s", "1m12s", limit}}
	if diff := cmp.Diff(want, waits(id)); diff != "" {
		t.Error(diff)
	}
	if m, err := b.Reader.Message(t.Context(), id); err != nil || m.Status != api.StatusSent {
		t.Errorf("%s, %v", m.Status, err)
	}

	gone := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.sender.full = b.clock.Now().Add(time.Minute)
	b.deliver(t, gone)
	b.clock.Advance(2 * time.Second)
	if _, err := b.Operations.Cancel(t.Context(), gone, ReasonAPI); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]wait{{"1m13s", "1m15s", limit}}, waits(gone)); diff != "" {
		t.Error(diff)
	}
}

// TestTheMessageThatMetTheRefusalTellsItsWait: like the messages after it, with the same reason, even when
// the trial fails.
func TestTheMessageThatMetTheRefusalTellsItsWait(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		refusal      smtpsend.Error
	}{
		{"the password", "535 5.7.8 no", smtpsend.Error{Phase: smtpsend.PhaseAuth, Code: 535,
			Line: "535 5.7.8 no"}},
		{"the certificate", "x509: it has expired",
			smtpsend.Error{Phase: smtpsend.PhaseTLS, Err: errors.New("x509: it has expired")}},
		{"the sender", "550 5.7.60 not yours", smtpsend.Error{Phase: smtpsend.PhaseMail, Code: 550,
			Line: "550 5.7.60 not yours"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.people.hold = true
			row.refusal.Verdict, row.refusal.Scope = smtpsend.Auth, smtpsend.ScopeAccount
			b.sender.refusals = map[string]*smtpsend.Error{"ann@x.test": &row.refusal}
			first, second := one(t, b), one(t, b)
			begin := b.clock.Now()
			b.deliver(t, first)
			b.clock.Advance(time.Second)
			b.deliver(t, second)
			reason := "the account is held: " + row.reason
			if diff := cmp.Diff([]wait{{"0s", "", reason}}, b.waitsOf(t, first, begin)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]wait{{"1s", "", reason}}, b.waitsOf(t, second, begin)); diff != "" {
				t.Error(diff)
			}
			b.clock.Advance(time.Minute)
			sweep(t, b) // the check is due: the first is tried again
			b.deliver(t, first)
			if diff := cmp.Diff([]wait{{"0s", "", reason}}, b.waitsOf(t, first, begin)); diff != "" {
				t.Errorf("after the check: %s", diff)
			}
		})
	}
}

// TestMailMovesToTheLineOfAnotherRelay: in its order, if its own does not answer. A message that names its
// gateway has no other way, and stays.
func TestMailMovesToTheLineOfAnotherRelay(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var ids []string
	for range 4 {
		ids = append(ids, b.submit(t, api.SubmitRequest{To: for1("ann@x.test")}))
	}
	b.sender.crowded = b.clock.Now().Add(time.Hour)
	for _, id := range []string{ids[2], ids[0], ids[3], ids[1]} {
		b.deliver(t, id)
	}
	client := b.store.DB.Client()
	client.HSet(t.Context(), redisdb.Key(0, "message", ids[1]), "gateway", "gw")
	b.sender.instead = "gateway:b"
	sweep(t, b)
	in := func(line string) []string {
		return client.ZRange(t.Context(), redisdb.Key(0, "held", line), 0, -1).Val()
	}
	moved := []string{ids[0], ids[2], ids[3]}
	if diff := cmp.Diff(moved, in("gateway:b transactional default")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{ids[1]}, in("relay:default transactional default")); diff != "" {
		t.Error(diff)
	}
	b.sender.instead, b.sender.crowded = "", time.Time{}
	for range ids {
		sweep(t, b)
	}
	for _, id := range ids {
		if m, err := b.Reader.Get(t.Context(), id); err != nil || m.State != api.Waiting {
			t.Errorf("%s, %v", m.State, err)
		}
	}
}
