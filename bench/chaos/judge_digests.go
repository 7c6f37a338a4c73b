package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// digested is what the digests of the ledger come to.
type digested struct {
	events, dropped, takenBack int // accepted; answered as dropped; withdrawn, as a client was answered
	once, doubted              int // in one email; in several, all but one in doubt
	toldDropped                int // told in no mail, and events of the stream count them as dropped
	runs, mailed               int // that ended; with mail
	resumed                    int // runs that another worker continued, or that were tried again

	unanswered, refused int
	lost                int // in no email, and not reported
	twice               int // in two emails, neither in doubt
	unwanted            int // dropped or withdrawn, and sent
	overtold            int // told as dropped, and mailed
	twoMails            int // runs with two emails
	twoCopies           int // mails that relays took twice, and nothing says doubt
	runless             int // emails without a run
	periods             int // periods of a category with two runs that were mailed
	miscount            int // emails with more or fewer events than their run has
	strangers           int // emails with events of another reader, or of none
	liedSent            int // runs that were sent, and no relay took their mail
	open                int // runs that never ended
	untold              int // runs that ended, and no event says so

	faults   []string
	readers  []int // with an error
	suspects []int // events of them
}

func (v *digested) blame(reader int, suspects []int, counter *int, format string, args ...any) {
	*counter++
	v.faults = append(v.faults, fmt.Sprintf("reader %d: ", reader)+fmt.Sprintf(format, args...))
	if reader >= 0 && !slices.Contains(v.readers, reader) {
		v.readers = append(v.readers, reader)
	}
	v.suspects = append(v.suspects, suspects...)
}

// digestFacts is what the stream and the relays say of digests.
type digestFacts struct {
	all     *digests
	doubted map[string]bool
	queued  map[string]*fact   // messageQueued of emails, by Message-ID
	mails   map[string][]*fact // by run
	words   map[string]map[event.Type]bool
	told    map[string]int // events that a run dropped, as the stream says
}

// digests holds digests to their promises. doubted says which messages an event calls in doubt.
func (v *digested) digests(all *digests, order []*fact, doubted map[string]bool) {
	f := digestFacts{all: all, doubted: doubted, queued: map[string]*fact{}, mails: map[string][]*fact{},
		words: map[string]map[event.Type]bool{}, told: map[string]int{}}
	for _, one := range order {
		f.add(one)
	}
	digestMails := f.digestMails()
	for _, one := range digestMails {
		v.digestMail(one, f)
	}
	for _, run := range all.runs {
		v.run(run, f)
	}
	v.eachPeriod(digestMails, f)
	v.notices(digestMails, f)
}

func (f *digestFacts) add(one *fact) {
	switch {
	case one.run == "":
	case one.kind == event.MessageQueued:
		f.queued[one.messageID] = one
		f.mails[one.run] = append(f.mails[one.run], one)
	case one.kind == event.DigestSent, one.kind == event.DigestSkipped, one.kind == event.DigestFailed:
		if f.words[one.run] == nil {
			f.words[one.run] = map[event.Type]bool{}
		}
		f.words[one.run][one.kind] = true
		if one.kind != event.DigestSent {
			f.told[one.run] = one.events - one.returned
		}
	}
}

// digestMails returns the emails that relays took, in an order that is always the same.
func (f *digestFacts) digestMails() (out []*digestMail) {
	for _, id := range slices.Sorted(maps.Keys(f.all.digestMails)) {
		out = append(out, f.all.digestMails[id])
	}
	return out
}

// doubt reports whether Postroom says that the delivery of an email is in doubt, or no longer knows.
func (f *digestFacts) doubt(l *digestMail) bool {
	q := f.queued[l.messageID]
	return l.doubts != 0 || q != nil && f.doubted[q.queueID]
}

