package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/search/query"
)

// Erase removes the messages to a person, from one account or, if it is empty, all accounts. It may be
// repeated. A message to several people stays for the others. tally counts documents before they are erased.
// Call it after the outbox has erased the person, in a process that has the index ([Documents.Reachable]).
func (d *Documents) Erase(ctx context.Context, account string, t *message.Traces,
	tally func(n int) error) error {
	if err := d.Reachable(ctx); err != nil {
		return err
	}
	// data that was read before the outbox erased the person is in the index now
	if err := d.yielding(ctx, func() error { return nil }); err != nil {
		return err
	}
	erase := func(some []Document) error {
		if err := errors.Join(d.keys.oweReclaim(ctx), tally(len(some))); err != nil {
			return err
		}
		return d.yielding(ctx, func() error { return d.eraseSome(ctx, t, some) })
	}
	if err := d.toPerson(ctx, account, t, erase); err != nil {
		return err
	}
	if err := d.maskedToPerson(ctx, account, t, erase); err != nil {
		return err
	}
	// even after a crash between the last document and here, when none is found any more
	owed, err := d.keys.reclaimOwed(ctx)
	if err != nil || !owed {
		return err
	}
	if err := reclaim(ctx, d.Store); err != nil {
		return err
	}
	return d.keys.reclaimed(ctx)
}

// reclaim rewrites the files of the index without deleted documents.
func reclaim(ctx context.Context, s Store) error {
	if err := s.Reclaim(ctx); err != nil {
		return fmt.Errorf("rewrite the search index without a person: %w", err)
	}
	return nil
}

// put writes documents, except for documents that an erasure has deleted since. Another process, or a
// rebuild, may write what it read before an erasure after it.
func (d *Documents) put(ctx context.Context, w Writer, docs []Document) error {
	if len(docs) == 0 {
		return nil
	}
	if err := w.Put(ctx, docs); err != nil {
		return err
	}
	gone, err := d.keys.erased(ctx, docs)
	if err != nil || len(gone) == 0 {
		return err
	}
	return d.Store.Delete(ctx, gone)
}

// eraseSome deletes documents, or writes them again without the person.
func (d *Documents) eraseSome(ctx context.Context, t *message.Traces, some []Document) error {
	revision, err := d.keys.revision(ctx)
	if err != nil {
		return err
	}
	var gone []string
	var left []Document
	for _, one := range some {
		raw, err := json.Marshal(one)
		if err != nil {
			return err
		}
		covered, _ := t.CoverJSON(string(raw))
		var next Document
		if err := json.Unmarshal([]byte(covered), &next); err != nil {
			return err
		}
		others := false
		for _, to := range next.To {
			others = others || to != message.Erased
		}
		if !others {
			gone = append(gone, one.QueueID)
			continue
		}
		next.Revision, next.TextKnown = revision, true
		left = append(left, next)
	}
	if len(left) > 0 {
		if err := d.Store.Put(ctx, left); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := d.keys.erase(ctx, gone); err != nil { // first, or who writes one now learns of it too late
		return err
	}
	return d.Store.Delete(ctx, gone)
}

// Personal calls do with the documents of messages to a person.
func (d *Documents) Personal(ctx context.Context, account string, t *message.Traces,
	do func(Document) error) error {
	return d.toPerson(ctx, account, t, func(some []Document) error {
		for _, one := range some {
			if err := do(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// toPerson calls do with the documents of messages to a person, a page at a time.
func (d *Documents) toPerson(ctx context.Context, account string, t *message.Traces,
	do func([]Document) error) error {
	if err := d.Reachable(ctx); err != nil {
		return err
	}
	return d.to(ctx, account, t.Address(), do)
}

// maskedToPerson calls do with documents that name a person but not as their recipient. They were indexed
// again after the outbox had erased the person, and before their text was erased.
func (d *Documents) maskedToPerson(ctx context.Context, account string, t *message.Traces,
	do func([]Document) error) error {
	return d.to(ctx, account, message.Erased, func(some []Document) error {
		var naming []Document
		for _, one := range some {
			raw, err := json.Marshal(one)
			if err != nil {
				return err
			}
			if _, found := t.CoverJSON(string(raw)); found {
				naming = append(naming, one)
			}
		}
		if len(naming) == 0 {
			return nil
		}
		return do(naming)
	})
}

// to calls do with the documents of messages to an address, a page at a time.
func (d *Documents) to(ctx context.Context, account, address string, do func([]Document) error) error {
	s := Query{Where: query.Term{Field: query.To, Value: query.Fold(address)}, Account: account,
		Size: MaxPageSize}
	for {
		found, err := d.ask(ctx, s)
		if err != nil || len(found.Hits) == 0 {
			return err
		}
		some := make([]Document, len(found.Hits))
		for i, hit := range found.Hits {
			some[i] = hit.Document
		}
		if err := do(some); err != nil {
			return err
		}
		if len(some) < s.Size {
			return nil
		}
		at := found.Hits[len(found.Hits)-1].Position()
		s.After = &at
	}
}
