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
		{"none, as asked", Relay{TLS: TLSNone, Username: "u"}, 587, TLSNone},
	} {
		got := row.relay.withDefaults()
		if got.Port != row.port || got.TLS != row.mode || got.Connections != 10 || got.MessagesPerConnection != 100 || got.RecipientsPerTransaction != 100 {
			t.Errorf("%s: %d %s %+v", row.name, got.Port, got.TLS, got)
		}
	}
}

func TestRelayPrintsNoCredentials(t *testing.T) {
	r := Relay{ID: "main", Host: "mx.example", Port: 587, Username: "user", Password: "secret", AccessToken: "secret"}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", slog.Any("relay", r))
	said := fmt.Sprintf("%v %+v %#v %s %v", r, r, r, r, []Relay{r}) + log.String()
	if strings.Contains(said, "secret") || !strings.Contains(said, "main mx.example:587") {
		t.Error(said)
	}
}
