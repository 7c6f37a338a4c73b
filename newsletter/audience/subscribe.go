package audience

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
)

// Sources of subscriptions, in records and the API. A consent has its own.
const (
	SourceAPI         = "api"
	SourceForm        = "form"            // a visitor of the public form
	SourceConfirmed   = "confirmed"       // the link of the mail that asked
	SourcePage        = "page"            // an operator
	SourceImport      = "import"          // a file
	SourceUnsubscribe = "unsubscribe"     // a link or button in the list's mail
	SourceLeftAll     = "unsubscribe-all" // the same, of all mail of the account
)

// wish is a subscription that somebody asks for.
type wish struct {
	list  *List
	state State         // Pending or Subscribed; in imports also Left
	proof *subscription // its own time and source; nil for the shared ones
}

// terms are the terms of wishes.
type terms struct {
	source  string
	consent *api.Consent
	// who left comes back, if there is a consent; or if it is pending, by the confirmation
	resubscribe bool
}

// proven reports whether the terms bring back who left.
func (t terms) proven() bool { return t.resubscribe && t.consent != nil }

// wishes returns the wishes of a request. Lists of other accounts do not exist.
func (s *Subscribers) wishes(ctx context.Context, account string, lists []api.SubscriptionRequest,
	consent *api.Consent, f *faults) ([]wish, error) {
	if len(lists) > maxLists {
		f.Add("lists", "has %d; at most %d are possible", len(lists), maxLists)
		return nil, nil
	}
	wishes := make([]wish, 0, len(lists))
	seen := map[uint32]bool{}
	for i, in := range lists {
		list, err := s.Lists.of(ctx, account, in.ListID)
		if err != nil {
			return nil, err
		}
		if seen[list.Number] {
			f.Add(fmt.Sprintf("lists[%d].listId", i), "is there twice")
		}
		seen[list.Number] = true
		w := wish{list: list, state: stateNamed(in.State)}
		switch {
		case in.State == "" && list.Double():
			w.state = Pending
		case in.State == "":
			w.state = Subscribed
		case w.state != Pending && w.state != Subscribed:
			f.Add(fmt.Sprintf("lists[%d].state", i), "must be subscribed or pending")
		case w.state == Subscribed && list.Double() && consent == nil:
			f.Add(fmt.Sprintf("lists[%d].state", i),
				"can be subscribed only with consent, because list %s has double opt-in", list.ListID)
		}
		wishes = append(wishes, w)
	}
	return wishes, nil
}

// decision is the result of wishes.
type decision struct {
	changes []listChange
	ask     []*List // pending: an email asks for the confirmation
	welcome []*List // subscribed now
	skipped []api.SkippedList
	back    []suppression.Entry // to remove before, for people who come back
}

// decide applies wishes to a record. stopped has the suppression of each wish, or nil. It changes the record.
func (s *Subscribers) decide(r *record, account string, wishes []wish, stopped []*suppression.Entry, t terms,
	proof subscription) decision {
	var d decision
	for i, w := range wishes {
		was := r.stateOn(w.list.Number)
		if reason := refused(was, w, stopped[i], t); reason != "" {
			d.skipped = append(d.skipped, api.SkippedList{ListID: w.list.ListID, Reason: reason})
			continue
		}
		if w.state == Subscribed {
			d.back = append(d.back, comesBack(r.email, account, w.list.ListID, stopped[i], was)...)
		} else if was != Subscribed {
			d.ask = append(d.ask, w.list)
		}
		if was == w.state || was == Subscribed {
			continue
		}
		if w.state == Subscribed {
			d.welcome = append(d.welcome, w.list)
		}
		sub := proof
		if w.proof != nil {
			sub = *w.proof
		}
		sub.list, sub.state = w.list.Number, w.state
		r.set(sub)
		d.changes = append(d.changes, listChange{list: w.list.Number, state: w.state, since: sub.since})
	}
	return d
}

