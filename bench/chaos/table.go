package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// movedWithin is how soon a dead worker's messages move on, where nothing else is wrong.
const movedWithin = 10 * time.Second

// table writes what a run came to, and says whether every promise held.
type table struct {
	w  io.Writer
	ok bool
}

func (t *table) title(text string) { fmt.Fprintf(t.w, "\n%s\n", text) }

// tell is a row without a judgement.
func (t *table) tell(what string, value any) { fmt.Fprintf(t.w, "  %-66s %12v\n", what, value) }

// want is a row that must have this value.
func (t *table) want(what string, value, want any) {
	t.hold(what, value, fmt.Sprint(want), value == want)
}

func (t *table) hold(what string, value any, want string, ok bool) {
	word := "ok"
	if !ok {
		word, t.ok = "BROKEN", false
	}
	fmt.Fprintf(t.w, "  %-66s %12v   %-10s %s\n", what, value, want, word)
}

// write writes the table of a run.
func (t *table) write(v verdict, l *ledger, r recovery, forged int64) {
	t.title("Submits")
	t.tell("messages submitted", v.submitted)
	t.tell("accepted", v.accepted)
	t.tell("  their recipients", v.recipients)
	t.want("never answered", v.unanswered, 0)
	t.want("refused for good", v.refused, 0)
	t.want("one key answered with different queueIds", v.twoAnswers, 0)
	t.title("Recipients of accepted messages")
	t.tell("delivered once", v.once)
	t.tell("delivered twice or more, marked in doubt", v.twiceDoubted)
	t.want("delivered twice or more WITHOUT doubt", v.twice, 0)
	t.tell("not delivered: failed", v.failed)
	t.tell("not delivered: cancelled", v.cancelled)
	t.want("LOST: not cancelled, not failed, and not delivered", v.lost, 0)
	t.want("  of them told sent", v.liedSent, 0)
	t.tell("delivered, told failed, marked in doubt", v.failedDoubted)
	t.want("delivered, told failed, WITHOUT doubt", v.failedThough, 0)
	t.tell("delivered, told cancelled, marked in doubt", v.cancelledDoubted)
	t.want("delivered, told cancelled, WITHOUT doubt", v.cancelledThough, 0)
	if v.unknown > 0 {
		t.tell("delivered, told failed or cancelled, doubt no longer known", v.unknown)
	}
	t.want("messages of which a copy arrived incomplete", v.mangled, 0)
	t.mailings(v.mailed)
	t.digests(v.digested)
	t.title("Events")
	t.tell("in the stream", v.events)
	t.want("accepted messages without exactly one messageQueued", v.unqueued, 0)
	t.want("last words missing", v.missing, 0)
	t.want("last words too many", v.extra, 0)
	t.want("events that stand in the stream more than once", v.doubled, 0)
	t.want("cancellations that no event tells of", v.cancelForgotten, 0)
	t.want("replays that no event tells of", v.replayless, 0)
	t.tell("webhooks received", v.deliveries)
	t.tell("  of them received before", v.repeated)
	t.want("events that an endpoint never got", v.undelivered, 0)
	t.want("webhooks about no event", v.invented, 0)
	t.want("webhooks with a wrong signature", forged, int64(0))
	t.kills(r)
	t.counts("Answers to clients", l.told)
	t.counts("Faults", l.injected)
}

func (t *table) kills(r recovery) {
	t.title("Recovery after kill -9 of a worker")
	t.tell("kills of a worker in the storm, while messages were under way", r.storm)
	t.tell("  until the last of them moved on, at most", r.longestStorm.Round(time.Millisecond))
	t.tell("kills with nothing else wrong", r.calm)
	t.hold("  until the last of them moved on, at most", r.longestCalm.Round(time.Millisecond), "10s",
		r.longestCalm <= movedWithin)
	t.want("kills after which a message never moved on", len(r.stuck), 0)
}

func (t *table) counts(title string, counts map[string]int) {
	t.title(title)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.tell(name, counts[name])
		total += counts[name]
	}
	t.tell("in all", total)
}

// complain lists violations that aren't numbers.
func (t *table) complain(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.ok = false
	t.title(title)
	for _, line := range lines {
		fmt.Fprintln(t.w, "  "+line)
	}
}
