package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox/suppression"
)

// accepting is the part of a newMessage that only accept needs.
type accepting struct {
	look    *suppression.Look // what accept.lua looks up in the suppressions; nil for nothing
	keys    []string
	args    acceptArgs
	task    queue.Task
	reply   *redisdb.Reply[accepted]
	shares  int                        // how often its shared content was missing in Redis
	stopped map[int]*suppression.Entry // its suppressed recipients, if they were asked for

	quotaCheck *quotaCheck // what accept.lua must know of its quotas
}

// firstEpoch is the epoch of a message's first task.
const firstEpoch = "1"

// accept makes messages of one batch durable and queues their first tasks. Each message gets its result.
//
// accept.lua looks for the recipients in the suppressions itself if it can. It answers ASK if it finds any
// entry about one; only then the suppressions are asked. Where it can't look, they are asked first.
//
// The two steps have a timeout each. Otherwise messages with such an entry would be refused because Redis was
// slow for a moment, when the others of their mail merge are accepted already.
func (in *Intake) accept(ctx context.Context, all []*newMessage, timeout time.Duration) {
	ctx, span := in.opts.Traces.Child(ctx, "store", telemetry.Asks)
	defer span.End()
	span.SetInt("postroom.messages", len(all))
	first, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	full := in.Admits(first)
	var check *quotaCheck
	if full == nil && len(all) > 0 {
		check, full = newQuotaCheck(first, in.store, all[0].quotas)
	}
	var look, ask []*newMessage
	for _, m := range all {
		err := full
		if m.quotaCheck = check; err == nil {
			err = in.encode(m)
		}
		switch {
		case err != nil:
			m.refuse(err)
		case in.Suppressions == nil || m.look != nil:
			look = append(look, m)
		default:
			ask = append(ask, m)
		}
	}
	ask = append(ask, in.enter(first, look)...)
	second, end := context.WithTimeout(ctx, timeout)
	defer end()
	in.enter(second, in.withoutSuppressed(second, ask))
}

// enter runs accept.lua for messages, in one pipeline. It returns those in which a recipient may be
// suppressed.
//
// The script queues the task of the message too. In a Cluster the queue is in another slot, so there the
// tasks of the messages that were accepted are queued afterwards.
func (in *Intake) enter(ctx context.Context, all []*newMessage) (ask []*newMessage) {
	all = in.bringIn(ctx, all)
	if len(all) == 0 {
		return nil
	}
	pipe := in.DB.ReplicatedPipeline()
	for _, m := range all {
		m.args.Deadline = in.deadline(ctx)
		m.reply = acceptScript.Add(pipe, m.keys, m.args)
	}
	_ = pipe.Exec(ctx) // each command has its own error
	var again, fresh []*newMessage
	for _, m := range all {
		answer, err := m.reply.Read()
		err = in.refusal(ctx, m, answer, err)
		switch {
		case errors.Is(err, errUnshared) && m.shares < 2:
			m.shares++
			in.shared.forget(m.partition, m.shared)
			again = append(again, m)
		case errors.Is(err, errAsk):
			ask = append(ask, m)
		case err != nil:
			m.refuse(err)
		case in.answer(ctx, m, answer) && m.args.Enqueue == "" && answer.Word != "BACKLOG":
			fresh = append(fresh, m)
		}
	}
	in.enqueueAccepted(ctx, fresh)
	if len(again) > 0 {
		ask = append(ask, in.enter(ctx, again)...)
	}
	return ask
}

// deadline is when ctx ends, on the clock of Redis. The clock of a test is not that.
func (in *Intake) deadline(ctx context.Context) string {
	end, ok := ctx.Deadline()
	if !ok || in.clock.fixed {
		return ""
	}
	return strconv.FormatInt(redisdb.Millis(in.clock.Now().Add(time.Until(end))), 10)
}

