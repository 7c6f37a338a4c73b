package redisdb

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that Redis runs as one step, with arguments of type A and an answer of type R. It is
// made once, at start, and safe for concurrent use.
//
// Scripts and Go exchange named fields. The comments of a script declare them:
//
//	-- ARGV: id now events...
//	-- Answer: OK epoch
//	-- Answer: GONE
//	-- Rows: id lane
//
// Each name of ARGV is a local variable of the script. A last name with dots stands for any number of
// arguments; its variable is the index of the first one in ARGV. A is a struct with a field for each name.
// Its field LeaseUntil is called lease_until in Lua, and a tag `lua:"name"` gives another name. A may also be
// a slice, if the only name is one with dots.
//
// Each Answer is a word with names. The script writes the word, as in "return OK", and answers the word and
// the values of the variables with these names. R is a struct with the field Word and a field for each name
// of any answer; fields of other answers stay zero. With Rows R is a slice of structs, and the script writes
// ROW for one of them. A script that declares neither answers a plain value, a number, a text or a list of
// texts, and R is its type.
//
// Fields are texts, []byte, numbers, bool (1 or empty), and [time.Time] (Unix milliseconds, 0 for the zero
// time). An argument with the tag option omitzero is empty where the field is zero.
type Script[A, R any] struct {
	*script
	args   arguments
	answer answers
	with   func(more string) *Script[A, R]
}

// script is what Redis knows of a script.
type script struct {
	name   string
	source string
	sha    string
}

// NewScript returns a script. The preludes are Lua text put before the source, for functions that several
// scripts share. Only the functions and values that the source needs are sent, because Redis creates each of
// them again whenever the script runs. The name is for error messages. NewScript panics if a field of A or R
// is not declared in the source, or a declared name has no field, or no use in the source.
func NewScript[A, R any](name, source string, preludes ...string) *Script[A, R] {
	before := readPrelude(strings.Join(preludes, "\n") + "\n")
	d, err := declared(source, before)
	s := &Script[A, R]{}
	if err == nil {
		s.args, err = argumentsOf(reflect.TypeFor[A](), d)
	}
	if err == nil {
		s.answer, err = answersOf(reflect.TypeFor[R](), d)
	}
	if err != nil {
		panic(fmt.Sprintf("redis script %s: %v", name, err))
	}
	var forms sync.Map // *Script by one more prelude
	s.with = func(more string) *Script[A, R] {
		form, known := forms.Load(more)
		if !known {
			form, _ = forms.LoadOrStore(more, NewScript[A, R](name, source, append(slices.Clone(preludes), more)...))
		}
		return form.(*Script[A, R])
	}
	body := d.expand(source)
	s.script = newScript(name, before.needed(body)+body)
	return s
}

// With returns the script with one more prelude, for a function that is not known at start. Without it, the
// script may name the function, but must not call it.
func (s *Script[A, R]) With(prelude string) *Script[A, R] {
	if prelude == "" {
		return s
	}
	return s.with(prelude)
}

