package senders

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

const secret = "0123456789abcdef0123456789abcdef"

// bundle is Proofs on real accounts a and b, with an outbox that keeps what it gets, once for each key.
type bundle struct {
	*Proofs
	t     *testing.T
	clock *testkit.Clock
	ring  *signedtoken.Ring
	reg   *prometheus.Registry
	mails map[string]api.SubmitRequest // by idempotency key
	order []api.SubmitRequest
	fail  error // the next submit's
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, clock: testkit.ClockAt(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		reg: prometheus.NewRegistry(), mails: map[string]api.SubmitRequest{}}
	db := testredis.New(t)
	sealing, err := seal.New([]byte(secret))
	b.must(err)
	shared, err := gateways.New(db, sealing, gateways.Options{})
	b.must(err)
	people, err := accounts.New(db, sealing, shared, accounts.Options{Now: b.clock.Now})
	b.must(err)
	b.ring, err = signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(secret))})
	b.must(err)
	b.Proofs, err = New(Parts{DB: db, Tokens: b.ring, Accounts: people, Submit: b.submit,
		URL: func() string { return "https://mail.example.com/" }},
		Options{Account: "notices", Registry: b.reg, Now: b.clock.Now})
	b.must(err)
	for _, id := range []string{"a", "b", "notices"} {
		b.create(id)
	}
	return b
}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) create(id string) {
	b.t.Helper()
	_, err := b.Accounts.Create(b.t.Context(), api.Account{Account: id, Name: "Shop  of " + id,
		Email: id + "@" + id + ".example", SMTP: &api.SMTPServer{Host: "relay.example", Port: 587}})
	b.must(err)
}

func (b *bundle) submit(_ context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	if err := b.fail; err != nil {
		b.fail = nil
		return api.SubmitAnswer{}, err
	}
	if before, ok := b.mails[req.IdempotencyKey]; ok {
		if before.Text != req.Text || !before.DeliverBy.Equal(*req.DeliverBy) {
			b.t.Error("another mail under the same key")
		}
		return api.SubmitAnswer{QueueID: "q"}, nil
	}
	b.mails[req.IdempotencyKey] = req
	b.order = append(b.order, req)
	return api.SubmitAnswer{QueueID: "q"}, nil
}

func (b *bundle) ask(account, address string) api.SenderInfo {
	b.t.Helper()
	info, err := b.Ask(b.t.Context(), account, address)
	b.must(err)
	return info
}

// token returns the token of the link in the last email.
func (b *bundle) token() string {
	b.t.Helper()
	_, rest, found := strings.Cut(b.order[len(b.order)-1].Text, "https://mail.example.com/sender?t=")
	token, _, _ := strings.Cut(rest, "\n")
	if !found || token == "" {
		b.t.Fatalf("no link: %s", b.order[len(b.order)-1].Text)
	}
	return token
}

// follow reads a link and presses the button.
func (b *bundle) follow(token string) (api.SenderInfo, error) {
	v, err := b.Read(b.t.Context(), token)
	if err != nil {
		return api.SenderInfo{}, err
	}
	return b.Prove(b.t.Context(), v)
}

func (b *bundle) may(account, address string) bool {
	b.t.Helper()
	b.clock.Advance(2 * time.Second) // the cache's lifetime
	s, err := b.Accounts.Resolve(b.t.Context(), account)
	b.must(err)
	return s.MaySendAs(address)
}

// gone fails the test unless a link is refused with a code.
func (b *bundle) gone(token, code string) {
	b.t.Helper()
	if _, err := b.follow(token); !fault.Is(err, fault.NotFound) || fault.CodeOf(err) != code {
		b.t.Errorf("%v, want %s", err, code)
	}
}

