package digest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // a Wednesday

// bench is Digests on an empty Redis, with an outbox that keeps what it gets, and a clock that stands still
// unless it is moved.
type bench struct {
	*digest.Digests
	*testkit.Clock
	db      *redisdb.DB
	mails   *mails
	stopped *suppression.Store
}

// mails is an outbox that accepts each idempotency key once, and messages without a key always.
type mails struct {
	mu    sync.Mutex
	list  []api.SubmitRequest
	byKey map[string]int
	fail  error      // the next submits'
	mute  bool       // the next submits are accepted, and their answers lost
	dice  *rand.Rand // fails some submits, before or after the message is accepted; nil if none
	dead  map[string]bool
	held  map[string]bool // keys that are blocked
}

var errBusy = fault.New(fault.Unavailable, "", "the outbox does not answer")

func (m *mails) submit(_ context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return api.SubmitAnswer{}, m.fail
	}
	lost := 1.0
	if m.dice != nil {
		lost = m.dice.Float64()
	}
	if lost < 0.1 {
		return api.SubmitAnswer{}, errBusy
	}
	if m.held[req.IdempotencyKey] {
		return api.SubmitAnswer{}, fault.New(fault.Unprocessable, "IdempotencyKeyReused", "used before")
	}
	n, known := m.byKey[req.IdempotencyKey]
	if !known {
		n = len(m.list)
		m.list = append(m.list, req)
		if req.IdempotencyKey != "" {
			m.byKey[req.IdempotencyKey] = n
		}
	}
	if lost < 0.2 || m.mute {
		return api.SubmitAnswer{}, errBusy
	}
	return api.SubmitAnswer{QueueID: fmt.Sprint("mail-", n)}, nil
}

func (m *mails) accepted(_ context.Context, _, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, known := m.byKey[key]; known {
		return fmt.Sprint("mail-", n), nil
	}
	return "", nil
}

func (m *mails) blockKey(ctx context.Context, account, key string) (string, error) {
	id, err := m.accepted(ctx, account, key)
	m.mu.Lock()
	defer m.mu.Unlock()
	if id == "" {
		m.held[key] = true
	}
	return id, err
}

func (m *mails) all() []api.SubmitRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]api.SubmitRequest(nil), m.list...)
}

func (m *mails) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *mails) delete(_ context.Context, id string) (api.DeleteAnswer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.dead, id)
	// its key is free
	maps.DeleteFunc(m.byKey, func(_ string, n int) bool { return fmt.Sprint("mail-", n) == id })
	return api.DeleteAnswer{Deleted: true}, nil
}

func (m *mails) get(context.Context, string) (api.OutboxMessage, error) {
	return api.OutboxMessage{}, fault.New(fault.NotFound, "", "no such message")
}

func noMailing(context.Context, outbox.Shared) (*outbox.Mailing, error) {
	return nil, fault.New(fault.NotFound, "", "no mailings here")
}

func setup(t testing.TB, change ...func(*digest.Options)) *bench {
	return on(t, testredis.New(t), change...)
}

func on(t testing.TB, db *redisdb.DB, change ...func(*digest.Options)) *bench {
	t.Helper()
	b := &bench{Clock: testkit.ClockAt(start), db: db,
		mails: &mails{byKey: map[string]int{}, held: map[string]bool{}}}
	var err error
	if b.stopped, err = suppression.New(db, suppression.Options{Now: b.Now}); err != nil {
		t.Fatal(err)
	}
	b.remake(t, b.parts(), change...)
	return b
}

// remake builds the Digests of a bench, of parts.
func (b *bench) remake(t testing.TB, parts digest.Parts, change ...func(*digest.Options)) {
	t.Helper()
	o := digest.Options{Workers: 4, Hour: 8, Now: b.Now, Gap: 5 * time.Minute, Grace: 15 * time.Minute}
	for _, c := range change {
		c(&o)
	}
	var err error
	if b.Digests, err = digest.New(parts, o); err != nil {
		t.Fatal(err)
	}
}

// parts returns a bench's Parts.
func (b *bench) parts() digest.Parts {
	return digest.Parts{DB: b.db, Suppressions: b.stopped, Submit: b.mails.submit,
		Accepted: b.mails.accepted, BlockKey: b.mails.blockKey, DeleteDeadLetter: b.mails.delete,
		Get: b.mails.get, Mailing: noMailing,
		Account: func(_ context.Context, account string) error {
			if account == "nobody" {
				return fault.New(fault.NotFound, "AccountNotFound", "There is no account %q", account)
			}
			return nil
		},
		HasTemplate: func(context.Context, string, string) (bool, error) { return false, nil },
		Resting:     func(context.Context) (bool, error) { return false, nil },
	}
}

// about returns an event about a post.
func about(recipient, entity, actor string) api.DigestEvent {
	return api.DigestEvent{Recipient: recipient, Email: recipient + "@example.com", Category: "comment",
		EntityType: "post", EntityID: entity, Title: "Post " + entity,
		Actor: &api.DigestActor{ID: actor, Name: actor}}
}

// add adds events, all of which must be answered with success.
func (b *bench) add(t testing.TB, events ...api.DigestEvent) []api.DigestEventResult {
	t.Helper()
	answer, err := b.AddEvents(t.Context(), "", api.DigestEventsRequest{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range answer.Events {
		if !r.Success {
			t.Fatalf("event %d: %+v", i, r)
		}
	}
	return answer.Events
}

// settle works until nothing is due any more.
func (b *bench) settle(t testing.TB) {
	t.Helper()
	for {
		n, err := b.Work(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// saidIn returns the digest of an email.
func saidIn(t testing.TB, m api.SubmitRequest) (d struct {
	Total  int
	Groups []api.DigestGroup
	Rest   struct{ Groups, Events int }
}) {
	t.Helper()
	var params struct{ Digest any }
	params.Digest = &d
	if err := json.Unmarshal(m.Render.Params, &params); err != nil {
		t.Fatal(err)
	}
	return d
}

// runs returns the runs of a recipient, the newest first.
func (b *bench) runs(t testing.TB, recipient string) []api.DigestRun {
	t.Helper()
	page, err := b.Runs.List(t.Context(), "", api.DigestRunQuery{Recipient: recipient,
		CursorQuery: api.CursorQuery{PageSize: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return page.Runs
}

// prefer sets preferences.
func (b *bench) prefer(t testing.TB, recipient string,
	p map[string]*api.DigestPreference) api.DigestRecipient {
	t.Helper()
	email := recipient + "@example.com"
	one, _, err := b.Put(t.Context(), "", recipient, api.DigestRecipientRequest{Email: &email, Preferences: p})
	if err != nil {
		t.Fatal(err)
	}
	return one
}
