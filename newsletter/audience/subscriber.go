package audience

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func requestAccount(bound, account string) (string, error) {
	if bound != "" && account != "" && account != bound {
		return "", notYours(account)
	}
	return cmp.Or(account, bound, DefaultAccount), nil
}

// lookup returns the subscriber of an id or an address.
func (s *Subscribers) lookup(ctx context.Context, account, name string) (uint32, *record, error) {
	if strings.Contains(name, "@") {
		_, ordinal, r, err := s.find(ctx, account, folded(name))
		if err == nil && r == nil {
			err = subscriberNotFound(name)
		}
		return ordinal, r, err
	}
	ordinal, ok := ordinalOf(name)
	if !ok {
		return 0, nil, subscriberNotFound(name)
	}
	r, err := s.load(ctx, account, ordinal)
	if err == nil && r == nil {
		err = subscriberNotFound(name)
	}
	return ordinal, r, err
}

// Get returns a subscriber by id or address, or NotFound.
func (s *Subscribers) Get(ctx context.Context, bound string, of api.SubscriberAccount, name string) (
	api.Subscriber, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	ordinal, r, err := s.lookup(ctx, account, name)
	if err != nil {
		return api.Subscriber{}, err
	}
	return s.shown(ctx, account, ordinal, r)
}

// Create makes a subscriber, and with Upsert changes the one of this address. created is false then. Invalid
// names the wrong fields. Conflict, code SubscriberExists: the address is taken.
func (s *Subscribers) Create(ctx context.Context, bound string, in api.SubscriberRequest) (sub api.Subscriber,
	created bool, err error) {
	account, err := requestAccount(bound, in.Account)
	if err != nil {
		return sub, false, err
	}
	if err := s.Account(ctx, account); err != nil {
		return sub, false, err
	}
	var f faults
	in.Email = f.email(in.Email)
	f.consent(in.Consent, s.now())
	edited := &record{}
	f.fill(edited, in)
	wishes, err := s.wishes(ctx, account, in.Lists, in.Consent, &f)
	if err = cmp.Or(err, fault.InvalidFields(f.Fields)); err != nil {
		return sub, false, err
	}
	return s.put(ctx, account, in, wishes, terms{source: SourceAPI, consent: in.Consent,
		resubscribe: in.Resubscribe})
}

// fill sets the fields of a record that a request has.
func (f *faults) fill(r *record, in api.SubscriberRequest) {
	in.Locale, in.TZ = f.locale(in.Locale), f.zone(in.TZ)
	f.fillChecked(r, in)
}

// fillChecked is fill for a request whose locale and time zone were checked.
func (f *faults) fillChecked(r *record, in api.SubscriberRequest) {
	if name := f.text("name", in.Name, maxName); name != "" {
		r.name = name
	}
	r.locale, r.tz = cmp.Or(in.Locale, r.locale), cmp.Or(in.TZ, r.tz)
	if in.Tags != nil {
		r.tags = f.tags(slices.Concat(r.tags, in.Tags))
	}
	r.attributes = f.attributes(r.attributes, in.Attributes)
}

// put creates or changes the subscriber of an address that is in normal form.
func (s *Subscribers) put(ctx context.Context, account string, in api.SubscriberRequest, wishes []wish,
	t terms) (sub api.Subscriber, created bool, err error) {
	if err := refuseErased(ctx, s.Suppressions, account, in.Email); err != nil {
		return sub, false, err
	}
	proof, err := s.proof(ctx, account, t)
	if err != nil {
		return sub, false, err
	}
	stopped, err := s.stops(ctx, account, in.Email, wishes)
	if err != nil {
		return sub, false, err
	}
	for range tries {
		has, ordinal, old, err := s.find(ctx, account, folded(in.Email))
		if err != nil {
			return sub, false, err
		}
		if old != nil && !in.Upsert {
			return sub, false, fault.New(fault.Conflict, "SubscriberExists",
				"There is already a subscriber with this address: %s. Set upsert to change it", idOf(ordinal))
		}
		if old == nil {
			if ordinal, err = s.takePlace(ctx, account, folded(in.Email), has); err != nil {
				return sub, false, err
			}
		}
		c := &change{ordinal: ordinal, old: old, new: &record{created: seconds(s.now()), email: in.Email}}
		if old != nil {
			c.new = old.clone()
		}
		var f faults
		if f.fill(c.new, in); len(f.Fields) > 0 {
			return sub, false, fault.InvalidFields(f.Fields)
		}
		d := s.decide(c.new, account, wishes, stopped, t, proof)
		c.lists = d.changes
		if s.confirmations != nil && len(d.ask) > 0 {
			if _, err := s.confirmations.base(); err != nil {
				return sub, false, err
			}
		}
		done, err := s.commit(ctx, account, c, d)
		if err != nil {
			return sub, false, err
		}
		if done {
			s.metrics.refused(d)
			if err := s.attributes.learn(ctx, account, c.new.attributes); err != nil {
				return sub, false, err
			}
			sub, err = s.after(ctx, account, c, d)
			return sub, old == nil, err
		}
	}
	return sub, false, contended(in.Email)
}

