package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/webhooks"
)

// instance is everything there is to look at, as a test wants it.
type instance struct {
	mu       sync.Mutex
	now      time.Time
	counters api.Counters
	rates    []api.Rate
	asked    int // how often for them
	counts   queue.Counts
	troubled []string
	share    float64
	evicted  int64
	warnings []string
	away     []routing.Away
	refused  []string // since the last look
	tampered string
	held     []string      // campaigns
	late     time.Duration // digests'
	hooks    []webhooks.Failure
	err      error
}

func (i *instance) set(edit func(*instance)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	edit(i)
}

func (i *instance) Counters(context.Context, api.CounterQuery) (api.Counters, error) {
	i.set(func(i *instance) { i.asked++ })
	return i.counters, i.err
}
func (i *instance) Rates(context.Context, api.RatesQuery) (api.Rates, error) {
	return api.Rates{Rates: i.rates}, i.err
}
func (i *instance) Counts(context.Context, ...string) ([]queue.Counts, error) {
	return []queue.Counts{i.counts}, i.err
}
func (i *instance) Troubled(context.Context) ([]string, error)   { return i.troubled, i.err }
func (i *instance) MemoryShare(context.Context) (float64, error) { return i.share, i.err }
func (i *instance) Evicted(context.Context) (int64, error)       { return i.evicted, i.err }
func (i *instance) Durability(context.Context) (redisdb.Durability, error) {
	return redisdb.Durability{Warnings: i.warnings}, i.err
}
func (i *instance) clock() time.Time { i.mu.Lock(); defer i.mu.Unlock(); return i.now }

// bench is an instance and a process that watches it.
type bench struct {
	*instance
	*Watch
	t        *testing.T
	db       *redisdb.DB
	log      *bytes.Buffer
	registry *prometheus.Registry
}

func setup(t *testing.T, db *redisdb.DB) bench {
	return process(t, db, &instance{now: start}, nil)
}

// process makes a process that watches an instance.
func process(t *testing.T, db *redisdb.DB, i *instance, edit func(*Options)) bench {
	t.Helper()
	b := bench{instance: i, t: t, db: db, log: &bytes.Buffer{}, registry: prometheus.NewRegistry()}
	o := Options{
		Queues: []Queue{{Name: "submit", Parts: []string{"submit"}, Age: 5 * time.Minute}}, Paused: time.Hour,
		DeadLetters: 100, FailedShare: 0.5, BounceRate: 0.05, ComplaintRate: 0.001, RelayAway: 2 * time.Minute,
		DigestsLate: 10 * time.Minute, WebhookFailing: time.Hour, MaxLive: 1000, MemoryShare: 0.75,
		Now: i.clock, Registry: b.registry,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	if edit != nil {
		edit(&o)
	}
	w, err := New(Parts{DB: db, Durability: i.Durability, MemoryShare: i.MemoryShare, Evicted: i.Evicted,
		Counts: i.Counts, Counters: i.Counters, Rates: i.Rates, Troubled: i.Troubled,
		Away:    func() []routing.Away { return i.away },
		Refused: func() []string { return i.refused },
		Intact:  func() (bool, string) { return i.tampered == "", i.tampered },
		Held:    func(context.Context) ([]string, error) { return i.held, i.err },
		Late:    func(context.Context) (time.Duration, error) { return i.late, i.err },
		Failing: func(context.Context) ([]webhooks.Failure, error) { return i.hooks, i.err }}, o)
	if err != nil {
		t.Fatal(err)
	}
	b.Watch = w
	return b
}

// after lets time pass and looks.
func (b bench) after(d time.Duration) {
	b.t.Helper()
	b.set(func(i *instance) { i.now = i.now.Add(d) })
	b.look(b.t.Context())
}

// events returns the stream's events, as type and data.
func (b bench) events() []told {
	b.t.Helper()
	rows, err := b.db.Client().XRange(b.t.Context(), eventsKey(), "-", "+").Result()
	if err != nil {
		b.t.Fatal(err)
	}
	var all []told
	for _, row := range rows {
		line, _ := row.Values["e"].(string)
		e, err := event.Parse([]byte(line))
		if err != nil {
			b.t.Fatal(err)
		}
		if e.ID == "" || e.Account != "" {
			b.t.Errorf("event %+v", e)
		}
		one := told{Type: e.Type, At: e.Time}
		if err := json.Unmarshal(e.Data, &one.Data); err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

type told struct {
	Type event.Type
	At   time.Time
	Data event.Alert
}

// gauge is the metric of an alert.
func (b bench) gauge(alert string) float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "postroom_alert" && m.GetLabel()[0].GetValue() == alert {
				return m.GetGauge().GetValue()
			}
		}
	}
	b.t.Fatalf("no metric for alert %s", alert)
	return 0
}

