package newsletter

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

const (
	idleFor    = 250 * time.Millisecond // how long a worker waits before it looks for work again
	busyPause  = 20 * time.Millisecond  // before an email asks again for a connection
	busyFor    = 5 * time.Second        // how long it asks; then its batch is given back
	relayPause = 5 * time.Second        // for a scan whose relay accepts no mail
	mostWhy    = 300                    // bytes of a reply that are kept
)

// deliver is a worker: it takes batches in turn and mails them, until ctx ends. work outlives ctx until the
// mail under way is done.
func (c *Campaigns) deliver(ctx, work context.Context) {
	for ctx.Err() == nil {
		s, wake, soon := c.scheduler.take(c.opts.Now())
		if s == nil {
			timer := time.NewTimer(soon)
			select {
			case <-ctx.Done():
			case <-wake:
			case <-timer.C:
			}
			timer.Stop()
			continue
		}
		b, err := c.claim(ctx, s)
		if err != nil {
			c.unclaimed(ctx, s, err)
			continue
		}
		if b == nil {
			continue
		}
		_, release := c.held.Hold(work, b.Batch)
		b.work(ctx, work)
		release()
	}
}

// unclaimed delays a scan that couldn't claim a batch. If a campaign by whose mail people are selected is
// gone, the run is held, because its people are unknown.
func (c *Campaigns) unclaimed(ctx context.Context, s *scan, err error) {
	s.rest(c.opts.Now().Add(time.Second), "people can't be read")
	switch {
	case ctx.Err() != nil:
	case fault.Is(err, fault.NotFound):
		c.hold(ctx, s.c, "content", err.Error())
	default:
		c.log.WarnContext(ctx, "no batch taken; tried again soon", "campaign", s.c.id, "error", err)
	}
}

// batch is a batch of people that is being sent to.
type batch struct {
	*sendlog.Batch
	c    *Campaigns
	scan *scan

	stopped atomic.Bool  // the rest of it must not be sent to
	tried   atomic.Int64 // people that a relay was asked about

	mu      sync.Mutex
	people  []audience.Person          // people to send to, as they were read last
	read    time.Time                  // when that was
	version string                     // the suppressions' version when they were looked up
	asked   bool                       // since people were read last
	barred  map[int]*suppression.Entry // by offset, of suppressed people
	settled map[int]bool               // offsets of people with a result
	tallies map[string]int             // counted at the end: by hour and by domain
}

// work mails a batch.
func (b *batch) work(ctx, work context.Context) {
	b.barred, b.settled, b.tallies = map[int]*suppression.Entry{}, map[int]bool{}, map[string]int{}
	version, err := b.c.suppressionVersion(work)
	if err == nil {
		err = b.ask(work, version, b.people)
	}
	if err != nil {
		b.c.log.WarnContext(ctx, "suppressions not asked; the batch is given back", "campaign", b.scan.c.id, "error",
			err)
		b.scan.rest(b.c.opts.Now().Add(time.Second), "the suppressions can't be asked")
	} else {
		b.mail(ctx, work)
	}
	b.scan.unpaid(len(b.Offsets) - int(b.tried.Load()))
	b.persist(work, "close a batch", func() error { return b.c.Log.Close(work, b.Batch, b.tallies) })
}

// mail settles the people who must not get mail, and sends to the others, several at a time.
func (b *batch) mail(ctx, work context.Context) {
	var moves []sendlog.Move
	var left []uint32
	for _, p := range b.people {
		_, o := sendlog.ChunkOf(p.Ordinal)
		if move, stopped := b.scan.stops(p, b.barred[o]); stopped {
			moves = append(moves, move)
			b.settled[o] = true
		} else {
			left = append(left, p.Ordinal)
		}
	}
	if len(moves) > 0 {
		b.settle(work, moves...)
	}
	if len(left) > 0 {
		b.sendWithin(ctx, work, left)
	}
}

