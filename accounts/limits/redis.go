package limits

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	prelude       = redisdb.Source(lua, "lua/prelude.lua")
	reserveScript = redisdb.NewScript[reserveArgs, reserveReply]("limits/reserve",
		redisdb.Source(lua, "lua/reserve.lua"), prelude)
	throttleScript = redisdb.NewScript[throttleArgs, throttleReply]("limits/throttle",
		redisdb.Source(lua, "lua/throttle.lua"), prelude)
	connectScript = redisdb.NewScript[connectArgs, bool]("limits/connect",
		redisdb.Source(lua, "lua/connect.lua"),
		prelude)
	renewScript = redisdb.NewScript[renewArgs, bool]("limits/renew", redisdb.Source(lua, "lua/renew.lua"),
		prelude)
)

type reserveArgs struct {
	TestNow string
	Scopes  []any // nine of each scope, which reserve.lua names
}

type reserveReply struct {
	Word        string // OK or WAIT
	Full        int    // number of the full scope, from 1
	At          int64  // microseconds
	Reason      string
	Generations []int64 // of the scopes up to the full one; 0 for a scope that took nothing
}

type throttleArgs struct {
	TestNow string
	Scope   string
	Wait    int64 // microseconds
	Most    int   // scopes that are remembered; 0 means any number
}

type throttleReply struct {
	Word    string // BEGUN or KNOWN
	Pause   int64  // its end, microseconds
	Strikes int64
}

type connectArgs struct {
	TestNow string
	Lease   int64 // microseconds
	Most    int
	Name    string
}

type renewArgs struct {
	TestNow string
	Lease   int64 // microseconds
	Names   []string
}

func scopeKey(scope string) string       { return redisdb.Key(0, "limit", scope) }
func connectionsKey(scope string) string { return redisdb.Key(0, "limit", scope, "connections") }
func throttledKey() string               { return redisdb.Key(0, "limits", "throttled") }
func throttledDestinationsKey() string   { return redisdb.Key(0, "limits", "throttled", "dest") }
func versionKey() string                 { return redisdb.Key(0, "limits", "version") }

// store reads and writes limits in Redis.
type store struct {
	db  *redisdb.DB
	now func() time.Time // a test's clock; nil means Redis' clock
}

// clock returns the time for scripts: empty for the clock of Redis.
func (s store) clock() string {
	if s.now == nil {
		return ""
	}
	return strconv.FormatInt(s.now().UnixMicro(), 10)
}

func (s store) take(ctx context.Context, scopes []Scope, n int, entries []entry) (reserveReply, error) {
	keys := make([]string, len(scopes))
	args := reserveArgs{TestNow: s.clock(), Scopes: make([]any, 0, 9*len(scopes))}
	for i, scope := range scopes {
		keys[i] = scopeKey(scope.Name)
		r, p := scope.Rate, entryIn(entries, scope.Name)
		args.Scopes = append(args.Scopes, r.PerSecond, r.PerMinute, r.PerDay, r.Burst,
			cmp.Or(scope.Recipients, n), IsDestination(scope.Name), p.mark(), p.generation, p.at)
	}
	reply, err := reserveScript.Run(ctx, s.db.Client(), keys, args)
	if err == nil && reply.Word == "WAIT" && reply.Reason == "" {
		// the message came early, and still waits for the same reason
		reply.Reason = entryIn(entries, scopes[reply.Full-1].Name).reason
	}
	return reply, err
}

// mark returns what a message has in a scope, as reserve.lua reads it.
func (e entry) mark() string {
	switch {
	case e.scope == "":
		return ""
	case e.passed:
		return "p"
	}
	return "b"
}

// slow returns the scopes whose relay has asked for a pause, and how long that still matters.
func (s store) slow(ctx context.Context) (map[string]time.Duration, error) {
	pipe := s.db.Client().Pipeline()
	now := s.time(ctx, pipe)
	scopes := pipe.ZRangeWithScores(ctx, throttledKey(), 0, -1)
	destinations := pipe.ZRangeWithScores(ctx, throttledDestinationsKey(), 0, -1)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	slow := map[string]time.Duration{}
	for _, z := range slices.Concat(scopes.Val(), destinations.Val()) {
		if left := time.UnixMicro(int64(z.Score)).Sub(now()); left > 0 {
			slow[z.Member.(string)] = left
		}
	}
	return slow, nil
}

// time reads the time with a pipeline. The result can be called after Exec.
func (s store) time(ctx context.Context, pipe redis.Pipeliner) func() time.Time {
	if s.now != nil {
		return s.now
	}
	return pipe.Time(ctx).Val
}

// look returns the state of a scope.
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

// connect counts a connection. It returns false if the scope is full.
func (s store) connect(ctx context.Context, c connection, most int) (bool, error) {
	return connectScript.Run(ctx, s.db.Client(), []string{connectionsKey(c.scope)},
		connectArgs{TestNow: s.clock(), Lease: length.Microseconds(), Most: most, Name: c.name})
}

func (s store) disconnect(ctx context.Context, c connection) error {
	return s.db.Client().ZRem(ctx, connectionsKey(c.scope), c.name).Err()
}

// renew renews leases with one round trip.
func (s store) renew(ctx context.Context, all []connection) error {
	names := map[string][]string{} // by scope
	for _, c := range all {
		names[c.scope] = append(names[c.scope], c.name)
	}
	pipe := s.db.Pipeline()
	for scope, list := range names {
		renewScript.Add(pipe, []string{connectionsKey(scope)},
			renewArgs{TestNow: s.clock(), Lease: length.Microseconds(), Names: list})
	}
	return pipe.Exec(ctx)
}
