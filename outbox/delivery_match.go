package outbox

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

const (
	matchBatch  = 2000            // records compared with their tasks in one round
	matchAtMost = 3 * time.Second // how long one round may go on waking what it finds
	waitBefore  = 5 * time.Second // how young a record may be before its missing task is a fault
)

// match compares records with their tasks, a stretch of each index in every round, and gives a new task to
// those that lost theirs: an operator emptied a queue behind Postroom's back, or Redis lost the queue's keys.
func (s *sweeper) match(ctx context.Context, p int, now time.Time) error {
	for _, lane := range lanesOf(queue.Submit) {
		for _, state := range []string{stateWaiting, stateDelayed} {
			if err := s.matchIndex(ctx, p, lane, state, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// matchIndex goes on for as long as it finds messages to wake: where a queue was emptied, all of them are to
// come back, not 2,000 a second.
func (s *sweeper) matchIndex(ctx context.Context, p int, lane api.Lane, state string, now time.Time) error {
	key := s.d.keys.index(p, string(lane), state)
	for {
		ids, err := s.stretch(ctx, key, now)
		if err != nil || len(ids) == 0 {
			return err
		}
		woken, err := s.rewake(ctx, p, lane, ids, now)
		if err != nil || woken == 0 || s.places[key] == (place{}) || s.d.clock.Now().Sub(now) > matchAtMost {
			return err
		}
	}
}

// stretch reads the next messages of an index to compare, and moves the place on.
func (s *sweeper) stretch(ctx context.Context, key string, now time.Time) ([]string, error) {
	at := s.places[key]
	members, err := s.d.DB.Client().ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: key, ByScore: true, Start: at.created, Stop: millis(now.Add(-waitBefore)), Offset: at.skip,
		Count: matchBatch,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("read index %s: %w", key, err)
	}
	s.places[key] = at.after(members)
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.Member.(string)
	}
	return ids, nil
}

// place is how far an index has been compared: to a millisecond of creation, and so many messages of that
// very millisecond.
type place struct{ created, skip int64 }

// after is the place behind the messages read from this one: the beginning again, when they were the last.
func (p place) after(members []redis.Z) place {
	if len(members) < matchBatch {
		return place{}
	}
	for _, m := range members {
		if created := int64(m.Score); created != p.created {
			p = place{created: created}
		}
		p.skip++
	}
	return p
}

// rewake finds which of some messages have no task, gives them one, and answers how many.
func (s *sweeper) rewake(ctx context.Context, p int, lane api.Lane, ids []string, now time.Time) (int,
	error) {
	tasks, err := s.d.tasksOf(ctx, p, lane, ids)
	if err != nil {
		return 0, err
	}
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = taskID(t.id, t.epoch)
	}
	states, err := s.d.Control.States(ctx, laneQueue(lane, p), names...)
	if err != nil {
		return 0, err
	}
	pipe := s.d.DB.Pipeline()
	epochs := make([]*redisdb.Reply[string], len(tasks))
	for i, st := range states {
		if st == "" || st == queue.Archived || st == queue.Completed {
			epochs[i] = rewakeScript.Add(pipe, []string{s.d.keys.message(p, tasks[i].id)},
				rewakeArgs{ID: tasks[i].id, Now: now, Epoch: tasks[i].epoch})
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	var woken []wakeup
	for i, answer := range epochs {
		if answer == nil {
			continue
		}
		epoch, _ := answer.Read() // an error would be Exec's
		if epoch == "" {
			continue
		}
		w := tasks[i]
		w.epoch = epoch
		woken = append(woken, w)
		s.d.mail.recovered(ctx, w.id, "its task was gone")
		s.d.metrics.recovered.WithLabelValues("task").Inc()
	}
	s.d.enqueue(ctx, woken...)
	return len(woken), nil
}

// tasksOf names the tasks that some messages should have.
func (d *Delivery) tasksOf(ctx context.Context, p int, lane api.Lane, ids []string) ([]wakeup, error) {
	pipe := d.DB.Client().Pipeline()
	got := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		got[i] = pipe.HMGet(ctx, d.keys.message(p, id), "epoch", "due")
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	tasks := make([]wakeup, len(ids))
	for i, id := range ids {
		fields := texts(got[i])
		ms, _ := strconv.ParseInt(fields[1], 10, 64)
		tasks[i] = wakeup{id: id, lane: string(lane), epoch: fields[0], due: fromMillis(ms)}
	}
	return tasks, nil
}