// enqueueAccepted queues the tasks of accepted messages.
func (in *Intake) enqueueAccepted(ctx context.Context, fresh []*newMessage) {
	if len(fresh) == 0 {
		return
	}
	tasks := make([]queue.Task, len(fresh))
	for i, m := range fresh {
		tasks[i] = m.task
	}
	for i, err := range in.Queue.Enqueue(ctx, tasks...) {
		if err == nil { // else the sweeper queues it
			in.queued.note(fresh[i].partition, fresh[i].id)
		}
	}
}

// answer fills in the result of an accepted message and reports whether it is new.
func (in *Intake) answer(ctx context.Context, m *newMessage, key accepted) (fresh bool) {
	if m.looksAtMemory() {
		in.checked()
	}
	if key.Word != keyHit {
		in.handled.Add(1)
		in.metrics.accepted.WithLabelValues("queued").Inc()
		in.mail.queued(ctx, m.id, m.envelope, m.result.SendAt)
		if key.Word == "BACKLOG" {
			in.backlogs.Store(m.backlog(), true)
		} else {
			in.backlogs.Delete(m.backlog())
		}
		return true
	}
	in.metrics.accepted.WithLabelValues("hit").Inc()
	m.result.recall(key, m.envelope.To)
	if m.look != nil && len(m.envelope.To) > 1 && m.result.Skipped == nil {
		skipped, err := in.skippedNow(ctx, m)
		if err != nil {
			m.refuse(err)
		}
		m.result.Skipped = skipped
	}
	return false
}

// encode makes the result, the task, and the keys and arguments of accept.lua.
func (in *Intake) encode(m *newMessage) error {
	now := in.clock.Now()
	due := max(m.due, redisdb.Millis(now))
	m.task = queue.Task{Queue: laneQueue(m.lane, m.partition), Type: TaskDeliver, ID: taskID(m.id, firstEpoch)}
	if due > redisdb.Millis(now) {
		m.task.At = redisdb.Time(due)
	}
	m.result = Result{ID: m.id, MessageID: m.envelope.MessageID, SendAt: redisdb.Time(due), Key: m.envelope.Key}
	env, err := in.jsons.pack(m.id, &m.envelope)
	if err != nil {
		return err
	}
	queued, err := in.queuedEvent(m, now)
	if err != nil {
		return err
	}
	content, shared, err := in.encodeContent(m, due <= redisdb.Millis(now))
	if err != nil {
		return err
	}
	m.keys = []string{in.keys.message(m.partition, m.id)}
	var step queue.Step
	if in.DB.Together() {
		if step, err = in.Queue.Step(context.Background(), m.task); err != nil {
			return err
		}
	}
	first := ""
	if m.key != "" {
		m.keys = append(m.keys, in.keys.idempotency(m.partition, m.key))
		first = m.result.memo()
	}
	m.args = acceptArgs{
		ID: m.id, Now: now, Due: due, Lane: m.lane, Account: m.envelope.Account, Max: m.attempts, Made: m.made,
		Reservation: m.reservation,
		Gateway:     m.gateway, Envelope: env, Content: content, LiveMost: in.limit(m.partition),
		Fingerprint: m.fingerprint, Memo: first, Merge: m.merge, Window: cmp.Or(m.window, in.opts.Window),
		MemoryShare: in.countBytes(len(content)),
		Size:        max(m.size, 1), Token: tokenOf(m.quotas),
		Shared: shared, Epoch: firstEpoch, Event: queued, Rank: rank(m.envelope.Priority),
		Addressed: m.envelope.addressed(), KeepAddressed: in.opts.keepAddressed(),
		Enqueue: step.Name, Task: step.Keys[0], Tasks: step.Keys[1],
		Enqueue1: step.Values[0], Enqueue2: step.Values[1], Enqueue3: step.Values[2],
	}
	if !m.counted {
		m.args.Day = now.UTC().Format(dayForm)
	}
	m.args.Quotas, m.args.Partitions = m.quotaCheck.args(m.partition)
	if m.look = in.question(m); m.look != nil {
		m.keys = append(m.keys, m.look.Keys...)
		m.args.LookEach, m.args.LookFields = m.look.Each, m.look.Fields
	}
	return nil
}