// lines counts the log's lines that contain a text.
func (b bench) lines(text string) int { return strings.Count(b.log.String(), text) }

func (b bench) alerts() []api.Alert {
	b.t.Helper()
	all, err := b.Standing(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// TestARelayThatDoesNotAnswerSomebody: one process can't reach a relay. Others can, and do not end the alert.
func TestARelayThatDoesNotAnswerSomebody(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	b := setup(t, db)
	other := process(t, db, &instance{now: start}, nil)
	both := func(d time.Duration) { b.after(d); other.after(d) }
	b.away = []routing.Away{{Scope: "gateway:main", Since: start},
		{Scope: "relay:shop", Since: start.Add(time.Hour)}}
	both(time.Minute)
	if got := b.alerts(); len(got) > 0 {
		t.Errorf("after a minute: %+v", got)
	}
	both(time.Minute)
	want := []api.Alert{{Alert: "relayAway", Queue: "gateway:main", Value: 120, Threshold: 120,
		Since: start.Add(2 * time.Minute), Text: "Gateway main hasn't responded for 2m0s. Its messages wait, or go through " +
			"another relay. Test it with postroom gateway verify main."}}
	if diff := cmp.Diff(want, other.alerts()); diff != "" {
		t.Error(diff)
	}
	for range 20 {
		both(15 * time.Second)
	}
	if got := other.alerts(); len(got) != 1 || len(b.events()) != 1 {
		t.Errorf("%+v, %+v", got, b.events())
	}
	b.away = nil
	for range 6 {
		both(15 * time.Second)
	}
	if got := b.events(); len(b.alerts()) > 0 || len(got) != 2 || got[1].Type != event.AlertResolved {
		t.Errorf("%+v", got)
	}
}

func TestAnAlertIsRaisedAndResolvedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, testredis.New(t))
	b.after(0)
	if b.events() != nil || len(b.alerts()) != 0 || b.gauge(queueAge) != 0 || b.log.Len() != 0 {
		t.Errorf("nothing is wrong, and %v, %v, %s", b.events(), b.alerts(), b.log)
	}

	b.counts.Latency = 6 * time.Minute
	b.after(15 * time.Second)
	raised := start.Add(15 * time.Second)
	text := "The oldest due job in queue submit has waited for 6m0s. No job is being processed. Check that a process with role worker runs and has free workers."
	want := told{event.AlertRaised, raised, event.Alert{Alert: "queueAge", Queue: "submit", Text: text,
		Value: 360, Threshold: 300, Since: raised}}
	if diff := cmp.Diff([]told{want}, b.events()); diff != "" {
		t.Errorf("raised: %s", diff)
	}
	stands := []api.Alert{{Alert: "queueAge", Queue: "submit", Text: text, Value: 360, Threshold: 300,
		Since: raised}}
	if diff := cmp.Diff(stands, b.alerts()); diff != "" {
		t.Errorf("standing: %s", diff)
	}
	if b.gauge(queueAge) != 1 || b.lines("level=ERROR msg=\"alert raised\" alert=queueAge") != 1 {
		t.Errorf("metric %v, log %s", b.gauge(queueAge), b.log)
	}

	for range 5 { // it comes and goes
		b.counts.Latency = time.Minute
		b.after(30 * time.Second)
		b.counts.Latency = 7 * time.Minute
		b.after(15 * time.Second)
	}
	if n := len(b.events()); n != 1 {
		t.Errorf("%d events about one trouble", n)
	}
	if got := b.alerts(); got[0].Value != 420 || !got[0].Since.Equal(raised) {
		t.Errorf("it stands as %+v", got)
	}

	b.counts.Latency = 0
	b.after(15 * time.Second)
	b.after(45 * time.Second)
	if n := len(b.events()); n != 1 || b.gauge(queueAge) != 1 {
		t.Errorf("resolved too early: %d events", n)
	}
	b.after(15 * time.Second)
	over := b.clock()
	want.Type, want.At, want.Data.Value, want.Data.Resolved = event.AlertResolved, over, 0, &over
	want.Data.Text = "Over. It was: " + strings.Replace(text, "6m0s", "7m0s", 1)
	if diff := cmp.Diff(want, b.events()[1]); diff != "" {
		t.Errorf("resolved: %s", diff)
	}
	if len(b.alerts()) != 0 || b.gauge(queueAge) != 0 ||
		b.lines("level=INFO msg=\"alert resolved\" alert=queueAge") != 1 {
		t.Errorf("%v, metric %v, log %s", b.alerts(), b.gauge(queueAge), b.log)
	}
	b.after(time.Hour)
	if n := len(b.events()); n != 2 {
		t.Errorf("%d events in the end", n)
	}
}