// sendAll sends to people, several at a time. Each of its workers sends many messages: a new goroutine for
// each would have to grow its stack each time.
func (b *batch) sendAll(ctx, work context.Context, people []uint32) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(b.c.opts.Connections, len(people)) {
		all.Go(func() {
			version := ""
			for i := int(next.Add(1)) - 1; i < len(people); i = int(next.Add(1)) - 1 {
				if b.stopped.Load() || ctx.Err() != nil {
					return
				}
				version = b.send(ctx, work, people[i], version)
			}
		})
	}
	all.Wait()
}

// send sends to one person, and records the result. Directly before each attempt the person is looked up
// again, and left for the next scan if they must wait. version is the suppressions' version right now, or
// empty to ask for it. send returns the version that came with the record.
func (b *batch) send(ctx, work context.Context, ordinal uint32, version string) string {
	had := b.scan.reservations.take()
	_, offset := sendlog.ChunkOf(ordinal)
	for tried := b.c.opts.Now(); ; version = "" {
		m := &marks{b: b, ordinal: ordinal, offset: offset}
		p, barred, err := m.look(work, version)
		if err != nil {
			b.c.log.WarnContext(ctx, "people not read; the batch is given back", "campaign", b.scan.c.id, "error", err)
			b.stopped.Store(true)
			b.scan.rest(b.c.opts.Now().Add(time.Second), "people can't be read")
		}
		if err != nil || p == nil {
			b.scan.reservations.keep(reserved{had: had})
			return ""
		}
		if move, stopped := b.scan.stops(*p, barred); stopped {
			b.scan.reservations.keep(reserved{had: had})
			_, version = b.settle(work, move)
			return version
		}
		if again, next := b.attempt(ctx, work, m, *p, &had, tried); !again {
			return next
		}
	}
}

// attempt sends to one person once, and reports whether to do so again because it waited for a connection or
// a limit. had is an earlier message's reservation, and then this message's. version is as in send.
func (b *batch) attempt(ctx, work context.Context, m *marks, p audience.Person, had *limits.Reservation,
	tried time.Time) (again bool, version string) {
	a, err := b.c.addressee(b.scan, p)
	if err != nil {
		b.scan.reservations.keep(reserved{had: *had})
		_, version = b.settle(work, sendlog.Move{Offset: m.offset, To: sendlog.Failed,
			Why: "not written: " + err.Error()})
		return false, version
	}
	got := b.scan.mailingOf(p.Ordinal).Direct(work, a, *had, outbox.Marks{Mark: m.mark, Still: m.still})
	*had = got.Reservation
	if got.Fate != outbox.FateUnsent {
		b.tried.Add(1)
		return false, b.judge(work, p, a, m.offset, got)
	}
	if got.Apart {
		b.tried.Add(1)
		return false, b.moveAside(work, a, m.offset, got)
	}
	if got.Marked { // nothing was delivered: the person is only taken again
		b.settle(work, sendlog.Move{Offset: m.offset, To: sendlog.Taken})
	}
	if m.barred || !b.stopped.Load() && b.waits(ctx, m, got, tried) {
		return true, ""
	}
	now := b.c.opts.Now()
	b.scan.reservations.keep(reserved{at: got.Until, ask: earlier(got.Until, now.Add(time.Minute)),
		why: got.Response, had: *had})
	b.unsent(ctx, m, got)
	return false, ""
}

// waits waits until an email may be tried again that needs a connection or a place in a limit, and reports
// whether that is soon.
func (b *batch) waits(ctx context.Context, m *marks, got outbox.Sending, tried time.Time) bool {
	now := b.c.opts.Now()
	pause := busyPause
	if !got.Busy {
		pause = got.Until.Sub(now)
	}
	return got.Waits && !m.stopped && now.Add(pause).Sub(tried) < busyFor && redisdb.Pause(ctx, pause)
}

