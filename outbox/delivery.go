package outbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

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

// claim is a message that this worker may send.
type claim struct {
	row
	lapsed      string // the attempts in no log yet whose worker died, see expire_leases.lua
	began       time.Time
	lost        int           // attempts whose worker died before the dot
	oldDoubts   int           // doubts before the last replay
	content     smtpsend.Body // unset with shared content until it is rendered
	quick       quick
	personal    render.Personalization // next to the shared content
	unopened    error                  // why personal couldn't be unpacked; nil if it was
	text        string                 // as it was rendered
	reservation string                 // the limit's reservation, from an earlier attempt that had to wait
	urgent      bool                   // an operator wants an attempt even while the account is held
	window      int                    // its account's window; 0 if the account was not looked up
	cleared     bool                   // begin.lua found no recipient suppressed
	passes      bool                   // it goes before messages that wait in a line for a relay
	asked       time.Time              // directly before begin.lua, by the machine's clock

	write  writer // nil if it is sent as it is stored
	marks  *Marks // nil if it has a record
	marked bool   // by Marks.Mark

	transactions int       // recorded by progress
	until        time.Time // end of the lease as doubt found it
}

// unrecorded reports whether a message has no record: it is the mail of a campaign, at its first attempt.
func (c *claim) unrecorded() bool { return c.marks != nil }

// Marks are asked about mail that has no record, around its final dot.
type Marks struct {
	// Mark notes that the dot will be written. If it fails, nothing is delivered.
	Mark func(context.Context) error
	// Still reports why the mark no longer counts, or nil if it does. It does no I/O.
	Still func() error
}

// beginning is a call of begin.lua.
type beginning struct {
	answer begun
	asked  time.Time // directly before it, by the machine's clock
	now    time.Time
}

// call runs begin.lua for message id. If id is empty, it is the message of the task that take finds.
func (d *Delivery) call(ctx context.Context, partition int, id string, take queue.Take) (b beginning,
	err error) {
	if err = d.clock.ready(ctx, d.DB.Client()); err == nil {
		b.asked, b.now = d.clock.now(), d.clock.Now()
		b.answer, err = beginScript.With(take.Lua).Run(ctx, d.DB.Shared(),
			append(d.beginKeys(partition, id), take.Keys...),
			beginArgs{ID: id, Now: b.now, LeaseUntil: b.now.Add(d.opts.Lease), ContentMost: small,
				Window: d.opts.Window, TakeKeys: len(take.Keys), Takes: take.Values})
	}
	if err != nil {
		err = redisError(err, "begin message "+id)
	}
	return b, err
}

// Take takes a task off its queue and begins its message, with one script, for Deliver. It is the Take of the
// pools of messages, where the queues share a slot with the records.
func (d *Delivery) Take(ctx context.Context, t queue.Take) (queue.Taken, error) {
	b, err := d.call(ctx, queue.PartOf(t.Queue), "", t)
	return queue.Taken{Task: b.answer.Task, ID: b.answer.TaskID, Left: b.answer.Left, Begun: b}, err
}

// begin claims the message, unless Take did. If it can't be begun now, the claim is nil, and the verdict is
// for its task.
func (d *Delivery) begin(ctx context.Context, id string) (*claim, queue.Verdict, error) {
	partition, err := d.place(id)
	if err != nil {
		return nil, queue.Drop(), nil //nolint:nilerr // no message has this id
	}
	b, taken := queue.Begun(ctx).(beginning)
	for waited := false; ; waited = true {
		if waited || !taken {
			if b, err = d.call(ctx, partition, id, queue.Take{}); err != nil {
				return nil, queue.Verdict{}, err
			}
		}
		switch b.answer.Word {
		case "GO":
			c, err := d.readClaim(id, partition, b.answer)
			if err != nil {
				return nil, queue.Verdict{}, err
			}
			c.asked = b.asked
			return c, queue.Verdict{}, nil
		case "EARLY", "HELD":
			due := cmp.Or(b.answer.Due, b.answer.Lease)
			if wait := due.Sub(b.now); b.answer.Word == "HELD" || wait > shortWait || waited {
				return nil, queue.NotNow(due), nil
			}
			if !redisdb.Pause(ctx, due.Sub(b.now)) {
				return nil, queue.NotNow(due), nil // the worker is stopping; the task keeps its time
			}
		default: // LATER: another task will wake it; GONE, FAILED: the task outlived its message
			return nil, queue.Drop(), nil
		}
	}
}

// shortWait is the longest time that a worker waits for a message to be due. Beyond it, the task goes back to
// the queue, which counts in seconds.
const shortWait = 1200 * time.Millisecond

// beginKeys are the first KEYS of begin.lua.
func (d *Delivery) beginKeys(partition int, id string) []string {
	keys := []string{d.keys.message(partition, id)}
	if d.Suppressions != nil && d.Suppressions.VersionKey() != "" {
		keys = append(keys, d.Suppressions.VersionKey())
	}
	return keys
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
	c.content, c.quick = d.body(partition, id, a.Content, c.envelope.Size)
	return c, nil
}

// leased is the right to send one message.
type leased struct {
	partition int
	id, fence string
}

// newLeases returns the leases of the messages that this process is sending. They are renewed with one call
// for each partition.
func newLeases(s *store) *lease.Set[leased] {
	return lease.NewSet(s.opts.Lease, s.log, func(ctx context.Context, held []leased) (lost []leased,
		failed error) {
		until := s.clock.Now().Add(s.opts.Lease)
		pairs := map[int][]string{} // id and fence, by partition
		for _, h := range held {
			pairs[h.partition] = append(pairs[h.partition], h.id, h.fence)
		}
		for partition, held := range pairs {
			gone, err := extendScript.Run(ctx, s.DB.Client(), []string{s.keys.events(partition)},
				extendArgs{LeaseUntil: until, Held: held})
			if err != nil {
				failed = err
			}
			for pair := range slices.Chunk(gone, 2) {
				lost = append(lost, leased{partition, pair[0], pair[1]})
			}
		}
		return lost, failed
	})
}
