package redisdb

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Follow names the stream to follow and the group that reads it.
type Follow struct {
	// the kind of the stream's key, as in Key(partition, Stream)
	Stream string
	// the reader. All processes that name the same group share the work; each group sees every entry
	Group string
	// how many partitions are followed, from the first on; defaults to the DB's
	Partitions int
	Batch      int // maximum of entries passed together; defaults to 256
	// how long to let entries gather after a read that brought less than a full batch. So a busy stream is read
	// in fewer round trips. Zero means not at all. An entry that comes after a silence is not delayed
	Gather time.Duration
	// asked after each Gather, with the time that entries have gathered so far: whether to continue. Nil means
	// no. While entries gather, nothing is taken over from processes that died
	More func(ctx context.Context, gathered time.Duration) bool
	// how long a silent process keeps the entries it was given before others take them; defaults to 6 seconds
	ClaimAfter time.Duration
}

// Entry is one entry of a stream.
type Entry struct {
	ID        string // as Redis made it, "<milliseconds>-<n>": rising within a partition
	Partition int
	Values    map[string]any // the added values, each a string
}

// Text returns the value of a field, or "" if there is none.
func (e Entry) Text(field string) string {
	text, _ := e.Values[field].(string)
	return text
}

// Added returns when the entry was added, by the clock of Redis, in milliseconds.
func (e Entry) Added() time.Time {
	ms, _, _ := strings.Cut(e.ID, "-")
	return ParseTime(ms)
}

// Unhurried is a Follow.Gather for work that no one waits for.
const Unhurried = 250 * time.Millisecond

const (
	followBatch = 256
	claimAfter  = 6 * time.Second
	claimRounds = 3 // looks for abandoned entries within ClaimAfter
	// A group that gets nothing for this long rests. A read can't be interrupted, so it also bounds how long
	// Follow takes to end.
	blockFor         = 500 * time.Millisecond
	restMost         = time.Minute     // then the group is read again, whatever became of the stream
	followGrace      = 5 * time.Second // for fn to finish its entries when ctx ends
	followRetryMin   = 100 * time.Millisecond
	followRetryMax   = 5 * time.Second
	tidyEvery        = 5 * time.Minute
	consumerGoneFor  = time.Hour
	farewellPatience = 2 * time.Second
)

// Follow passes every entry of a stream to fn, in every partition, until ctx ends; then it returns nil. A
// new group begins with the oldest entry that the stream still has.
//
// Entries are acknowledged after fn returned nil. So fn sees each at least once, and must accept repeated
// entries after a crash or an error. The entries of a partition come in order, in batches, one call of fn
// at a time; calls for different partitions overlap. The context of fn outlives ctx by up to 5 seconds, so
// that work in hand is finished when the process stops.
//
// When fn fails it is called again after a pause that grows to 5 seconds. After an unavailability error
// ([Unavailable], or of kind fault.Unavailable) the whole batch is repeated, in order, as long as that lasts.
// After any other repeated error, entries are tried one by one. Entries that fail alone are set aside and
// retried later, up to five minutes apart, never dropped, while the others continue.
//
// Entries given to a process that died are taken over within 1⅓ × ClaimAfter. A group or stream deleted
// under it is made again.
func (db *DB) Follow(ctx context.Context, f Follow,
	fn func(ctx context.Context, entries []Entry) error) error {
	if f.Stream == "" || f.Group == "" {
		return errors.New("follow a stream: it needs the name of a stream and of a group")
	}
	if f.Batch <= 0 {
		f.Batch = followBatch
	}
	if f.ClaimAfter <= 0 {
		f.ClaimAfter = claimAfter
	}
	consumer := consumerName()
	var readers sync.WaitGroup
	for partition := range cmp.Or(f.Partitions, db.partitions) {
		r := &reader{
			db: db, Follow: f, fn: fn, partition: partition, key: Key(partition, f.Stream), consumer: consumer,
			tidied: time.Now(), cursor: allClaimed, aside: make(map[string]*setAside),
			log: db.log.With("stream", f.Stream, "group", f.Group, "partition", partition),
		}
		readers.Go(func() { r.run(ctx) })
	}
	readers.Wait()
	return nil
}

// Unfollow removes a group from a stream, in every partition, so that nothing is kept for a reader that no
// longer exists.
func (db *DB) Unfollow(ctx context.Context, stream, group string) error {
	var all error
	for p := range db.Partitions() {
		err := db.client.XGroupDestroy(ctx, Key(p, stream), group).Err()
		if err != nil && !strings.Contains(err.Error(), "requires the key to exist") { // nothing was ever added
			all = errors.Join(all, fmt.Errorf("remove the group %s of partition %d: %w", group, p, err))
		}
	}
	return all
}

// consumerName returns a unique name, because two readers with one name would acknowledge each other's
// entries. Host and process are for the operator.
func consumerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:8])
}

// run reads and handles entries until ctx ends. Entries already read are handled even then.
func (r *reader) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(followGrace, cancel) })()
	wait := followRetryMin
	for ctx.Err() == nil {
		entries, err := r.next(work, time.Now())
		if err != nil {
			r.trouble(err)
			Pause(ctx, wait)
			wait = min(2*wait, readRetryMax)
			continue
		}
		r.fine()
		wait = followRetryMin
		r.handle(ctx, work, entries)
		if r.resting {
			r.rest(ctx)
		}
		if 0 < len(entries) && len(entries) < r.Batch && r.Gather > 0 {
			began := time.Now()
			for Pause(ctx, r.Gather) && r.More != nil && r.More(ctx, time.Since(began)) {
			}
		}
	}
	r.leave(work)
}

// readRetryMax is short, so that events flow again soon after Redis is back.
const readRetryMax = 2 * time.Second

// next returns the next work: abandoned entries, entries set aside that are due, or new ones, for which it
// waits a moment.
func (r *reader) next(ctx context.Context, now time.Time) ([]Entry, error) {
	if err := r.join(ctx); err != nil {
		return nil, err
	}
	if now.Sub(r.claimed) >= r.ClaimAfter/claimRounds {
		entries, err := r.claim(ctx, now)
		if err != nil || len(entries) > 0 {
			return entries, r.lostGroup(err)
		}
	}
	if err := r.retryAside(ctx, now); err != nil {
		return nil, r.lostGroup(err)
	}
	if len(r.aside) >= asideMax {
		Pause(ctx, blockFor)
		return nil, nil
	}
	block := blockFor
	if r.end != "" {
		block = -1
	}
	streams, err := r.db.blocking.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: r.Group, Consumer: r.consumer, Streams: []string{r.key, ">"}, Count: int64(r.Batch), Block: block,
	}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, r.lostGroup(err)
	}
	var entries []Entry
	if len(streams) > 0 {
		entries = r.entries(streams[0].Messages)
	}
	return entries, r.found(ctx, len(entries))
}

// entries adds the partition to the messages of Redis.
func (r *reader) entries(messages []redis.XMessage) []Entry {
	entries := make([]Entry, len(messages))
	for i, m := range messages {
		entries[i] = Entry{ID: m.ID, Partition: r.partition, Values: m.Values}
	}
	return entries
}
