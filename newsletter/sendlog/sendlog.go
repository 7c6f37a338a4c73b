package sendlog

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// Log is the send log of all runs. It is safe for concurrent use.
type Log struct {
	db      *redisdb.DB
	lease   time.Duration
	version string // key of the version of the suppressions
	writes  *redisdb.Group[chunkOfRun, change, result]
}

type chunkOfRun struct {
	run   Run
	chunk int
}

// New returns the log. lease is how long a batch stays without being renewed, by default 20 s. version is the
// key of the suppressions' version; if empty, there is none, and marks do not look at it.
func New(db *redisdb.DB, lease time.Duration, version string) *Log {
	l := &Log{db: db, lease: cmp.Or(lease, 20*time.Second), version: version}
	l.writes = redisdb.NewGroup(l.write)
	return l
}

// Lease returns how long a batch stays without being renewed.
func (l *Log) Lease() time.Duration { return l.lease }

// Allow lets people of a run be marked. version orders changes of the permission: one below the last is
// ignored.
func (l *Log) Allow(ctx context.Context, r Run, version int) error {
	return l.permit(ctx, r, version, true)
}

// Deny makes marks of a run fail. When it has returned, none that succeeds begins.
func (l *Log) Deny(ctx context.Context, r Run, version int) error {
	return l.permit(ctx, r, version, false)
}

func (l *Log) permit(ctx context.Context, r Run, version int, allow bool) error {
	pipe := l.db.ReplicatedPipeline()
	for shard := range shards {
		permitScript.Add(pipe, []string{permissionKey(r, shard)}, permitArgs{Version: version, Allow: allow})
	}
	return redisdb.Failed(pipe.Exec(ctx), "allow or deny run %s", r)
}

// Claim is what a worker found in a chunk.
type Claim struct {
	Version  int       // permission version that it knows: if that changed, it gets nothing; 0 means any
	From, To int       // it looked at all offsets from From up to, not including, To
	Offsets  []int     // people to send to among these, in order
	Groups   []Group   // of each person; empty if people have no groups
	Last     bool      // the chunk ends at To
	Again    time.Time // people among them were left out until then; zero if none were
	Most     int       // people of a batch
}

// Batch is a number of people of a chunk that one worker sends to.
type Batch struct {
	Run        Run
	Chunk      int
	Offsets    []int
	number     string
	permission string // as it was when the batch was taken
}

// Claim takes the first offsets whose people wait as a batch, or returns nil if none was taken. at is then
// the position of the chunk's scan. moved means that the scan was at another place than c.From before, denied
// that permission is denied and at is not known.
func (l *Log) Claim(ctx context.Context, r Run, chunk int, c Claim) (b *Batch, at int, moved, denied bool,
	err error) {
	keys := []string{logKey(r, chunk), permissionKey(r, chunk%shards)}
	answer, err := claimScript.RunReplicated(ctx, l.db, keys,
		claimArgs{Version: c.Version, From: c.From, To: c.To, Last: c.Last, Again: c.Again, Most: c.Most,
			Lease: l.lease.Milliseconds(), Groups: letters(c.Groups...), Offsets: c.Offsets})
	if answer.Word == "BATCH" {
		b = &Batch{Run: r, Chunk: chunk, Offsets: numbers(strings.Fields(answer.Taken)), number: answer.Batch,
			permission: answer.Permission}
	}
	return b, answer.At, answer.Word == "MOVED", answer.Word == "CLOSED",
		redisdb.Failed(err, "claim people of run %s", r)
}

// ScanAgain restarts a chunk's scan, because people must be looked at that were left out.
func (l *Log) ScanAgain(ctx context.Context, r Run, chunk int) error {
	key := logKey(r, chunk) + ":counts"
	pipe := l.db.Client().TxPipeline()
	pipe.HSet(ctx, key, "at", 0)
	pipe.HDel(ctx, key, "done", "again", "later")
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "scan run %s again", r)
}

// Marking is the answer to a mark.
type Marking byte

// The answers.
const (
	Go      Marking = 'G' // write the dot
	Denied  Marking = 'C' // permission was denied since the batch was taken
	Lost    Marking = 'L' // the batch is another's
	Changed Marking = 'V' // somebody was suppressed since: ask again, and mark again
)

