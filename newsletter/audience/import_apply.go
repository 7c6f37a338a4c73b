package audience

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// applyBatch applies the rows of a batch, and then counts them. Rows that a broken attempt applied are found
// again by the doubt that was stored before.
func (i *importing) applyBatch(ctx context.Context, b *batch) error {
	if err := i.s.hasRoom(ctx, i.account, b.bytes); err != nil {
		return err
	}
	if b.from >= i.state.Doubt.Until {
		i.state.Doubt = doubt{}
	}
	err := i.insist(ctx, func() error { return i.decideAll(ctx, b) })
	if err != nil {
		return err
	}
	if err := i.learn(ctx, b); err != nil {
		return err
	}
	if err := i.ask(ctx, b); err != nil {
		return err
	}
	i.count(b)
	if time.Since(i.saved) > importSaved {
		return i.insist(ctx, func() error { return i.save(ctx) })
	}
	return nil
}

// decideAll decides and applies all rows of a batch. It decides rows again if others changed them in between.
func (i *importing) decideAll(ctx context.Context, b *batch) error {
	i.earlier = i.state.Doubt
	i.earlier.Times, i.earlier.Places = slices.Clone(i.earlier.Times), slices.Clone(i.earlier.Places)
	if err := i.erased(ctx, b.rows); err != nil {
		return err
	}
	for n := range b.rows {
		if err := i.plan(ctx, &b.rows[n]); err != nil {
			return err
		}
	}
	if err := i.suppressed(ctx, b.rows); err != nil {
		return err
	}
	for try := range tries {
		var todo []*row
		for n := range b.rows {
			if b.rows[n].result == undecided {
				todo = append(todo, &b.rows[n])
			}
		}
		if len(todo) == 0 {
			return nil
		}
		if try > 0 && !redisdb.Pause(ctx, importConflict) {
			return context.Cause(ctx)
		}
		if err := i.round(ctx, b, todo, try); err != nil {
			return err
		}
	}
	for n := range b.rows {
		if r := &b.rows[n]; r.result == undecided {
			r.result, r.fault = bad, "is being changed by others; import it again"
		}
	}
	return nil
}

// round decides the rows of todo, and applies what it decided. A row stays undecided if somebody else changed
// its subscriber in between.
func (i *importing) round(ctx context.Context, b *batch, todo []*row, try int) error {
	if err := i.find(ctx, todo); err != nil {
		return err
	}
	at := seconds(i.s.now())
	proof, err := i.proof(ctx, i.terms)
	if err != nil {
		return err
	}
	if err := i.takePlaces(ctx, b, todo, at); err != nil {
		return err
	}
	changes := make([]*change, 0, len(todo))
	rows := make([]*row, 0, len(todo))
	for _, r := range todo {
		if !i.o.DryRun && r.old == nil && !i.state.Doubt.made(r.ordinal) && (r.ordinal == noOrdinal ||
			try < tries/2) {
			continue // somebody else makes this subscriber now, or died while making it
		}
		c, err := i.change(ctx, r, proof, at)
		if err != nil {
			return err
		}
		if c != nil {
			changes, rows = append(changes, c), append(rows, r)
		}
	}
	return i.write(ctx, rows, changes)
}

// proof returns the proof of subscriptions. Dry runs store no words.
func (i *importing) proof(ctx context.Context, t terms) (subscription, error) {
	if i.o.DryRun {
		return subscription{since: seconds(i.s.now())}, nil
	}
	return i.s.proof(ctx, i.account, t)
}

// noOrdinal is the ordinal of a row whose address has no place in this import.
const noOrdinal = 1<<32 - 1

// find looks for the subscribers of rows.
func (i *importing) find(ctx context.Context, todo []*row) error {
	pipe := i.s.db.Client().Pipeline()
	found := make([][]*redis.StringCmd, len(todo))
	for n, r := range todo {
		for _, form := range message.AddressForms(r.address) {
			at := indexed(i.account, form)
			found[n] = append(found[n], pipe.HGet(ctx, at.key, at.field))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return redisdb.Failed(err, "look for subscribers of account %s", i.account)
	}
	var pages []uint32
	for n, r := range todo {
		r.place, r.ordinal, r.old = "", noOrdinal, nil
		text, err := found[n][0].Result()
		if r.older = errors.Is(err, redis.Nil) && len(found[n]) > 1; r.older {
			text, err = found[n][1].Result()
		}
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return redisdb.Failed(err, "look for a subscriber of account %s", i.account)
		}
		ordinal, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return errRecord
		}
		r.place, r.ordinal = text, uint32(ordinal)
		pages = append(pages, slotOf(r.ordinal).page)
	}
	if len(pages) == 0 {
		return nil
	}
	return i.loadRows(ctx, todo, pages)
}

// loadRows reads the records of rows that have a place. The place of another subscriber, whose address was
// changed, does not count.
func (i *importing) loadRows(ctx context.Context, todo []*row, pages []uint32) error {
	slices.Sort(pages)
	pages = slices.Compact(pages)
	texts, err := i.s.loadPages(ctx, i.account, pages)
	if err != nil {
		return err
	}
	bodies := make(map[uint32][pageSize][]byte, len(pages))
	for n, page := range pages {
		if bodies[page], err = split(texts[n]); err != nil {
			return err
		}
	}
	for _, r := range todo {
		if r.place == "" {
			continue
		}
		at := slotOf(r.ordinal)
		body := bodies[at.page][at.index]
		if body == nil {
			continue // a creation that was interrupted, or is in progress
		}
		if r.old, err = decode(body); err != nil {
			return err
		}
		if folded(r.old.email) != r.address {
			if r.old, r.ordinal = nil, noOrdinal; r.older {
				r.place = ""
			}
		}
	}
	return nil
}

