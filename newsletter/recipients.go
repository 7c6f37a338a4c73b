package newsletter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// Recipients returns a page of a run's recipients with their results, in the order of their ordinals.
func (c *Campaigns) Recipients(ctx context.Context, bound, id string, q api.CampaignRecipientQuery) (
	api.CampaignRecipientPage, error) {
	page := api.CampaignRecipientPage{Recipients: []api.CampaignRecipient{}}
	one, run, err := c.runOf(ctx, bound, id, q)
	if err != nil || run.Number == 0 {
		return page, err
	}
	from := uint64(0)
	if q.Cursor != "" {
		if from, err = strconv.ParseUint(q.Cursor, 36, 32); err != nil {
			return page, fault.InvalidField("cursor", "isn't a cursor from a response")
		}
	}
	size := min(cmp.Or(max(0, q.PageSize), 20), 1000)
	next, err := c.eachRecipient(ctx, one, run, q, uint32(from), func(r api.CampaignRecipient) bool {
		page.Recipients = append(page.Recipients, r)
		return len(page.Recipients) < size
	})
	if err == nil && next > 0 {
		page.Cursor = strconv.FormatUint(uint64(next), 36)
	}
	return page, err
}

// runOf returns a campaign, and the run that a query is about. The number is 0 if there is none.
func (c *Campaigns) runOf(ctx context.Context, bound, id string, q api.CampaignRecipientQuery) (*campaign,
	sendlog.Run, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return nil, sendlog.Run{}, err
	}
	if q.State != "" && !slices.Contains(recipientStates, q.State) {
		return nil, sendlog.Run{}, fault.InvalidField("state", "must be %s", strings.Join(recipientStates, ", "))
	}
	if _, err := chosen(one.Campaign, q.Variant); err != nil {
		return nil, sendlog.Run{}, err
	}
	if err := one.checkRun(q.Run); err != nil {
		return nil, sendlog.Run{}, err
	}
	return one, sendlog.Run{Campaign: one.Number, Number: cmp.Or(q.Run, len(one.Runs))}, nil
}

// recipientStates are the states that a query may name.
var recipientStates = []string{"sending", "sent", "deferred", "suppressed", "unsubscribed", "bounced",
	"failed", "inDoubt", "cancelled"}

// readPeople is how many people are read together.
const readPeople = 500

// eachRecipient calls fn for a run's recipients from an ordinal on, until it returns false. It returns the
// ordinal to continue from, or 0 if there are no more.
func (c *Campaigns) eachRecipient(ctx context.Context, one *campaign, run sendlog.Run,
	q api.CampaignRecipientQuery, from uint32, fn func(api.CampaignRecipient) bool) (uint32, error) {
	end := one.Runs[run.Number-1].End
	first, offset := sendlog.ChunkOf(from)
	for chunk := first; chunk < sendlog.Chunks(end); chunk++ {
		all, err := c.Log.States(ctx, run, chunk)
		if err != nil {
			return 0, err
		}
		var some []int
		for ; offset < len(all); offset++ {
			if s := all[offset]; s != sendlog.Waiting && (q.State == "" || stateNames[s] == q.State) &&
				(q.Variant == "" || one.nameOf(run.Number, uint32(chunk*sendlog.ChunkSize+offset)) == q.Variant) {
				some = append(some, offset)
			}
			if len(some) == readPeople || offset == len(all)-1 {
				next, err := c.someRecipients(ctx, one, run, q, chunk, some, fn)
				if err != nil || next > 0 {
					return next, err
				}
				some = some[:0]
			}
		}
		offset = 0
	}
	return 0, nil
}

