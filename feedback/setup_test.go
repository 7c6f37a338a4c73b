package feedback

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

const (
	testSecret = "a shared secret for tests"
	ann        = "01ARZ3NDEKTSV4RRFFQ69G5F00" // a message to ann@example.net
	crowd      = "01ARZ3NDEKTSV4RRFFQ69G5G00" // one to bob@example.net and eve@example.net, of a list
)

// bundle is a Feedback on a Redis of its own, an outbox in memory, real suppressions, and a clock that the
// test moves.
type bundle struct {
	*Feedback
	t    *testing.T
	db   *redisdb.DB
	box  *fakeOutbox
	list *flaky

	mu   sync.Mutex
	skew time.Duration
}

func setup(t *testing.T, change ...func(*Options)) *bundle {
	t.Helper()
	return setupOn(t, testredis.New(t), change...)
}

func setupOn(t *testing.T, db *redisdb.DB, change ...func(*Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, db: db, box: newFakeOutbox()}
	o := Options{
		Providers: map[provider.Name][]string{provider.Generic: {testSecret}, provider.Brevo: {testSecret},
			provider.Postmark: {testSecret}},
		Now: b.now, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{
			Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&o)
	}
	store, err := suppression.New(db, suppression.Options{Now: b.now, SoftBounces: 2, Instance: true})
	if err != nil {
		t.Fatal(err)
	}
	b.list = &flaky{Store: store}
	tokens, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(testSecret))})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(Parts{DB: db, Outbox: b.box, Suppression: b.list, Tokens: tokens,
		Account: func(_ context.Context, is func(string) bool) (string, error) {
			if is("shop") {
				return "shop", nil
			}
			return "", nil
		}}, o)
	if err != nil {
		t.Fatal(err)
	}
	b.Feedback = f
	return b
}

// startOfTime is well within what suppressions and ids can hold.
var startOfTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (b *bundle) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return startOfTime.Add(b.skew)
}

func (b *bundle) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skew += d
}

// run applies new facts until the test ends, or stop is called.
func (b *bundle) run() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Run(ctx); err != nil {
			b.t.Errorf("Run: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(stop)
	return stop
}

// tell posts a body of the generic provider.
func (b *bundle) tell(body string) error {
	b.t.Helper()
	_, err := b.Provider(b.t.Context(), Origin{Provider: provider.Generic}, b.request(body), b.now())
	return err
}

func (b *bundle) request(body string) provider.Request {
	r := provider.Request{Header: map[string][]string{"X-Webhook-Token": {testSecret}}, Body: []byte(body)}
	return r
}

// entries reads all that stands in a stream.
func (b *bundle) entries(stream string) []redisdb.Entry {
	b.t.Helper()
	var all []redisdb.Entry
	for p := range b.db.Partitions() {
		list, err := b.db.Client().XRange(b.t.Context(), redisdb.Key(p, stream), "-", "+").Result()
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range list {
			all = append(all, redisdb.Entry{ID: e.ID, Partition: p, Values: e.Values})
		}
	}
	return all
}

// applyAll applies the facts in all streams, as the readers would.
func (b *bundle) applyAll() error {
	b.t.Helper()
	for _, stream := range streams() {
		if entries := b.entries(stream); len(entries) > 0 {
			if err := b.handle(b.t.Context(), stream, entries); err != nil {
				return err
			}
		}
	}
	return nil
}

// suppressed reads the suppression of an address, as bulk mail of an account and a list would meet it:
// "reason source account list".
func (b *bundle) suppressed(address, account, list string) string {
	b.t.Helper()
	found, err := b.list.Check(b.t.Context(), suppression.Question{Account: account, List: list, Bulk: true,
		Addresses: []string{address}})
	if err != nil {
		b.t.Fatal(err)
	}
	if found[0] == nil {
		return ""
	}
	return string(found[0].Reason) + " " + found[0].Source
}

// status reads the counts of one source.
func (b *bundle) counts(source string) map[string]int64 {
	b.t.Helper()
	s, err := b.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range s.Sources {
		if one.Source == source {
			out := map[string]int64{
				"received": one.Received, "applied": one.Applied, "duplicates": one.Duplicates, "unknown": one.Unknown,
				"full": one.Full, "failed": one.Failed,
			}
			maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
			return out
		}
	}
	return nil
}

func (b *bundle) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(2 * claimFor); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("never: %s", what)
		}
	}
}

// fakeOutbox is an outbox in memory.
type fakeOutbox struct {
	mu       sync.Mutex
	messages map[string]outbox.Addressed
	refs     map[string]string
	keys     map[string]bool
	learned  []outbox.Fact // those that were new
	calls    int           // of RecordFacts
	fail     func([]outbox.Fact) error
}

func newFakeOutbox() *fakeOutbox {
	return &fakeOutbox{
		messages: map[string]outbox.Addressed{
			ann: {Known: true, Account: "shop", MessageID: "<a@shop.example>", To: []string{"ann@example.net"}},
			crowd: {Known: true, Account: "shop", ListID: "news", MessageID: "<b@shop.example>",
				To: []string{"Bob@example.net", "eve@example.net"}},
		},
		refs: map[string]string{"<own@shop.example>": ann, "generic:4XdR2s1Q": ann, "postmark:p-1": crowd},
		keys: map[string]bool{},
	}
}

func (o *fakeOutbox) RecordFacts(_ context.Context, facts []outbox.Fact) ([]outbox.FactResult, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	if o.fail != nil {
		if err := o.fail(facts); err != nil {
			return nil, err
		}
	}
	out := make([]outbox.FactResult, len(facts))
	for i, f := range facts {
		switch key := string(f.Type) + f.Key; {
		case !o.messages[f.MessageID].Known && f.Account == "":
			out[i] = outbox.FactUnmatched
		case o.keys[key]:
			out[i] = outbox.FactKnown
		default:
			o.keys[key] = true
			o.learned = append(o.learned, f)
		}
	}
	return out, nil
}

func (o *fakeOutbox) Lookup(_ context.Context, refs []string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]string, len(refs))
	for i, ref := range refs {
		out[i] = o.refs[ref]
	}
	return out, nil
}

func (o *fakeOutbox) Recipients(_ context.Context, ids []string) ([]outbox.Addressed, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]outbox.Addressed, len(ids))
	for i, id := range ids {
		out[i] = o.messages[id]
	}
	return out, nil
}

func (o *fakeOutbox) failWith(fail func([]outbox.Fact) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = fail
}

// know makes a reference known.
func (o *fakeOutbox) know(ref, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refs[ref] = id
}

// all lists what was learnt: type, message, recipient.
func (o *fakeOutbox) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []string
	for _, f := range o.learned {
		out = append(out, string(f.Type)+" "+f.MessageID+" "+f.Recipient)
	}
	slices.Sort(out)
	return out
}

// flaky is a store of suppressions that fails on request.
type flaky struct {
	*suppression.Store
	mu   sync.Mutex
	fail int // calls that fail
}

var errFlaky = errors.New("the process died here")

func (s *flaky) Add(ctx context.Context, entries ...suppression.Entry) (int, error) {
	s.mu.Lock()
	fails := s.fail > 0
	s.fail--
	s.mu.Unlock()
	if fails {
		return 0, errFlaky
	}
	return s.Store.Add(ctx, entries...)
}

// redisXAdd is a raw entry of partition 0.
func redisXAdd(stream, line string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: redisdb.Key(0, stream), Values: []string{field, line}}
}
