package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// token is a stored token, prepared for authentication.
type token struct {
	info       api.TokenInfo
	addresses  []netip.Prefix // that may use it; nil means any
	usedMinute atomic.Int64   // last stored use, in minutes since 1970
}

// bootstrapToken represents the token of the configuration.
var bootstrapToken = &token{info: api.TokenInfo{ID: BootstrapID, Scopes: []api.Scope{api.ScopeAdmin}}}

func (t *token) expired(now time.Time) bool {
	return t.info.Expires != nil && !now.Before(*t.info.Expires)
}

func (t *token) allowsAddress(remote netip.Addr) bool {
	if t.addresses == nil {
		return true
	}
	remote = remote.Unmap().WithZone("")
	return slices.ContainsFunc(t.addresses, func(p netip.Prefix) bool { return p.Contains(remote) })
}

// rateLimit returns a token's limit, else the limit of the account it is bound to, or nil.
func (a *Access) rateLimit(ctx context.Context, t *token) (*api.RateLimit, error) {
	if r := t.info.Restrictions; r != nil && r.RateLimit != nil {
		return r.RateLimit, nil
	}
	if t.info.Account == "" || a.requests == nil {
		return nil, nil
	}
	n, err := a.requests(ctx, string(t.info.Account))
	if err != nil || n == 0 {
		return nil, err
	}
	return &api.RateLimit{MaxRequests: n, TimeWindow: 60}, nil
}

// Create creates a token and returns it; it can't be read again. Invalid names every wrong field.
func (a *Access) Create(ctx context.Context, req api.TokenRequest, now time.Time) (api.TokenCreated, error) {
	if err := validate(req, now); err != nil {
		return api.TokenCreated{}, err
	}
	secret := newSecret()
	id, _ := secretHash(secret)
	info := api.TokenInfo{
		ID: id, Account: api.OrNull(req.Account), Description: req.Description, Scopes: unique(req.Scopes),
		Created: now.UTC().Truncate(time.Millisecond), Expires: req.Expires, Restrictions: req.Restrictions,
	}
	if len(info.Scopes) == 0 {
		info.Scopes = []api.Scope{api.ScopeAPI}
	}
	record, err := json.Marshal(info)
	if err != nil {
		return api.TokenCreated{}, fmt.Errorf("access: encode token %s: %w", id, err)
	}
	if err := a.store.create(ctx, info, record); err != nil {
		return api.TokenCreated{}, redisdb.Failed(err, "access: store token %s", id)
	}
	return api.TokenCreated{Token: secret, ID: id}, nil
}

// Get returns the record of a token, or NotFound.
func (a *Access) Get(ctx context.Context, id string) (api.TokenInfo, error) {
	info, ok, err := a.store.load(ctx, id)
	switch {
	case err != nil:
		return api.TokenInfo{}, redisdb.Failed(err, "access: load token %s", id)
	case !ok:
		return api.TokenInfo{}, tokenNotFound()
	}
	return info, nil
}

// List returns a page of the tokens that are bound to an account, or (empty) of all, the oldest first. Pages
// count from 0; pageSize is 1 to 1000, zero means 20.
func (a *Access) List(ctx context.Context, account string, page, pageSize int) (api.TokenPage, error) {
	q := api.PageQuery{Page: max(0, page), PageSize: pageSize}
	tokens, total, err := a.store.page(ctx, account, q.Page*q.Size(), q.Size())
	if err != nil {
		return api.TokenPage{}, redisdb.Failed(err, "access: list tokens")
	}
	numbers, _, _ := q.Of(total)
	return api.TokenPage{Account: api.OrNull(account), PageNumbers: numbers, Tokens: tokens}, nil
}

// Delete revokes a token and ends its sessions. It returns false for an unknown id.
func (a *Access) Delete(ctx context.Context, id string) (bool, error) {
	info, ok, err := a.store.load(ctx, id)
	if err == nil && ok {
		ok, err = a.store.remove(ctx, id, string(info.Account))
	}
	if err != nil {
		return false, redisdb.Failed(err, "access: delete token %s", id)
	}
	a.tokens.Clear()
	return ok, nil
}

// DeleteAccount revokes every token bound to an account, and returns their number. It must be called when an
// account is deleted, so that an old token does not open a later account of the same name.
func (a *Access) DeleteAccount(ctx context.Context, account string) (int, error) {
	if account == "" {
		return 0, nil
	}
	ids, err := a.store.ofAccount(ctx, account)
	if err != nil {
		return 0, redisdb.Failed(err, "access: list tokens of account %s", account)
	}
	deleted := 0
	for _, id := range ids {
		existed, err := a.store.remove(ctx, id, account)
		if err != nil {
			return deleted, redisdb.Failed(err, "access: delete token %s", id)
		}
		if existed {
			deleted++
		}
	}
	a.tokens.Clear()
	return deleted, nil
}

// resealPage is the number of tokens that Reseal lists at a time.
const resealPage = 500

// Reseal gives the records of tokens that were written under an older secret of the instance a code of the
// current one, and returns their number. It may be run again. Sessions get theirs when they are next used.
func (a *Access) Reseal(ctx context.Context) (int, error) {
	changed := 0
	var failed []error
	for from := int64(0); ; from += resealPage {
		ids, err := a.store.client.ZRange(ctx, indexKey(), from, from+resealPage-1).Result()
		if err != nil {
			return changed, redisdb.Failed(err, "access: list tokens")
		}
		for _, id := range ids {
			did, err := a.store.remac(ctx, id)
			if err != nil {
				failed = append(failed, fmt.Errorf("access: renew the code of token %s: %w", id, err))
			}
			if did {
				changed++
			}
		}
		if len(ids) < resealPage {
			return changed, errors.Join(failed...)
		}
	}
}
