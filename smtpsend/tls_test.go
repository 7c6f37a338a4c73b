package smtpsend_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

func TestBytesAheadOfTheHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 4096)
		_, _ = conn.Write([]byte("220 mx\r\n"))
		_, _ = conn.Read(buf)
		_, _ = conn.Write([]byte("250-mx\r\n250 STARTTLS\r\n"))
		_, _ = conn.Read(buf)
		_, _ = conn.Write([]byte("220 go\r\n250-mx\r\n250 AUTH PLAIN\r\n"))
		_, _ = conn.Read(buf)
	}()
	addr := listener.Addr().(*net.TCPAddr)
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: addr.Port, Username: "u", Password: "p"}
	e := failure(t, newSender(t, smtpsend.Options{Timeout: 20 * time.Second}).Verify(t.Context(), relay))
	<-done
	if e.Name() != "ETLS" || e.Verdict != smtpsend.Auth ||
		!strings.Contains(e.Error(), "ahead of the TLS handshake") {
		t.Errorf("%s %s: %v", e.Name(), e.Verdict, e)
	}
}

func TestTLSModes(t *testing.T) {
	type row struct {
		name    string
		server  testsmtp.Security
		relay   smtpsend.Relay
		trusted bool
		tls     bool   // the message came over TLS
		fails   string // name of the error; empty: delivered
		verdict smtpsend.Verdict
	}
	login := smtpsend.Relay{Username: "user", Password: "secret-password"}
	with := func(r smtpsend.Relay, change func(*smtpsend.Relay)) smtpsend.Relay { change(&r); return r }
	for _, row := range []row{
		{name: "auto without credentials, offered", server: testsmtp.STARTTLS, tls: true},
		{name: "auto without credentials, not offered", server: testsmtp.Clear},
		{name: "auto with credentials, offered", server: testsmtp.STARTTLS, relay: login, trusted: true, tls: true},
		{name: "auto with credentials, not offered", server: testsmtp.Clear, relay: login, fails: "ETLS",
			verdict: smtpsend.Auth},
		{name: "auto with credentials, certificate unknown", server: testsmtp.STARTTLS, relay: login, fails: "ETLS",
			verdict: smtpsend.Auth},
		{name: "opportunistic with credentials, certificate unknown", server: testsmtp.STARTTLS,
			relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSOpportunistic }), fails: "ETLS",
			verdict: smtpsend.Auth},
		{name: "required, certificate unknown", server: testsmtp.STARTTLS, relay: smtpsend.Relay{
			TLS: smtpsend.TLSRequired}, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "required, certificate not looked at", server: testsmtp.STARTTLS, relay: smtpsend.Relay{
			TLS: smtpsend.TLSRequired, InsecureSkipVerify: true}, tls: true},
		{name: "required, name is another's", server: testsmtp.STARTTLS, relay: smtpsend.Relay{
			TLS: smtpsend.TLSRequired, Host: "127.0.0.2"}, trusted: true, fails: "ETLS", verdict: smtpsend.Auth},
		{name: "required, version too low for us", server: testsmtp.STARTTLS, relay: smtpsend.Relay{
			TLS: smtpsend.TLSRequired, MinVersion: tls.VersionTLS13}, trusted: true, tls: true},
		{name: "implicit", server: testsmtp.Implicit,
			relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSImplicit }), trusted: true, tls: true},
		{name: "implicit to a port that is not", server: testsmtp.Clear, relay: smtpsend.Relay{
			TLS: smtpsend.TLSImplicit}, fails: "ETLS", verdict: smtpsend.Soft},
		{name: "none", server: testsmtp.STARTTLS, relay: smtpsend.Relay{TLS: smtpsend.TLSNone}},
		{name: "none with credentials on this machine", server: testsmtp.Clear,
			relay: with(login, func(r *smtpsend.Relay) { r.TLS = smtpsend.TLSNone })},
		{name: "login refused", server: testsmtp.STARTTLS,
			relay: with(login, func(r *smtpsend.Relay) { r.Password = "wrong-password" }), trusted: true,
			fails: "EAUTH", verdict: smtpsend.Auth},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o := testsmtp.Options{Security: row.server}
			if row.relay.Username != "" {
				o.Username, o.Password = "user", "secret-password"
			}
			if row.relay.Host != "" {
				o.Addr = "0.0.0.0:0"
			}
			server := testsmtp.Start(t, o)
			if row.relay.Host == "" {
				row.relay.Host = server.Host()
			}
			row.relay.Port = server.Port()
			if row.trusted {
				row.relay.CA = server.CA()
			}
			var log bytes.Buffer
			sender := newSender(t, smtpsend.Options{Timeout: 10 * time.Second,
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			result, err := sender.Send(t.Context(), row.relay, mail("b@example.org"))
			if row.fails == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := server.Wait(1)[0]; got.TLS != row.tls || (result.TLS != "") != row.tls ||
					got.Login != row.relay.Username {
					t.Errorf("TLS %v (%s), login %q", got.TLS, result.TLS, got.Login)
				}
				if err := sender.Verify(t.Context(), row.relay); err != nil {
					t.Errorf("verify: %v", err)
				}
			} else {
				e := failure(t, err)
				if e.Name() != row.fails || e.Verdict != row.verdict || e.Scope != smtpsend.ScopeAccount {
					t.Errorf("%s %s %s: %v", e.Name(), e.Verdict, e.Scope, e)
				}
				if verify := failure(t, sender.Verify(t.Context(), row.relay)); verify.Name() != row.fails {
					t.Errorf("verify: %v", verify)
				}
			}
			if said := fmt.Sprint(err) + log.String(); strings.Contains(said, "password") {
				t.Errorf("a password is shown: %s", said)
			}
		})
	}
}

