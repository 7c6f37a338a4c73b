package tracking

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"

	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret signs the tokens of the tests.
const secret = "secret-of-the-tests-32-bytes-long"

// agentOfAnn is an ordinary browser.
const agentOfAnn = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0"

var addressOfAnn = netip.MustParseAddr("192.0.2.77")

// inbox keeps what it gets, in memory. It fails while err is set.
type inbox struct {
	mu    sync.Mutex
	facts []outbox.Fact
	err   error
	calls int
}

func (i *inbox) Append(_ context.Context, facts []outbox.Fact) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls++
	if i.err != nil {
		return i.err
	}
	i.facts = append(i.facts, facts...)
	return nil
}

func (i *inbox) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
}

// called is how often it was handed something.
func (i *inbox) called() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls
}

func (i *inbox) got() []outbox.Fact {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]outbox.Fact(nil), i.facts...)
}

// world is a Tracking with a clock that tests move, and without Run: flush is called by hand.
type world struct {
	*Tracking
	t     *testing.T
	ring  *signedtoken.Ring
	inbox *inbox
	clock time.Time
	id    string // id of a message, accepted an hour ago
}

func setup(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, ring: stamps(t), inbox: &inbox{}, clock: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	w.id = w.message(time.Hour)
	o.Now = func() time.Time { return w.clock }
	o.Secret = []byte("visitors")
	var err error
	if w.Tracking, err = New(w.ring, w.inbox.Append, o); err != nil {
		t.Fatal(err)
	}
	return w
}

func stamps(t testing.TB) *signedtoken.Ring {
	t.Helper()
	ring, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(secret))})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// message is the id of one that was accepted some time ago.
func (w *world) message(ago time.Duration) string {
	id, err := ulid.New(ulid.Timestamp(w.clock.Add(-ago)), ulid.DefaultEntropy())
	if err != nil {
		w.t.Fatal(err)
	}
	return id.String()
}

func (w *world) open(id string) string {
	w.t.Helper()
	return w.token(signedtoken.Open, signedtoken.Token{Account: "shop", MessageID: id})
}

func (w *world) click(id, url string) string {
	w.t.Helper()
	return w.token(signedtoken.Click, signedtoken.Token{Account: "shop", MessageID: id, Recipient: 1, URL: url})
}

func (w *world) token(p signedtoken.Purpose, s signedtoken.Token) string {
	w.t.Helper()
	token, err := w.ring.Sign(p, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// all passes everything on and returns it.
func (w *world) all() []outbox.Fact {
	w.t.Helper()
	if err := w.flush(w.t.Context(), w.clock); err != nil {
		w.t.Fatal(err)
	}
	return w.inbox.got()
}

// by is a visit by a browser.
func by(agent string) Visit {
	return Visit{Method: http.MethodGet, Header: http.Header{"User-Agent": {agent}}, Remote: addressOfAnn}
}
