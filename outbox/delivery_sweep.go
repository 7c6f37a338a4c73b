package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// sweeper repairs what a crash left behind. Every process runs one. Two may run the same step together.
type sweeper struct {
	d        *Delivery
	lastGood time.Time         // when mend last succeeded
	careful  time.Time         // until then no lease is ended, because its holder may still record a result
	cursors  map[string]cursor // how far each index has been compared with the queue
}

func newSweeper(d *Delivery) *sweeper { return &sweeper{d: d, cursors: map[string]cursor{}} }

const (
	sweepEvery = time.Second
	sweepBatch = 1000            // messages that a script handles in one call
	owedAfter  = 3 * time.Second // how long a message may wait for its task to be noted as queued
	// time between successful sweeps that means an outage of Redis, or that this process was stopped
	outageGap = 3 * time.Second
)

// mend wakes messages that lost their worker or their task. After an outage it ends no lease for half a
// lease, because the holders record their results first. Otherwise their messages would be left in doubt for
// no reason. A quiet period looks the same, which does no harm: no lease is that old then.
func (s *sweeper) mend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.d.clock.calibrate(ctx, s.d.DB.Client()); err != nil {
		return err
	}
	now := s.d.clock.Now()
	if !s.lastGood.IsZero() && now.Sub(s.lastGood) > outageGap {
		s.careful = now.Add(s.d.opts.Lease / 2)
	}
	steps := []func(context.Context, int, time.Time) error{s.expireLeases, s.promote, s.owed, s.release}
	if now.Before(s.careful) {
		steps = steps[1:]
	}
	var busy []int
	for p := range s.d.DB.Partitions() {
		if any, err := s.d.DB.Looks().Any(ctx, s.d.keys.swept(p)...); err != nil {
			return err
		} else if !any {
			s.d.lines.replace(p, nil)
			continue
		}
		busy = append(busy, p)
		for _, step := range steps {
			if err := step(ctx, p, now); err != nil {
				return err
			}
		}
	}
	s.lastGood = s.d.clock.Now() // not now: a long sweep isn't an outage
	if now.Before(s.careful) {
		return nil
	}
	return s.expireNext(ctx, busy)
}

// expireLeases ends the leases that ran out and wakes their messages.
func (s *sweeper) expireLeases(ctx context.Context, p int, now time.Time) error {
	woken, err := sweepRun(ctx, s.d.store, expireLeasesScript, p, sweepArgs{Now: now, Most: sweepBatch})
	if err != nil {
		return err
	}
	for _, w := range woken {
		s.d.mail.recovered(ctx, w.ID, "its worker died")
		s.d.metrics.recovered.WithLabelValues("lease").Inc()
	}
	s.d.enqueue(ctx, woken...)
	return nil
}

