package newsletter

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

const (
	stretchPages = 64  // pages of 32 subscribers that a scan reads at once
	batchPeople  = 100 // people of a batch
)

// Whom a run after the first goes to.
const (
	toFailed    = "failed"
	toInDoubt   = "inDoubt"
	toNotOpened = "notOpened"
	toNewcomers = "newcomers"
)

// scan looks for a run's people. It begins at a random chunk, so that processes rarely collide.
type scan struct {
	c        *campaign
	key      sendlog.Run
	choice   *audience.Choice
	mailings []*outbox.Mailing // by variant
	mail     mail
	window   schedule.Window
	zone     *time.Location
	earlier  []sendlog.Run // the runs before

	mu           sync.Mutex
	until        time.Time     // it pauses until then
	lifts        time.Time     // when the reason for the pause ends, which may be later
	why          string        // as text
	went         time.Time     // when an email was last tried
	quota        *string       // which quota has no room; empty if all have, nil if not asked lately
	paid         int           // mails that its rate allows now
	ahead        []time.Time   // when it allows more: each time a turn's
	reservations *reservations // in the limits of its account and its relays
	failed       time.Time     // since when the relay fails; zero if it doesn't
	chunks       int
	first        int               // chunk that it began with
	passed       int               // chunks that it is through with
	at           int               // how far the chunk was scanned, as the send log says
	to           int               // how far people were read
	again        time.Time         // when to scan the chunk again, for people who were left out
	buffer       []audience.Person // those read and not claimed
	read         time.Time         // when the first of the buffer was
	excluded     []sendlog.Run     // recipients of these are left out
	sets         map[sendlog.Run][]sendlog.State
	opened       map[sendlog.Run]sendlog.Set
	setsOf       int       // chunk of sets and opened
	setsAt       time.Time // when they were read
}

// same reports whether another scan would do the same.
func (s *scan) same(other *scan) bool {
	return s.key == other.key && s.c.Permission == other.c.Permission
}

// ready returns how long the scan rests, and whether there may be people to mail then.
func (s *scan) ready(now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until.Sub(now), s.passed < s.chunks
}

// rest makes the scan wait.
func (s *scan) rest(until time.Time, why string) { s.restFor(until, until, why) }

// restFor makes the scan look again at a time, because of something that ends later.
func (s *scan) restFor(until, opens time.Time, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restsFor(until, opens, why)
}

// rests is rest for whoever has the scan.
func (s *scan) rests(until time.Time, why string) { s.restsFor(until, until, why) }

// restsFor makes the scan look again at a time, because of something that ends later.
func (s *scan) restsFor(until, opens time.Time, why string) {
	if until.After(s.until) {
		s.until, s.lifts, s.why = until, opens, why
	}
}

// newScan prepares the scan of a run.
func (c *Campaigns) newScan(ctx context.Context, one *campaign) (*scan, error) {
	run := one.run()
	s := &scan{c: one, key: one.key(), zone: time.UTC, setsOf: -1, went: c.opts.Now(),
		chunks:       sendlog.Chunks(run.End),
		reservations: c.scheduler.reservationsOf(one)}
	sel := selection(one.Campaign)
	if sel.Began = run.Began; run.To != "" && run.To != toNewcomers {
		sel.Began = time.Time{}
	}
	var err error
	if s.mail, err = c.filling(ctx, one.Campaign); err != nil {
		return nil, err
	}
	if s.choice, err = c.choose(ctx, one.id, sel); err != nil {
		return nil, err
	}
	for i, snapshot := range run.Snapshots {
		sh := shared(as(one.Campaign, i), run.Subject, one.Bound)
		sh.Token, sh.TokenQuota = one.Token, one.TokenQuota
		mailing, err := c.Outbox.Mailings.Load(ctx, sh, snapshot)
		if err != nil {
			return nil, err
		}
		s.mailings = append(s.mailings, mailing)
	}
	if one.TZ != "" {
		s.zone, _ = schedule.Zone(one.TZ) // checked when it was stored
	}
	if one.Window != nil {
		s.window, _ = schedule.ParseWindow(one.Window.Days, one.Window.From, one.Window.Until) // likewise
	}
	for n := 1; n < len(one.Runs); n++ {
		s.earlier = append(s.earlier, sendlog.Run{Campaign: one.Number, Number: n})
	}
	if s.excluded, err = c.excludedRuns(ctx, one); err != nil {
		return nil, err
	}
	if s.chunks > 0 {
		s.first = rand.IntN(s.chunks)
	}
	return s, nil
}

