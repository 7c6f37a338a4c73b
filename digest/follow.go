package digest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// The stream of events, which package outbox owns, and the reader of this package.
const (
	stream = "events"
	field  = "e" // holds an event as JSON
	readBy = "digest"
)

// follow notes the results of runs' mail, and who unsubscribed, until ctx ends.
func (w *worker) follow(ctx context.Context) {
	if err := w.DB.Follow(ctx, redisdb.Follow{Stream: stream, Group: readBy, Gather: redisdb.Unhurried},
		w.apply); err != nil {
		w.log.ErrorContext(ctx, "events not followed: digests have no result", "error", err)
	}
}

// apply applies a batch of events.
func (w *worker) apply(ctx context.Context, entries []redisdb.Entry) error {
	var ends []ending // for different runs
	for _, entry := range entries {
		text := entry.Text(field)
		if !strings.Contains(text, `"digestRun"`) && !strings.Contains(text, listPrefix) {
			continue
		}
		e, err := event.Parse([]byte(text))
		if err != nil {
			continue // from a later version
		}
		var data about
		if json.Unmarshal(e.Data, &data) != nil {
			continue
		}
		if e.Type == event.ListUnsubscribe {
			if data.ListID != ListID(e.Account) {
				continue
			}
			if err := w.leave(ctx, e.Account, data.Recipient); err != nil {
				return err
			}
			continue
		}
		end, is := endingOf(e, data)
		if !is {
			continue
		}
		if slices.ContainsFunc(ends, func(other ending) bool { return other.run == end.run }) {
			if err := w.end(ctx, ends); err != nil {
				return err
			}
			ends = nil
		}
		ends = append(ends, end)
	}
	return w.end(ctx, ends)
}

// about is the data of an event about an email.
type about struct {
	event.Learned
	event.Failure
}

// ending is the end of the mail of a run.
type ending struct {
	account, run, queueID, state, reason string
	back                                 bool // its events return, if the settings say so
}

// endingOf returns what an event says about the mail of a run, if it does.
func endingOf(e event.Event, data about) (end ending, is bool) {
	var meta struct {
		Run string `json:"digestRun"`
	}
	if json.Unmarshal(data.Metadata, &meta) != nil {
		return end, false
	}
	if _, ok := runKey(meta.Run); !ok { // about a message that somebody else submitted
		return end, false
	}
	end = ending{account: e.Account, run: meta.Run, queueID: data.QueueID}
	switch e.Type {
	case event.MessageSent:
		end.state = api.DigestSent
	case event.MessageFailed:
		end.state, end.reason = api.DigestFailed, cutReason(data.Error)
		end.back = data.Verdict != string(smtpsend.Hard)
	case event.MessageSuppressed:
		end.state, end.reason = api.DigestSkipped, "suppressed"
	case event.MessageCancelled:
		end.state, end.reason = api.DigestSkipped, "cancelled"
	}
	return end, end.state != ""
}

const (
	earlyPause = 20 * time.Millisecond // before runs are looked at again that are not submitted yet
	mostEarly  = 50                    // such looks
)

// end notes the results of different runs' mail. An event may overtake the end of the submit, whose worker
// may have died. Then end returns Unavailable: repeat it until the submit is known.
func (w *worker) end(ctx context.Context, ends []ending) error {
	for range mostEarly {
		early, err := w.endSome(ctx, ends)
		if err != nil || len(early) == 0 {
			return err
		}
		if ends = early; !redisdb.Pause(ctx, earlyPause) {
			break
		}
	}
	return fault.New(fault.Unavailable, "", "run %s and %d others are not submitted yet", ends[0].run,
		len(ends)-1)
}

// endSome is end. It returns the endings whose runs are not submitted yet.
func (w *worker) endSome(ctx context.Context, ends []ending) (early []ending, _ error) {
	if len(ends) == 0 {
		return nil, nil
	}
	read := w.DB.Client().Pipeline()
	hashes := make([]*redis.MapStringStringCmd, len(ends))
	for i, end := range ends {
		key, _ := runKey(end.run)
		hashes[i] = read.HGetAll(ctx, key)
	}
	if _, err := read.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "read runs of digests")
	}
	var over []ended
	pipe, now := w.DB.ReplicatedPipeline(), w.opts.Now()
	for i, end := range ends {
		r := readRun(end.run, hashes[i].Val())
		switch {
		case r.state == "" || r.account != end.account: // it names no run of ours
		case r.queueID == "" && r.state == api.DigestProcessing:
			early = append(early, end)
		default:
			key, _ := runKey(end.run)
			over = append(over, ended{end, r, endScript.Add(pipe, []string{key, runsKey(r.shard(), r.account)},
				endArgs{Run: end.run, Now: now, QueueID: end.queueID, State: end.state, Reason: end.reason,
					Seconds: seconds(w.opts.Retention)})})
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "note the ends of %d runs", len(over))
	}
	return early, w.tell(ctx, over)
}

