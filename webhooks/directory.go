package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Target is an endpoint that was not created through the API: it comes from the settings or from an
// account.
type Target struct {
	ID      string            // [SettingsID], or the result of [AccountID]
	URL     string            // absolute, http or https
	Events  []string          // event types; none, or "*", for all
	Headers map[string]string // added to each request, except for headers that Postroom sets
	Broken  error             // why its headers don't open; its deliveries wait then
}

// SettingsID is the id of the endpoint in the instance's settings.
const SettingsID = "settings"

const accountPrefix = "account:"

// AccountID returns the id of the endpoint of an account.
func AccountID(account string) string { return accountPrefix + account }

// target is an endpoint ready for use, from any source.
type target struct {
	id, url  string
	from     int64    // the first millisecond of the stream whose events it gets; 0 means all
	events   []string // sorted; empty for all
	accounts []string // sorted; empty for all
	headers  map[string]string
	rate     int                          // requests a second; 0 means any number
	keys     func(now time.Time) [][]byte // that sign requests
	off      string                       // why it is switched off; empty if it is on
	woken    string                       // changes when a rest of it ends by request
	broken   error                        // why it cannot be used although it is on
}

// wants reports whether the endpoint receives this event.
func (t *target) wants(e *event.Event) bool {
	return t.off == "" && !e.Quiet && holds(t.events, string(e.Type)) && holds(t.accounts, e.Account)
}

// holds reports whether a sorted list has a name. An empty list has every name.
func holds(list []string, name string) bool {
	_, found := slices.BinarySearch(list, name)
	return found || len(list) == 0
}

// breakerKey is the endpoint's key in the breaker. It changes with the URL.
func (t *target) breakerKey() string { return t.id + " " + t.url }

// directory keeps all endpoints in memory. Changes by another process are seen within about a second: the
// version number is read at most once a second, and only when endpoints are requested.
type directory struct {
	store store
	ring  *seal.Ring
	named func(ctx context.Context, account string) ([]Target, error) // Options.Implicit
	// the instance's keys: sign for targets without one of their own
	service [][]byte
	log     *slog.Logger

	now     atomic.Pointer[snapshot]
	loading redisdb.Turn
}

// snapshot is all endpoints at one version. It is immutable.
type snapshot struct {
	version string
	checked atomic.Int64 // when the version was last compared, in Unix nanoseconds
	targets map[string]*target
	list    []*target
	off     map[string]switchedOff
	woken   map[string]string
}

const freshFor = time.Second

// current returns the endpoints, at most about a second old. While Redis is unavailable it returns the last
// known ones, if any.
func (d *directory) current(ctx context.Context) (*snapshot, error) {
	have := d.now.Load()
	if have == nil {
		return d.latest(ctx)
	}
	if time.Since(time.Unix(0, have.checked.Load())) < freshFor {
		return have, nil
	}
	select {
	case d.loading <- struct{}{}:
	default: // another goroutine is refreshing already
		return have, nil
	}
	defer d.loading.Give()
	fresh, err := d.refresh(ctx, d.now.Load())
	if err != nil {
		d.log.Warn("webhook endpoints may be out of date", "error", err)
		have.checked.Store(time.Now().UnixNano())
		return have, nil
	}
	return fresh, nil
}

// latest returns the endpoints as Redis has them now, or an error.
func (d *directory) latest(ctx context.Context) (*snapshot, error) {
	if err := d.loading.Take(ctx); err != nil {
		return nil, err
	}
	defer d.loading.Give()
	return d.refresh(ctx, d.now.Load())
}

// refresh compares versions and loads all endpoints if they differ.
func (d *directory) refresh(ctx context.Context, have *snapshot) (*snapshot, error) {
	asked := time.Now()
	if have != nil {
		version, err := d.store.version(ctx)
		if err != nil {
			return nil, err
		}
		if version == have.version {
			have.checked.Store(asked.UnixNano())
			return have, nil
		}
	}
	all, err := d.store.all(ctx)
	if err != nil {
		return nil, err
	}
	fresh := d.build(all)
	fresh.checked.Store(asked.UnixNano())
	d.now.Store(fresh)
	return fresh, nil
}

