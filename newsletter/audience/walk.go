package audience

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// members selects subscribers of an account by list. The zero value selects all.
type members struct {
	list  *List // nil for no or any list
	state State // on the list; None for any
}

// walkPages is the number of pages that one round trip reads: some 100 KB.
const walkPages = 32

// walk calls fn for an account's subscribers from an ordinal on, in order, until fn returns false. It reads
// at most most pages; 0 means all. It returns the ordinal to continue from, and whether there are more.
// Subscribers that are changed while it runs are seen before or after their change. New subscribers are seen,
// because new ordinals are higher.
func (s *store) walk(ctx context.Context, account string, of members, from uint32, most int,
	fn func(ordinal uint32, r *record) (bool, error)) (next uint32, more bool, err error) {
	end, err := s.end(ctx, account)
	if err != nil {
		return from, false, err
	}
	for read := 0; from < end; {
		pages, err := s.pagesFrom(ctx, account, of, from, end)
		if err != nil {
			return from, false, err
		}
		for len(pages) > 0 {
			if most > 0 && read >= most {
				return max(from, pages[0]*pageSize), true, nil
			}
			batch := pages[:min(walkPages, len(pages))]
			pages = pages[len(batch):]
			if next, more, err := s.walkBatch(ctx, account, of, from, batch, fn); err != nil || more {
				return next, more, err
			}
			read += len(batch)
		}
		from = uint32(slotOf(from).chunk+1) * chunkSize
	}
	return from, false, nil
}

// end returns the first ordinal that was not given away.
func (s *store) end(ctx context.Context, account string) (uint32, error) {
	last, err := s.db.Client().HGet(ctx, ordinalsKey(), account).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, redisdb.Failed(err, "count the places of account %s", account)
	}
	return uint32(last), nil
}

// pagesFrom returns the pages of the chunk of an ordinal, from that one on, that have selected subscribers.
func (s *store) pagesFrom(ctx context.Context, account string, of members, from, end uint32) ([]uint32,
	error) {
	at := slotOf(from)
	first := uint32(at.chunk) * chunkPages
	var pages []uint32
	if of.list == nil {
		for page := at.page; page < min(first+chunkPages, slotOf(end-1).page+1); page++ {
			pages = append(pages, page)
		}
		return pages, nil
	}
	text, err := s.db.Client().Get(ctx, statesKey(of.list.Number, at.chunk)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "read the subscribers of list %s", of.list.ListID)
	}
	states, err := readStates(text)
	if err != nil {
		return nil, err
	}
	for _, page := range states.pages(of.state) {
		if page := first + uint32(page); page >= at.page {
			pages = append(pages, page)
		}
	}
	return pages, nil
}

// walkBatch calls fn for the selected subscribers of some pages. more: fn has returned false.
func (s *store) walkBatch(ctx context.Context, account string, of members, from uint32, pages []uint32,
	fn func(ordinal uint32, r *record) (bool, error)) (next uint32, more bool, err error) {
	found, err := s.loadPages(ctx, account, pages)
	if err != nil {
		return from, false, err
	}
	for i, page := range pages {
		bodies, err := split(found[i])
		if err != nil {
			return from, false, err
		}
		for slot, body := range bodies {
			ordinal := page*pageSize + uint32(slot)
			if body == nil || ordinal < from {
				continue
			}
			r, err := decode(body)
			if err != nil {
				return from, false, err
			}
			if of.list != nil {
				if state := r.stateOn(of.list.Number); state == None || of.state != None && state != of.state {
					continue
				}
			}
			if goOn, err := fn(ordinal, r); err != nil || !goOn {
				return ordinal + 1, true, err
			}
		}
	}
	return from, false, nil
}

// loadPages reads pages with one round trip. One that does not exist is empty.
func (s *store) loadPages(ctx context.Context, account string, pages []uint32) ([]string, error) {
	pipe := s.db.Client().Pipeline()
	found := make([]*redis.StringCmd, len(pages))
	for i, page := range pages {
		found[i] = pipe.Get(ctx, pageKey(account, page))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "read subscribers of account %s", account)
	}
	texts := make([]string, len(pages))
	for i, cmd := range found {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, redisdb.Failed(err, "read subscribers of account %s", account)
		}
		texts[i] = cmd.Val()
	}
	return texts, nil
}
