package redisdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// none are the arguments of a script that has none.
var none struct{}

// failed returns the error of a script, whatever it answers.
func failed[R any](_ R, err error) error { return err }

// fillScript writes 100 kB to its key. failScript answers an error.
var (
	fillScript = redisdb.NewScript[struct{}, string]("fill",
		"return redis.call('SET', KEYS[1], string.rep('x', 100000))")
	failScript = redisdb.NewScript[[]string, int]("fails",
		"-- ARGV: texts...\nreturn redis.error_reply(ARGV[texts])")
)

const prelude = `local function twice(n) return 2 * tonumber(n) end`

func TestScriptRunsThoughTheServerForgotIt(t *testing.T) {
	db := testredis.New(t)
	s := redisdb.NewScript[[]int, int64]("double",
		"-- ARGV: values...\nreturn twice(ARGV[values]) + tonumber(redis.call('INCR', KEYS[1]))", prelude)
	for i, want := range []int64{41, 42, 43} {
		got, err := s.Run(t.Context(), db.Client(), []string{redisdb.Key(0, "counter")}, []int{20})
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
	s := redisdb.NewScript[struct{}, int]("broken", `return redis.error_reply('WRONG turn')`)
	err := failed(s.Run(t.Context(), db.Client(), nil, none))
	if err == nil || !strings.Contains(err.Error(), "redis script broken: WRONG turn") {
		t.Errorf("error %v", err)
	}
	if !redis.HasErrorPrefix(err, "WRONG") {
		t.Error("the server's answer is lost under the name")
	}
	p := db.Pipeline()
	reply := s.Add(p, nil, none)
	if err := p.Exec(t.Context()); !errors.Is(err, failed(reply.Read())) ||
		!strings.Contains(err.Error(), "redis script broken") {
		t.Errorf("pipeline error %v", err)
	}
}

func TestScriptWithoutResultIsNil(t *testing.T) {
	db := testredis.New(t)
	empty := redisdb.NewScript[struct{}, int]("empty", `return false`)
	if _, err := empty.Run(t.Context(), db.Client(), nil, none); err != redis.Nil {
		t.Errorf("error %v, want redis.Nil as it is", err)
	}
}

func TestPipelineSendsForgottenScriptsAgain(t *testing.T) {
	db := testredis.New(t)
	known := redisdb.NewScript[[]string, any]("known",
		"-- ARGV: values...\nreturn {'known', KEYS[1], ARGV[values]}")
	fresh := redisdb.NewScript[[]string, any]("fresh",
		"-- ARGV: values...\nreturn {'fresh', KEYS[1], ARGV[values]}")
	empty := redisdb.NewScript[struct{}, int]("empty", `return false`)
	key := redisdb.Key(0, "k")
	if _, err := known.Run(t.Context(), db.Client(), []string{key}, []string{"x"}); err != nil {
		t.Fatal(err)
	}
	p := db.Pipeline()
	for round := range 2 {
		a := fresh.Add(p, []string{key}, []string{"1"})
		set := p.Pipeliner().Set(t.Context(), key, "v", 0)
		b := known.Add(p, []string{key}, []string{"2"})
		c := empty.Add(p, nil, none)
		if err := p.Exec(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		first, _ := a.Read() // an error would be Exec's
		second, _ := b.Read()
		got := []any{first, set.Val(), second, failed(c.Read())}
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
