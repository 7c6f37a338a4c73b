package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
)

func TestEndpointIsMadeShownChangedDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.endpoint("https://example.com/hook", func(r *api.EndpointRequest) {
		r.Events, r.Accounts = []string{"messageSent", "messageFailed", "messageSent"}, []string{"b", "a"}
		r.Headers, r.RateLimit, r.Description = map[string]string{
			"Authorization": "Bearer s3cret"}, 5, "for the CRM"
	})
	if _, err := parseSecret(made.Secret); err != nil {
		t.Errorf("secret %q: %v", made.Secret, err)
	}
	shown, err := b.Endpoint(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := made
	want.Secret = "whsec_******"
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	if shown.Headers["Authorization"] != masked ||
		!slices.Equal(shown.Events, []string{"messageFailed", "messageSent"}) || !shown.Enabled {
		t.Errorf("%+v", shown)
	}
	// What was shown can be sent back without harm.
	changed, err := b.Update(t.Context(), made.ID, api.EndpointRequest{
		URL: shown.URL, Events: shown.Events, Headers: shown.Headers, Secret: shown.Secret, Description: "changed",
	})
	if err != nil || changed.Description != "changed" || changed.RateLimit != 0 || len(changed.Accounts) != 0 {
		t.Fatalf("%+v, %v", changed, err)
	}
	target, err := b.dir.find(t.Context(), made.ID)
	if err != nil || target.headers["Authorization"] != "Bearer s3cret" || len(target.keys(b.clock())) != 1 {
		t.Errorf("secrets were lost: %v, %v", target.headers, err)
	}
	for _, wantDeleted := range []bool{true, false} {
		if deleted, err := b.Delete(t.Context(), made.ID); deleted != wantDeleted || err != nil {
			t.Errorf("deleted %v, %v", deleted, err)
		}
	}
	if _, err := b.Endpoint(t.Context(), made.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("after deleting: %v", err)
	}
	if _, err := b.Update(t.Context(), made.ID, api.EndpointRequest{URL: "https://example.com"}); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("changing what is gone: %v", err)
	}
}

func TestEndpointsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for i := range 5 {
		b.advance(time.Second)
		ids = append(ids, b.endpoint(fmt.Sprintf("https://example.com/%d", i)).ID)
	}
	for _, row := range []struct {
		page, size int
		want       []string
	}{{0, 2, ids[:2]}, {2, 2, ids[4:]}, {3, 2, nil}, {0, 100, ids}} {
		got, err := b.Endpoints(t.Context(), row.page, row.size)
		if err != nil || got.Total != 5 || got.Pages != (5+row.size-1)/row.size || got.Page != row.page {
			t.Errorf("%+v, %v", got, err)
		}
		var shown []string
		for _, e := range got.Endpoints {
			shown = append(shown, e.ID)
		}
		if !slices.Equal(shown, row.want) {
			t.Errorf("page %d: %v, want %v", row.page, shown, row.want)
		}
	}
}

func TestEndpointRequestsAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		name string
		r    api.EndpointRequest
		want []string // keys of the wrong fields
	}{
		{"nothing", api.EndpointRequest{}, []string{"url"}},
		{"no URL but a path", api.EndpointRequest{URL: "/hook"}, []string{"url"}},
		{"unknown events, all named", api.EndpointRequest{URL: "https://a.b", Events: []string{"messageSent", "x",
			"y"}}, []string{"events[1]", "events[2]"}},
		{"a header of ours", api.EndpointRequest{URL: "https://a.b", Headers: map[string]string{
			"WebHook-Signature": "x"}}, []string{"headers.WebHook-Signature"}},
		{"the other signature", api.EndpointRequest{URL: "https://a.b", Headers: map[string]string{
			"x-ee-wh-signature": "x"}}, []string{"headers.x-ee-wh-signature"}},
		{"framing", api.EndpointRequest{URL: "https://a.b", Headers: map[string]string{"Content-Length": "0"}},
			[]string{"headers.Content-Length"}},
		{"a header injected by name", api.EndpointRequest{URL: "https://a.b", Headers: map[string]string{
			"X: y\r\nZ": "x"}}, []string{"headers.X: y\r\nZ"}},
		{"a header injected by value", api.EndpointRequest{URL: "https://a.b", Headers: map[string]string{
			"X": "a\r\nZ: b"}}, []string{"headers.X"}},
		{"a weak secret", api.EndpointRequest{URL: "https://a.b", Secret: "hunter2"}, []string{"secret"}},
		{"a rate below", api.EndpointRequest{URL: "https://a.b", RateLimit: -1}, []string{"rateLimit"}},
		{"a rate above", api.EndpointRequest{URL: "https://a.b", RateLimit: 10_001}, []string{"rateLimit"}},
		{"all at once", api.EndpointRequest{URL: "x", Secret: "x", RateLimit: -1},
			[]string{"url", "secret", "rateLimit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := b.Create(t.Context(), row.r)
			var keys []string
			if e, ok := err.(*fault.Error); ok {
				for _, f := range e.Fields {
					keys = append(keys, f.Key)
				}
			}
			if !fault.Is(err, fault.Invalid) || !slices.Equal(keys, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
	if page, err := b.Endpoints(t.Context(), 0, 10); err != nil || page.Total != 0 {
		t.Errorf("a refused endpoint was made: %+v, %v", page, err)
	}
}

func TestNewSecretKeepsTheOldOneForADay(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	if _, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{
		URL: rc.URL, Secret: newSecret()}); err != nil {
		t.Fatal(err)
	}
	signatures := func(id string) int {
		t.Helper()
		b.emit(id, event.MessageSent, "snd")
		b.fanOutAll()
		if v := b.run(ep.ID, id); v != "done" {
			t.Fatal(v)
		}
		all := rc.got()
		return len(strings.Fields(all[len(all)-1].header.Get("webhook-signature")))
	}
	if n := signatures("E1"); n != 2 {
		t.Errorf("%d signatures during rotation", n)
	}
	b.advance(25 * time.Hour)
	if n := signatures("E2"); n != 1 {
		t.Errorf("%d signatures afterwards", n)
	}
}

// Two people edit together: neither change is lost, and nothing is half of each.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("https://example.com/0")
	var wg sync.WaitGroup
	failed := make(chan error, 8)
	for i := range 8 {
		wg.Go(func() {
			n := fmt.Sprint(i)
			_, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "https://example.com/" + n,
				Secret: newSecret(), Description: n})
			if err != nil && !fault.Is(err, fault.Conflict) {
				failed <- err
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	got, err := b.Endpoint(t.Context(), ep.ID)
	if err != nil || got.URL != "https://example.com/"+got.Description {
		t.Errorf("%+v, %v", got, err)
	}
}

// An edit that began before another one ended must not undo it.
func TestEditOfSomethingOlderIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("https://example.com/0")
	before, e, s, err := b.load(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	if _, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "https://example.com/1",
		Secret: newSecret()}); err != nil {
		t.Fatal(err)
	}
	if err := b.write(t.Context(), before, &e, s, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if got, err := b.Endpoint(t.Context(), ep.ID); err != nil || got.URL != "https://example.com/1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSecretsOfAnEndpointStayWithItsURL: who may change an endpoint, or writes to Redis, can't have its
// secrets used for another URL without knowing them.
func TestSecretsOfAnEndpointStayWithItsURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("https://example.com/hook", func(r *api.EndpointRequest) {
		r.Headers = map[string]string{"Authorization": "Bearer s3cret", "X-Kind": "mail"}
	})
	headers := map[string]string{"Authorization": masked, "X-Kind": "mail"}
	for _, url := range []string{"https://evil.example/hook", "https://example.com:8443/hook",
		"http://example.com/hook", "https://example.com/other"} {
		for _, secret := range []string{"", "whsec_******"} {
			_, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: url, Secret: secret, Headers: headers})
			want := []string{"secret", "headers.Authorization"}
			if diff := cmp.Diff(want, testkit.WrongFields(t, err)); diff != "" {
				t.Errorf("%s: %s", url, diff)
			}
		}
	}
	found, err := b.dir.findSurely(t.Context(), ep.ID)
	if err != nil || found.url != "https://example.com/hook" ||
		found.headers["Authorization"] != "Bearer s3cret" {
		t.Fatalf("%+v, %v", found, err)
	}
	headers["Authorization"] = "Bearer other"
	if _, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "https://two.example/",
		Secret: newSecret(), Headers: headers}); err != nil {
		t.Fatal(err)
	}
	found, err = b.dir.findSurely(t.Context(), ep.ID)
	if err != nil || len(found.keys(b.clock())) != 1 {
		t.Errorf("the old secret signs for the new URL: %d keys, %v", len(found.keys(b.clock())), err)
	}

	raw, err := b.store.one(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	tampered := strings.Replace(raw, "two.example", "evil.example", 1)
	if _, err := b.store.put(t.Context(), ep.ID, raw, tampered, false); err != nil {
		t.Fatal(err)
	}
	b.dir.reload(t.Context())
	found, err = b.dir.findSurely(t.Context(), ep.ID)
	if err != nil || !errors.Is(found.broken, seal.ErrDamaged) || found.headers != nil {
		t.Errorf("after a change in Redis: %+v, %v", found, err)
	}
	_, err = b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "https://two.example/"})
	if diff := cmp.Diff([]string{"secret"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: "https://two.example/",
		Secret: newSecret()}); err != nil {
		t.Errorf("entered again: %v", err)
	}
}