// digestMail judges one email.
func (v *digested) digestMail(l *digestMail, f digestFacts) {
	if l.copies > 1 && !f.doubt(l) {
		v.blame(l.reader, l.notices, &v.twoCopies, "mail %s was taken %d times, and nothing says doubt", l.messageID,
			l.copies)
	}
	if f.queued[l.messageID] == nil {
		v.blame(l.reader, l.notices, &v.runless, "mail %s is of no run", l.messageID)
	}
	for _, n := range l.notices {
		if n >= len(f.all.all) || f.all.all[n] == nil || f.all.all[n].reader != l.reader {
			v.blame(l.reader, l.notices, &v.strangers, "mail %s tells of event %d, which is not for the reader",
				l.messageID, n)
		}
	}
}

// run judges one run.
func (v *digested) run(run api.DigestRun, f digestFacts) {
	v.runs++
	if run.Attempts > 1 {
		v.resumed++
	}
	who, mails := readerOf(run.Recipient+"@"+domain), f.mails[run.Run]
	if len(mails) > 1 {
		v.blame(who, nil, &v.twoMails, "run %s has %d mails", run.Run, len(mails))
	}
	said := wordOf(run)
	if said == "" {
		v.blame(who, nil, &v.open, "run %s is %s, and ends no more", run.Run, run.State)
		return
	}
	if !f.words[run.Run][said] {
		v.blame(who, nil, &v.untold, "run %s is %s, and no event says so", run.Run, run.State)
	}
	copies := 0
	for _, mail := range mails {
		l := f.all.digestMails[mail.messageID]
		if l == nil {
			continue
		}
		copies++
		if len(l.notices) != run.Events {
			v.blame(who, l.notices, &v.miscount, "the mail of run %s tells of %d events, and it has %d", run.Run,
				len(l.notices), run.Events)
		}
	}
	switch {
	case run.State == api.DigestSent && copies == 0:
		v.blame(who, nil, &v.liedSent, "run %s is sent, and no relay took its mail", run.Run)
	case copies > 0:
		v.mailed++
	}
}

// eachPeriod looks for two emails of a category in one period.
func (v *digested) eachPeriod(digestMails []*digestMail, f digestFacts) {
	runs, had := map[string]api.DigestRun{}, map[string]string{}
	for _, run := range f.all.runs {
		runs[run.Run] = run
	}
	for _, l := range digestMails {
		q := f.queued[l.messageID]
		if q == nil {
			continue
		}
		run := runs[q.run]
		if mode := modeOf(run.Schedule); mode != "" && run.State == api.DigestSent {
			for _, category := range f.categories(l) {
				slot := fmt.Sprint(l.reader, mode, category, run.Period)
				if other := had[slot]; other != "" && other != run.Run {
					v.blame(l.reader, l.notices, &v.periods, "runs %s and %s both mailed %s of %s", other, run.Run,
						category, run.Period)
				}
				had[slot] = run.Run
			}
		}
	}
}

// categories returns the categories of an email's events.
func (f *digestFacts) categories(l *digestMail) (out []string) {
	for _, n := range l.notices {
		if n < len(f.all.all) && f.all.all[n] != nil && !slices.Contains(out, f.all.all[n].category) {
			out = append(out, f.all.all[n].category)
		}
	}
	return out
}

// account is what a reader received, and not.
type account struct {
	unmailed []int // events that are in no mail
	perhaps  int   // events that may have been withdrawn
	doubtful int   // events in emails in doubt, which may be reported as dropped too
	told     int   // as dropped
}

// notices judges the events.
func (v *digested) notices(digestMails []*digestMail, f digestFacts) {
	in := map[int][]*digestMail{}
	accounts := make([]account, f.all.readers)
	for _, l := range digestMails {
		for _, n := range l.notices {
			in[n] = append(in[n], l)
		}
		if f.doubt(l) && l.reader < len(accounts) {
			accounts[l.reader].doubtful += len(l.notices)
		}
	}
	for _, n := range f.all.all {
		if n != nil {
			v.notice(n, in[n.number], &accounts[n.reader], f)
		}
	}
	for _, run := range f.all.runs {
		if who := readerOf(run.Recipient + "@" + domain); who >= 0 && who < len(accounts) {
			accounts[who].told += f.told[run.Run]
		}
	}
	for who, a := range accounts {
		v.account(who, a)
	}
}

