package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"github.com/postroom/postroom/bench/rig"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// toldAtMost is how many offenders have their story told; further ones are listed.
const toldAtMost = 10

// explain tells the story of messages with which a promise was broken: what clients, relays and receivers
// saw, Postroom's events, its log and what it answers about the message now, in the order of time.
func (h *house) explain(ctx context.Context, w io.Writer, v verdict) {
	told := map[int]bool{}
	for _, o := range v.offenders {
		fmt.Fprintf(w, "\nMessage %d: %s\n", o.number, o.why)
		if told[o.number] || len(told) == toldAtMost {
			continue
		}
		told[o.number] = true
		h.tellStory(ctx, w, h.ledger.stories[o.number])
	}
}

func (h *house) tellStory(ctx context.Context, w io.Writer, s *story) {
	h.ledger.mu.Lock()
	lines := slices.Clone(s.notes)
	for _, f := range h.ledger.order {
		if slices.Contains(s.queueIDs, f.queueID) {
			text := fmt.Sprintf("event: %s for %s", f.kind, strings.Join(f.to, " "))
			if f.doubt {
				text += ", in doubt"
			}
			lines = append(lines, note{f.at, text + " " + f.detail})
		}
	}
	h.ledger.mu.Unlock()
	lines = append(lines, h.logged(s.queueIDs)...)
	if len(lines) == 0 {
		return
	}
	slices.SortStableFunc(lines, func(a, b note) int { return a.at.Compare(b.at) })
	for _, f := range h.ledger.during(lines[0].at, lines[len(lines)-1].at) {
		lines = append(lines, note{f.from, "FAULT begins: " + f.kind + " at " + f.place})
		if !f.to.IsZero() {
			lines = append(lines, note{f.to, "FAULT ends: " + f.kind + " at " + f.place})
		}
	}
	slices.SortStableFunc(lines, func(a, b note) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	for _, n := range lines {
		fmt.Fprintf(w, "  %s  %s\n", h.ledger.since(n.at), n.text)
	}
	for _, id := range s.queueIDs {
		for _, path := range []string{"/v1/outbox/", "/v1/dead-letters/", "/v1/messages/"} {
			fmt.Fprintf(w, "  GET %s%s: %s\n", path, id, h.ask(ctx, path+id, 4000))
		}
	}
}

// ask reads an answer of the API as it is: the status, and so many bytes of it.
func (h *house) ask(ctx context.Context, path string, most int64) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.apis[0].apiLine.Addr()+path, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+rig.Token)
	resp, err := h.http.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as wanted
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	return resp.Status + " " + string(body)
}

var logTime = regexp.MustCompile(`^time=(\S+) `)

// logged finds what the processes logged about a message.
func (h *house) logged(ids []string) []note {
	var out []note
	for _, p := range h.processes() {
		file, err := os.Open(p.log.Name())
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line := lines.Text()
			if !slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(line, id) }) {
				continue
			}
			if m := logTime.FindStringSubmatch(line); m != nil {
				at, _ := time.Parse(time.RFC3339Nano, m[1])
				out = append(out, note{at, "log of " + p.name + ": " + strings.TrimPrefix(line, m[0])})
			}
		}
		_ = file.Close() // only read
	}
	return out
}

// alarms are lines of the processes' logs that must never be there.
func (h *house) alarms() []string {
	var out []string
	for _, p := range h.processes() {
		raw, err := os.ReadFile(filepath.Clean(p.log.Name()))
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") ||
				strings.Contains(line, "WARNING: DATA RACE") ||
				strings.Contains(line, "panic") && strings.Contains(line, "level=ERROR") {
				out = append(out, p.name+": "+strings.TrimSpace(line)+" ("+p.log.Name()+")")
			}
		}
	}
	return out
}