func newScript(name, source string) *script {
	sum := sha1.Sum([]byte(source)) // the name Redis itself gives to a script
	return &script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// Source returns a script of an embedded directory. It panics if there is none.
func Source(files embed.FS, path string) string {
	source, err := files.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(source)
}

// Run runs the script by its hash, and in full if the server does not know it yet. All keys must be of one
// partition. An error names the script; redis.Nil is returned as it is. In a pipeline use [Script.Add]
// instead.
func (s *Script[A, R]) Run(ctx context.Context, c Evaler, keys []string, args A) (R, error) {
	return s.read(s.run(ctx, c, keys, s.args.list(args)))
}

// RunReplicated is Run with the guarantee of [DB.ReplicatedPipeline].
func (s *Script[A, R]) RunReplicated(ctx context.Context, db *DB, keys []string, args A) (R, error) {
	if db.wait.replicas == 0 {
		return s.Run(ctx, db.shared, keys, args)
	}
	p := db.ReplicatedPipeline()
	reply := s.Add(p, keys, args)
	err := p.Exec(ctx)
	answer, own := reply.Read()
	if own == nil {
		own = err
	}
	return answer, own
}

// Add adds the script to a pipeline. Its answer can be read after Exec.
func (s *Script[A, R]) Add(p *Pipeline, keys []string, args A) *Reply[R] {
	return &Reply[R]{cmd: p.add(s.script, keys, s.args.list(args)), read: s.read}
}

// AddTo adds the script, with its source, to a pipeline of go-redis. Its answer can be read after Exec.
func (s *Script[A, R]) AddTo(ctx context.Context, p redis.Pipeliner, keys []string, args A) *Reply[R] {
	return &Reply[R]{cmd: p.Eval(ctx, s.source, keys, s.args.list(args)...), read: s.read}
}

// Reply is the answer of a script in a pipeline.
type Reply[R any] struct {
	cmd  *redis.Cmd
	read func(*redis.Cmd) (R, error)
}

// Read returns the answer after Exec, or the error of the script or the pipeline.
func (r *Reply[R]) Read() (R, error) { return r.read(r.cmd) }

// read decodes the reply of the server.
func (s *Script[A, R]) read(cmd *redis.Cmd) (answer R, _ error) {
	reply, err := cmd.Result()
	if err == nil {
		if err = s.answer.decode(reflect.ValueOf(&answer).Elem(), reply); err != nil {
			err = fmt.Errorf("redis script %s: %w", s.name, err)
		}
	}
	return answer, err
}

// declares returns the names that a part of a prelude declares. A part that declares nothing is always
// included.
func declares(part string) []string {
	rest, ok := strings.CutPrefix(part, "local ")
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(strings.TrimPrefix(rest, "function "), "\n")
	list, _, _ := strings.Cut(rest, "=")
	list, _, _ = strings.Cut(list, "(")
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i], _, _ = strings.Cut(strings.TrimSpace(name), " ")
	}
	return names
}

// part is a statement of a prelude.
type part struct {
	text  string
	names []string        // that it declares; nil if it is always included
	words map[string]bool // in it
}

// prelude is a prelude that was read.
type prelude struct {
	parts []part
	names map[string]bool // that it declares anywhere
}

// preludes have been read: all scripts of a package have the same.
var preludes sync.Map // of *prelude by text

func readPrelude(text string) *prelude {
	if known, ok := preludes.Load(text); ok {
		return known.(*prelude)
	}
	var texts []string
	p := &prelude{names: map[string]bool{}}
	for line := range strings.Lines(text) {
		for _, name := range declares(line) {
			p.names[name] = true
		}
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "--") || strings.TrimSpace(line) == "":
		case len(texts) == 0 || begins(line):
			texts = append(texts, line)
		default:
			texts[len(texts)-1] += line
		}
	}
	for _, one := range texts {
		p.parts = append(p.parts, part{one, declares(one), words(one)})
	}
	preludes.Store(text, p)
	return p
}

// needed returns the parts of a prelude that a source refers to, including indirect ones.
func (p *prelude) needed(source string) string {
	used, kept := words(source), []string(nil)
	for _, part := range slices.Backward(p.parts) { // a part refers only to earlier parts
		if part.names == nil || slices.ContainsFunc(part.names, func(name string) bool { return used[name] }) {
			kept = append(kept, part.text)
			maps.Copy(used, part.words)
		}
	}
	slices.Reverse(kept)
	return strings.Join(kept, "")
}

// begins reports whether a line begins a part.
func begins(line string) bool {
	return strings.TrimLeft(line, " \t") == line &&
		!slices.Contains([]string{"end", "}", ")", "})"}, strings.TrimSpace(line))
}

// words returns the words in Lua code: names, keywords and numbers. Comments have none.
func words(code string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(code) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		for word := range strings.FieldsFuncSeq(line, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) &&
				!unicode.IsDigit(r)
		}) {
			found[word] = true
		}
	}
	return found
}

// Name returns the name of the script.
func (s *script) Name() string { return s.name }

// Evaler runs scripts: any client of Redis.
type Evaler interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// run runs the script by its hash, and in full if the server does not know it yet.
func (s *script) run(ctx context.Context, c Evaler, keys []string, args []any) *redis.Cmd {
	cmd := c.EvalSha(ctx, s.sha, keys, args...)
	if isNoScript(cmd.Err()) {
		cmd = c.Eval(ctx, s.source, keys, args...)
	}
	s.label(cmd)
	return cmd
}

// call returns the command that runs the script by its hash.
func (s *script) call(keys []string, args []any) []any { return evalArgs("evalsha", s.sha, keys, args) }

// isNoScript recognizes the error of a server that does not know the script.
func isNoScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// label adds the script's name to the error of its command.
func (s *script) label(cmd *redis.Cmd) {
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
		cmd.SetErr(fmt.Errorf("redis script %s: %w", s.name, err))
	}
}
