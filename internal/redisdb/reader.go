package redisdb

import (
	"context"
	_ "embed"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed tidy.lua
var tidySource string

var tidyScript = NewScript[tidyArgs, int]("tidy", tidySource)

type tidyArgs struct {
	Group        string
	IdleMost     int64 // milliseconds
	ConsumerName string
}

// allClaimed is the cursor at the beginning and at the end of a search.
const allClaimed = "0-0"

// reader follows one partition of a stream for one group. It is used by one goroutine.
type reader struct {
	Follow
	db        *DB
	fn        func(context.Context, []Entry) error
	partition int
	key       string
	consumer  string
	log       *slog.Logger

	joined  bool      // the group exists, as far as we know
	end     string    // where the stream ended when the group seemed to have read all of it; empty if it hadn't
	resting bool      // the group has read everything up to the end
	settled bool      // and no process holds anything of that
	claimed time.Time // when all held entries had been searched for abandoned ones
	cursor  string    // where that search continues
	tidied  time.Time // when consumers that are gone were last removed
	away    bool      // reading fails at present, and that was logged
	aside   map[string]*setAside
}

// join makes sure the group exists.
func (r *reader) join(ctx context.Context) error {
	if r.joined {
		return nil
	}
	err := r.db.client.XGroupCreateMkStream(ctx, r.key, r.Group, "0").Err()
	if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		return err
	}
	r.joined = true
	return nil
}

// lostGroup recognizes that the group or the stream was deleted, and has the group created again. It
// returns any other error.
func (r *reader) lostGroup(err error) error {
	if err == nil || !redis.HasErrorPrefix(err, "NOGROUP") {
		return err
	}
	r.log.Warn("the consumer group is gone and is made again; entries still in the stream are read once more")
	r.joined = false
	r.wake()
	clear(r.aside)
	return nil
}

// rest waits until the stream grows, or there is something else to do.
func (r *reader) rest(ctx context.Context) {
	most := restMost
	if !r.settled {
		most = r.ClaimAfter/claimRounds - time.Since(r.claimed)
	}
	if len(r.aside) > 0 {
		most = min(most, asideMin)
	}
	if r.db.AwaitEntry(ctx, r.key, r.end, most) {
		if r.settled {
			r.claimed = time.Now() // nothing has been abandoned yet
		}
		r.wake()
	}
}

func (r *reader) wake() { r.end, r.resting, r.settled = "", false, false }

// found notes what a read found. If the next one finds nothing either, after the end is known, the reader
// rests.
func (r *reader) found(ctx context.Context, entries int) error {
	if entries > 0 {
		r.wake()
		return nil
	}
	if r.end != "" {
		r.resting = true
		return nil
	}
	info, err := r.db.client.XInfoStream(ctx, r.key).Result()
	if err != nil && strings.Contains(err.Error(), "no such key") { // it is made again
		r.joined = false
		return nil
	}
	if err == nil {
		r.end = info.LastGeneratedID
	}
	return err
}

// claim takes over entries whose consumer has been silent for too long, and keeps this reader's own from
// looking abandoned.
func (r *reader) claim(ctx context.Context, now time.Time) ([]Entry, error) {
	if err := r.touch(ctx, r.asideIDs()); err != nil {
		return nil, err
	}
	if r.resting {
		held, err := r.db.client.XPending(ctx, r.key, r.Group).Result()
		if err != nil {
			return nil, err
		}
		if r.settled = held.Count == 0; r.settled {
			r.claimed = now
			return nil, nil
		}
	}
	messages, next, err := r.db.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: r.key, Group: r.Group, Consumer: r.consumer, MinIdle: r.ClaimAfter, Start: r.cursor,
		Count: int64(r.Batch),
	}).Result()
	if err != nil {
		return nil, err
	}
	if r.cursor = next; next == allClaimed {
		r.claimed = now // else there is more to look through, immediately
	}
	if now.Sub(r.tidied) >= tidyEvery {
		r.tidied = now
		if err := r.tidy(ctx, ""); err != nil {
			return nil, err
		}
	}
	entries := slices.DeleteFunc(r.entries(messages), func(e Entry) bool { return r.aside[e.ID] != nil })
	if len(entries) > 0 {
		r.log.Info("took over stream entries of a process that is gone", "entries", len(entries))
	}
	return entries, nil
}

// touch keeps entries claimed by this process while it handles them.
func (r *reader) touch(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return r.db.client.XClaimJustID(ctx, &redis.XClaimArgs{Stream: r.key, Group: r.Group, Consumer: r.consumer,
		Messages: ids}).Err()
}

// tidy removes dead consumers, and the named one.
func (r *reader) tidy(ctx context.Context, consumer string) error {
	_, err := tidyScript.Run(ctx, r.db.client, []string{r.key},
		tidyArgs{Group: r.Group, IdleMost: consumerGoneFor.Milliseconds(), ConsumerName: consumer})
	return r.lostGroup(err)
}

// leave removes this consumer from the group, so that restarts do not accumulate consumers. Other consumers
// take its remaining entries.
func (r *reader) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellPatience)
	defer cancel()
	if err := r.tidy(ctx, r.consumer); err != nil {
		r.log.Debug("left a consumer group without saying goodbye", "error", err)
	}
}

// trouble logs the first failure of a series.
func (r *reader) trouble(err error) {
	if !r.away {
		r.away = true
		r.log.Error("can't follow the stream, trying on", "error", err)
	}
}

// fine logs the end of a series of failures.
func (r *reader) fine() {
	if r.away {
		r.away = false
		r.log.Info("following the stream again")
	}
}
