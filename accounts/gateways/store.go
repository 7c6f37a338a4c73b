package gateways

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Options are the settings of a Store. The zero value works.
type Options struct {
	// Guard judges the hosts that gateways and accounts name. Nil if it permits private addresses.
	Guard *dialing.Guard
	// ServiceURL returns the public address, which webhooks are posted to. Nil, or empty: there is none.
	ServiceURL func() string
	// InUse refuses to delete what something needs. Nil if nothing does.
	InUse records.InUse
	// Logger gets failures to store results of attempts. Nil if nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

// Store stores the gateways. It is safe for concurrent use, by any number of processes on one Redis.
type Store struct {
	client redisdb.Evaler
	guard  *dialing.Guard
	store  *records.Store[api.Gateway]
	log    *slog.Logger
	now    func() time.Time
	public func() string // Options.ServiceURL

	routes *redisdb.Cache[found]

	mu   sync.Mutex
	uses map[string]*use // results that are not written yet, by gateway
}

// New returns a Store on an open database. It does no I/O. [Store.Run] must run: it writes results of
// attempts within a second.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Store, error) {
	if db == nil || ring == nil {
		return nil, errors.New("gateways: a database and a key ring are needed")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Guard = cmp.Or(o.Guard, dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}))
	if o.ServiceURL == nil {
		o.ServiceURL = func() string { return "" }
	}
	s := &Store{client: db.Client(), guard: o.Guard, log: o.Logger, now: o.Now, public: o.ServiceURL,
		uses: map[string]*use{}}
	s.store = newStore(db, ring, records.Options[api.Gateway]{Forget: s.forget, Now: o.Now,
		InUse: o.InUse})
	s.routes = redisdb.NewCache[found](db, s.store.VersionKey(), nil)
	return s, nil
}

// Create stores a gateway. It replaces one with the same id (state "existing", else "new"). Invalid names
// every wrong field.
func (s *Store) Create(ctx context.Context, g api.Gateway) (api.GatewayCreated, error) {
	g, secret := withSecret(g)
	if err := s.Check(g); err != nil {
		return api.GatewayCreated{}, err
	}
	g.Warmup = s.begun(g.Warmup)
	made := ""
	state, err := s.store.Create(ctx, g.Gateway, func(old *stored) (next api.Gateway, err error) {
		next, made = withHookSecret(old, g)
		return next, nil
	})
	return api.GatewayCreated{Gateway: g.Gateway, State: state, Secret: secret, WebhookSecret: made}, err
}

// Update changes the fields of a patch; tls, oauth2 and limits are replaced as a whole. Unknown gateway:
// NotFound. Invalid names every wrong field.
func (s *Store) Update(ctx context.Context, id string, p api.GatewayPatch) (api.GatewayUpdated, error) {
	err := s.store.Update(ctx, id, func(old *stored) (api.Gateway, error) {
		g := patched(old.Value, p)
		if p.Type != nil && cmp.Or(*p.Type, api.GatewaySMTP) != cmp.Or(old.Value.Type, api.GatewaySMTP) {
			return g, fault.InvalidFields(fault.Fields{{Key: "type",
				Message: "can't be changed. Add another gateway"}})
		}
		g.Warmup = s.begun(g.Warmup)
		g, _ = withHookSecret(old, g)
		return g, s.Check(g)
	})
	return api.GatewayUpdated{Gateway: id}, err
}

// Get returns a gateway with its state, secrets masked, or NotFound.
func (s *Store) Get(ctx context.Context, id string) (api.GatewayInfo, error) {
	g, err := s.store.Get(ctx, id)
	if err != nil {
		return api.GatewayInfo{}, err
	}
	return s.info(g), nil
}

// List returns a page of gateways by id. Pages count from 0; pageSize is 1 to 1000, zero means 20.
func (s *Store) List(ctx context.Context, page, pageSize int) (api.GatewayPage, error) {
	p, err := s.store.Page(ctx, page, pageSize)
	return api.GatewayPage{PageNumbers: api.PageNumbers{Total: p.Total, Page: p.Number, Pages: p.Pages},
		Gateways: records.Map(p, s.info)}, err
}

// Delete removes a gateway, or returns NotFound. The caller checks that no account lists it.
func (s *Store) Delete(ctx context.Context, id string) error { return s.store.Delete(ctx, id) }

// Reseal is [records.Store.Reseal].
func (s *Store) Reseal(ctx context.Context) (int, error) { return s.store.Reseal(ctx) }

// forget drops a gateway's cached data after a change by this process. It also drops unwritten results: they
// are about the previous relay.
func (s *Store) forget(id string) {
	s.routes.Clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uses, id)
}

func notFound(string) error {
	return fault.New(fault.NotFound, "GatewayNotFound",
		"Gateway record was not found for requested ID; add it with POST /v1/gateway")
}
