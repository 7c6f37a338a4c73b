package digest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// The stream of events, which package outbox owns, and the reader of this package.
const (
	stream = "events"
	field  = "e" // holds an event as JSON
	readBy = "digest"
)

// follow notes what became of the mail of runs, and who left, until ctx ends.
func (w *worker) follow(ctx context.Context) {
	if err := w.DB.Follow(ctx, redisdb.Follow{Stream: stream, Group: readBy}, w.apply); err != nil {
		w.log.ErrorContext(ctx, "events not followed: digests have no result", "error", err)
	}
}

// apply applies a batch of events.
func (w *worker) apply(ctx context.Context, entries []redisdb.Entry) error {
	for _, entry := range entries {
		text := entry.Text(field)
		if !strings.Contains(text, `"digestRun"`) && !strings.Contains(text, listPrefix) {
			continue
		}
		e, err := event.Parse([]byte(text))
		if err != nil {
			continue // of a later version
		}
		if err := w.learn(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// learn applies an event.
func (w *worker) learn(ctx context.Context, e event.Event) error {
	var data struct {
		event.Learned
		event.Failure
		Why string `json:"reason"` // of a cancelled message
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	if e.Type == event.ListUnsubscribe {
		if data.ListID != ListID(e.Account) {
			return nil
		}
		return w.leave(ctx, e.Account, data.Recipient)
	}
	var meta struct {
		Run string `json:"digestRun"`
	}
	if json.Unmarshal(data.Metadata, &meta) != nil || meta.Run == "" {
		return nil
	}
	switch e.Type {
	case event.MessageSent:
		return w.ended(ctx, e, meta.Run, data.QueueID, api.DigestSent, "", false)
	case event.MessageFailed:
		return w.ended(ctx, e, meta.Run, data.QueueID, api.DigestFailed, data.Failure.Error, !dead(data.Failure))
	case event.MessageSuppressed:
		return w.ended(ctx, e, meta.Run, data.QueueID, api.DigestSkipped, "suppressed", false)
	case event.MessageCancelled:
		return w.ended(ctx, e, meta.Run, data.QueueID, api.DigestSkipped, "cancelled", false)
	}
	return nil
}

// dead reports whether a failure says that the address is dead.
func dead(f event.Failure) bool {
	code := f.SMTPResponseCode
	return code != nil && (*code == 550 || *code == 551 || *code == 553)
}

// ended notes the end of a run's mail. back: its events return, if the settings say so.
func (w *worker) ended(ctx context.Context, e event.Event, id, queueID, state, reason string,
	back bool) error {
	r, err := w.find(ctx, e.Account, id)
	if fault.Is(err, fault.NotFound) {
		return nil // it names no run of ours
	}
	if err != nil {
		return err
	}
	if r.queueID == "" && r.state == api.DigestProcessing {
		// The event overtook the end of the submit, whose worker may have died: it is repeated until that is known.
		return fault.New(fault.Unavailable, "", "run %s is not submitted yet", id)
	}
	key, _ := runKey(id)
	answer, err := endScript.RunReplicated(ctx, w.DB, []string{key, runsKey(r.shard(), r.account)},
		endArgs{Run: id,
			Now: w.opts.Now(), QueueID: queueID, State: state, Reason: cutReason(reason),
			Seconds: seconds(w.opts.Retention)})
	if err != nil {
		return redisdb.Failed(err, "note the end of run %s", id)
	}
	switch answer.Word {
	case "ENDED":
		w.metrics.runs.WithLabelValues(state).Inc()
	case "OTHER":
		return nil
	}
	r.state, r.reason = state, cutReason(reason)
	if state == api.DigestFailed && back && !w.opts.Drop {
		return w.giveBackMail(ctx, r, queueID)
	}
	return w.emit(ctx, r)
}

func cutReason(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "")
}

// giveBackMail returns the events of a run whose message failed. Its dead letter goes first, or a
// replay could mail them a second time.
func (w *worker) giveBackMail(ctx context.Context, r *run, queueID string) error {
	if _, err := w.DeleteDeadLetter(ctx, queueID); err != nil {
		return err
	}
	_, err := w.Parts.Get(ctx, queueID)
	if fault.Is(err, fault.NotFound) {
		return w.giveBack(ctx, r)
	}
	return err // nil: somebody replayed it, so its mail has the events, and another event will tell
}

// giveBack returns the events of a failed run to those that wait, or drops them, and tells it. It may be
// repeated.
func (w *worker) giveBack(ctx context.Context, r *run) error {
	if !w.opts.Drop {
		for more := true; more; {
			var err error
			if more, err = w.backSome(ctx, r); err != nil {
				return err
			}
		}
		if _, err := w.change(ctx, r.place, nil); err != nil { // plans them
			return err
		}
	}
	w.metrics.runs.WithLabelValues(api.DigestFailed).Inc()
	return w.emit(ctx, r)
}

// mostBack is how many events one script returns.
const mostBack = 2000

func (w *worker) backSome(ctx context.Context, r *run) (more bool, _ error) {
	key, _ := runKey(r.id)
	keys := []string{key, r.place.key(), dueKey(r.shard())}
	for _, category := range r.taken {
		keys = append(keys, r.place.events(category))
	}
	now := w.opts.Now()
	// The entry makes sure that they are looked at, should the plan that follows fail.
	answer, err := backScript.RunReplicated(ctx, w.DB, keys, backArgs{Member: entry{r.place, recheck}.member(),
		Due: now.Add(time.Minute), Keep: w.opts.Keep, Retention: seconds(w.opts.Retention), Most: mostBack})
	if err != nil {
		return false, redisdb.Failed(err, "return the events of run %s", r.id)
	}
	r.returned, r.dropped = answer.Returned, answer.Dropped
	return answer.Word == "MORE", nil
}

// emit tells what became of a run. Repeated, the event has the same id.
func (b *base) emit(ctx context.Context, r *run) error {
	kept, err := readRecord(r.groups)
	if err != nil {
		return err
	}
	kinds := map[string]event.Type{api.DigestSent: event.DigestSent, api.DigestSkipped: event.DigestSkipped,
		api.DigestFailed: event.DigestFailed}
	e, err := event.New("digest-"+r.id+"-"+r.state, kinds[r.state], r.account, b.opts.Now(), event.Digest{
		Run: r.id, Recipient: r.place.id, Schedule: r.schedule, Period: r.period, QueueID: r.queueID,
		Events: r.events, Groups: len(kept.Groups), Returned: r.returned, Reason: r.reason})
	if err != nil {
		return err
	}
	text, err := e.Line()
	if err != nil {
		return err
	}
	err = b.DB.Client().XAdd(ctx, &redis.XAddArgs{Stream: redisdb.Key(0, stream),
		Values: []string{field, text}}).Err()
	return redisdb.Failed(err, "emit the event of run %s", r.id)
}