// notice judges one event.
func (v *digested) notice(n *notice, in []*digestMail, a *account, f digestFacts) {
	sure := 0
	for _, l := range in {
		if !f.doubt(l) {
			sure++
		}
	}
	switch {
	case n.refused != "":
		v.blame(n.reader, []int{n.number}, &v.refused, "event %d was refused: %s", n.number, n.refused)
		return
	case !n.answered:
		v.blame(n.reader, []int{n.number}, &v.unanswered, "event %d was never answered", n.number)
		return
	}
	v.events++
	if n.dropped || n.takenBack {
		if n.takenBack {
			v.takenBack++
		} else {
			v.dropped++
		}
		if sure > 0 {
			v.blame(n.reader, []int{n.number}, &v.unwanted, "event %d was dropped or taken back, and mailed", n.number)
		}
		return
	}
	switch {
	case len(in) == 0:
		a.unmailed = append(a.unmailed, n.number)
		if n.perhapsBack {
			a.perhaps++
		}
	case sure > 1:
		v.blame(n.reader, []int{n.number}, &v.twice, "event %d is in %d mails, and nothing says doubt", n.number,
			len(in))
	case len(in) > 1:
		v.doubted++
	default:
		v.once++
	}
}

// account compares the events of a reader that are in no mail with what the stream says of them.
func (v *digested) account(who int, a account) {
	switch n := len(a.unmailed); {
	case n-a.perhaps > a.told:
		v.blame(who, a.unmailed, &v.lost, "%d events are in no mail (%v), and %d are told as dropped", n, a.unmailed,
			a.told)
		v.lost += n - a.perhaps - a.told - 1
	case a.told > n+a.doubtful:
		v.blame(who, a.unmailed, &v.overtold, "%d events are told as dropped, and %d are in no mail", a.told, n)
		v.overtold += a.told - n - 1
	default:
		v.toldDropped += a.told
	}
}

// digests writes the part of the table about digests.
func (t *table) digests(v digested) {
	if v.events+v.unanswered+v.refused == 0 {
		return
	}
	t.title("Digests")
	t.tell("events taken in", v.events)
	t.tell("  answered as dropped", v.dropped)
	t.tell("  taken back", v.takenBack)
	t.tell("told in one mail", v.once)
	t.tell("told in more mails, all but one in doubt", v.doubted)
	t.tell("told as dropped", v.toldDropped)
	t.tell("runs", v.runs)
	t.tell("  with mail that a relay took", v.mailed)
	t.tell("  that somebody else went on with, or that were tried again", v.resumed)
	t.want("LOST: events in no mail, and not told as dropped", v.lost, 0)
	t.want("events in two mails WITHOUT doubt", v.twice, 0)
	t.want("events dropped or taken back, and mailed", v.unwanted, 0)
	t.want("events told as dropped, and mailed", v.overtold, 0)
	t.want("events never answered", v.unanswered, 0)
	t.want("events refused for good", v.refused, 0)
	t.want("runs with two mails", v.twoMails, 0)
	t.want("mails taken twice WITHOUT doubt", v.twoCopies, 0)
	t.want("mails of no run", v.runless, 0)
	t.want("periods of a category with two mails", v.periods, 0)
	t.want("mails with more or fewer events than their run", v.miscount, 0)
	t.want("mails with events of others", v.strangers, 0)
	t.want("runs told sent, not delivered", v.liedSent, 0)
	t.want("runs that never ended", v.open, 0)
	t.want("runs that ended, and no event says so", v.untold, 0)
}