// Mark notes that the final dot to the person at an offset is about to be written. version is the
// suppressions' version when they were looked up. until is when the batch's lease ends, by the machine's
// clock. Marks and results that wait together are written together.
func (l *Log) Mark(ctx context.Context, b *Batch, offset int, version string) (m Marking, until time.Time,
	err error) {
	mark := change{[6]string{b.number, "2", b.permission, version}, offset}
	got, err := l.writes.Do(ctx, chunkOfRun{b.Run, b.Chunk}, mark)
	return got.word, got.until, err
}

// Move is a change of a person's state.
type Move struct {
	Offset int
	To     State
	Why    string // the last reply, if it did not end well; empty if none is kept

	Attempts int       // made, or since a replay; 0 means as before, [OneMore] one more than before
	At       time.Time // time of the last attempt; zero means now

	batch string // the person's; empty means any
	from  string // letters of the states that it is for; empty means all that may be followed
}

// OneMore is the Attempts of a move after one more attempt, anew the one of a replay.
const OneMore, anew = -1, -2

// Settle changes the states of a chunk's people, each if its state may be followed by the new one. It returns
// the changed ones. You can repeat it. Workers of batches use Record.
func (l *Log) Settle(ctx context.Context, r Run, chunk int, moves ...Move) ([]bool, error) {
	done, _, err := l.record(ctx, chunkOfRun{r, chunk}, moves)
	return done, err
}

// Record is Settle for a batch's worker. If the batch has ended, its people may be another's, and only Sent
// changes their states. So a deferred person counts as deferred only if Record says so. version is the
// suppressions' version at that time.
func (l *Log) Record(ctx context.Context, b *Batch, moves ...Move) (done []bool, version string, err error) {
	for i := range moves {
		if moves[i].To != Sent {
			moves[i].batch = b.number
		}
	}
	return l.record(ctx, chunkOfRun{b.Run, b.Chunk}, moves)
}

// record changes states. A single one waits for others.
func (l *Log) record(ctx context.Context, at chunkOfRun, moves []Move) (done []bool, version string,
	err error) {
	changes := make([]change, len(moves))
	for i, m := range moves {
		changes[i] = change{[6]string{m.batch, strconv.Itoa(int(m.To)), cmp.Or(m.from, letters(before[m.To]...)),
			m.Why, strconv.Itoa(m.Attempts), strconv.FormatInt(cmp.Or(m.At, time.Now()).Unix(), 10)}, m.Offset}
	}
	got := make([]result, 1)
	switch len(changes) {
	case 0:
		return nil, "", nil
	case 1:
		got[0], err = l.writes.Do(ctx, at, changes[0])
	default:
		got, err = l.write(ctx, at, changes)
	}
	if err != nil {
		return nil, "", err
	}
	for _, one := range got {
		done = append(done, one.word == Go)
	}
	return done, got[0].version, nil
}

// change is a change of a person, as the script takes it.
type change struct {
	head   [6]string
	offset int
}

// result is the result of a change.
type result struct {
	word    Marking
	until   time.Time // for a mark: until when it counts
	version string    // the suppressions'
}

// mostReplies is how many replies a chunk keeps: a campaign to 10 million keeps 100,000 at least.
const mostReplies = 6400

// write makes changes of people. Changes with a batch, and changes without, are made in their order.
// Neighbours of one kind go as a group.
func (l *Log) write(ctx context.Context, at chunkOfRun, all []change) ([]result, error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(all[i].head[0], all[j].head[0]) })
	args, offsets, lengths := writeArgs{Keep: mostReplies}, make([]string, len(all)), []int(nil)
	for n, i := range order {
		if head := all[i].head; n == 0 || head != all[order[n-1]].head {
			args.People, lengths = append(append(args.People, head[:]...), ""), append(lengths, 0)
		}
		last := len(lengths) - 1
		lengths[last]++
		args.People[7*last+6], offsets[n] = strconv.Itoa(lengths[last]), strconv.Itoa(all[i].offset)
	}
	args.Groups, args.People = len(lengths), append(args.People, offsets...)
	keys := []string{logKey(at.run, at.chunk), permissionKey(at.run, at.chunk%shards)}
	if l.version != "" {
		keys = append(keys, l.version)
	}
	now := time.Now()
	answer, err := writeScript.RunReplicated(ctx, l.db, keys, args)
	if err != nil {
		return nil, redisdb.Failed(err, "mark or settle %d people of run %s", len(all), at.run)
	}
	results, n := make([]result, len(all)), 0
	for group, lease := range numbers(strings.Fields(answer.Leases)) {
		for range lengths[group] {
			results[order[n]] = result{Marking(answer.Words[n]), now.Add(time.Duration(lease) * time.Millisecond),
				answer.Version}
			n++
		}
	}
	return results, nil
}

