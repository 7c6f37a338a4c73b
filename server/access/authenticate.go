package access

import (
	"context"
	"math"
	"net/netip"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// failureWindow is how long failed attempts of an address count.
const failureWindow = time.Minute

// RateExceeded is the Limited error of a token that used its rate up. It carries the numbers for the answer's
// headers.
type RateExceeded struct {
	Rate Rate
	err  *fault.Error
}

// Error tells that the rate is exceeded.
func (e *RateExceeded) Error() string { return e.err.Error() }

// Unwrap gives the fault, of kind Limited.
func (e *RateExceeded) Unwrap() error { return e.err }

// Authenticate says what the bearer of a presented token may do, or why nothing: Unauthorized (none given,
// unknown, expired), Forbidden (used from an address its restrictions do not name), Limited (*RateExceeded
// for the token's own limit, a plain fault for an address that failed too often) or Unavailable (Redis is
// away). Each call counts as one request of the token's rate limit.
func (a *Access) Authenticate(ctx context.Context, presented string, remote netip.Addr, now time.Time) (
	*Grant, error) {
	t, err := a.identify(ctx, presented, remote, now)
	if err != nil {
		return nil, err
	}
	return a.admit(ctx, t, remote, now)
}

// identify finds the token that was presented, or counts a failure.
func (a *Access) identify(ctx context.Context, presented string, remote netip.Addr, now time.Time) (*token,
	error) {
	if presented == "" {
		return nil, fault.New(fault.Unauthorized, "", "Missing authentication")
	}
	wait := a.blockedFor(remote, now)
	if wait == 0 && a.isBootstrap(presented) {
		return bootstrapToken, nil
	}
	if id, ok := secretHash(presented); ok {
		t, err := a.find(ctx, id, now)
		if t != nil || err != nil {
			return t, err
		}
	}
	if wait == 0 {
		wait = a.countFailure(ctx, remote, now)
	}
	if wait > 0 {
		return nil, tooManyFailures(wait)
	}
	return nil, badToken()
}

// admit checks what a token that exists is restricted to, and notes its use.
func (a *Access) admit(ctx context.Context, t *token, remote netip.Addr, now time.Time) (*Grant, error) {
	if t.expired(now) {
		return nil, fault.New(fault.Unauthorized, "TokenExpired", "Token has expired")
	}
	if !t.allowsAddress(remote) {
		a.log.Warn("token used from an address it is not allowed from", "token_id", t.info.ID, "remote_addr",
			remote)
		return nil, fault.New(fault.Forbidden, "AddressNotAllowed", "This token may not be used from your address")
	}
	g := &Grant{TokenID: t.info.ID, Account: t.info.Account, Scopes: t.info.Scopes}
	if limit := t.rateLimit(); limit != nil {
		rate, err := a.spend(ctx, t.info.ID, *limit)
		if err != nil {
			return nil, err
		}
		g.Rate = &rate
	}
	a.noteUse(ctx, t, now)
	return g, nil
}

// spend takes one request from the token's window.
func (a *Access) spend(ctx context.Context, id string, limit api.RateLimit) (Rate, error) {
	count, left, err := a.store.count(ctx, rateKey(id), time.Duration(limit.TimeWindow)*time.Second)
	if err != nil {
		return Rate{}, redisdb.Failed(err, "access: count a request of token %s", id)
	}
	rate := Rate{Limit: limit.MaxRequests, Remaining: max(0, limit.MaxRequests-count), Reset: wholeSeconds(left)}
	if count > limit.MaxRequests {
		f := fault.New(fault.Limited, "", "Rate limit exceeded")
		f.RetryAfter = rate.Reset
		return Rate{}, &RateExceeded{Rate: rate, err: f}
	}
	return rate, nil
}

// noteUse writes when a token was last used, once a minute and process. A failure to do so is no reason to
// refuse the request.
func (a *Access) noteUse(ctx context.Context, t *token, now time.Time) {
	minute := now.Unix() / 60
	seen := t.usedMinute.Load()
	if t == bootstrapToken || seen >= minute || !t.usedMinute.CompareAndSwap(seen, minute) {
		return
	}
	if err := a.store.touch(ctx, t.info.ID, minute); err != nil {
		a.log.Warn("use of a token not noted", "token_id", t.info.ID, "error", err)
	}
}

// blockedFor says how much longer an address has to wait before a guess is looked at; zero: it need not.
func (a *Access) blockedFor(remote netip.Addr, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.blocked[network(remote)]
	if !ok || !now.Before(until) {
		return 0
	}
	return until.Sub(now)
}

// countFailure counts a failed attempt in Redis, for all processes together. An address beyond the limit is
// remembered here until its window ends, so that the check costs nothing on the way in: a process learns of
// it by the first failure it sees itself.
func (a *Access) countFailure(ctx context.Context, remote netip.Addr, now time.Time) time.Duration {
	from := network(remote)
	count, left, err := a.store.count(ctx, failuresKey(from), failureWindow)
	if err != nil {
		a.log.Warn("failed attempt not counted", "remote_addr", remote, "error", err)
		return 0
	}
	if count <= a.maxFailures {
		return 0
	}
	a.log.Warn("address failed to authenticate too often", "remote_addr", remote, "failures", count)
	a.mu.Lock()
	defer a.mu.Unlock()
	for addr, until := range a.blocked {
		if !now.Before(until) {
			delete(a.blocked, addr)
		}
	}
	a.blocked[from] = now.Add(left)
	return left
}

// network is what failures are counted by: an IPv4 address, or the /64 that an IPv6 host can pick addresses
// from at will.
func network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no valid address: all of those share one counter
	}
	return p
}

func badToken() error { return fault.New(fault.Unauthorized, "", "Bad token") }

func tooManyFailures(wait time.Duration) error {
	f := fault.New(fault.Limited, "TooManyFailures", "Too many failed attempts from your address")
	f.RetryAfter = wholeSeconds(wait)
	return f
}

// wholeSeconds rounds up, so that whoever waits as told does not come a moment too early.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}
