package outbox

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// simpleMailing is a mailing of a bundle, whose text shows a way to unsubscribe.
func simpleMailing(t testing.TB, b *bundle, sh Shared) *Mailing {
	t.Helper()
	sh.ListID, sh.Text = "news", "Hello {{params.name}}\nLeave: {{rcpt.unsubscribeUrl}}\n"
	if sh.Subject == "" {
		sh.Subject = "News for {{params.name}}"
	}
	l, err := b.Mailings.Mailing(t.Context(), sh)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// recipientOf is a recipient of a campaign.
func recipientOf(b *bundle, address string) Addressee {
	return Addressee{ID: newID(b.clock.Now(), 0), To: message.Address{Address: address}, ListID: "news",
		Params: map[string]any{"name": "Ann"}, Date: b.clock.Now(),
		Campaign: &CampaignMail{Events: EventsEnds, KeepLog: true,
			Campaign: event.Campaign{Campaign: "c1", Run: 1}}}
}

// marked are marks that let everything pass.
func marked() Marks {
	return Marks{Mark: func(context.Context) error { return nil }, Still: func() error { return nil }}
}

// quickRelay takes every message, and allocates little.
type quickRelay struct{}

func (quickRelay) Send(ctx context.Context, d routing.Dispatch) routing.Sent {
	if err := d.Message.BeforeDot(ctx, d.Message.To); err != nil {
		panic(err)
	}
	r := smtpsend.Result{Response: "250 ok",
		Recipients: []smtpsend.RecipientResult{{Address: d.Message.To[0], Response: "250 ok"}}}
	return routing.Sent{Result: r, Tries: []routing.Try{{Host: "relay.test:25", Result: r}}}
}

func (quickRelay) ExpectWaiting(string, int) {}

func (quickRelay) Answers(string) bool { return true }

func (quickRelay) Instead(accounts.Sender, api.Lane, string) string { return "" }

func (quickRelay) Slots(string, api.Lane) int { return 1 }

// BenchmarkDirect measures the mail of a campaign without its SMTP and without its marks.
func BenchmarkDirect(bench *testing.B) {
	b := setup(bench, Options{ServiceURL: func() string { return "https://mail.example.com" }})
	b.store.Router, b.store.Tokens = quickRelay{}, testStamps(bench)
	l, a, marks := simpleMailing(bench, b, Shared{}), recipientOf(b, "ann@x.test"), marked()
	bench.ReportAllocs()
	for n := 0; bench.Loop(); n++ {
		a.To.Address = fmt.Sprintf("p%d@x.test", n)
		if got := l.Direct(bench.Context(), a, "", marks); got.Fate != FateSent {
			bench.Fatal(got)
		}
	}
}

// roundTrips counts the commands and pipelines that are sent to Redis.
type roundTrips struct{ atomic.Int64 }

func (*roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.Add(1)
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.Add(1)
		return next(ctx, cmds)
	}
}

// TestMailOfACampaignCostsNoRoundTrip except for its marks, whether it is sent, deferred or has to wait.
func TestMailOfACampaignCostsNoRoundTrip(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{ServiceURL: func() string { return "https://mail.example.com" }})
	b.store.Tokens = testStamps(t)
	l, trips := simpleMailing(t, b, Shared{Bound: true}), &roundTrips{}
	b.store.Accounts = &altered{scriptedAccounts: b.people}
	b.sender.replies["later@x.test"] = "451 later"
	b.store.DB.Client().AddHook(trips)
	for _, to := range []string{"ann@x.test", "later@x.test", "full@x.test"} {
		if to == "full@x.test" {
			b.sender.full = b.clock.Now().Add(time.Minute)
		}
		if got := l.Direct(t.Context(), recipientOf(b, to), "", marked()); trips.Load() > 0 {
			t.Errorf("%s: %d round trips, %+v", to, trips.Load(), got)
		}
	}
}

