package newsletter

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// historiesFor bounds the time of TestAnyHistoryKeepsThePromises, unless the number to run is given. To play
// 100,000 random steps and more, which takes some ten minutes:
//
//	go test ./newsletter -run TestAnyHistory -v -timeout 30m -rapid.checks=2000
const historiesFor = 15 * time.Second

// TestAnyHistoryKeepsThePromises runs random histories of a campaign in two processes on one Redis, with
// their outbox and audience. Dispatchers look, workers send batches and deliver deferred messages, events are
// followed, operators and recipients do what they may. Each operation may die, stall, be sent twice or lose
// its answer at any call to Redis and around a final dot; leases end. A relay accepts, defers, refuses, and
// cuts the connection. The model notes what really happened: attempts and dots are judged when they come, and
// once all has gone quiet, so are the states of the recipients and the counters. Then there may be another
// run.
//
// A run without flags plays the same histories every time, so that none turns red by chance. One that fails
// says with which -rapid.seed it is played again.
func TestAnyHistoryKeepsThePromises(t *testing.T) {
	t.Parallel()
	m, began := newModel(t, testredis.URL(t)), time.Now()
	checks := flag.Lookup("rapid.checks")
	short := checks.Value.String() == checks.DefValue
	if seed := flag.Lookup("rapid.seed"); short && seed.Value.String() == seed.DefValue {
		if err := flag.Set("rapid.seed", "1"); err != nil {
			t.Fatal(err)
		}
	}
	histories, steps := 0, 0
	defer func() { t.Logf("%d histories of %d steps together", histories, steps) }()
	rapid.Check(t, func(rt *rapid.T) {
		if short && time.Since(began) > historiesFor {
			return
		}
		histories++
		defer func() { steps += m.steps }()
		m.history(rt)
	})
}

// newModel connects the processes of the model to a Redis.
func newModel(t *testing.T, url string) *model {
	m := &model{t: t, eye: &process{name: "eye", db: testredis.Connect(t, redisdb.Options{URL: url})}}
	for i := range m.procs {
		p := &process{name: fmt.Sprint("process ", i+1), db: testredis.Connect(t, redisdb.Options{URL: url})}
		p.db.Client().AddHook(striking{p})
		m.procs[i] = p
	}
	return m
}

// model is a campaign in two processes, and what the history knows of it.
type model struct {
	t      *testing.T
	rt     *rapid.T
	ctx    context.Context
	clock  *testkit.Clock
	tick   atomic.Int64
	ring   *seal.Ring
	tokens *signedtoken.Ring
	log    *safeBuffer
	procs  [2]*process
	eye    *process // sees everything, and is never disturbed

	resend  bool // people in doubt are mailed again
	people  []*person
	letters map[string]*letter // by the id of the message
	replies map[string]string  // the relay's, by address
	full    time.Time          // until then the relay takes no mail
	tested  int                // attempts at test emails

	state   string // the campaign's, as it was seen last
	runs    []*started
	halted  int    // since when the campaign is paused or cancelled; 0 if it may not be
	subject string // that all mail has which begins from now on; empty if not known
	edited  int    // since when
	edits   int
	expired int // when all leases were ended last

	cursor    string // the event that was applied last
	following bool   // somebody applies events

	steps int
	notes []string
	wrong error
}

// person is somebody who may be subscribed.
type person struct {
	email   string
	ordinal uint32
	on      bool // subscribed
	sure    bool // that is certain, and so since when it is
	since   time.Time
	barred  int  // since when the person is suppressed, has left or was erased; 0: may be mailed
	stopped bool // the person was barred at some time, or may have been
	erasing bool // the person will be erased
	erased  bool
	touched int // when the person was last changed, or an email of an earlier run was
}

// account is the account of the campaign, news its list, and spring its id.
const (
	account = accounts.DefaultID
	news    = "news"
	spring  = "spring"
)

// mostAttempts is how many attempts a message has.
const mostAttempts = 3

// history runs one history.
func (m *model) history(rt *rapid.T) {
	m.begin(rt)
	defer m.release()
	for range rapid.IntRange(1, 3).Draw(rt, "phases") {
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			m.steps++
			hand{m}.step()
			m.observe()
		}
		m.settle()
		judge{m}.check()
	}
}