// reload loads a change that this process has just made. If it fails, the change is seen a second later.
func (d *directory) reload(ctx context.Context) {
	if _, err := d.latest(ctx); err != nil {
		d.log.Warn("webhook endpoints may be out of date", "error", err)
	}
}

// build makes a snapshot of the stored endpoints. An endpoint that cannot be read is kept as broken, so
// that its deliveries wait.
func (d *directory) build(all stored) *snapshot {
	s := &snapshot{
		version: all.version,
		targets: make(map[string]*target, len(all.endpoints)),
		off:     make(map[string]switchedOff, len(all.off)),
		woken:   all.woken,
	}
	for id, raw := range all.off {
		var o switchedOff
		if err := json.Unmarshal([]byte(raw), &o); err != nil {
			d.log.Error("can't read why a webhook endpoint is off", "endpoint", id, "error", err)
			continue
		}
		s.off[id] = o
	}
	for id, raw := range all.endpoints {
		t := d.ready(id, raw)
		s.targets[id], t.woken = t, all.woken[id]
		if s.switchOff(t); t.off == "" {
			s.list = append(s.list, t)
		}
	}
	return s
}

// ready makes a stored endpoint ready for use.
func (d *directory) ready(id, raw string) *target {
	var e endpoint
	if err := json.Unmarshal([]byte(raw), &e); err != nil {
		d.log.Error("can't read webhook endpoint", "endpoint", id, "error", err)
		return &target{id: id, off: "its record can't be read"}
	}
	t := &target{id: id, url: e.URL, from: e.From, events: e.Events, accounts: e.Accounts, rate: e.RateLimit}
	if !e.Enabled {
		t.off = "disabled"
		return t
	}
	s, err := e.open(d.ring)
	if err != nil {
		d.log.Error("can't open the secrets of a webhook endpoint", "endpoint", id, "error", err)
		t.broken = err
		return t
	}
	t.headers, t.keys = s.Headers, s.keys
	return t
}

// switchOff marks a target as switched off, if it is still at the URL that failed.
func (s *snapshot) switchOff(t *target) {
	if o, ok := s.off[t.id]; ok && t.off == "" && o.URL == t.url {
		t.off = o.Reason
	}
}

// implicit returns the targets that settings and accounts name for an account.
func (d *directory) implicit(ctx context.Context, s *snapshot, account string) ([]*target, error) {
	if d.named == nil {
		return nil, nil
	}
	named, err := d.named(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("ask for webhooks of account %q: %w", account, err)
	}
	targets := make([]*target, 0, len(named))
	for _, n := range named {
		t := &target{id: n.ID, url: n.URL, events: filter(n.Events), headers: n.Headers,
			broken: n.Broken, woken: s.woken[n.ID], keys: func(time.Time) [][]byte { return d.service }}
		if own := endpointAccount(n.ID); own != "" {
			t.accounts = []string{own}
		}
		s.switchOff(t)
		targets = append(targets, t)
	}
	return targets, nil
}

// serviceKeys returns the keys that sign for targets without their own secret: the bytes of the instance's
// signing secrets.
func serviceKeys(o Options) [][]byte {
	if o.Secret == "" {
		return nil
	}
	keys := [][]byte{[]byte(o.Secret)}
	for _, older := range o.OlderSecrets {
		keys = append(keys, []byte(older))
	}
	return keys
}

// find returns the target of an id, or nil if there is none.
func (d *directory) find(ctx context.Context, id string) (*target, error) {
	s, err := d.current(ctx)
	if err != nil {
		return nil, err
	}
	if t := s.targets[id]; t != nil {
		return t, nil
	}
	account := endpointAccount(id)
	if account == "" && id != SettingsID {
		return nil, nil
	}
	targets, err := d.implicit(ctx, s, account)
	if err != nil {
		return nil, err
	}
	for _, t := range targets {
		if t.id == id {
			return t, nil
		}
	}
	return nil, nil
}

// findSurely is find, but reads Redis before it reports an endpoint as missing or off: another process may
// just have created or enabled it.
func (d *directory) findSurely(ctx context.Context, id string) (*target, error) {
	t, err := d.find(ctx, id)
	if err != nil || t != nil && t.off == "" {
		return t, err
	}
	if _, err = d.latest(ctx); err != nil {
		return nil, err
	}
	return d.find(ctx, id)
}
