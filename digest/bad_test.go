package digest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestTwoRecipientsWithOneAddress have an email each. Who leaves by that address leaves for both.
func TestTwoRecipientsWithOneAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, who := range []string{"ann", "bob"} {
		e := about(who, who, "Bo")
		e.Email = "family@example.com"
		b.add(t, e)
	}
	b.morning(t)
	all := b.mails.all()
	if len(all) != 2 || all[0].To[0] != all[1].To[0] || saidIn(t, all[0]).Total != 1 ||
		saidIn(t, all[1]).Total != 1 {
		t.Errorf("mails %+v", all)
	}
	b.leaves(t, "family")
	if err := b.Leave(t.Context(), "default", "family@example.com"); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"ann", "bob"} {
		if p := b.preferences(t, who); p["*"].Mode != "off" {
			t.Errorf("%s has %+v", who, p)
		}
	}
}

// TestTheAddressIsThatOfTheOpening: if an address changes between two attempts, only the next mail uses it.
// The same message under another address would be refused by its key.
func TestTheAddressIsThatOfTheOpening(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, about("ann", "1", "Bo"))
	b.mails.failWith(errors.New("the connection broke"))
	b.morning(t)
	b.mails.failWith(nil)
	other := "new@example.com"
	if _, err := b.Patch(t.Context(), "", "ann", api.DigestRecipientRequest{Email: &other}); err != nil {
		t.Fatal(err)
	}
	b.add(t, about("ann", "2", "Bo"))
	b.Advance(time.Hour)
	b.settle(t)
	b.morning(t)
	all := b.mails.all()
	if len(all) != 2 || all[0].To[0].Address != "ann@example.com" || all[1].To[0].Address != other {
		t.Errorf("mails %+v", all)
	}
}

// TestAZoneThatIsGone: the reader gets mail by the clock of UTC, and pages show that.
func TestAZoneThatIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", nil)
	keys := b.keys(t, "*digest-recipient:default:ann")
	if err := b.db.Client().HSet(t.Context(), keys[0], "tz", "Europe/Atlantis").Err(); err != nil {
		t.Fatal(err)
	}
	due := b.add(t, about("ann", "1", "Bo"))[0].Due
	if want := time.Date(2030, 1, 2, 8, 0, 0, 0, time.UTC); due == nil || !due.Equal(want) {
		t.Errorf("due %v, want %v", due, want)
	}
	one, err := b.Get(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || len(one.Warnings) != 1 || !strings.Contains(one.Warnings[0], "Europe/Atlantis") {
		t.Errorf("%+v, %v", one, err)
	}
	b.morning(t)
	if all := b.mails.all(); len(all) != 1 || all[0].TZ != "UTC" {
		t.Errorf("mails %+v", all)
	}
}

// TestAHundredChangesInAMinute lose nothing, and mail nothing twice.
func TestAHundredChangesInAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 100 {
		modes := []api.DigestPreference{{Mode: "immediate"}, {Mode: "hourly"}, {Mode: "daily"}, {Mode: "weekly"},
			{Mode: "custom", Cron: "30 8 * * *"}}
		b.prefer(t, "ann", map[string]*api.DigestPreference{"*": &modes[i%len(modes)]})
		b.add(t, about("ann", fmt.Sprint(i), "Bo"))
		b.Advance(600 * time.Millisecond)
		if i%7 == 0 {
			b.settle(t)
		}
	}
	for range 8 * 24 {
		b.Advance(time.Hour)
		b.settle(t)
	}
	seen := map[string]int{}
	for _, entities := range b.said(t) {
		for _, entity := range entities {
			seen[entity]++
		}
	}
	rest := 0 // events beyond digest.cap, which emails count
	for _, m := range b.mails.all() {
		rest += saidIn(t, m).Rest.Events
	}
	for entity, n := range seen {
		if n != 1 {
			t.Errorf("event %s is in %d mails", entity, n)
		}
	}
	if len(seen)+rest != 100 {
		t.Errorf("%d events in lines and %d beyond", len(seen), rest)
	}
}

// TestWordsOfEventsAreValues: html, marks of templates and line breaks in titles, names and payloads are
// in the params of the mail only. Its subject, html and text are templates, in which they would act.
func TestWordsOfEventsAreValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const evil = "<script>alert(1)</script> {{params.secret}} {{/if}}"
	e := about("ann", "1", "Bo")
	e.Title, e.Actor.Name = evil+"\r\nBcc: all@example.com", evil+"\n\n"
	e.Payload = json.RawMessage(`{"text":"` + evil + `\r\nBcc: x"}`)
	b.add(t, e)
	b.morning(t)
	m := b.mails.all()[0]
	for _, text := range []string{m.Subject, m.PreviewText, m.HTML, m.Text} {
		for _, part := range []string{"alert(1)", "params.secret", "Bcc"} {
			if strings.Contains(text, part) {
				t.Errorf("an event acts in %q", text)
			}
		}
	}
	g := saidIn(t, m).Groups[0]
	if g.Title != evil+" Bcc: all@example.com" || g.Actors[0].Name != evil {
		t.Errorf("the line has the title %q and the actor %q", g.Title, g.Actors[0].Name)
	}
}

