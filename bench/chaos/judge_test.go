package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
)

const (
	ann = "m0r0@example.net"
	bob = "m0r1@example.net"
)

// pen writes the ledger of one message to ann and bob.
type pen struct{ *ledger }

func (p pen) accepted() {
	p.answered(0, "Q", "api-1", "MISS")
	p.event(event.MessageQueued, false, ann, bob)
}
func (p pen) copy(to ...string)  { p.took(0, to, true, "relay") }
func (p pen) sent(to ...string)  { p.event(event.MessageSent, false, to...) }
func (p pen) taken(to ...string) { p.copy(to...); p.sent(to...) }
func (p pen) event(kind event.Type, doubt bool, to ...string) {
	id := string(rune('a' + len(p.order)))
	p.happened(&fact{id: id, kind: kind, at: time.Now(), queueID: "Q", to: to, doubt: doubt})
	p.got("hook", id)
}

func TestJudge(t *testing.T) {
	for _, row := range []struct {
		name  string
		write func(pen)
		want  verdict // but for what every row has
		why   string  // the first offender's
	}{
		{"as it should be", func(p pen) { p.accepted(); p.taken(ann, bob) }, verdict{once: 2}, ""},
		{"one after the other", func(p pen) { p.accepted(); p.taken(bob); p.taken(ann) }, verdict{once: 2}, ""},
		{"lost without a word", func(p pen) { p.accepted(); p.taken(ann) }, verdict{once: 1, lost: 1, missing: 1},
			bob + ": 0 last words"},
		{"told sent, never delivered", func(p pen) { p.accepted(); p.taken(ann); p.sent(bob) },
			verdict{once: 1, lost: 1, liedSent: 1}, bob + ": accepted, never delivered"},
		{"delivered, no word", func(p pen) { p.accepted(); p.taken(ann); p.copy(bob) },
			verdict{once: 2, missing: 1}, bob + ": 0 last words"},
		{"twice", func(p pen) { p.accepted(); p.copy(ann, bob); p.taken(ann, bob) }, verdict{twice: 2},
			ann + ": delivered 2 times"},
		{"twice, and the event says doubt", func(p pen) {
			p.accepted()
			p.copy(ann, bob)
			p.copy(ann, bob)
			p.event(event.MessageSent, true, ann, bob)
		}, verdict{twiceDoubted: 2}, ""},
		{"twice, and only the other recipient was in doubt", func(p pen) {
			p.accepted()
			p.copy(ann)
			p.taken(ann)
			p.copy(bob)
			p.event(event.MessageSent, true, bob)
		}, verdict{twice: 1, once: 1}, ann + ": delivered 2 times"},
		{"two last words", func(p pen) { p.accepted(); p.taken(ann, bob); p.sent(ann) }, verdict{once: 2, extra: 1},
			ann + ": 2 last words"},
		{"an event twice in the stream", func(p pen) {
			p.accepted()
			p.taken(ann, bob)
			again := *p.order[1]
			p.happened(&again)
		}, verdict{once: 2, doubled: 1}, "event b, messageSent, stands 2 times"},
		{"failed", func(p pen) { p.accepted(); p.event(event.MessageFailed, false, ann, bob) }, verdict{failed: 2},
			""},
		{"failed, replayed, sent", func(p pen) {
			p.accepted()
			p.taken(ann)
			p.event(event.MessageFailed, false, bob)
			p.event(event.MessageReplayed, false, bob)
			p.taken(bob)
		}, verdict{once: 2}, ""},
		{"failed, replayed, forgotten", func(p pen) {
			p.accepted()
			p.taken(ann)
			p.event(event.MessageFailed, false, bob)
			p.event(event.MessageReplayed, false, bob)
		}, verdict{once: 1, failed: 1, missing: 1}, bob + ": 1 last words, want 2"},
		{"delivered, told failed, known to be without doubt", func(p pen) {
			p.accepted()
			p.copy(ann, bob)
			p.event(event.MessageFailed, false, ann, bob)
			p.about(0, func(s *story) string { s.doubts = 0; return "" })
		}, verdict{once: 2, failedThough: 2}, ann + ": delivered, told failed"},
		{"delivered twice, told failed, known to be without doubt", func(p pen) {
			p.accepted()
			p.copy(ann, bob)
			p.copy(ann)
			p.event(event.MessageSent, false, bob)
			p.event(event.MessageFailed, false, ann)
			p.about(0, func(s *story) string { s.doubts = 0; return "" })
		}, verdict{once: 1, twice: 1, failedThough: 1}, ann + ": delivered 2 times"},
		{"delivered, told failed in doubt",
			func(p pen) { p.accepted(); p.copy(ann, bob); p.event(event.MessageFailed, true, ann, bob) },
			verdict{once: 2, failedDoubted: 2}, ""},
		{"delivered, told cancelled, known to be without doubt", func(p pen) {
			p.accepted()
			p.copy(ann)
			p.event(event.MessageCancelled, false, ann, bob)
			p.about(0, func(s *story) string { s.doubts = 0; return "" })
		}, verdict{once: 1, cancelled: 1, cancelledThough: 1}, ann + ": delivered, told cancelled"},
		{"delivered, told cancelled", func(p pen) {
			p.accepted()
			p.copy(ann)
			p.event(event.MessageCancelled,
				false, ann, bob)
		}, verdict{once: 1, cancelled: 1, unknown: 1}, ""},
		{"a cancel that did nothing", func(p pen) {
			p.accepted()
			p.about(0, func(s *story) string { s.cancelled = true; return "" })
			p.taken(ann, bob)
		}, verdict{once: 2, cancelForgotten: 1}, "a client was told that it is cancelled"},
		{"a replay that did nothing", func(p pen) {
			p.accepted()
			p.about(0, func(s *story) string { s.replayed = 1; return "" })
			p.event(event.MessageFailed, false, ann, bob)
		}, verdict{failed: 2, replayless: 1}, "clients were told of 1 replays"},
		{"two messages of one key", func(p pen) {
			p.accepted()
			p.answered(0, "Z", "api-2", "MISS")
			p.taken(ann,
				bob)
		}, verdict{once: 2, twoAnswers: 1}, "one key, and several"},
		{"a copy cut short", func(p pen) {
			p.accepted()
			p.took(0, []string{ann, bob}, false, "relay")
			p.sent(ann,
				bob)
		}, verdict{once: 2, mangled: 1}, "1 copies that are not whole"},
		{"a webhook that never came", func(p pen) {
			p.accepted()
			p.copy(ann, bob)
			p.happened(&fact{id: "z", kind: event.MessageSent, queueID: "Q", to: []string{ann, bob}})
		}, verdict{once: 2, undelivered: 1}, ""},
		{"a webhook about nothing, and one that came twice",
			func(p pen) { p.accepted(); p.taken(ann, bob); p.got("hook", "none"); p.got("hook", "a") },
			verdict{once: 2, invented: 1, repeated: 1}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLedger(1, 0, 0)
			l.open(plan{number: 0, to: []string{ann, bob}})
			row.write(pen{l})
			got := judge(l, []string{"hook"})
			why := ""
			if len(got.offenders) > 0 {
				why = got.offenders[0].why
			}
			if !strings.HasPrefix(why, row.why) || why != "" && row.why == "" {
				t.Errorf("blamed for %q, want %q", why, row.why)
			}
			if len(got.unheard) != got.undelivered {
				t.Errorf("%d events undelivered, %d named", got.undelivered, len(got.unheard))
			}
			got.offenders, got.unheard = nil, nil
			row.want.submitted, row.want.accepted, row.want.recipients = 1, 1, 2
			row.want.events, row.want.deliveries = got.events, got.deliveries
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(verdict{}, mailed{}, digested{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJudgeOfWhatWasNeverAccepted(t *testing.T) {
	l := newLedger(2, 0, 0)
	l.open(plan{number: 0})
	l.open(plan{number: 1})
	l.about(1, func(s *story) string { s.refused = "400"; return "" })
	if got := judge(l, nil); got.unanswered != 1 || got.refused != 1 || got.accepted != 0 {
		t.Errorf("%+v", got)
	}
	l.note(7, "who?")
	if len(l.oddities) != 1 {
		t.Error("a message that nobody submitted is no oddity")
	}
}

// TestTableSaysWhatIsBroken: each offence breaks the table, and so the run.
func TestTableSaysWhatIsBroken(t *testing.T) {
	for _, row := range []struct {
		name string
		v    verdict
		r    recovery
		want string
	}{
		{name: "lost", v: verdict{lost: 1}, want: "LOST"},
		{name: "twice", v: verdict{twice: 1}, want: "WITHOUT doubt"},
		{name: "missing", v: verdict{missing: 1}, want: "last words missing"},
		{name: "slow recovery", r: recovery{longestCalm: 11 * time.Second}, want: "moved on"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			table := &table{w: &out, ok: true}
			table.write(row.v, newLedger(0, 0, 0), row.r, 0)
			broken := ""
			for line := range strings.Lines(out.String()) {
				if strings.HasSuffix(strings.TrimSpace(line), "BROKEN") {
					broken += line
				}
			}
			if table.ok || !strings.Contains(broken, row.want) || strings.Count(broken, "\n") != 1 {
				t.Errorf("ok=%t, broken:\n%s", table.ok, broken)
			}
		})
	}
}

func TestRecoveries(t *testing.T) {
	got := recoveries([]kill{{took: time.Second, calm: true}, {took: time.Minute},
		{took: 2 * time.Second, calm: true, pending: []string{"x"}}})
	if got.storm != 1 || got.calm != 2 || got.longestCalm != 2*time.Second || got.longestStorm != time.Minute ||
		len(got.stuck) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestSameSeedSamePlan: what happens to whom, and when, follows from the seed.
func TestSameSeedSamePlan(t *testing.T) {
	type planOfFaults struct {
		Kind       string
		At, Length time.Duration
	}
	schedule := func(seed uint64) []planOfFaults {
		var out []planOfFaults
		p := lineTroubles("redis line", "worker-1", nil, 8*time.Second)
		for _, a := range p.schedule(seed, 10*time.Minute, 1) {
			out = append(out, planOfFaults{a.kind, a.at, a.length})
		}
		return out
	}
	if diff := cmp.Diff(schedule(5), schedule(5)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(schedule(5), schedule(6)) || len(schedule(5)) < 20 {
		t.Errorf("another seed, and the same plan, or too short a one: %v", schedule(5))
	}
	a, b := planned(5, 17), planned(5, 17)
	if diff := cmp.Diff(a, b, cmp.AllowUnexported(plan{})); diff != "" {
		t.Error(diff)
	}
	if c := planned(6, 17); cmp.Equal(a, c, cmp.AllowUnexported(plan{})) {
		t.Error("another seed, and the same message")
	}
	for n := range 100 {
		for _, to := range planned(5, n).to {
			if numberOf(to) != n {
				t.Errorf("%s is of message %d, want %d", to, numberOf(to), n)
			}
		}
	}
	if numberOf("ann@example.net") != -1 {
		t.Error("ann is nobody's recipient")
	}
}
