package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// List returns a page of the outbox, oldest message first. Without tag and search it reads only the indexes.
// With them it reads all messages of the indexes, so that the total is exact, but see [Reader.Within]. The
// state completed, and without dead letters failed, selects the ended messages that the queue still shows;
// without a state, the failed ones of these are in the list, too.
func (rd *Reader) List(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error) {
	q.PageSize = cmp.Or(q.PageSize, 20)
	paused, err := rd.pausedQueues(ctx)
	if err != nil {
		return api.OutboxPage{}, err
	}
	find, read := rd.find, rd.readRows
	switch {
	case q.State == api.Completed || q.State == api.Failed && rd.opts.KeepDeadLetters < 0:
		find, read = rd.findKept, rd.readLog
	case q.State == "" && rd.opts.KeepDeadLetters < 0:
		read = rd.readLog
	}
	most := 0
	if rd.within > 0 {
		most = logScan
	}
	found, err := find(ctx, q, paused, most)
	if err != nil {
		return api.OutboxPage{}, redisError(err, "list the outbox")
	}
	rows, err := read(ctx, found.page)
	if err != nil {
		return api.OutboxPage{}, redisError(err, "read a page of the outbox")
	}
	page := api.OutboxPage{PageNumbers: api.PageNumbers{Total: found.total, Page: q.Page,
		Pages: pages(found.total, q.PageSize)}, Cursor: found.next, Messages: make([]api.OutboxMessage, len(rows))}
	for i, r := range rows {
		page.Messages[i] = r.show(paused[r.task().queue])
	}
	return page, nil
}

// find returns the entries of a page. most is how many messages a query with tag or search reads; 0 means
// all, so that the total is exact.
func (rd *Reader) find(ctx context.Context, q api.OutboxQuery, paused map[string]bool, most int) (findings,
	error) {
	w := window{
		indexes: rd.indexes(q, paused), page: q.Page, size: q.PageSize, cursor: q.Cursor, after: q.CreatedAfter,
		before: q.CreatedBefore, most: most, within: rd.within,
	}
	kept := map[entry]bool{}
	if q.State == "" && rd.opts.KeepDeadLetters < 0 {
		failed, err := rd.keptJobs(ctx, q, queue.Archived, resultFailed)
		if err != nil {
			return findings{}, err
		}
		for _, e := range failed {
			kept[e] = true
		}
	}
	if q.Tag == "" && q.Search == "" && q.Reason == "" && len(kept) == 0 {
		return rd.look(ctx, w)
	}
	if len(kept) > 0 {
		w.indexes = append(w.indexes, rd.indexesOf(q.Lane, q.Account,
			func(_ string, add func(string, bool)) { add(resultFailed, true) })...)
	}
	takes := func(e envelope) bool { return tagged(e, q.Tag) && mentions(e, q.Search) }
	return rd.scan(ctx, w, func(chunk []entry) (_ []entry, err error) {
		ended := slices.DeleteFunc(slices.Clone(chunk), func(e entry) bool { return !kept[e] })
		chunk = slices.DeleteFunc(chunk, func(e entry) bool { return e.ended })
		if q.Tag != "" || q.Search != "" {
			if chunk, err = rd.match(ctx, chunk, takes); err != nil {
				return nil, err
			}
		}
		if len(ended) > 0 {
			chunk = append(chunk, ended...)
			slices.SortFunc(chunk, w.order)
		}
		if q.Reason == "" {
			return chunk, nil
		}
		return rd.failedFor(ctx, chunk, q.Reason)
	})
}

