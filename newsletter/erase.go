package newsletter

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// Erase clears what the send log has of a subscriber, and the facts about mail that is not in the email log.
// It returns how many runs the subscriber was in. It needs the record of the subscriber: call it before that
// goes.
func (c *Campaigns) Erase(ctx context.Context, w outbox.Whom) (runs int, err error) {
	counters := domainCounters(w.Address())
	err = c.eachRunOf(ctx, w, func(one *campaign, run sendlog.Run, ordinal uint32) error {
		was, err := c.Log.ForgetPerson(ctx, run, ordinal, counters)
		if err != nil || !was {
			return err
		}
		runs++
		began := one.Runs[run.Number-1].Began
		return c.Outbox.Operations.EraseFacts(ctx, w, c.messageID(run.Campaign, run.Number, ordinal, began))
	})
	return runs, err
}

// Personal calls do with the result of each run's mail to a subscriber.
func (c *Campaigns) Personal(ctx context.Context, w outbox.Whom, do func(api.PersonalCampaign) error) error {
	return c.eachRunOf(ctx, w, func(one *campaign, run sendlog.Run, ordinal uint32) error {
		chunk, offset := sendlog.ChunkOf(ordinal)
		states, err := c.Log.States(ctx, run, chunk)
		if err != nil || offset >= len(states) || states[offset] == sendlog.Waiting {
			return err
		}
		var failed error
		_, err = c.someRecipients(ctx, one, run, api.CampaignRecipientQuery{}, chunk, []int{offset},
			func(r api.CampaignRecipient) bool {
				failed = do(api.PersonalCampaign{Campaign: one.id, Name: one.Name, CampaignRecipient: r})
				return true
			})
		if err == nil {
			err = failed
		}
		return err
	})
}

// eachRunOf calls do with every run of the account in which the subscriber may be.
func (c *Campaigns) eachRunOf(ctx context.Context, w outbox.Whom,
	do func(one *campaign, run sendlog.Run, ordinal uint32) error) error {
	person, err := c.Audience.Person(ctx, w.Account, w.Address(), nil)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var mine []*campaign
	if err := c.store.Each(ctx, func(r *records.Record[stored]) error {
		if r.Value.Account == w.Account {
			mine = append(mine, used(r))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, one := range mine {
		for i, run := range one.Runs {
			if person.Ordinal >= run.End {
				continue
			}
			if err := do(one, sendlog.Run{Campaign: one.Number, Number: i + 1}, person.Ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}
