package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// recordedEmailEngine returns the file of a recording of an EmailEngine, with another port for its relay.
func recordedEmailEngine(t *testing.T, file, port string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("emailengine", "testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(text, []byte(`\"port\":2525`), []byte(`\"port\":`+port))
}

// migrating is a Postroom, and the Redis of an EmailEngine to move from, with the relay of its account shop.
type migrating struct {
	*apptest.Postroom
	relay *testsmtp.Server
	redis *redis.Client
	from  []string // the flags that name the EmailEngine
}

// Its queued mail is for 2032; maxAhead says whether that is too far ahead.
func startMigrating(t *testing.T, maxAhead string) migrating {
	t.Helper()
	m := migrating{Postroom: apptest.Start(t, map[string]string{"message.maxAhead": maxAhead}),
		relay: testsmtp.Start(t, testsmtp.Options{Username: "shop", Password: "pa$$word ü"})}
	server := testredis.Server(t)
	m.redis = server.Client(t)
	var commands [][]any
	text := recordedEmailEngine(t, "sealed.json", strconv.Itoa(m.relay.Port()))
	if err := json.Unmarshal(text, &commands); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		for i := range args {
			if encoded, ok := strings.CutPrefix(args[i].(string), "base64:"); ok {
				args[i], _ = base64.StdEncoding.DecodeString(encoded)
			}
		}
		if err := m.redis.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("EENGINE_SECRET", "seal-of-ee")
	m.from = []string{"--from", server.URL(), "--from-secret", "env:EENGINE_SECRET"}
	return m
}

// migrate runs the command and returns its exit code, its rows in one text, and what it says beside them.
func (m migrating) migrate(t *testing.T, flags ...string) (code int, rows, notes string) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console{in: strings.NewReader(""), out: &out, err: &errs}
	args := append([]string{"migrate", "emailengine", "--url", m.URL, "--token", m.Token}, m.from...)
	code = run(t.Context(), append(args, flags...), con)
	for _, secret := range []string{"pa$$word", "n3ws", "ses-pass", "s3cret"} {
		if strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("the output has the secret %s:\n%s%s", secret, &out, &errs)
		}
	}
	var lines []string
	for _, line := range strings.Split(out.String(), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return code, strings.Join(lines, "\n"), errs.String()
}

// has holds an output to lines that begin so.
func has(t *testing.T, output string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+output, "\n"+line) {
			t.Errorf("no line begins with %q:\n%s", line, output)
		}
	}
}

// TestMigrateFromRedis moves everything, queued mail too, and nothing twice.
func TestMigrateFromRedis(t *testing.T) {
	m := startMigrating(t, "0")
	code, rows, notes := m.migrate(t, "--queued")
	has(t, rows, "gateway ses to add", "account shop to add webhooks:",
		"template "+idOf(t, m, "Welcome")+" Welcome to add",
		"blocklist news: 2 to add",
		"settings webhooks, webhookEvents, webhooksCustomHeaders, deliveryAttempts, queueKeep to add",
		"queued mail shop: 4 to add", "account reader not taken it has a mailbox (imap), but no relay (smtp)")
	if code != exitFailed || !strings.Contains(notes, "nothing was changed") {
		t.Errorf("the dry run ended with %d:\n%s", code, notes)
	}
	accounts, err := api.ListAccounts.Do(t.Context(), m.Client, api.PageQuery{})
	if err != nil || accounts.Total != 1 {
		t.Errorf("after the dry run there are %d accounts, %v; want the default one", accounts.Total, err)
	}

	code, rows, notes = m.migrate(t, "--queued", "--apply")
	has(t, rows, "gateway ses added", "account shop added webhooks:", "blocklist news: 2 added",
		"queued mail shop: 4 added", "queued mail mailbox: 1 added", "settings webhooks,", "message",
		"account o365 not taken")
	if code != exitFailed || !strings.Contains(notes, "EmailEngine still has these messages") {
		t.Errorf("it ended with %d:\n%s", code, notes)
	}
	checkMigrated(t, m)

	code, rows, _ = m.migrate(t, "--queued", "--apply")
	has(t, rows, "gateway ses there already", "account shop there already", "blocklist news: 2 there already",
		"queued mail shop: 4 there already", "queued mail mailbox: 1 there already",
		"settings webhooks there already")
	if strings.Contains(rows, " added") || code != exitFailed {
		t.Errorf("the second time it ended with %d:\n%s", code, rows)
	}
	if n := m.relay.Count(); n != 2 {
		t.Errorf("the relay got %d mails, not two", n)
	}
}

// TestMigrateSaysWhatIsTooFarAhead: mail that is scheduled beyond message.maxAhead is not lost in silence.
func TestMigrateSaysWhatIsTooFarAhead(t *testing.T) {
	m := startMigrating(t, "8760h")
	code, rows, _ := m.migrate(t, "--queued", "--apply")
	if n := strings.Count(rows, "(message.maxAhead)"); n != 3 || code != exitFailed {
		t.Errorf("%d messages are too far ahead, and it ended with %d:\n%s", n, code, rows)
	}
}

// idOf returns the id of a template in EmailEngine.
func idOf(t *testing.T, m migrating, name string) string {
	t.Helper()
	for field, value := range m.redis.HGetAll(t.Context(), "tpl::c").Val() {
		if strings.Contains(value, name) && strings.HasSuffix(field, ":meta") {
			return strings.TrimSuffix(field, ":meta")
		}
	}
	t.Fatalf("EmailEngine has no template %s", name)
	return ""
}

