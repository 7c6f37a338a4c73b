package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a Settings on a Redis of its own.
type bundle struct {
	*Settings
	db  *redisdb.DB
	url string
}

func setup(t *testing.T) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), Options{})
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, o Options) bundle {
	t.Helper()
	ring, err := seal.New([]byte(strings.Repeat("secret", 6)))
	if err != nil {
		t.Fatal(err)
	}
	db := testredis.Connect(t, redisdb.Options{URL: url})
	s, err := New(db, ring, o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Settings: s, db: db, url: url}
}

// run runs Settings until the test ends.
func (b bundle) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func (b bundle) update(t *testing.T, s api.Settings) []string {
	t.Helper()
	updated, err := b.Update(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

func ptr[T any](v T) *T { return &v }

var everything = api.Settings{
	Webhooks: ptr("https://example.com/hook"), WebhookEvents: &[]string{"messageSent", "messageFailed"},
	WebhooksCustomHeaders: &[]api.CustomHeader{{Key: "Authorization", Value: "Bearer open sesame"}},
	WebhooksEnabled:       ptr(false), ServiceURL: ptr("https://mail.example.com"), DeliveryAttempts: ptr(3),
	QueueKeep:  ptr(5),
	TrackOpens: ptr(true), TrackClicks: ptr(true), BlockedLinks: &[]string{"evil.example"},
}

func TestUnchangedSettingsComeFromTheConfiguration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    Options
		want Values
	}{
		{"nothing configured", Options{}, Values{DeliveryAttempts: 10}},
		{"all configured", Options{ServiceURL: "https://a.example", DeliveryAttempts: 4, QueueKeep: 7,
			TrackOpens: true},
			Values{ServiceURL: "https://a.example", DeliveryAttempts: 4, QueueKeep: 7, TrackOpens: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := process(t, testredis.URL(t), tt.o)
			tt.want.BlockedLinks = []string{}
			tt.want.BlockedLinks = []string{}
			tt.want.Webhooks = Webhooks{Enabled: true, Events: []string{"*"}, Headers: []api.CustomHeader{}}
			if diff := cmp.Diff(tt.want, b.Current()); diff != "" {
				t.Error(diff)
			}
			got, err := b.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want.settings(), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	ring, err := seal.New([]byte(strings.Repeat("secret", 6)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(testredis.New(t), ring, Options{ServiceURL: "mail.example.com", DeliveryAttempts: 101,
		QueueKeep: -1})
	if diff := cmp.Diff([]string{"serviceUrl", "deliveryAttempts", "queueKeep"},
		wrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func TestUpdateChangesWhatTheRequestHas(t *testing.T) {
	b := setup(t)
	before, err := b.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, b.update(t, api.Settings{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"webhooks", "queueKeep"},
		b.update(t, api.Settings{QueueKeep: ptr(9), Webhooks: ptr("http://127.0.0.1/")})); diff != "" {
		t.Error(diff)
	}
	want := before
	want.QueueKeep, want.Webhooks = ptr(9), ptr("http://127.0.0.1/")
	if got, err := b.Get(t.Context()); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	all := []string{"webhooks", "webhookEvents", "webhooksCustomHeaders", "webhooksEnabled", "serviceUrl",
		"deliveryAttempts", "queueKeep",
		"trackOpens", "trackClicks", "blockedLinks"}
	if diff := cmp.Diff(all, b.update(t, everything)); diff != "" {
		t.Error(diff)
	}
	if got, err := b.Get(t.Context()); err != nil || cmp.Diff(everything, got) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(everything, got))
	}
	if n := reflect.TypeFor[api.Settings]().NumField(); n != len(all) {
		t.Errorf("api.Settings has %d fields, of which %d can be set", n, len(all))
	}
	b.update(t, api.Settings{Webhooks: ptr(""), WebhookEvents: &[]string{},
		WebhooksCustomHeaders: &[]api.CustomHeader{}})
	if got := b.Current().Webhooks; got.URL != "" || len(got.Events) != 0 || len(got.Headers) != 0 {
		t.Errorf("after clearing: %v", got)
	}
}

func TestChangesOutliveTheProcessAndItsConfiguration(t *testing.T) {
	b := setup(t)
	b.update(t, everything)
	later := process(t, b.url, Options{ServiceURL: "https://other.example", DeliveryAttempts: 20})
	got, err := later.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(everything, got); diff != "" {
		t.Error(diff)
	}
}

func TestOtherProcessesSeeAChange(t *testing.T) {
	b := setup(t)
	other := process(t, b.url, Options{})
	other.run(t)
	b.update(t, api.Settings{DeliveryAttempts: ptr(2)})
	if got := b.Current().DeliveryAttempts; got != 2 {
		t.Errorf("where it was changed: %d", got)
	}
	eventually(t, "the change is seen elsewhere", func() bool { return other.Current().DeliveryAttempts == 2 })
}

func TestRunReadsEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		var mu sync.Mutex
		s := &Settings{log: slog.New(slog.DiscardHandler), reading: make(redisdb.Turn, 1),
			store: store{client: failing{func() { mu.Lock(); asked++; mu.Unlock() }}}}
		s.current.Store(&Values{DeliveryAttempts: 6})
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(10*time.Second + time.Millisecond) // on the bubble's clock
		mu.Lock()
		if asked != 11 {
			t.Errorf("asked %d times in ten seconds", asked)
		}
		mu.Unlock()
		if got := s.Current().DeliveryAttempts; got != 6 {
			t.Errorf("after failures: %d attempts, want the last known 6", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWhileRedisIsAwayTheLastKnownSettingsStand(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), Options{})
	b.update(t, api.Settings{DeliveryAttempts: ptr(2)})
	server.Kill()
	b.run(t)
	if _, err := b.Get(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Get: %v", err)
	}
	if _, err := b.Update(t.Context(), api.Settings{DeliveryAttempts: ptr(3)}); !fault.Is(err,
		fault.Unavailable) {
		t.Errorf("Update: %v", err)
	}
	if got := b.Current().DeliveryAttempts; got != 2 {
		t.Errorf("%d attempts", got)
	}
	server.Restart(t)
	process(t, server.URL(), Options{}).update(t, api.Settings{DeliveryAttempts: ptr(4)})
	eventually(t, "Run reads again", func() bool { return b.Current().DeliveryAttempts == 4 })
}

func TestHeaderValuesAreSealedAndNotLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	b := process(t, testredis.URL(t), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	b.update(t, everything)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "webhooks", b.Current().Webhooks)
	fmt.Fprintf(&log, "%v %+v %s", b.Current(), b.Current(), b.Current().Webhooks)
	if strings.Contains(log.String(), "sesame") || !strings.Contains(log.String(), "Authorization") {
		t.Errorf("log: %s", log.String())
	}
	if !testredis.Holds(t, b.db, "example.com/hook") {
		t.Fatal("the search finds nothing at all")
	}
	if testredis.Holds(t, b.db, "sesame") {
		t.Error("a header's value is in Redis")
	}
}

func TestSettingsOfANewerVersionStayUntouched(t *testing.T) {
	b := setup(t)
	if err := b.db.Client().HSet(t.Context(), settingsKey(), "fromTheFuture", "{").Err(); err != nil {
		t.Fatal(err)
	}
	b.update(t, api.Settings{QueueKeep: ptr(1)})
	if got := b.db.Client().HGet(t.Context(), settingsKey(), "fromTheFuture").Val(); got != "{" {
		t.Errorf("%q", got)
	}
}

func TestLostSettingsAreThoseOfTheConfigurationAgain(t *testing.T) {
	b := setup(t)
	before := b.Current()
	b.update(t, everything)
	if err := b.db.Client().Del(t.Context(), settingsKey()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, b.Current()); diff != "" {
		t.Error(diff)
	}
}

func TestDamagedSettingIsNamed(t *testing.T) {
	b := setup(t)
	for _, name := range []string{"queueKeep", "deliveryAttempts"} {
		if err := b.db.Client().HSet(t.Context(), settingsKey(), name, `"x"`).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(t.Context()); err == nil || fault.KindOf(err) != fault.Internal ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.db.Client().HDel(t.Context(), settingsKey(), name).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnswersAsTheOriginal(t *testing.T) {
	b := setup(t)
	var get struct {
		Response struct{ Body map[string]any }
	}
	readJSON(t, "settings-get.json", &get)
	var post struct {
		Request  struct{ Body map[string]any }
		Response struct{ Body map[string]any }
	}
	readJSON(t, "settings-post.json", &post)

	var req api.Settings
	text, err := json.Marshal(map[string]any{
		"queueKeep": post.Request.Body["queueKeep"], "webhooks": get.Response.Body["webhooks"],
		"webhookEvents": get.Response.Body["webhookEvents"],
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &req); err != nil {
		t.Fatal(err)
	}
	updated := asMap(t, api.SettingsUpdated{Updated: b.update(t, req)})
	if _, same := post.Response.Body["updated"].([]any); !same || len(updated) != len(post.Response.Body) {
		t.Errorf("POST answers %v, recorded %v", updated, post.Response.Body)
	}
	settings, err := b.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := asMap(t, settings)
	for _, name := range []string{"queueKeep", "webhooksEnabled", "webhooks", "webhookEvents"} {
		if diff := cmp.Diff(get.Response.Body[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func asMap(t *testing.T, v any) (m map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// wrongFields lists the keys of an Invalid error.
func wrongFields(t *testing.T, err error) []string {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid {
		t.Fatalf("error %v, want Invalid", err)
	}
	var keys []string
	for _, field := range f.Fields {
		keys = append(keys, field.Key)
	}
	return keys
}

// TestHeadersOfWebhooksStayWithTheirAddress: who may change settings, or writes to Redis, can't have
// the headers sent elsewhere without knowing them.
func TestHeadersOfWebhooksStayWithTheirAddress(t *testing.T) {
	b := setup(t)
	key := api.CustomHeader{Key: "Authorization", Value: "Bearer hunter2"}
	set := func(url string, h api.CustomHeader) {
		b.update(t, api.Settings{Webhooks: &url, WebhooksCustomHeaders: &[]api.CustomHeader{h}})
	}
	set("https://example.com/hook", key)
	b.update(t, api.Settings{Webhooks: new("https://example.com/hook"), QueueKeep: new(3)})
	for _, url := range []string{"https://evil.example/", "https://example.com:8443/hook",
		"http://example.com/hook", "https://example.com/other", ""} {
		_, err := b.Update(t.Context(), api.Settings{Webhooks: &url})
		if diff := cmp.Diff([]string{"webhooksCustomHeaders"}, testkit.WrongFields(t, err)); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
	b.headers(t, key)
	moved := api.CustomHeader{Key: "Authorization", Value: "Bearer other"}
	set("https://two.example/", moved)
	b.headers(t, moved)

	changed := b.db.Client().HSet(t.Context(), settingsKey(), "webhooks", `"https://evil.example/"`)
	if err := changed.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := b.Current().Webhooks
	if !errors.Is(w.Broken, seal.ErrDamaged) || len(w.Headers) > 0 {
		t.Errorf("after a change in Redis: %v, %v", w.Headers, w.Broken)
	}
	if _, err := b.Update(t.Context(), api.Settings{Webhooks: new("https://two.example/")}); err == nil {
		t.Error("an address was set while the headers don't open")
	}
	set("https://two.example/", key)
	if w := b.Current().Webhooks; w.Broken != nil || w.Headers[0] != key {
		t.Errorf("entered again: %v, %v", w.Headers, w.Broken)
	}
}