func TestOnlyTheButtonVerifies(t *testing.T) {
	b := setup(t)
	info := b.ask("a", "Ann@Example.net")
	asked := b.clock.Now()
	if info.Sender != "ann@example.net" || info.Status != api.SenderPending || info.DNS != nil ||
		info.Mail == nil || !info.Mail.Expires.Equal(asked.Add(24*time.Hour)) {
		t.Errorf("%+v", info)
	}
	m := b.order[0]
	if m.Account != "notices" || m.To[0].Address != "ann@example.net" || m.Lane != api.Transactional ||
		*m.TrackClicks || *m.TrackOpens || strings.Contains(m.Text, "Shop  of") ||
		!strings.Contains(m.Text, `"Shop of a" (a)`) || !strings.Contains(m.Text, "https://mail.example.com\n") ||
		!strings.Contains(m.Text, "ignore this mail") {
		t.Errorf("%+v", m)
	}
	for range 3 { // a scanner
		v, err := b.Read(t.Context(), b.token())
		if err != nil || v.Account != "a" || v.Address != "ann@example.net" || !v.Asked.Equal(asked) {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if b.may("a", "ann@example.net") {
		t.Fatal("a visit verified")
	}
	for range 2 {
		info, err := b.follow(b.token())
		if err != nil || info.Status != api.SenderVerified || info.By != api.SenderByMail || info.Since == nil ||
			info.Since.Equal(asked) {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	if !b.may("a", "ANN@example.net") || b.may("a", "bob@example.net") || b.may("b", "ann@example.net") {
		t.Error("the wrong sender")
	}
	if info := b.ask("a", "ann@example.net"); info.Mail != nil || len(b.order) != 1 {
		t.Errorf("asked again: %+v", info)
	}
	for outcome, want := range map[string]float64{"verified": 1, "repeated": 1, "old": 0, "forged": 0} {
		if got := testutil.ToFloat64(b.metrics.links.WithLabelValues(outcome)); got != want {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
}

func TestWrongLinksVerifyNothing(t *testing.T) {
	b := setup(t)
	b.ask("a", "ann@example.net")
	token := b.token()
	id := requestID("a", "ann@example.net", b.clock.Now())
	other, err := signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("another secret of 32 bytes or so."))})
	b.must(err)
	content := signedtoken.Token{Account: "a", MessageID: id, Recipient: signedtoken.Whole,
		Address: "ann@example.net"}
	forged, err := other.Sign(signedtoken.Sender, content)
	b.must(err)
	unsubscribe, err := b.ring.Sign(signedtoken.Unsubscribe, content)
	b.must(err)
	for _, wrong := range []string{"", "x", token[:len(token)-1], token + "A", forged, unsubscribe} {
		b.gone(wrong, "UnknownLink")
	}
	for i := range len(token) {
		changed := []byte(token)
		if changed[i]++; string(changed) != token {
			if _, err := b.Read(t.Context(), string(changed)); err == nil {
				t.Errorf("byte %d of the link changed", i)
			}
		}
	}
	if _, err := b.ring.Read(signedtoken.Unsubscribe, token); err == nil {
		t.Error("the link unsubscribes")
	}
	if b.may("a", "ann@example.net") {
		t.Error("verified")
	}
	b.clock.Advance(25 * time.Hour)
	b.gone(token, "LinkOver")
}

func TestALinkIsOfOneAccountAndItsEntry(t *testing.T) {
	b := setup(t)
	b.ask("a", "ann@example.net")
	first := b.token()
	b.ask("b", "ann@example.net")
	if _, err := b.follow(first); err != nil {
		t.Fatal(err)
	}
	if b.may("b", "ann@example.net") {
		t.Error("the link of another account verified")
	}
	b.must(b.Accounts.RemoveSender(t.Context(), "a", "ann@example.net"))
	b.gone(first, "LinkOver") // the entry was removed
	b.clock.Advance(time.Hour)
	b.ask("a", "ann@example.net")
	b.gone(first, "LinkOver") // the entry before is gone
	second := b.token()
	b.must(b.Accounts.Delete(t.Context(), "a"))
	b.gone(second, "LinkOver")
	b.create("a")
	b.clock.Advance(time.Second)
	_, err := b.Accounts.PendSender(t.Context(), "a", "ann@example.net", b.clock.Now())
	b.must(err)
	b.gone(second, "LinkOver") // a deleted account of the same name had it
	if b.may("a", "ann@example.net") {
		t.Error("verified")
	}
}

func TestMailsAreLimited(t *testing.T) {
	b := setup(t)
	limited := func(account, address string) {
		t.Helper()
		_, err := b.Ask(t.Context(), account, address)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Limited || f.RetryAfter < 20*time.Hour || f.RetryAfter > 24*time.Hour {
			t.Fatalf("%+v", err)
		}
	}
	for _, account := range []string{"a", "b", "a"} { // whoever asks
		b.ask(account, "ann@example.net")
		b.ask(account, "ann@example.net") // the same request
		b.clock.Advance(11 * time.Minute)
	}
	if len(b.order) != 3 {
		t.Fatalf("%d mails", len(b.order))
	}
	limited("a", "ann@example.net")
	limited("b", "ANN@example.net")
	for i := range PerAccount - 2 {
		b.ask("a", fmt.Sprintf("p%d@example.net", i))
	}
	limited("a", "bob@example.net")
	b.ask("b", "bob@example.net")
	if list, err := b.Accounts.Senders(t.Context(), "a"); err != nil ||
		slices.ContainsFunc(list.Senders, func(s api.SenderInfo) bool { return s.Sender == "bob@example.net" }) {
		t.Errorf("a refused address is on record: %+v, %v", list, err)
	}
	b.clock.Advance(24 * time.Hour)
	b.ask("a", "ann@example.net")
}

// TestARepeatedRequestSendsOneMail covers an email that was counted, and not accepted.
func TestARepeatedRequestSendsOneMail(t *testing.T) {
	b := setup(t)
	b.fail = fault.New(fault.Unavailable, "", "away")
	if _, err := b.Ask(t.Context(), "a", "ann@example.net"); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	for range 3 {
		b.clock.Advance(time.Minute)
		b.ask("a", "ann@example.net")
	}
	if len(b.order) != 1 {
		t.Errorf("%d mails", len(b.order))
	}
	if _, err := b.follow(b.token()); err != nil {
		t.Error(err)
	}
}

func TestWhoCannotAsk(t *testing.T) {
	b := setup(t)
	for name, row := range map[string]struct {
		account, address string
		kind             fault.Kind
	}{
		"a domain":        {"a", "example.net", fault.Invalid},
		"no address":      {"a", "a@", fault.Invalid},
		"unknown account": {"x", "ann@example.net", fault.NotFound},
		"itself":          {"notices", "ann@example.net", fault.Conflict}, // it could read the link
	} {
		if _, err := b.Ask(t.Context(), row.account, row.address); !fault.Is(err, row.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.account = ""
	if _, err := b.Ask(t.Context(), "a", "ann@example.net"); fault.CodeOf(err) != "SenderMailOff" {
		t.Errorf("without an account that sends: %v", err)
	}
	if len(b.order) != 0 {
		t.Errorf("%d mails", len(b.order))
	}
}