// What is secret is in no answer but the first, no log, and not readable in Redis.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{500, 410}[min(n, 2)-1])
	})
	b := setup(t)
	secret, header, path := newSecret(), "Bearer h3ader", "/t0ken-in-the-path?key=qu3ry"
	ep := b.endpoint(rc.URL+path, func(r *api.EndpointRequest) {
		r.Secret, r.Headers = secret, map[string]string{"Authorization": header}
	})
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	b.run(ep.ID, "E1")
	var answers []any
	one, err1 := b.Endpoint(t.Context(), ep.ID)
	list, err2 := b.Endpoints(t.Context(), 0, 10)
	tested, err3 := b.Test(t.Context(), ep.ID, "")
	log, err4 := b.Deliveries(t.Context(), ep.ID, 0, 10)
	updated, err5 := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: rc.URL + path,
		Headers: map[string]string{"Authorization": masked}})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	answers = append(answers, one, list, tested, log, updated, b.delivery(ep.ID, "E1"))
	raw, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{strings.TrimPrefix(secret, secretPrefix), header}
	places := map[string]string{"answers": string(raw), "Redis": dump(t, b)}
	for place, text := range places {
		for _, s := range hidden {
			if strings.Contains(text, s) {
				t.Errorf("%s in %s", s, place)
			}
		}
	}
	for _, s := range append(hidden, "t0ken", "qu3ry") {
		if strings.Contains(b.log.String(), s) {
			t.Errorf("%s in the log", s)
		}
	}
	for _, entry := range b.entries() {
		if strings.Contains(entry.Text(streamField), "t0ken") {
			t.Error("the URL is in an event")
		}
	}
}

// dump reads all of a test's Redis as text.
func dump(t *testing.T, b *bundle) string {
	t.Helper()
	var all strings.Builder
	keys, err := b.db.Client().Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if hash, err := b.db.Client().HGetAll(t.Context(), key).Result(); err == nil {
			fmt.Fprintln(&all, key, hash)
		} else if text, err := b.db.Client().Get(t.Context(), key).Result(); err == nil {
			fmt.Fprintln(&all, key, text)
		}
	}
	if !strings.Contains(all.String(), "webhook:endpoints") {
		t.Fatal("the dump misses the endpoints")
	}
	return all.String()
}