// Close ends a batch: people without a result wait again. tallies are added to the counters of the chunk, if
// the batch had not ended before.
func (l *Log) Close(ctx context.Context, b *Batch, tallies map[string]int) error {
	args := closeArgs{Batch: b.number}
	for field, n := range tallies {
		args.Tallies = append(args.Tallies, field, n)
	}
	_, err := closeScript.RunReplicated(ctx, l.db, []string{logKey(b.Run, b.Chunk)}, args)
	return redisdb.Failed(err, "close a batch of run %s", b.Run)
}

// Renew makes the leases of batches longer.
func (l *Log) Renew(ctx context.Context, batches []*Batch) error {
	byChunk := map[string][]string{}
	for _, batch := range batches {
		key := logKey(batch.Run, batch.Chunk)
		byChunk[key] = append(byChunk[key], batch.number)
	}
	pipe := l.db.Pipeline()
	for key, all := range byChunk {
		renewScript.Add(pipe, []string{key}, renewArgs{Lease: l.lease.Milliseconds(), Batches: all})
	}
	return redisdb.Failed(pipe.Exec(ctx), "renew the leases of %d batches", len(batches))
}

// ExpireLeases ends the batches of a chunk whose lease has ended. resend: people at the dot wait again; else
// they are in doubt. It returns how many people wait again, and how many are in doubt.
func (l *Log) ExpireLeases(ctx context.Context, r Run, chunk int, resend bool) (back, doubts int, err error) {
	doubt := InDoubt
	if resend {
		doubt = Waiting
	}
	answer, err := expireScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk)},
		expireArgs{Doubt: int(doubt)})
	return answer.Back, answer.Doubts, redisdb.Failed(err, "end batches of run %s", r)
}

// Owed returns deferred people of a chunk whose message the outbox may not have.
func (l *Log) Owed(ctx context.Context, r Run, chunk int) ([]int, error) {
	texts, err := l.db.Client().SMembers(ctx, logKey(r, chunk)+":owed").Result()
	return numbers(texts), redisdb.Failed(err, "read who is owed a message in run %s", r)
}

// Enqueued notes that the outbox has the message of a deferred person.
func (l *Log) Enqueued(ctx context.Context, r Run, chunk, offset int) error {
	err := l.db.Client().SRem(ctx, logKey(r, chunk)+":owed", offset).Err()
	return redisdb.Failed(err, "note a message of run %s", r)
}

// Ended settles a deferred person whose message in the outbox has finished. If it was tried again, the person
// stays deferred. Other people don't change.
func (l *Log) Ended(ctx context.Context, r Run, chunk int, m Move) error {
	m.from = letters(Deferred)
	_, err := l.Settle(ctx, r, chunk, m)
	return err
}

// Reopened makes a person deferred again whose dead letter is being replayed. Later moves count attempts from
// 1, which are added to the earlier ones.
func (l *Log) Reopened(ctx context.Context, r Run, chunk, offset int) error {
	_, err := l.Settle(ctx, r, chunk, Move{Offset: offset, To: Deferred, Attempts: anew,
		from: letters(Failed, Bounced, InDoubt)})
	return err
}

// Prove settles a person in doubt as sent, and reports whether the person was in doubt. Other people don't
// change.
func (l *Log) Prove(ctx context.Context, r Run, chunk, offset int) (bool, error) {
	done, err := l.Settle(ctx, r, chunk, Move{Offset: offset, To: Sent, from: letters(InDoubt)})
	return err == nil && done[0], err
}
