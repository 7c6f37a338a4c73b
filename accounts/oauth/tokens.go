package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/seal"
)

const (
	// maxRounds bounds how often one call joins a request that turns out to be about something else.
	maxRounds = 4
	// maxOwners bounds the memory of a process. Beyond it those that nobody is busy with are read from Redis
	// again.
	maxOwners = 10_000
	// settle is how long Run waits at the end for requests under way: an answer not stored may be a refresh
	// token lost.
	settle = askTimeout + 5*time.Second
	// How long a token server that refused for good, or did not give a token, is left alone by this process.
	// Every message that waits would ask again otherwise.
	pausePermanent = 30 * time.Second
	pauseTransient = 5 * time.Second
)

// Options are the choices of the one who runs Postroom. The zero value works.
type Options struct {
	// HTTP gives the transport, and a time-out below 10 s if it has one; nil: the default transport. Redirects
	// are never followed.
	HTTP *http.Client
	// Logger gets each token that was had, and each that was not. Nil: nothing is logged.
	Logger *slog.Logger
	// Now tells the time. Nil: time.Now.
	Now func() time.Time
}

// Tokens keeps access tokens. It is safe for concurrent use, by any number of processes on one Redis.
type Tokens struct {
	store store
	ring  *seal.Ring
	asker asker
	log   *slog.Logger
	now   func() time.Time
	fence string // names this process in locks

	mu     sync.Mutex
	owners map[string]*owner
}

// owner is what this process knows of an owner.
type owner struct {
	record   record    // as last seen in Redis, or stored there
	failure  *failure  // the last request, if it failed
	unstored *rotation // a rotated refresh token that Redis does not have yet
	flight   *flight   // a request under way
}

// failure is a request that gave no token.
type failure struct {
	client Client
	until  time.Time // others get the same error before that
	err    *Error
}

// rotation is a record that has to follow another in Redis.
type rotation struct{ before, after record }

// flight is a request under way, for whoever wants the same.
type flight struct {
	client Client
	done   chan struct{} // closed when the rest is there
	token  string
	err    error
}

// New makes a Tokens on an open database. It does no I/O.
func New(db *redisdb.DB, ring *seal.Ring, o Options) (*Tokens, error) {
	if db == nil || ring == nil {
		return nil, errors.New("oauth: a database and a key ring are needed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Tokens{
		store: store{client: db.Client()}, ring: ring, asker: newAsker(o.HTTP, o.Now), log: o.Logger, now: o.Now,
		fence:  rand.Text(),
		owners: map[string]*owner{},
	}, nil
}

// Run keeps the process from ending before requests under way are stored: when ctx ends it waits for them,
// for some seconds at most, and returns nil.
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

// Access gives an access token for an owner ("account:<id>" or "gateway:<id>"), good for a minute at least.
// Refused is a token that a relay has just refused, or empty: another is given, the one that somebody got
// meanwhile or a new one. A relay that refuses a token had for that very reason a moment ago is believed:
// then it is not the token that is wrong, and the error has the code [CodeRefused].
//
// The error is always an *Error. When ctx ends while a token is being asked for, the request goes on without
// the caller.
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

// Forget removes what is kept about an owner, because it was deleted.
func (t *Tokens) Forget(ctx context.Context, owner string) error {
	t.mu.Lock()
	delete(t.owners, owner)
	t.mu.Unlock()
	if err := t.store.remove(ctx, owner); err != nil {
		return &Error{Owner: owner, Err: err}
	}
	return nil
}

// board answers at once where that is possible. Else it gives the flight to wait for, which it starts if
// there is none.
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

// fallback is what is left when no token could be had.
func (t *Tokens) fallback(id string, c Client, refused string, err error) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owner(id).fallback(c, t.now(), refused, err)
}

// fallback gives a token that should have been replaced but still lives, unless the server has said that
// there will be no other.
func (o *owner) fallback(c Client, now time.Time, refused string, err error) (string, error) {
	if e, ok := errors.AsType[*Error](err); ok && !e.Permanent && o.record.lives(c, now, refused) {
		return o.record.Access, nil
	}
	return "", err
}

// owner is called with the lock held.
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
