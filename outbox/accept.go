package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

// retryAfterOutage is when a client that found Redis away or full should come back.
const retryAfterOutage = 5 * time.Second

// submission is a message ready to be accepted: validated and composed.
type submission struct {
	envelope    envelope
	content     []byte
	lane        api.Lane
	gateway     string
	attempts    int
	sendAt      time.Time // zero: now
	fingerprint string    // of the request's body; empty without an idempotency key
}

// accept makes a submission durable and queues its first wake-up. With an idempotency key that is taken it answers what was answered first.
func (b *Outbox) accept(ctx context.Context, s submission) (api.SubmitAnswer, error) {
	if err := b.Admits(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	now := b.clock.Now()
	due := s.sendAt
	if due.Before(now) {
		due = now
	}
	p := b.partitionFor(s)
	id := newID(now, p)
	due = fromMillis(millis(due))
	answer := api.SubmitAnswer{Response: "Queued for delivery", MessageID: s.envelope.MessageID, SendAt: &due, QueueID: id}
	keys, args, err := b.acceptArgs(s, p, id, now, due, answer)
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	task := queue.Task{Queue: laneQueue(s.lane, p), Type: TaskDeliver, ID: taskID(id, "1")}
	if due.After(now) {
		task.At = due
	}
	if s.fingerprint != "" || args[argLimit] != "" || args[argShare] != "" {
		return b.acceptFirst(ctx, s, keys, args, answer, task)
	}

	pipe := b.DB.ReplicatedPipeline()
	accepted := pipe.Script(acceptScript, keys, args...)
	pending, err := b.Queue.Append(ctx, pipe.Pipeliner(), task)
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if err := pipe.Exec(ctx); err != nil && accepted.Err() != nil {
		return api.SubmitAnswer{}, away(accepted.Err(), "accept message "+id)
	}
	if _, err := b.judge(accepted.Slice()); err != nil {
		return api.SubmitAnswer{}, err
	}
	if pending.Err() == nil {
		b.queued.note(p, id)
	}
	b.accepted(ctx, id, s, due)
	return answer, nil
}

// acceptFirst accepts a message that may be refused, or known already: its task is queued only once it is known to be new. A task of a
// message that was refused would stay in a full Redis for as long as the queue is paused.
func (b *Outbox) acceptFirst(ctx context.Context, s submission, keys []string, args []any, answer api.SubmitAnswer, task queue.Task) (api.SubmitAnswer, error) {
	first, err := b.judge(b.DB.RunReplicated(ctx, acceptScript, keys, args...).Slice())
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if args[argShare] != "" {
		b.seen()
	}
	if first != "" {
		b.metrics.accepted.WithLabelValues("hit").Inc()
		answer = recall(first, answer)
		answer.Idempotency = &api.IdempotencyStatus{Key: s.envelope.Key, Status: "HIT"}
		return answer, nil
	}
	if err := b.Queue.Enqueue(ctx, task)[0]; err == nil {
		p, _ := partitionOf(answer.QueueID, b.DB.Partitions())
		b.queued.note(p, answer.QueueID)
	}
	b.accepted(ctx, answer.QueueID, s, *answer.SendAt)
	if s.fingerprint != "" {
		answer.Idempotency = &api.IdempotencyStatus{Key: s.envelope.Key, Status: "MISS"}
	}
	return answer, nil
}

func (b *Outbox) acceptArgs(s submission, p int, id string, now, due time.Time, answer api.SubmitAnswer) ([]string, []any, error) {
	env, err := b.jsons.pack(id, s.envelope)
	if err != nil {
		return nil, nil, err
	}
	queued, err := queuedLine(s, id, now, due)
	if err != nil {
		return nil, nil, err
	}
	keys := []string{b.store.message(p, id)}
	first := ""
	if s.fingerprint != "" {
		keys = append(keys, b.store.idempotency(p, keyHash(s.envelope.Account, s.envelope.Key)))
		first = memo(answer)
	}
	content := b.codec.pack(s.content)
	return keys, []any{
		id, millis(now), millis(due), string(s.lane), s.envelope.Account, s.attempts, s.gateway, env, content,
		b.limit(p), s.fingerprint, first, int(b.opts.KeyRetention.Seconds()), b.heed(len(content)), queued,
	}, nil
}

// Places among the arguments of accept.lua of what can have a message refused.
const argLimit, argShare = 9, 13

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
func (b *Outbox) judge(answer []any, err error) (first string, _ error) {
	if err != nil {
		return "", away(err, "accept message")
	}
	switch answer[0] {
	case "NEW", "AGAIN":
		return "", nil
	case "HIT":
		return fmt.Sprint(answer[1]), nil
	case "REUSED":
		return "", fault.New(fault.Unprocessable, "IdempotencyKeyReused",
			"This idempotency key was used with another body; nothing was queued. Use a new key for a new message")
	case "FULL":
		if answer[1] == "memory" {
			return "", full("Redis uses more than %.0f %% of its maxmemory (redis.maxMemoryShare)", b.opts.MaxMemoryShare*100)
		}
		return "", full("The outbox holds as many messages as it may (outbox.maxLive: %d)", b.opts.MaxLive)
	}
	return "", fmt.Errorf("accept message: %v", answer[0])
}

func (b *Outbox) accepted(ctx context.Context, id string, s submission, due time.Time) {
	b.metrics.accepted.WithLabelValues("queued").Inc()
	b.mail.queued(ctx, id, s.envelope, due)
}

// partitionFor picks the partition a message will live in: that of its idempotency key, or any.
func (b *Outbox) partitionFor(s submission) int {
	if s.fingerprint != "" {
		return redisdb.PartitionFor(keyHash(s.envelope.Account, s.envelope.Key), b.DB.Partitions())
	}
	return redisdb.PartitionFor(s.envelope.MessageID, b.DB.Partitions())
}
