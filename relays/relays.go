package relays

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/seal"
)

// putTries is how often a change is tried against others at the same time.
const putTries = 5

// Options are the choices of the one who runs Postroom.
type Options struct {
	// Logger gets what could not be written of what gateways met. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

// Relays is the store of gateways. It is safe for concurrent use, by any number of processes on one Redis.
type Relays struct {
	store store
	ring  *seal.Ring
	log   *slog.Logger
	now   func() time.Time

	routes *redisdb.Cache[found]

	mu   sync.Mutex
	uses map[string]*use // what gateways met and is not written yet
}

// New prepares the package on an open database. It does no I/O. Run has to run for what gateways met to be written within a second.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Relays, error) {
	if db == nil || ring == nil {
		return nil, errors.New("relays: a database and a key ring are needed")
	}
	kept := newStore(db)
	r := &Relays{
		store: kept, ring: ring, log: o.Logger, now: o.Now, uses: map[string]*use{},
		routes: redisdb.NewCache[found](db, kept.records.VersionKey(), nil),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// Create stores a gateway, in place of one with the same id if there is one (state "existing", else "new"). Invalid reports every wrong
// field.
func (r *Relays) Create(ctx context.Context, g api.Gateway) (api.GatewayCreated, error) {
	if err := validate(g); err != nil {
		return api.GatewayCreated{}, err
	}
	existed, err := r.change(ctx, g.Gateway, func(*stored) (api.Gateway, error) { return g, nil })
	if err != nil {
		return api.GatewayCreated{}, err
	}
	state := "new"
	if existed {
		state = "existing"
	}
	return api.GatewayCreated{Gateway: g.Gateway, State: state}, nil
}

// Update changes the fields that the patch has; tls, oauth2 and limits are replaced as a whole. Unknown gateway: NotFound. Invalid reports
// every wrong field.
func (r *Relays) Update(ctx context.Context, id string, p api.GatewayPatch) (api.GatewayUpdated, error) {
	_, err := r.change(ctx, id, func(old *stored) (api.Gateway, error) {
		if old == nil {
			return api.Gateway{}, notFound()
		}
		g := patched(masked(old.Gateway), p)
		return g, validate(g)
	})
	if err != nil {
		return api.GatewayUpdated{}, err
	}
	return api.GatewayUpdated{Gateway: id}, nil
}

// change replaces a gateway by what edit makes of the one before (nil: there was none), and reports whether there was one. When somebody
// else changed it meanwhile, edit is asked again.
func (r *Relays) change(ctx context.Context, id string, edit func(old *stored) (api.Gateway, error)) (bool, error) {
	for range putTries {
		old, err := r.store.load(ctx, id)
		if err != nil {
			return false, away(err, "load gateway %s", id)
		}
		g, err := edit(old)
		if err != nil {
			return false, err
		}
		next, err := r.sealed(g, old)
		if err != nil {
			return false, err
		}
		done, err := r.store.put(ctx, next, old)
		if err != nil {
			return false, away(err, "store gateway %s", id)
		}
		if done {
			r.forget(id)
			return old != nil, nil
		}
	}
	return false, fault.New(fault.Conflict, "GatewayChanged", "The gateway is being changed by others; try again")
}

// Get shows a gateway with its state, secrets masked. Unknown: NotFound.
func (r *Relays) Get(ctx context.Context, id string) (api.GatewayInfo, error) {
	if !ValidID(id) {
		return api.GatewayInfo{}, notFound()
	}
	rows, err := r.infos(ctx, []string{id})
	switch {
	case err != nil:
		return api.GatewayInfo{}, err
	case len(rows) == 0:
		return api.GatewayInfo{}, notFound()
	}
	return rows[0], nil
}

// List shows a page of gateways by id. Pages count from 0; pageSize is 1 to 1000, zero means 20.
func (r *Relays) List(ctx context.Context, page, pageSize int) (api.GatewayPage, error) {
	page, pageSize = max(0, page), min(pageSize, 1000)
	if pageSize < 1 {
		pageSize = 20
	}
	ids, total, err := r.store.records.Page(ctx, page*pageSize, pageSize)
	if err != nil {
		return api.GatewayPage{}, away(err, "list gateways")
	}
	rows, err := r.infos(ctx, ids)
	if err != nil {
		return api.GatewayPage{}, err
	}
	return api.GatewayPage{Total: total, Page: page, Pages: (total + pageSize - 1) / pageSize, Gateways: rows}, nil
}

// Delete removes a gateway. Unknown: NotFound. It does not ask whether accounts list it; whoever deletes asks them first.
func (r *Relays) Delete(ctx context.Context, id string) error {
	existed, err := r.store.remove(ctx, id)
	switch {
	case err != nil:
		return away(err, "delete gateway %s", id)
	case !existed:
		return notFound()
	}
	r.forget(id)
	return nil
}

// forget drops what is remembered of a gateway after a change made here; what it met is another relay's past.
func (r *Relays) forget(id string) {
	r.routes.Clear()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.uses, id)
}

func notFound() error {
	return fault.New(fault.NotFound, "GatewayNotFound", "Gateway record was not found for requested ID; add it with POST /v1/gateway")
}