// commit writes a change with the next version, after the entries of people who come back are removed.
func (s *Subscribers) commit(ctx context.Context, account string, c *change, d decision) (bool, error) {
	if err := s.takeBack(ctx, d.back); err != nil {
		return false, err
	}
	return s.step(ctx, account, c)
}

// after sends the emails for a change that was made, and returns the subscriber.
func (s *Subscribers) after(ctx context.Context, account string, c *change, d decision) (api.Subscriber,
	error) {
	if s.confirmations != nil {
		s.confirmations.changed(ctx, account, c.ordinal, c.new, d)
	}
	sub, err := s.shown(ctx, account, c.ordinal, c.new)
	sub.Skipped = d.skipped
	return sub, err
}

// Update changes the fields of a subscriber that the patch has. Conflict, code SubscriberExists: the new
// address is taken.
func (s *Subscribers) Update(ctx context.Context, bound string, of api.SubscriberAccount, name string,
	p api.SubscriberPatch) (api.Subscriber, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	ordinal, was, err := s.lookup(ctx, account, name)
	if err != nil {
		return api.Subscriber{}, err
	}
	var f faults
	if p.Email != nil {
		p.Email = new(f.email(*p.Email))
	}
	if err := fault.InvalidFields(f.Fields); err != nil {
		return api.Subscriber{}, err
	}
	moved := p.Email != nil && folded(*p.Email) != folded(was.email)
	if moved {
		if err := s.takeAddress(ctx, account, ordinal, *p.Email); err != nil {
			return api.Subscriber{}, err
		}
	}
	r, err := s.edit(ctx, account, ordinal, func(r *record) ([]listChange, error) { return nil, r.patch(p) })
	if err == nil {
		err = s.attributes.learn(ctx, account, r.attributes)
	}
	if err != nil {
		return api.Subscriber{}, err
	}
	if moved {
		if _, err := s.claim(ctx, account, folded(was.email), decimal(ordinal),
			""); err != nil {
			return api.Subscriber{}, err
		}
	}
	return s.shown(ctx, account, ordinal, r)
}

// takeAddress gives another address to an ordinal.
func (s *Subscribers) takeAddress(ctx context.Context, account string, ordinal uint32, email string) error {
	if err := refuseErased(ctx, s.Suppressions, account, email); err != nil {
		return err
	}
	has, other, r, err := s.find(ctx, account, folded(email))
	if err != nil {
		return err
	}
	if r != nil && other != ordinal {
		return fault.New(fault.Conflict, "SubscriberExists", "There is already a subscriber with this "+
			"address: %s",
			idOf(other))
	}
	mine := decimal(ordinal)
	got, err := s.claim(ctx, account, folded(email), has, mine)
	if err == nil && got != mine {
		err = contended(email)
	}
	return err
}

// patch sets the fields of a patch.
func (r *record) patch(p api.SubscriberPatch) error {
	if p.Version != nil && uint32(*p.Version) != r.version {
		return fault.New(fault.Conflict, "SubscriberChanged", "The subscriber is now at version %d, not "+
			"%d. Read it again and repeat your change",
			r.version, *p.Version)
	}
	var f faults
	api.Set(&r.email, p.Email)
	if p.Name != nil {
		r.name = f.text("name", *p.Name, maxName)
	}
	if p.Locale != nil {
		r.locale = f.locale(*p.Locale)
	}
	if p.TZ != nil {
		r.tz = f.zone(*p.TZ)
	}
	if p.Tags != nil {
		r.tags = f.tags(*p.Tags)
	}
	r.attributes = f.attributes(r.attributes, p.Attributes)
	return fault.InvalidFields(f.Fields)
}

