package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

// errUnmarked ends an attempt that could not be recorded before its final dot. Nothing was delivered, and the
// relay is not at fault.
var errUnmarked = errors.New("the attempt could not be marked before its final dot")

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
	rewritten   bool                   // its campaign has written the content and the envelope anew
	text        string                 // as it was rendered from shared content
	reservation string                 // of a limit, from an earlier attempt that had to wait
	urgent      bool                   // an operator wants an attempt even while the account is held
	window      int                    // of its account; 0: the account was not looked up
	cleared     bool                   // begin.lua found no recipient suppressed
	passes      bool                   // it goes before messages that wait in a line for a relay
	asked       time.Time              // directly before begin.lua, by the machine's clock

	transactions int       // recorded by progress
	until        time.Time // end of the lease as doubt found it
}

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

// attempt sends the message to the recipients that are not done, unless it must not be sent.
func (d *Delivery) attempt(ctx context.Context, c *claim, started time.Time) decision {
	p := d.policy(nil)
	if reason := refuse(c, p, started); reason != nil {
		return decide(c, attempted{start: started, end: started, err: reason, refused: true}, p)
	}
	account, err := d.sender(ctx, c.envelope)
	switch {
	case endCode(err) != "":
		return decide(c, attempted{start: started, end: d.clock.Now(), err: err, refused: true}, p)
	case err != nil:
		d.log.WarnContext(ctx, "account not looked up", "message_id", c.id, "account", c.envelope.Account, "error",
			err)
		return d.untried(ctx, c, err, "the account can't be used; the log says why")
	}
	c.window = d.windowOf(account)
	if rests := d.campaignRests(ctx, c, started, p); rests != nil {
		return *rests
	}
	wait, err := d.heldBack(ctx, c, account)
	switch {
	case err != nil:
		d.log.WarnContext(ctx, "held account not asked", "message_id", c.id, "account", account.ID, "error", err)
		return decision{outcome: released, at: d.clock.Now()}
	case wait:
		return d.hold(c, accountHold(account.ID), heldReason(account.Held.Reason))
	}
	if err := d.written(ctx, c, d.owner(account, c.envelope.Bound)); err != nil {
		return d.unwritten(ctx, c, err, started, p)
	}
	p = d.policy(account.Retry)
	p.hold = account.Hold
	queued := c.status.having(rcptQueued)
	stopped, err := d.stopsNow(ctx, c, queued)
	switch {
	case err != nil:
		d.log.WarnContext(ctx, "suppressions not asked", "message_id", c.id, "error", err)
		return decision{outcome: released, at: d.clock.Now()}
	case len(stopped) > 0 && len(stopped) == len(queued):
		return decide(c, attempted{start: started, end: d.clock.Now(), refused: true, suppressed: stopped}, p)
	}
	got := d.Router.Send(ctx, routing.Dispatch{
		Proof:   func() string { return d.proof(c.id, c.envelope.Account, c.envelope.To) },
		Account: account, Gateway: c.gateway, Lane: c.lane,
		Reservation: limits.Reservation(c.reservation), Message: d.message(c, stopped), Path: c.envelope.Path,
		Behind: func(scope string) bool { return d.behind(c, scope) },
	})
	d.tracedTries(ctx, got.Tries)
	switch {
	case got.Relay != "":
		dec := d.hold(c, relayHold{got.Relay, c.lane, account.ID}.String(), got.Reason)
		dec.reservation = string(got.Reservation)
		if d.behind(c, got.Relay) {
			dec.tried = []string{got.Relay} // the first of the line may have a turn
		}
		return dec
	case !got.Wait.IsZero():
		return decision{outcome: deferred, at: d.clock.Now(), due: got.Wait, reservation: string(got.Reservation),
			reason: got.Reason}
	}
	err = failureOf(got)
	if ctx.Err() == nil && (c.gateway == "" || !account.Hold) {
		d.Accounts.Outcome(ctx, account.ID, err)
	}
	return decide(c, attempted{
		start: started, end: d.clock.Now(), tries: got.Tries, result: got.Result, err: err,
		stopping: ctx.Err() != nil, suppressed: stopped,
	}, p)
}

// untried is the decision about a message for which no relay was asked because of err: released if Redis is
// unreachable or the worker is stopping, else (a secret can't be opened) deferred for a minute.
func (d *Delivery) untried(ctx context.Context, c *claim, err error, reason string) decision {
	now := d.clock.Now()
	away := fault.Is(err, fault.Unavailable) && fault.CodeOf(err) != accounts.Unreadable
	if away || ctx.Err() != nil {
		return decision{outcome: released, at: now}
	}
	return decision{outcome: deferred, at: now, due: now.Add(time.Minute), reservation: c.reservation,
		reason: reason}
}