// altered are accounts that change after their mail was submitted. lost: so does the answer to who they are.
type altered struct {
	*scriptedAccounts
	change func(*accounts.Sender)
	lost   error
	told   []error // outcomes
}

func (a *altered) Resolve(ctx context.Context, id string) (accounts.Sender, error) {
	s, err := a.scriptedAccounts.Resolve(ctx, id)
	s.Addresses, s.Gateways = []string{"app@example.com"}, []api.Route{{Gateway: "gw"}}
	if a.change != nil {
		a.change(&s)
	}
	return s, stdcmp.Or(a.lost, err)
}

func (a *altered) Outcome(ctx context.Context, id string, err error) {
	a.told = append(a.told, err)
	a.scriptedAccounts.Outcome(ctx, id, err)
}

// rule is a rule that all mail keeps to, whichever way it takes to a relay.
type rule struct {
	name   string
	shared Shared
	o      Options
	change func(b *bundle, a *altered) // directly before the attempt
	asks   bool                        // a relay is asked

	nameless bool // the addressee has no name
	// results of a message, of the first attempt of a campaign's mail, and of a later one
	want [3]string
}

// send sends an email in one of the ways and returns its result.
func (r rule) send(t *testing.T, way int) (came string, asked bool, told []error) {
	r.o.ServiceURL = func() string { return "https://mail.example.com" }
	r.o.Backoff.Base, r.o.Backoff.Factor = 10*time.Second, 2
	b := setupOn(t, testredis.New(t), r.o)
	b.sifts(t, suppression.Options{})
	b.store.Tokens = testStamps(t)
	a := &altered{scriptedAccounts: b.people}
	b.store.Accounts = a
	b.sender.got = func(smtpsend.Message) { asked = true }
	l, to := simpleMailing(t, b, r.shared), recipientOf(b, "ann@x.test")
	if r.nameless {
		to.Params = nil
	}
	id := to.ID
	switch way {
	case 0:
		id = b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Lane: api.Bulk, Gateway: r.shared.Gateway,
			Bound: r.shared.Bound, DeliveryAttempts: r.shared.Attempts})
	case 2:
		if err := l.Enqueue(t.Context(), to, b.clock.Now(), ""); err != nil {
			t.Fatal(err)
		}
		b.store.Campaign = func(context.Context, string) (Turn, error) { return l.Turn(to), nil }
	}
	r.change(b, a)
	if way == 1 {
		return came1(b, l.Direct(t.Context(), to, "", marked())), asked, a.told
	}
	b.deliver(t, id)
	rows, err := b.store.readLog(t.Context(), entriesOf([]string{id}))
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	return whatCame(b, rows[0]), asked, a.told
}

// whatCame returns a message's result: its state, why, the attempts made, and how long it waits.
func whatCame(b *bundle, r row) string {
	words := r.state
	if why := r.status.fault(r.state); why != nil {
		words += " " + why.Code
	}
	words += fmt.Sprintf(" %d", r.attempts)
	if r.state == stateDelayed {
		words += " " + redisdb.Time(r.due).Sub(b.clock.Now()).Round(time.Second).String()
	}
	return words
}

// came1 is whatCame for an email without a record.
func came1(b *bundle, s Sending) string {
	words := []string{"sent", "refused", "put off", "in doubt", "unsent"}[s.Fate]
	for _, one := range []struct {
		word string
		is   bool
	}{{" hard", s.Hard}, {" busy", s.Busy}, {" waits", s.Waits}, {" apart", s.Apart},
		{" hold " + s.Hold, s.Hold != ""}} {
		if one.is {
			words += one.word
		}
	}
	if !s.Until.IsZero() && s.Hold == "" {
		words += " " + s.Until.Sub(b.clock.Now()).Round(time.Second).String()
	}
	return words
}

