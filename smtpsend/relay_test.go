package smtpsend

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestRelayDefaults(t *testing.T) {
	for _, row := range []struct {
		name  string
		relay Relay
		port  int
		mode  TLSMode
	}{
		{"nothing but a host", Relay{}, 25, TLSOpportunistic},
		{"credentials", Relay{Username: "u"}, 587, TLSRequired},
		{"port 465", Relay{Port: 465}, 465, TLSImplicit},
		{"port 465 with credentials", Relay{Port: 465, Password: "p"}, 465, TLSImplicit},
		{"port 25 with a token", Relay{Port: 25, AccessToken: "t"}, 25, TLSRequired},
		{"implicit", Relay{TLS: TLSImplicit}, 465, TLSImplicit},
		{"pinned", Relay{Pin: "x"}, 25, TLSRequired},
		{"none, as asked", Relay{TLS: TLSNone, Username: "u"}, 587, TLSNone},
	} {
		got := row.relay.withDefaults()
		if got.Port != row.port || got.TLS != row.mode || got.Connections != 10 ||
			got.MessagesPerConnection != 100 || got.RecipientsPerTransaction != 100 {
			t.Errorf("%s: %d %s %+v", row.name, got.Port, got.TLS, got)
		}
	}
}

func TestRelayPrintsNoCredentials(t *testing.T) {
	r := Relay{ID: "main", Host: "mx.example", Port: 587, Username: "user", Password: "secret",
		AccessToken: "secret", Proxy: "http://user:secret@proxy.example"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", slog.Any("relay", r))
	said := fmt.Sprintf("%v %+v %#v %s %v", r, r, r, r, []Relay{r}) + log.String()
	if strings.Contains(said, "secret") || !strings.Contains(said, "main mx.example:587") {
		t.Error(said)
	}
}

func TestRelayCheck(t *testing.T) {
	pin := "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	for _, row := range []struct {
		name  string
		relay Relay
		wrong string // part of what is wrong; empty: nothing
	}{
		{"pin", Relay{Pin: pin}, ""},
		{"two pins", Relay{Pin: pin + " " + pin, TLS: TLSImplicit}, ""},
		{"pin in hexadecimal", Relay{Pin: strings.Repeat("ab", 32)}, "not the base64 form"},
		{"blank pin", Relay{Pin: " "}, "blank"},
		{"TLSA record", Relay{TLS: TLSRequired, TLSA: "3 1 1 " + strings.Repeat("ab", 32)}, ""},
		{"TLSA records", Relay{TLS: TLSRequired, TLSName: "mx.example example.com",
			TLSA: "3 1 1 " + strings.Repeat("ab", 32) + ",2 0 2 " + strings.Repeat("CD", 64)}, ""},
		{"TLSA record with TLS that is only liked", Relay{TLSA: "3 1 1 " + strings.Repeat("ab", 32)}, "need TLS"},
		{"TLSA record and nothing verified", Relay{TLS: TLSRequired, InsecureSkipVerify: true,
			TLSA: "3 1 1 " + strings.Repeat("ab", 32)}, "need TLS"},
		{"TLSA record for the web's authorities", Relay{TLS: TLSRequired,
			TLSA: "1 1 1 " + strings.Repeat("ab", 32)}, "can't be used"},
		{"TLSA record that is too short", Relay{TLS: TLSRequired, TLSA: "3 1 1 abcd"}, "can't be used"},
		{"TLSA record with another hash", Relay{TLS: TLSRequired, TLSA: "3 1 3 abcd"}, "can't be used"},
		{"TLSA record with an unknown selector", Relay{TLS: TLSRequired,
			TLSA: "3 2 1 " + strings.Repeat("ab", 32)}, "can't be used"},
		{"TLSA record whose certificate is none", Relay{TLS: TLSRequired, TLSA: "2 0 0 abcd"}, "can't be used"},
		{"TLSA record without data", Relay{TLS: TLSRequired, TLSA: "3 1 1"}, "has usage"},
		{"TLS names in two lines", Relay{TLSName: "a.example\nb.example"}, "single spaces"},
		{"pin without TLS", Relay{Pin: pin, TLS: TLSNone}, "needs TLS"},
		{"pin with TLS that is only liked", Relay{Pin: pin, TLS: TLSOpportunistic}, "needs TLS"},
		{"HTTP proxy", Relay{Proxy: "http://user:secret@proxy.example:3128"}, ""},
		{"HTTPS proxy", Relay{Proxy: "https://proxy.example/"}, ""},
		{"SOCKS proxy", Relay{Proxy: "socks5://[2001:db8::1]:1080"}, ""},
		{"proxy of another kind", Relay{Proxy: "ftp://user:secret@proxy.example"}, "socks5 URL"},
		{"proxy that is no URL", Relay{Proxy: "http://user:sec%ret@proxy example"}, "socks5 URL"},
		{"proxy without a scheme", Relay{Proxy: "user:secret@proxy.example"}, "socks5 URL"},
		{"proxy with a path", Relay{Proxy: "http://user:secret@proxy.example/path"}, "path"},
		{"proxy port", Relay{Proxy: "http://user:secret@proxy.example:70000"}, "port"},
		{"proxy password too long", Relay{Proxy: "http://user:" + strings.Repeat("secret", 50) + "@proxy.example"},
			"255 bytes"},
		{"idle time", Relay{IdleTimeout: -1}, "negative"},
		{"lifetime", Relay{Lifetime: -1}, "negative"},
	} {
		row.relay.Host = "mx.example"
		err := row.relay.Check()
		switch {
		case row.wrong == "" && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.wrong != "" && (err == nil || !strings.Contains(err.Error(), row.wrong)):
			t.Errorf("%s: %v, want %q", row.name, err, row.wrong)
		case err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec%")):
			t.Errorf("%s: the password is shown: %v", row.name, err)
		}
	}
}
