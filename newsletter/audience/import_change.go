package audience

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/postroom/postroom/newsletter/segment"
)

// change returns what a row changes of its subscriber, or nil, and then the row has its result.
func (i *importing) change(ctx context.Context, r *row, proof subscription, at uint32) (*change, error) {
	mine := r.old != nil && i.earlier.made(r.ordinal)
	if r.old != nil && i.o.Existing == "skip" {
		if r.result = known; mine {
			r.result = added
			r.pending = i.pendingOf(r.old)
		}
		return nil, nil
	}
	t := i.terms
	if r.in.Consent != nil {
		var err error
		t.consent, t.resubscribe = r.in.Consent, t.resubscribe || r.in.Resubscribe
		if proof, err = i.proof(ctx, t); err != nil {
			return nil, err
		}
	}
	c := &change{ordinal: r.ordinal, old: r.old}
	if c.new = i.filled(r, at); c.new == nil {
		return nil, nil
	}
	r.decision = i.decide(r, c.new, t, proof)
	c.lists = r.decision.changes
	same := r.old != nil && bytes.Equal(c.new.encode(), r.old.encode())
	if r.pending = nil; i.o.Confirm {
		for _, list := range r.decision.ask {
			if r.n <= i.earlier.Until || slices.ContainsFunc(c.lists, func(l listChange) bool {
				return l.list == list.Number
			}) {
				r.pending = append(r.pending, list)
			}
		}
	}
	switch {
	case same && mine || i.o.DryRun && r.old == nil:
		r.result = added
	case same && !i.earlier.changed(r):
		r.result = known
	case same || i.o.DryRun:
		r.result = changed
	default:
		c.new.version, c.new.updated = 1, max(at, c.new.created)
		if r.old != nil {
			c.new.version = r.old.version + 1
		}
		return c, i.s.takeBack(ctx, r.decision.back)
	}
	return nil, nil
}

// filled returns a row's record with its fields, without lists, or nil if the row is bad.
func (i *importing) filled(r *row, at uint32) *record {
	if r.old == nil {
		next := r.fresh
		next.created = cmp.Or(madeAt(r.in.created, i.s.now()), at)
		return &next
	}
	next := r.old.clone()
	if i.o.Existing == "replace" {
		next.name, next.locale, next.tz, next.tags, next.attributes = "", "", "", nil, nil
	}
	var f faults
	f.fillChecked(next, r.in.SubscriberRequest)
	if err := rowFault(f); err != nil {
		r.result, r.fault = bad, err.Error()
		return nil
	}
	return next
}

// learn remembers the attributes of a batch.
func (i *importing) learn(ctx context.Context, b *batch) error {
	if i.o.DryRun {
		return nil
	}
	members := map[string]bool{}
	for n := range b.rows {
		for name, value := range b.rows[n].in.Attributes {
			if list, ok := value.([]string); ok {
				value = make([]any, len(list)) // as it is in records
			}
			if value != nil {
				members[name+" "+segment.TypeOf(value)] = true
			}
		}
	}
	return i.insist(ctx, func() error { return i.s.attributes.learnAll(ctx, i.account, members) })
}

// pendingOf returns the import's lists on which a subscriber is pending, if emails ask for confirmation.
func (i *importing) pendingOf(r *record) []*List {
	var lists []*List
	for _, w := range i.wishes {
		if i.o.Confirm && r.stateOn(w.list.Number) == Pending {
			lists = append(lists, w.list)
		}
	}
	return lists
}

// ask has emails ask for a batch's confirmations. It runs after the batch, because an email must not be sent
// for a subscription that doesn't exist. After an interruption in between it runs again, and each address
// still gets one email in ten minutes.
func (i *importing) ask(ctx context.Context, b *batch) error {
	if i.s.confirmations == nil || i.o.DryRun {
		return nil
	}
	for n := range b.rows {
		r := &b.rows[n]
		if len(r.pending) == 0 {
			continue
		}
		now, err := i.s.load(ctx, i.account, r.ordinal)
		if err != nil {
			return err
		}
		if now != nil {
			i.s.confirmations.changed(ctx, i.account, r.ordinal, now, decision{ask: r.pending})
		}
	}
	return nil
}
