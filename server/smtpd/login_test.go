package smtpd_test

import (
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/smtpd"
)

// TestTokens logs in with real tokens of every kind.
func TestTokens(t *testing.T) {
	rights, err := access.New(testredis.New(t), testkit.Ring(t, "secret"),
		access.Options{Token: "bootstrap-token-of-the-test"})
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings{access: rights})
	create := func(req api.TokenRequest) string {
		created, err := rights.Create(t.Context(), req, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return created.Token
	}
	bound := create(api.TokenRequest{Description: "bound", Account: "acme", Scopes: []api.Scope{api.ScopeSend}})
	gone := create(api.TokenRequest{Description: "bound to an account that is gone", Account: "gone",
		Scopes: []api.Scope{api.ScopeSend}})
	whole := create(api.TokenRequest{Description: "unbound", Scopes: []api.Scope{api.ScopeSend}})
	reader := create(api.TokenRequest{Description: "reads", Scopes: []api.Scope{api.ScopeOutbox}})
	elsewhere := create(api.TokenRequest{
		Description: "from elsewhere", Scopes: []api.Scope{api.ScopeSend}, Restrictions: &api.Restrictions{
			Addresses: []string{"192.0.2.0/24"}},
	})
	rows := []struct{ name, user, token, want, account string }{
		{"unbound, no user", "", whole, "235 .*", ""},
		{"unbound, account", "acme", whole, "235 .*", "acme"},
		{"unbound, unknown account", "nobody", whole, "535 5.7.8 Account record was not found .*", ""},
		{"bound, no user", "", bound, "235 .*", "acme"},
		{"bound, its account", "acme", bound, "235 .*", "acme"},
		{"bound, another account", "default", bound, "535 5.7.8 Unauthorized account.*", ""},
		{"bound, account gone", "", gone, "535 5.7.8 Account record was not found .*", ""},
		{"without the scope", "acme", reader, "535 5.7.8 Unauthorized scope", ""},
		{"from elsewhere only", "acme", elsewhere, "535 5.7.8 This token may not be used from your address", ""},
		{"bootstrap", "acme", "bootstrap-token-of-the-test", "235 .*", "acme"},
		{"none", "acme", "", "535 5.7.8 Missing authentication", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := w.connect()
			c.say("EHLO x", "(?s)250.*")
			c.say("AUTH PLAIN "+plain(row.user, row.token), row.want)
			if !strings.HasPrefix(row.want, "235") {
				c.say("MAIL FROM:<>", "530 5.7.0 .*")
				return
			}
			before := len(w.outbox.all())
			c.begin()
			c.say(mailText+".", "250 .*")
			if got := w.outbox.all()[before].Account; got != row.account {
				t.Errorf("sent as %q, want %q", got, row.account)
			}
		})
	}
}

