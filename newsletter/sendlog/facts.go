package sendlog

import (
	"context"

	"github.com/postroom/postroom/internal/redisdb"
)

// Note is something that became known of a person.
type Note struct {
	Offset int
	Bit    Bit
	Total  string // counter of all of its kind, including repeats; empty if none
	Once   string // counter of all but repeats, in addition to the bit's; empty if none
}

// Note sets bits of people of a chunk. It returns which were not set before.
func (l *Log) Note(ctx context.Context, r Run, chunk int, notes ...Note) ([]bool, error) {
	if len(notes) == 0 {
		return nil, nil
	}
	args := make([]any, 0, 4*len(notes))
	for _, n := range notes {
		args = append(args, n.Offset, string(n.Bit), n.Total, n.Once)
	}
	answer, err := noteScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk)}, args)
	fresh := make([]bool, len(notes))
	for i, c := range answer.Fresh {
		fresh[i] = c == '1'
	}
	return fresh, redisdb.Failed(err, "store reports of run %s", r)
}

// Recount compares a run's counters with its states and bits, replaces counters that differ, and returns how
// many it replaced. Counters of [Note.Once] stay: they changed together with the bits.
func (l *Log) Recount(ctx context.Context, r Run, end uint32) (changed int, _ error) {
	for chunk := range Chunks(end) {
		answer, err := recountScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk)}, bits)
		if err != nil {
			return changed, redisdb.Failed(err, "recount run %s", r)
		}
		changed += answer.Changed
	}
	return changed, nil
}

// ForgetPerson clears a person's bits and reply, and reports whether the run came to the person. The state
// stays: it counts the person and names no one. once has the counters of the person's notes.
func (l *Log) ForgetPerson(ctx context.Context, r Run, ordinal uint32, once map[Bit]string) (bool, error) {
	chunk, offset := ChunkOf(ordinal)
	args := forgetArgs{Offset: offset}
	for _, b := range bits {
		args.Bits = append(args.Bits, string(b), once[b])
	}
	states, err := l.StatesOf(ctx, ordinal, r)
	if err != nil || states[0] == Waiting {
		return false, err
	}
	_, err = forgetScript.RunReplicated(ctx, l.db, []string{logKey(r, chunk)}, args)
	return true, redisdb.Failed(err, "forget a person of run %s", r)
}

// Forget deletes a run's data.
func (l *Log) Forget(ctx context.Context, r Run, end uint32) error {
	pipe := l.db.Client().Pipeline()
	for chunk := range Chunks(end) {
		key := logKey(r, chunk)
		keys := []string{key, key + ":counts", key + ":batches", key + ":owed", key + ":why", key + ":tried",
			key + ":earlier", key + ":groups"}
		for _, b := range bits {
			keys = append(keys, key+":"+string(b))
		}
		batches, err := l.db.Client().ZRange(ctx, key+":batches", 0, -1).Result() // left by dead workers
		if err != nil {
			return redisdb.Failed(err, "list the batches of run %s", r)
		}
		for _, n := range batches {
			keys = append(keys, key+":batch:"+n)
		}
		pipe.Unlink(ctx, keys...)
	}
	for shard := range shards {
		pipe.Unlink(ctx, permissionKey(r, shard))
	}
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "delete the recipients of run %s", r)
}