// addressee is a person as the mailing has them.
func (c *Campaigns) addressee(s *scan, p audience.Person) (outbox.Addressee, error) {
	params, err := s.mail.filled(p)
	return outbox.Addressee{
		ID: c.messageID(s.c.Number, s.key.Number, p.Ordinal, s.c.run().Began),
		To: message.Address{Name: p.Name, Address: p.Email}, ListID: p.ListID, Params: params,
		Date:     c.opts.Now().Truncate(time.Second),
		Campaign: s.c.mailTo(s.key.Number, p.Ordinal),
	}, err
}

// mailTo returns what a subscriber's message says about its campaign.
func (c *campaign) mailTo(run int, ordinal uint32) *outbox.CampaignMail {
	return &outbox.CampaignMail{Events: c.Events, KeepLog: c.KeepLog, Campaign: event.Campaign{Campaign: c.id,
		Run: run, Subscriber: subscriberID(ordinal), Variant: c.nameOf(run, ordinal)}}
}

// mailingOf returns the mailing that a person gets.
func (s *scan) mailingOf(ordinal uint32) *outbox.Mailing {
	return s.mailings[max(0, s.c.variantOf(s.key.Number, ordinal))]
}

// judge records the result of a message that was tried. It returns send's version.
func (b *batch) judge(ctx context.Context, p audience.Person, a outbox.Addressee, offset int,
	got outbox.Sending) string {
	b.scan.goes(b.c.opts.Now())
	move := sendlog.Move{Offset: offset, To: sendlog.Sent, Attempts: 1}
	switch got.Fate {
	case outbox.FateSent:
		b.works()
		b.tally("d:sent:", p.Email)
	case outbox.FateRefused:
		move.To, move.Why = sendlog.Failed, cut(got.Response)
		if got.Hard {
			move.To = sendlog.Bounced
			b.tally("d:bounced:", p.Email)
		} else {
			b.tally("d:failed:", p.Email)
		}
	case outbox.FateInDoubt:
		move.To, move.Why = sendlog.InDoubt, cut(got.Response)
	case outbox.FatePutOff:
		move.To, move.Why = sendlog.Deferred, cut(got.Response)
	}
	recorded, version := b.settle(ctx, move)
	b.c.metrics.mails.WithLabelValues(stateNames[move.To]).Inc()
	if move.To == sendlog.Deferred && recorded { // else another worker has the person, or the dispatcher does it
		b.c.enqueue(ctx, b.scan, b.Chunk, offset, a, got.Until, "")
	}
	return version
}

// moveAside leaves a person to the outbox whose domain takes no more mail now, so that the others don't wait.
// It returns the version of send.
func (b *batch) moveAside(ctx context.Context, a outbox.Addressee, offset int, got outbox.Sending) string {
	recorded, version := b.settle(ctx, sendlog.Move{Offset: offset, To: sendlog.Deferred,
		Why: cut(got.Response)})
	if recorded {
		b.c.enqueue(ctx, b.scan, b.Chunk, offset, a, got.Until, got.Reservation)
	}
	return version
}

// enqueue turns a deferred person's mail into a message of the outbox. If that fails, the dispatcher does it.
func (c *Campaigns) enqueue(ctx context.Context, s *scan, chunk, offset int, a outbox.Addressee,
	due time.Time, had limits.Reservation) {
	err := s.mailingOf(uint32(chunk*sendlog.ChunkSize+offset)).Enqueue(ctx, a, due, had)
	if err == nil {
		err = c.Log.Enqueued(ctx, s.key, chunk, offset)
	}
	if err != nil {
		c.log.WarnContext(ctx, "deferred mail not queued; tried again soon", "message_id", a.ID, "error", err)
	}
}

