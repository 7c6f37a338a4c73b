package outbox

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// The sweeper's clockwork. A crash is repaired within Lease + sweepEvery, so the lease and this must stay below ten seconds together.
const (
	sweepEvery = time.Second
	sweepBatch = 1000             // messages a script handles in one go
	owedAfter  = 3 * time.Second  // how long a message may wait for its task to be noted as queued
	tidyEvery  = 30 * time.Second // retention and trimming
	tidyRounds = 30               // batches of one kind and partition in one go: what is left waits for the next sweep
	outageGap  = 3 * time.Second  // a pause between good sweeps that means Redis was away, or this process stopped
)

// sweeper repairs what a crash left behind. Every process runs one; each step is harmless when two do it at once.
type sweeper struct {
	b        *Outbox
	lastGood time.Time        // when mend last succeeded
	careful  time.Time        // until then no lease is ended: its holder may just be coming back
	tidied   time.Time        // when retention was last applied
	places   map[string]place // how far each index has been compared with the queue
}

func newSweeper(b *Outbox) *sweeper { return &sweeper{b: b, places: map[string]place{}} }

// run mends and compares until ctx ends, each at its own pace: the dead are to be noticed in time, however many messages wait.
func (s *sweeper) run(ctx context.Context) {
	var both sync.WaitGroup
	for _, step := range []func(context.Context) error{s.mend, s.compare} {
		both.Go(func() { s.repeat(ctx, step) })
	}
	both.Wait()
}

func (s *sweeper) repeat(ctx context.Context, step func(context.Context) error) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.b.log.WarnContext(ctx, "sweep incomplete", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// mend wakes what lost its worker or its wake-up. After an outage it waits for a lease's length before it ends any: whoever holds one has
// an answer to record first, and would find its message in doubt for no reason.
func (s *sweeper) mend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.b.clock.calibrate(ctx, s.b.DB.Client()); err != nil {
		return err
	}
	now := s.b.clock.Now()
	if !s.lastGood.IsZero() && now.Sub(s.lastGood) > outageGap {
		s.careful = now.Add(s.b.opts.Lease / 2)
	}
	steps := []func(context.Context, int, time.Time) error{s.ripen, s.owed, s.release}
	if !now.Before(s.careful) {
		steps = append([]func(context.Context, int, time.Time) error{s.lapse}, steps...)
	}
	for p := range s.b.DB.Partitions() {
		for _, step := range steps {
			if err := step(ctx, p, now); err != nil {
				return err
			}
		}
	}
	s.lastGood = s.b.clock.Now() // not now: a round that has much to do is no outage
	return nil
}

// compare holds the records against the queue, and applies retention now and then.
func (s *sweeper) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.b.clock.ready(ctx, s.b.DB.Client()); err != nil {
		return err
	}
	now := s.b.clock.Now()
	for p := range s.b.DB.Partitions() {
		if err := s.match(ctx, p, now); err != nil {
			return err
		}
	}
	if now.Sub(s.tidied) > tidyEvery {
		done, err := s.tidy(ctx, now)
		if err != nil {
			return err
		}
		if done {
			s.tidied = now
		}
	}
	return nil
}

// lapse ends the leases that ran out and wakes their messages.
func (s *sweeper) lapse(ctx context.Context, p int, now time.Time) error {
	rows, err := s.script(ctx, lapseScript, p, 3, millis(now), sweepBatch)
	if err != nil {
		return err
	}
	woken := make([]wakeup, len(rows))
	for i, r := range rows {
		woken[i] = wakeup{id: r[0], lane: r[1], epoch: r[2]}
		s.b.mail.recovered(ctx, r[0], "its worker died")
		s.b.metrics.recovered.WithLabelValues("lease").Inc()
	}
	s.b.enqueue(ctx, woken...)
	return nil
}

// ripen lets delayed messages whose time has come read as waiting.
func (s *sweeper) ripen(ctx context.Context, p int, now time.Time) error {
	return ripenScript.Run(ctx, s.b.DB.Client(), []string{s.b.store.events(p)}, millis(now), sweepBatch).Err()
}

// owed queues the tasks that accept or a wake-up could not.
func (s *sweeper) owed(ctx context.Context, p int, now time.Time) error {
	rows, err := s.script(ctx, owedScript, p, 4, millis(now.Add(-owedAfter)), sweepBatch)
	if err != nil {
		return err
	}
	due := make([]wakeup, len(rows))
	for i, r := range rows {
		ms, _ := strconv.ParseInt(r[3], 10, 64)
		due[i] = wakeup{id: r[0], lane: r[1], epoch: r[2], due: fromMillis(ms)}
		s.b.metrics.recovered.WithLabelValues("owed").Inc()
	}
	s.b.enqueue(ctx, due...)
	return nil
}

