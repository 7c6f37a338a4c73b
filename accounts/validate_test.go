package accounts

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/smtpsend"
)

func TestWrongAccounts(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = "1m"
	}
	tests := []struct {
		name   string
		change func(a *api.Account)
		want   []string
	}{
		{"no id", func(a *api.Account) { a.Account = "" }, []string{"account"}},
		{"an id with a colon", func(a *api.Account) { a.Account = "a:state" }, []string{"account"}},
		{"an id with a line", func(a *api.Account) { a.Account = "a\n" }, []string{"account"}},
		{"a long id", func(a *api.Account) { a.Account = strings.Repeat("a", 257) }, []string{"account"}},
		{"a name of two lines", func(a *api.Account) { a.Name = "a\r\nBcc: x" }, []string{"name"}},
		{"a long name", func(a *api.Account) { a.Name = strings.Repeat("ä", 257) }, []string{"name"}},
		{"no address", func(a *api.Account) { a.Email = "" }, []string{"email"}},
		{"an address with a name", func(a *api.Account) { a.Email = "A <a@example.com>" }, []string{"email"}},
		{"no relay", func(a *api.Account) { a.SMTP = nil }, []string{"smtp"}},
		{"no host, no port", func(a *api.Account) { a.SMTP = &api.SMTPServer{} },
			[]string{"smtp.host", "smtp.port"}},
		{"a host with a port", func(a *api.Account) { a.SMTP.Host = "a.example.com:25" }, []string{"smtp.host"}},
		{"a URL for a host", func(a *api.Account) { a.SMTP.Host = "smtp://a" }, []string{"smtp.host"}},
		{"a host with an empty label", func(a *api.Account) { a.SMTP.Host = "a..b" }, []string{"smtp.host"}},
		{"a port too high", func(a *api.Account) { a.SMTP.Port = 65536 }, []string{"smtp.port"}},
		{"a password without user", func(a *api.Account) { a.SMTP.Auth.User = "" }, []string{"smtp.auth.user"}},
		{"a user without password", func(a *api.Account) { a.SMTP.Auth.Pass = "" }, []string{"smtp.auth.pass"}},
		{"a NUL in the password", func(a *api.Account) { a.SMTP.Auth.Pass = "a\x00b" }, []string{"smtp.auth.pass"}},
		{"a line in user and token", func(a *api.Account) {
			a.SMTP.Auth = &api.SMTPAuth{User: "a\n", AccessToken: "b\r"}
		},
			[]string{"smtp.auth.user", "smtp.auth.accessToken"}},
		{"TLS words unknown", func(a *api.Account) {
			a.SMTP.TLS = &api.SMTPTLS{MinVersion: "TLSv1",
				StartTLS: "yes"}
		},
			[]string{"smtp.tls.minVersion", "smtp.tls.starttls"}},
		{"STARTTLS inside TLS", func(a *api.Account) {
			a.SMTP.Secure, a.SMTP.TLS = true,
				&api.SMTPTLS{StartTLS: "required"}
		}, []string{"smtp.tls.starttls"}},
		{"limits", func(a *api.Account) { a.Limits = &api.Limits{Connections: 1001, PerConnection: -1} },
			[]string{"limits.connections", "limits.perConnection"}},
		{"webhooks to a file", func(a *api.Account) { a.Webhooks = "file:///etc/passwd" }, []string{"webhooks"}},
		{"webhooks without host", func(a *api.Account) { a.Webhooks = "https:///x" }, []string{"webhooks"}},
		{"webhooks with a password", func(a *api.Account) { a.Webhooks = "https://u:p@example.com/" },
			[]string{"webhooks"}},
		{"a name for the local address", func(a *api.Account) { a.LocalAddress = "localhost" },
			[]string{"localAddress"}},
		{"two words for EHLO", func(a *api.Account) { a.SMTPEhloName = "a b" }, []string{"smtpEhloName"}},
		{"an IPv6 literal without its tag", func(a *api.Account) { a.SMTPEhloName = "[::1]" },
			[]string{"smtpEhloName"}},
		{"delays", func(a *api.Account) { a.Retry = []string{"5m", "soon", "0s", "-1m", "721h", "5"} },
			[]string{"retry[1]", "retry[2]", "retry[3]", "retry[4]", "retry[5]"}},
		{"too many delays", func(a *api.Account) { a.Retry = many }, []string{"retry"}},
		{"gateways too many", func(a *api.Account) {
			for i := range 21 {
				a.Gateways = append(a.Gateways, api.Route{Gateway: fmt.Sprint("g", i)})
			}
		}, []string{"gateways"}},
		{"a gateway twice, one without name, a weight below zero", func(a *api.Account) {
			a.SMTP, a.Gateways = nil, []api.Route{{Gateway: "g"}, {Gateway: "g"}, {Gateway: ""},
				{Gateway: "h", Weight: -1}}
		}, []string{"gateways[1].gateway", "gateways[2].gateway", "gateways[3].weight"}},
		{"weights beside the own relay", func(a *api.Account) {
			a.Gateways = []api.Route{{Gateway: "g", Weight: 1}}
		}, []string{"gateways"}},
		{"what goes with the own relay, without one", func(a *api.Account) {
			a.SMTP, a.Gateways = nil, []api.Route{{Gateway: "g"}}
			a.OAuth2, a.Proxy, a.LocalAddress, a.SMTPEhloName = &api.OAuth2{}, "http://proxy.example.com", "192.0.2.1",
				"me.example.com"
			a.Limits = &api.Limits{PerSecond: 1, Connections: 1, PerConnection: 1}
		}, []string{"oauth2", "proxy", "localAddress", "smtpEhloName", "limits.connections",
			"limits.perConnection"}},
		{"a password and OAuth", func(a *api.Account) {
			a.OAuth2 = &api.OAuth2{Provider: "gmail", ClientID: "c", RefreshToken: "r", User: "u"}
		}, []string{"oauth2"}},
		{"a CA and a pin that are none", func(a *api.Account) {
			a.SMTP.TLS = &api.SMTPTLS{CA: "x", PinSHA256: "x"}
		}, []string{"smtp.tls.ca", "smtp.tls.pinSha256"}},
		{"a proxy that is none", func(a *api.Account) { a.Proxy = "proxy:1080" }, []string{"proxy"}},
		{"a DKIM key that is none", func(a *api.Account) {
			a.DKIM = &api.DKIM{Domain: "-", Selector: " ",
				PrivateKey: "x"}
		},
			[]string{"dkim.domain", "dkim.selector", "dkim.privateKey"}},
		{"another way to take trouble", func(a *api.Account) { a.AccountTrouble = "panic" },
			[]string{"accountTrouble"}},
		{"everything", func(a *api.Account) {
			*a = api.Account{Account: "/", Name: "\x00", Email: "@", Webhooks: "x", LocalAddress: "x",
				SMTPEhloName: "-", Retry: []string{""}}
		}, []string{"account", "name", "email", "webhooks", "localAddress", "smtpEhloName", "smtp", "retry[0]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := account("a")
			tt.change(&a)
			if diff := cmp.Diff(tt.want, testkit.WrongFields(t, validate(a))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGoodAccounts(t *testing.T) {
	tests := map[string]func(a *api.Account){
		"plain":            func(*api.Account) {},
		"an odd id":        func(a *api.Account) { a.Account = "0.A_b@c+d-e" },
		"no login":         func(a *api.Account) { a.SMTP.Auth = nil },
		"an empty login":   func(a *api.Account) { a.SMTP.Auth = &api.SMTPAuth{} },
		"an IPv4 host":     func(a *api.Account) { a.SMTP.Host = "127.0.0.1" },
		"an IPv6 host":     func(a *api.Account) { a.SMTP.Host = "2001:db8::1" },
		"a rooted host":    func(a *api.Account) { a.SMTP.Host = "smtp.example.com." },
		"an underscore":    func(a *api.Account) { a.SMTP.Host = "mail_relay" },
		"EHLO literals":    func(a *api.Account) { a.SMTPEhloName = "[192.0.2.1]" },
		"EHLO IPv6":        func(a *api.Account) { a.SMTPEhloName = "[IPv6:2001:db8::1]" },
		"a foreign sender": func(a *api.Account) { a.Email = "jörg@bücher.example" },
		"a preset": func(a *api.Account) {
			a.SMTP = &api.SMTPServer{Preset: "postmark", Auth: a.SMTP.Auth}
		},
		"gateways beside": func(a *api.Account) { a.Gateways = []api.Route{{Gateway: "g"}} },
		"trouble waits":   func(a *api.Account) { a.AccountTrouble = "hold" },
		"a schedule":      func(a *api.Account) { a.Retry = []string{"1m", "1h30m", "720h"} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			a := account("a")
			change(&a)
			if err := validate(a); err != nil {
				t.Fatal(err)
			}
			e, err := newEntry(a, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.sender.Relays[0].SMTP.Check(); err != nil {
				t.Errorf("smtpsend refuses it: %v", err)
			}
		})
	}
}

func TestWeightsBesideTheOwnRelayAreExplained(t *testing.T) {
	a := account("a")
	a.Gateways = []api.Route{{Gateway: "g", Weight: 1}}
	err := validate(a)
	if err == nil || !strings.Contains(err.Error(),
		"Make the account's relay a gateway, or remove the weights") {
		t.Errorf("%v", err)
	}
}

func TestRelayOfAnAccount(t *testing.T) {
	no := false
	tests := []struct {
		name string
		smtp api.SMTPServer
		want smtpsend.Relay
	}{
		{"plain", api.SMTPServer{Host: "h", Port: 25}, smtpsend.Relay{Host: "h", Port: 25}},
		{"TLS from the start", api.SMTPServer{Host: "h", Port: 465, Secure: true},
			smtpsend.Relay{Host: "h", Port: 465, TLS: smtpsend.TLSImplicit}},
		{"STARTTLS required", api.SMTPServer{Host: "h", Port: 587, TLS: &api.SMTPTLS{StartTLS: "required",
			MinVersion: "TLSv1.3"}},
			smtpsend.Relay{Host: "h", Port: 587, TLS: smtpsend.TLSRequired, MinVersion: tls.VersionTLS13}},
		{"STARTTLS if offered", api.SMTPServer{Host: "h", Port: 25, TLS: &api.SMTPTLS{StartTLS: "opportunistic",
			RejectUnauthorized: &no}},
			smtpsend.Relay{Host: "h", Port: 25, TLS: smtpsend.TLSOpportunistic, InsecureSkipVerify: true}},
		{"in clear", api.SMTPServer{Host: "h", Port: 25, TLS: &api.SMTPTLS{StartTLS: "off"}},
			smtpsend.Relay{Host: "h", Port: 25, TLS: smtpsend.TLSNone}},
		{"login", api.SMTPServer{Host: "h", Port: 587, Auth: &api.SMTPAuth{User: "u", Pass: "p"}},
			smtpsend.Relay{Host: "h", Port: 587, Username: "u", Password: "p"}},
		{"login by token", api.SMTPServer{Host: "h", Port: 587, Auth: &api.SMTPAuth{User: "u", AccessToken: "t"}},
			smtpsend.Relay{Host: "h", Port: 587, Username: "u", AccessToken: "t"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			route, err := Described(api.VerifyRequest{SMTP: &tt.smtp, LocalAddress: "192.0.2.1",
				SMTPEhloName: "me.example"})
			if err != nil {
				t.Fatal(err)
			}
			tt.want.LocalAddress, tt.want.EHLOName = "192.0.2.1", "me.example"
			if diff := cmp.Diff(tt.want, route.SMTP); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, err := Described(api.VerifyRequest{LocalAddress: "x"})
	if diff := cmp.Diff([]string{"localAddress", "smtp"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestSenderDoesNotShowItsPassword(t *testing.T) {
	a := account("a")
	a.Proxy = "socks5://u:proxy-secret@proxy.example.com"
	a.DKIM = &api.DKIM{Domain: "example.com", Selector: "s", PrivateKey: "dkim-secret"}
	e, err := newEntry(a, false)
	if err != nil {
		t.Fatal(err)
	}
	s := e.sender
	json, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "sender", s)
	for _, text := range []string{log.String(), string(json), fmt.Sprint(s), fmt.Sprintf("%+v", s),
		fmt.Sprintf("%#v", s), fmt.Sprintf("%v", &s)} {
		if strings.Contains(text, "correct horse") || strings.Contains(text, "-secret") ||
			!strings.Contains(text, "a") {
			t.Errorf("shown: %s", text)
		}
	}
}