func TestEachTroubleHasItsAlert(t *testing.T) {
	t.Parallel()
	for alert, edit := range map[string]func(*instance){
		queueAge:       func(i *instance) { i.counts.Latency = time.Hour },
		queuePaused:    func(i *instance) { i.counts.Paused, i.counts.PausedAt = true, start.Add(-2*time.Hour) },
		mailFails:      func(i *instance) { i.counters.FailedHour = 100 },
		recordsRefused: func(i *instance) { i.refused = []string{"token:1"} },
		accountTrouble: func(i *instance) { i.troubled = []string{"shop"} },
		outboxFull:     func(i *instance) { i.counters.Pending = 950 },
		redisMemory:    func(i *instance) { i.share = 0.7 },
		bounceRate: func(i *instance) {
			i.rates = []api.Rate{{Name: "ses", Sent: 100, Hard: 10, BounceRate: .1}, {Name: "own", Sent: 100, Hard: 4}}
		},
		complaintRate: func(i *instance) { i.rates = []api.Rate{{Name: "ses", Sent: 1000, Complained: 3}} },
		redisEvicts:   func(i *instance) { i.evicted = 1 },
		campaignHeld:  func(i *instance) { i.held = []string{"spring"} },
		digestsLate:   func(i *instance) { i.late = 10 * time.Minute },
		webhookFailing: func(i *instance) {
			i.hooks = []webhooks.Failure{{Endpoint: "crm", Since: start.Add(-2 * time.Hour), Last: start},
				{Endpoint: "shop", Since: start.Add(-5 * time.Hour), Last: start.Add(-5 * time.Hour)}}
		},
		webhookOff: func(i *instance) {
			i.hooks = []webhooks.Failure{{Endpoint: "crm", Off: "it answered 410 Gone", Since: start, Last: start}}
		},
		auditBroken: func(i *instance) { i.tampered = "2 entries are missing" },
		redisForgets: func(i *instance) {
			i.warnings = []string{"The last write to the append-only file failed: is the disk full?"}
		},
	} {
		t.Run(alert, func(t *testing.T) {
			t.Parallel()
			b := setup(t, testredis.New(t))
			edit(b.instance)
			b.after(0)
			got := b.events()
			if len(got) != 1 || got[0].Type != event.AlertRaised || got[0].Data.Alert != alert ||
				got[0].Data.Text == "" {
				t.Errorf("events %+v", got)
			}
			if b.gauge(alert) != 1 || b.lines("level=ERROR") != 1 || len(b.alerts()) != 1 {
				t.Errorf("metric %v, standing %v, log %s", b.gauge(alert), b.alerts(), b.log)
			}
		})
	}
}

// TestRefusedEventIsNoFailingEndpoint: an endpoint that refused one event, and had no other since, does not
// fail for longer and longer.
func TestRefusedEventIsNoFailingEndpoint(t *testing.T) {
	t.Parallel()
	once := webhooks.Failure{Endpoint: "crm", Since: start.Add(-5 * time.Hour), Last: start.Add(-5 * time.Hour)}
	if f := judgeWebhooks([]webhooks.Failure{once}, time.Hour); f.wrong {
		t.Errorf("got %+v", f)
	}
	again := once
	again.Last = again.Since.Add(time.Hour)
	f := judgeWebhooks([]webhooks.Failure{once, again}, time.Hour)
	if !f.wrong || f.value != 3600 || f.threshold != 3600 || !strings.Contains(f.text, "1h0m0s: crm.") {
		t.Errorf("got %+v", f)
	}
}