// takePlaces gives ordinals to rows without one. It stores the progress with these ordinals first: after a
// crash they show which subscribers this import made.
func (i *importing) takePlaces(ctx context.Context, b *batch, todo []*row, at uint32) error {
	if i.o.DryRun {
		return nil
	}
	var without []*row
	for _, r := range todo {
		if r.ordinal == noOrdinal {
			without = append(without, r)
		}
	}
	d := &i.state.Doubt
	d.Until = max(d.Until, b.lines)
	if !slices.Contains(d.Times, at) {
		d.Times = append(d.Times, at)
	}
	first := uint32(0)
	if len(without) > 0 {
		var err error
		if first, err = i.s.nextOrdinals(ctx, i.account, len(without)); err != nil {
			return err
		}
		d.Places = append(d.Places, [2]uint32{first, uint32(len(without))})
	}
	if err := i.save(ctx); err != nil || len(without) == 0 {
		return err
	}
	return i.claim(ctx, without, first)
}

// claim gives the addresses of rows to ordinals from first on, with a script for each prefix of the index. A
// row whose address somebody else has by now stays without.
func (i *importing) claim(ctx context.Context, without []*row, first uint32) error {
	var of [shards]struct {
		keys, claims []string
		rows         []int
		reply        *redisdb.Reply[[]string]
	}
	for n, r := range without {
		at := indexed(i.account, r.address)
		c := &of[at.shard]
		c.keys, c.rows = append(c.keys, at.key), append(c.rows, n)
		c.claims = append(c.claims, at.field, r.place, decimal(first+uint32(n)))
	}
	pipe := i.s.db.ReplicatedPipeline()
	for n := range of {
		if c := &of[n]; len(c.keys) > 0 {
			c.reply = claimScript.Add(pipe, c.keys, c.claims)
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "index subscribers of account %s", i.account)
	}
	for n := range of {
		c := &of[n]
		if c.reply == nil {
			continue
		}
		got, err := c.reply.Read()
		if err != nil || len(got) != len(c.rows) {
			return redisdb.Failed(cmp.Or(err, errRecord), "index subscribers of account %s", i.account)
		}
		for k, at := range c.rows {
			if ordinal := first + uint32(at); got[k] == decimal(ordinal) {
				without[at].ordinal = ordinal
			}
		}
	}
	return nil
}

// write makes changes, page by page, and sets the results of their rows.
func (i *importing) write(ctx context.Context, rows []*row, changes []*change) error {
	if len(changes) == 0 {
		return nil
	}
	order := make([]int, len(changes))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return int(changes[a].ordinal) - int(changes[b].ordinal) })
	pipe := i.s.db.ReplicatedPipeline()
	type page struct {
		rows  []int
		reply *redisdb.Reply[string]
	}
	var pages []page
	for len(order) > 0 {
		n := 1
		for n < len(order) && slotOf(changes[order[n]].ordinal).page == slotOf(changes[order[0]].ordinal).page {
			n++
		}
		of := make([]*change, n)
		for k, c := range order[:n] {
			of[k] = changes[c]
		}
		pages = append(pages, page{order[:n], i.s.addWrite(pipe, i.account, of)})
		order = order[n:]
	}
	if err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "write subscribers of account %s", i.account)
	}
	for _, p := range pages {
		done, err := p.reply.Read()
		if err != nil || len(done) != len(p.rows) {
			return redisdb.Failed(cmp.Or(err, errRecord), "write subscribers of account %s", i.account)
		}
		for k, n := range p.rows {
			i.wrote(rows[n], changes[n], done[k])
		}
	}
	return nil
}

// wrote sets the result of a row after its change: see lua/write.lua.
func (i *importing) wrote(r *row, c *change, done byte) {
	switch {
	case done == '0': // somebody else changed it
		return
	case c.old == nil && done == '2' && !i.state.Doubt.made(c.ordinal): // another import had the same line
		r.result = known
		return
	case c.old == nil || i.earlier.made(c.ordinal):
		r.result = added
	default:
		r.result = changed
	}
	i.s.metrics.changed(c)
}

// count adds a batch that was applied to the progress.
func (i *importing) count(b *batch) {
	s := &i.state
	var counts [bad + 1]int
	for n := range b.rows {
		r := &b.rows[n]
		counts[r.result]++
		if r.result != bad && r.in.says == Left {
			s.Unsubscribed++
		} else if r.result != bad && r.in.says == Pending {
			s.Pending++
		}
		if r.result == bad {
			b.wrong(r.line, r.fault)
		}
		for _, skipped := range r.decision.skipped {
			s.Skipped[skipped.Reason]++
		}
		if !i.o.DryRun {
			i.s.metrics.refused(r.decision)
		}
	}
	slices.SortStableFunc(b.errors, func(a, c api.BadLine) int { return a.Line - c.Line })
	s.Errors = append(s.Errors, b.errors[:min(len(b.errors), badShown-len(s.Errors))]...)
	s.Added, s.Changed, s.Known = s.Added+counts[added], s.Changed+counts[changed], s.Known+counts[known]
	s.Repeated, s.Bad = s.Repeated+b.repeated, s.Bad+b.bad
	s.Lines, s.Bytes, s.Sum, s.Charset = b.lines, b.bytes, b.sum, b.charset
	if !i.o.DryRun {
		m := i.s.metrics.lines
		for result, n := range map[string]int{"added": counts[added], "changed": counts[changed],
			"known": counts[known], "repeated": b.repeated, "bad": b.bad} {
			m.WithLabelValues(result).Add(float64(n))
		}
	}
}
