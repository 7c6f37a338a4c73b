package limits

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed lua/prelude.lua
	prelude string
	//go:embed lua/take.lua
	takeSource string
	//go:embed lua/throttle.lua
	throttleSource string
	//go:embed lua/connect.lua
	connectSource string
	//go:embed lua/renew.lua
	renewSource string

	takeScript     = redisdb.NewRawScript("limits/take", takeSource, prelude)
	throttleScript = redisdb.NewRawScript("limits/throttle", throttleSource, prelude)
	connectScript  = redisdb.NewRawScript("limits/connect", connectSource, prelude)
	renewScript    = redisdb.NewRawScript("limits/renew", renewSource, prelude)
)

func scopeKey(scope string) string       { return redisdb.Key(0, "limit", scope) }
func connectionsKey(scope string) string { return redisdb.Key(0, "limit", scope, "connections") }
func throttledKey() string               { return redisdb.Key(0, "limits", "throttled") }
func versionKey() string                 { return redisdb.Key(0, "limits", "version") }

// store is what Redis keeps of limits.
type store struct {
	db  *redisdb.DB
	now func() time.Time // of a test; nil: Redis' clock
}

// clock is the time as scripts take it: empty for Redis' own.
func (s store) clock() string {
	if s.now == nil {
		return ""
	}
	return strconv.FormatInt(s.now().UnixMicro(), 10)
}

// takeReply is what the script of Take answered.
type takeReply struct {
	ok          bool
	full        int // index of the scope that was full
	at          int64
	reason      string
	generations []int64 // of the scopes up to the full one
}

func (s store) take(ctx context.Context, scopes []Scope, n int, entries []entry) (takeReply, error) {
	keys := make([]string, len(scopes))
	args := make([]any, 2, 2+7*len(scopes))
	args[0], args[1] = s.clock(), n
	for i, scope := range scopes {
		keys[i] = scopeKey(scope.Name)
		r, p := scope.Rate, entryIn(entries, scope.Name)
		args = append(args, r.PerSecond, r.PerMinute, r.PerDay, r.Burst, p.mark(), p.generation, p.at)
	}
	words, err := takeScript.Run(ctx, s.db.Client(), keys, args...).StringSlice()
	if err != nil {
		return takeReply{}, err
	}
	reply, err := readTake(words, len(scopes))
	if err != nil || reply.ok || reply.reason != "" {
		return reply, err
	}
	// the message came early: it waits for what it waited for
	reply.reason = entryIn(entries, scopes[reply.full].Name).reason
	return reply, nil
}

// mark tells the script what a message has in a scope.
func (e entry) mark() string {
	switch {
	case e.scope == "":
		return ""
	case e.passed:
		return "p"
	}
	return "b"
}

func readTake(words []string, scopes int) (takeReply, error) {
	if len(words) == 1 && words[0] == "ok" {
		return takeReply{ok: true}, nil
	}
	odd := fmt.Errorf("redis script %s: answered %q", takeScript.Name(), words)
	if len(words) < 5 || words[0] != "wait" {
		return takeReply{}, odd
	}
	full, err := strconv.Atoi(words[1])
	if err != nil || full < 1 || full > scopes || len(words) != 4+full {
		return takeReply{}, odd
	}
	r := takeReply{full: full - 1, reason: words[3], generations: make([]int64, full)}
	if r.at, err = strconv.ParseInt(words[2], 10, 64); err != nil {
		return takeReply{}, odd
	}
	for i, word := range words[4:] {
		if r.generations[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return takeReply{}, odd
		}
	}
	return r, nil
}

// throttle begins a pause; wait zero: as long as it takes by itself.
func (s store) throttle(ctx context.Context, scope string, wait time.Duration) (until time.Time,
	strikes int64, begun bool, err error) {
	keys := []string{scopeKey(scope), throttledKey(), versionKey()}
	r, err := throttleScript.Run(ctx, s.db.Client(), keys, s.clock(), scope, wait.Microseconds()).Int64Slice()
	if err != nil {
		return time.Time{}, 0, false, err
	}
	if len(r) != 3 {
		return time.Time{}, 0, false, fmt.Errorf("redis script %s: answered %d values", throttleScript.Name(),
			len(r))
	}
	return time.UnixMicro(r[0]).UTC(), r[1], r[2] == 1, nil
}

// slow lists the scopes whose relay has asked for a pause, and for how long that still matters.
func (s store) slow(ctx context.Context) (map[string]time.Duration, error) {
	pipe := s.db.Client().Pipeline()
	now := s.time(ctx, pipe)
	all := pipe.ZRangeWithScores(ctx, throttledKey(), 0, -1)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	slow := map[string]time.Duration{}
	for _, z := range all.Val() {
		if left := time.UnixMicro(int64(z.Score)).Sub(now()); left > 0 {
			slow[z.Member.(string)] = left
		}
	}
	return slow, nil
}

// time asks for the time with a pipeline; it can be read after Exec.
func (s store) time(ctx context.Context, pipe redis.Pipeliner) func() time.Time {
	if s.now != nil {
		return s.now
	}
	return pipe.Time(ctx).Val
}

// look reads what people may know of a scope.
func (s store) look(ctx context.Context, scope string) (State, error) {
	pipe := s.db.Client().Pipeline()
	now := s.time(ctx, pipe)
	fields := pipe.HMGet(ctx, scopeKey(scope), "pause", "strikes", "last")
	open := pipe.ZRangeWithScores(ctx, connectionsKey(scope), 0, -1)
	if _, err := pipe.Exec(ctx); err != nil {
		return State{}, err
	}
	var n [3]int64
	for i, v := range fields.Val() {
		if text, ok := v.(string); ok {
			var err error
			if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return State{}, fmt.Errorf("read %s: %w", scopeKey(scope), err)
			}
		}
	}
	state := stateOf(now(), time.UnixMicro(n[0]).UTC(), int(n[1]), time.UnixMicro(n[2]).UTC())
	for _, z := range open.Val() {
		if int64(z.Score) > now().UnixMicro() {
			state.Connections++
		}
	}
	return state, nil
}

// connect counts a connection; false when the scope is full.
func (s store) connect(ctx context.Context, scope, name string, most int) (bool, error) {
	keys := []string{connectionsKey(scope)}
	return connectScript.Run(ctx, s.db.Client(), keys, s.clock(), lease.Microseconds(), most, name).Bool()
}

func (s store) disconnect(ctx context.Context, scope string, names ...string) error {
	members := make([]any, len(names))
	for i, name := range names {
		members[i] = name
	}
	return s.db.Client().ZRem(ctx, connectionsKey(scope), members...).Err()
}

// renew prolongs all leases of a process in one round trip.
func (s store) renew(ctx context.Context, names map[string][]string) error {
	pipe := s.db.Pipeline()
	for scope, list := range names {
		args := []any{s.clock(), lease.Microseconds()}
		for _, name := range list {
			args = append(args, name)
		}
		pipe.Script(renewScript, []string{connectionsKey(scope)}, args...)
	}
	return pipe.Exec(ctx)
}