// queuedEvent returns a message's first event, which has its id, or "" if there is none.
func (in *Intake) queuedEvent(m *newMessage, now time.Time) (string, error) {
	e, err := event.New(m.id, event.MessageQueued, m.envelope.Account, now, event.Queued{
		Message: m.envelope.about(m.id, m.lane, m.gateway, m.envelope.To), SendAt: m.result.SendAt,
	})
	e.Quiet, e.Trace = m.envelope.Campaign.Quiet(e.Type), m.envelope.Trace
	if err != nil || e.Quiet && !in.opts.Archived {
		return "", err
	}
	return e.Line()
}

// rank is a priority as the scripts have it: lower goes first.
func rank(p api.Priority) int { return map[api.Priority]int{api.High: -1, api.Low: 1}[p] }

// encodeContent returns the content that a message stores: the whole message, or its part of a shared content
// with the content's name. now says that it is due.
func (in *Intake) encodeContent(m *newMessage, now bool) (content []byte, shared string, err error) {
	if m.shared == nil {
		return in.codec.pack(m.content, contentName(m.id), now && in.leaves(m)), "", nil
	}
	personal, err := in.jsons.pack(m.id, m.personal)
	return in.codec.seal([]byte(personal), contentName(m.id)), m.shared.name, err
}

// leaves reports whether a message that is due is sent immediately, as far as this process knows: nothing of
// it is kept, and its account's last message that was accepted here is not in the backlog.
func (in *Intake) leaves(m *newMessage) bool {
	_, backlog := in.backlogs.Load(m.backlog())
	return in.opts.KeepContent == 0 && !backlog
}

// backlogOf names a backlog.
type backlogOf struct {
	partition int
	lane      api.Lane
	account   string
}

func (m *newMessage) backlog() backlogOf { return backlogOf{m.partition, m.lane, m.envelope.Account} }

// unlook changes the arguments of a message that accept.lua looked up: it must not look again.
func (m *newMessage) unlook() {
	if m.look == nil {
		return
	}
	m.keys = m.keys[:len(m.keys)-len(m.look.Keys)]
	m.args.LookEach, m.args.LookFields, m.look = 0, nil, nil
}

func (m *newMessage) looksAtMemory() bool { return m.args.MemoryShare != "" }

// memo and recall keep the first answer to a key. Each message of a week has one, so it is short. Two more
// lines give the reason and the list if a message was skipped.
func (r *Result) memo() string {
	memo := fmt.Sprintf("%s %d %s", r.ID, redisdb.Millis(r.SendAt), r.MessageID)
	if r.Skipped != nil {
		memo += "\n" + r.Skipped.Reason + "\n" + r.Skipped.ListID
	}
	return memo
}

func (r *Result) recall(key accepted, to []string) {
	lines := strings.Split(key.First, "\n")
	parts := strings.SplitN(lines[0], " ", 3)
	ms, _ := strconv.ParseInt(parts[1], 10, 64)
	*r = Result{ID: parts[0], SendAt: redisdb.Time(ms), MessageID: parts[2], Key: r.Key, Repeated: true,
		State: api.MessageStatus(key.State)}
	if len(lines) > 1 {
		r.Skipped = &api.Skipped{Reason: lines[1], ListID: lines[2], Recipients: to, All: true}
	}
}

// refusal returns why accept.lua refused a message, or nil if it accepted the message now or before.
func (in *Intake) refusal(ctx context.Context, m *newMessage, answer accepted, err error) error {
	if err != nil {
		return redisError(err, "accept message")
	}
	switch answer.Word {
	case "NEW", "BACKLOG", "AGAIN", keyHit:
		return nil
	case "ASK":
		return errAsk
	case "REUSED":
		return keyReused()
	case "UNSHARED":
		return errUnshared
	case "LOST":
		return errContentLost
	case "LATE":
		in.clock.known.Store(false) // or this clock is wrong
		return redisError(context.DeadlineExceeded, "accept message")
	case "OVER":
		return m.quotaCheck.exceeded(ctx, in.Accounts, m.partition, m.size, answer.First)
	case "FULL":
		if answer.First == "memory" {
			return full("Redis uses more than %.0f %% of its maxmemory (redis.maxMemoryShare)",
				in.opts.MaxMemoryShare*100)
		}
		return full("The outbox holds as many messages as it may (outbox.maxLive: %d)", in.opts.MaxLive)
	}
	return fmt.Errorf("accept message: %s", answer.Word)
}

