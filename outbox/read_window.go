package outbox

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// scanChunk is how many messages a filtered list reads at a time.
const scanChunk = 1000

// window is the part of the indexes that a page shows. The indexes are merged into one list.
type window struct {
	indexes []index
	newest  bool // newest first; else oldest first
	page    int  // from 0; ignored with a cursor
	size    int
	cursor  string
	after   time.Time     // created at this time or later; zero for any time
	before  time.Time     // created before this time; zero for any time
	most    int           // entries a scan reads; 0 for all
	within  time.Duration // after which a scan with most reads no more; 0 for no limit
}

// index is a sorted set of message ids by creation time. A state's index is for a lane, and for one account
// or all. Messages that are being sent are in the waiting set: one index is a part of it, the other is the
// rest.
type index struct {
	key       string
	ended     bool // the messages are in the log
	partition int
	lane      api.Lane
	account   string
	state     string
}

// parted reports whether an index is a part of the set of messages that wait or are being sent.
func (ix index) parted() bool { return ix.state == stateWaiting || ix.state == stateActive }

// sending asks which messages are being sent. After the pipeline was executed, the function returns the
// messages of a lane, for one account or all.
func (s *store) sending(ctx context.Context, pipe redis.Pipeliner, p int) func(api.Lane,
	string) []entry {
	got := pipe.ZRange(ctx, s.keys.leases(p), 0, -1)
	return func(lane api.Lane, account string) (all []entry) {
		for _, member := range got.Val() {
			words := strings.SplitN(member, " ", 4) // see leased in prelude.lua
			if len(words) != 4 || words[1] != string(lane) || account != "" && words[3] != account {
				continue
			}
			created, _ := strconv.ParseInt(words[2], 10, 64)
			all = append(all, entry{id: words[0], created: created})
		}
		return all
	}
}

// sendingOf asks which messages of indexes are being sent. After the pipeline was executed, the function
// returns one index's messages.
func (rd *Reader) sendingOf(ctx context.Context, pipe redis.Pipeliner,
	indexes []index) func(index) []entry {
	read := map[int]func(api.Lane, string) []entry{}
	for _, ix := range indexes {
		if ix.parted() && read[ix.partition] == nil {
			read[ix.partition] = rd.sending(ctx, pipe, ix.partition)
		}
	}
	return func(ix index) []entry {
		if !ix.parted() {
			return nil
		}
		return read[ix.partition](ix.lane, ix.account)
	}
}

// findings are the entries of one page, and the number of all.
type findings struct {
	page  []entry
	total int
	more  bool
	next  string // cursor of the page after this; empty on the last one
}

// look reads a page from the indexes: the heads of all, merged.
func (rd *Reader) look(ctx context.Context, w window) (findings, error) {
	from, err := w.from()
	if err != nil {
		return findings{}, err
	}
	skip, near := w.page*w.size, w
	if w.cursor != "" {
		skip = 0
	}
	if skip > seekFrom {
		if near, skip, err = rd.seek(ctx, w, skip); err != nil {
			return findings{}, err
		}
	}
	for spare := 50; ; {
		all, total, sending, err := rd.heads(ctx, w, near, from, skip+w.size+1+spare)
		if err != nil || sending <= spare {
			f := findings{total: total}
			f.cut(all, skip, w.size)
			return f, err
		}
		spare = sending * 2
	}
}

