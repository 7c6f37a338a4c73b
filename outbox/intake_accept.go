package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates/batch"
)

// submission is a message ready to be accepted: validated and composed.
type submission struct {
	id          string
	envelope    envelope
	content     []byte                // the message itself; unused with a letter
	letter      *source               // what it is written from each time it is needed; nil: nothing
	slip        batch.Personalization // what it has of its own beside the letter
	lane        api.Lane
	gateway     string
	attempts    int
	sendAt      time.Time // zero: now
	fingerprint string    // of the request's body; empty without an idempotency key
	key         string    // under which it is accepted only once: the idempotency key, or one made of it

	look *suppression.Look // what is to be looked at as it is accepted; nil: its recipients were asked for
}

// acceptance is a submission on its way into Redis.
type acceptance struct {
	submission
	partition int
	keys      []string
	args      []any
	task      queue.Task
	answer    api.SubmitAnswer
}

// takeIn accepts a message for those of its recipients who may be mailed. Nobody is asked beforehand where accept.lua can look for itself.
func (in *Intake) takeIn(ctx context.Context, s submission) (api.SubmitAnswer, error) {
	if s.look = in.question(s.envelope, s.lane); s.look != nil {
		return in.accept(ctx, s)
	}
	sifted, done, err := in.sift(ctx, s)
	if err != nil || done {
		return sifted, err
	}
	answer, err := in.accept(ctx, s)
	answer.Skipped = sifted.Skipped
	return answer, err
}

