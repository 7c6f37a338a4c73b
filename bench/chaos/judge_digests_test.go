package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// scribe writes the ledger of two digest events to one reader.
type scribe struct{ *ledger }

// takes accepts two events.
func (s scribe) takes() {
	for n := range 2 {
		s.handsIn(n, api.DigestEvent{Email: readerAddress(0), Category: hourlyCategory(0)})
		s.answeredNotice(n, "api-1", api.DigestEventResult{Success: true, State: "waiting",
			Idempotency: &api.IdempotencyStatus{Status: "MISS"}})
	}
}

// says adds an event to the stream.
func (s scribe) says(f fact) {
	f.id = fmt.Sprint("e", len(s.order))
	s.happened(&f)
}

// queues has the outbox accept an email of a run.
func (s scribe) queues(run, mail string) {
	s.says(fact{kind: event.MessageQueued, run: run, queueID: "Q" + mail, messageID: mail})
}

// relay has a relay take an email with some events.
func (s scribe) relay(mail string, notices ...int) {
	one := s.digests.digestMails[mail]
	if one == nil {
		one = &digestMail{messageID: mail, notices: notices}
		s.digests.digestMails[mail] = one
	}
	one.copies++
}

// end lets a run end in a state.
func (s scribe) end(run, schedule, state string, events, returned int) {
	s.says(fact{kind: wordOf(api.DigestRun{State: state}), run: run, events: events, returned: returned})
	s.unsaid(run, schedule, state, events)
}

// unsaid has a run end, and no event say so.
func (s scribe) unsaid(run, schedule, state string, events int) {
	s.digests.runs = append(s.digests.runs, api.DigestRun{Run: run, Recipient: reader(0), Schedule: schedule,
		Period: "2026-01-02T03", State: state, Events: events})
}

// sent is a run that was mailed.
func (s scribe) sent(run, schedule string, notices ...int) {
	s.queues(run, "m"+run)
	s.relay("m"+run, notices...)
	s.end(run, schedule, api.DigestSent, len(notices), 0)
}