// The keys of this package are those that its documentation lists.
func TestKeysAreListed(t *testing.T) {
	t.Parallel()
	rc := answering(t, 410)
	b := setup(t)
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) { r.RateLimit = 100 })
	b.emit("E1", event.MessageSent, "snd")
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	keys, err := b.db.Client().Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	want := []string{
		"postroom:{0}:events",
		"postroom:{0}:webhook:delivery:" + ep.ID + ":E1",
		"postroom:{0}:webhook:delivery:" + ep.ID + ":E2",
		"postroom:{0}:webhook:done:" + ep.ID,
		"postroom:{0}:webhook:due",
		"postroom:{0}:webhook:endpoints",
		"postroom:{0}:webhook:failing",
		hoursKey(ep.ID, b.clock()),
		"postroom:{0}:webhook:log:" + ep.ID,
		"postroom:{0}:webhook:made",
		"postroom:{0}:webhook:off",
		"postroom:{0}:webhook:rate:" + ep.ID,
		"postroom:{0}:webhook:version",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
}

func TestTestDelivery(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 2 {
			http.Error(w, "no such hook", 404)
		}
	})
	b := setup(t)
	off := false
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) { r.Enabled = &off })
	got, err := b.Test(t.Context(), ep.ID, "")
	if err != nil || !got.Success || got.StatusCode != 200 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = b.Test(t.Context(), ep.ID, "")
	if err != nil || got.Success || got.StatusCode != 404 || got.Response != "no such hook\n" ||
		got.Error != "answered 404 Not Found" {
		t.Errorf("%+v, %v", got, err)
	}
	if h := rc.got()[0].header; len(strings.Fields(h.Get("webhook-signature"))) != 1 {
		t.Error("the test is not signed")
	}
	var body struct{ Event, EventID string }
	if err := json.Unmarshal(rc.got()[0].body, &body); err != nil || body.Event != "webhookTest" ||
		body.EventID == "" {
		t.Errorf("%s, %v", rc.got()[0].body, err)
	}
	if page, err := b.Deliveries(t.Context(), ep.ID, 0, 10); err != nil || page.Total != 0 {
		t.Errorf("a test left a trace: %+v, %v", page, err)
	}
	if _, err := b.Test(t.Context(), "nowhere", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown endpoint: %v", err)
	}
}

func TestTestOfEachEventType(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) {
		r.Events, r.Accounts = []string{"messageSent"}, []string{"snd"}
	})
	for i, kind := range event.Types() {
		got, err := b.Test(t.Context(), ep.ID, string(kind))
		if err != nil || !got.Success {
			t.Fatalf("%s: %+v, %v", kind, got, err)
		}
		var body struct {
			Event   event.Type
			Account *string
			Data    map[string]any
		}
		if err := json.Unmarshal(rc.got()[i].body, &body); err != nil || body.Event != kind ||
			len(body.Data) < 2 && kind != event.WebhookTest {
			t.Errorf("%s: %s, %v", kind, rc.got()[i].body, err)
		}
		if marked := body.Data["test"] == true; marked == (kind == event.WebhookTest) {
			t.Errorf("%s says test: %v", kind, marked)
		}
		if kind == event.MessageBounce && (body.Data["bounceType"] != "hard" || *body.Account != "snd") {
			t.Errorf("a bounce: %s", rc.got()[i].body)
		}
	}
	var wrong *fault.Error
	if _, err := b.Test(t.Context(), ep.ID, "mail"); !errors.As(err, &wrong) || wrong.Fields[0].Key != "event" {
		t.Errorf("an unknown type: %v", err)
	}
}

func TestTestOfARefusedDestination(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t, func(o *Options) { o.AllowPrivate = false })
	ep := b.endpoint(rc.URL)
	got, err := b.Test(t.Context(), ep.ID, "")
	if err != nil || got.Success ||
		!strings.Contains(got.Error, "destination refused: the address is not a public one, and webhooks.allow") ||
		strings.Contains(got.Error, "127.0.0.1") ||
		len(rc.got()) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "bury" { // trying again would not help
		t.Errorf("verdict %s", v)
	}
}

func TestRedisAwayIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := b.Create(ctx, api.EndpointRequest{URL: "https://example.com"})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("create: %v", err)
	}
	if _, err = b.Endpoints(ctx, 0, 10); !fault.Is(err, fault.Unavailable) {
		t.Errorf("list: %v", err)
	}
}
