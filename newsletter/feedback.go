package newsletter

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/newsletter/segment"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// Facts records what becomes known about mail after a relay took it: of campaigns in the send log, of all
// other mail in the outbox. It is the Outbox of package feedback.
type Facts struct {
	*outbox.Facts
	campaigns *Campaigns
}

// Facts returns the recorder of facts.
func (c *Campaigns) Facts() *Facts { return &Facts{Facts: c.Outbox.Facts, campaigns: c} }

// about returns the recipient of a campaign's message, or nil for other messages.
func (c *Campaigns) about(ctx context.Context, messageID string) (*recipient, error) {
	id, ok := outbox.ReadCampaignID(messageID)
	if !ok || id.Campaign == 0 || id.Run == 0 {
		return nil, nil
	}
	one, err := c.numbered(ctx, id.Campaign)
	if err != nil || one == nil || id.Run > len(one.Runs) {
		return nil, err
	}
	run := one.Runs[id.Run-1]
	if run.Began.UnixMilli() != id.At.UnixMilli() || id.Ordinal >= run.End {
		return nil, nil
	}
	at := &recipient{c: one, run: sendlog.Run{Campaign: id.Campaign, Number: id.Run}, ordinal: id.Ordinal}
	at.chunk, at.offset = sendlog.ChunkOf(id.Ordinal)
	return at, nil
}

// MayReplay returns Conflict if the dead letter of a recipient must not be sent again: its campaign was
// cancelled, or sent to the recipient again.
func (c *Campaigns) MayReplay(ctx context.Context, messageID string) error {
	at, err := c.about(ctx, messageID)
	if err != nil || at == nil {
		return err
	}
	one, err := c.find(ctx, "", at.c.id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case one.State == api.CampaignCancelled || one.Runs[at.run.Number-1].cancelled():
		return fault.New(fault.Conflict, "CampaignState", "Run %d of campaign %q was cancelled, so you "+
			"can't replay its messages", at.run.Number, one.id)
	}
	_, err = c.resent(ctx, one, at)
	return err
}

// unmailed are the states of people who get no mail of a run.
var unmailed = []sendlog.State{sendlog.Waiting, sendlog.Suppressed, sendlog.Unsubscribed, sendlog.Cancelled}

// resent returns Conflict, code CampaignResent, if a recipient has a run's mail, or if a later run has the
// recipient, or may have. taken means that a worker of that run will email the recipient, or give them back.
func (c *Campaigns) resent(ctx context.Context, one *campaign, at *recipient) (taken bool, err error) {
	var runs []sendlog.Run
	for n := at.run.Number; n <= len(one.Runs); n++ {
		runs = append(runs, sendlog.Run{Campaign: one.Number, Number: n})
	}
	states, err := c.Log.StatesOf(ctx, at.ordinal, runs...)
	for i, s := range states {
		if s == sendlog.Sent || i > 0 && !slices.Contains(unmailed, s) {
			return s == sendlog.Taken || s == sendlog.AtDot, fault.New(fault.Conflict, "CampaignResent",
				"Run %d of campaign %q emails this subscriber, so a replay would send a second "+
					"email", runs[i].Number,
				one.id)
		}
	}
	return false, err
}

// RecordFacts records facts about messages. See [outbox.Facts].
func (f *Facts) RecordFacts(ctx context.Context, facts []outbox.Fact) ([]outbox.FactResult, error) {
	results := make([]outbox.FactResult, len(facts))
	var others []outbox.Fact
	var at []int
	var ours []*recipient
	for i, fact := range facts {
		p, err := f.campaigns.about(ctx, fact.MessageID)
		if err != nil {
			return nil, err
		}
		ours = append(ours, p)
		if p == nil || f.goesOut(p, &fact) {
			others, at = append(others, fact), append(at, i)
		}
	}
	if len(others) > 0 {
		found, err := f.Facts.RecordFacts(ctx, others)
		if err != nil {
			return nil, err
		}
		for n, r := range found {
			results[at[n]] = r
		}
	}
	for i, p := range ours {
		if p == nil {
			continue
		}
		if err := f.campaigns.learn(ctx, p, facts[i]); err != nil {
			return nil, err
		}
		results[i] = outbox.FactRecorded
	}
	return results, nil
}

// goesOut reports whether a fact becomes an event, and completes it. A wish to leave or to come back always
// does: package audience follows it. So does every fact if there is an archive.
func (f *Facts) goesOut(p *recipient, fact *outbox.Fact) bool {
	m := p.c.mailTo(p.run.Number, p.ordinal)
	fact.Account, fact.Campaign = p.c.Account, m
	return f.campaigns.opts.Archived || !m.Quiet(fact.Type) || fact.Type == event.ListUnsubscribe ||
		fact.Type == event.ListSubscribe
}