// TestOneSetOfRules: a message, and the first and later attempts of a campaign's mail, keep to the same
// rules.
func TestOneSetOfRules(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(rulesOfAccounts(), rulesOfRelays(), rulesOfReplies()) {
		for way, name := range []string{"message", "first attempt", "further attempt"} {
			t.Run(r.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				came, asked, told := r.send(t, way)
				if came != r.want[way] || asked != r.asks || r.asks != (len(told) == 1) {
					t.Errorf("%s, want %s; a relay was asked: %t; the account was told %v", came, r.want[way], asked, told)
				}
			})
		}
	}
}

// is changes the account.
func is(change func(*accounts.Sender)) func(*bundle, *altered) {
	return func(_ *bundle, a *altered) { a.change = change }
}

// lost makes the account unknown for a reason.
func lost(kind fault.Kind, code string) func(*bundle, *altered) {
	return func(_ *bundle, a *altered) { a.lost = fault.New(kind, code, "no account") }
}

func heldFor(next time.Duration) func(*bundle, *altered) {
	return func(b *bundle, _ *altered) {
		b.people.held = &accounts.Held{Reason: "smtp auth: 535 no", Next: b.clock.Now().Add(next)}
	}
}

func answers(reply string) func(*bundle, *altered) {
	return func(b *bundle, _ *altered) { b.sender.replies["ann@x.test"] = reply }
}

func refuses(e smtpsend.Error) func(*bundle, *altered) {
	return func(b *bundle, _ *altered) { b.sender.refusals = map[string]*smtpsend.Error{"ann@x.test": &e} }
}

func rulesOfAccounts() []rule {
	bound, named := Shared{Bound: true}, Shared{Bound: true, Gateway: "gw"}
	return []rule{
		{name: "all is well", asks: true, change: func(*bundle, *altered) {},
			want: [3]string{"sent 1", "sent", "sent 2"}},
		{name: "the account is gone", change: lost(fault.NotFound, "AccountNotFound"),
			want: [3]string{"failed ENOACCOUNT 0", "unsent hold account", "failed ENOACCOUNT 1"}},
		{name: "the account can't be read", change: lost(fault.Unavailable, accounts.Unreadable),
			want: [3]string{"delayed 0 1m0s", "unsent 1m0s", "delayed 1 1m0s"}},
		{name: "Redis is away", change: lost(fault.Unavailable, "RedisUnavailable"),
			want: [3]string{"waiting 0", "unsent", "waiting 1"}},
		{name: "the account lost the sender", shared: bound,
			change: is(func(s *accounts.Sender) { s.Addresses = nil }),
			want:   [3]string{"failed ENOSENDER 0", "unsent hold sender", "failed ENOSENDER 1"}},
		{name: "the account lost the gateway", shared: named,
			change: is(func(s *accounts.Sender) { s.Gateways = nil }),
			want:   [3]string{"failed ENOSENDER 0", "unsent hold sender", "failed ENOSENDER 1"}},
		{name: "an unbound caller may name anything", asks: true, shared: Shared{Gateway: "gw"},
			change: is(func(s *accounts.Sender) { s.Addresses, s.Gateways = nil, nil }),
			want:   [3]string{"sent 1", "sent", "sent 2"}},
		{name: "the account is held", change: heldFor(time.Minute),
			want: [3]string{"delayed 0 1h0m0s", "unsent waits 1m0s", "delayed 1 1h0m0s"}},
		{name: "a check of the held account is due", asks: true, change: heldFor(-time.Minute),
			want: [3]string{"sent 1", "sent", "sent 2"}},
		{name: "the relay refuses the account", asks: true, change: answers("535 5.7.8 no"),
			want: [3]string{"failed EAUTH 1", "unsent hold account", "failed EAUTH 2"}},
		{name: "the relay refuses the account through a named gateway", asks: true, shared: Shared{Gateway: "gw"},
			change: answers("535 5.7.8 no"),
			want:   [3]string{"failed EAUTH 1", "unsent hold account", "failed EAUTH 2"}},
		{name: "the relay refuses the account, which is to wait", asks: true, change: func(b *bundle, a *altered) {
			b.people.hold = true
			answers("535 5.7.8 no")(b, a)
		}, want: [3]string{"delayed EAUTH 0 1h0m0s", "unsent waits 1h0m0s", "delayed EAUTH 1 1h0m0s"}},
	}
}