// begin makes a new world.
func (m *model) begin(rt *rapid.T) {
	ctx := m.t.Context()
	*m = model{t: m.t, rt: rt, ctx: ctx, procs: m.procs, eye: m.eye, log: &safeBuffer{}, cursor: "0",
		clock:   testkit.ClockAt(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		letters: map[string]*letter{}, replies: map[string]string{},
		resend: rapid.Bool().Draw(rt, "resend in doubt")}
	m.must(m.eye.db.Client().FlushDB(ctx).Err())
	var err error
	secret := []byte("0123456789abcdef0123456789abcdef")
	m.ring, err = seal.New(secret)
	m.must(err)
	m.tokens, err = signedtoken.New([]signedtoken.Key{signedtoken.KeyOf(secret)})
	m.must(err)
	for _, p := range append(m.procs[:], m.eye) {
		p.m = m
		p.start()
	}
	_, err = m.eye.audience.Lists.Create(ctx, "", api.List{ListID: news, Name: news, OptIn: "single"})
	m.must(err)
	m.populate()
	m.draft()
	m.clock.Advance(2 * time.Second)
}

// populate subscribes people. In some worlds they are in two chunks of the send log.
func (m *model) populate() {
	n := rapid.IntRange(3, 14).Draw(m.rt, "people")
	split := n
	if rapid.IntRange(0, 2).Draw(m.rt, "in two chunks") == 0 {
		split = rapid.IntRange(1, n).Draw(m.rt, "in the first chunk")
	}
	for i := range n {
		if i == split {
			key := redisdb.Key(0, "subscriber-ordinals")
			m.must(m.eye.db.Client().HSet(m.ctx, key, account, sendlog.ChunkSize).Err())
		}
		p := &person{email: fmt.Sprintf("p%d@%s.test", i, []string{"a", "b"}[i%2])}
		in := api.SubscriberRequest{Email: p.email, Consent: consent}
		in.TZ = []string{"", "Asia/Tokyo", "Europe/Vienna"}[i%3]
		in.Lists = []api.SubscriptionRequest{{ListID: news, State: "subscribed"}}
		if p.on, p.sure = rapid.IntRange(0, 7).Draw(m.rt, "is subscribed") > 0, true; !p.on {
			in.Lists = nil
		}
		sub, _, err := m.eye.audience.Create(m.ctx, "", in)
		m.must(err)
		p.ordinal, _ = audience.OrdinalOf(sub.ID)
		p.since = m.clock.Now()
		m.people = append(m.people, p)
		m.replies[p.email] = rapid.SampledFrom(replies).Draw(m.rt, "reply")
	}
}

var consent = &api.Consent{Source: "checkout", Text: "Send me news"}

// draft stores the campaign.
func (m *model) draft() {
	c := api.Campaign{Campaign: spring, Name: "Spring", Lists: []string{news}, KeepLog: true,
		CampaignContent: api.CampaignContent{Subject: "first", Text: "Hello {{subscriber.email}}\n" +
			"{{rcpt.unsubscribeUrl}}"}}
	m.subject = "first"
	if rapid.IntRange(0, 3).Draw(m.rt, "a window") == 0 {
		c.Window = &api.CampaignWindow{From: "08:00", Until: "20:00", Of: "recipient"}
	}
	if rapid.IntRange(0, 3).Draw(m.rt, "variants") == 0 {
		c.Variants = []api.CampaignVariant{{Variant: "a"}, {Variant: "b"}}
		c.Test = &api.CampaignTrial{Share: rapid.SampledFrom([]float64{0.5, 1}).Draw(m.rt, "share"),
			Metric: byHand}
	}
	c.Rate = rapid.SampledFrom([]float64{0, 1, 3, 10, 20}).Draw(m.rt, "rate") // it makes small batches
	_, err := m.eye.Create(m.ctx, "", c)
	m.must(err)
}

func (m *model) at(ordinal uint32) *person {
	for _, p := range m.people {
		if p.ordinal == ordinal {
			return p
		}
	}
	return nil
}

func (m *model) must(err error) {
	m.rt.Helper()
	if err != nil {
		m.rt.Fatalf("%v\n%s", err, m.story())
	}
}

// fail notes that a promise is broken; the first one counts.
func (m *model) fail(format string, args ...any) {
	if m.wrong == nil {
		m.wrong = fmt.Errorf("tick %d: "+format, append([]any{m.tick.Load()}, args...)...)
	}
}

func (m *model) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf("%4d ", m.tick.Load())+fmt.Sprintf(format, args...))
}

// story returns what happened.
func (m *model) story() string {
	return strings.Join(m.notes, "\n") + "\n\nlog:\n" + m.log.String()
}

// safeBuffer collects the log of all processes.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