// someRecipients calls fn for recipients of a chunk. It returns the ordinal after the one for which fn
// returned false; 0 if it never did.
func (c *Campaigns) someRecipients(ctx context.Context, one *campaign, run sendlog.Run,
	q api.CampaignRecipientQuery, chunk int, offsets []int, fn func(api.CampaignRecipient) bool) (uint32,
	error) {
	people, err := c.Log.People(ctx, run, chunk, offsets)
	if err != nil {
		return 0, err
	}
	sent := one.Runs[run.Number-1]
	for _, p := range people {
		r := api.CampaignRecipient{Subscriber: subscriberID(p.Ordinal), State: stateNames[p.State], Run: run.Number,
			QueueID: c.messageID(run.Campaign, run.Number, p.Ordinal, sent.Began), Attempts: p.Attempts,
			Variant: one.nameOf(run.Number, p.Ordinal), Response: p.Why, Left: p.Bits[sendlog.Left],
			Delivered: p.Bits[sendlog.Delivered], Opened: p.Bits[sendlog.Opened], Clicked: p.Bits[sendlog.Clicked],
			Complained: p.Bits[sendlog.Complained]}
		if !p.At.IsZero() {
			r.Time = &p.At
		}
		person, err := c.Audience.PersonAt(ctx, one.Account, p.Ordinal, nil)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return 0, err
		}
		if r.Email = person.Email; r.Email != "" && r.Attempts > 0 {
			snapshot := sent.Snapshots[max(0, one.variantOf(run.Number, p.Ordinal))]
			r.MessageID = c.Outbox.Mailings.MessageID(snapshot, r.QueueID, one.Account, r.Email)
		}
		if q.Search != "" && !message.AddressHas(r.Email, q.Search) {
			continue
		}
		if !fn(r) {
			return p.Ordinal + 1, nil
		}
	}
	return 0, nil
}

// ExportRecipients writes the recipients of a run as CSV, with a line of headings.
func (c *Campaigns) ExportRecipients(ctx context.Context, bound, id string, q api.CampaignRecipientQuery,
	w io.Writer) error {
	one, run, err := c.runOf(ctx, bound, id, q)
	if err != nil {
		return err
	}
	out := api.NewCSVWriter(w)
	_ = out.Write([]string{"subscriber", "email", "state", "run", "variant", "queueId", "messageId", "attempts",
		"time", "response", "delivered", "opened", "clicked", "complained", "left"}) // Flush has the error
	if run.Number > 0 {
		_, err = c.eachRecipient(ctx, one, run, q, 0, func(r api.CampaignRecipient) bool {
			at := ""
			if r.Time != nil {
				at = r.Time.Format(time.RFC3339)
			}
			err := out.Write([]string{r.Subscriber, r.Email, r.State, strconv.Itoa(r.Run), r.Variant,
				r.QueueID, r.MessageID, strconv.Itoa(r.Attempts), at, r.Response, yes(r.Delivered),
				yes(r.Opened), yes(r.Clicked), yes(r.Complained), yes(r.Left)})
			return err == nil
		})
	}
	return cmp.Or(err, out.Flush())
}

func yes(b bool) string {
	if b {
		return "1"
	}
	return ""
}

// Settle counts recipients of the last run that are in doubt as sent, as an operator knows.
func (c *Campaigns) Settle(ctx context.Context, bound, id string, in api.CampaignSettle) (
	api.CampaignSettled, error) {
	var answer api.CampaignSettled
	one, run, err := c.runOf(ctx, bound, id, api.CampaignRecipientQuery{})
	if err != nil || run.Number == 0 {
		return answer, err
	}
	if in.All == (len(in.Subscribers) > 0) {
		return answer, fault.InvalidField("subscribers", "requires either subscribers or all, not both")
	}
	settle := func(ordinal uint32) error {
		chunk, offset := sendlog.ChunkOf(ordinal)
		done, err := c.Log.Prove(ctx, run, chunk, offset)
		if done {
			answer.Settled++
		}
		return err
	}
	for i, name := range in.Subscribers {
		p, err := c.Audience.Person(ctx, one.Account, name, nil)
		if fault.Is(err, fault.NotFound) {
			return answer, fault.InvalidField(fmt.Sprintf("subscribers[%d]", i),
				"isn't a subscriber of account %s", one.Account)
		}
		if err == nil {
			err = settle(p.Ordinal)
		}
		if err != nil {
			return answer, err
		}
	}
	if in.All {
		var failed error
		_, err = c.eachRecipient(ctx, one, run, api.CampaignRecipientQuery{State: "inDoubt"}, 0,
			func(r api.CampaignRecipient) bool {
				ordinal, _ := audience.OrdinalOf(r.Subscriber)
				failed = settle(ordinal)
				return failed == nil
			})
		err = cmp.Or(failed, err)
	}
	return answer, err
}