func rulesOfRelays() []rule {
	return []rule{
		{name: "a limit is reached",
			change: func(b *bundle, _ *altered) { b.sender.full = b.clock.Now().Add(time.Minute) },
			want:   [3]string{"delayed 0 1m0s", "unsent waits 1m0s", "delayed 1 1m0s"}},
		{name: "the limit of a domain is reached",
			change: func(b *bundle, _ *altered) {
				b.sender.full, b.sender.of = b.clock.Now().Add(time.Minute), "dest:gw:x.test"
			},
			want: [3]string{"delayed 0 1m0s", "unsent waits apart 1m0s", "delayed 1 1m0s"}},
		{name: "the servers of a domain are not reached", asks: true, change: func(b *bundle, a *altered) {
			b.sender.direct = true
			refuses(smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
				Scope: smtpsend.ScopeDestination, Err: errors.New("refused")})(b, a)
		}, want: [3]string{"delayed ESOCKET 1 20s", "put off 20s", "delayed ESOCKET 2 40s"}},
		{name: "all connections are taken",
			change: func(b *bundle, _ *altered) { b.sender.crowded = b.clock.Now().Add(time.Minute) },
			want:   [3]string{"delayed 0 1h0m0s", "unsent busy waits 1s", "delayed 1 1h0m0s"}},
		{name: "the relay is not reached", asks: true, change: refuses(smtpsend.Error{Phase: smtpsend.PhaseConnect,
			Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection, Err: errors.New("refused")}),
			want: [3]string{"delayed ESOCKET 1 20s", "unsent 20s", "delayed ESOCKET 2 40s"}},
		{name: "the relay blocks us", asks: true,
			change: refuses(smtpsend.Error{Phase: smtpsend.PhaseMail, Code: 554, Line: "554 blocked",
				Verdict: smtpsend.Block, Scope: smtpsend.ScopeConnection}),
			want: [3]string{"failed EENVELOPE 1", "unsent 20s", "failed EENVELOPE 2"}},
	}
}

func rulesOfReplies() []rule {
	return []rule{
		{name: "the address is put off", asks: true, change: answers("451 4.3.2 later"),
			want: [3]string{"delayed EENVELOPE 1 20s", "put off 20s", "delayed EENVELOPE 2 40s"}},
		{name: "the account has a schedule", asks: true, change: func(b *bundle, a *altered) {
			a.change = func(s *accounts.Sender) { s.Retry = []time.Duration{time.Minute, time.Hour} }
			answers("451 4.3.2 later")(b, a)
		}, want: [3]string{"delayed EENVELOPE 1 1m0s", "put off 1m0s", "delayed EENVELOPE 2 1h0m0s"}},
		{name: "the relay says when", asks: true,
			change: refuses(smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 451, Line: "451 in a minute",
				Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeRecipient,
				RetryAfter: time.Minute}),
			want: [3]string{"delayed EENVELOPE 1 1m0s", "put off 1m0s", "delayed EENVELOPE 2 1m0s"}},
		{name: "the last attempt is put off", asks: true, shared: Shared{Attempts: 1},
			change: answers("451 4.3.2 later"),
			want:   [3]string{"failed EENVELOPE 1", "refused", "failed EENVELOPE 2"}},
		{name: "the address does not exist", asks: true, change: answers("550 5.1.1 nobody"),
			want: [3]string{"failed EENVELOPE 1", "refused hard", "failed EENVELOPE 2"}},
		{name: "the mail is not wanted", asks: true,
			change: refuses(smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 554, Line: "554 no",
				Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage}),
			want: [3]string{"failed EENVELOPE 1", "refused", "failed EENVELOPE 2"}},
		{name: "the reply is lost", asks: true, o: Options{HoldInDoubt: true}, change: answers("dies"),
			want: [3]string{"failed EMESSAGE 1", "in doubt", "failed EMESSAGE 2"}},
	}
}

