package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// storiesAtMost is the number of offenders whose story is printed. Others are only listed.
const storiesAtMost = 10

// explain prints the story of messages with which a promise was broken, in the order of time: what clients,
// relays and receivers saw, Postroom's events, its log and its current answers about the message.
func (h *testbed) explain(ctx context.Context, w io.Writer, v verdict) {
	printed := map[int]bool{}
	for _, o := range v.offenders {
		fmt.Fprintf(w, "\nMessage %d: %s\n", o.number, o.why)
		if printed[o.number] || len(printed) == storiesAtMost {
			continue
		}
		printed[o.number] = true
		h.printStory(ctx, w, h.ledger.stories[o.number])
	}
	for _, u := range v.unheard[:min(len(v.unheard), storiesAtMost)] {
		h.printUnheard(ctx, w, u)
	}
}

// printUnheard prints what Postroom knows about an event that an endpoint never got.
func (h *testbed) printUnheard(ctx context.Context, w io.Writer, u unheard) {
	fmt.Fprintf(w, "\nEvent %s, %s of message %s at %s: %s never got it\n", u.event.id, u.event.kind,
		u.event.queueID, h.ledger.since(u.event.at), u.endpoint)
	for _, n := range h.logged([]string{u.event.id}) {
		fmt.Fprintf(w, "  %s  %s\n", h.ledger.since(n.at), n.text)
	}
	for _, r := range h.receivers {
		if r.name == u.endpoint {
			path := "/v1/webhook-endpoints/" + r.id + "/deliveries/" + u.event.id
			fmt.Fprintf(w, "  GET %s: %s\n", path, h.ask(ctx, path))
		}
	}
}

func (h *testbed) printStory(ctx context.Context, w io.Writer, s *story) {
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
	byTime := func(a, b note) int { return a.at.Compare(b.at) }
	slices.SortStableFunc(lines, byTime)
	for _, f := range h.ledger.during(lines[0].at, lines[len(lines)-1].at) {
		lines = append(lines, note{f.from, "FAULT begins: " + f.kind + " at " + f.target})
		if !f.to.IsZero() {
			lines = append(lines, note{f.to, "FAULT ends: " + f.kind + " at " + f.target})
		}
	}
	slices.SortStableFunc(lines, byTime)
	for _, n := range lines {
		fmt.Fprintf(w, "  %s  %s\n", h.ledger.since(n.at), n.text)
	}
	for _, id := range s.queueIDs {
		for _, path := range []string{"/v1/outbox/", "/v1/dead-letters/", "/v1/messages/"} {
			fmt.Fprintf(w, "  GET %s%s: %s\n", path, id, h.ask(ctx, path+id))
		}
	}
}

// ask returns the beginning of a response of the API, or its error.
func (h *testbed) ask(ctx context.Context, path string) string {
	body, err := api.Fetch[[]byte]("GET "+path).Do(ctx, h.apis[0].client)
	if err != nil {
		return err.Error()
	}
	return string(body[:min(len(body), 4000)])
}

var logTime = regexp.MustCompile(`^time=(\S+) `)

// logged returns what the processes logged about a message.
func (h *testbed) logged(ids []string) []note {
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

// alarms returns the lines of the processes' logs that must never be there.
func (h *testbed) alarms() []string {
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
