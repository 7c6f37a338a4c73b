package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates/batch"
)

// errUnmarked ends an attempt that could not be recorded before its final dot. Nothing was delivered, and the
// relay is not to blame.
var errUnmarked = errors.New("the attempt could not be marked before its final dot")

// errLeaseLost ends an attempt whose message another worker may have taken over.
var errLeaseLost = errors.New("the lease ran out")

// shortWait is how long a worker waits for a message that is almost due, rather than putting its task back:
// the queue counts in seconds.
const shortWait = 1200 * time.Millisecond

// claim is a message begun: the right to send it, and what is needed to.
type claim struct {
	id        string
	partition int
	fence     string
	lane      api.Lane
	gateway   string
	attempts  int    // made so far
	max       int    // allowed
	lapsed    string // what became of the attempt before, if its worker died: "", lost, doubt
	began     time.Time
	lost      int // attempts whose worker died before the dot
	doubts    int // attempts that died after it
	oldDoubts int // of these, before the last replay
	created   int64
	scheduled time.Time
	envelope  envelope
	status    status
	content   smtpsend.Body
	// name of the shared content it is rendered from; empty: content is the message
	shared      string
	personal    batch.Personalization // beside the shared content
	text        string                // as it was rendered from shared content
	reservation string                // of a limit, from an earlier attempt that had to wait
	urgent      bool                  // an operator wants it tried even while its account is held
	cleared     bool                  // nobody in it was suppressed as it was begun
	asked       time.Time             // directly before it was begun, by the machine's clock

	transactions int       // recorded on their own
	until        time.Time // the dot may be written before it
}

// Delivery sees messages through to their relays: it begins a message, makes an attempt, records the result,
// and mends what a crash left.
type Delivery struct {
	*store
	leases *leases
}

func newDelivery(s *store) *Delivery { return &Delivery{store: s, leases: newLeases(s)} }

// Deliver handles one wake-up: it begins the message the task names, makes one attempt, and records what came
// of it.
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
	held, release := d.leases.hold(ctx, c.partition, id, c.fence)
	started := d.clock.Now()
	dec := d.attempt(held, c, started)
	lost := errors.Is(context.Cause(held), errLeaseLost)
	release()
	if lost && !dec.knowsMore() {
		return queue.Drop() // whoever took the message over tells its story from here
	}
	return d.record(context.WithoutCancel(ctx), c, dec)
}

// begin claims the message, or says what to do with a task whose message can't be begun now.
func (d *Delivery) begin(ctx context.Context, id string) (*claim, queue.Verdict, error) {
	partition, err := d.place(id)
	if err != nil {
		return nil, queue.Drop(), nil //nolint:nilerr // an id that can't be one wakes nothing
	}
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return nil, queue.Verdict{}, away(err, "begin message "+id)
	}
	keys := d.beginKeys(partition, id)
	for waited := false; ; waited = true {
		asked, now := d.clock.now(), d.clock.Now()
		answer, err := beginScript.Run(ctx, d.DB.Shared(), keys,
			beginArgs{ID: id, Now: now, LeaseUntil: now.Add(d.opts.Lease), ContentMost: small})
		if err != nil {
			return nil, queue.Verdict{}, onMessage(err, beginScript.Name(), id)
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
			if err := sleep(ctx, due.Sub(now)); err != nil {
				return nil, queue.NotNow(due), nil //nolint:nilerr // the worker is stopping; the task keeps its time
			}
		default: // GONE, FAILED: a task that outlived its message
			return nil, queue.Drop(), nil
		}
	}
}

