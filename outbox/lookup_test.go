package outbox

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// accountReads makes each read of an account fail after a number of them.
type accountReads struct{ seen, allowed atomic.Int64 }

func (*accountReads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *accountReads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "get" && strings.HasSuffix(args[1].(string), ":accounts:version") &&
			r.seen.Add(1) > r.allowed.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (*accountReads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// routed is an outbox with real accounts, keys and relays. No account is cached.
func routed(t *testing.T, db *redisdb.DB, relay *testsmtp.Server) *Outbox {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ring, err := seal.New(bytes.Repeat([]byte("k"), 32))
	must(err)
	shared, err := gateways.New(db, ring, gateways.Options{})
	must(err)
	var steps atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(2*steps.Add(1)) * time.Second) }
	host, port, err := net.SplitHostPort(relay.Addr())
	must(err)
	number, err := strconv.Atoi(port)
	must(err)
	senders, err := accounts.New(db, ring, shared, accounts.Options{Now: now, Default: &api.Account{
		Email: "app@example.com", SMTP: &api.SMTPServer{Host: host, Port: number}, DKIM: dkimKey(t, "example.com"),
	}})
	must(err)
	bounds, err := limits.New(db, limits.Options{})
	must(err)
	sender, err := smtpsend.New(smtpsend.Options{})
	must(err)
	t.Cleanup(func() { _ = sender.Close() })
	tokens, err := oauth.New(db, ring, oauth.Options{})
	must(err)
	router, err := routing.New(routing.Parts{Transports: routing.NewTransports(sender, nil, nil), Limits: bounds,
		Token:    tokens.Access,
		Gateways: shared},
		routing.Options{})
	must(err)
	keys, err := dkim.NewKeys(db, ring, dkim.Options{})
	must(err)
	c := db.Client()
	b, err := New(Parts{
		DB: db, Queue: queue.NewClient(c, queue.Options{}), Control: queue.NewControl(c), Router: router,
		Accounts: senders, Gateways: shared,
		Signer: dkim.NewSigner(keys), Templates: scriptedTemplates{},
	}, Options{})
	must(err)
	return b
}

// TestRedisAwayAfterTheAccountWasLookedUp: an attempt looks its account up once. A second look-up, for
// signature or relay, once failed with Redis. That counted as an attempt, and the last one made a dead
// letter.
func TestRedisAwayAfterTheAccountWasLookedUp(t *testing.T) {
	t.Parallel()
	for name, req := range map[string]api.SubmitRequest{
		"composed":        {Subject: "Hi", Text: "Hello"},
		"from a template": {Template: "welcome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, reads, relay := testredis.New(t), &accountReads{}, testsmtp.Start(t, testsmtp.Options{})
			reads.allowed.Store(1000)
			db.Client().AddHook(reads)
			b := routed(t, db, relay)
			req.To, req.DeliveryAttempts = for1("ann@x.test"), 1
			a, err := b.Intake.Submit(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			reads.allowed.Store(reads.seen.Load() + 1)
			b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, firstEpoch), Type: TaskDeliver,
				Queue: queue.Submit})
			m, err := b.Reader.Message(t.Context(), a.QueueID)
			if err != nil {
				t.Fatal(err)
			}
			if m.Status != api.StatusSent || len(relay.Messages()) != 1 {
				t.Errorf("%s after %d attempts with %d messages at the relay: %+v", m.Status, m.AttemptsMade,
					len(relay.Messages()), m.Error)
			}
		})
	}
}

// dkimKey is a new key of a domain.
func dkimKey(t *testing.T, domain string) *api.DKIM {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &api.DKIM{Domain: domain, Selector: "s1",
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
}

// TestEachAttemptSendsTheSameBytes, its signature included, though the message is rendered and signed each
// time.
func TestEachAttemptSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	b := routed(t, testredis.New(t), testsmtp.Start(t, testsmtp.Options{}))
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Template: "welcome", To: for1("ann@x.test")})
	if err != nil {
		t.Fatal(err)
	}
	render := func() string {
		content, err := b.Reader.Content(t.Context(), a.QueueID)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	first := render()
	if !strings.HasPrefix(first, "DKIM-Signature:") {
		t.Fatalf("not signed: %.200s", first)
	}
	for second := time.Now().Unix(); time.Now().Unix() == second; { // signatures are dated to the second
		time.Sleep(time.Millisecond)
	}
	if again := render(); again != first {
		t.Errorf("%.300s\nthen\n%.300s", first, again)
	}
}
