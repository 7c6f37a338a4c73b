package access

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// Overlap is the time for which a replaced token still works, unless the request says otherwise.
const Overlap = 24 * time.Hour

// maxOverlap is the longest overlap that may be asked for.
const maxOverlap = 30 * 24 * time.Hour

// Rotate replaces a token by a new one with the same rights, and returns it; it can't be read again. The old
// token and its sessions work until the overlap is over, or until it expires. Without req.Expires the new
// token lives as long as the old one was made for. It returns NotFound for an unknown token, and Conflict if
// the token is replaced already, expired, or has changed since.
func (a *Access) Rotate(ctx context.Context, id string, req api.TokenRotation, now time.Time) (
	api.TokenCreated, error) {
	overlap := Overlap
	if req.Overlap != nil {
		overlap = time.Duration(*req.Overlap) * time.Second
	}
	if overlap < 0 || overlap > maxOverlap {
		return api.TokenCreated{}, fault.InvalidField("overlap", "must be 0 to 2592000 seconds (30 days)")
	}
	old, before, ok, err := a.store.loadProven(ctx, id)
	switch {
	case err != nil:
		return api.TokenCreated{}, redisdb.Failed(err, "access: load token %s", id)
	case !ok:
		return api.TokenCreated{}, tokenNotFound()
	}
	if err := rotatable(old, now); err != nil {
		return api.TokenCreated{}, err
	}
	now = now.UTC().Truncate(time.Millisecond)
	old.LastUsed, old.LastUsedFrom, old.Access = nil, "", nil // not in the record
	next := old
	secret := newSecret()
	next.ID, _ = secretHash(secret)
	if old.Restrictions != nil && old.Restrictions.Quota != nil {
		next.CountedAs = old.QuotaID()
	}
	next.Created, next.Replaces = now, old.ID
	if old.Expires != nil {
		next.Expires = new(now.Add(old.Expires.Sub(old.Created)))
	}
	if req.Expires != nil {
		next.Expires = req.Expires
	}
	if next.Expires != nil && !next.Expires.After(now) {
		return api.TokenCreated{}, fault.InvalidField("expires", "must be in the future")
	}
	end := now.Add(overlap)
	if old.Expires == nil || end.Before(*old.Expires) {
		old.Expires = &end
	}
	old.ReplacedBy = next.ID
	done, err := a.store.rotate(ctx, old, next, before)
	if err != nil {
		return api.TokenCreated{}, redisdb.Failed(err, "access: replace token %s", id)
	}
	if !done {
		return api.TokenCreated{}, fault.New(fault.Conflict, "TokenChanged",
			"The token was changed or deleted at the same time. Check it and try again")
	}
	a.tokens.Clear()
	a.log.InfoContext(ctx, "token replaced", "token_id", id, "new_token_id", next.ID, "until", *old.Expires)
	return api.TokenCreated{Token: secret, ID: next.ID}, nil
}

// rotatable returns why a token can't be replaced, if so.
func rotatable(t api.TokenInfo, now time.Time) error {
	switch {
	case t.Refused != "":
		return fault.New(fault.Conflict, "TokenRefused",
			"The token doesn't work, so it can't be replaced. %s", t.Refused)
	case t.ReplacedBy != "":
		return fault.New(fault.Conflict, "TokenReplaced", "The token was already replaced by token %s",
			t.ReplacedBy)
	case t.Expires != nil && !now.Before(*t.Expires):
		return fault.New(fault.Conflict, "TokenExpired", "The token has expired. Create a new one")
	}
	return nil
}

// loadProven returns a token and its record's code, or false if there is none.
func (s store) loadProven(ctx context.Context, id string) (info api.TokenInfo, code string, ok bool,
	err error) {
	row := s.client.HMGet(ctx, tokenKey(id), tokenFields...)
	info, ok, err = s.readToken(id, row)
	if ok {
		code, _ = row.Val()[2].(string)
	}
	return info, code, ok, err
}

// rotate stores a token, and the record of the one that it replaces. It returns false if that does not have
// the code any more.
func (s store) rotate(ctx context.Context, old, next api.TokenInfo, before string) (bool, error) {
	args := rotateArgs{Before: before, OldID: old.ID, OldExpireAt: expireAt(old), ID: next.ID,
		Created: next.Created, ExpireAt: expireAt(next)}
	for _, r := range []struct {
		info   api.TokenInfo
		record *[]byte
		mac    *string
	}{{old, &args.OldRecord, &args.OldMAC}, {next, &args.Record, &args.MAC}} {
		var err error
		if *r.record, err = json.Marshal(r.info); err != nil {
			return false, fmt.Errorf("encode token %s: %w", r.info.ID, err)
		}
		*r.mac = s.ring.MAC(*r.record, tokenName(r.info.ID))
	}
	keys := []string{tokenKey(old.ID), tokenKey(next.ID), indexKey(), versionKey()}
	if old.Account != "" {
		keys = append(keys, accountKey(string(old.Account)))
	}
	return rotateScript.Run(ctx, s.client, keys, args)
}
