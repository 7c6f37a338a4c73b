package erasure

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/outbox"
)

// Store is where something of a person may be.
type Store struct {
	Name string // as the receipt shows the searched store
	// Here returns nil if this process can visit the store, and Unavailable if only another one can. NotFound:
	// there is no such store. Nil means every process can.
	Here func(ctx context.Context) error
	// Erase erases the person. It tallies each part before it erases it, so that a crash leaves nothing
	// uncounted. It may be called again, and then finds the rest.
	Erase func(ctx context.Context, w outbox.Whom, tally outbox.Tally) error
	// Export adds what the store has of the person. Nil if that is in another store, too.
	Export func(ctx context.Context, w outbox.Whom, into *api.PersonalData) error
}

// Parts are what an Erasures needs.
type Parts struct {
	DB   *redisdb.DB
	Ring *seal.Ring
	// Digest returns the keyed hash of a text; see suppression.Store.
	Digest func(ctx context.Context, text string) (string, error)
	Stores []Store // in the order in which they are visited
	// Remaining describes where Postroom does not erase. account is empty for all accounts.
	Remaining func(account string) []string
	// Account returns NotFound for an account that does not exist.
	Account func(ctx context.Context, account string) error
}

// Options are the settings. The zero value works.
type Options struct {
	Logger   *slog.Logger          // nil means no log
	Registry prometheus.Registerer // nil means no metrics
	Lease    time.Duration         // after which another process continues; defaults to 30 s
	Every    time.Duration         // interval of looking for work; defaults to 1 s
	Again    time.Duration         // after a store that failed; defaults to 5 s
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
}

// keptFor is how long a receipt is kept: as long as somebody may ask for it.
const keptFor = 3 * 366 * 24 * time.Hour

// Erasures erases and exports people's data. It is safe for concurrent use by any number of processes.
type Erasures struct {
	Parts
	opts    Options
	log     *slog.Logger
	metrics *metrics
	leases  *lease.Set[*job]
}

// New returns an Erasures. It does no I/O. [Erasures.Run] does the work.
func New(parts Parts, o Options) (*Erasures, error) {
	if parts.DB == nil || parts.Ring == nil || parts.Digest == nil || parts.Remaining == nil ||
		parts.Account == nil {
		return nil, errors.New("new erasures: a part is missing")
	}
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Every = cmp.Or(o.Every, time.Second)
	o.Again = cmp.Or(o.Again, 5*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Erasures{Parts: parts, opts: o, log: log, metrics: newMetrics(o.Registry),
		leases: lease.NewSet(o.Lease, log, renew)}, nil
}

// record is an erasure as it is stored.
type record struct {
	api.Erasure
	Sealed string         `json:"sealed,omitempty"` // the address, while it is under way
	Step   int            `json:"step"`             // store that is visited
	Counts map[string]int `json:"counts"`
	Of     string         `json:"of"` // hash of account and address
}

// whom reads a request's person and account. The account exists, unless the caller is not bound.
func (e *Erasures) whom(ctx context.Context, bound string, in api.ErasureRequest) (outbox.Whom, error) {
	if bound != "" && in.Account != "" && in.Account != bound {
		return outbox.Whom{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	traces, err := message.NewTraces(in.Email)
	if err != nil {
		return outbox.Whom{}, fault.InvalidField("email", "%s", err)
	}
	if in.Account != "" && bound == "" {
		if err := e.Account(ctx, in.Account); err != nil {
			return outbox.Whom{}, err
		}
	}
	return outbox.Whom{Traces: traces, Account: cmp.Or(in.Account, bound)}, nil
}

// Start begins to erase a person, within the account of a bound caller. If that is under way, it answers how
// far it is. The answer does not depend on whether the person is known.
func (e *Erasures) Start(ctx context.Context, bound string, in api.ErasureRequest) (api.Erasure, error) {
	w, err := e.whom(ctx, bound, in)
	if err != nil {
		return api.Erasure{}, err
	}
	r := record{Erasure: api.Erasure{ID: rand.Text(), State: api.ErasureWaiting, Account: w.Account,
		Created: e.opts.Now().UTC().Truncate(time.Second), Remaining: []string{}}}
	if r.Person, err = e.Digest(ctx, w.Address()); err != nil {
		return api.Erasure{}, err
	}
	if r.Of, err = e.Digest(ctx, w.Account+" "+w.Address()); err != nil {
		return api.Erasure{}, err
	}
	r.Sealed = e.Ring.Seal([]byte(w.Address()), recordKey(r.ID))
	text, err := json.Marshal(r)
	if err != nil {
		return api.Erasure{}, err
	}
	id, err := startScript.RunReplicated(ctx, e.DB, []string{ofKey(r.Of), recordKey(r.ID), runningKey()},
		startArgs{r.ID, string(text)})
	if err != nil {
		return api.Erasure{}, redisdb.Failed(err, "start an erasure")
	}
	return e.Get(ctx, bound, id)
}

// Get returns how far an erasure is, or its receipt. NotFound: there is none, or not for this caller.
func (e *Erasures) Get(ctx context.Context, bound, id string) (api.Erasure, error) {
	r, err := e.read(ctx, id)
	if err == nil && bound != "" && r.Account != bound {
		err = notFound(id)
	}
	if err != nil {
		return api.Erasure{}, err
	}
	return e.shown(r)
}

func (e *Erasures) shown(r record) (api.Erasure, error) {
	text, err := json.Marshal(r.Counts)
	if err == nil {
		err = json.Unmarshal(text, &r.Places)
	}
	if r.State != api.ErasureDone {
		r.Remaining = e.Remaining(r.Account)
	}
	return r.Erasure, err
}

func notFound(id string) error {
	return fault.New(fault.NotFound, "ErasureNotFound", "There is no erasure %q", id)
}

func (e *Erasures) read(ctx context.Context, id string) (r record, err error) {
	text, err := e.DB.Client().Get(ctx, recordKey(id)).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return r, notFound(id)
	case err != nil:
		return r, redisdb.Failed(err, "read an erasure")
	}
	return r, json.Unmarshal(text, &r)
}

// Export returns a person's data, within the account of a bound caller. It reads all stores, which may take a
// while. It returns Unavailable if this process can't read one of them.
func (e *Erasures) Export(ctx context.Context, bound string, in api.ErasureRequest) (api.PersonalData,
	error) {
	w, err := e.whom(ctx, bound, in)
	if err != nil {
		return api.PersonalData{}, err
	}
	data := api.PersonalData{Email: w.Address(), Account: w.Account, Created: e.opts.Now().UTC(),
		Subscribers: []api.PersonalSubscriber{}, Campaigns: []api.PersonalCampaign{},
		Digests:  []api.PersonalDigest{},
		Messages: []api.LoggedMessage{}, Documents: []api.PersonalDocument{},
		Deliveries: []api.PersonalDelivery{}, Suppressions: []api.Suppression{},
		Remaining: slices.Clone(e.Remaining(w.Account))}
	for _, p := range e.Stores {
		if p.Export == nil {
			continue
		}
		if p.Here != nil {
			if err := p.Here(ctx); fault.Is(err, fault.NotFound) {
				continue
			} else if err != nil {
				return api.PersonalData{}, err
			}
		}
		if err := p.Export(ctx, w, &data); err != nil {
			return api.PersonalData{}, err
		}
	}
	return data, nil
}