// TestWebhookOffStandsUntilTheEndpointIsOn, and an endpoint that is off does not fail as well.
func TestWebhookOffStandsUntilTheEndpointIsOn(t *testing.T) {
	t.Parallel()
	b := process(t, testredis.New(t), &instance{now: start}, func(o *Options) { o.WebhookFailing = 0 })
	b.hooks = []webhooks.Failure{{Endpoint: "crm", Off: "it answered 410 Gone", Since: start.Add(-9 * time.Hour),
		Last: start}}
	if f := judgeWebhooks(b.hooks, time.Hour); f.wrong {
		t.Errorf("it fails as well: %+v", f)
	}
	b.after(0)
	b.after(48 * time.Hour)
	if got := b.alerts(); len(got) != 1 || got[0].Alert != webhookOff ||
		!strings.Contains(got[0].Text, "crm (it answered 410 Gone)") {
		t.Errorf("after two days: %+v", got)
	}
	b.hooks = nil
	for range 6 {
		b.after(15 * time.Second)
	}
	if got := b.events(); len(b.alerts()) > 0 || len(got) != 2 || got[1].Type != event.AlertResolved {
		t.Errorf("%+v", got)
	}
}

// TestLateDigestsWhileTheyArePaused: digests that wait because of a pause are not late, and have as long as
// any once it is over.
func TestLateDigestsWhileTheyArePaused(t *testing.T) {
	t.Parallel()
	b := process(t, testredis.New(t), &instance{now: start}, func(o *Options) { o.Paused = 0 })
	b.counts.Paused, b.late = true, time.Hour
	b.after(0)
	b.counts.Paused = false
	b.after(9 * time.Minute)
	if got := b.alerts(); len(got) > 0 {
		t.Errorf("9 minutes after a pause: %+v", got)
	}
	b.after(time.Minute)
	want := []api.Alert{{Alert: digestsLate, Value: 600, Threshold: 600, Since: b.clock(),
		Text: judgeDigests(10*time.Minute, time.Hour).text}}
	if diff := cmp.Diff(want, b.alerts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.counts.Paused = true
	for range 6 {
		b.after(15 * time.Second)
	}
	if got := b.events(); len(b.alerts()) > 0 || len(got) != 2 || got[1].Type != event.AlertResolved {
		t.Errorf("paused again: %+v", got)
	}
}

// Counting what happened within an hour is dear, so it is not done at every look; that neither delays nor
// resolves anything else.
func TestMailIsCountedOnceAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t, testredis.New(t))
	b.counters.FailedHour = 100
	for range 20 {
		b.after(15 * time.Second)
	}
	if b.asked != 5 || len(b.events()) != 1 {
		t.Errorf("asked %d times in five minutes, %d events", b.asked, len(b.events()))
	}
	b.counters.FailedHour = 0
	for range 12 {
		b.after(15 * time.Second)
	}
	if got := b.events(); len(got) != 2 || got[1].Type != event.AlertResolved {
		t.Errorf("%+v", got)
	}
}

// TestManyProcessesRaiseOneAlert has several processes look at the same time, over and over.
func TestManyProcessesRaiseOneAlert(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	i := &instance{now: start, troubled: []string{"shop"}}
	var all []bench
	for range 4 {
		all = append(all, process(t, db, i, nil))
	}
	together := func() {
		var wg sync.WaitGroup
		for _, b := range all {
			wg.Go(func() { b.look(t.Context()) })
		}
		wg.Wait()
	}
	count := func(text string) (n int) {
		for _, b := range all {
			n += b.lines(text)
		}
		return n
	}
	for range 5 {
		together()
		i.set(func(i *instance) { i.now = i.now.Add(15 * time.Second) })
	}
	if n := len(all[0].events()); n != 1 || count("alert raised") != 1 {
		t.Errorf("%d events, %d lines", n, count("alert raised"))
	}
	i.troubled = nil
	for range 10 {
		together()
		i.set(func(i *instance) { i.now = i.now.Add(15 * time.Second) })
	}
	got := all[0].events()
	if len(got) != 2 || got[1].Type != event.AlertResolved || count("alert resolved") != 1 {
		t.Errorf("events %+v, %d lines", got, count("alert resolved"))
	}
	for _, b := range all {
		if b.gauge(accountTrouble) != 0 {
			t.Error("a process still shows the alert")
		}
	}
}

// A check that can't ask raises nothing and resolves nothing, and is reported once; the rest continues.
func TestWhatCantBeMeasured(t *testing.T) {
	t.Parallel()
	b := setup(t, testredis.New(t))
	b.evicted = 3
	b.after(0)
	b.err = errors.New("NOPERM this user has no permissions to run the 'info' command")
	for range 3 {
		b.after(time.Minute)
	}
	if n := len(b.events()); n != 1 || b.gauge(redisEvicts) != 1 {
		t.Errorf("%d events while nobody knows", n)
	}
	if n := b.lines("what=\"evicted keys\""); n != 1 {
		t.Errorf("told %d times", n)
	}
	b.after(staleAfter)
	if got := b.events(); len(got) != 2 || got[1].Type != event.AlertResolved ||
		!strings.HasPrefix(got[1].Data.Text, "Nobody watches") {
		t.Errorf("%+v", got)
	}
}

