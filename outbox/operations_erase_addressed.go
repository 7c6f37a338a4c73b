package outbox

import (
	"context"
	"slices"
	"strings"
)

// forgetAddressed removes the notes of an erased address: those of messages that are gone, or not to it
// any more.
func (d *Operations) forgetAddressed(ctx context.Context, w Whom) error {
	at := notedOf(w.Address())
	for p := range d.DB.Partitions() {
		key := d.keys.addressed(p, at.bucket)
		notes, err := d.DB.Client().LRange(ctx, key, 0, -1).Result()
		if err != nil {
			return redisError(err, "read to whom messages were")
		}
		notes = slices.DeleteFunc(notes, func(note string) bool { return !strings.HasPrefix(note, at.tag) })
		for some := range slices.Chunk(notes, scanChunk) {
			if err := d.forgetNotes(ctx, key, at, some); err != nil {
				return redisError(err, "erase to whom messages were")
			}
		}
	}
	return nil
}

func (d *Operations) forgetNotes(ctx context.Context, key string, at noted, notes []string) error {
	ids := make([]string, len(notes))
	for i, note := range notes {
		ids[i] = note[2*addressedTag:]
	}
	rows, err := d.readLog(ctx, entriesOf(ids))
	if err != nil {
		return err
	}
	stay := map[string]bool{}
	for _, r := range rows {
		stay[r.id] = slices.ContainsFunc(r.envelope.To, func(to string) bool { return notedOf(to) == at })
	}
	pipe := d.DB.Client().Pipeline()
	for i, note := range notes {
		if !stay[ids[i]] {
			pipe.LRem(ctx, key, 0, note)
		}
	}
	return execRead(ctx, pipe)
}