// checkMigrated looks at what came of the move: mail through the opened password, and the records.
func checkMigrated(t *testing.T, m migrating) {
	t.Helper()
	ctx := t.Context()
	for _, mail := range m.relay.Wait(2) {
		text := string(mail.Data)
		if len(mail.To) != 2 || mail.To[1] != "hidden@example.com" || strings.Contains(text, "hidden@") ||
			!strings.Contains(text, "sent when moved") {
			t.Errorf("the relay got, for %v:\n%s", mail.To, text)
		}
	}
	outbox, err := api.ListOutbox.Do(ctx, m.Client, api.OutboxQuery{})
	if err != nil || outbox.Total != 3 {
		t.Fatalf("%d messages are queued, %v", outbox.Total, err)
	}
	for _, q := range outbox.Messages {
		if q.Scheduled.Year() != 2032 {
			t.Errorf("%s is for %v", q.MessageID, q.Scheduled)
		}
	}
	welcome, err := api.GetTemplate.Do(ctx, m.Client, idOf(t, m, "Welcome"))
	if err != nil || welcome.Content.HTML != "<p>Welcome, {{params.name}} — ✓</p>" {
		t.Errorf("the template is %+v, %v", welcome, err)
	}
	news, err := api.GetBlocklist.Do(ctx, m.Client, api.BlocklistQuery{Account: "shop"}, "news")
	if err != nil || news.Total != 2 {
		t.Fatalf("the blocklist is %+v, %v", news, err)
	}
	for _, a := range news.Addresses {
		want := map[string]string{"ann@example.com": "unsubscribe", "ben@example.com": "block"}[a.Recipient]
		if a.Reason != want || a.Created.UTC().Format("2006-01-02 15") != "2026-11-23 03" {
			t.Errorf("%s: %s since %v", a.Recipient, a.Reason, a.Created)
		}
	}
	settings, err := api.GetSettings.Do(ctx, m.Client)
	if err != nil || *settings.Webhooks != "https://app.example.com/hook" || *settings.DeliveryAttempts != 5 {
		t.Errorf("the settings are %+v, %v", settings, err)
	}
}

// TestMigrateQueueNotPaused: mail that EmailEngine may be sending is not taken.
func TestMigrateQueueNotPaused(t *testing.T) {
	m := startMigrating(t, "0")
	m.redis.HDel(t.Context(), "bull:submit:meta", "paused")
	if code, rows, notes := m.migrate(t, "--queued", "--apply"); code != exitUsage || !strings.Contains(notes,
		"pause its queue first") {
		t.Errorf("it ended with %d:\n%s%s", code, rows, notes)
	}
	if _, err := api.GetGateway.Do(t.Context(), m.Client, "ses"); err == nil {
		t.Error("a gateway was added")
	}
	_, rows, notes := m.migrate(t, "--queued")
	has(t, rows, "queued mail shop: 4 to add")
	if !strings.Contains(notes, "is not paused") {
		t.Errorf("the dry run says:\n%s", notes)
	}
}

// TestMigrateWhole: an EmailEngine of which everything is taken ends with 0, and --overwrite replaces.
func TestMigrateWhole(t *testing.T) {
	m := startMigrating(t, "0")
	m.redis.Del(t.Context(), "ia:accounts", "tpl::i")
	m.redis.SAdd(t.Context(), "ia:accounts", "mailbox")
	if code, rows, notes := m.migrate(t, "--apply"); code != exitDone {
		t.Fatalf("it ended with %d:\n%s%s", code, rows, notes)
	}
	name := "Changed"
	_, err := api.UpdateAccount.Do(t.Context(), m.Client, api.AccountPatch{Name: &name}, "mailbox")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		flags       []string
		state, name string
	}{
		{[]string{"--apply"}, "there already", "Changed"},
		{[]string{"--apply", "--overwrite"}, "replaced", "Office"},
	} {
		code, rows, _ := m.migrate(t, tc.flags...)
		has(t, rows, "account mailbox "+tc.state, "gateway ses "+tc.state)
		a, err := api.GetAccount.Do(t.Context(), m.Client, "mailbox")
		if code != exitDone || err != nil || a.Name != tc.name {
			t.Errorf("%v: it ended with %d, and the account is %s, %v", tc.flags, code, a.Name, err)
		}
	}
}

// TestMigrateFromAPI: what the API masks is named with the command that sets it, and the rest is taken.
func TestMigrateFromAPI(t *testing.T) {
	var answers map[string]json.RawMessage
	if err := json.Unmarshal(recordedEmailEngine(t, "api.json", "25"), &answers); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for at, answer := range answers {
			u, _ := url.Parse(at)
			if u.Path == r.URL.Path && (u.Path == "/v1/settings" || u.Query().Encode() == r.URL.Query().Encode()) {
				_, _ = w.Write(answer)
				return
			}
		}
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	t.Setenv("EE_TOKEN", "ee-token")
	m := migrating{Postroom: apptest.Start(t, nil), from: []string{"--from", server.URL, "--from-token",
		"env:EE_TOKEN"}}
	code, rows, _ := m.migrate(t, "--apply")
	has(t, rows, "gateway ses added its password, which EmailEngine's API does not show: postroom gateway update ses "+
		"--user AKIA --pass -", "account mailbox added its password",
		"settings webhooks, webhookEvents, deliveryAttempts, queueKeep added webhooksCustomHeaders", "blocklist offers: 2 added", "template AAABogZ9zxIAAAAD Welcome added")
	if code != exitFailed {
		t.Errorf("it ended with %d", code)
	}
	a, err := api.GetAccount.Do(t.Context(), m.Client, "mailbox")
	if err != nil || a.SMTP == nil || a.SMTP.Host != "smtp.example.com" || a.SMTP.Auth != nil {
		t.Errorf("the account is %+v, %v", a, err)
	}
	if _, rows, _ = m.migrate(t, "--apply"); strings.Contains(rows, " added") {
		t.Errorf("the second time:\n%s", rows)
	}
}