// TestNeverLogsInInClear: what a relay elsewhere would need is an address that is not loopback; one of this
// machine's own will do.
func TestNeverLogsInInClear(t *testing.T) {
	host := outwardAddress(t)
	server := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort(host, "0"), Username: "u", Password: "p",
		Record: true})
	sender := newSender(t, smtpsend.Options{})
	for _, mode := range []smtpsend.TLSMode{smtpsend.TLSAuto, smtpsend.TLSRequired, smtpsend.TLSOpportunistic,
		smtpsend.TLSNone} {
		relay := smtpsend.Relay{Host: host, Port: server.Port(), TLS: mode, Username: "u", Password: "p"}
		e := failure(t, sender.Verify(t.Context(), relay))
		if e.Verdict != smtpsend.Auth {
			t.Errorf("%s: %s: %v", mode, e.Verdict, e)
		}
	}
	if i := slices.IndexFunc(server.Commands(), func(c string) bool {
		return strings.HasPrefix(c, "AUTH")
	}); i >= 0 {
		t.Fatal("logged in")
	}
	relay := smtpsend.Relay{Host: host, Port: server.Port(), TLS: smtpsend.TLSNone, Username: "u", Password: "p",
		AllowInsecureAuth: true}
	if err := sender.Verify(t.Context(), relay); err != nil {
		t.Errorf("allowed, and yet: %v", err)
	}
}

func outwardAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no address besides loopback")
	return ""
}

func TestTokens(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "user",
		Token: "token-1"})
	sender := newSender(t, smtpsend.Options{})
	for _, method := range []string{"", "XOAUTH2", "OAUTHBEARER"} {
		relay := relayTo(server)
		relay.Username, relay.AccessToken, relay.AuthMethod = "user", "token-1", method
		if err := sender.Verify(t.Context(), relay); err != nil {
			t.Errorf("%q: %v", method, err)
		}
		relay.AccessToken = "token-2"
		if e := failure(t, sender.Verify(t.Context(), relay)); e.Name() != "EAUTH" ||
			strings.Contains(e.Error(), "token-") {
			t.Errorf("%q with an old token: %v", method, e)
		}
	}
}
