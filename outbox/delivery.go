package outbox

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

// shortWait is the longest time that a worker waits for a message to be due. Beyond it, the task goes back to
// the queue, which counts in seconds.
const shortWait = 1200 * time.Millisecond

// A task may come before its message: Redis has forgotten accept.lua and is given it again, or the two are on
// different nodes of a Cluster. The worker waits for a moment, and then the task does.
const (
	acceptPause    = 20 * time.Millisecond
	acceptedWithin = 5 * time.Second // later the task is dropped; the sweeper would queue another
)

// claim is a message that this worker may send.
type claim struct {
	row
	lapsed      string // the attempts in no log yet whose worker died, see lapse.lua
	began       time.Time
	lost        int                    // attempts whose worker died before the dot
	oldDoubts   int                    // doubts before the last replay
	content     smtpsend.Body          // unset with shared content until it is rendered
	personal    render.Personalization // beside the shared content
	unopened    error                  // of personal; nil: it was unpacked
	text        string                 // as it was rendered
	reservation string                 // of a limit, from an earlier attempt that had to wait
	urgent      bool                   // an operator wants an attempt even while the account is held
	window      int                    // of its account; 0: the account was not looked up
	cleared     bool                   // begin.lua found no recipient suppressed
	passes      bool                   // it goes before messages that wait in a line for a relay
	asked       time.Time              // directly before begin.lua, by the machine's clock

	write  writer // nil: it goes as it is stored
	marks  *Marks // nil: it has a record
	marked bool   // by Marks.Mark

	transactions int       // recorded by progress
	until        time.Time // end of the lease as doubt found it
}

// Marks are asked about mail that has no record, around its final dot.
type Marks struct {
	// Mark notes that the dot will be written. If it fails, nothing is delivered.
	Mark func(context.Context) error
	// Still reports why the mark does not count any more; nil: it does. Without I/O.
	Still func() error
}

// unrecorded reports whether a message has no record: it is the mail of a campaign, at its first attempt.
func (c *claim) unrecorded() bool { return c.marks != nil }

// Delivery delivers messages to relays: it begins a message, makes an attempt and records the result. Its
// sweeper repairs what a crash left behind.
type Delivery struct {
	*store
	leases *lease.Set[leased]
	lines  *lines
}

func newDelivery(s *store) *Delivery {
	return &Delivery{store: s, leases: newLeases(s), lines: newLines(s)}
}

// Deliver handles one wake-up: it begins the message of the task, makes one attempt, and records its result.
func (d *Delivery) Deliver(ctx context.Context, t queue.Task) queue.Verdict {
	id := messageOf(t.ID)
	c, verdict, err := d.begin(ctx, id)
	if err != nil {
		d.log.ErrorContext(ctx, "message not begun", "message_id", id, "error", err)
		return queue.NotNow(d.clock.Now().Add(time.Second))
	}
	if c == nil {
		return verdict
	}
	ctx, span := d.trace(ctx, c)
	defer span.End()
	held, release := d.leases.Hold(ctx, leased{c.partition, id, c.fence})
	started := d.clock.Now()
	dec := d.attempt(held, c, started)
	tracedAttempt(span, dec)
	lost := errors.Is(context.Cause(held), lease.ErrLost)
	release()
	if lost {
		d.log.WarnContext(ctx, "lease lost", "message_id", id)
	}
	if lost && !dec.knowsMore() {
		return queue.Drop() // another worker has the message and records what follows
	}
	return d.record(context.WithoutCancel(ctx), c, dec)
}

// begin claims the message. If it can't be begun now, the claim is nil, and the verdict is for its task.
func (d *Delivery) begin(ctx context.Context, id string) (*claim, queue.Verdict, error) {
	partition, err := d.place(id)
	if err != nil {
		return nil, queue.Drop(), nil //nolint:nilerr // no message has this id
	}
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return nil, queue.Verdict{}, redisError(err, "begin message "+id)
	}
	fresh := createdAt(id).Add(acceptedWithin)
	keys := d.beginKeys(partition, id)
	for waited := false; ; waited = true {
		asked, now := d.clock.now(), d.clock.Now()
		answer, err := beginScript.Run(ctx, d.DB.Shared(), keys,
			beginArgs{ID: id, Now: now, LeaseUntil: now.Add(d.opts.Lease), ContentMost: small, Window: d.opts.Window})
		if err != nil {
			return nil, queue.Verdict{}, redisError(err, "begin message "+id)
		}
		switch answer.Word {
		case "GO":
			c, err := d.readClaim(id, partition, answer)
			if err != nil {
				return nil, queue.Verdict{}, err
			}
			c.asked = asked
			return c, queue.Verdict{}, nil
		case "EARLY", "HELD":
			due := cmp.Or(answer.Due, answer.Lease)
			if wait := due.Sub(now); answer.Word == "HELD" || wait > shortWait || waited {
				return nil, queue.NotNow(due), nil
			}
			if !redisdb.Pause(ctx, due.Sub(now)) {
				return nil, queue.NotNow(due), nil // the worker is stopping; the task keeps its time
			}
		case "UNKNOWN":
			if now.After(fresh) {
				return nil, queue.Drop(), nil
			}
			if waited || !redisdb.Pause(ctx, acceptPause) {
				return nil, queue.NotNow(now.Add(time.Second)), nil
			}
		default: // LATER: another task will wake it; GONE, FAILED: the task outlived its message
			return nil, queue.Drop(), nil
		}
	}
}

