package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

func sessionKey(hash string) string { return redisdb.Key(0, "session", hash) }
func sessionsKey() string           { return redisdb.Key(0, "sessions") }

// sessionName is the name that the code of a session is bound to.
func sessionName(hash string) string { return "session:" + hash }

// putSession stores a session under the hash of its cookie, for SessionTTL, and lists it. Sessions older
// than oldest leave the list.
func (s store) putSession(ctx context.Context, hash string, v session, oldest time.Time) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("access: encode a session: %w", err)
	}
	stored := s.ring.MAC(value, sessionName(hash)) + " " + string(value)
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, sessionKey(hash), stored, SessionTTL)
		p.ZAdd(ctx, sessionsKey(), redis.Z{Score: float64(v.Created), Member: hash})
		p.ZRemRangeByScore(ctx, sessionsKey(), "-inf", strconv.FormatInt(oldest.UnixMilli(), 10))
		return nil
	})
	if err != nil {
		return redisdb.Failed(err, "access: store a session")
	}
	return nil
}

// useSession returns a session and restarts its time, in one step. It returns false if there is none, and
// errForged if Postroom did not write it. A code made under an older secret is replaced.
func (s store) useSession(ctx context.Context, hash string) (session, bool, error) {
	stored, err := s.client.GetEx(ctx, sessionKey(hash), SessionTTL).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return session{}, false, nil
	case err != nil:
		return session{}, false, redisdb.Failed(err, "access: look up a session")
	}
	v, err := s.readSession(hash, stored)
	if err != nil {
		return session{}, false, err
	}
	if code, _, _ := strings.Cut(stored, " "); s.ring.NeedsRotation(code) {
		err = s.putSession(ctx, hash, v, time.Time{})
	}
	return v, err == nil, err
}

func (s store) readSession(hash, stored string) (v session, err error) {
	code, value, _ := strings.Cut(stored, " ")
	if err := s.ring.Verify(code, []byte(value), sessionName(hash)); err != nil {
		return v, errForged
	}
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		return v, fmt.Errorf("access: read a session: %w", err)
	}
	return v, nil
}

// dropSession ends a session, and reports whether there was one.
func (s store) dropSession(ctx context.Context, hash string) (bool, error) {
	var gone *redis.IntCmd
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		gone = p.Del(ctx, sessionKey(hash))
		p.ZRem(ctx, sessionsKey(), hash)
		return nil
	})
	if err != nil {
		return false, redisdb.Failed(err, "access: end a session")
	}
	return gone.Val() > 0, nil
}

// listed is a session of the list.
type listed struct {
	session
	hash string
	left time.Duration // until it ends unless it is used
}

// eachSession calls do for the sessions, newest first, until it returns false or an error. It removes ended
// sessions from the list.
func (s store) eachSession(ctx context.Context, do func(listed) (bool, error)) error {
	for from := 0; ; {
		hashes, err := s.client.ZRevRange(ctx, sessionsKey(), int64(from), int64(from+sessionPage-1)).Result()
		if err != nil {
			return redisdb.Failed(err, "access: list sessions")
		}
		if len(hashes) == 0 {
			return nil
		}
		found, ended, err := s.readSessions(ctx, hashes)
		if err != nil {
			return err
		}
		for _, l := range found {
			if more, err := do(l); err != nil || !more {
				return err
			}
		}
		if len(ended) > 0 {
			if err := s.client.ZRem(ctx, sessionsKey(), ended...).Err(); err != nil {
				return redisdb.Failed(err, "access: list sessions")
			}
		}
		from += len(hashes) - len(ended)
	}
}

// readSessions returns sessions, and the hashes of ended ones.
func (s store) readSessions(ctx context.Context, hashes []string) (found []listed, ended []any, err error) {
	pipe := s.client.Pipeline()
	values, left := make([]*redis.StringCmd, len(hashes)), make([]*redis.DurationCmd, len(hashes))
	for i, hash := range hashes {
		values[i], left[i] = pipe.Get(ctx, sessionKey(hash)), pipe.PTTL(ctx, sessionKey(hash))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, redisdb.Failed(err, "access: read sessions")
	}
	for i, hash := range hashes {
		if errors.Is(values[i].Err(), redis.Nil) {
			ended = append(ended, hash)
			continue
		}
		v, err := s.readSession(hash, values[i].Val())
		if err == nil { // a forged one isn't a session
			found = append(found, listed{v, hash, left[i].Val()})
		}
	}
	return found, ended, nil
}