// readClaim reads the message that begin.lua answered.
func (d *Delivery) readClaim(id string, partition int, a begun) (*claim, error) {
	c := &claim{
		id: id, partition: partition, fence: a.Fence, lane: api.Lane(a.Lane), attempts: a.Attempts, max: a.Max,
		gateway: a.Gateway, lapsed: a.Lapsed, began: a.Began, lost: a.Lost, doubts: a.Doubts,
		oldDoubts: a.OldDoubts, created: a.Created, scheduled: a.Scheduled, reservation: a.Reservation,
		urgent: a.Urgent, shared: a.Shared, cleared: a.Cleared,
	}
	if err := d.jsons.unpack(id, []byte(a.Envelope), &c.envelope); err != nil {
		return nil, err
	}
	var err error
	if c.status, err = d.jsons.unpackStatus(id, a.Status, c.envelope); err != nil {
		return nil, err
	}
	if c.shared != "" {
		return c, d.jsons.unpack(id, []byte(a.Content), &c.personal)
	}
	c.content = d.body(partition, id, a.Content, c.envelope.Size)
	return c, nil
}

// attempt sends the message to the recipients not yet done, unless it is already clear that it must not be
// sent.
func (d *Delivery) attempt(ctx context.Context, c *claim, started time.Time) decision {
	p := d.policy(nil)
	if reason := refuse(c, p, started); reason != nil {
		return decide(c, attempted{start: started, end: started, err: reason, refused: true}, p)
	}
	account, err := d.Accounts.Resolve(ctx, c.envelope.Account)
	if err != nil {
		// Redis is away, the worker is stopping, or the account's secrets don't open: nothing was tried
		if !fault.Is(err, fault.NotFound) {
			d.log.WarnContext(ctx, "account not looked up", "message_id", c.id, "account", c.envelope.Account, "error",
				err)
			if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				return decision{outcome: released, at: d.clock.Now()}
			}
			return decision{outcome: deferred, at: d.clock.Now(), due: d.clock.Now().Add(time.Minute),
				reservation: c.reservation,
				reason:      "the account can't be used; the log says why"}
		}
		return decide(c, attempted{start: started, end: d.clock.Now(), err: errNoAccount, refused: true}, p)
	}
	wait, err := d.heldBack(ctx, c, account)
	switch {
	case err != nil:
		d.log.WarnContext(ctx, "held account not asked", "message_id", c.id, "account", account.ID, "error", err)
		return decision{outcome: released, at: d.clock.Now()}
	case wait:
		return onHold(account, d.clock.Now())
	}
	if err := d.written(ctx, c, account.DKIM); err != nil {
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
		ID: c.id, Account: account, Gateway: c.gateway, Lane: c.lane,
		Reservation: limits.Reservation(c.reservation),
		Message:     d.message(c, stopped),
	})
	if !got.Wait.IsZero() {
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

// failureOf is why nobody got the message, with the gateway that was asked last. Nil: somebody got it.
func failureOf(got routing.Sent) error {
	if errors.Is(got.Err, routing.ErrNoGateway) {
		return errNoGateway
	}
	if n := len(got.Tries); n > 0 {
		return gateways.Via(got.Tries[n-1].Gateway, got.Err)
	}
	return got.Err
}

// written renders the message from its shared content, if it has one, or adds to a raw message. Each attempt
// gives the same.
func (d *Delivery) written(ctx context.Context, c *claim, key *api.DKIM) error {
	if c.shared == "" {
		return d.addToRaw(ctx, c, key)
	}
	m, words, err := d.renderSigned(ctx, c.partition, c.shared, c.id, c.envelope, c.personal, key)
	if err != nil {
		return err
	}
	c.text = words.Text
	c.content, c.envelope.Size = smtpsend.Bytes(m.Raw), m.Size()
	c.envelope.UTF8, c.envelope.EightBit = c.envelope.UTF8 || m.SMTPUTF8, c.envelope.EightBit || m.EightBit
	return nil
}

// addToRaw adds links and pixel to a raw message, if it is to have them.
func (d *Delivery) addToRaw(ctx context.Context, c *claim, key *api.DKIM) error {
	if !c.envelope.additions.any() {
		return nil
	}
	content, err := c.content.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(content)
	if err == nil {
		raw, err = d.withAdditions(ctx, c.id, c.envelope, key, raw)
	}
	if err == nil {
		c.content, c.envelope.Size = smtpsend.Bytes(raw), len(raw)
	}
	return err
}

// unwritten decides about a message that could not be written: at once while Redis is away, in a while where
// a secret does not open, and never where it is the message.
func (d *Delivery) unwritten(ctx context.Context, c *claim, err error, started time.Time, p policy) decision {
	d.log.WarnContext(ctx, "message not written", "message_id", c.id, "shared", c.shared, "error", err)
	now := d.clock.Now()
	switch {
	case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
		return decision{outcome: released, at: now}
	case errors.Is(err, errNoSharedContent) || !fault.Is(err, fault.Internal):
		return decide(c, attempted{start: started, end: now, err: fmt.Errorf("%w: %w", errUnwritten, err),
			refused: true}, p)
	}
	return decision{outcome: deferred, at: now, due: now.Add(time.Minute), reservation: c.reservation,
		reason: "the message can't be written; the log says why"}
}

// message is what goes to the sender: the recipients left, and the mark to set before the dot.
func (d *Delivery) message(c *claim, stopped map[int]*suppression.Entry) smtpsend.Message {
	left := slices.DeleteFunc(c.status.having(rcptQueued), func(i int) bool { return stopped[i] != nil })
	return smtpsend.Message{
		From: d.returnPath(c), To: c.envelope.addresses(left), Body: c.content,
		UTF8: c.envelope.UTF8, EightBit: c.envelope.EightBit, DSN: dsn(c.envelope.DSN),
		RequireTLS: c.envelope.RequireTLS,
		BeforeDot:  func(ctx context.Context, _ []string) error { return d.doubt(ctx, c) },
		AtDot:      func() error { return c.mayWrite(d.clock.Now()) },
		Answered: func(ctx context.Context, done []smtpsend.RecipientResult) error {
			return d.progress(ctx, c, done)
		},
	}
}

// returnPath is where bounces of a message go: to an address that tells which message and whom it is about,
// unless its sender wants them elsewhere.
func (d *Delivery) returnPath(c *claim) string {
	if !c.envelope.Returns || d.Tokens == nil || d.opts.BounceDomain == "" {
		return c.envelope.From
	}
	recipient := signedtoken.Whole
	if len(c.envelope.To) == 1 {
		recipient = 0
	}
	path, err := d.Tokens.ReturnPath(c.id, recipient, d.opts.BounceDomain)
	if err != nil {
		d.log.Error("no return path of its own", "message_id", c.id, "error", err)
		return c.envelope.From
	}
	return path
}

// doubt records that the dot is about to be written. Without that record, on the replicas too where they are
// waited for, the dot must not be written: a new master that knows nothing of it would send again without a
// doubt.
func (d *Delivery) doubt(ctx context.Context, c *claim) error {
	now := d.clock.Now()
	until, err := doubtScript.RunReplicated(ctx, d.DB, []string{d.keys.message(c.partition, c.id)},
		doubtArgs{Now: now, Fence: c.fence})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnmarked, err)
	}
	if until.IsZero() {
		return errLeaseLost
	}
	c.until = now.Add(until.Sub(now) - dotMargin) // keeps the monotonic clock of now
	return nil
}

