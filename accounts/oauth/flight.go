package oauth

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/postroom/postroom/redisdb"
)

const (
	flightTimeout = 30 * time.Second // for one request with all that belongs to it
	lockFor       = askTimeout + 5*time.Second
	lookEvery     = 50 * time.Millisecond // while another process asks
	storeTries    = 3                     // each of which insists for a second or two by itself
)

// fly gets a token and tells everybody who waits.
func (t *Tokens) fly(ctx context.Context, id string, f *flight, refused string) {
	ctx, cancel := context.WithTimeout(ctx, flightTimeout)
	defer cancel()
	r, err := t.renew(ctx, id, f.client, refused)
	f.token, f.err = r.Access, t.land(id, f.client, r, err)
	close(f.done)
}

// land keeps what came of a flight.
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

// pauseAfter is how long the token server is left alone after an error. Trouble that is not its own is no
// reason to.
func pauseAfter(e *Error) time.Duration {
	switch {
	case e.Code == CodeRefused || errors.As(e.Err, new(*storeError)):
		return 0
	case e.Permanent:
		return pausePermanent
	}
	return max(e.RetryAfter, pauseTransient)
}

// renew finds a token that another process got, or gets one itself. One process asks at a time: the others
// look again until it has stored what it got, or its lock is gone.
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
		sealed, ours, err := t.store.claim(ctx, id, t.fence, lockFor)
		if err != nil {
			return record{}, &Error{Err: err}
		}
		if ours {
			return t.renewLocked(ctx, turn{id: id, client: c, refused: refused, sealed: sealed})
		}
		if !redisdb.Pause(ctx, lookEvery+mathrand.N(lookEvery)) {
			return record{}, &Error{Err: &storeError{fmt.Errorf("another process has been asking for too long: %w",
				ctx.Err())}}
		}
	}
}

// turn is this process' turn to ask.
type turn struct {
	id      string
	client  Client
	refused string
	sealed  string // what Redis had when the turn began
}

// renewLocked looks once more, now that nobody else asks, and then asks.
func (t *Tokens) renewLocked(ctx context.Context, u turn) (record, error) {
	r, err := t.takeUp(ctx, &u)
	if err == nil && !r.serves(u.client, t.now(), u.refused) {
		r, err = t.ask(ctx, u, r)
	}
	if release := t.store.release(context.WithoutCancel(ctx), u.id, t.fence); release != nil {
		t.log.Debug("lock of a token not released; it runs out", "owner", u.id, "error", release)
	}
	return r, err
}

// takeUp gives the record to go on from: the one in Redis, or one of ours that should follow it and could not
// be stored so far.
func (t *Tokens) takeUp(ctx context.Context, u *turn) (record, error) {
	r := t.open(u.id, u.sealed)
	t.mu.Lock()
	pending := t.owner(u.id).unstored
	t.mu.Unlock()
	if pending == nil {
		return r, nil
	}
	if !pending.before.same(r) { // somebody else has got further meanwhile
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

// ask asks the token server, with each refresh token there is, and stores what it gives before anybody uses
// it.
func (t *Tokens) ask(ctx context.Context, u turn, r record) (record, error) {
	asked := t.now()
	if u.refused != "" && r.Access == u.refused && r.Refused && asked.Sub(r.Obtained) < loyal {
		return record{}, &Error{Permanent: true, Code: CodeRefused,
			Description: "the relay refuses one new token after the other: user, consent and scope have to fit it"}
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var failed error
	for _, refreshToken := range r.refreshTokens(u.client) {
		got, err := t.asker.ask(asking, u.client, refreshToken)
		if err == nil {
			next := r.follow(u.client, got, refreshToken, u.refused, asked, mathrand.Float64())
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

// keep stores a new record. A token whose refresh token was not rotated can be used though Redis is away; one
// with a rotated refresh token is not used before that is safe.
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

// overtaken is when our turn had run out before we could store, and another process took its own: its token
// is the one in force.
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

// errOvertaken means that somebody else stored or removed the record meanwhile.
var errOvertaken = errors.New("another process changed the token meanwhile")

// put stores a record during our turn, insisting for some seconds. It gives the record as Redis has it.
func (t *Tokens) put(ctx context.Context, u turn, r record) (sealed string, err error) {
	if sealed, err = t.seal(u.id, r); err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		stored, err := t.store.put(ctx, u.id, t.fence, u.sealed, sealed, r.keep(t.now()))
		switch {
		case err == nil && stored:
			return sealed, nil
		case err == nil:
			return "", &Error{Err: &storeError{errOvertaken}}
		case try == storeTries || !redisdb.Pause(ctx, 4*lookEvery):
			return "", &Error{Err: err}
		}
	}
}

// remember keeps a record that may serve where no better one can be had.
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
