package audience

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/segment"
)

// Campaigns returns the results of campaigns' mail. newsletter.Campaigns implements it; package app joins
// both.
type Campaigns interface {
	// Runs returns how often a campaign of an account was sent. Unknown, or of another account: NotFound.
	Runs(ctx context.Context, account, campaign string) (int, error)
	// Engaged returns what a chunk's subscribers did with the mail of all of a campaign's runs together. It
	// returns the same errors as Runs.
	Engaged(ctx context.Context, account, campaign string, chunk int) (segment.Engaged, error)
}

// noCampaigns are the campaigns where there are none.
type noCampaigns struct{}

func (noCampaigns) Runs(_ context.Context, account, campaign string) (int, error) {
	return 0, fault.New(fault.NotFound, "CampaignNotFound", "There is no campaign %q in account %s", campaign,
		account)
}

func (n noCampaigns) Engaged(ctx context.Context, account, campaign string, _ int) (segment.Engaged, error) {
	_, err := n.Runs(ctx, account, campaign)
	return segment.Engaged{}, err
}

// judge applies rules to subscribers of an account. It reads what these did with campaigns once for each
// chunk of 64,000, so subscribers should come in order. It is not safe for concurrent use.
type judge struct {
	s         *Subscribers
	account   string
	lists     bool     // the rules name lists
	campaigns []string // that they name
	strict    bool     // a campaign that does not exist is an error; otherwise no one received it

	chunk   int // engaged's; -1 if none was read
	engaged map[string]segment.Engaged
}

// judge returns a judge for rules.
func (s *Subscribers) judge(account string, rules ...segment.Rule) *judge {
	j := &judge{s: s, account: account, chunk: -1}
	for _, rule := range rules {
		j.lists = j.lists || len(rule.Lists()) > 0
		for _, one := range rule.Campaigns() {
			j.campaigns = append(j.campaigns, one.Campaign)
		}
	}
	return j
}

// subscriber returns a subscriber as the rules judge it.
func (j *judge) subscriber(ctx context.Context, ordinal uint32, r *record) (*segment.Subscriber, error) {
	judged := &segment.Subscriber{Email: r.email, Locale: r.locale, Created: timeOf(r.created),
		Attributes: r.attributes, Tags: r.tags}
	if len(j.campaigns) > 0 {
		if err := j.read(ctx, slotOf(ordinal).chunk); err != nil {
			return nil, err
		}
		judged.Campaigns, judged.Place = j.engaged, int(ordinal%chunkSize)
	}
	if !j.lists {
		return judged, nil
	}
	judged.Lists = make(map[string]segment.Subscription, len(r.lists))
	for _, sub := range r.lists {
		list, err := j.s.Lists.numbered(ctx, sub.list)
		if err != nil {
			return nil, err
		}
		if list != nil {
			judged.Lists[list.ListID] = segment.Subscription{State: sub.state.String(),
				Given: timeOf(cmp.Or(sub.given, sub.since))}
		}
	}
	return judged, nil
}

// read reads what the subscribers of a chunk did with the campaigns, unless it has that.
func (j *judge) read(ctx context.Context, chunk int) error {
	if j.chunk == chunk {
		return nil
	}
	engaged := make(map[string]segment.Engaged, len(j.campaigns))
	for _, id := range j.campaigns {
		if _, ok := engaged[id]; ok {
			continue
		}
		e, err := j.s.Campaigns().Engaged(ctx, j.account, id, chunk)
		if err != nil && (j.strict || !fault.Is(err, fault.NotFound)) {
			return err
		}
		engaged[id] = e
	}
	j.chunk, j.engaged = chunk, engaged
	return nil
}

// forget makes the judge read again what subscribers did since.
func (j *judge) forget() { j.chunk = -1 }