func TestJudgeOfDigests(t *testing.T) {
	for _, row := range []struct {
		name  string
		write func(scribe)
		want  digested // but for what every row has
		why   string   // the first error's
	}{
		{"as it should be", func(s scribe) { s.sent("1", "hourly@04", 0, 1) },
			digested{once: 2, runs: 1, mailed: 1}, ""},
		{"two schedules of one period", func(s scribe) {
			s.digests.all[1].category = comments
			s.sent("1", "hourly@04", 0)
			s.sent("2", "hourly@05", 1)
		}, digested{once: 2, runs: 2, mailed: 2}, ""},
		{"an event lost", func(s scribe) { s.sent("1", "hourly@04", 0) },
			digested{once: 1, runs: 1, mailed: 1, lost: 1}, "1 events are in no mail ([1])"},
		{"told as dropped", func(s scribe) {
			s.sent("1", "now", 0)
			s.end("2", "off", api.DigestSkipped, 1, 0)
		}, digested{once: 1, runs: 2, mailed: 1, toldDropped: 1}, ""},
		{"told as dropped, and mailed", func(s scribe) {
			s.sent("1", "now", 0, 1)
			s.end("2", "off", api.DigestSkipped, 1, 0)
		}, digested{once: 2, runs: 2, mailed: 1, overtold: 1}, "1 events are told as dropped"},
		{"returned, and mailed", func(s scribe) {
			s.end("1", "now", api.DigestFailed, 2, 2)
			s.sent("2", "now", 0, 1)
		}, digested{once: 2, runs: 2, mailed: 1}, ""},
		{"returned, and lost", func(s scribe) { s.end("1", "now", api.DigestFailed, 2, 2) },
			digested{runs: 1, lost: 2}, "2 events are in no mail"},
		{"an event in two mails", func(s scribe) { s.sent("1", "now", 0, 1); s.sent("2", "now", 1) },
			digested{once: 1, runs: 2, mailed: 2, twice: 1}, "event 1 is in 2 mails"},
		{"an event in two mails, one of them in doubt", func(s scribe) {
			s.queues("1", "m1")
			s.relay("m1", 0, 1)
			s.says(fact{kind: event.MessageFailed, run: "1", queueID: "Qm1", messageID: "m1", doubt: true})
			s.end("1", "now", api.DigestFailed, 2, 2)
			s.sent("2", "now", 0, 1)
		}, digested{doubted: 2, runs: 2, mailed: 2}, ""},
		{"two mails of a run", func(s scribe) {
			s.sent("1", "now", 0)
			s.queues("1", "other")
			s.relay("other", 1)
		}, digested{once: 2, runs: 1, mailed: 1, twoMails: 1}, "run 1 has 2 mails"},
		{"a mail taken twice", func(s scribe) { s.sent("1", "now", 0, 1); s.relay("m1") },
			digested{once: 2, runs: 1, mailed: 1, twoCopies: 1}, "mail m1 was taken 2 times"},
		{"a mail taken twice, and the log of attempts says doubt", func(s scribe) {
			s.sent("1", "now", 0, 1)
			s.relay("m1")
			s.digests.digestMails["m1"].doubts = 1
		}, digested{once: 2, runs: 1, mailed: 1}, ""},
		{"a mail of no run", func(s scribe) { s.sent("1", "now", 0); s.relay("stray", 1) },
			digested{once: 2, runs: 1, mailed: 1, runless: 1}, "mail stray is of no run"},
		{"two mails of a period", func(s scribe) { s.sent("1", "hourly@04", 0); s.sent("2", "hourly@05", 1) },
			digested{once: 2, runs: 2, mailed: 2, periods: 1}, "runs 1 and 2 both mailed hourly0"},
		{"a mail that counts too many", func(s scribe) {
			s.queues("1", "m1")
			s.relay("m1", 0, 1)
			s.end("1", "now", api.DigestSent, 3, 0)
		}, digested{once: 2, runs: 1, mailed: 1, miscount: 1}, "the mail of run 1 tells of 2 events, and it has 3"},
		{"an event of nobody", func(s scribe) { s.sent("1", "now", 0, 1, 7) },
			digested{once: 2, runs: 1, mailed: 1, strangers: 1}, "mail m1 tells of event 7"},
		{"told sent, not delivered", func(s scribe) {
			s.sent("1", "now", 0, 1)
			s.queues("2", "m2")
			s.end("2", "now", api.DigestSent, 1, 0)
		}, digested{once: 2, runs: 2, mailed: 1, liedSent: 1}, "run 2 is sent, and no relay took its mail"},
		{"a run that never ended", func(s scribe) {
			s.sent("1", "now", 0, 1)
			s.unsaid("2", "now", api.DigestSubmitted, 0)
		}, digested{once: 2, runs: 2, mailed: 1, open: 1}, "run 2 is submitted"},
		{"a run that ended, and no event says so", func(s scribe) {
			s.sent("1", "now", 0, 1)
			s.unsaid("2", "now", api.DigestFailed, 0)
		}, digested{once: 2, runs: 2, mailed: 1, untold: 1}, "run 2 is failed, and no event says so"},
		{"taken back, and mailed", func(s scribe) {
			s.digests.all[1].takenBack = true
			s.sent("1", "now", 0, 1)
		}, digested{takenBack: 1, once: 1, runs: 1, mailed: 1, unwanted: 1}, "event 1 was dropped or taken back"},
		{"perhaps taken back", func(s scribe) {
			s.digests.all[1].perhapsBack = true
			s.sent("1", "now", 0)
		}, digested{once: 1, runs: 1, mailed: 1}, ""},
		{"answered as dropped", func(s scribe) {
			s.digests.all[1].dropped = true
			s.sent("1", "now", 0)
		}, digested{dropped: 1, once: 1, runs: 1, mailed: 1}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLedger(0, 0, 0)
			l.digests = newDigests(1, 2)
			s := scribe{l}
			s.takes()
			row.write(s)
			got := judge(l, nil).digested
			why := ""
			if len(got.faults) > 0 {
				why = strings.TrimPrefix(got.faults[0], "reader 0: ")
			}
			if !strings.HasPrefix(why, row.why) || why != "" && row.why == "" {
				t.Errorf("blamed for %q, want %q", why, row.why)
			}
			var out bytes.Buffer
			table := &table{w: &out, ok: true}
			table.digests(got)
			if table.ok != (row.why == "") {
				t.Errorf("ok=%t, and the table says\n%s", table.ok, out.String())
			}
			got.faults, got.readers, got.suspects, row.want.events = nil, nil, nil, 2
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(digested{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLedgerOfDigests: a relay's mail is read as it arrives, with lines that quoted-printable broke.
func TestLedgerOfDigests(t *testing.T) {
	l := newLedger(0, 0, 0)
	l.digests = newDigests(1, 13)
	for n := range 13 {
		l.handsIn(n, planNotice(1, n, 1))
	}
	l.digestMailed(0, []byte("Message-ID: <a@b>\r\nContent-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"+
		"- n1=\r\n2n \r\n- n3n\r\n--x\r\nContent-Type: text/html\r\n\r\n<p>n4n</p>\r\n--x--\r\n"), "relay")
	l.digestMailed(0, []byte("Message-ID: <c@d>\r\nContent-Type: text/plain\r\n\r\nn5n\r\n"), "relay")
	for id, want := range map[string][]int{"<a@b>": {12, 3}, "<c@d>": {5}} {
		if one := l.digests.digestMails[id]; one == nil || one.copies != 1 {
			t.Errorf("no mail %s", id)
		} else if diff := cmp.Diff(want, one.notices); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if len(l.oddities) > 0 {
		t.Error(l.oddities)
	}
	if readerOf(readerAddress(7)) != 7 || readerOf(person(7)) != -1 || personOf(readerAddress(7)) != -1 ||
		numberOf(readerAddress(7)) != -1 {
		t.Error("readers, people and recipients of messages are mistaken for each other")
	}
}
