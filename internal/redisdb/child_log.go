package redisdb

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// wordsKept is how many of the server's last lines are remembered, to explain its death.
const wordsKept = 5

// childLog turns what the embedded server prints into our log: its warnings as warnings while it serves,
// the rest for debugging.
type childLog struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte
	words   []string
	serving bool // warnings while starting and stopping are routine
}

// Write takes any piece of the server's output.
func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte{'\n'})
		if !found {
			return len(p), nil
		}
		l.line(strings.TrimSpace(string(line)))
		l.partial = rest
	}
}

// line reads "12345:M 21 Nov 2025 09:07:00.123 # text", where # marks a warning.
func (l *childLog) line(line string) {
	if line == "" {
		return
	}
	if len(l.words) == wordsKept {
		l.words = l.words[1:]
	}
	l.words = append(l.words, line)
	if l.serving && strings.Contains(line, " # ") {
		l.log.Warn("embedded redis warns", "line", line)
		return
	}
	l.log.Debug("embedded redis says", "line", line)
}

// ready reports whether the server is expected to be serving.
func (l *childLog) ready(serving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving = serving
}

// lastWords are the last lines the server printed.
func (l *childLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.words, " | ")
}