// TestAsleepOverMidnight: if a machine slept from before the time of a digest until after midnight, it sends
// it then. It counts as the requested day's, and the next day has its own.
func TestAsleepOverMidnight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.prefer(t, "ann", map[string]*api.DigestPreference{"*": {Mode: "daily", Hour: new(23)}})
	b.add(t, about("ann", "1", "Bo"))
	b.Set(time.Date(2030, 1, 3, 6, 0, 0, 0, time.UTC))
	b.settle(t)
	b.add(t, about("ann", "2", "Bo"))
	b.Set(time.Date(2030, 1, 3, 23, 0, 1, 0, time.UTC))
	b.settle(t)
	runs := b.runs(t, "ann")
	if len(b.mails.all()) != 2 || len(runs) != 2 || runs[0].Period != "2030-01-03" ||
		runs[1].Period != "2030-01-02" {
		t.Errorf("runs %+v", runs)
	}
}

// TestTextsWithQuotes: what JSON escapes, and what html does, comes back as it was, and can be removed.
func TestTextsWithQuotes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const text = `"q" \ \" \u0041 <b>&amp;</b> ` + "\u2028 日本 😀"
	e := api.DigestEvent{Recipient: "ann", Email: "ann@example.com", Category: text, EntityType: text,
		EntityID: text, Title: text, URL: "https://example.com/?q=%22&r=\"\\",
		Actor:   &api.DigestActor{ID: text, Name: text, URL: "https://example.com/\"\\"},
		Payload: []byte(`{"q":"\"\\"}`)}
	b.add(t, e, about("ann", "2", "Bo"))
	waits, err := b.Waiting(t.Context(), "", api.DigestAccount{}, "ann")
	if err != nil || len(waits.Events) != 2 {
		t.Fatalf("%+v, %v", waits, err)
	}
	got := waits.Events[slices.IndexFunc(waits.Events, func(w api.DigestWaitingEvent) bool {
		return w.Category == text
	})].DigestEvent
	e.Email, e.Priority, e.OccurredAt = "", "normal", got.OccurredAt
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
	back, err := b.Remove(t.Context(), "", api.DigestEventRemoval{Recipients: []string{"ann"}, Category: text,
		EntityType: text, EntityID: text})
	if err != nil || back.Deleted != 1 {
		t.Errorf("%+v, %v", back, err)
	}
}

// TestRedisFullOrAway: events are refused as Unavailable, which is 503, and nothing of them is there.
// Their keys are free.
func TestRedisFullOrAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := on(t, testredis.Connect(t, redisdb.Options{URL: server.URL()}))
	b.add(t, about("bob", "0", "Bo"))
	list := []api.DigestEvent{about("ann", "1", "Bo"), about("ann", "2", "Bo"), about("bob", "1", "Bo")}
	for i := range list {
		list[i].IdempotencyKey = fmt.Sprint("k", i)
	}
	memory := func(most string) {
		t.Helper()
		if err := server.Client(t).ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(how string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := b.AddEvents(ctx, "", api.DigestEventsRequest{Events: list})
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", how, err)
		}
	}
	nothing := func(how string) {
		t.Helper()
		if _, err := b.Get(t.Context(), "", api.DigestAccount{}, "ann"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: ann is there: %v", how, err)
		}
		one, err := b.Get(t.Context(), "", api.DigestAccount{}, "bob")
		if err != nil || one.Waiting["comment"] != 1 {
			t.Errorf("%s: bob is %+v, %v", how, one, err)
		}
	}
	memory("1")
	refused("full")
	nothing("full")
	memory("0")
	server.Stop()
	refused("away")
	server.Cont()
	answering(t, server.Client(t))
	for i, r := range b.add(t, list...) {
		if !r.Success || r.State != "waiting" {
			t.Errorf("event %d afterwards: %+v", i, r)
		}
	}
	b.morning(t)
	total := 0
	for _, m := range b.mails.all() {
		total += saidIn(t, m).Total
	}
	if total != 4 {
		t.Errorf("%d events were mailed", total)
	}
}

// answering waits until a server answers.
func answering(t testing.TB, c *redis.Client) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); c.Ping(t.Context()).Err() != nil; {
		if time.Now().After(limit) {
			t.Fatal("redis does not answer")
		}
	}
}
