package outbox

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// asynq's key says that a queue is paused, and since when. It goes with the pause. So whoever resumes a queue
// first notes the past pause, and the timeline of a message can show it later. A pause that was ended with
// asynq's own tools is not noted.
//
// A partition has the pauses of its queues, because asynq's tools may pause one queue.

const (
	// mostPauses is how many past pauses a partition keeps, of both lanes together.
	mostPauses = 200
	// pausesOutlive is how long a past pause is kept in addition to messages: a message of the log may have
	// been in the outbox for that time.
	pausesOutlive = 31 * 24 * time.Hour
)

// span is a time from and until, in Unix milliseconds. Until may be forever.
type span [2]int64

const forever = 1<<63 - 1

// overlap is the time that is in both spans. It is empty or negative if there is none.
func (a span) overlap(b span) span { return span{max(a[0], b[0]), min(a[1], b[1])} }

// pausesKept returns how long a past pause is kept.
func (o Options) pausesKept() time.Duration {
	return max(o.KeepEnded, o.KeepDeadLetters, 0) + pausesOutlive
}

// notePauses notes the pauses of lanes that end now. Noted twice, by two processes or because the resume
// failed, a pause is one: the later end counts.
func (s *store) notePauses(ctx context.Context, lanes []api.Lane, now time.Time) error {
	var names []string
	for p := range s.DB.Partitions() {
		for _, lane := range lanes {
			names = append(names, laneQueue(lane, p))
		}
	}
	paused, err := s.Control.Paused(ctx, names...)
	if err != nil || len(paused) == 0 {
		return err
	}
	_, err = s.DB.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for p := range s.DB.Partitions() {
			key := s.keys.pauses(p)
			for _, lane := range lanes {
				if since := paused[laneQueue(lane, p)]; !since.IsZero() {
					pipe.ZAddArgs(ctx, key, redis.ZAddArgs{GT: true, Members: []redis.Z{{
						Score: float64(redisdb.Millis(now)), Member: pauseMember(lane, since)}}})
				}
			}
			pipe.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(
				redisdb.Millis(now.Add(-s.opts.pausesKept())), 10))
			pipe.ZRemRangeByRank(ctx, key, 0, -mostPauses-1)
			pipe.Expire(ctx, key, s.opts.pausesKept())
		}
		return nil
	})
	return err
}

// pauseMember names a pause by lane and beginning.
func pauseMember(lane api.Lane, since time.Time) string {
	return string(lane) + " " + strconv.FormatInt(redisdb.Millis(since), 10)
}

// pausesOf returns the pauses of a message's queue that ended after the message was accepted, and the current
// one, oldest first. Overlapping pauses are merged.
func (s *store) pausesOf(ctx context.Context, r row) ([]span, error) {
	name := r.task().queue
	now, err := s.Control.Paused(ctx, name)
	if err != nil {
		return nil, redisError(err, "ask whether queue "+name+" is paused")
	}
	past, err := s.DB.Client().ZRangeByScoreWithScores(ctx, s.keys.pauses(r.partition),
		&redis.ZRangeBy{Min: strconv.FormatInt(r.created, 10), Max: "+inf"}).Result()
	if err != nil {
		return nil, redisError(err, "read the pauses of queue "+name)
	}
	var all []span
	for _, z := range past {
		member, _ := z.Member.(string)
		if from, ok := strings.CutPrefix(member, string(r.lane)+" "); ok {
			since, _ := strconv.ParseInt(from, 10, 64)
			all = append(all, span{since, int64(z.Score)})
		}
	}
	if since := now[name]; !since.IsZero() {
		all = append(all, span{redisdb.Millis(since), forever})
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a[0], b[0]) })
	return joined(all), nil
}

// joined merges overlapping spans in a sorted list.
func joined(spans []span) []span {
	var out []span
	for _, one := range spans {
		if n := len(out); n > 0 && one[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], one[1])
			continue
		}
		out = append(out, one)
	}
	return out
}