// Subscribe puts a subscriber on lists.
func (s *Subscribers) Subscribe(ctx context.Context, bound string, of api.SubscriberAccount, name string,
	in api.SubscribeRequest) (api.Subscriber, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.Subscriber{}, err
	}
	var f faults
	f.consent(in.Consent, s.now())
	wishes, err := s.wishes(ctx, account, in.Lists, in.Consent, &f)
	if err = cmp.Or(err, fault.InvalidFields(f.Fields)); err != nil {
		return api.Subscriber{}, err
	}
	_, r, err := s.lookup(ctx, account, name)
	if err != nil {
		return api.Subscriber{}, err
	}
	sub, _, err := s.put(ctx, account, api.SubscriberRequest{Email: r.email, Upsert: true}, wishes,
		terms{source: SourceAPI, consent: in.Consent, resubscribe: in.Resubscribe})
	return sub, err
}

// Delete removes a subscriber with all subscriptions, and reports whether there was one. Suppressions stay.
func (s *Subscribers) Delete(ctx context.Context, bound string, of api.SubscriberAccount, name string) (bool,
	error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return false, err
	}
	ordinal, _, err := s.lookup(ctx, account, name)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.remove(ctx, account, ordinal)
}

// remove removes the record of an ordinal, then its address from the index.
func (s *Subscribers) remove(ctx context.Context, account string, ordinal uint32) (bool, error) {
	for range tries {
		old, err := s.load(ctx, account, ordinal)
		if err != nil || old == nil {
			return false, err
		}
		c := &change{ordinal: ordinal, old: old}
		for _, sub := range old.lists {
			list, err := s.Lists.numbered(ctx, sub.list)
			if err != nil {
				return false, err
			}
			if list != nil {
				c.lists = append(c.lists, listChange{list: list.Number})
			}
		}
		done, err := s.write(ctx, account, c)
		if err != nil {
			return false, err
		}
		if done {
			s.metrics.changed(c)
			_, err := s.claim(ctx, account, folded(old.email), decimal(ordinal), "")
			return true, err
		}
	}
	return false, contended(idOf(ordinal))
}

// shown returns a subscriber as the API shows it.
func (s *Subscribers) shown(ctx context.Context, account string, ordinal uint32, r *record) (api.Subscriber,
	error) {
	sub := api.Subscriber{ID: idOf(ordinal), Account: account, Email: r.email, Name: r.name, Locale: r.locale,
		TZ: r.tz, Tags: slices.Clone(r.tags), Attributes: map[string]any{}, Lists: []api.Subscription{},
		Version: int(r.version), Created: timeOf(r.created), Updated: timeOf(r.updated)}
	if sub.Tags == nil {
		sub.Tags = []string{}
	}
	if len(r.attributes) > 0 {
		if err := json.Unmarshal(r.attributes, &sub.Attributes); err != nil {
			return sub, errRecord
		}
	}
	history, err := s.entries(ctx, account, r.lists)
	if err != nil {
		return sub, err
	}
	for _, e := range history {
		sub.Lists = append(sub.Lists, api.Subscription{ListID: e.ListID, State: e.State, Since: e.Since,
			Source: e.Source})
	}
	return sub, nil
}

// entries returns subscriptions with their texts, except for deleted lists.
func (s *Subscribers) entries(ctx context.Context, account string, subs []subscription) ([]api.ConsentEntry,
	error) {
	var numbers []uint32
	for _, sub := range subs {
		numbers = append(numbers, sub.source, sub.text)
	}
	texts, err := s.words.read(ctx, account, numbers)
	if err != nil {
		return nil, err
	}
	var entries []api.ConsentEntry
	for _, sub := range subs {
		list, err := s.Lists.numbered(ctx, sub.list)
		if err != nil {
			return nil, err
		}
		if list == nil {
			continue
		}
		e := api.ConsentEntry{ListID: list.ListID, State: sub.state.String(), Since: timeOf(sub.since),
			Source: texts[sub.source], Text: texts[sub.text], Network: sub.network}
		if sub.given != 0 {
			e.Given = new(timeOf(sub.given))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Consents returns the history of a subscriber's subscriptions.
func (s *Subscribers) Consents(ctx context.Context, bound string, of api.SubscriberAccount, name string) (
	api.ConsentHistory, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.ConsentHistory{}, err
	}
	_, r, err := s.lookup(ctx, account, name)
	if err != nil {
		return api.ConsentHistory{}, err
	}
	current, err := s.entries(ctx, account, r.lists)
	if err != nil {
		return api.ConsentHistory{}, err
	}
	for i := range current {
		current[i].Current = true
	}
	past, err := s.entries(ctx, account, r.past)
	if err != nil {
		return api.ConsentHistory{}, err
	}
	all := slices.Concat(past, current)
	slices.SortStableFunc(all, func(a, b api.ConsentEntry) int { return b.Since.Compare(a.Since) })
	return api.ConsentHistory{Consents: all}, nil
}
