package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

const (
	// maxRounds bounds the flights that one call waits for.
	maxRounds = 4
	// maxOwners bounds the memory of a process. Beyond it, owners without a request are read from Redis again.
	maxOwners = 10_000
	// settle bounds the time that Run waits for requests at the end: an answer that is not stored may be a
	// refresh token lost.
	settle = askTimeout + 5*time.Second
	// How long this process does not ask a token server again that refused permanently, or gave no token.
	// Otherwise every waiting message would ask.
	pausePermanent = 30 * time.Second
	pauseTransient = 5 * time.Second
)

// Options are the settings of Tokens. The zero value works.
type Options struct {
	// Guard judges the token servers that accounts name. Nil if it permits private addresses.
	Guard *dialing.Guard
	// Logger gets each new token, and each failure. Nil if nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

// Tokens stores access tokens. It is safe for concurrent use, by any number of processes on one Redis.
type Tokens struct {
	store store
	ring  *seal.Ring
	asker asker
	log   *slog.Logger
	now   func() time.Time
	fence string // name of this process in locks

	mu     sync.Mutex
	owners map[string]*owner
}

// owner is the state of an owner in this process.
type owner struct {
	record   record    // as last read or stored
	failure  *failure  // the last request's; nil if it succeeded
	unstored *rotation // a rotated refresh token that is not in Redis yet
	flight   *flight   // a running request
}

// failure is a request that failed.
type failure struct {
	client Client
	until  time.Time // later requests get the same error until then
	err    *Error
}

// rotation is a record that has to replace another in Redis.
type rotation struct{ before, after record }

// flight is a running request, which several callers wait for.
type flight struct {
	client Client
	done   chan struct{} // closed when token and err are set
	token  string
	err    error
}

// New returns Tokens on an open database. It does no I/O.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Tokens, error) {
	if db == nil || ring == nil {
		return nil, errors.New("oauth: a database and a key ring are needed")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Guard = cmp.Or(o.Guard, dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tokens{
		store: store{client: db.Client()}, ring: ring, asker: newAsker(o.Guard, o.Now), log: o.Logger, now: o.Now,
		fence:  rand.Text(),
		owners: map[string]*owner{},
	}, nil
}

// Run returns nil after ctx has ended and the answers of running requests are stored. It waits some seconds
// at most.
func (t *Tokens) Run(ctx context.Context) error {
	<-ctx.Done()
	late := time.NewTimer(settle)
	defer late.Stop()
	for _, f := range t.flights() {
		select {
		case <-f.done:
		case <-late.C:
			t.log.Warn("stopping before a token server has answered")
			return nil
		}
	}
	return nil
}

// Access returns an access token for an owner ("account:<id>" or "gateway:<id>"), valid for a minute at
// least. refused is a token that a relay has just refused, or empty. Then Access returns another one: one
// that was obtained since, or a new one. If a relay also refuses a token that was obtained for this reason
// within the last minute, the token is not the cause, and the error has the code [CodeRefused].
//
// The error is always an *Error. If ctx ends during a request, the request continues without the caller.
func (t *Tokens) Access(ctx context.Context, owner string, c Client, refused string) (string, error) {
	c, err := c.complete()
	if err != nil {
		return "", &Error{Owner: owner, Permanent: true, Code: CodeSettings, Description: err.Error()}
	}
	for range maxRounds {
		token, f, err := t.board(ctx, owner, c, refused)
		if f == nil {
			return token, err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return "", &Error{Owner: owner, Err: context.Cause(ctx)}
		}
		switch {
		case f.client != c: // another configuration of the same owner was in the way
		case f.err != nil:
			return t.fallback(owner, c, refused, f.err)
		case f.token != refused:
			return f.token, nil
		}
	}
	return "", &Error{Owner: owner, Description: "its configuration keeps changing"}
}

// Forget removes the tokens of a deleted owner.
func (t *Tokens) Forget(ctx context.Context, owner string) error {
	t.mu.Lock()
	delete(t.owners, owner)
	t.mu.Unlock()
	if err := t.store.remove(ctx, owner); err != nil {
		return &Error{Owner: owner, Err: err}
	}
	return nil
}

// board returns a token or an error if it can without a request. Otherwise it returns the flight to wait for,
// which it starts if there is none.
func (t *Tokens) board(ctx context.Context, id string, c Client, refused string) (token string, f *flight,
	err error) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owner(id)
	if o.record.serves(c, now, refused) {
		return o.record.Access, nil, nil
	}
	if x := o.failure; x != nil && x.client == c && now.Before(x.until) {
		token, err := o.fallback(c, now, refused, x.err)
		return token, nil, err
	}
	if o.flight == nil {
		o.flight = &flight{client: c, done: make(chan struct{})}
		go t.fly(context.WithoutCancel(ctx), id, o.flight, refused)
	}
	return "", o.flight, nil
}

// fallback is [owner.fallback] with the lock.
func (t *Tokens) fallback(id string, c Client, refused string, err error) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owner(id).fallback(c, t.now(), refused, err)
}

// fallback returns the old token after a failure, if it is still valid and the failure may pass.
func (o *owner) fallback(c Client, now time.Time, refused string, err error) (string, error) {
	if e, ok := errors.AsType[*Error](err); ok && !e.Permanent && o.record.lives(c, now, refused) {
		return o.record.Access, nil
	}
	return "", err
}

// owner returns the state of an owner. The caller holds the lock.
func (t *Tokens) owner(id string) *owner {
	o := t.owners[id]
	if o != nil {
		return o
	}
	if len(t.owners) >= maxOwners {
		for other, o := range t.owners {
			if o.flight == nil && o.unstored == nil {
				delete(t.owners, other)
			}
		}
	}
	o = &owner{}
	t.owners[id] = o
	return o
}

func (t *Tokens) flights() []*flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*flight
	for _, o := range t.owners {
		if o.flight != nil {
			all = append(all, o.flight)
		}
	}
	return all
}