// TestRateLimitCountsMessages: a token that allows three requests sends three messages over one connection,
// the login included.
func TestRateLimitCountsMessages(t *testing.T) {
	rights, err := access.New(testredis.New(t), testkit.Ring(t, "secret"), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	created, err := rights.Create(t.Context(), api.TokenRequest{
		Description: "slow", Scopes: []api.Scope{api.ScopeSend},
		Restrictions: &api.Restrictions{RateLimit: &api.RateLimit{MaxRequests: 3, TimeWindow: 3600}},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings{access: rights})
	c := w.connect()
	c.say("EHLO x", "(?s)250.*")
	c.say("AUTH PLAIN "+plain("acme", created.Token), "235 .*")
	for range 3 {
		c.begin()
		c.say(mailText+".", "250 .*")
	}
	c.say("MAIL FROM:<>", "451 4.7.1 Rate limit exceeded; try again in 3[0-9]+ seconds")
	c.say("RCPT TO:<ann@example.net>", "503 .*")
	other := w.connect()
	other.say("EHLO x", "(?s)250.*")
	other.say("AUTH PLAIN "+plain("acme", created.Token),
		"454 4.7.0 Rate limit exceeded; try again in 3[0-9]+ seconds")
}

// TestDeletedTokenSendsNothingMore on a connection that was open before.
func TestDeletedTokenSendsNothingMore(t *testing.T) {
	rights, err := access.New(testredis.New(t), testkit.Ring(t, "secret"), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	created, err := rights.Create(t.Context(), api.TokenRequest{Description: "x", Scopes: []api.Scope{
		api.ScopeSend}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings{access: rights})
	c := w.connect()
	c.say("EHLO x", "(?s)250.*")
	c.say("AUTH PLAIN "+plain("acme", created.Token), "235 .*")
	c.begin()
	c.say(mailText+".", "250 .*")
	if _, err := rights.Delete(t.Context(), created.ID); err != nil {
		t.Fatal(err)
	}
	c.say("MAIL FROM:<>", "530 5.7.0 Bad token")
	c.say("MAIL FROM:<>", "530 5.7.0 Authentication required")
}

// TestGuessingIsSlowedDown over all connections from one address.
func TestGuessingIsSlowedDown(t *testing.T) {
	rights, err := access.New(testredis.New(t), testkit.Ring(t, "secret"), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings{access: rights})
	for range 30 {
		c := w.connect()
		c.say("EHLO x", "(?s)250.*")
		c.send("AUTH PLAIN " + plain("acme", strings.Repeat("0", 64)) + "\r\n")
		if got := c.expect("(535|454) .*"); strings.HasPrefix(got, "454") {
			if !strings.Contains(got, "4.7.0 Too many failed attempts from your address; try again in ") {
				t.Errorf("the reply is %q", got)
			}
			return
		}
	}
	t.Error("30 wrong tokens were all looked at")
}

func TestLoginWhileRedisIsAway(t *testing.T) {
	away := testredis.Connect(t, redisdb.Options{URL: testredis.URL(t)})
	rights, err := access.New(away, testkit.Ring(t, "secret"), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	w := setup(t, settings{access: rights})
	c := w.connect()
	c.say("EHLO x", "(?s)250.*")
	c.say("AUTH PLAIN "+plain("acme", token), "454 4.7.0 Redis is unavailable. Try again shortly")
}

// TestLoginNeedsTLSFromElsewhere talks to an inlet from an address that is not loopback.
func TestLoginNeedsTLSFromElsewhere(t *testing.T) {
	rows := []struct {
		name   string
		s      settings
		dialog func(c *client)
	}{
		{"no TLS here", settings{}, func(c *client) {
			c.say("EHLO x", "(?s)250.*RCPTMAX=1000")
			c.say("AUTH PLAIN "+plain("acme", token), "538 5.7.11 .*")
			c.say("MAIL FROM:<>", "530 5.7.0 Authentication required")
		}},
		{"TLS offered", settings{tls: true}, func(c *client) {
			c.say("EHLO x", "(?s)250.*250 STARTTLS")
			c.say("AUTH LOGIN", "538 5.7.11 .*")
			c.say("MAIL FROM:<>", "530 5.7.0 Must issue a STARTTLS command first")
		}},
		{"allowed without", settings{Options: smtpd.Options{InsecureAuth: true}}, func(c *client) {
			c.say("EHLO x", "(?s)250.*250 AUTH PLAIN LOGIN")
			c.say("AUTH PLAIN "+plain("acme", token), "235 .*")
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := setup(t, row.s)
			server, conn := net.Pipe()
			w.inlet.ServeFrom(server, netip.MustParseAddr("192.0.2.1"))
			c := newClient(t, conn)
			defer conn.Close()
			c.expect("220 .*")
			row.dialog(c)
		})
	}
}

func TestSTARTTLS(t *testing.T) {
	w := setup(t, settings{tls: true})
	c := w.connect()
	c.say("EHLO x", "(?s)250.*STARTTLS.*")
	c.say("AUTH PLAIN "+plain("acme", token), "235 .*")
	c.say("MAIL FROM:<> REQUIRETLS", "530 5.7.0 .*")
	c = c.startTLS(w.ca)
	c.say("MAIL FROM:<>", "503 .*") // what was said in the clear does not count
	if got := c.say("EHLO x", "(?s)250.*REQUIRETLS.*AUTH PLAIN LOGIN"); strings.Contains(got, "STARTTLS") {
		t.Error("STARTTLS is offered inside TLS")
	}
	c.say("STARTTLS", "503 .*")
	c.say("AUTH PLAIN "+plain("acme", token), "235 .*")
	c.begin()
	c.say(mailText+".", "250 .*")
	c.say("MAIL FROM:<> REQUIRETLS", "250 .*")
	c.say("RCPT TO:<ann@example.net>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(mailText+".", "250 .*")
	c.say("QUIT", "221 .*")
	c.closed()
	if got := w.outbox.all(); got[0].RequireTLS || !got[1].RequireTLS {
		t.Error("REQUIRETLS belongs to the second message and to no other")
	}
}

func TestTLSFromTheFirstByte(t *testing.T) {
	w := setup(t, settings{tls: true})
	conn, err := tls.Dial("tcp", w.inlet.AddrTLS(), &tls.Config{RootCAs: w.ca, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := newClient(t, conn)
	c.expect("220 .*")
	c.say("EHLO x", "(?s)250.*AUTH PLAIN LOGIN")
	c.say("AUTH PLAIN "+plain("acme", token), "235 .*")
	c.begin()
	c.say(mailText+".", "250 .*")
}

// TestOldTLSIsRefused: 1.2 is the least.
func TestOldTLSIsRefused(t *testing.T) {
	w := setup(t, settings{tls: true})
	conn, err := tls.Dial("tcp", w.inlet.AddrTLS(), &tls.Config{RootCAs: w.ca, ServerName: "localhost",
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil {
		conn.Close()
		t.Error("TLS 1.1 was accepted")
	}
}

// TestRenewedCertificateIsUsed without a restart, and a broken one is not.
func TestRenewedCertificateIsUsed(t *testing.T) {
	w := setup(t, settings{tls: true})
	name := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", w.inlet.AddrTLS(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := name(); got != "first" {
		t.Fatalf("the certificate is %q", got)
	}
	if err := os.WriteFile(w.files.Cert, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := name(); got != "first" {
		t.Errorf("with half a file the certificate is %q", got)
	}
	w.files.Issue(t, "the second one")
	if got := name(); got != "the second one" {
		t.Errorf("after the renewal the certificate is %q", got)
	}
}