// refused returns why a wish is not granted, or "".
func refused(was State, w wish, stop *suppression.Entry, t terms) string {
	switch {
	case stop != nil && (stop.Reason != suppression.Unsubscribe || stop.Account == ""):
		return string(stop.Reason) // only an operator removes these
	case was == Subscribed && stop == nil:
		return ""
	case w.state == Pending && t.resubscribe:
		return "" // the confirmation is the consent
	case was == Left && !t.proven():
		return "left"
	case stop != nil && !t.proven():
		return string(stop.Reason)
	}
	return ""
}

// comesBack returns the unsubscribe entries of an address that comes back to a list: the list's and the
// account's. After an account's entry the address is off all other lists too, so they send it nothing.
func comesBack(email, account, list string, stop *suppression.Entry, was State) []suppression.Entry {
	if stop == nil && was != Left {
		return nil
	}
	return []suppression.Entry{
		{Address: email, Account: account, List: list, Reason: suppression.Unsubscribe},
		{Address: email, Account: account, Reason: suppression.Unsubscribe},
	}
}

// stops returns the suppression that stops each wish, or nil.
func (s *Subscribers) stops(ctx context.Context, account, email string, wishes []wish) (
	[]*suppression.Entry, error) {
	stopped := make([]*suppression.Entry, len(wishes))
	for i, w := range wishes {
		found, err := s.Suppressions.Check(ctx, suppression.Question{Account: account, List: w.list.ListID,
			Bulk: true, Addresses: []string{email}})
		if err != nil {
			return nil, err
		}
		stopped[i] = found[0]
	}
	return stopped, nil
}

// proof returns the proof of subscriptions that are made now.
func (s *Subscribers) proof(ctx context.Context, account string, t terms) (subscription, error) {
	source, text := t.source, ""
	sub := subscription{since: seconds(s.now())}
	if c := t.consent; c != nil {
		source, text = cmp.Or(c.Source, source), c.Text
		sub.network = Network(c.IP)
		if c.Time != nil && seconds(*c.Time) != sub.since {
			sub.given = seconds(*c.Time)
		}
	}
	numbers, err := s.words.intern(ctx, account, source, text)
	if err != nil {
		return sub, err
	}
	sub.source, sub.text = numbers[0], numbers[1]
	return sub, nil
}

// takeBack removes the unsubscribe entries of people who come back. It runs before the record's change: a
// crash between both leaves a list state that stops the mail.
func (s *Subscribers) takeBack(ctx context.Context, entries []suppression.Entry) error {
	for _, e := range entries {
		if _, err := s.Suppressions.Remove(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// Leave takes a subscriber off a list: the state becomes left, and mail of the list is suppressed. source is
// SourceAPI or SourcePage. It reports whether the subscriber was on it.
func (s *Subscribers) Leave(ctx context.Context, bound string, of api.SubscriberAccount, subscriber,
	listID, source string) (bool, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return false, err
	}
	list, err := s.Lists.of(ctx, account, listID)
	if err != nil {
		return false, err
	}
	ordinal, r, err := s.lookup(ctx, account, subscriber)
	if err != nil {
		return false, err
	}
	_, err = s.Suppressions.Add(ctx, suppression.Entry{Address: r.email, Account: account, List: list.ListID,
		Reason: suppression.Unsubscribe, Source: source})
	if err != nil {
		return false, err
	}
	return s.leave(ctx, account, ordinal, []*List{list}, source, s.now())
}

// leave sets the states of a subscriber on lists to left, at a time, each with its event. It reports whether
// one was another.
func (s *Subscribers) leave(ctx context.Context, account string, ordinal uint32, lists []*List, source string,
	at time.Time) (bool, error) {
	numbers, err := s.words.intern(ctx, account, source)
	if err != nil {
		return false, err
	}
	left := false
	_, err = s.edit(ctx, account, ordinal, func(r *record) ([]listChange, error) {
		left = false
		var changes []listChange
		for _, list := range lists {
			sub := r.on(list.Number)
			if sub == nil || sub.state == Left || sub.since > seconds(at) {
				continue
			}
			r.set(subscription{list: list.Number, state: Left, since: seconds(at), source: numbers[0]})
			left = true
			changes = append(changes, listChange{list: list.Number, state: Left,
				tell: &telling{event.SubscriberLeft, list.ListID, source}})
		}
		return changes, nil
	})
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return left, err
}
