package outbox

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// An address's notes are read addressedPage at a time, newest first, and at most addressedMost in all.
const (
	addressedPage = 5_000
	addressedMost = 100_000
)

// To returns the newest messages to an address, live or in the log, most at most. partial: not all that
// may be to the address were looked at. Its time grows neither with the log nor with the outbox.
func (rd *Reader) To(ctx context.Context, w Whom, most int) (found []api.LoggedMessage, partial bool,
	_ error) {
	at, seen := notedOf(w.Address()), map[string]bool{}
	for from := 0; from < addressedMost; from += addressedPage {
		ids, last, err := at.read(ctx, rd.store, w.Account, from)
		if err != nil {
			return nil, false, redisError(err, "find messages to an address")
		}
		for some := range slices.Chunk(ids, 2*most) {
			// a note that moved, because one before it went, is in two pages
			some = slices.DeleteFunc(some, func(id string) bool { return seen[id] })
			rows, err := rd.readLog(ctx, entriesOf(some))
			if err != nil {
				return nil, false, redisError(err, "read messages to an address")
			}
			for _, r := range rows {
				if seen[r.id] = true; w.isTo(r) {
					found = append(found, r.logged())
				}
			}
			if len(found) >= most {
				return found[:most], false, nil
			}
		}
		if last {
			return found, false, nil
		}
	}
	return found, true, nil
}

// read returns the ids of messages that may be to an address, each once, newest first. It reads each
// partition's newest notes after the first from. last is true if there are no more.
func (at noted) read(ctx context.Context, s *store, account string, from int) (ids []string, last bool,
	_ error) {
	pipe, lists := s.DB.Client().Pipeline(), make([]*redis.StringSliceCmd, s.DB.Partitions())
	for p := range lists {
		lists[p] = pipe.LRange(ctx, s.keys.addressed(p, at.bucket), int64(-from-addressedPage), int64(-from-1))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, false, err
	}
	begins := at.tag
	if account != "" {
		begins += accountTag(account)
	}
	last = true
	for _, list := range lists {
		last = last && len(list.Val()) < addressedPage
		for _, note := range list.Val() {
			if strings.HasPrefix(note, begins) {
				ids = append(ids, note[2*addressedTag:])
			}
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) }) // ULIDs: by time
	return slices.Compact(ids), last, nil
}
