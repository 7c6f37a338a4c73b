package digest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// An attempt at a run is counted when it begins. One of these ends it:
//
//   - The outbox has the mail, or no one must be sent to.
//   - An error. The run is tried again later, up to Options.Attempts times; then it fails.
//   - An unavailable outbox or Redis, a quota, or quiet hours: it doesn't count as an attempt.
//   - It is cut off: its worker died, or took longer than giveUp. Its lease ends, and the next worker tries
//     again or, if all attempts are spent, lets it fail.

// resume works on a run that was begun before.
func (w *worker) resume(ctx context.Context, h held, id string) error {
	key, _ := runKey(id)
	fields, err := w.DB.Client().HMGet(ctx, key, "account").Result()
	if err != nil {
		return redisdb.Failed(err, "read run %s", id)
	}
	account, _ := fields[0].(string)
	answer, err := beginScript.RunReplicated(ctx, w.DB, []string{key, openKey(h.shard), fencesKey(h.shard),
		runsKey(h.shard, account)}, beginArgs{Run: id, Fence: h.fence, Now: w.opts.Now(), Most: w.opts.Attempts})
	if err != nil {
		return redisdb.Failed(err, "continue run %s", id)
	}
	switch answer.Word {
	case "SPENT":
		return w.cutOff(ctx, h, id)
	case "BEGUN":
		r, err := w.find(ctx, "", id)
		if err != nil {
			return err
		}
		if waits, err := w.putOff(ctx, h, r); err != nil || waits {
			return err
		}
		taken, err := w.taken(ctx, r)
		if err != nil {
			return err
		}
		if strings.HasPrefix(r.reason, templateFaults) {
			kinds, err := w.kinds.of(ctx, r.account)
			if err != nil {
				return err
			}
			if r.manner.Template, err = w.templateOf(ctx, r.account, r.taken, kinds); err != nil {
				return err
			}
		}
		return w.finish(ctx, h, r, taken)
	}
	return nil
}

// putOff defers a run whose recipient has quiet hours now, or pauses. waits is false if there are none, or
// nothing is left to send.
func (w *worker) putOff(ctx context.Context, h held, r *run) (waits bool, _ error) {
	if r.state != api.DigestProcessing || r.schedule == nowSchedule {
		return false, nil
	}
	reader, err := w.read(ctx, r.readerKey)
	if err != nil {
		return false, err
	}
	now := w.opts.Now()
	at := w.opts.mayMail(reader, r.schedule, now)
	if !at.After(now) {
		return false, nil
	}
	queueID, err := w.Accepted(ctx, r.account, r.mailKey())
	if err != nil || queueID != "" { // it was sent before, and only its worker does not know
		return false, err
	}
	return true, w.close(ctx, h, r, closing{reason: r.reason, again: at, unspent: true})
}

const (
	firstWait = 10 * time.Second // before a run is tried again; doubled each time
	mostWait  = time.Hour
)

// failed decides what follows an error: the run is tried again, or fails. mail is empty if it was not made.
func (w *worker) failed(ctx context.Context, h held, r *run, mail made, cause error) error {
	if ctx.Err() != nil || errors.Is(cause, context.DeadlineExceeded) {
		return cause // this attempt was cut off
	}
	reason := reasonOf(cause)
	if fault.Is(cause, fault.Unavailable) {
		return errors.Join(cause, w.close(ctx, h, r, closing{reason: reason, unspent: true,
			again: w.opts.Now().Add(w.opts.Lease)}))
	}
	// The outbox may have accepted its message before, when the answer was lost or the process died. An error
	// now, for example a deleted template, must not send its events in another one.
	queueID, err := w.Accepted(ctx, r.account, r.mailKey())
	if err != nil {
		return err
	}
	if queueID != "" {
		return w.submitted(ctx, h, r, mail, queueID)
	}
	if f, ok := errors.AsType[*fault.Error](cause); ok && f.Kind == fault.Limited { // a quota is used up
		wait := min(max(f.RetryAfter, firstWait), mostWait)
		return w.close(ctx, h, r, closing{reason: reason, again: w.opts.Now().Add(wait), unspent: true})
	}
	if r.attempts < w.opts.Attempts {
		if strings.HasPrefix(reason, templateFaults) {
			reason += chosenAgain
		}
		wait := min(firstWait<<min(r.attempts, 10), mostWait)
		w.log.WarnContext(ctx, "digest not made; it is tried again", "run", r.id, "account", r.account, "attempt",
			r.attempts, "wait_seconds", wait.Seconds(), "error", cause)
		return w.close(ctx, h, r, closing{reason: reason, again: w.opts.Now().Add(wait)})
	}
	return w.fail(ctx, h, r, mail, cause)
}

// cutOff ends a run all of whose attempts are spent, the last one without a result.
func (w *worker) cutOff(ctx context.Context, h held, id string) error {
	r, err := w.find(ctx, "", id)
	if err != nil {
		return err
	}
	taken, err := w.taken(ctx, r)
	if err != nil {
		return err
	}
	_, packed, err := r.says(taken)
	if err != nil {
		return err
	}
	cause := fmt.Errorf("attempt %d did not end: its worker died, or took longer than %v", r.attempts, giveUp)
	return w.fail(ctx, h, r, made{record: packed}, cause)
}

// fail ends a run without mail. A worker that stalled may still submit it when its events are waiting again,
// so the key of its mail is blocked for that worker. If the outbox has the mail nevertheless, the run is
// submitted.
func (w *worker) fail(ctx context.Context, h held, r *run, mail made, cause error) error {
	queueID, err := w.BlockKey(ctx, r.account, r.mailKey())
	if err != nil {
		return err
	}
	if queueID != "" {
		return w.submitted(ctx, h, r, mail, queueID)
	}
	reason := reasonOf(cause)
	held, err := w.closed(ctx, h, r, closing{state: api.DigestFailed, reason: reason,
		groups: mail.record, open: true})
	if err != nil || !held {
		return err
	}
	w.log.ErrorContext(ctx, "digest failed", "run", r.id, "account", r.account, "attempts", r.attempts, "error",
		cause)
	r.state, r.reason = api.DigestFailed, reason
	return w.giveUp(ctx, h, r)
}

// giveUp ends the work on a run that failed. It stays open until its events are returned and that is
// reported, so that another process continues if this one dies.
func (w *worker) giveUp(ctx context.Context, h held, r *run) error {
	if err := w.giveBack(ctx, r); err != nil {
		return err
	}
	return w.close(ctx, h, r, closing{state: api.DigestFailed, reason: r.reason})
}

// chosenAgain ends the reason of an attempt whose template failed.
const chosenAgain = "; the next attempt chooses its template again"

// mostReason bounds the reason of a run, in bytes.
const mostReason = 300

func reasonOf(err error) string {
	reason := err.Error()
	if fault.CodeOf(err) != "" {
		reason = fault.CodeOf(err) + ": " + reason
	}
	return strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "")
}
