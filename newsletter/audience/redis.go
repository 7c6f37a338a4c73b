package audience

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	claimScript = redisdb.NewScript[[]string, []string]("audience/claim",
		redisdb.Source(lua, "lua/claim.lua"))
	writeScript = redisdb.NewScript[writeArgs, string]("audience/write",
		redisdb.Source(lua, "lua/write.lua"))
	internScript = redisdb.NewScript[[]string, string]("audience/intern",
		redisdb.Source(lua, "lua/intern.lua"))
)

type writeArgs struct {
	First   int
	Chunk   int
	Changes []any // see lua/write.lua
}

// listChange is a record change's effect on a list.
type listChange struct {
	list  uint32 // its number
	state State
	since uint32   // for a pending state
	tell  *telling // the event of it; nil if there is none
}

// change is a change of one record.
type change struct {
	ordinal uint32
	old     *record // nil if there is none
	new     *record // nil if it is removed
	lists   []listChange
	events  []string // as they are in the stream
}

// values returns the change as write.lua reads it.
func (c *change) values() []any {
	version, body := "", []byte(nil)
	if c.old != nil {
		version = string(binary.BigEndian.AppendUint32(nil, c.old.version))
	}
	if c.new != nil {
		body = c.new.encode()
	}
	values := append(make([]any, 0, 5+3*len(c.lists)+len(c.events)), slotOf(c.ordinal).index, version, body,
		len(c.lists), len(c.events))
	for _, l := range c.lists {
		values = append(values, l.list, int(l.state), l.since)
	}
	for _, line := range c.events {
		values = append(values, line)
	}
	return values
}

// addWrite adds the changes of one page to a pipeline. The answer has a 1 for each that was made, a 2 for
// each that was made before, and a 0 for each whose record has another version.
func (s *store) addWrite(p *redisdb.Pipeline, account string, changes []*change) *redisdb.Reply[string] {
	at := slotOf(changes[0].ordinal)
	var values []any
	for _, c := range changes {
		values = append(values, c.values()...)
	}
	keys := []string{pageKey(account, at.page), totalsKey(account, shardOf(at.chunk)), s.eventsKey(at.chunk)}
	return writeScript.Add(p, keys, writeArgs{First: int(at.page%chunkPages) * pageSize, Chunk: at.chunk,
		Changes: values})
}

// write makes one change, and reports whether the record still had the old version.
func (s *store) write(ctx context.Context, account string, c *change) (bool, error) {
	pipe := s.db.ReplicatedPipeline()
	reply := s.addWrite(pipe, account, []*change{c})
	err := pipe.Exec(ctx)
	done, own := reply.Read()
	if own != nil {
		err = own
	}
	if err != nil {
		return false, redisdb.Failed(err, "write subscriber %s of account %s", idOf(c.ordinal), account)
	}
	return done != "0", nil
}

// load returns the record of an ordinal; nil if there is none.
func (s *store) load(ctx context.Context, account string, ordinal uint32) (*record, error) {
	at := slotOf(ordinal)
	page, err := s.db.Client().Get(ctx, pageKey(account, at.page)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "read subscriber %s of account %s", idOf(ordinal), account)
	}
	bodies, err := split(page)
	if err != nil || bodies[at.index] == nil {
		return nil, err
	}
	return decode(bodies[at.index])
}

// find returns the ordinal that the index has for a folded address, as it is written there ("": none), and
// its record, which is nil if the index is ahead or behind. The record may be one that an earlier version
// indexed by the decomposed address.
func (s *store) find(ctx context.Context, account, address string) (has string, ordinal uint32,
	r *record, err error) {
	for n, form := range message.AddressForms(address) {
		in, at, found, err := s.findForm(ctx, account, form)
		if n == 0 || found != nil {
			ordinal, r = at, found
		}
		if n == 0 {
			has = in
		}
		if err != nil || r != nil {
			return has, ordinal, r, err
		}
	}
	return has, ordinal, nil, nil
}

// findForm is find for a form of an address in the index.
func (s *store) findForm(ctx context.Context, account, address string) (has string, ordinal uint32, r *record,
	err error) {
	at := indexed(account, address)
	has, err = s.db.Client().HGet(ctx, at.key, at.field).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", 0, nil, nil
	case err != nil:
		return "", 0, nil, redisdb.Failed(err, "look for a subscriber of account %s", account)
	}
	n, err := strconv.ParseUint(has, 10, 32)
	if err != nil {
		return "", 0, nil, errRecord
	}
	r, err = s.load(ctx, account, uint32(n))
	if r != nil && folded(r.email) != norm.NFC.String(address) {
		r = nil
	}
	return has, uint32(n), r, err
}

// claim gives a folded address to an ordinal instead of the current one, and returns its ordinal then.
func (s *store) claim(ctx context.Context, account, address, before, after string) (string, error) {
	at := indexed(account, address)
	has, err := claimScript.RunReplicated(ctx, s.db, []string{at.key}, []string{at.field, before, after})
	if err == nil && len(has) != 1 {
		err = errRecord
	}
	if err != nil {
		return "", redisdb.Failed(err, "index a subscriber of account %s", account)
	}
	return has[0], nil
}

// nextOrdinals takes n ordinals of an account, and returns the first. Every new subscriber needs one, so this
// checks the account's quota. Subscribers whose record is not written yet are not counted.
func (s *store) nextOrdinals(ctx context.Context, account string, n int) (uint32, error) {
	if s.room != nil {
		err := s.room(ctx, account, func() (used, more int, err error) {
			used, err = s.Count(ctx, account)
			return used, n, err
		})
		if err != nil {
			return 0, err
		}
	}
	last, err := s.db.Client().HIncrBy(ctx, ordinalsKey(), account, int64(n)).Result()
	if err != nil {
		return 0, redisdb.Failed(err, "take a place for a subscriber of account %s", account)
	}
	return uint32(last - int64(n)), nil
}
