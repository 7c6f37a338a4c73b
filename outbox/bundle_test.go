package outbox

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// storyBegin is when every simulated clock starts.
var storyBegin = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeClock moves only when told to.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bundle is an outbox on a Redis of its own, with a relay that does as it is told.
type bundle struct {
	*Outbox
	clock  *fakeClock
	sender *scriptedSender
}

func setup(t testing.TB, o Options) *bundle {
	t.Helper()
	return setupOn(t, testredis.New(t), o)
}

func setupOn(t testing.TB, db *redisdb.DB, o Options) *bundle {
	t.Helper()
	clock := &fakeClock{at: storyBegin}
	o.Now = clock.now
	sender := &scriptedSender{replies: map[string]string{}}
	c := db.Client()
	b, err := New(Parts{
		DB: db, Queue: queue.NewClient(c, queue.Options{}), Control: queue.NewControl(c), Sender: sender, Accounts: oneAccount{},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{Outbox: b, clock: clock, sender: sender}
}

// oneAccount knows the account "default", and that "gone" does not exist.
type oneAccount struct{}

func (oneAccount) Account(_ context.Context, id string) (Account, error) {
	if id == "gone" {
		return Account{}, fault.New(fault.NotFound, "AccountNotFound", "no such account")
	}
	if id == "" {
		id = "default"
	}
	return Account{ID: id, Name: "Postroom", Email: "app@example.com", Relay: smtpsend.Relay{Host: "relay.test", Port: 25}}, nil
}

func (oneAccount) Outcome(context.Context, string, error) {}
