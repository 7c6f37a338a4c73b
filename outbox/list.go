package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// scanChunk is how many messages a filtered list reads at a time.
const scanChunk = 1000

// List answers a page of the outbox, oldest message first. Without tag, search or dates the page is read off the indexes; with them all
// messages that the indexes leave are read, so that the total is exact.
func (b *Outbox) List(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error) {
	if q.PageSize == 0 {
		q.PageSize = 20
	}
	paused, err := b.pausedLanes(ctx)
	if err != nil {
		return api.OutboxPage{}, err
	}
	found, err := b.find(ctx, q, paused)
	if err != nil {
		return api.OutboxPage{}, away(err, "list the outbox")
	}
	rows, err := b.rows(ctx, found.page, paused)
	if err != nil {
		return api.OutboxPage{}, away(err, "read a page of the outbox")
	}
	page := api.OutboxPage{Total: found.total, Page: q.Page, Pages: pages(found.total, q.PageSize), Messages: rows}
	if found.more && len(found.page) > 0 {
		page.Cursor = found.page[len(found.page)-1].cursor()
	}
	return page, nil
}

// entry is a message as an index has it.
type entry struct {
	id      string
	created int64
}

// cursor names the place after this entry.
func (e entry) cursor() string { return strconv.FormatInt(e.created, 36) + "-" + e.id }

// after reads a cursor back.
func after(cursor string) (entry, error) {
	created, id, ok := strings.Cut(cursor, "-")
	ms, err := strconv.ParseInt(created, 36, 64)
	if !ok || err != nil {
		return entry{}, fault.InvalidFields([]fault.Field{{Key: "cursor", Message: "is not a cursor from an earlier page"}})
	}
	return entry{id: id, created: ms}, nil
}

func (e entry) compare(other entry) int {
	if e.created != other.created {
		return int(min(max(e.created-other.created, -1), 1))
	}
	return strings.Compare(e.id, other.id)
}

// findings are the entries of one page, and how many there are in all.
type findings struct {
	page  []entry
	total int
	more  bool
}

// find selects the entries of a page.
func (b *Outbox) find(ctx context.Context, q api.OutboxQuery, paused map[api.Lane]bool) (findings, error) {
	sets := b.indexes(q, paused)
	filter := newFilter(q)
	if filter == nil {
		return b.pageOf(ctx, sets, q)
	}
	return b.scan(ctx, sets, q, filter)
}

// indexes are the sorted sets whose union is what the query's state, lane and account select. An account's own set holds all states and
// lanes; it serves alone when neither is asked for.
func (b *Outbox) indexes(q api.OutboxQuery, paused map[api.Lane]bool) []string {
	var keys []string
	for p := range b.DB.Partitions() {
		if q.Account != "" && q.State == "" && q.Lane == "" {
			keys = append(keys, b.store.account(p, q.Account))
			continue
		}
		for _, lane := range []api.Lane{api.Transactional, api.Bulk} {
			if q.Lane != "" && q.Lane != lane {
				continue
			}
			for _, st := range []string{stateWaiting, stateActive, stateDelayed, stateFailed} {
				if q.State == "" || q.State == shown(st, paused[lane]) {
					keys = append(keys, b.store.index(p, string(lane), st))
				}
			}
		}
	}
	return keys
}

// shown is the state a record's state reads as.
func shown(st string, paused bool) api.State {
	if st == stateWaiting && paused {
		return api.Paused
	}
	return api.State(st)
}

// pageOf reads a page off the indexes: the heads of all sets, merged.
func (b *Outbox) pageOf(ctx context.Context, sets []string, q api.OutboxQuery) (findings, error) {
	var from entry
	skip := q.Page * q.PageSize
	if q.Cursor != "" {
		var err error
		if from, err = after(q.Cursor); err != nil {
			return findings{}, err
		}
		skip = 0
	}
	pipe := b.DB.Client().Pipeline()
	heads, counts := make([]*redis.ZSliceCmd, len(sets)), make([]*redis.IntCmd, len(sets))
	want := skip + q.PageSize + 1
	for i, key := range sets {
		counts[i] = pipe.ZCard(ctx, key)
		heads[i] = pipe.ZRangeArgsWithScores(ctx, rangeFrom(key, from, want))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return findings{}, fmt.Errorf("read indexes: %w", err)
	}
	var f findings
	var all []entry
	for i := range sets {
		f.total += int(counts[i].Val())
		all = append(all, entriesAfter(heads[i].Val(), from)...)
	}
	if len(sets) > 1 {
		slices.SortFunc(all, entry.compare)
	}
	all = all[min(skip, len(all)):]
	f.more = len(all) > q.PageSize
	f.page = all[:min(q.PageSize, len(all))]
	return f, nil
}

