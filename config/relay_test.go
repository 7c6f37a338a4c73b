package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func TestRelayURLs(t *testing.T) {
	rows := []struct {
		name, url string
		want      config.Relay
	}{
		{"bare host", "smtp://relay", config.Relay{Host: "relay", Port: 25, StartTLS: "opportunistic"}},
		{"slash at the end", "smtp://relay/", config.Relay{Host: "relay", Port: 25, StartTLS: "opportunistic"}},
		{"port", "smtp://localhost:1025", config.Relay{Host: "localhost", Port: 1025, StartTLS: "opportunistic"}},
		{"IPv6", "smtp://[::1]:1025", config.Relay{Host: "::1", Port: 1025, StartTLS: "opportunistic"}},
		{"credentials", "smtp://u:p@relay", config.Relay{Host: "relay", Port: 587, StartTLS: "required", User: "u",
			Pass: "p"}},
		{"address as user", "smtp://me@example.com:p@relay", config.Relay{Host: "relay", Port: 587,
			StartTLS: "required", User: "me@example.com", Pass: "p"}},
		{"escaped password", "smtp://u:a%2Fb%23c%3Fd%40e%25f@relay", config.Relay{Host: "relay", Port: 587,
			StartTLS: "required", User: "u", Pass: "a/b#c?d@e%f"}},
		{"colon in password", "smtp://u:a:b@relay", config.Relay{Host: "relay", Port: 587, StartTLS: "required",
			User: "u", Pass: "a:b"}},
		{"plus is a plus", "smtp://u+x:a+b@relay", config.Relay{Host: "relay", Port: 587, StartTLS: "required",
			User: "u+x", Pass: "a+b"}},
		{"implicit TLS", "smtps://u:p@relay", config.Relay{Host: "relay", Port: 465, Implicit: true, User: "u",
			Pass: "p"}},
		{"port 465 is implicit TLS", "smtp://u:p@relay:465", config.Relay{Host: "relay", Port: 465, Implicit: true,
			User: "u", Pass: "p"}},
		{"STARTTLS on port 465", "smtp://u:p@relay:465?starttls=required", config.Relay{Host: "relay", Port: 465,
			StartTLS: "required", User: "u", Pass: "p"}},
		{"STARTTLS required", "smtp://relay?starttls=required", config.Relay{Host: "relay", Port: 25,
			StartTLS: "required"}},
		{"never encrypted", "smtp://relay?starttls=off", config.Relay{Host: "relay", Port: 25, StartTLS: "off"}},
		{"password in clear on this machine", "smtp://u:p@127.0.0.1:1025?starttls=off",
			config.Relay{Host: "127.0.0.1", Port: 1025, StartTLS: "off", User: "u", Pass: "p"}},
		{"any certificate", "smtps://relay?insecure=true", config.Relay{Host: "relay", Port: 465, Implicit: true,
			Insecure: true}},
		{"two options", "smtp://relay?starttls=required&insecure=1", config.Relay{Host: "relay", Port: 25,
			StartTLS: "required", Insecure: true}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := load(t, config.Sources{Flags: map[string]string{"smtp": r.url, "from": "a@example.com"}}).SMTP
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSenders(t *testing.T) {
	rows := map[string]config.Mailbox{
		"shop@example.com":                {Address: "shop@example.com"},
		"Example Shop <shop@example.com>": {Name: "Example Shop", Address: "shop@example.com"},
		`"Shop, Inc." <shop@example.com>`: {Name: "Shop, Inc.", Address: "shop@example.com"},
		"Café <root@localhost>":           {Name: "Café", Address: "root@localhost"},
	}
	for text, want := range rows {
		t.Run(text, func(t *testing.T) {
			got := load(t, config.Sources{Flags: map[string]string{"smtp": "smtp://relay", "from": text}}).From
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzRelayURL looks for a relay that could not be connected to, and for an answer that shows the password.
func FuzzRelayURL(f *testing.F) {
	for _, seed := range []string{
		"smtp://u:hunter2secret@relay:587", "smtps://relay", "smtp://u:hunter2secret@relay?starttls=off",
		"smtp://u:hunter2/secret@relay",
		"u:hunter2secret@relay", "smtp://[::1]:25?insecure=true", "smtp://u:%zz@relay", "smtp://a b:c@d#e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := config.Load(config.Sources{Flags: map[string]string{"smtp": text, "from": "a@example.com"}})
		if err != nil {
			if strings.Contains(text, "hunter2secret@") && strings.Contains(err.Error(), "hunter2secret") {
				t.Fatalf("password shown: %v", err)
			}
			return
		}
		r := l.SMTP
		if r == (config.Relay{}) {
			return
		}
		if r.Host == "" || r.Port < 1 || r.Port > 65535 || r.Implicit == (r.StartTLS != "") ||
			(r.User == "") != (r.Pass == "") {
			t.Fatalf("%q gave an unusable relay: %+v", text, r)
		}
		if strings.ContainsAny(r.Host, "\r\n\x00 ") || strings.ContainsRune(r.User+r.Pass.Reveal(), 0) {
			t.Fatalf("%q gave a relay that can't be spoken to: %+v", text, r)
		}
	})
}
