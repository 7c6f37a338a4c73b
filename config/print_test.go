package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

const (
	hiddenSecret = "correct-horse-battery-staple-0123456789"
	hiddenToken  = "token-token-token-token"
	hiddenRelay  = "relay-password"
	hiddenRedis  = "redis/pass@word"
	hiddenQuery  = "sentinel-password"
)

func withSecrets(t *testing.T) *config.Loaded {
	t.Helper()
	return load(t, config.Sources{Env: []string{
		"POSTROOM_SECRET=" + hiddenSecret,
		"POSTROOM_TOKEN=" + hiddenToken,
		"POSTROOM_FROM=a@example.com",
		"POSTROOM_SMTP=smtp://user:" + hiddenRelay + "@relay.example.com:2525",
		"POSTROOM_REDIS_URL=redis+sentinel://:" + hiddenRedis + "@s1:26379,s2:26379/main?sentinel_password=" +
			hiddenQuery + "&db=2",
	}})
}

func TestNoSecretIsShown(t *testing.T) {
	l := withSecrets(t)
	var out bytes.Buffer
	if err := l.Print(&out); err != nil {
		t.Fatal(err)
	}
	if err := l.PrintJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", l.Config)
		fmt.Fprintf(&out, verb+"\n", l.Secret)
		fmt.Fprintf(&out, verb+"\n", l)
	}
	if err := json.NewEncoder(&out).Encode(l); err != nil {
		t.Fatal(err)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("config", "config", l.Config, "secret", l.Secret, "smtp",
		l.SMTP)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("config", "config", l.Config, "secret", l.Secret, "smtp",
		l.SMTP)
	for _, secret := range []string{hiddenSecret, hiddenToken, hiddenRelay, hiddenRedis, "redis/pass",
		hiddenQuery} {
		for _, form := range []string{secret, fmt.Sprintf("%x", secret)} {
			if i := strings.Index(out.String(), form); i >= 0 {
				t.Errorf("%q is shown: …%s", secret, out.String()[max(0, i-80):i+len(form)])
			}
		}
	}
}

func TestRows(t *testing.T) {
	l := withSecrets(t)
	want := map[string]config.Row{
		"smtp": {Key: "smtp", Value: "smtp://user:******@relay.example.com:2525", Source: "POSTROOM_SMTP",
			Env: "POSTROOM_SMTP", Secret: true},
		"secret": {Key: "secret", Value: "******", Source: "POSTROOM_SECRET", Env: "POSTROOM_SECRET",
			Secret: true},
		"redis.url": {Key: "redis.url",
			Value:  "redis+sentinel://:******@s1:26379,s2:26379/main?sentinel_password=******&db=2",
			Source: "POSTROOM_REDIS_URL", Env: "POSTROOM_REDIS_URL", Secret: true},
		"serviceUrl": {Key: "serviceUrl", Empty: "none", Source: "default", Env: "POSTROOM_SERVICE_URL"},
		"http.listen": {Key: "http.listen", Value: "127.0.0.1:3000", Source: "default",
			Env: "POSTROOM_HTTP_LISTEN"},
	}
	for key, w := range want {
		if diff := cmp.Diff(w, row(t, l, key)); diff != "" {
			t.Error(diff)
		}
	}
	if got, want := len(l.Rows()), len(config.Keys()); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

func TestPrint(t *testing.T) {
	var table, asJSON bytes.Buffer
	l := withSecrets(t)
	if err := l.Print(&table); err != nil {
		t.Fatal(err)
	}
	// how wide the columns are depends on the longest name
	folded := regexp.MustCompile(" +").ReplaceAllString(table.String(), " ")
	for _, line := range []string{"secret ****** ", "serviceUrl (none) ", "delivery.attempts 10 "} {
		if !strings.Contains(folded, "\n"+line) {
			t.Errorf("no line %q in\n%s", line, table.String())
		}
	}
	if err := l.PrintJSON(&asJSON); err != nil {
		t.Fatal(err)
	}
	var rows []config.Row
	if err := json.Unmarshal(asJSON.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Rows(), rows); diff != "" {
		t.Error(diff)
	}
}