func (s *scan) chunk() int { return (s.first + s.passed) % s.chunks }

// restart makes the scan look at all chunks again.
func (s *scan) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = 0
	s.forget()
}

// forget drops the data read from a chunk.
func (s *scan) forget() { s.from(0) }

// from drops the people who were read, so that they are read again from an offset on.
func (s *scan) from(at int) {
	s.at, s.to, s.buffer, s.again = at, at, nil, time.Time{}
}

// claim takes the next batch. It is nil if there is none now; then the scan rests.
func (c *Campaigns) claim(ctx context.Context, s *scan) (*batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.opts.Now()
	if s.until.After(now) { // another worker found that it has to
		return nil, nil
	}
	most := c.mayTake(ctx, s, now)
	if most == 0 {
		return nil, nil
	}
	for s.passed < s.chunks && ctx.Err() == nil {
		chunk, size := s.chunk(), s.sizeOf(s.chunk())
		if s.to > s.at && c.opts.Now().Sub(s.read) > freshFor {
			s.from(s.at)
		}
		if len(s.buffer) == 0 && s.to < size {
			if err := c.read(ctx, s, chunk, size); err != nil {
				return nil, err
			}
		}
		claim := sendlog.Claim{Version: s.c.Permission, From: s.at, To: s.to, Last: s.to == size, Again: s.again,
			Most: most}
		for _, p := range s.buffer[:min(len(s.buffer), 2*batchPeople)] {
			_, offset := sendlog.ChunkOf(p.Ordinal)
			claim.Offsets = append(claim.Offsets, offset)
			if len(s.c.Variants) > 0 {
				claim.Groups = append(claim.Groups, s.c.groupOf(s.key.Number, p.Ordinal))
			}
		}
		if len(claim.Offsets) < len(s.buffer) {
			_, claim.To = sendlog.ChunkOf(s.buffer[len(claim.Offsets)].Ordinal)
			claim.Last = false
		}
		taken, at, moved, denied, err := c.Log.Claim(ctx, s.key, chunk, claim)
		if err != nil || denied {
			return nil, err
		}
		people := s.through(taken, at, moved)
		if !moved && at == size && taken == nil || moved && at >= size {
			s.passed++
			s.forget()
		}
		if taken != nil {
			s.paid -= len(taken.Offsets)
			b := &batch{Batch: taken, c: c, scan: s, people: people, read: s.read}
			if len(s.earlier) > 0 { // their mail of a run before may be replayed, unless that finds them taken
				b.read = time.Time{}
			}
			return b, nil
		}
	}
	s.rests(now.Add(idleFor), "")
	return nil, nil
}

// sizeOf returns the offsets of a chunk.
func (s *scan) sizeOf(chunk int) int {
	return min(sendlog.ChunkSize, int(s.c.run().End)-chunk*sendlog.ChunkSize)
}

// through drops people up to an offset, and returns a batch's people.
func (s *scan) through(batch *sendlog.Batch, at int, moved bool) []audience.Person {
	var people []audience.Person
	if batch != nil {
		of := make(map[int]bool, len(batch.Offsets))
		for _, o := range batch.Offsets {
			of[o] = true
		}
		for _, p := range s.buffer {
			if _, o := sendlog.ChunkOf(p.Ordinal); of[o] {
				people = append(people, p)
			}
		}
	}
	if moved && (at < s.at || at > s.to) { // people were given back, or others are far ahead
		s.from(at)
	}
	s.at = at
	n := 0
	for n < len(s.buffer) {
		if _, o := sendlog.ChunkOf(s.buffer[n].Ordinal); o >= at {
			break
		}
		n++
	}
	s.buffer = s.buffer[n:]
	return people
}
