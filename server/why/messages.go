package why

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

const (
	shownMessages = 10    // that an answer has at most
	namedAmong    = 1_000 // newest messages to the address among which a Message-ID is looked for
)

// messages reads the newest messages to the address, or the one that was asked about.
func (y *Why) messages(ctx context.Context, q *question) error {
	ids, err := y.candidates(ctx, q)
	if err != nil {
		return err
	}
	all := make([]told, len(ids))
	var reads errgroup.Group
	for i, id := range ids {
		reads.Go(func() (err error) {
			all[i], err = y.message(ctx, q, id)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for _, one := range all {
		switch {
		case one.toOther:
			q.others = q.named != ""
		case one.message.QueueID != "":
			q.answer.Messages = append(q.answer.Messages, one.message)
			q.events[one.message.QueueID] = one.events
		}
	}
	for _, d := range q.Indexed { // that the log does not have any more
		if len(q.answer.Messages) >= shownMessages || slices.Contains(ids, d.QueueID) || !q.means(d.QueueID,
			d.MessageID) || !slices.ContainsFunc(d.To, q.Is) {
			continue
		}
		q.answer.Messages = append(q.answer.Messages, indexed(q, d))
	}
	slices.SortStableFunc(q.answer.Messages, func(a, b api.WhyMessage) int {
		return b.Created.Compare(a.Created)
	})
	return nil
}

// means reports whether a message is one that was asked about.
func (q *question) means(ids ...string) bool { return q.named == "" || slices.Contains(ids, q.named) }

// candidates returns the ids of the messages of the email log that may be to the address, newest first.
func (y *Why) candidates(ctx context.Context, q *question) (ids []string, _ error) {
	most := shownMessages
	if q.named != "" {
		if _, err := y.Log.Message(ctx, strings.ToUpper(q.named)); err == nil {
			q.named = strings.ToUpper(q.named)
			return []string{q.named}, nil
		} else if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		most = namedAmong
	}
	found, partial, err := y.Log.To(ctx, q.Whom, most)
	if err != nil {
		return nil, err
	}
	q.answer.Partial = partial || q.named != "" && len(found) == most
	for _, m := range found {
		if q.means(m.MessageID) {
			ids = append(ids, m.QueueID)
		}
	}
	if q.answer.Partial { // the log still has some of the index's messages
		for _, d := range q.Indexed {
			if q.means(d.QueueID, d.MessageID) && !slices.Contains(ids, d.QueueID) {
				if _, err := y.Log.Message(ctx, d.QueueID); err == nil {
					ids = append(ids, d.QueueID)
				}
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) }) // ULIDs: newest first
	return ids[:min(len(ids), shownMessages)], nil
}

// told is a message as it was read. Without a queueId it is unknown, or of another account.
type told struct {
	message api.WhyMessage
	events  []string // ids of all its events
	toOther bool     // it is not to the address
}

// message reads one message, without other recipients' data.
func (y *Why) message(ctx context.Context, q *question, id string) (one told, _ error) {
	logged, err := y.Log.Message(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && q.Account != "" && logged.Account != q.Account {
		return told{}, nil
	}
	if err != nil {
		return told{}, err
	}
	at := slices.IndexFunc(logged.Recipients, func(r api.RecipientStatus) bool { return q.Is(r.Address) })
	if at < 0 {
		return told{toOther: true}, nil
	}
	m := api.WhyMessage{QueueID: id, Account: logged.Account, MessageID: logged.MessageID,
		Subject: logged.Subject, Status: logged.Status, Recipient: logged.Recipients[at], Lane: logged.Lane,
		Created: logged.Created, Scheduled: &logged.Scheduled, Ended: logged.Ended,
		Next: logged.NextAttempt.Time, Made: logged.AttemptsMade, Attempts: logged.Attempts,
		Reason: logged.Reason, Error: logged.Error, InDoubt: logged.InDoubt, Log: logged.Log}
	if logged.Status == api.StatusQueued || logged.Status == api.StatusSending {
		live, err := y.Log.Get(ctx, id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return told{}, err
		}
		m.State = live.State
	}
	story, err := y.Log.MessageEvents(ctx, id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return told{}, err
	}
	for _, e := range story.Events {
		one.events = append(one.events, e.EventID)
		if !slices.ContainsFunc(e.Recipients, q.Is) {
			continue
		}
		if len(e.Recipients) > 1 {
			if e.Details != nil { // the person is not known
				continue
			}
			e.Recipients = []string{m.Recipient.Address}
		}
		m.Events = append(m.Events, e)
	}
	one.message = m
	return one, nil
}

// deliveries reads the webhook deliveries for the messages' events.
func (y *Why) deliveries(ctx context.Context, q *question) error {
	if y.Deliveries == nil {
		return nil
	}
	all := make([]api.MessageDeliveries, len(q.answer.Messages))
	var reads errgroup.Group
	for i, m := range q.answer.Messages {
		reads.Go(func() (err error) {
			all[i], err = y.Deliveries(ctx, m.Account, false, q.events[m.QueueID])
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	for i, m := range q.answer.Messages {
		for _, d := range all[i].Deliveries {
			one := api.WhyDelivery{Event: d.Event, QueueID: m.QueueID, Status: d.Status, Attempts: d.Attempts,
				StatusCode: d.StatusCode, Created: d.Created, Next: d.NextAttempt.Time}
			if !q.bound || d.Endpoint == "account:"+q.Account { // others are the instance's
				one.Endpoint, one.ID, one.Error = d.Endpoint, d.ID, d.Error
			}
			q.answer.Deliveries = append(q.answer.Deliveries, one)
		}
	}
	slices.SortFunc(q.answer.Deliveries, func(x, y api.WhyDelivery) int {
		return cmp.Or(y.Created.Compare(x.Created), cmp.Compare(x.ID, y.ID))
	})
	return nil
}

// indexed returns a message that only the search index has.
func indexed(q *question, d api.FoundMessage) api.WhyMessage {
	recipient := api.RecipientStatus{Address: q.Address(), Status: string(d.Status)}
	if d.Status == api.StatusDead {
		recipient.Status = "failed"
	}
	m := api.WhyMessage{QueueID: d.QueueID, Account: d.Account, MessageID: d.MessageID, Subject: d.Subject,
		Status: d.Status, Recipient: recipient, Lane: d.Lane, Created: d.Created, Ended: d.Ended, Indexed: true}
	if d.Code != "" {
		m.Error = &api.DeliveryFault{Code: d.Code, Message: d.Code}
		if d.SMTPCode != 0 {
			m.Error.StatusCode = &d.SMTPCode
		}
	}
	return m
}

// accounts finds the accounts whose mail waits: the messages', or the question's.
func (y *Why) accounts(ctx context.Context, q *question) error {
	ids := []string{q.Account}
	for _, m := range q.answer.Messages {
		ids = append(ids, m.Account)
	}
	slices.Sort(ids)
	q.held = map[string]api.AccountInfo{}
	for _, id := range slices.Compact(ids) {
		if id == "" {
			continue
		}
		info, err := y.Account(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if info.State == "held" {
			q.held[id] = info
		}
	}
	return nil
}

// queues finds paused queues.
func (y *Why) queues(ctx context.Context, q *question) error {
	q.paused = map[string]bool{}
	for _, name := range []string{"submit", "bulk", "notify", "digests"} {
		status, err := y.QueueStatus(ctx, name)
		if err != nil {
			return err
		}
		if status.Paused {
			q.paused[name] = true
		}
	}
	return nil
}
