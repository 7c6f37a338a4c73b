package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/queue"
)

// List answers a page of the outbox, oldest message first. Without tag and search the page is read off the
// indexes; with them all messages that the indexes leave are read, so that the total is exact.
func (rd *Reader) List(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error) {
	if q.PageSize == 0 {
		q.PageSize = 20
	}
	paused, err := rd.pausedLanes(ctx)
	if err != nil {
		return api.OutboxPage{}, err
	}
	found, err := rd.find(ctx, q, paused, 0)
	if err != nil {
		return api.OutboxPage{}, away(err, "list the outbox")
	}
	rows, err := rd.rows(ctx, found.page, paused)
	if err != nil {
		return api.OutboxPage{}, away(err, "read a page of the outbox")
	}
	return api.OutboxPage{
		Total: found.total, Page: q.Page, Pages: pages(found.total, q.PageSize), Cursor: found.next, Messages: rows,
	}, nil
}

// find selects the entries of a page. A query with tag or search reads so many messages at most, 0: all, so
// that the total is exact.
func (rd *Reader) find(ctx context.Context, q api.OutboxQuery, paused map[api.Lane]bool, most int) (findings,
	error) {
	w := window{
		indexes: rd.indexes(q, paused), page: q.Page, size: q.PageSize, cursor: q.Cursor, after: q.CreatedAfter,
		before: q.CreatedBefore,
		most:   most,
	}
	if q.Tag == "" && q.Search == "" {
		return rd.look(ctx, w)
	}
	takes := func(e envelope) bool { return tagged(e, q.Tag) && mentions(e, strings.ToLower(q.Search)) }
	return rd.scan(ctx, w, func(chunk []entry) ([]entry, error) { return rd.match(ctx, chunk, takes) })
}

// indexes are the sorted sets whose union is what the query's state, lane and account select.
func (rd *Reader) indexes(q api.OutboxQuery, paused map[api.Lane]bool) []index {
	var all []index
	for p := range rd.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			if q.Lane != "" && q.Lane != lane {
				continue
			}
			for _, st := range []string{stateWaiting, stateActive, stateDelayed, stateFailed} {
				if q.State == "" || q.State == shown(st, paused[lane]) {
					all = append(all, index{key: of(rd.keys.index(p, string(lane), st), q.Account)})
				}
			}
		}
	}
	return all
}

// shown is the state a record's state reads as.
func shown(st string, paused bool) api.State {
	if st == stateWaiting && paused {
		return api.Paused
	}
	return api.State(st)
}

// match reads the envelopes of some entries and keeps those that are taken.
func (rd *Reader) match(ctx context.Context, entries []entry, takes func(envelope) bool) ([]entry, error) {
	pipe := rd.DB.Client().Pipeline()
	got := make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		p, _ := partitionOf(e.id, rd.DB.Partitions())
		got[i] = pipe.Get(ctx, rd.keys.envelope(p, e.id))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	var kept []entry
	for i, e := range entries {
		raw, err := got[i].Bytes()
		if err != nil {
			continue // ended meanwhile
		}
		var env envelope
		if err := rd.jsons.unpack(e.id, raw, &env); err != nil {
			return nil, err
		}
		if takes(env) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// tagged says whether a message has a tag; every message has the empty one.
func tagged(e envelope, tag string) bool { return tag == "" || slices.Contains(e.Tags, tag) }

// mentions says whether a text, in lower case, is part of a message's subject or of one of its addresses.
func mentions(e envelope, text string) bool {
	if text == "" || strings.Contains(strings.ToLower(e.Subject), text) ||
		strings.Contains(strings.ToLower(e.From), text) {
		return true
	}
	return slices.ContainsFunc(e.To, func(to string) bool { return strings.Contains(strings.ToLower(to), text) })
}
