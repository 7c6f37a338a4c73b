package gateways

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/records"
	"github.com/postroom/postroom/redisdb/seal"
)

// Options are the choices of the one who runs Postroom.
type Options struct {
	// Logger gets what could not be written of what gateways met. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

// Store is the store of gateways. It is safe for concurrent use, by any number of processes on one Redis.
type Store struct {
	client redisdb.Evaler
	store  *records.Store[api.Gateway]
	log    *slog.Logger
	now    func() time.Time

	routes *redisdb.Cache[found]

	mu   sync.Mutex
	uses map[string]*use // what gateways met and is not written yet
}

// New prepares the package on an open database. It does no I/O. Run has to run for what gateways met to be
// written within a second.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Store, error) {
	if db == nil || ring == nil {
		return nil, errors.New("relays: a database and a key ring are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{client: db.Client(), log: o.Logger, now: o.Now, uses: map[string]*use{}}
	s.store = newStore(db, ring, records.Options[api.Gateway]{Forget: s.forget, Now: o.Now})
	s.routes = redisdb.NewCache[found](db, s.store.VersionKey(), nil)
	return s, nil
}

// Create stores a gateway, in place of one with the same id if there is one (state "existing", else "new").
// Invalid reports every wrong field.
func (s *Store) Create(ctx context.Context, g api.Gateway) (api.GatewayCreated, error) {
	if err := validate(g); err != nil {
		return api.GatewayCreated{}, err
	}
	g.Warmup = s.begun(g.Warmup)
	state, err := s.store.Create(ctx, g.Gateway, func(*stored) (api.Gateway, error) { return g, nil })
	return api.GatewayCreated{Gateway: g.Gateway, State: state}, err
}

// Update changes the fields that the patch has; tls, oauth2 and limits are replaced as a whole. Unknown
// gateway: NotFound. Invalid reports every wrong field.
func (s *Store) Update(ctx context.Context, id string, p api.GatewayPatch) (api.GatewayUpdated, error) {
	err := s.store.Update(ctx, id, func(old *stored) (api.Gateway, error) {
		g := patched(old.Value, p)
		g.Warmup = s.begun(g.Warmup)
		return g, validate(g)
	})
	return api.GatewayUpdated{Gateway: id}, err
}

// Get shows a gateway with its state, secrets masked. Unknown: NotFound.
func (s *Store) Get(ctx context.Context, id string) (api.GatewayInfo, error) {
	g, err := s.store.Get(ctx, id)
	if err != nil {
		return api.GatewayInfo{}, err
	}
	return s.info(g), nil
}

// List shows a page of gateways by id. Pages count from 0; pageSize is 1 to 1000, zero means 20.
func (s *Store) List(ctx context.Context, page, pageSize int) (api.GatewayPage, error) {
	p, err := s.store.Page(ctx, page, pageSize)
	return api.GatewayPage{Total: p.Total, Page: p.Number, Pages: p.Pages,
		Gateways: records.Map(p, s.info)}, err
}

// Delete removes a gateway. Unknown: NotFound. It does not ask whether accounts list it; whoever deletes asks
// them first.
func (s *Store) Delete(ctx context.Context, id string) error { return s.store.Delete(ctx, id) }

// Reseal seals anew, under the current secret of the instance, what was sealed under an older one: see
// [records.Store.Reseal].
func (s *Store) Reseal(ctx context.Context) (int, error) { return s.store.Reseal(ctx) }

// forget drops what is remembered of a gateway after a change made here; what it met is another relay's past.
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