// tidy applies retention: dead letters, the log, events that every reader has read. It answers false when there was more to do than
// one round may take.
func (s *sweeper) tidy(ctx context.Context, now time.Time) (done bool, _ error) {
	done = true
	for p := range s.b.DB.Partitions() {
		for _, step := range []func(context.Context, int, time.Time) (int, error){s.expireLetters, s.expireLog} {
			for round := 0; ; round++ {
				if round == tidyRounds {
					done = false
					break
				}
				n, err := step(ctx, p, now)
				if err != nil {
					return false, err
				}
				if n < sweepBatch {
					break
				}
			}
		}
		trimmed, err := s.trim(ctx, p)
		if err != nil {
			return false, err
		}
		done = done && trimmed
	}
	return done, nil
}

// expireLetters forgets dead letters that are too old or too many, and answers how many it looked at.
func (s *sweeper) expireLetters(ctx context.Context, p int, now time.Time) (int, error) {
	rdb, key := s.b.DB.Client(), redisdb.Key(p, "dead")
	before := now.Add(-max(s.b.opts.KeepDeadLetters, 0))
	ids, err := rdb.ZRangeArgs(ctx, redis.ZRangeArgs{Key: key, ByScore: true, Start: "-inf", Stop: millis(before), Count: sweepBatch}).Result()
	if err != nil {
		return 0, fmt.Errorf("read old dead letters: %w", err)
	}
	if len(ids) == 0 {
		n, err := rdb.ZCard(ctx, key).Result()
		surplus := int(n) - s.b.share(s.b.opts.MaxDeadLetters)
		if err != nil || surplus <= 0 {
			return 0, err
		}
		if ids, err = rdb.ZRange(ctx, key, 0, int64(min(surplus, sweepBatch))-1).Result(); err != nil {
			return 0, fmt.Errorf("read surplus dead letters: %w", err)
		}
	}
	_, err = s.b.cancelEach(ctx, entriesOf(ids), reasonRetention, func(r row) bool { return r.state == stateFailed }, s.b.forget)
	return len(ids), err
}

// expireLog takes ended messages out of the log that are too old or too many, and answers how many.
func (s *sweeper) expireLog(ctx context.Context, p int, now time.Time) (int, error) {
	before := now.Add(-max(s.b.opts.KeepEnded, 0))
	return purgeScript.Run(ctx, s.b.DB.Client(), []string{s.b.store.events(p)}, millis(before), s.b.share(s.b.opts.MaxEnded), sweepBatch).Int()
}

// trim keeps the event stream within bounds, and never drops an event some reader has yet to read. It answers false when there was more
// to drop: Redis drops 10,000 in one go, and a busy outbox makes more than that between two rounds.
func (s *sweeper) trim(ctx context.Context, p int) (done bool, _ error) {
	rdb, key := s.b.DB.Client(), s.b.store.events(p)
	n, err := rdb.XLen(ctx, key).Result()
	if err != nil || int(n) <= s.b.opts.MaxEvents {
		return true, err
	}
	groups, err := rdb.XInfoGroups(ctx, key).Result()
	if err != nil {
		return false, fmt.Errorf("read groups of %s: %w", key, err)
	}
	keep := int64(s.b.opts.MaxEvents)
	for _, g := range groups {
		keep = max(keep, g.Lag+g.Pending)
	}
	for range tidyRounds {
		gone, err := rdb.XTrimMaxLenApprox(ctx, key, keep, 0).Result()
		if err != nil || gone == 0 {
			return true, err
		}
	}
	return false, nil
}

// script runs a script about a whole partition and reads its answer as rows of equal length.
func (s *sweeper) script(ctx context.Context, script *redisdb.Script, p, width int, args ...any) ([][]string, error) {
	flat, err := script.Run(ctx, s.b.DB.Client(), []string{s.b.store.events(p)}, args...).StringSlice()
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "", "sweep partition %d", p)
	}
	rows := make([][]string, 0, len(flat)/width)
	for i := 0; i+width <= len(flat); i += width {
		rows = append(rows, flat[i:i+width])
	}
	return rows, nil
}