// accept makes a submission durable and queues its first wake-up. With an idempotency key that is taken it answers what was answered first.
// One that is to be looked at, and in which somebody may be suppressed, is sifted before.
func (in *Intake) accept(ctx context.Context, s submission) (api.SubmitAnswer, error) {
	if err := in.Admits(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	a, err := in.acceptance(s)
	if err == nil {
		err = in.bringIn(ctx, a)
	}
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	answer, err := in.enter(ctx, a)
	switch {
	case errors.Is(err, errAsk):
		return in.acceptSifted(ctx, a)
	case err == nil && a.look != nil && answer.Idempotency != nil && answer.Idempotency.Status == keyHit:
		answer.Skipped, err = in.skippedNow(ctx, s)
	}
	return answer, err
}

// enter has a submission accepted, if nobody in it may be suppressed: errAsk.
func (in *Intake) enter(ctx context.Context, a acceptance) (api.SubmitAnswer, error) {
	if a.mayBeRefused() || a.letter != nil && !in.letters.relies(a.partition, a.letter) {
		return in.acceptFirst(ctx, a)
	}

	pipe := in.DB.ReplicatedPipeline()
	accepted := pipe.Script(acceptScript, a.keys, a.args...)
	pending, err := in.Queue.Append(ctx, pipe.Pipeliner(), a.task)
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if err := pipe.Exec(ctx); err != nil && accepted.Err() != nil {
		return api.SubmitAnswer{}, away(accepted.Err(), "accept message "+a.answer.QueueID)
	}
	_, err = in.judge(accepted.Slice())
	switch {
	case errors.Is(err, errUnshared):
		in.letters.forget(a.partition, a.letter)
		return in.acceptFirst(ctx, a)
	case errors.Is(err, errAsk):
		in.forget(ctx, task{queue: a.task.Queue, id: a.task.ID})
		return api.SubmitAnswer{}, err
	case err != nil:
		return api.SubmitAnswer{}, err
	}
	if pending.Err() == nil {
		in.queued.note(a.partition, a.answer.QueueID)
	}
	in.accepted(ctx, a)
	return a.answer, nil
}

// acceptSifted accepts a message in which somebody may be suppressed, if somebody is not. Its task is not the one that may have been queued
// together with the look: a worker that has that one in hand found no message, and drops it.
func (in *Intake) acceptSifted(ctx context.Context, a acceptance) (api.SubmitAnswer, error) {
	sifted, done, err := in.sift(ctx, a.submission)
	if err != nil || done {
		in.takeOut(ctx, a)
		return sifted, err
	}
	a.keys = a.keys[:len(a.keys)-len(a.look.Keys)]
	a.args = append(slices.Clone(a.args[:argEpoch]), secondEpoch, "", a.args[len(a.args)-1])
	a.task.ID, a.look = taskID(a.id, secondEpoch), nil
	answer, err := in.enter(ctx, a)
	answer.Skipped = sifted.Skipped
	return answer, err
}

// acceptFirst accepts a message that may be refused, or known already: its task is queued only once it is known to be new. A task of a
// message that was refused would stay in a full Redis for as long as the queue is paused.
func (in *Intake) acceptFirst(ctx context.Context, a acceptance) (api.SubmitAnswer, error) {
	var first string
	for try := 0; ; try++ {
		if err := in.shareAll(ctx, a); err != nil {
			return api.SubmitAnswer{}, err
		}
		var err error
		first, err = in.judge(in.DB.RunReplicated(ctx, acceptScript, a.keys, a.args...).Slice())
		if errors.Is(err, errUnshared) && try == 0 {
			in.letters.forget(a.partition, a.letter)
			continue
		}
		if err != nil {
			return api.SubmitAnswer{}, err
		}
		break
	}
	if a.looksAtMemory() {
		in.seen()
	}
	answer, fresh := in.answer(a, first)
	if !fresh {
		return answer, nil
	}
	if err := in.Queue.Enqueue(ctx, a.task)[0]; err == nil {
		in.queued.note(a.partition, answer.QueueID)
	}
	in.accepted(ctx, a)
	return answer, nil
}

// answer is what a client is told of a message that was accepted, now (it is fresh) or when its key was used first.
func (in *Intake) answer(a acceptance, first string) (answer api.SubmitAnswer, fresh bool) {
	answer = a.answer
	if first != "" {
		in.metrics.accepted.WithLabelValues("hit").Inc()
		answer = recall(first, answer)
		answer.Idempotency = &api.IdempotencyStatus{Key: a.envelope.Key, Status: keyHit}
		return answer, false
	}
	if a.fingerprint != "" {
		answer.Idempotency = &api.IdempotencyStatus{Key: a.envelope.Key, Status: "MISS"}
	}
	return answer, true
}

// keyHit is the status of an idempotency key that was used before.
const keyHit = "HIT"

// shareAll puts the letters of some messages where they look for them, those of which this process does not know that they are there.
func (in *Intake) shareAll(ctx context.Context, all ...acceptance) error {
	for _, a := range all {
		if a.letter == nil || in.letters.relies(a.partition, a.letter) {
			continue
		}
		if err := in.letters.share(ctx, a.partition, a.letter); err != nil {
			return err
		}
	}
	return nil
}

// acceptance prepares everything about a message that Redis is told.
func (in *Intake) acceptance(s submission) (acceptance, error) {
	now := in.clock.Now()
	due := s.sendAt
	if due.Before(now) {
		due = now
	}
	id, a := s.id, acceptance{submission: s}
	a.partition, _ = partitionOf(id, in.DB.Partitions())
	a.task = queue.Task{Queue: laneQueue(s.lane, a.partition), Type: TaskDeliver, ID: taskID(id, firstEpoch)}
	due = fromMillis(millis(due))
	if due.After(now) {
		a.task.At = due
	}
	a.answer = api.SubmitAnswer{Response: "Queued for delivery", MessageID: s.envelope.MessageID, SendAt: &due, QueueID: id}
	var err error
	a.keys, a.args, err = in.acceptArgs(s, a.partition, id, now, due, a.answer)
	return a, err
}

func (in *Intake) acceptArgs(s submission, p int, id string, now, due time.Time, answer api.SubmitAnswer) ([]string, []any, error) {
	env, err := in.jsons.pack(id, s.envelope)
	if err != nil {
		return nil, nil, err
	}
	queued, err := queuedLine(s, id, now, due)
	if err != nil {
		return nil, nil, err
	}
	keys := []string{in.keys.message(p, id)}
	first := ""
	if s.fingerprint != "" {
		keys = append(keys, in.keys.idempotency(p, keyHash(s.envelope.Account, s.key)))
		first = memo(answer)
	}
	content, name, err := in.contentArgs(s, id)
	if err != nil {
		return nil, nil, err
	}
	args := []any{
		id, millis(now), millis(due), string(s.lane), s.envelope.Account, s.attempts, s.gateway, env, content,
		in.limit(p), s.fingerprint, first, int(in.opts.KeyRetention.Seconds()), in.heed(len(content)), name, firstEpoch, "", queued,
	}
	if s.look == nil {
		return keys, args, nil
	}
	args = append(append(args[:argEpoch+1], s.look.Each), s.look.Fields...)
	return append(keys, s.look.Keys...), append(args, queued), nil
}

// The epochs of a message's first task, and of the one that takes its place where somebody had to be asked for before it was accepted.
const firstEpoch, secondEpoch = "1", "2"

// contentArgs is what a message keeps of its own: itself, or what is written into its letter.
func (in *Intake) contentArgs(s submission, id string) (content []byte, name string, err error) {
	if s.letter == nil {
		return in.codec.pack(s.content), "", nil
	}
	slip, err := in.jsons.pack(id, s.slip)
	return []byte(slip), s.letter.name, err
}

// mayBeRefused says whether Redis may answer anything but that the message is accepted, or that somebody has to be asked for.
func (a acceptance) mayBeRefused() bool {
	return a.fingerprint != "" || a.args[argLimit] != "" || a.looksAtMemory()
}

func (a acceptance) looksAtMemory() bool { return a.args[argShare] != "" }

// Places among the arguments of accept.lua of the content, of what can have a message refused, and of the epoch, which what depends on the
// recipients follows.
const argContent, argLimit, argShare, argEpoch = 8, 9, 13, 15

// memo and recall keep the first answer to an idempotency key. There is one for each message of a week, so it is kept short.
func memo(a api.SubmitAnswer) string {
	return fmt.Sprintf(" %s %d %s", a.QueueID, millis(*a.SendAt), a.MessageID)
}

func recall(memo string, a api.SubmitAnswer) api.SubmitAnswer {
	parts := strings.SplitN(memo, " ", 4)
	ms, _ := strconv.ParseInt(parts[2], 10, 64)
	due := fromMillis(ms)
	a.QueueID, a.SendAt, a.MessageID = parts[1], &due, parts[3]
	return a
}

// queuedLine is a message's first event, as it stands in the stream. It carries the message's own id: there is one for each.
func queuedLine(s submission, id string, now, due time.Time) (string, error) {
	e, err := event.New(id, event.MessageQueued, s.envelope.Account, now, event.Queued{
		Message: s.envelope.about(id, s.lane, s.gateway, s.envelope.To), SendAt: due,
	})
	if err != nil {
		return "", err
	}
	return e.Line()
}

// judge reads what accept.lua answered: the first answer to a key that was taken, or nothing for a new message.
func (in *Intake) judge(answer []any, err error) (first string, _ error) {
	if err != nil {
		return "", away(err, "accept message")
	}
	switch answer[0] {
	case "NEW", "AGAIN":
		return "", nil
	case "ASK":
		return "", errAsk
	case "HIT":
		return fmt.Sprint(answer[1]), nil
	case "REUSED":
		return "", keyReused()
	case "UNSHARED":
		return "", errUnshared
	case "LOST":
		return "", errContentLost
	case "FULL":
		if answer[1] == "memory" {
			return "", full("Redis uses more than %.0f %% of its maxmemory (redis.maxMemoryShare)", in.opts.MaxMemoryShare*100)
		}
		return "", full("The outbox holds as many messages as it may (outbox.maxLive: %d)", in.opts.MaxLive)
	}
	return "", fmt.Errorf("accept message: %v", answer[0])
}

func keyReused() error {
	return fault.New(fault.Unprocessable, "IdempotencyKeyReused",
		"This idempotency key was used with another body; nothing was queued. Use a new key for a new message")
}

// errUnshared says that the letter a message is written from is not in Redis.
var errUnshared = fault.New(fault.Unavailable, "LetterGone", "What this message is written from was taken out of Redis as it came in; send it again")

// errAsk says that accept.lua found something in the suppressions about a recipient.
var errAsk = errors.New("somebody may be suppressed")

func (in *Intake) accepted(ctx context.Context, a acceptance) {
	in.handled.Add(1)
	in.metrics.accepted.WithLabelValues("queued").Inc()
	in.mail.queued(ctx, a.answer.QueueID, a.envelope, *a.answer.SendAt)
}

// idFor makes the id of a message of an account, in the partition of its idempotency key, or in any.
func (in *Intake) idFor(account, key string) string {
	partition := rand.IntN(in.DB.Partitions())
	if key != "" {
		partition = redisdb.PartitionFor(keyHash(account, key), in.DB.Partitions())
	}
	return newID(in.clock.Now(), partition)
}