// failureOf is the error of the attempt with the gateway that was asked last; nil if a recipient got the
// message.
func failureOf(got routing.Sent) error {
	if errors.Is(got.Err, routing.ErrNoGateway) {
		return errNoGateway
	}
	if n := len(got.Tries); n > 0 {
		return gateways.Via(got.Tries[n-1].Gateway, got.Err)
	}
	return got.Err
}

// written renders the message from its shared content, or changes one that was stored whole. Each attempt
// gives the same bytes.
func (d *Delivery) written(ctx context.Context, c *claim, owner dkim.Owner) error {
	if err := cmp.Or(c.unopened, d.opens(ctx, c.content)); err != nil {
		return err
	}
	if c.rewritten {
		return nil
	}
	if c.shared == "" {
		return d.change(ctx, c, owner)
	}
	personal := c.correct(c.personal)
	m, words, err := d.renderSigned(ctx, c.partition, c.shared, c.id, c.envelope, personal, owner)
	if err != nil {
		return err
	}
	c.text = words.Text
	c.content, c.envelope.Size = smtpsend.Bytes(m.Raw), m.Size()
	c.envelope.UTF8, c.envelope.EightBit = c.envelope.UTF8 || m.SMTPUTF8, c.envelope.EightBit || m.EightBit
	return nil
}

// change makes the changes to a message that was stored whole, if there are any.
func (d *Delivery) change(ctx context.Context, c *claim, owner dkim.Owner) error {
	if !c.changes() {
		return nil
	}
	content, err := c.content.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(content)
	if err == nil {
		raw, err = d.changed(ctx, c.row, owner, raw)
	}
	if err == nil {
		c.content, c.envelope.Size = smtpsend.Bytes(raw), len(raw)
	}
	return err
}

// unwritten is the decision about a message that could not be rendered or opened. It fails if the message
// itself is at fault; else see untried.
func (d *Delivery) unwritten(ctx context.Context, c *claim, err error, started time.Time, p policy) decision {
	d.log.WarnContext(ctx, "message not written", "message_id", c.id, "shared", c.shared, "error", err)
	if fault.CodeOf(err) == notOpened {
		return d.untried(ctx, c, err,
			"its content is sealed under a secret that is not configured (secretPrevious)")
	}
	ours := fault.Is(err, fault.Internal) && !errors.Is(err, errNoSharedContent)
	if ours || fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
		return d.untried(ctx, c, err, "the message can't be written; the log says why")
	}
	return decide(c, attempted{start: started, end: d.clock.Now(), refused: true,
		err: fmt.Errorf("%w: %w", errUnwritten, err)}, p)
}

// message is the message for the sender, to the recipients that are left.
func (d *Delivery) message(c *claim, stopped map[int]*suppression.Entry) smtpsend.Message {
	left := slices.DeleteFunc(c.status.having(rcptQueued), func(i int) bool { return stopped[i] != nil })
	return smtpsend.Message{
		From: d.reversePath(c), ReturnPath: d.returnPaths(c), To: c.envelope.addresses(left), Body: c.content,
		UTF8: c.envelope.UTF8, EightBit: c.envelope.EightBit, DSN: dsn(c.envelope.DSN),
		RequireTLS: c.envelope.RequireTLS,
		BeforeDot:  func(ctx context.Context, _ []string) error { return d.doubt(ctx, c) },
		AtDot:      func() error { return lease.Check(d.clock.Now(), c.until) },
		Answered: func(ctx context.Context, done []smtpsend.RecipientResult) error {
			return d.progress(ctx, c, done)
		},
	}
}

// doubt records that the dot is about to be written. Without this record the dot must not be written. If
// replicas are waited for, they need it too: a new master without it would send again without a doubt.
func (d *Delivery) doubt(ctx context.Context, c *claim) error {
	now := d.clock.Now()
	until, err := doubtScript.RunReplicated(ctx, d.DB, []string{d.keys.message(c.partition, c.id)},
		doubtArgs{Now: now, Fence: c.fence})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnmarked, err)
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
			args.Due, args.Reservation = now, c.reservation
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
	if dec.ends() {
		result, reason := dec.end()
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
	d.handled.Add(1)
	d.observe(ctx, c, dec)
	d.lines.note(c.partition, dec.hold)
	for _, scope := range dec.tried {
		d.lines.wake(ctx, scope)
	}
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

// policy is the policy of a message. schedule is that of its account; none: Options.Backoff.
func (d *Delivery) policy(schedule []time.Duration) policy {
	backoff := d.opts.Backoff
	if len(schedule) > 0 {
		backoff.Schedule = schedule
	}
	return policy{backoff: backoff, holdInDoubt: d.opts.HoldInDoubt, noDeadLetters: d.opts.KeepDeadLetters < 0,
		random: rand.Float64}
}
