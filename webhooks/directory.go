package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb/seal"
)

// Target is an endpoint that nobody made through the API: it comes from the settings, or from an account.
type Target struct {
	ID      string            // [SettingsID], or what [AccountID] gives
	URL     string            // absolute, http or https
	Events  []string          // event types; none, or "*", for all
	Headers map[string]string // added to each request, but for those that are Postroom's to set
}

// SettingsID is the id of the endpoint in the instance's settings.
const SettingsID = "settings"

const accountPrefix = "account:"

// AccountID is the id of the endpoint in an account.
func AccountID(account string) string { return accountPrefix + account }

// target is an endpoint ready for use, wherever it comes from.
type target struct {
	id, url  string
	events   map[string]bool // nil: all
	accounts map[string]bool // nil: all
	headers  map[string]string
	rate     int                          // requests a second; 0: any number
	keys     func(now time.Time) [][]byte // that sign
	off      string                       // why it gets nothing; empty when it does
	broken   error                        // why it can't be used, though it should be
}

// wants says whether the endpoint is to hear about an event.
func (t *target) wants(e *event.Event) bool {
	return t.off == "" && (t.events == nil || t.events[string(e.Type)]) && (t.accounts == nil || t.accounts[e.Account])
}

// gateKey is the name of the endpoint at the gate. An endpoint at a new URL has a new one.
func (t *target) gateKey() string { return t.id + " " + t.url }

// directory keeps all endpoints in memory. What another process changes is seen here within about a second: one version number is
// asked for at most once a second, and only while somebody asks.
type directory struct {
	store   store
	ring    *seal.Ring
	named   func(ctx context.Context, account string) ([]Target, error) // Options.Implicit
	service [][]byte                                                    // the instance's keys: sign for targets without one of their own
	log     *slog.Logger

	now     atomic.Pointer[snapshot]
	loading sync.Mutex
}

// snapshot is all endpoints at one version. It is never changed.
type snapshot struct {
	version string
	checked atomic.Int64 // when the version was last compared, in Unix nanoseconds
	targets map[string]*target
	list    []*target
	off     map[string]switchedOff
}

const freshFor = time.Second

// current gives the endpoints, at most about a second old. While Redis is away it gives the last ones it knew, if any.
func (d *directory) current(ctx context.Context) (*snapshot, error) {
	have := d.now.Load()
	if have != nil && time.Since(time.Unix(0, have.checked.Load())) < freshFor {
		return have, nil
	}
	if have != nil && !d.loading.TryLock() { // somebody is looking already
		return have, nil
	} else if have == nil {
		d.loading.Lock()
	}
	defer d.loading.Unlock()
	fresh, err := d.refresh(ctx, d.now.Load())
	if err != nil && have != nil {
		d.log.Warn("webhook endpoints may be out of date", "error", err)
		have.checked.Store(time.Now().UnixNano())
		return have, nil
	}
	return fresh, err
}

// refresh compares versions and loads everything when they differ.
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

// reload takes up a change that this process has just made. Should it fail, the change is seen a second later.
func (d *directory) reload(ctx context.Context) {
	d.loading.Lock()
	defer d.loading.Unlock()
	if _, err := d.refresh(ctx, nil); err != nil {
		d.log.Warn("webhook endpoints may be out of date", "error", err)
	}
}

// build makes a snapshot of what is stored. An endpoint that can't be read is kept, broken, so that its deliveries wait for it.
func (d *directory) build(all stored) *snapshot {
	s := &snapshot{
		version: all.version,
		targets: make(map[string]*target, len(all.endpoints)),
		off:     make(map[string]switchedOff, len(all.off)),
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
		s.targets[id] = t
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
	t := &target{id: id, url: e.URL, events: set(e.Events), accounts: set(e.Accounts), rate: e.RateLimit}
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

// switchOff marks a target that failed for too long, as long as it is still at the URL where it did.
func (s *snapshot) switchOff(t *target) {
	if o, ok := s.off[t.id]; ok && t.off == "" && o.URL == t.url {
		t.off = o.Reason
	}
}

// implicit gives the targets that settings and accounts name for an account.
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
		t := &target{id: n.ID, url: n.URL, events: set(filter(n.Events)), headers: n.Headers, keys: func(time.Time) [][]byte { return d.service }}
		if own := accountOf(n.ID); own != "" {
			t.accounts = set([]string{own})
		}
		s.switchOff(t)
		targets = append(targets, t)
	}
	return targets, nil
}

// serviceKeys are those that sign for targets without a secret of their own: the bytes of the instance's signing secrets.
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

// find gives the target of an id; nil when there is none.
func (d *directory) find(ctx context.Context, id string) (*target, error) {
	s, err := d.current(ctx)
	if err != nil {
		return nil, err
	}
	if t := s.targets[id]; t != nil {
		return t, nil
	}
	account := accountOf(id)
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

// findSurely is find with a look at Redis before it says that an endpoint is gone or off: another process may have made it, or
// switched it on, a moment ago.
func (d *directory) findSurely(ctx context.Context, id string) (*target, error) {
	t, err := d.find(ctx, id)
	if err != nil || t != nil && t.off == "" {
		return t, err
	}
	d.loading.Lock()
	_, err = d.refresh(ctx, d.now.Load())
	d.loading.Unlock()
	if err != nil {
		return nil, err
	}
	return d.find(ctx, id)
}

func set(names []string) map[string]bool {
	if len(names) == 0 {
		return nil
	}
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
