package redisdb

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that Redis runs as one step. It is made once, at start, and safe for concurrent use.
type Script struct {
	name   string
	source string
	sha    string
}

// NewScript returns a script. The preludes are Lua text put before the source, for functions that several
// scripts share. Only the functions and values that the source needs are sent, because Redis creates each
// of them again whenever the script runs. The name is for error messages.
func NewScript(name, source string, preludes ...string) *Script {
	source = needed(strings.Join(preludes, "\n")+"\n", source) + source
	sum := sha1.Sum([]byte(source)) // the name Redis itself gives to a script
	return &Script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// declaration matches the names that a part of a prelude declares. A part that declares nothing is always
// included.
var declaration = regexp.MustCompile(`^local (?:function )?(\w+(?:, *\w+)*)`)

// needed returns the parts of a prelude that a source refers to, and those that these refer to.
func needed(prelude, source string) string {
	var parts []string
	for line := range strings.Lines(prelude) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "--") || strings.TrimSpace(line) == "":
		case len(parts) == 0 || begins(line):
			parts = append(parts, line)
		default:
			parts[len(parts)-1] += line
		}
	}
	used, kept := words(source), ""
	for _, part := range slices.Backward(parts) { // a part refers only to what stands before it
		names := declaration.FindStringSubmatch(part)
		if names == nil || slices.ContainsFunc(strings.Split(names[1], ","), func(name string) bool {
			return used[strings.TrimSpace(name)]
		}) {
			kept = part + kept
			maps.Copy(used, words(part))
		}
	}
	return kept
}

// begins reports whether a line begins a part.
func begins(line string) bool {
	return strings.TrimLeft(line, " \t") == line &&
		!slices.Contains([]string{"end", "}", ")", "})"}, strings.TrimSpace(line))
}

// words returns the words of Lua code: names, keywords and numbers. Lines of comment have none.
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
func (s *Script) Name() string { return s.name }

// Evaler runs scripts: any client of Redis.
type Evaler interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// Run runs the script by its hash, and in full if the server does not know it yet. All keys must be of one
// partition. An error names the script; redis.Nil is returned as it is. In a pipeline use [Pipeline.Script]
// instead.
func (s *Script) Run(ctx context.Context, c Evaler, keys []string, args ...any) *redis.Cmd {
	cmd := c.EvalSha(ctx, s.sha, keys, args...)
	if isNoScript(cmd.Err()) {
		cmd = c.Eval(ctx, s.source, keys, args...)
	}
	s.label(cmd)
	return cmd
}

// call returns the command that runs the script by its hash.
func (s *Script) call(keys []string, args []any) []any { return evalArgs("evalsha", s.sha, keys, args) }

// isNoScript recognizes the error of a server that does not know the script.
func isNoScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// label adds the script's name to the error of its command.
func (s *Script) label(cmd *redis.Cmd) {
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
		cmd.SetErr(fmt.Errorf("redis script %s: %w", s.name, err))
	}
}