// expireNext ends leases that run out before the next sweep as soon as they do. Their holders are dead:
// others have renewed theirs.
func (s *sweeper) expireNext(ctx context.Context, partitions []int) error {
	for _, p := range partitions {
		for ended := 0.; ; {
			first, err := s.d.DB.Client().ZRangeWithScores(ctx, redisdb.Key(p, "leases"), 0, 0).Result()
			if err != nil || len(first) == 0 || first[0].Score == ended {
				break // an error is the next sweep's, too
			}
			ended = first[0].Score
			left := redisdb.Time(int64(ended)).Sub(s.d.clock.Now())
			if left > sweepEvery || !redisdb.Pause(ctx, left+10*time.Millisecond) { // others end at nearly that time
				break
			}
			if err := s.expireLeases(ctx, p, s.d.clock.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// promote makes scheduled and delayed messages waiting once they are due.
func (s *sweeper) promote(ctx context.Context, p int, now time.Time) error {
	_, err := sweepRun(ctx, s.d.store, promoteScript, p,
		promoteArgs{Now: now, Most: sweepBatch, Window: s.d.opts.Window})
	return err
}

// owed queues the tasks that could not be queued earlier.
func (s *sweeper) owed(ctx context.Context, p int, now time.Time) error {
	owed, err := sweepRun(ctx, s.d.store, owedScript, p, owedArgs{Before: now.Add(-owedAfter), Most: sweepBatch})
	if err != nil {
		return err
	}
	s.d.metrics.recovered.WithLabelValues("owed").Add(float64(len(owed)))
	s.d.enqueue(ctx, owed...)
	return nil
}

// comparedStates are the states in which a message has a task.
var comparedStates = []string{stateWaiting, stateScheduled, stateDelayed}

// compare compares records with their tasks, a part of each index in every round. A message whose task is
// missing gets a new one: an operator emptied the queue, or Redis lost its keys.
func (s *sweeper) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.d.clock.ready(ctx, s.d.DB.Client()); err != nil {
		return err
	}
	now := s.d.clock.Now()
	for p := range s.d.DB.Partitions() {
		if any, err := s.d.DB.Looks().Any(ctx, s.d.keys.compared(p)...); err != nil {
			return err
		} else if !any {
			continue
		}
		for _, lane := range lanesOf(queue.Submit) {
			for _, state := range comparedStates {
				if err := s.match(ctx, p, lane, state, now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

const (
	matchBatch  = 2000            // records of an index compared with their tasks in one round
	matchAtMost = 3 * time.Second // how long a round continues while it finds messages to wake
	waitBefore  = 5 * time.Second // age of a record from which on its task must be in the queue
)

// match compares a part of an index, and continues while it finds messages to wake. So an emptied queue is
// filled faster than with 2,000 messages a second.
func (s *sweeper) match(ctx context.Context, p int, lane api.Lane, state string, now time.Time) error {
	key := s.d.keys.index(p, string(lane), state)
	for {
		ids, err := s.stretch(ctx, key, now)
		if err != nil || len(ids) == 0 {
			return err
		}
		woken, err := s.rewake(ctx, p, lane, ids, now)
		if err != nil || woken == 0 || s.cursors[key] == (cursor{}) || s.d.clock.Now().Sub(now) > matchAtMost {
			return err
		}
	}
}

// stretch reads the next messages of an index to compare, and moves its cursor.
func (s *sweeper) stretch(ctx context.Context, key string, now time.Time) ([]string, error) {
	at := s.cursors[key]
	members, err := s.d.DB.Client().ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: key, ByScore: true, Start: at.created, Stop: redisdb.Millis(now.Add(-waitBefore)), Offset: at.skip,
		Count: matchBatch,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("read index %s: %w", key, err)
	}
	s.cursors[key] = at.after(members)
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.Member.(string)
	}
	return ids, nil
}

// cursor is the position up to which an index was compared: a creation time in milliseconds, and skip
// messages of that millisecond.
type cursor struct{ created, skip int64 }

// after returns the cursor after the messages that were read from p, or the start after the last messages.
func (p cursor) after(members []redis.Z) cursor {
	if len(members) < matchBatch {
		return cursor{}
	}
	for _, m := range members {
		if created := int64(m.Score); created != p.created {
			p = cursor{created: created}
		}
		p.skip++
	}
	return p
}

// rewake queues a new task for each of the messages that has none. It returns how many.
func (s *sweeper) rewake(ctx context.Context, p int, lane api.Lane, ids []string, now time.Time) (int,
	error) {
	tasks, err := s.d.tasksOf(ctx, p, lane, ids)
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = taskID(t.ID, t.Epoch)
	}
	states, err := s.d.Control.States(ctx, laneQueue(lane, p), names...)
	if err != nil {
		return 0, err
	}
	pipe := s.d.DB.Pipeline()
	epochs := make([]*redisdb.Reply[string], len(tasks)) // for tasks that are gone
	for i, st := range states {
		if st == "" || st == queue.Archived || st == queue.Completed {
			epochs[i] = rewakeScript.Add(pipe, []string{s.d.keys.message(p, tasks[i].ID)},
				rewakeArgs{ID: tasks[i].ID, Now: now, Epoch: tasks[i].Epoch})
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	var woken []wakeup
	for i, w := range tasks {
		if epochs[i] == nil {
			continue
		}
		if w.Epoch, _ = epochs[i].Read(); w.Epoch != "" { // an error would be Exec's
			woken = append(woken, w)
			s.d.mail.recovered(ctx, w.ID, "its task was gone")
			s.d.metrics.recovered.WithLabelValues("task").Inc()
		}
	}
	s.d.enqueue(ctx, woken...)
	return len(woken), nil
}

// tasksOf returns the tasks that messages should have. Those in a backlog have none.
func (d *Delivery) tasksOf(ctx context.Context, p int, lane api.Lane, ids []string) ([]wakeup, error) {
	pipe := d.DB.Client().Pipeline()
	got := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		got[i] = pipe.HMGet(ctx, d.keys.message(p, id), "epoch", "due", "putOff")
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	tasks := make([]wakeup, 0, len(ids))
	for i, id := range ids {
		if f := texts(got[i]); f[0] != f[2] {
			tasks = append(tasks, wakeup{ID: id, Lane: lane, Epoch: f[0], Due: redisdb.ParseTime(f[1])})
		}
	}
	return tasks, nil
}