// rangeFrom asks for the next entries of a set. Entries of the cursor's own millisecond come again, and are left out afterwards.
func rangeFrom(key string, from entry, count int) redis.ZRangeArgs {
	return redis.ZRangeArgs{Key: key, Start: from.created, Stop: "+inf", ByScore: true, Count: int64(count) + sameMillisecond(from)}
}

// sameMillisecond allows for the entries that share the cursor's millisecond.
func sameMillisecond(from entry) int64 {
	if from.id == "" {
		return 0
	}
	return scanChunk
}

func entriesAfter(members []redis.Z, from entry) []entry {
	out := make([]entry, 0, len(members))
	for _, z := range members {
		e := entry{id: z.Member.(string), created: int64(z.Score)}
		if from.id == "" || e.compare(from) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// scan reads every message the indexes leave and keeps those the filter takes.
func (b *Outbox) scan(ctx context.Context, sets []string, q api.OutboxQuery, f *filter) (findings, error) {
	var hits []entry
	for _, key := range sets {
		members, err := b.DB.Client().ZRangeArgsWithScores(ctx, f.bounds(key)).Result()
		if err != nil {
			return findings{}, fmt.Errorf("read index: %w", err)
		}
		for chunk := range slices.Chunk(entriesAfter(members, entry{}), scanChunk) {
			kept, err := b.match(ctx, chunk, f)
			if err != nil {
				return findings{}, err
			}
			hits = append(hits, kept...)
		}
	}
	slices.SortFunc(hits, entry.compare)
	found := findings{total: len(hits)}
	var rest []entry
	if q.Cursor != "" {
		from, err := after(q.Cursor)
		if err != nil {
			return findings{}, err
		}
		start, _ := slices.BinarySearchFunc(hits, from, entry.compare)
		for start < len(hits) && hits[start].compare(from) <= 0 {
			start++
		}
		rest = hits[start:]
	} else {
		rest = hits[min(q.Page*q.PageSize, len(hits)):]
	}
	found.more = len(rest) > q.PageSize
	found.page = rest[:min(q.PageSize, len(rest))]
	return found, nil
}

// match reads the envelopes of some entries and keeps those the filter takes.
func (b *Outbox) match(ctx context.Context, entries []entry, f *filter) ([]entry, error) {
	if !f.reads() {
		return entries, nil
	}
	pipe := b.DB.Client().Pipeline()
	got := make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		p, _ := partitionOf(e.id, b.DB.Partitions())
		got[i] = pipe.Get(ctx, b.store.envelope(p, e.id))
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
		if err := json.Unmarshal(raw, &env); err != nil {
			return nil, fmt.Errorf("read envelope of message %s: %w", e.id, err)
		}
		if f.takes(env) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// execRead runs a pipeline of reads, for which a missing key is an answer.
func execRead(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, err := pipe.Exec(ctx)
	if err == nil || len(cmds) == 0 {
		return err
	}
	for _, c := range cmds {
		if err := c.Err(); err != nil && err != redis.Nil { //nolint:errorlint // go-redis documents the comparison
			return err
		}
	}
	return nil
}

func pages(total, size int) int { return (total + size - 1) / size }

// filter is what a query asks of messages that no index knows.
type filter struct {
	tag, search, account string
	after, before        time.Time
}

// newFilter answers nil when the indexes alone can serve the query.
func newFilter(q api.OutboxQuery) *filter {
	f := &filter{tag: q.Tag, search: strings.ToLower(q.Search), after: q.CreatedAfter, before: q.CreatedBefore}
	if q.Account != "" && (q.State != "" || q.Lane != "") {
		f.account = q.Account
	}
	if *f == (filter{}) {
		return nil
	}
	return f
}

// reads says whether the filter needs the envelopes.
func (f *filter) reads() bool { return f.tag != "" || f.search != "" || f.account != "" }

// bounds asks an index for the entries between the filter's dates.
func (f *filter) bounds(key string) redis.ZRangeArgs {
	r := redis.ZRangeArgs{Key: key, Start: "-inf", Stop: "+inf", ByScore: true}
	if !f.after.IsZero() {
		r.Start = strconv.FormatInt(millis(f.after), 10)
	}
	if !f.before.IsZero() {
		r.Stop = "(" + strconv.FormatInt(millis(f.before), 10)
	}
	return r
}

func (f *filter) takes(e envelope) bool {
	if f.account != "" && e.Account != f.account || f.tag != "" && !slices.Contains(e.Tags, f.tag) {
		return false
	}
	if f.search == "" || strings.Contains(strings.ToLower(e.Subject), f.search) || strings.Contains(strings.ToLower(e.From), f.search) {
		return true
	}
	return slices.ContainsFunc(e.To, func(to string) bool { return strings.Contains(strings.ToLower(to), f.search) })
}