// TestEveryWayLearns: an address that does not exist is suppressed, and messages that wait for the relay are
// woken, whatever mail found that out.
func TestEveryWayLearns(t *testing.T) {
	t.Parallel()
	for way := range 2 {
		b := setupSifted(t, Options{ServiceURL: func() string { return "https://mail.example.com" }})
		b.store.Tokens = testStamps(t)
		l := simpleMailing(t, b, Shared{})
		b.sender.crowded = b.clock.Now().Add(time.Minute)
		waits := b.submit(t, api.SubmitRequest{To: for1("bob@x.test"), Lane: api.Bulk})
		b.deliver(t, waits)
		b.clock.Advance(time.Minute)
		b.sender.refusals = map[string]*smtpsend.Error{"ann@x.test": {Phase: smtpsend.PhaseRcpt, Code: 550,
			Line: "550 5.1.1 no such user", Verdict: smtpsend.Hard, Scope: smtpsend.ScopeRecipient, Suppress: true}}
		if way == 0 {
			b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Lane: api.Bulk}))
		} else {
			l.Direct(t.Context(), recipientOf(b, "ann@x.test"), "", marked())
		}
		all, err := b.store.Suppressions.Find(t.Context(), "ann@x.test")
		if err != nil || len(all) != 1 || all[0].Reason != suppression.HardBounce || all[0].MessageID == "" {
			t.Errorf("way %d: %+v, %v", way, all, err)
		}
		if state := b.recordOf(t, waits)["state"]; state != stateWaiting {
			t.Errorf("way %d: the message that waited for the relay is %s", way, state)
		}
	}
}

// TestNobodyGetsMailWithoutAnUnsubscribeLink: also if the content shows none to one person only, and only
// when the campaign is tried again.
func TestNobodyGetsMailWithoutAnUnsubscribeLink(t *testing.T) {
	t.Parallel()
	r := rule{shared: Shared{HTML: `<p>x</p>{{#if params.name}}<a href="{{rcpt.unsubscribeUrl}}">Leave</a>{{/if}}`},
		change: func(*bundle, *altered) {}}
	for way, want := range map[int]string{1: "refused", 2: "failed EMESSAGE 1"} {
		if came, asked, _ := r.send(t, way); came != "sent" && came != "sent 2" || !asked {
			t.Errorf("with a link: %s", came)
		}
		r.nameless = true
		if came, asked, _ := r.send(t, way); came != want || asked {
			t.Errorf("without a link: %s, want %s; a relay was asked: %t", came, want, asked)
		}
		r.nameless = false
	}
}

// TestCampaignsPublishWhatTheyAreAskedFor: webhooks get the events of the campaign's choice, and the archive
// all.
func TestCampaignsPublishWhatTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		events   string
		archived bool
		want     []event.Type
	}{
		{EventsNone, false, nil}, {EventsEnds, false, []event.Type{event.MessageFailed}},
		{EventsAll, false, []event.Type{event.MessageSent, event.MessageDeliveryError, event.MessageFailed}},
		{EventsNone, true, []event.Type{event.MessageSent, event.MessageDeliveryError, event.MessageFailed}},
	} {
		b := setup(t, Options{Archived: row.archived,
			ServiceURL: func() string { return "https://mail.example.com" }})
		b.store.Tokens = testStamps(t)
		l := simpleMailing(t, b, Shared{})
		b.sender.replies["later@x.test"], b.sender.replies["never@x.test"] = "451 later", "550 never"
		for _, to := range []string{"ann@x.test", "later@x.test", "never@x.test"} {
			a := recipientOf(b, to)
			a.Campaign.Events = row.events
			l.Direct(t.Context(), a, "", marked())
		}
		var got []event.Type
		for _, kind := range event.Types() {
			for range b.eventsOf(t, kind) {
				got = append(got, kind)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s, archived: %t (-want +got):\n%s", row.events, row.archived, diff)
		}
	}
}
