package access

import (
	"context"
	"math"
	"net/netip"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// failureWindow is the time in which failed attempts of an address are counted.
const failureWindow = time.Minute

// RateExceeded is the error, of kind Limited, of a token beyond its rate limit. Rate is for the headers of
// the answer.
type RateExceeded struct {
	Rate Rate
	err  *fault.Error
}

// Error returns the message for the client.
func (e *RateExceeded) Error() string { return e.err.Error() }

// Unwrap returns the Limited error.
func (e *RateExceeded) Unwrap() error { return e.err }

// Authenticate returns what the bearer of a token may do. Its errors are Unauthorized (no token, unknown,
// expired), Forbidden (used from an address outside its restrictions), Limited (*RateExceeded for the token's
// own limit, a plain error for an address that failed too often) and Unavailable (Redis is unreachable). Each
// call counts as one request of the token's rate limit.
func (a *Access) Authenticate(ctx context.Context, presented string, remote netip.Addr, now time.Time) (
	*Grant, error) {
	t, err := a.identify(ctx, presented, remote, now)
	if err != nil {
		return nil, err
	}
	return a.admit(ctx, t, remote, now)
}

// identify returns the presented token, or counts a failure. A right token is let in whatever failed before:
// others behind the same proxy or NAT must not lock its bearer out.
func (a *Access) identify(ctx context.Context, presented string, remote netip.Addr, now time.Time) (*token,
	error) {
	if presented == "" {
		return nil, fault.New(fault.Unauthorized, "", "Missing authentication")
	}
	if a.isBootstrap(presented) {
		return bootstrapToken, nil
	}
	if id, ok := secretHash(presented); ok {
		t, err := a.find(ctx, id, now)
		if t != nil || err != nil {
			return t, err
		}
	}
	wait := a.blockedFor(tokensFrom(remote), now)
	if wait == 0 {
		wait = a.countFailure(ctx, tokensFrom(remote), now)
	}
	if wait > 0 {
		return nil, tooManyFailures(wait)
	}
	return nil, badToken()
}

// admit checks the restrictions of a token, and stores its use.
func (a *Access) admit(ctx context.Context, t *token, remote netip.Addr, now time.Time) (*Grant, error) {
	if t.expired(now) {
		return nil, fault.New(fault.Unauthorized, "TokenExpired", "Token has expired")
	}
	if !t.allowsAddress(remote) {
		a.log.Warn("token used from an address it is not allowed from", "token_id", t.info.ID, "remote_addr",
			remote)
		return nil, fault.New(fault.Forbidden, "AddressNotAllowed", "This token may not be used from your address")
	}
	g := &Grant{TokenID: t.info.ID, Name: t.info.Description, Account: string(t.info.Account),
		Scopes: t.info.Scopes, KeyRequired: t.info.Restrictions != nil && t.info.Restrictions.IdempotencyRequired}
	if t.info.Restrictions != nil {
		g.Quota, g.QuotaID = t.info.Restrictions.Quota, t.info.QuotaID()
	}
	limit, err := a.rateLimit(ctx, t)
	if err != nil {
		return nil, err
	}
	if limit != nil {
		rate, err := a.spend(ctx, t.info.ID, *limit)
		if err != nil {
			return nil, err
		}
		g.Rate = &rate
	}
	a.noteUse(ctx, t, remote, now)
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

// noteUse stores the last use of a token and its address, once a minute in each process. A failure does not
// refuse the request.
func (a *Access) noteUse(ctx context.Context, t *token, remote netip.Addr, now time.Time) {
	minute := now.Unix() / 60
	seen := t.usedMinute.Load()
	if t == bootstrapToken || seen >= minute || !t.usedMinute.CompareAndSwap(seen, minute) {
		return
	}
	from := ""
	if remote.IsValid() {
		from = remote.Unmap().WithZone("").String()
	}
	if err := a.store.touch(ctx, t.info.ID, minute, from); err != nil {
		a.log.Warn("use of a token not noted", "token_id", t.info.ID, "error", err)
	}
}

// source is where failed attempts come from: a network, with tokens or with passwords.
type source struct {
	network   netip.Prefix
	passwords bool
}

func tokensFrom(remote netip.Addr) source { return source{network: network(remote)} }

// blockedFor returns the time for which a source is still blocked; zero if it is not.
func (a *Access) blockedFor(from source, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.blocked[from]
	if !ok || !now.Before(until) {
		return 0
	}
	return until.Sub(now)
}

// countFailure counts a failed attempt in Redis, for all processes together. It returns the time for which
// the source is blocked. This process remembers a blocked one until its window ends, so the next check
// costs nothing; other processes notice it with the first failure of their own.
func (a *Access) countFailure(ctx context.Context, from source, now time.Time) time.Duration {
	count, left, err := a.store.count(ctx, failuresKey(from), failureWindow)
	if err != nil {
		a.log.Warn("failed attempt not counted", "network", from.network, "error", err)
		return 0
	}
	if count <= a.maxFailures {
		return 0
	}
	a.log.Warn("address failed to authenticate too often", "network", from.network, "failures", count)
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

// network returns the unit by which failures are counted: an IPv4 address, or the /64 in which an IPv6 host
// can choose its addresses.
func network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // all invalid addresses share one counter
	}
	return p
}

func badToken() error { return fault.New(fault.Unauthorized, "", "Bad token") }

func tooManyFailures(wait time.Duration) error {
	f := fault.New(fault.Limited, "TooManyFailures", "Too many failed attempts from your address")
	f.RetryAfter = wholeSeconds(wait)
	return f
}

// wholeSeconds rounds up: a client that waits so long does not come too early.
func wholeSeconds(d time.Duration) time.Duration {
	return time.Duration(math.Ceil(d.Seconds())) * time.Second
}