// unsent stops the batch after an email that could not be sent for a reason that is not its own.
func (b *batch) unsent(ctx context.Context, m *marks, got outbox.Sending) {
	b.stopped.Store(true)
	if ctx.Err() != nil || m.stopped {
		return
	}
	now := b.c.opts.Now()
	switch {
	case got.Hold != "":
		b.c.hold(context.WithoutCancel(ctx), b.scan.c, got.Hold, got.Response)
	case got.Busy:
		b.scan.rest(now.Add(time.Second), got.Response)
	case got.Until.IsZero():
		b.scan.rest(now.Add(relayPause), got.Response)
	case got.Reservation == "": // else it pauses until its earliest reservation
		b.scan.restFor(earlier(got.Until, now.Add(time.Minute)), got.Until, got.Response)
	}
	if got.Hold == "" && !got.Waits {
		b.fails(now)
	}
}

// fails notes that the relay takes no mail; works, that it does.
func (b *batch) fails(now time.Time) {
	b.scan.mu.Lock()
	defer b.scan.mu.Unlock()
	if b.scan.failed.IsZero() {
		b.scan.failed = now
	}
}

func (b *batch) works() {
	b.scan.mu.Lock()
	defer b.scan.mu.Unlock()
	b.scan.failed = time.Time{}
}

// settle records results, and reports whether it changed all these states. It retries while Redis is down, so
// that no reply is forgotten. version is the suppressions' version at that time.
func (b *batch) settle(ctx context.Context, moves ...sendlog.Move) (all bool, version string) {
	var changed []bool
	b.persist(ctx, "record results", func() (err error) {
		changed, version, err = b.c.Log.Record(ctx, b.Batch, moves...)
		return err
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range moves {
		if m.To != sendlog.Taken {
			b.settled[m.Offset] = true
		}
	}
	return len(changed) == len(moves) && !slices.Contains(changed, false), version
}

// persistFor is how long a result waits for Redis.
const persistFor = 10 * time.Minute

// persist retries a change while Redis is unavailable, for persistFor.
func (b *batch) persist(ctx context.Context, what string, change func() error) {
	what += " of campaign " + b.scan.c.id
	if err := lease.Persist(ctx, b.c.log, what, persistFor, change); err != nil {
		b.c.log.ErrorContext(ctx, "results of a campaign not recorded: its people will be in doubt", "doing", what,
			"error", err)
	}
}

// tally counts a result by the hour and by the domain of an address. It is stored when the batch ends.
func (b *batch) tally(kind, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tallies[kind+domainOf(address)]++
	if kind == "d:sent:" {
		b.tallies["h:sent:"+b.c.opts.Now().UTC().Format("2006-01-02T15")]++
	}
}

// domainOf returns the domain of an address as it is in the names of counters.
func domainOf(address string) string {
	_, domain, _ := strings.Cut(address, "@")
	return strings.ToLower(domain)
}

func cut(text string) string { return text[:min(len(text), mostWhy)] }

// marks sets the mark of one email.
type marks struct {
	b       *batch
	ordinal uint32
	offset  int
	version string // the suppressions' when the person was looked up
	until   time.Time
	barred  bool // the person left, or was suppressed, since the attempt began
	stopped bool // permission is denied, or the batch is another's
}

// mark notes that the dot is about to be written.
func (m *marks) mark(ctx context.Context) error {
	b := m.b
	for again := b.c.Suppressions.VersionKey() == ""; ; again = true {
		if again {
			p, barred, err := m.look(ctx, "")
			if err != nil {
				return err
			}
			if p == nil || p.Left || barred != nil {
				m.barred = true
				return errBarred
			}
		}
		answer, until, err := b.c.Log.Mark(ctx, b.Batch, m.offset, m.version)
		if err != nil {
			return err
		}
		switch answer {
		case sendlog.Go:
			m.until = until
			return nil
		case sendlog.Changed:
		default:
			m.stopped = true
			return errStopped
		}
	}
}

// still reports whether the lease has ended since the mark.
func (m *marks) still() error {
	err := lease.Check(time.Now(), m.until)
	m.stopped = m.stopped || err != nil
	return err
}
