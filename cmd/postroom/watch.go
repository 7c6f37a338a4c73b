package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/postroom/postroom/api"
)

// outboxWatchCmd shows the outbox as it changes.
type outboxWatchCmd struct {
	reachFlags
	filterFlags
	Interval time.Duration `default:"1s" help:"Time between two looks."`
	Count    int           `placeholder:"N" help:"Stop after so many looks. Default: go on until Ctrl-C."`
}

// watched is the outbox at one time, as JSON in one line.
type watched struct {
	Queues   []api.QueueStatus   `json:"queues"`
	Total    int                 `json:"total"`
	Messages []api.OutboxMessage `json:"messages"`
}

// Sequences for terminals. The cursor moves home and the rest is cleared below it: clearing first would
// flicker.
const (
	cursorHome = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	altScreen  = "\x1b[?1049h\x1b[?25l"
	mainScreen = "\x1b[?25h\x1b[?1049l"
)

// Run shows the outbox until Ctrl-C, which is not an error.
func (o *outboxWatchCmd) Run(s *session) error {
	if o.Interval < 100*time.Millisecond {
		return usage("--interval: %s is too short, 100ms is the least", o.Interval)
	}
	live := s.outTTY && !s.json
	if live {
		fmt.Fprint(s.out, altScreen)
		defer fmt.Fprint(s.out, mainScreen)
	}
	for n := 1; ; n++ {
		w, err := o.look(s)
		if s.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.draw(s.console, w, live); err != nil || n == o.Count {
			return err
		}
		if sleep(s, o.Interval) != nil {
			return nil
		}
	}
}

// look reads the queues and as many messages as fit the screen.
func (o *outboxWatchCmd) look(s *session) (watched, error) {
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
	return w, err
}

func (o *outboxWatchCmd) draw(con *console, w watched, live bool) error {
	if o.JSON {
		return con.encode(w, "")
	}
	now := time.Now()
	var b strings.Builder
	for _, q := range w.Queues {
		fmt.Fprintln(&b, queueLine(q))
	}
	if !live {
		con.say("%s", b.String())
		con.show(messageGrid(w.Messages, now))
		con.say("")
		return nil
	}
	width, _ := con.size()
	fmt.Fprintf(&b, "\n%s\n", messageGrid(w.Messages, now).draw(width))
	fmt.Fprintf(&b, "%d messages · %s · Ctrl-C ends", w.Total, now.Format(time.TimeOnly))
	text := strings.ReplaceAll(b.String(), "\n", clearLine+"\n")
	_, err := lipgloss.Fprint(con.out, cursorHome+text+clearLine+clearBelow)
	return err
}

// queueLine returns a queue in one line.
func queueLine(q api.QueueStatus) string {
	j := q.Jobs
	line := fmt.Sprintf("%-7s waiting %d · active %d · delayed %d · failed %d", q.Queue, j.Waiting+j.Paused,
		j.Active, j.Delayed, j.Failed)
	if q.Paused {
		line += " · PAUSED"
	}
	if q.Latency >= 1 {
		line += " · oldest " + seconds(q.Latency)
	}
	return line
}