// An alert that this process does not judge, as settings differ, is left to those that do.
func TestAlertsOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	i := &instance{now: start, counters: api.Counters{FailedHour: 500}}
	judges := process(t, db, i, nil)
	other := process(t, db, i, func(o *Options) { o.DeadLetters, o.FailedShare = 0, 0 })
	for range 40 {
		judges.after(15 * time.Second)
		other.after(0)
	}
	if n := len(judges.events()); n != 1 || other.gauge(mailFails) != 1 {
		t.Errorf("%d events, metric of the other %v", n, other.gauge(mailFails))
	}
	other.after(staleAfter)
	if got := judges.events(); len(got) != 2 || got[1].Type != event.AlertResolved {
		t.Errorf("switched off everywhere: %+v", got)
	}
}

// While nothing can be written, each process reports what it notices, once, and writes what still stands when
// Redis accepts it.
func TestRedisRefusesToWrite(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := setup(t, testredis.Connect(t, redisdb.Options{URL: server.URL()}))
	refuse := func(n string) {
		t.Helper()
		if err := b.db.Client().ConfigSet(t.Context(), "min-replicas-to-write", n).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refuse("1")
	b.warnings, b.share = []string{"The disk is full."}, 0.9
	b.after(0)
	b.after(time.Minute)
	if b.events() != nil {
		t.Errorf("events %+v", b.events())
	}
	for _, alert := range []string{redisAway, redisForgets, redisMemory} {
		if b.gauge(alert) != 1 || b.lines("level=ERROR msg=\"alert raised\" alert="+alert) != 1 {
			t.Errorf("%s: metric %v, log\n%s", alert, b.gauge(alert), b.log)
		}
	}
	if got := b.alerts(); len(got) != 3 {
		t.Errorf("standing: %+v", got)
	}
	b.share = 0.1
	b.after(time.Minute)
	if b.gauge(redisMemory) != 0 || b.lines("alert resolved") != 1 {
		t.Errorf("what is over: metric %v, log\n%s", b.gauge(redisMemory), b.log)
	}
	refuse("0")
	b.after(time.Minute)
	if got := b.events(); len(got) != 1 || got[0].Data.Alert != redisForgets {
		t.Errorf("events %+v", got)
	}
	if b.gauge(redisAway) != 0 || b.gauge(redisForgets) != 1 || b.lines("alert raised") != 3 {
		t.Errorf("log\n%s", b.log)
	}
}

func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := setup(t, testredis.Connect(t, redisdb.Options{URL: server.URL()}))
	b.troubled = []string{"shop"}
	b.after(0)
	server.Kill()
	b.after(time.Minute)
	b.after(time.Minute)
	if b.gauge(redisAway) != 1 || b.gauge(accountTrouble) != 1 || b.lines("alert=redisAway") != 1 {
		t.Errorf("log\n%s", b.log)
	}
	alerts, err := b.Standing(t.Context())
	if !fault.Is(err, fault.Unavailable) || len(alerts) != 1 || alerts[0].Alert != redisAway {
		t.Errorf("%+v, %v", alerts, err)
	}
	server.Restart(t)
	for b.gauge(redisAway) == 1 && t.Context().Err() == nil {
		b.after(time.Second)
	}
	if b.lines("alert resolved\" alert=redisAway") != 1 {
		t.Errorf("log\n%s", b.log)
	}
}

// A state that another version wrote must not stop the looks, and does not stay for ever.
func TestAStateThatCantBeRead(t *testing.T) {
	t.Parallel()
	b := setup(t, testredis.New(t))
	if err := b.db.Client().HSet(t.Context(), alertsKey(), "fromTheFuture", "?").Err(); err != nil {
		t.Fatal(err)
	}
	b.after(0)
	if got := b.alerts(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestRunLooksUntilItIsStopped(t *testing.T) {
	t.Parallel()
	b := process(t, testredis.New(t), &instance{now: start, evicted: 1}, func(o *Options) {
		o.Every, o.Now = time.Millisecond, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	for deadline := time.Now().Add(2 * time.Minute); len(b.alerts()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no alert")
		}
	}
	if since := time.Since(b.alerts()[0].Since); since < 0 || since > time.Minute {
		t.Errorf("by Redis' clock it stands for %v", since)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNewRefusesWhatCantWork(t *testing.T) {
	t.Parallel()
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("a watch of nothing was made")
	}
}