// learn records a fact about an email of a campaign. Repeated, it changes nothing but the totals of hits.
func (c *Campaigns) learn(ctx context.Context, p *recipient, fact outbox.Fact) error {
	counters, err := c.countersOf(ctx, p, fact)
	if err != nil {
		return err
	}
	if fact.Type == event.TrackClick {
		snapshot := p.c.Runs[p.run.Number-1].Snapshots[max(0, p.c.variantOf(p.run.Number, p.ordinal))]
		fact.Details.URL = snapshot.LinkOf(fact.Details.URL)
	}
	notes, proves := notesOf(p.offset, fact, counters)
	if _, err := c.Log.Note(ctx, p.run, p.chunk, notes...); err != nil {
		return err
	}
	if fact.Type == event.MessageBounce && fact.Details.BounceType == bounceHard {
		_, err := c.Log.Settle(ctx, p.run, p.chunk, sendlog.Move{Offset: p.offset, To: sendlog.Bounced,
			Why: cut(fact.Details.Diagnostic)})
		return err
	}
	if proves { // a person who has the mail received it
		_, err := c.Log.Prove(ctx, p.run, p.chunk, p.offset)
		return err
	}
	return nil
}

// domainCounters returns the counters of people by the domain of their address.
func domainCounters(address string) map[sendlog.Bit]string {
	domain := domainOf(address)
	return map[sendlog.Bit]string{sendlog.Opened: "d:opened:" + domain, sendlog.Clicked: "d:clicked:" + domain}
}

// countersOf returns the counters by domain that a fact may change, or none for a deleted subscriber. Only
// people's opens and clicks are counted so, and need to read the subscriber.
func (c *Campaigns) countersOf(ctx context.Context, p *recipient, fact outbox.Fact) (map[sendlog.Bit]string,
	error) {
	if fact.Type != event.TrackOpen && fact.Type != event.TrackClick || fact.Details.Bot {
		return nil, nil
	}
	person, err := c.Audience.PersonAt(ctx, p.c.Account, p.ordinal, nil)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return domainCounters(person.Email), err
}

// notesOf returns what a fact says of a person, and whether it proves that the person received the mail. once
// has the counters of people that the bits don't have.
func notesOf(offset int, fact outbox.Fact, once map[sendlog.Bit]string) (notes []sendlog.Note, proves bool) {
	note := func(bit sendlog.Bit, total string) {
		notes = append(notes, sendlog.Note{Offset: offset, Bit: bit, Total: total, Once: once[bit]})
	}
	switch fact.Type {
	case event.MessageDelivered:
		note(sendlog.Delivered, "")
	case event.TrackOpen:
		if fact.Details.Bot {
			note(sendlog.OpenedBots, "")
			return notes, true
		}
		note(sendlog.Opened, "openedTotal")
		note(sendlog.Opened, "h:opens:"+fact.At.UTC().Format(hourForm))
	case event.TrackClick:
		if fact.Details.Bot {
			note(sendlog.ClickedBots, "")
			return notes, true
		}
		note(sendlog.Clicked, "clickedTotal")
		note(sendlog.Clicked, "h:clicks:"+fact.At.UTC().Format(hourForm))
		note(sendlog.Clicked, "l:"+message.Clip(fact.Details.URL, mostLink))
	case event.MessageComplaint:
		note(sendlog.Complained, "")
	case event.ListUnsubscribe:
		note(sendlog.Left, "")
	default:
		return nil, false
	}
	return notes, true
}

// bounceHard is the type of a bounce of an address that is dead.
const bounceHard = "hard"

// hourForm is an hour in the names of counters.
const hourForm = "2006-01-02T15"

// mostLink bounds the bytes of a link in the name of its counter.
const mostLink = 2048

// Recipients returns the recipients of messages. See [outbox.Facts].
func (f *Facts) Recipients(ctx context.Context, ids []string) ([]outbox.Addressed, error) {
	all, err := f.Facts.Recipients(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if all[i].Known {
			continue
		}
		p, err := f.campaigns.about(ctx, id)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		person, err := f.campaigns.Audience.PersonAt(ctx, p.c.Account, p.ordinal, p.c.Lists)
		if fault.Is(err, fault.NotFound) {
			all[i] = outbox.Addressed{Account: p.c.Account}
			continue
		}
		if err != nil {
			return nil, err
		}
		all[i] = outbox.Addressed{Known: true, Account: p.c.Account, ListID: person.ListID,
			To: []string{person.Email}}
	}
	return all, nil
}

// Runs returns how often a campaign of an account was sent. Unknown, or of another account: NotFound.
func (c *Campaigns) Runs(ctx context.Context, account, id string) (int, error) {
	one, err := c.find(ctx, account, id)
	if err != nil {
		return 0, err
	}
	return len(one.Runs), nil
}

// Engaged returns what a chunk's subscribers did with the mail of all of a campaign's runs together, even a
// run that is under way. It returns the same errors as Runs.
func (c *Campaigns) Engaged(ctx context.Context, account, id string, chunk int) (segment.Engaged, error) {
	one, err := c.find(ctx, account, id)
	if err != nil {
		return segment.Engaged{}, err
	}
	var runs []sendlog.Run
	for n, run := range one.Runs {
		if chunk < sendlog.Chunks(run.End) {
			runs = append(runs, sendlog.Run{Campaign: one.Number, Number: n + 1})
		}
	}
	e, err := c.Log.Engaged(ctx, runs, chunk)
	return segment.Engaged{Got: e.Got.Has, Opened: e.Opened.Has, Clicked: e.Clicked.Has}, err
}