// heads reads the first entries of each index in a window that is near the page, in order, and counts the
// entries of the whole window. It leaves out each index's entries that are being sent, at most sending. All
// is read with one pipeline, which Redis seldom interrupts for a message that begins or ends.
func (rd *Reader) heads(ctx context.Context, w, near window, from entry, count int) (all []entry, total,
	sending int, _ error) {
	pipe := rd.DB.Client().Pipeline()
	sendingOf := rd.sendingOf(ctx, pipe, w.indexes)
	heads, counts := make([]func([]entry) []entry, len(w.indexes)), make([]func([]entry) int, len(w.indexes))
	for i, ix := range w.indexes {
		counts[i] = w.count(ctx, pipe, ix)
		heads[i] = near.head(ctx, pipe, ix, from, count)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, 0, fmt.Errorf("read indexes: %w", err)
	}
	for i, ix := range w.indexes {
		sent := sendingOf(ix)
		total += counts[i](sent)
		all = append(all, heads[i](sent)...)
		sending = max(sending, len(sent))
	}
	slices.SortFunc(all, w.order)
	return all, total, sending, nil
}

// scan reads entries in order, filters them with keep, and returns a page of the rest. Without window.most it
// reads all entries, so that the total is exact. With it, it reads that many from the cursor on and counts
// only the entries read; the cursor of the last page continues after them. With window.within, it ends with
// the page or with the time.
func (rd *Reader) scan(ctx context.Context, w window, keep func([]entry) ([]entry, error)) (findings, error) {
	from, err := w.from()
	if err != nil {
		return findings{}, err
	}
	var hits []entry
	chunk, read, began := w, 0, time.Now()
	chunk.page, chunk.size = 0, scanChunk
	if w.most == 0 {
		chunk.cursor = ""
	}
	for {
		found, err := rd.look(ctx, chunk)
		if err != nil {
			return findings{}, err
		}
		kept, err := keep(found.page)
		if err != nil {
			return findings{}, err
		}
		hits = append(hits, kept...)
		read += len(found.page)
		chunk.cursor = found.next
		if !found.more || w.most > 0 && read >= w.most ||
			w.within > 0 && (len(hits) > w.size || time.Since(began) >= w.within) {
			break
		}
	}
	f := w.part(hits, from)
	if !f.more && chunk.cursor != "" {
		f.more, f.next = true, chunk.cursor
	}
	return f, nil
}

// part returns the window's page of a sorted list.
func (w window) part(all []entry, from entry) findings {
	f, skip := findings{total: len(all)}, w.page*w.size
	if w.cursor != "" {
		skip = 0
		for skip < len(all) && w.order(all[skip], from) <= 0 {
			skip++
		}
	}
	f.cut(all, skip, w.size)
	return f
}

// cut sets the page to the part of a list after skip.
func (f *findings) cut(all []entry, skip, size int) {
	all = all[min(skip, len(all)):]
	f.more = len(all) > size
	f.page = all[:min(size, len(all))]
	if f.more && len(f.page) > 0 {
		f.next = f.page[len(f.page)-1].cursor()
	}
}

// order compares entries in the order of the list.
func (w window) order(a, b entry) int {
	n := cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.id, b.id))
	if w.newest {
		return -n
	}
	return n
}

// bounds returns the lowest and the highest score of the window's entries after from, or of all entries if
// from is zero.
func (w window) bounds(from entry) (low, high int64) {
	low, high = 0, math.MaxInt64/2
	if !w.after.IsZero() {
		low = redisdb.Millis(w.after)
	}
	if !w.before.IsZero() {
		high = redisdb.Millis(w.before) - 1
	}
	switch {
	case from.id == "":
	case w.newest:
		high = min(high, from.created)
	default:
		low = max(low, from.created)
	}
	return low, high
}

// count adds to a pipeline the count of an index' entries in the window. Afterwards the function returns it.
func (w window) count(ctx context.Context, pipe redis.Pipeliner, ix index) func(sending []entry) int {
	low, high := w.bounds(entry{})
	all := pipe.ZCount(ctx, ix.key, strconv.FormatInt(low, 10), strconv.FormatInt(high, 10))
	return func(sending []entry) int {
		n := len(w.beyond(entry{}, sending))
		if ix.state == stateActive {
			return n
		}
		return max(0, int(all.Val())-n)
	}
}