// readClaim makes a claim from the answer of begin.lua.
func (d *Delivery) readClaim(id string, partition int, a begun) (*claim, error) {
	c := &claim{
		row: row{id: id, partition: partition, fence: a.Fence, lane: a.Lane, attempts: a.Attempts, max: a.Max,
			gateway: a.Gateway, doubts: a.Doubts, created: a.Created, planned: a.Scheduled, shared: a.Shared},
		lapsed: a.Lapsed, began: a.Began, lost: a.Lost, oldDoubts: a.OldDoubts, reservation: a.Reservation,
		urgent: a.Urgent, cleared: a.Cleared, passes: a.Passes,
	}
	if err := d.jsons.unpack(id, []byte(a.Envelope), &c.envelope); err != nil {
		return nil, err
	}
	var err error
	if c.status, err = d.jsons.unpackStatus(id, a.Status, c.envelope); err != nil {
		return nil, err
	}
	c.status.begins(a.Due, d.clock.Now())
	if c.shared != "" {
		c.personal, c.unopened = d.personalOf(id, []byte(a.Content))
		return c, nil
	}
	c.content = d.body(partition, id, a.Content, c.envelope.Size)
	return c, nil
}

// doubt records that the dot is about to be written. Without this record the dot must not be written. If
// replicas are waited for, they need it too: a new master without it would send again without a doubt.
func (d *Delivery) doubt(ctx context.Context, c *claim) error {
	now := d.clock.Now()
	until, err := doubtScript.RunReplicated(ctx, d.DB, []string{d.keys.message(c.partition, c.id)},
		doubtArgs{Now: now, Fence: c.fence})
	if err != nil {
		return err
	}
	if until.IsZero() {
		return lease.ErrLost
	}
	c.until = now.Add(until.Sub(now)) // keeps the monotonic clock of now
	return nil
}

// record writes the result of an attempt.
func (d *Delivery) record(ctx context.Context, c *claim, dec decision) queue.Verdict {
	var answer finished
	args, err := d.finishArgs(ctx, c, dec)
	if err == nil {
		err = d.persist(ctx, c, func() (err error) {
			// before finish.lua: once the message has ended, this is not tried again
			if err = d.reportDead(ctx, c, dec); err == nil {
				answer, err = run(ctx, d.store, finishScript, c.partition, c.id, args)
			}
			return err
		})
	}
	if err != nil {
		d.log.ErrorContext(ctx, "attempt not recorded", "message_id", c.id, "error", err)
		return queue.NotNow(d.clock.Now().Add(time.Second))
	}
	if args.Contended {
		d.lines.note(c.partition, args.Line) // finish.lua may have begun it
	}
	return d.recorded(ctx, c, dec, answer)
}

// finishArgs returns the arguments of finish.lua.
func (d *Delivery) finishArgs(ctx context.Context, c *claim, dec decision) (finishArgs, error) {
	now := d.clock.Now()
	args := finishArgs{ID: c.id, Fence: c.fence, Now: now, Outcome: dec.outcome, Due: dec.due,
		Reason: dec.reason, Hold: dec.hold, Window: cmp.Or(c.window, d.opts.Window), LineDue: now.Add(holdAtMost)}
	if line := dec.line(c); line.scope != "" {
		args.Line, args.Contended = line.String(), d.lines.contended(line)
	}
	if dec.outcome == released || dec.waits() && dec.untried() {
		args.Attempts, args.Lapsed, args.Reservation = c.attempts, c.lapsed, dec.reservation
		if dec.outcome == released {
			args.Due, args.Reservation, args.Reason = now, c.reservation, ""
			return args, nil
		}
		var err error
		args.Status, err = d.jsons.pack(c.id, c.status.waits(dec.at, dec.reason))
		return args, err
	}
	events, err := dec.events(c)
	if err != nil {
		return args, err
	}
	args.Attempts, args.Attempted, args.InDoubt, args.Events = dec.attempts, !dec.unasked, dec.fresh,
		events.lines
	args.References, args.KeepKey = d.references(c, dec), d.keepKey()
	st := events.remember(dec.status)
	if dec.waits() {
		st = st.waits(dec.at, dec.reason)
	}
	if result, reason := dec.end(); result != "" {
		kept := d.opts.keeps(c.row, result)
		if kept {
			args.KeepContent = int(math.Ceil(d.opts.KeepContent.Seconds()))
		}
		args.Text = d.textOf(ctx, c, kept)
		args.Record, err = d.ending(c.after(dec), st, result, reason, dec.at)
	} else {
		args.Status, err = d.jsons.pack(c.id, st)
	}
	if err == nil && len(dec.dialogues) > 0 {
		args.DialogueOf = len(dec.status.Log)
		args.Dialogue, err = packDialogues(d.store, c.id, dec.dialogues)
	}
	return args, err
}

// after is the message after an attempt.
func (c *claim) after(d decision) row {
	r := c.row
	r.attempts, r.status = d.attempts, d.status
	if d.fresh {
		r.doubts++
	}
	return r
}

// recorded logs and counts what was recorded, and returns the verdict for the queue.
func (d *Delivery) recorded(ctx context.Context, c *claim, dec decision, answer finished) queue.Verdict {
	if answer.Word == "LOST" {
		d.log.WarnContext(ctx, "attempt came too late", "message_id", c.id, "outcome", dec.outcome, "state",
			answer.State)
		d.metrics.attempts.WithLabelValues("late").Inc()
		return queue.Drop()
	}
	d.lines.note(c.partition, dec.hold)
	d.learned(ctx, c, &dec)
	d.enqueue(ctx, answer.wakeups(c.lane)...)
	switch dec.outcome {
	case sent:
		return queue.Done()
	case suppressed:
		return queue.Drop() // it is no completed job
	case failed, dropped:
		return queue.Bury(dec.summary())
	case released:
		return queue.NotNow(d.clock.Now().Add(time.Second))
	case deferred, held:
		return queue.NotNow(dec.due)
	default:
		return queue.RetryAt(dec.due, dec.summary())
	}
}
