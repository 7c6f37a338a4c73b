package suppression

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// Soft counts a message to e.Address that was given up for a passing reason, such as a full mailbox. At
// Options.SoftBounces messages within Options.SoftWindow it adds a hard_bounce with Options.SoftExpiry, in
// the scope of [Store.WithDefaults], and returns true. Reason and expiry of e are ignored. e.MessageID is
// required: a message reported twice counts once.
func (s *Store) Soft(ctx context.Context, e Entry, now time.Time) (suppressed bool, err error) {
	if s.opts.SoftBounces < 0 {
		return false, nil
	}
	e.Reason, e.Expires = HardBounce, now.Add(s.opts.SoftExpiry)
	e, wrong := s.WithDefaults(e).Normal("", now)
	enough, err := s.count(ctx, e, wrong, now, softKey, s.opts.SoftBounces, s.opts.SoftWindow)
	if !enough {
		return false, err
	}
	_, err = s.add(ctx, []Entry{e}, now)
	return err == nil, err
}

// Confirmed counts an email that reports e.Reason for e.Address. It reports whether emails about two messages
// of the account agree. One alone proves little: anyone who has the message can write it. A message counts
// once, for confirmWindow. e.Account and e.MessageID are required; other fields are ignored.
func (s *Store) Confirmed(ctx context.Context, e Entry, now time.Time) (bool, error) {
	e.List, e.Expires = "", time.Time{}
	e, wrong := e.Normal("", now)
	return s.count(ctx, e, wrong, now, func(shard int, field string) string {
		return saidKey(shard, e.Reason, field)
	}, confirmBy, confirmWindow)
}

// count counts a message to an address, once within a window, and reports whether that makes enough. wrong
// are the wrong fields of e.
func (s *Store) count(ctx context.Context, e Entry, wrong []fault.Field, now time.Time,
	key func(shard int, field string) string, enough int, window time.Duration) (bool, error) {
	if len(wrong) > 0 {
		return false, fault.InvalidFields(wrong)
	}
	if kept, err := s.withoutErased(ctx, []Entry{e}); err != nil || len(kept) == 0 {
		return false, err
	}
	p := bucketOf(e.subject())
	field, _ := fieldOf(fieldName(scopeOf(e.Account, e.List), p.subject))
	n, err := softScript.Run(ctx, s.db.Client(), []string{key(p.shard, field)}, softArgs{
		Now: clock(now), Since: clock(now.Add(-window)), Tag: messageTag(e.MessageID), Enough: enough,
		KeepFor: int(window.Seconds()),
	})
	if err != nil {
		return false, redisdb.Failed(err, "suppression: count a message")
	}
	return n >= enough, nil
}

// Emails about confirmBy messages within confirmWindow confirm each other: a monthly newsletter suffices.
const (
	confirmBy     = 2
	confirmWindow = 90 * 24 * time.Hour
)

// messageTag returns six characters of an id. They are distinct enough for the few messages that are counted.
func messageTag(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:6]
}