// head adds a read of an index's first entries after from to a pipeline. Afterwards the function returns
// them. It also reads entries of the same millisecond that come before from; beyond leaves them out.
func (w window) head(ctx context.Context, pipe redis.Pipeliner, ix index, from entry,
	count int) func(sending []entry) []entry {
	if ix.state == stateActive {
		return func(sending []entry) []entry { return w.beyond(from, sending) }
	}
	low, high := w.bounds(from)
	if w.newest {
		low, high = high, low
	}
	if from.id != "" {
		count += scanChunk
	}
	got := pipe.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{Key: ix.key, Start: low, Stop: high, ByScore: true,
		Rev: w.newest, Count: int64(count)})
	return func(sending []entry) []entry {
		all := make([]entry, 0, len(got.Val()))
		for _, z := range got.Val() {
			e := entry{id: z.Member.(string), created: int64(z.Score), ended: ix.ended}
			if !slices.Contains(sending, e) {
				all = append(all, e)
			}
		}
		return w.beyond(from, all)
	}
}

// beyond returns the entries that are in the window after from.
func (w window) beyond(from entry, some []entry) []entry {
	low, high := w.bounds(from)
	out := make([]entry, 0, len(some))
	for _, e := range some {
		if e.created >= low && e.created <= high && (from.id == "" || w.order(e, from) > 0) {
			out = append(out, e)
		}
	}
	return out
}

// cursor is the cursor of the page after this entry.
func (e entry) cursor() string { return strconv.FormatInt(e.created, 36) + "-" + e.id }

// from returns the entry of the window's cursor; the zero entry without one.
func (w window) from() (entry, error) {
	if w.cursor == "" {
		return entry{}, nil
	}
	e, ok := pointed(w.cursor)
	if !ok {
		return entry{}, fault.InvalidField("cursor", "is not a cursor from an earlier page")
	}
	return e, nil
}

// pointed returns the entry that a cursor is of.
func pointed(cursor string) (e entry, ok bool) {
	created, id, _ := strings.Cut(cursor, "-")
	ms, err := strconv.ParseInt(created, 36, 64)
	return entry{id: id, created: ms}, err == nil && ms >= 0 && ms <= math.MaxInt64/2 && id != ""
}

// ReadTo returns when the last message was accepted that was read for a page with this cursor, or zero if the
// cursor is invalid.
func ReadTo(cursor string) time.Time {
	if e, ok := pointed(cursor); ok {
		return redisdb.Time(e.created)
	}
	return time.Time{}
}

func pages(total, size int) int { return (total + size - 1) / size }

// pauseReason is the reason of a wait for the end of a pause.
const pauseReason = "the queue is paused"

// readyUntil returns the times in which a message was due and no attempt had begun, including times that the
// next attempt would add to its record. It also returns the message with the end of its last wait.
func (r row) readyUntil(now time.Time) (row, []span) {
	switch due := redisdb.Time(r.due); {
	case r.ended != 0 || r.state == stateFailed:
	case r.state == stateActive:
		r.status.begins(due, redisdb.Time(r.taken))
	case !due.After(now):
		r.status.begins(due, due)
		return r, append(r.status.Ready, span{r.due, forever})
	}
	return r, r.status.Ready
}

// pausedWaits returns the waits of a message for the end of a pause: times in which it was ready, and its
// queue was paused, for a second or more.
func (r row) pausedWaits(ready, pauses []span) []api.MessageEvent {
	var waits []api.MessageEvent
	for _, free := range ready {
		for _, pause := range pauses {
			both := free.overlap(pause)
			if both[1]-both[0] < shortestWait.Milliseconds() {
				continue
			}
			e := api.MessageEvent{EventID: fmt.Sprintf("%s-%d", r.id, both[0]), Event: string(waited),
				Date: redisdb.Time(both[0]), Recipients: r.envelope.To, Reason: pauseReason}
			if both[1] != forever {
				e.Until = new(redisdb.Time(both[1]))
			}
			waits = append(waits, e)
		}
	}
	return waits
}
