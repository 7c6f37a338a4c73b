package unsubscribe

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a Service on a real suppression list, with an inbox that remembers.
type bundle struct {
	*Service
	t     *testing.T
	ring  *signedtoken.Ring
	store *suppression.Store
	inbox *inbox
	log   *bytes.Buffer
	reg   *prometheus.Registry
	clock *testkit.Clock
}

type inbox struct {
	mu    sync.Mutex
	facts []outbox.Fact
	err   error
}

func (i *inbox) Append(_ context.Context, facts []outbox.Fact) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err == nil {
		i.facts = append(i.facts, facts...)
	}
	return i.err
}

type senders struct{ err error }

func (s senders) Get(_ context.Context, account string) (api.AccountInfo, error) {
	return api.AccountInfo{Account: api.Account{Name: "The " + account, Email: account + "@example.com"}}, s.err
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, inbox: &inbox{}, log: new(bytes.Buffer), reg: prometheus.NewRegistry(),
		clock: testkit.ClockAt(time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC))}
	var err error
	if b.ring, err = signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("0123456789abcdef0123456789abcdef"))}); err != nil {
		t.Fatal(err)
	}
	if b.store, err = suppression.New(testredis.New(t), suppression.Options{Now: b.clock.Now}); err != nil {
		t.Fatal(err)
	}
	b.Service, err = New(Parts{Tokens: b.ring, Suppressions: b.store, Append: b.inbox.Append,
		Account: senders{}.Get},
		Options{
			Now: b.clock.Now, Registry: b.reg,
			Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const message = "01JGJ3V8ZG0000000000000000"

func (b *bundle) visit(list, address string) Visit {
	b.t.Helper()
	token, err := b.ring.Sign(signedtoken.Unsubscribe, signedtoken.Token{Account: "shop", MessageID: message,
		List: list, Address: address})
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := b.Read(token)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// stopped is why bulk mail of an account and a list is stopped; empty if it is not.
func (b *bundle) stopped(q suppression.Question) suppression.Reason {
	b.t.Helper()
	found, err := b.store.Check(b.t.Context(), q)
	if err != nil {
		b.t.Fatal(err)
	}
	if found[0] == nil {
		return ""
	}
	return found[0].Reason
}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestLeavingAList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("news.example.com", "Ann@Example.NET")
	if v.Scope() != List {
		t.Errorf("a mail of a list is about %s", v.Scope())
	}
	v.RemoteAddress, v.UserAgent = "192.0.2.77", "Mail/1.0\r\nx"
	b.must(b.Unsubscribe(t.Context(), v, List, OneClick))
	listed, err := b.store.Blocklist(t.Context(), "", "shop", "news.example.com", 0, 0)
	if row := listed.Addresses; err != nil || row[0].Account != "shop" || row[0].RemoteAddress != "192.0.2.0" ||
		row[0].UserAgent != "Mail/1.0  x" || row[0].MessageID != message {
		t.Errorf("%+v, %v", row, err)
	}
	ann := []string{"ann@example.net"}
	for what, c := range map[string]struct {
		q    suppression.Question
		want suppression.Reason
	}{
		"the list": {suppression.Question{Account: "shop", List: "news.example.com",
			Bulk: true, Addresses: ann}, suppression.Unsubscribe},
		"the list, transactional": {suppression.Question{Account: "shop", List: "news.example.com",
			Addresses: ann}, suppression.Unsubscribe},
		"another list": {suppression.Question{Account: "shop", List: "offers.example.com",
			Bulk: true, Addresses: ann}, ""},
		"no list": {suppression.Question{Account: "shop", Addresses: ann}, ""},
		"somebody else of the same list": {suppression.Question{Account: "shop", List: "news.example.com",
			Bulk: true, Addresses: []string{"bob@example.net"}}, ""},
	} {
		if got := b.stopped(c.q); got != c.want {
			t.Errorf("%s: stopped by %q, want %q", what, got, c.want)
		}
	}
	want := []outbox.Fact{{
		Type: event.ListUnsubscribe, Account: "shop", MessageID: message, Recipient: "Ann@Example.NET",
		At: b.clock.Now().Truncate(time.Second),
		Details: event.Later{Source: "unsubscribe", Reason: "one-click", ListID: "news.example.com",
			RemoteAddress: "192.0.2.0", UserAgent: "Mail/1.0  x"},
	}}
	if diff := cmp.Diff(want, b.inbox.facts, cmpopts.IgnoreFields(outbox.Fact{}, "Key")); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if s, err := b.Standing(t.Context(), v); err != nil || s != (Standing{List: true}) ||
		!s.Unsubscribed(List) || s.Unsubscribed(All) {
		t.Errorf("standing %+v, %v", s, err)
	}
	if log := b.log.String(); strings.Contains(strings.ToLower(log), "ann@") || !strings.Contains(log, message) {
		t.Errorf("log:\n%s", log)
	}
}

func TestLeavingASenderLetsTransactionalMailPass(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("", "ann@example.net")
	if v.Scope() != All {
		t.Errorf("a mail of no list is about %s", v.Scope())
	}
	b.must(b.Unsubscribe(t.Context(), v, All, Page))
	q := suppression.Question{Account: "shop", Bulk: true, Addresses: []string{"ann@example.net"}}
	if got := b.stopped(q); got != suppression.Unsubscribe {
		t.Errorf("bulk mail is stopped by %q", got)
	}
	q.Bulk = false
	if got := b.stopped(q); got != "" {
		t.Errorf("an invoice is stopped by %q", got)
	}
	q.Account, q.Bulk = "other", true
	if got := b.stopped(q); got != "" {
		t.Errorf("another sender is stopped by %q", got)
	}
	if err := b.Unsubscribe(t.Context(), v, List, Page); !fault.Is(err, fault.NotFound) {
		t.Errorf("leaving a list that there is none of: %v", err)
	}
}

func TestRepeatedWishesAreOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("news.example.com", "ann@example.net")
	for range 5 {
		b.must(b.Unsubscribe(t.Context(), v, List, OneClick))
	}
	other := v
	other.MessageID = "01JGJ3V8ZG0000000000000011"
	b.must(b.Unsubscribe(t.Context(), other, List, OneClick))
	keys := map[string]bool{}
	for _, f := range b.inbox.facts {
		keys[f.Key+f.MessageID] = true
	}
	if len(keys) != 1 {
		t.Errorf("told under %d keys: %v", len(keys), keys)
	}
	told := len(b.inbox.facts)
	b.clock.Advance(2 * time.Hour)
	b.must(b.Unsubscribe(t.Context(), v, List, OneClick))
	if len(b.inbox.facts) != told {
		t.Error("a wish of hours ago is told again")
	}
	// Coming back and leaving again are new requests.
	b.must(b.Resubscribe(t.Context(), v, List, Page))
	b.must(b.Resubscribe(t.Context(), v, List, Page))
	b.must(b.Unsubscribe(t.Context(), v, List, Page))
	last := b.inbox.facts[told:]
	if len(last) != 2 || last[0].Type != event.ListSubscribe || last[1].Type != event.ListUnsubscribe ||
		keys[last[1].Key+message] {
		t.Errorf("told then: %+v", last)
	}
	if n := testutil.ToFloat64(b.metrics.requests.WithLabelValues("leave", "one-click", "repeated")); n != 6 {
		t.Errorf("%v repetitions are counted", n)
	}
}

func TestWishThatCouldNotBeToldIsToldByItsRepetition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("", "ann@example.net")
	b.inbox.err = fault.New(fault.Unavailable, "InboxFull", "full")
	b.must(b.Unsubscribe(t.Context(), v, All, OneClick))
	if s, err := b.Standing(t.Context(), v); err != nil || !s.All {
		t.Errorf("the wish does not hold: %+v, %v", s, err)
	}
	if n := testutil.ToFloat64(b.metrics.unsent); n != 1 {
		t.Errorf("%v untold", n)
	}
	b.inbox.err = nil
	b.must(b.Unsubscribe(t.Context(), v, All, OneClick))
	if len(b.inbox.facts) != 1 {
		t.Errorf("told: %+v", b.inbox.facts)
	}
}

