package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/postroom/postroom/api"
)

type outboxWatchCmd struct {
	filter[api.OutboxQuery]
	Interval time.Duration `default:"1s" help:"Time between two updates."`
	Count    int           `placeholder:"N" help:"Stop after this many updates. By default, it runs until Ctrl-C."`
}

// watched is the outbox at one time, as JSON in one line.
type watched struct {
	Queues   []api.QueueStatus   `json:"queues"`
	Total    int                 `json:"total"`
	Messages []api.OutboxMessage `json:"messages"`

	finished []api.LoggedMessage // accepted since the watch began, newest first
}

// Sequences for terminals. The lines of the table are written over: clearing them first would flicker.
const (
	cursorUp   = "\x1b[%dA\r"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
)

// Run shows the outbox until Ctrl-C, which is not an error.
func (o *outboxWatchCmd) Run(s *session) error {
	if o.Interval < 100*time.Millisecond {
		return usage("--interval: %s is too short, 100ms is the least", o.Interval)
	}
	w := watcher{session: s, said: map[string]string{}}
	if w.live = s.outTTY && !s.json; w.live {
		fmt.Fprint(s.out, hideCursor)
		defer fmt.Fprint(s.out, showCursor)
	}
	began := time.Now()
	for n := 1; ; n++ {
		now, err := o.look(s, began)
		if s.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.show(now); err != nil || n == o.Count {
			return err
		}
		if sleep(s, o.Interval) != nil {
			return nil
		}
	}
}

// look reads the queues and as many messages as fit the screen.
func (o *outboxWatchCmd) look(s *session, began time.Time) (watched, error) {
	var w watched
	for _, name := range []string{"submit", "notify"} {
		q, err := api.GetQueue.Do(s, s.client, name)
		if err != nil {
			return w, err
		}
		w.Queues = append(w.Queues, q)
	}
	q, err := o.query()
	if err != nil {
		return w, err
	}
	rows := limitFlag{20}
	if s.outTTY {
		_, height := s.size()
		rows.Limit = max(1, height-9)
	}
	q.PageSize = rows.Limit
	messages, _, last, err := fetch(s, api.ListOutbox, q, rows, nil)
	w.Total, w.Messages = last.Total, messages
	if err != nil || s.json || q.State != "" {
		return w, err
	}
	logged, err := api.ListMessages.Do(s, s.client, api.LogQuery{Account: q.Account, Lane: q.Lane, Tag: q.Tag,
		Search: q.Search, CreatedAfter: began, PageSize: 100})
	w.finished = logged.Messages
	return w, err
}

// watcher shows looks at the outbox, one after the other. Lines of ended messages stay; on a terminal the
// table of the last look is below them, elsewhere each change is a line.
type watcher struct {
	*session
	live  bool
	seen  []api.OutboxMessage // in the last look
	lines int                 // of the table on the screen
	said  map[string]string   // the last line of each queue and each message; not if live
	over  map[string]bool     // finished messages that have their line
}

func (w *watcher) show(at watched) error {
	if w.json {
		return w.encode(at, "")
	}
	ended, now := append(w.ended(at.Messages), w.missed(at.finished)...), time.Now()
	w.seen = at.Messages
	if !w.live {
		for _, q := range at.Queues {
			w.change(q.Queue, queueLine(q))
		}
		for _, m := range at.Messages {
			w.change(m.QueueID, messageLine(m.QueueID, string(m.State), m, why(m)))
		}
		for _, line := range ended {
			w.say("%s", line)
		}
		return nil
	}
	width, _ := w.size()
	var table strings.Builder
	for _, q := range at.Queues {
		fmt.Fprintln(&table, queueLine(q))
	}
	fmt.Fprintf(&table, "\n%s\n", messageGrid(at.Messages, now).draw(width))
	fmt.Fprintf(&table, "%s · %s · Ctrl-C ends", plural(at.Total, "message"), now.Format(time.TimeOnly))
	lines := slices.Concat(ended, strings.Split(table.String(), "\n"))
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, width, "…") + clearLine // a wrapped line would be two
	}
	if w.lines > 0 {
		fmt.Fprintf(w.out, cursorUp, w.lines)
	}
	w.lines = len(lines) - len(ended)
	_, err := lipgloss.Fprint(w.out, strings.Join(lines, "\n")+"\n"+clearBelow)
	return err
}

// change prints a line if it is another than before.
func (w *watcher) change(of, line string) {
	if w.said[of] != line {
		w.said[of] = line
		w.say("%s", line)
	}
}

// ended returns a line for each message that was seen in the outbox, and has ended since.
func (w *watcher) ended(now []api.OutboxMessage) (lines []string) {
	for _, was := range w.seen {
		still := slices.ContainsFunc(now, func(m api.OutboxMessage) bool { return m.QueueID == was.QueueID })
		if still || was.State == api.Failed {
			continue
		}
		delete(w.said, was.QueueID)
		_, err := api.GetMessage.Do(w, w.client, was.QueueID)
		if e, ok := endingOf(was.QueueID, err); ok { // otherwise it is still queued, and beyond the screen
			lines = append(lines, w.finish(messageLine(was.QueueID, e.State, was, clean(e.Response)), was.QueueID)...)
		}
	}
	return lines
}

// missed returns a line for each message that was finished between two updates, so that no table showed it.
func (w *watcher) missed(logged []api.LoggedMessage) (lines []string) {
	for _, m := range slices.Backward(logged) {
		if m.Ended == nil || m.Status == api.StatusDead { // the outbox still has dead letters
			continue
		}
		as := api.OutboxMessage{Envelope: m.Envelope, Subject: m.Subject}
		line := messageLine(m.QueueID, string(m.Status), as, clean(m.Response))
		lines = append(lines, w.finish(line, m.QueueID)...)
	}
	return lines
}

// finish returns the line of a finished message, once.
func (w *watcher) finish(line, id string) []string {
	if w.over[id] {
		return nil
	}
	if w.over == nil {
		w.over = map[string]bool{}
	}
	w.over[id] = true
	return []string{line}
}

// messageLine returns a message in one line: its id, its state, to whom, its subject, and why.
func messageLine(id, state string, m api.OutboxMessage, why string) string {
	line := fmt.Sprintf("%s  %-9s  %s  %s", id, state, clean(someOf(m.Envelope.To)), clip(m.Subject, 40))
	if why != "" && why != "-" {
		line += "  " + why
	}
	return line
}

func queueLine(q api.QueueStatus) string {
	j := q.Jobs
	line := fmt.Sprintf("%-7s waiting %d · active %d · scheduled %d · delayed %d · failed %d", q.Queue, j.Waiting+j.Paused,
		j.Active, j.Scheduled, j.OnlyDelayed(), j.Failed)
	if q.Paused {
		line += " · PAUSED"
	}
	if q.Latency >= 1 {
		line += " · oldest " + seconds(q.Latency)
	}
	return line
}
