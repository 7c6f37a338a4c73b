package access

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// find returns the token with this id, usually from a cache at most a second old; nil if there is none.
func (a *Access) find(ctx context.Context, id string, now time.Time) (*token, error) {
	t, _, err := a.tokens.Get(ctx, id, now, func(ctx context.Context) (*token, bool, error) {
		info, ok, err := a.store.load(ctx, id)
		if err != nil || !ok {
			return nil, false, err
		}
		if info.Refused != "" {
			a.log.Error("token refused", "token_id", id, "reason", info.Refused)
			return nil, false, nil
		}
		t, err := newToken(info)
		return t, err == nil, err
	})
	if redisdb.Unavailable(err) && fault.KindOf(err) == fault.Internal {
		err = redisdb.Failed(err, "access: look up a token")
	}
	return t, err
}

// newToken prepares a stored token for use.
func newToken(info api.TokenInfo) (*token, error) {
	t := &token{info: info}
	if info.LastUsed != nil {
		t.usedMinute.Store(info.LastUsed.Unix() / 60)
	}
	if info.Restrictions == nil || len(info.Restrictions.Addresses) == 0 {
		return t, nil
	}
	t.addresses = make([]netip.Prefix, 0, len(info.Restrictions.Addresses))
	for _, s := range info.Restrictions.Addresses {
		p, err := parsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("read the restrictions of token %s: %w", info.ID, err)
		}
		t.addresses = append(t.addresses, p)
	}
	return t, nil
}

// decode parses a stored record, and adds the minute of the last use.
func decode(record, usedMinute string) (info api.TokenInfo, err error) {
	if err := json.Unmarshal([]byte(record), &info); err != nil {
		return info, fmt.Errorf("read the record of a token: %w", err)
	}
	if usedMinute == "" {
		return info, nil
	}
	minute, err := strconv.ParseInt(usedMinute, 10, 64)
	if err != nil {
		return info, fmt.Errorf("read the last use of a token: %w", err)
	}
	info.LastUsed = new(time.Unix(minute*60, 0).UTC())
	return info, nil
}