func keyReused() error {
	return fault.New(fault.Unprocessable, "IdempotencyKeyReused",
		"This idempotency key was used with another body; nothing was queued. Use a new key for a new message")
}

// errUnshared means that the shared content of a message is not in Redis.
var errUnshared = fault.New(fault.Unavailable, "SharedContentGone",
	"The content that this message shares with others was deleted from Redis. Submit the message again")

// errAsk means that accept.lua found an entry about a recipient in the suppressions.
var errAsk = errors.New("a recipient may be suppressed")

// errContentLost means that a content was gone before its message was accepted, for example because Redis
// failed over.
var errContentLost = fault.New(fault.Unavailable, "ContentLost",
	"Redis lost this message. Submit it again")

// bringIn puts into Redis what accept.lua needs to find there: shared contents, and contents that are large.
// It returns the messages for which it succeeded.
//
// A script would copy a large argument twice and block Redis for that time: 40 ms for 20 MB. The script
// renames its key instead.
func (in *Intake) bringIn(ctx context.Context, all []*newMessage) []*newMessage {
	var shareErr error
	return slices.DeleteFunc(all, func(m *newMessage) bool {
		if m.shared != nil && !in.shared.has(m.partition, m.shared) && shareErr == nil {
			shareErr = in.shared.put(ctx, m.partition, m.shared)
		}
		err := shareErr
		if content := m.args.Content; err == nil && len(content) > small {
			m.args.Content = nil
			err = in.putIncoming(ctx, m.partition, m.id, content)
		}
		if err != nil {
			m.refuse(err)
		}
		return err != nil
	})
}

// takeOut deletes the content that was brought in for a message that is not accepted after all. Otherwise it
// expires.
func (in *Intake) takeOut(ctx context.Context, m *newMessage) {
	if len(m.args.Content) > 0 {
		return
	}
	if err := in.DB.Client().Del(ctx, in.keys.incoming(m.partition, m.id)).Err(); err != nil {
		in.log.DebugContext(ctx, "content left behind", "message_id", m.id, "error", err)
	}
}

// Admits returns an error while Redis is so full that it needs its memory for the work it has: at maxmemory
// not even a dequeue succeeds. Without an error a message would be accepted.
func (in *Intake) Admits(ctx context.Context) error {
	share, err := in.DB.MemoryShare(ctx)
	if err != nil {
		return redisError(err, "ask Redis for its memory")
	}
	if share >= in.opts.MaxMemoryShare {
		return full("Redis uses %.0f %% of its maxmemory (redis.maxMemoryShare)", share*100)
	}
	return nil
}

// AdmitsWrite is Admits for a request that stores size bytes and is not a message. Many together can't fill
// the memory before its share is looked up again.
func (in *Intake) AdmitsWrite(ctx context.Context, size int64) error {
	if in.unseen.Add(size+overhead) >= lookEvery {
		in.checked()
		in.DB.AskMemory()
	}
	return in.Admits(ctx)
}

func full(format string, args ...any) error {
	f := fault.New(fault.Unavailable, "OutboxFull", format+"; try again after some messages have been sent",
		args...)
	f.RetryAfter = retryAfterOutage
	return f
}

// limit returns how many live messages a partition may hold, as an argument of accept.lua, or "" for no
// limit. The limits of all partitions add up to Options.MaxLive.
func (in *Intake) limit(partition int) string {
	if in.opts.MaxLive == 0 {
		return ""
	}
	n, rest := in.opts.MaxLive/in.DB.Partitions(), in.opts.MaxLive%in.DB.Partitions()
	if partition < rest {
		n++
	}
	return strconv.Itoa(n)
}