func TestComingBackLeavesWhatOthersSay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("news.example.com", "ann@example.net")
	_, err := b.store.Add(t.Context(),
		suppression.Entry{Address: "ann@example.net", Reason: suppression.HardBounce, MessageID: "m1",
			Response: "550 no such user"},
		suppression.Entry{Address: "ann@example.net", Reason: suppression.SpamReport, Account: "shop"},
		suppression.Entry{Address: "ann@example.net", Reason: suppression.Manual, Account: "shop",
			List: "news.example.com"},
		suppression.Entry{Domain: "example.net", Reason: suppression.Unsubscribe, Account: "shop"},
	)
	b.must(err)
	if s, err := b.Standing(t.Context(), v); err != nil || s != (Standing{}) {
		t.Errorf("what others say is shown: %+v, %v", s, err)
	}
	for _, scope := range []Scope{List, All} {
		b.must(b.Unsubscribe(t.Context(), v, scope, Preferences))
		b.must(b.Resubscribe(t.Context(), v, scope, Preferences))
	}
	left, err := b.store.Find(t.Context(), "ann@example.net")
	b.must(err)
	if len(left) != 4 {
		t.Errorf("left: %+v", left)
	}
}

func TestNothingIsClaimedWithoutTheWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("", "ann@example.net")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Unsubscribe(ctx, v, All, OneClick); err == nil {
		t.Error("leaving succeeds without Redis")
	}
	if err := b.Resubscribe(ctx, v, All, Page); err == nil {
		t.Error("coming back succeeds without Redis")
	}
	if len(b.inbox.facts) > 0 {
		t.Errorf("told: %+v", b.inbox.facts)
	}
}

func TestLinksThatAreNotOurs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good, err := b.ring.Sign(signedtoken.Unsubscribe, signedtoken.Token{Account: "shop", MessageID: message,
		Address: "ann@example.net"})
	b.must(err)
	open, err := b.ring.Sign(signedtoken.Open, signedtoken.Token{Account: "shop", MessageID: message})
	b.must(err)
	for name, token := range map[string]string{
		"empty": "", "cut off": good[:len(good)-5], "changed": "B" + good[1:], "of another purpose": open,
		"an address": "ann@example.net", "longer": good + "AAAA",
	} {
		if _, err := b.Read(token); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := testutil.ToFloat64(b.metrics.bad.WithLabelValues("forged")) + testutil.ToFloat64(
		b.metrics.bad.WithLabelValues("unknown_key")); n != 6 {
		t.Errorf("%v bad links are counted", n)
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"ann@example.net": "a…@example.net", "ä@x.test": "ä…@x.test", `"a@b"@x.test`: `"…@x.test`, "nobody": "…",
		"@x.test": "…", "": "…",
	} {
		if got := (Visit{Address: address}).Masked(); got != want {
			t.Errorf("%q is shown as %q, want %q", address, got, want)
		}
	}
}

func TestSenderWhoIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.visit("", "ann@example.net")
	if s := b.Sender(t.Context(), v); s.Name != "The shop" {
		t.Errorf("sender %+v", s)
	}
	b.Account = senders{errors.New("no Redis")}.Get
	b.Sender(t.Context(), v)
	if !strings.Contains(b.log.String(), "sender of an unsubscribe page not known") {
		t.Errorf("log:\n%s", b.log)
	}
}