// ended is the end of the mail of a run, as the script noted it.
type ended struct {
	ending
	of     *run
	answer *redisdb.Reply[word]
}

// tell reports the results of runs, or returns their events.
func (w *worker) tell(ctx context.Context, over []ended) error {
	var told []*run
	for _, one := range over {
		answer, err := one.answer.Read()
		if err != nil {
			return redisdb.Failed(err, "note the end of run %s", one.run)
		}
		switch answer.Word {
		case "ENDED":
			w.metrics.runs.WithLabelValues(one.state).Inc()
		case "OTHER":
			continue
		}
		one.of.state, one.of.reason = one.state, one.reason
		if one.state == api.DigestFailed && one.back && !w.opts.Drop {
			if err := w.giveBackMail(ctx, one.of, one.queueID); err != nil {
				return err
			}
			continue
		}
		told = append(told, one.of)
	}
	return w.emit(ctx, told...)
}

func cutReason(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), mostReason)], "")
}

// giveBackMail returns the events of a run whose message failed. Its dead letter goes first, or a replay
// could mail them a second time. Its key, which is free then, is blocked for submits that come late.
func (w *worker) giveBackMail(ctx context.Context, r *run, queueID string) error {
	if _, err := w.DeleteDeadLetter(ctx, queueID); err != nil {
		return err
	}
	if _, err := w.Parts.Get(ctx, queueID); !fault.Is(err, fault.NotFound) {
		return err // nil if somebody replayed it, so its mail has the events, and another event will report it
	}
	if late, err := w.BlockKey(ctx, r.account, r.mailKey()); err != nil || late != "" && late != queueID {
		return err // nil if a submit that came late has the events
	}
	return w.giveBack(ctx, r)
}

// giveBack makes a failed run's events wait again, or drops them, and reports it. You can repeat it.
func (w *worker) giveBack(ctx context.Context, r *run) error {
	if !w.opts.Drop {
		for more := true; more; {
			var err error
			if more, err = w.backSome(ctx, r); err != nil {
				return err
			}
		}
		if _, err := w.change(ctx, r.readerKey, nil); err != nil { // plans them
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
	keys := []string{key, r.readerKey.key(), dueKey(r.shard())}
	for _, category := range r.taken {
		keys = append(keys, r.readerKey.events(category))
	}
	now := w.opts.Now()
	// The entry makes sure that they are looked at, should the plan that follows fail.
	answer, err := backScript.RunReplicated(ctx, w.DB, keys, backArgs{
		Member: entry{r.readerKey, recheck}.member(), Due: now.Add(time.Minute), Keep: w.opts.Keep,
		Retention: seconds(w.opts.Retention), Most: mostBack})
	if err != nil {
		return false, redisdb.Failed(err, "return the events of run %s", r.id)
	}
	r.returned, r.dropped = answer.Returned, answer.Dropped
	return answer.Word == "MORE", nil
}

// emit reports the results of runs. Repeated, an event has the same id.
func (b *base) emit(ctx context.Context, runs ...*run) error {
	if len(runs) == 0 {
		return nil
	}
	kinds := map[string]event.Type{api.DigestSent: event.DigestSent, api.DigestSkipped: event.DigestSkipped,
		api.DigestFailed: event.DigestFailed}
	pipe := b.DB.Client().Pipeline()
	for _, r := range runs {
		e, err := event.New("digest-"+r.id+"-"+r.state, kinds[r.state], r.account, b.opts.Now(), event.Digest{
			Run: r.id, Recipient: r.readerKey.id, Schedule: r.schedule, Period: r.period, QueueID: r.queueID,
			Events: r.events, Groups: groupsOf(r.groups), Returned: r.returned, Reason: r.reason})
		if err != nil {
			return err
		}
		text, err := e.Line()
		if err != nil {
			return err
		}
		pipe.XAdd(ctx, &redis.XAddArgs{Stream: redisdb.Key(0, stream), Values: []string{field, text}})
	}
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "emit the events of %d runs, from %s on", len(runs), runs[0].id)
}