// failedFor returns the messages whose error has an explanation with the reason.
func (rd *Reader) failedFor(ctx context.Context, entries []entry, reason string) (kept []entry, _ error) {
	rows, err := rd.readLog(ctx, entries)
	if err != nil {
		return nil, err
	}
	fits := map[string]bool{}
	for _, r := range rows {
		fits[r.id] = r.failedFor() == reason
	}
	for _, e := range entries {
		if fits[e.id] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// indexes are the sorted sets whose union is what the query's state, lane and account select.
func (rd *Reader) indexes(q api.OutboxQuery, paused map[string]bool) []index {
	return rd.indexesOf(q.Lane, q.Account, func(name string, add func(state string, ended bool)) {
		for _, st := range []string{stateWaiting, stateActive, stateScheduled, stateDelayed, stateFailed} {
			if inState(q.State, shown(st, paused[name])) {
				add(st, false)
			}
		}
	})
}

// indexesOf returns the indexes of an account, or of all, that pick adds for each lane's queue of a
// partition. An index is for a live message's state or an ended message's result. only selects a lane; empty
// means both.
func (rd *Reader) indexesOf(only api.Lane, account string,
	pick func(name string, add func(state string, ended bool))) (all []index) {
	for p := range rd.DB.Partitions() {
		for _, lane := range lanesOf(queue.Submit) {
			if only != "" && only != lane {
				continue
			}
			pick(laneQueue(lane, p), func(state string, ended bool) {
				key := rd.keys.index(p, string(lane), state)
				if ended {
					key = rd.keys.logged(p, string(lane), state)
				}
				all = append(all, index{of(key, account), ended, p, lane, account, state})
			})
		}
	}
	return all
}

// findKept is find for ended messages whose tasks the queue still shows. It reads all of them.
func (rd *Reader) findKept(ctx context.Context, q api.OutboxQuery, _ map[string]bool, _ int) (findings,
	error) {
	w := window{page: q.Page, size: q.PageSize, cursor: q.Cursor}
	from, err := w.from()
	if err != nil {
		return findings{}, err
	}
	state, result := queue.Completed, resultSent
	if q.State == api.Failed {
		state, result = queue.Archived, resultFailed
	}
	all, err := rd.keptJobs(ctx, q, state, result)
	slices.SortFunc(all, w.order)
	return w.part(all, from), err
}

// keptJobs returns the ended messages with a result that a query selects and whose tasks are in a state.
func (rd *Reader) keptJobs(ctx context.Context, q api.OutboxQuery, state queue.State, result string) ([]entry,
	error) {
	var all []entry
	for _, lane := range lanesOf(queue.Submit) {
		for p := range rd.DB.Partitions() {
			tasks, err := rd.Control.IDs(ctx, laneQueue(lane, p), state)
			if err != nil {
				return nil, err
			}
			for _, t := range tasks {
				all = append(all, entry{id: messageOf(t), ended: true})
			}
		}
	}
	rows, err := rd.readLog(ctx, all)
	all = all[:0]
	for _, r := range rows {
		at := redisdb.Time(r.created)
		if r.state == result && (q.Lane == "" || r.lane == q.Lane) &&
			(q.Account == "" || r.envelope.Account == q.Account) && tagged(r.envelope, q.Tag) &&
			mentions(r.envelope, q.Search) && !at.Before(q.CreatedAfter) &&
			(q.CreatedBefore.IsZero() || at.Before(q.CreatedBefore)) {
			all = append(all, entry{id: r.id, created: r.created, ended: true})
		}
	}
	return all, err
}

// shown is a state of the record as the API shows it.
func shown(st string, paused bool) api.State {
	switch {
	case st == stateWaiting && paused:
		return api.Paused
	case st == resultSent:
		return api.Completed
	}
	return api.State(st)
}

// OnlyDelayed selects delayed messages without the scheduled ones, for the pages. Clients select both with
// delayed, as EmailEngine's do, which has only this state.
const OnlyDelayed api.State = "onlyDelayed"

// inState reports whether the state of a query selects messages in a state.
func inState(asked, state api.State) bool {
	return asked == "" || asked == state || asked == api.Delayed && state == api.Scheduled ||
		asked == OnlyDelayed && state == api.Delayed
}

// match reads envelopes and keeps the entries whose envelope takes accepts.
func (rd *Reader) match(ctx context.Context, entries []entry, takes func(envelope) bool) ([]entry, error) {
	pipe := rd.DB.Client().Pipeline()
	got := make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		got[i] = pipe.Get(ctx, rd.keys.envelope(rd.partition(e.id), e.id))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	var kept []entry
	for i, e := range entries {
		raw, err := got[i].Bytes()
		if err != nil {
			continue // ended since
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

// tagged reports whether a message has a tag. Every message has the empty tag.
func tagged(e envelope, tag string) bool { return tag == "" || slices.Contains(e.Tags, tag) }

// mentions reports whether a text is part of a message's subject or of one of its addresses.
func mentions(e envelope, text string) bool {
	return strings.Contains(strings.ToLower(e.Subject), strings.ToLower(text)) ||
		message.AddressHas(e.From, text) ||
		slices.ContainsFunc(e.To, func(to string) bool { return message.AddressHas(to, text) })
}

// seekFrom is the number of entries to skip from which on look calls seek.
const seekFrom = 1000

// seek narrows a window so that it begins shortly before the entries after the first skip. It returns how
// many are left to skip. It finds the time of that entry by bisection. Otherwise a page in the middle of a
// million entries would read half a million of each index.
func (rd *Reader) seek(ctx context.Context, w window, skip int) (window, int, error) {
	first, last, err := w.span(ctx, rd.DB.Client())
	if err != nil {
		return w, skip, err
	}
	near, left := w, skip
	for low, high := int64(0), last-first+1; high-low > 1 && left > seekFrom; {
		step := (low + high) / 2
		passed, rest := w.split(first, last, step)
		n, err := rd.entries(ctx, passed)
		if err != nil {
			return w, skip, err
		}
		if n > skip {
			high = step
			continue
		}
		low, near, left = step, rest, skip-n
	}
	return near, left, nil
}

// split cuts a window in two, step milliseconds after the beginning of its list.
func (w window) split(first, last, step int64) (passed, rest window) {
	passed, rest = w, w
	if w.newest {
		at := redisdb.Time(last - step + 1)
		passed.after, rest.before = later(w.after, at), earlier(w.before, at)
	} else {
		at := redisdb.Time(first + step)
		passed.before, rest.after = earlier(w.before, at), later(w.after, at)
	}
	return passed, rest
}

// later and earlier treat the zero time as no limit.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// span returns when the first and the last entry of the window's indexes were created, in Unix milliseconds.
func (w window) span(ctx context.Context, c redis.Cmdable) (first, last int64, _ error) {
	pipe := c.Pipeline()
	var ends []*redis.ZSliceCmd
	for _, ix := range w.indexes {
		ends = append(ends, pipe.ZRangeWithScores(ctx, ix.key, 0, 0), pipe.ZRangeWithScores(ctx, ix.key, -1, -1))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, 0, fmt.Errorf("read the ends of indexes: %w", err)
	}
	for _, end := range ends {
		for _, z := range end.Val() {
			at := int64(z.Score)
			if first == 0 || at < first {
				first = at
			}
			last = max(last, at)
		}
	}
	return first, last, nil
}

// entries counts the entries of a window.
func (rd *Reader) entries(ctx context.Context, w window) (n int, _ error) {
	pipe := rd.DB.Client().Pipeline()
	sendingOf, counts := rd.sendingOf(ctx, pipe, w.indexes), make([]func([]entry) int, len(w.indexes))
	for i, ix := range w.indexes {
		counts[i] = w.count(ctx, pipe, ix)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("count entries of indexes: %w", err)
	}
	for i, ix := range w.indexes {
		n += counts[i](sendingOf(ix))
	}
	return n, nil
}
