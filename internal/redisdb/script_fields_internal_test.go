package redisdb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

type testArgs struct {
	ID      string
	KeepFor int `lua:",omitzero"`
	At      time.Time
	Body    []byte `lua:"content"`
	Urgent  bool
	Events  []string
}

type testAnswer struct {
	Word  string
	Epoch int
	Due   time.Time
	First string
}

const testSource = `-- ARGV: id keep_for at
-- ARGV: content urgent events...
-- Answer: OK epoch due
-- Answer: HIT first
-- OK in a comment stays
local epoch, due, first = 'OK', at, id
if #ARGV >= events then return HIT end
return content .. keep_for .. urgent == '' or OK
`

func TestArgumentsAndAnswersAreNamed(t *testing.T) {
	t.Parallel()
	s := NewScript[testArgs, testAnswer]("test", testSource)
	want := "local id, keep_for, at, content, urgent = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]\n" +
		"local events = 6\n"
	want += strings.ReplaceAll(strings.ReplaceAll(testSource, "return HIT", "return {'HIT', first}"), "or OK",
		"or {'OK', epoch, due}")
	if diff := cmp.Diff(want, s.source); diff != "" {
		t.Errorf("the source (-want +got):\n%s", diff)
	}
	at := time.UnixMilli(1700000000123).UTC()
	args := s.args.list(testArgs{ID: "a", At: at, Body: []byte("b"), Urgent: true, Events: []string{"x", "y"}})
	if diff := cmp.Diff([]any{"a", "", int64(1700000000123), []byte("b"), "1", "x", "y"}, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	answer, err := s.read(redis.NewCmdResult([]any{"OK", int64(2), "1700000000123"}, nil))
	if diff := cmp.Diff(testAnswer{Word: "OK", Epoch: 2, Due: at}, answer); diff != "" || err != nil {
		t.Errorf("%v, answer (-want +got):\n%s", err, diff)
	}
}

func TestRowsAreNamed(t *testing.T) {
	t.Parallel()
	type row struct {
		ID   string
		Lane string
	}
	s := NewScript[struct{}, []row]("rows", "-- Rows: id lane\nlocal id, lane = 'a', 'bulk'\nreturn {ROW}\n")
	got, err := s.read(redis.NewCmdResult([]any{[]any{"a", "bulk"}, []any{"b", ""}}, nil))
	if diff := cmp.Diff([]row{{"a", "bulk"}, {"b", ""}}, got); diff != "" || err != nil {
		t.Errorf("%v, rows (-want +got):\n%s", err, diff)
	}
}

// TestWrongAnswersAreErrors: a nil variable cuts the answer off, and text isn't a number.
func TestWrongAnswersAreErrors(t *testing.T) {
	t.Parallel()
	s := NewScript[testArgs, testAnswer]("test", testSource)
	for name, c := range map[string]struct {
		reply any
		err   error
		want  string
	}{
		"cut off":       {[]any{"OK", int64(2)}, nil, "answers 1 values instead of 2"},
		"unknown":       {[]any{"WHAT"}, nil, "answers WHAT"},
		"no list":       {"OK", nil, "answers OK"},
		"no number":     {[]any{"OK", "two", "3"}, nil, "invalid syntax"},
		"of the server": {nil, errors.New("LOADING"), "LOADING"},
	} {
		if _, err := s.read(redis.NewCmdResult(c.reply, c.err)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

func TestFieldsThatDoNotMatchStopTheStart(t *testing.T) {
	t.Parallel()
	type id struct{ ID string }
	type word struct{ Word, Epoch string }
	for want, start := range map[string]func(){
		"no field for lane":              func() { NewScript[id, int]("x", "-- ARGV: id lane\nreturn id .. lane") },
		"the script does not declare id": func() { NewScript[id, int]("x", "return 1") },
		"the argument id is not used":    func() { NewScript[id, int]("x", "-- ARGV: id\nreturn 1") },
		"the argument id is declared twice": func() {
			NewScript[id, int]("x", "-- ARGV: id id\nreturn id")
		},
		"the name of something in the prelude": func() {
			NewScript[id, int]("x", "-- ARGV: id\nreturn id", "local function id() end")
		},
		"has no name": func() { NewScript[id, int]("x", "-- ARGV: id\nreturn id .. ARGV[1]") },
		"is not the last one": func() {
			NewScript[id, int]("x", "-- ARGV: id...\n-- ARGV: at\nreturn id .. at")
		},
		"declare one argument":    func() { NewScript[[]string, int]("x", "-- ARGV: id\nreturn id") },
		"declares no answer":      func() { NewScript[struct{}, word]("x", "return 1") },
		"isn't a struct":          func() { NewScript[struct{}, int]("x", "-- Answer: OK\nreturn OK") },
		"is never given":          func() { NewScript[struct{}, word]("x", "-- Answer: OK\nreturn 1") },
		"epoch is not a variable": func() { NewScript[struct{}, word]("x", "-- Answer: OK epoch\nreturn OK") },
		"the script does not declare epoch": func() {
			NewScript[struct{}, word]("x", "-- Answer: OK\nreturn OK")
		},
		"isn't a slice of structs": func() {
			NewScript[struct{}, int]("x", "-- Rows: a\nlocal a = 1\nreturn {ROW}")
		},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "redis script x: ") ||
					!strings.Contains(said, want) {
					t.Errorf("%q instead of %q", said, want)
				}
			}()
			start()
		}()
	}
}