// dotMargin is how long before the end of its lease a message's dot is no longer written: clocks are compared
// to about that much.
const dotMargin = 200 * time.Millisecond

// mayWrite says whether the lease that was found to hold when the mark was set still does. The process may
// have been stopped since, the only thing that it could not notice otherwise. Of its two clocks one stands
// still while the machine sleeps, and the other one may be set.
func (c *claim) mayWrite(now time.Time) error {
	if now.Before(c.until) && now.Round(0).Before(c.until.Round(0)) {
		return nil
	}
	return errLeaseLost
}

// record writes what an attempt came to, and keeps trying while Redis is away: a 250 that was read must not
// be forgotten.
func (d *Delivery) record(ctx context.Context, c *claim, dec decision) queue.Verdict {
	args, err := d.finishArgs(ctx, c, dec)
	if err != nil {
		d.log.ErrorContext(ctx, "attempt not recorded", "message_id", c.id, "error", err)
		return queue.NotNow(d.clock.Now().Add(time.Second))
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := d.teach(ctx, c, dec) // before the message ends: what came between would be forgotten
		var answer finished
		if err == nil {
			answer, err = run(ctx, d.store, finishScript, c.partition, c.id, args)
		}
		if err == nil {
			return d.recorded(ctx, c, dec, answer)
		}
		d.log.WarnContext(ctx, "attempt not recorded yet", "message_id", c.id, "outcome", dec.outcome, "error", err)
		if !fault.Is(err, fault.Unavailable) || d.clock.Now().Sub(dec.at) > recordPatience {
			return queue.NotNow(d.clock.Now().Add(time.Second))
		}
		if sleep(ctx, wait) != nil {
			return queue.NotNow(d.clock.Now().Add(time.Second))
		}
	}
}

