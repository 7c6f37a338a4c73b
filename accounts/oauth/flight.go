package oauth

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	flightTimeout = 30 * time.Second // for one request with its reads and writes of Redis
	lockFor       = askTimeout + 5*time.Second
	lookEvery     = 50 * time.Millisecond // while another process asks
	storeFor      = 3 * time.Second
)

// fly gets a token and ends the flight.
func (t *Tokens) fly(ctx context.Context, id string, f *flight, refused string) {
	ctx, cancel := context.WithTimeout(ctx, flightTimeout)
	defer cancel()
	r, err := t.renew(ctx, id, f.client, refused)
	f.token, f.err = r.Access, t.land(id, f.client, r, err)
	close(f.done)
}

// land stores the result of a flight in its owner.
func (t *Tokens) land(id string, c Client, r record, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owner(id)
	o.flight, o.failure = nil, nil
	if err == nil {
		o.record = r
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Err: err}
	}
	e.Owner = id
	t.log.Warn("no access token", "owner", id, "permanent", e.Permanent, "code", e.Code, "error", e)
	if pause := pauseAfter(e); pause > 0 {
		o.failure = &failure{client: c, until: t.now().Add(pause), err: e}
	}
	return e
}

// pauseAfter returns the time in which the token server is not asked again after an error. It is zero for an
// error of Redis or the relay.
func pauseAfter(e *Error) time.Duration {
	switch {
	case e.Code == CodeRefused || errors.As(e.Err, new(*storeError)):
		return 0
	case e.Permanent:
		return pausePermanent
	}
	return max(e.RetryAfter, pauseTransient)
}

// renew returns a token that another process got, or gets one. One process asks at a time: the others read
// the record again until it is stored, or the lock has expired.
func (t *Tokens) renew(ctx context.Context, id string, c Client, refused string) (record, error) {
	for {
		sealed, err := t.store.get(ctx, id)
		if err != nil {
			return record{}, &Error{Err: err}
		}
		r := t.open(id, sealed)
		if r.serves(c, t.now(), refused) {
			return r, nil
		}
		t.remember(id, r)
		ours, err := t.store.lock(id, t.fence).Claim(ctx)
		if err != nil {
			return record{}, &Error{Err: &storeError{err}}
		}
		if ours {
			return t.renewLocked(ctx, turn{id: id, client: c, refused: refused})
		}
		if !redisdb.Pause(ctx, lookEvery+mathrand.N(lookEvery)) {
			return record{}, &Error{Err: &storeError{fmt.Errorf("another process has been asking for too long: %w",
				ctx.Err())}}
		}
	}
}

// turn is a request of this process while it holds the lock.
type turn struct {
	id      string
	client  Client
	refused string
	sealed  string // record at the beginning
}

// renewLocked reads the record once more, now that no other process asks, and then asks.
func (t *Tokens) renewLocked(ctx context.Context, u turn) (record, error) {
	r, err := t.takeUp(ctx, &u)
	if err == nil && !r.serves(u.client, t.now(), u.refused) {
		r, err = t.ask(ctx, u, r)
	}
	if release := t.store.lock(u.id, t.fence).Release(ctx); release != nil {
		t.log.Debug("lock of a token not released; it expires", "owner", u.id, "error", release)
	}
	return r, err
}

// takeUp returns the record to continue with: the one in Redis, or its successor that this process could not
// store so far.
func (t *Tokens) takeUp(ctx context.Context, u *turn) (_ record, err error) {
	if u.sealed, err = t.store.get(ctx, u.id); err != nil {
		return record{}, &Error{Err: err}
	}
	r := t.open(u.id, u.sealed)
	t.mu.Lock()
	pending := t.owner(u.id).unstored
	t.mu.Unlock()
	if pending == nil {
		return r, nil
	}
	if !pending.before.same(r) { // another process has replaced it since
		t.setUnstored(u.id, nil)
		return r, nil
	}
	sealed, err := t.put(ctx, *u, pending.after)
	if err != nil {
		return record{}, err
	}
	t.setUnstored(u.id, nil)
	u.sealed = sealed
	return pending.after, nil
}

// ask asks the token server with each refresh token, and stores the answer before it is used.
func (t *Tokens) ask(ctx context.Context, u turn, r record) (record, error) {
	asked := t.now()
	if u.refused != "" && r.Access == u.refused && r.Refused && asked.Sub(r.Obtained) < trusted {
		return record{}, &Error{Permanent: true, Code: CodeRefused,
			Description: "the relay refuses one new token after the other: user, consent and scope have to fit it"}
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var failed error
	for _, refreshToken := range r.refreshTokens(u.client) {
		got, err := t.asker.ask(asking, u.client, refreshToken)
		if err == nil {
			next := r.follow(u.client, got, u.refused, asked, mathrand.Float64())
			return t.keep(ctx, u, r, next)
		}
		if failed == nil {
			failed = err
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != "invalid_grant" {
			return record{}, err
		}
	}
	return record{}, failed
}

// keep stores a new record. If Redis is unreachable, the token can be used anyway, unless its refresh token
// was rotated: that must be stored first.
func (t *Tokens) keep(ctx context.Context, u turn, before, next record) (record, error) {
	_, err := t.put(ctx, u, next)
	rotated := next.Refresh != "" && next.Refresh != before.Refresh
	switch {
	case errors.Is(err, errOvertaken):
		return t.overtaken(ctx, u)
	case err != nil && rotated:
		t.setUnstored(u.id, &rotation{before: before, after: next})
		return record{}, err
	case err != nil:
		t.log.Warn("new access token not stored; only this process has it", "owner", u.id, "error", err)
		return next, nil
	}
	t.log.Info("new access token", "owner", u.id, "good_for_seconds",
		int(next.Expires.Sub(next.Obtained).Seconds()), "rotated", rotated,
		"after_refusal", next.Refused)
	return next, nil
}

// overtaken returns the record of another process that took the lock after ours had expired: its token is the
// valid one.
func (t *Tokens) overtaken(ctx context.Context, u turn) (record, error) {
	sealed, err := t.store.get(ctx, u.id)
	if err != nil {
		return record{}, &Error{Err: err}
	}
	if r := t.open(u.id, sealed); r.serves(u.client, t.now(), u.refused) {
		return r, nil
	}
	return record{}, &Error{Err: &storeError{errOvertaken}}
}

// errOvertaken means that another process has stored or removed the record since.
var errOvertaken = errors.New("another process changed the token at the same time")

// put stores a record, and returns it as it is stored.
func (t *Tokens) put(ctx context.Context, u turn, r record) (sealed string, err error) {
	if sealed, err = t.seal(u.id, r); err != nil {
		return "", err
	}
	err = lease.Persist(ctx, t.log, "token of "+u.id, storeFor, func() error {
		stored, err := t.store.put(ctx, u.id, t.fence, u.sealed, sealed, r.keep(t.now()))
		if err == nil && !stored {
			err = &storeError{errOvertaken}
		}
		return err
	})
	if err != nil {
		return "", &Error{Err: err}
	}
	return sealed, nil
}

// remember caches a record, as a fallback while no newer one is available.
func (t *Tokens) remember(id string, r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owner(id).record = r
}

func (t *Tokens) setUnstored(id string, r *rotation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owner(id).unstored = r
}
