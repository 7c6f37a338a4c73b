package redisdb

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
)

const (
	triesTogether = 3 // failures of a batch before its entries are tried one by one
	// failures, in three quarters of a minute, before entries are set aside though none of the batch works
	triesAtAll   = 15
	asideMax     = 1000 // entries set aside, beyond which no new ones are read: something is broken permanently
	asideMin     = time.Second
	asideLongest = 5 * time.Minute
)

// setAside is when to retry an entry, and how long to wait after that.
type setAside struct {
	due  time.Time
	wait time.Duration
}

// handle passes entries to fn until they are done or set aside, or ctx ends.
func (r *reader) handle(ctx, work context.Context, entries []Entry) {
	entries = r.dropDeleted(work, entries)
	if len(entries) == 0 {
		return
	}
	defer r.hold(work, append(entryIDs(entries), r.asideIDs()...))()
	wait := followRetryMin
	for try := 1; ; try++ {
		err := r.call(work, entries)
		if err == nil {
			r.ack(ctx, work, entryIDs(entries))
			return
		}
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("handling stream entries failed", "entries", len(entries), "first_id", entries[0].ID, "try", try,
			"error", err)
		if passing(err) {
			try = 0
		}
		if done := r.giveWay(ctx, work, &entries, try); done {
			return
		}
		Pause(ctx, wait)
		wait = min(2*wait, followRetryMax)
	}
}

// passing reports whether an error is temporary and unrelated to the entries.
func passing(err error) bool { return Unavailable(err) || fault.Is(err, fault.Unavailable) }

// giveWay prevents failing entries from blocking the others. It tries them one by one, and sets an entry
// aside if it fails when others work, or when nothing has worked for long. It reports whether nothing is left
// to repeat.
func (r *reader) giveWay(ctx, work context.Context, entries *[]Entry, try int) bool {
	if try < triesTogether {
		return false
	}
	before := len(*entries)
	if before > 1 && (try == triesTogether || try >= triesAtAll) {
		*entries = r.singly(ctx, work, *entries)
	}
	if ctx.Err() != nil {
		return true
	}
	if len(*entries) == before && try < triesAtAll {
		return false
	}
	for _, e := range *entries {
		r.aside[e.ID] = &setAside{due: time.Now().Add(asideMin), wait: asideMin}
		r.log.Error("a stream entry keeps failing and is set aside, to be tried again", "id", e.ID)
	}
	return true
}

// singly tries entries one by one and returns the failed ones.
func (r *reader) singly(ctx, work context.Context, entries []Entry) []Entry {
	var failed []Entry
	for i, e := range entries {
		if ctx.Err() != nil {
			return append(failed, entries[i:]...)
		}
		if err := r.call(work, []Entry{e}); err != nil {
			failed = append(failed, e)
			continue
		}
		r.ack(ctx, work, []string{e.ID})
	}
	return failed
}

// retryAside retries due entries that were set aside. If Redis no longer holds an entry for the group,
// another consumer handled it.
func (r *reader) retryAside(ctx context.Context, now time.Time) error {
	for id, s := range r.aside {
		if now.Before(s.due) {
			continue
		}
		messages, err := r.db.client.XClaim(ctx, &redis.XClaimArgs{
			Stream: r.key, Group: r.Group, Consumer: r.consumer, Messages: []string{id},
		}).Result()
		if err != nil {
			return err
		}
		entries := r.dropDeleted(ctx, r.entries(messages))
		if len(entries) > 0 {
			if err := r.call(ctx, entries); err != nil {
				s.wait = min(2*s.wait, asideLongest)
				s.due = time.Now().Add(s.wait)
				r.log.Warn("a stream entry set aside failed again", "id", id, "error", err, "wait_seconds",
					s.wait.Seconds())
				continue
			}
			r.ack(ctx, ctx, []string{id})
		}
		delete(r.aside, id)
	}
	return nil
}

// call calls fn. A panic is treated as an error: otherwise its entry would crash one process after the
// other.
func (r *reader) call(ctx context.Context, entries []Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.fn(ctx, entries)
}

// hold prevents other processes from taking entries that fn is still handling, until the returned function
// is called.
func (r *reader) hold(ctx context.Context, ids []string) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for Pause(ctx, r.ClaimAfter/claimRounds) {
			if err := r.touch(ctx, ids); err != nil {
				r.log.Debug("could not hold stream entries", "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// ack acknowledges entries, and retries while Redis is unavailable: unacknowledged entries are handled
// again.
func (r *reader) ack(ctx, work context.Context, ids []string) {
	for wait := followRetryMin; ; wait = min(2*wait, readRetryMax) {
		err := r.db.client.XAck(work, r.key, r.Group, ids...).Err()
		if err == nil {
			return
		}
		r.trouble(err)
		if ctx.Err() != nil || !Pause(ctx, wait) {
			return
		}
	}
}

// dropDeleted acknowledges entries that were trimmed from the stream before they were handled; only their
// ids are left.
func (r *reader) dropDeleted(ctx context.Context, entries []Entry) []Entry {
	var gone []string
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		if e.Values == nil {
			gone = append(gone, e.ID)
		}
		return e.Values == nil
	})
	if len(gone) > 0 {
		r.log.Warn("stream entries were trimmed before they were read", "entries", len(gone), "first_id", gone[0])
		r.ack(ctx, ctx, gone)
	}
	return entries
}

func (r *reader) asideIDs() []string { return slices.Collect(maps.Keys(r.aside)) }

func entryIDs(entries []Entry) []string {
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}
