package redisdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

const prelude = `local function twice(n) return 2 * tonumber(n) end`

func TestScriptRunsThoughTheServerForgotIt(t *testing.T) {
	db := testredis.New(t)
	s := redisdb.NewScript("double", `return twice(ARGV[1]) + tonumber(redis.call('INCR', KEYS[1]))`, prelude)
	for i, want := range []int64{41, 42, 43} {
		got, err := s.Run(t.Context(), db.Client(), []string{redisdb.Key(0, "counter")}, 20).Int64()
		if err != nil || got != want {
			t.Errorf("run %d: %d, %v, want %d", i, got, err, want)
		}
		if i == 1 {
			db.Client().ScriptFlush(t.Context())
		}
	}
}

func TestScriptErrorsNameTheScript(t *testing.T) {
	db := testredis.New(t)
	s := redisdb.NewScript("broken", `return redis.error_reply('WRONG turn')`)
	err := s.Run(t.Context(), db.Client(), nil).Err()
	if err == nil || !strings.Contains(err.Error(), "redis script broken: WRONG turn") {
		t.Errorf("error %v", err)
	}
	if !redis.HasErrorPrefix(err, "WRONG") {
		t.Error("the server's answer is lost under the name")
	}
	p := db.Pipeline()
	cmd := p.Script(s, nil)
	if err := p.Exec(t.Context()); !errors.Is(err, cmd.Err()) ||
		!strings.Contains(err.Error(), "redis script broken") {
		t.Errorf("pipeline error %v", err)
	}
}

func TestScriptWithoutResultIsNil(t *testing.T) {
	db := testredis.New(t)
	if err := redisdb.NewScript("empty", `return false`).Run(t.Context(), db.Client(),
		nil).Err(); err != redis.Nil {
		t.Errorf("error %v, want redis.Nil as it is", err)
	}
}

func TestPipelineSendsForgottenScriptsAgain(t *testing.T) {
	db := testredis.New(t)
	known := redisdb.NewScript("known", `return {'known', KEYS[1], ARGV[1]}`)
	fresh := redisdb.NewScript("fresh", `return {'fresh', KEYS[1], ARGV[1]}`)
	none := redisdb.NewScript("none", `return false`)
	key := redisdb.Key(0, "k")
	if err := known.Run(t.Context(), db.Client(), []string{key}, "x").Err(); err != nil {
		t.Fatal(err)
	}
	p := db.Pipeline()
	for round := range 2 {
		a := p.Script(fresh, []string{key}, "1")
		set := p.Pipeliner().Set(t.Context(), key, "v", 0)
		b := p.Script(known, []string{key}, "2")
		c := p.Script(none, nil)
		if err := p.Exec(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := []any{a.Val(), set.Val(), b.Val(), c.Err()}
		want := []any{[]any{"fresh", key, "1"}, "OK", []any{"known", key, "2"}, redis.Nil}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
		db.Client().ScriptFlush(t.Context())
	}
	if err := p.Exec(t.Context()); err != nil {
		t.Errorf("an empty pipeline: %v", err)
	}
}

func TestPipelineReportsTheFirstFailure(t *testing.T) {
	db := testredis.New(t)
	ctx := t.Context()
	db.Client().Set(ctx, "text", "x", 0)
	p := db.Pipeline()
	missing := p.Pipeliner().Get(ctx, "missing")
	bad := p.Pipeliner().Incr(ctx, "text")
	good := p.Pipeliner().Set(ctx, "other", "y", 0)
	if err := p.Exec(ctx); err != bad.Err() || err == nil {
		t.Errorf("Exec = %v, want the failed INCR", err)
	}
	if missing.Err() != redis.Nil || good.Err() != nil {
		t.Errorf("missing %v, good %v", missing.Err(), good.Err())
	}
}
