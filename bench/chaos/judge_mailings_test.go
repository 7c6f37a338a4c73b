package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// quill writes the ledger of one campaign to two people.
type quill struct {
	*ledger
	m *mailing
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// mail has a relay take an email to a person whose attempt began so many seconds after the start.
func (q quill) mail(n int, seconds float64) {
	q.m.mails[n] = append(q.m.mails[n], copied{began: at(seconds)})
}

// ends ends the campaign with a state of each person, and stats that fit.
func (q quill) ends(state string, of ...string) {
	s := api.CampaignStates{}
	q.m.end = &outcome{listed: map[int][]listing{}}
	for n, one := range of {
		if one == "" {
			continue
		}
		*map[string]*int{stateSent: &s.Sent, stateInDoubt: &s.InDoubt, stateSuppressed: &s.Suppressed,
			"failed": &s.Failed, stateDeferred: &s.Deferred, "cancelled": &s.Cancelled}[one]++
		q.m.end.listed[n] = []listing{{state: one, queueID: fmt.Sprint("Q", n)}}
	}
	began := at(0)
	q.m.end.stats = api.CampaignStats{State: state, CampaignNumbers: api.CampaignNumbers{
		Audience: s.Total(), States: s, Started: &began}}
}

func (q quill) sent(of ...string) { q.ends(api.CampaignSent, of...) }

func (q quill) wish(n int, asked, answered float64) {
	q.mailings.wishes[n] = &wish{at(asked), at(answered)}
}

// both is a campaign that both got.
func (q quill) both() { q.mail(0, 1); q.mail(1, 2); q.sent(stateSent, stateSent) }

func TestJudgeOfCampaigns(t *testing.T) {
	for _, row := range []struct {
		name  string
		write func(quill)
		want  mailed // but for what every row has
		why   string // the first error's
	}{
		{"as it should be", quill.both, mailed{people: 2, once: 2}, ""},
		{"twice", func(q quill) { q.both(); q.mail(1, 3) }, mailed{people: 2, once: 1, twice: 1},
			"p1@example.net got it 2"},
		{"twice, and only the state says doubt", func(q quill) {
			q.mail(0, 1)
			q.mail(0, 2)
			q.mail(1, 1)
			q.sent(stateInDoubt, stateSent)
		}, mailed{people: 2, once: 1, twice: 1}, "p0@example.net got it 2"},
		{"twice, and an event says doubt", func(q quill) {
			q.both()
			q.mail(1, 3)
			q.happened(&fact{id: "a", kind: event.MessageSent, queueID: "Q1", doubt: true})
		}, mailed{people: 2, once: 1, twiceDoubted: 1}, ""},
		{"twice, and the log of attempts says doubt", func(q quill) {
			q.both()
			q.mail(1, 3)
			q.m.end.listed[1][0].doubts = 1
		}, mailed{people: 2, once: 1, twiceDoubted: 1}, ""},
		{"in doubt, one of them delivered", func(q quill) { q.mail(0, 1); q.sent(stateInDoubt, stateInDoubt) },
			mailed{people: 2, doubted: 1, without: map[string]int{stateInDoubt: 1}}, ""},
		{"forgotten", func(q quill) { q.mail(0, 1); q.sent(stateSent, "") },
			mailed{people: 1, once: 1, forgotten: 1}, "p1@example.net has 0 mails"},
		{"mailed and not listed", func(q quill) { q.mail(0, 1); q.mail(1, 1); q.sent(stateSent, "") },
			mailed{people: 1, once: 1, forgotten: 1}, "p1@example.net has 1 mails"},
		{"left before it began, and is not of it", func(q quill) {
			q.wish(1, -9, -8)
			q.mail(0, 1)
			q.sent(stateSent, "")
		}, mailed{people: 1, once: 1}, ""},
		{"left after it began, and is not listed", func(q quill) {
			q.wish(1, 5, 6)
			q.mail(0, 1)
			q.sent(stateSent, "")
		}, mailed{people: 1, once: 1, forgotten: 1}, "p1@example.net has 0 mails"},
		{"told sent, not delivered", func(q quill) { q.mail(0, 1); q.sent(stateSent, stateSent) },
			mailed{people: 2, once: 1, lied: 1}, "p1@example.net is sent"},
		{"told failed, delivered", func(q quill) { q.both(); q.sent(stateSent, "failed") },
			mailed{people: 2, once: 1, otherwise: 1}, "p1@example.net got it, is failed"},
		{"failed by name", func(q quill) { q.mail(0, 1); q.sent(stateSent, "failed") },
			mailed{people: 2, once: 1, without: map[string]int{"failed": 1}}, ""},
		{"suppressed as asked", func(q quill) {
			q.wish(1, 1, 2)
			q.mail(0, 1)
			q.sent(stateSent, stateSuppressed)
		}, mailed{people: 2, once: 1, without: map[string]int{stateSuppressed: 1}}, ""},
		{"suppressed without a wish", func(q quill) { q.mail(0, 1); q.sent(stateSent, stateSuppressed) },
			mailed{people: 2, once: 1, unwished: 1}, "p1@example.net is suppressed"},
		{"left, and was mailed before the answer", func(q quill) { q.wish(1, 1, 3); q.both() },
			mailed{people: 2, once: 2}, ""},
		{"left, and was mailed after the answer", func(q quill) { q.wish(1, 0, 1); q.both() },
			mailed{people: 2, once: 2, late: 1},
			"p1@example.net was mailed by an attempt that began 1s after the answer"},
		{"left, and an attempt of the outbox was long under way", func(q quill) {
			q.wish(1, 0, 1)
			q.both()
			q.m.mails[1][0].again = true
		}, mailed{people: 2, once: 2}, ""},
		{"left, and the outbox mailed much later", func(q quill) {
			q.wish(1, 0, 1)
			q.mail(0, 1)
			q.m.mails[1] = []copied{{began: at(40), again: true}}
			q.sent(stateSent, stateSent)
		}, mailed{people: 2, once: 2, late: 1}, "p1@example.net was mailed by an attempt that began 39s"},
		{"mailed while it was paused", func(q quill) {
			q.both()
			q.m.shut = []stretch{{at(1.5), at(2.5)}}
		}, mailed{people: 2, once: 2, shut: 1},
			"p1@example.net was mailed by an attempt that began 500ms after it was"},
		{"mailed before and after the pause", func(q quill) {
			q.both()
			q.m.shut = []stretch{{at(1.2), at(1.8)}}
		}, mailed{people: 2, once: 2}, ""},
		{"cancelled, and one had no turn", func(q quill) {
			q.m.cancelled = true
			q.m.shut = []stretch{{from: at(5)}}
			q.mail(0, 1)
			q.ends(api.CampaignCancelled, stateSent, "")
			q.m.end.stats.States.Cancelled, q.m.end.stats.Audience = 1, 2
		}, mailed{cancelled: 1, people: 1, once: 1}, ""},
		{"mailed after it was cancelled", func(q quill) {
			q.m.cancelled = true
			q.m.shut = []stretch{{from: at(1.5)}}
			q.mail(0, 1)
			q.mail(1, 2)
			q.ends(api.CampaignCancelled, stateSent, stateSent)
		}, mailed{cancelled: 1, people: 2, once: 2, shut: 1}, "p1@example.net was mailed"},
		{"never ended", func(q quill) { q.both(); q.m.end = nil }, mailed{unended: 1}, "it never came"},
		{"ended with people under way", func(q quill) { q.mail(0, 1); q.sent(stateSent, stateDeferred) },
			mailed{people: 2, once: 1, open: 1}, "p1@example.net is deferred"},
		{"stats that count one too many", func(q quill) { q.both(); q.m.end.stats.States.Failed = 1 },
			mailed{people: 2, once: 2, miscount: 2}, "the stats say 1 failed, and 0 are listed"},
		{"an audience of others", func(q quill) { q.both(); q.m.end.stats.Audience = 3 },
			mailed{people: 2, once: 2, miscount: 1}, "the stats say 3 people"},
		{"a recount that changed a counter", func(q quill) { q.both(); q.m.end.recounted = true },
			mailed{people: 2, once: 2, recounted: 1}, "a recount"},
		{"listed twice", func(q quill) {
			q.both()
			q.m.end.listed[1] = append(q.m.end.listed[1], listing{state: stateSent})
			q.m.end.stats.States.Sent, q.m.end.stats.Audience = 3, 3
		}, mailed{people: 2, once: 2, strangers: 1}, "p1@example.net is listed 2 times"},
		{"a mail that was cut off", func(q quill) { q.both(); q.m.mangled = 1 },
			mailed{people: 2, once: 2, mangled: 1}, "1 mails that are not whole"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLedger(0, 2, 1)
			l.mailing(0)
			row.write(quill{l, l.mailings.all[0]})
			got := judge(l, nil).mailed
			why := ""
			if len(got.faults) > 0 {
				why = strings.TrimPrefix(got.faults[0], "news-0: ")
			}
			if !strings.HasPrefix(why, row.why) || why != "" && row.why == "" {
				t.Errorf("blamed for %q, want %q", why, row.why)
			}
			var out bytes.Buffer
			table := &table{w: &out, ok: true}
			table.mailings(got)
			if table.ok != (row.why == "") {
				t.Errorf("ok=%t, and the table says\n%s", table.ok, out.String())
			}
			got.faults, row.want.campaigns = nil, 1
			if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(mailed{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLedgerOfCampaigns: the ledger distinguishes what relays see by person, campaign and attempt.
func TestLedgerOfCampaigns(t *testing.T) {
	l := newLedger(0, 2, 1)
	l.mailing(0)
	mail := func(text string) []byte { return []byte("To: x\r\nSubject: news-0\r\n\r\n" + text + "\r\n") }
	l.mailBegan("relay 1")
	l.mailed(0, mail(lastLine(0, person(0))), "relay 1")
	l.puts(1)
	l.mailBegan("relay 1")
	l.mailed(1, mail("cut off"), "relay 1")
	m := l.mailings.all[0]
	if m.mangled != 1 || len(m.mails[0]) != 1 || m.mails[0][0].again || !m.mails[1][0].again {
		t.Errorf("%+v", m)
	}
	l.mailed(1, []byte("To: x\r\nSubject: other\r\n\r\n"), "relay 1")
	if len(l.oddities) != 1 {
		t.Error("a mail of no campaign is no oddity")
	}
	if personOf("m1r2@example.net") != -1 || personOf(person(17)) != 17 || numberOf(person(17)) != -1 {
		t.Error("people and recipients of messages are mistaken for each other")
	}
}