// recordPatience is how long a finished attempt waits for Redis to come back before its worker goes on to
// other messages.
const recordPatience = 10 * time.Minute

func (d *Delivery) finishArgs(ctx context.Context, c *claim, dec decision) (finishArgs, error) {
	now := d.clock.Now()
	args := finishArgs{ID: c.id, Fence: c.fence, Now: now, Outcome: dec.outcome, Due: dec.due,
		Reason: dec.reason}
	if dec.outcome == released || dec.waits() && dec.untried() {
		args.Attempts, args.Lapsed, args.Reservation = c.attempts, c.lapsed, dec.reservation
		if dec.outcome == released {
			args.Due, args.Reservation = now, c.reservation
		}
		return args, nil
	}
	events, err := dec.events(c)
	if err != nil {
		return args, err
	}
	args.Attempts, args.Attempted, args.InDoubt, args.Events = dec.attempts, !dec.unasked, dec.fresh,
		events.lines
	if dec.ends() {
		args.Text = d.textOf(ctx, c)
	}
	args.References, args.KeepReferences = d.references(c, dec), int(d.opts.KeepReferences.Seconds())
	args.Status, args.Record, err = d.left(c, dec, events.remember(dec.status))
	return args, err
}

// left is what an attempt leaves of its message: the status, while it stays in the outbox, or what goes into
// the log.
func (d *Delivery) left(c *claim, dec decision, st status) (packed, record string, err error) {
	if dec.ends() {
		record, err = d.ending(c.row(dec), st, dec.result(), dec.whySuppressed(), dec.at)
		return "", record, err
	}
	packed, err = d.jsons.pack(c.id, st)
	return packed, "", err
}

// row is the message as an attempt leaves it.
func (c *claim) row(d decision) row {
	r := row{
		id: c.id, lane: c.lane, created: c.created, planned: millis(c.scheduled), attempts: d.attempts, max: c.max,
		gateway: c.gateway,
		doubts:  c.doubts, envelope: c.envelope, status: d.status,
	}
	if d.fresh {
		r.doubts++
	}
	return r
}

// recorded tells the operator and the queue what was recorded.
func (d *Delivery) recorded(ctx context.Context, c *claim, dec decision, answer finished) queue.Verdict {
	if answer.Word == "LOST" {
		d.log.WarnContext(ctx, "attempt came too late", "message_id", c.id, "outcome", dec.outcome, "state",
			answer.State)
		d.metrics.attempts.WithLabelValues("late").Inc()
		return queue.Drop()
	}
	d.handled.Add(1)
	d.observe(ctx, c, dec)
	switch dec.outcome {
	case sent, suppressed:
		return queue.Done()
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

// policy is what decides about a message's further attempts.
func (d *Delivery) policy(schedule []time.Duration) policy {
	backoff := d.opts.Backoff
	if len(schedule) > 0 {
		backoff.Schedule = schedule
	}
	return policy{backoff: backoff, holdInDoubt: d.opts.HoldInDoubt, noDeadLetters: d.opts.KeepDeadLetters < 0,
		random: rand.Float64}
}

// sleep waits, or returns early with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
