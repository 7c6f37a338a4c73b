package newsletter

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// freshFor is how old data about people may be when they are claimed or sent to.
const freshFor = time.Second

// pages is how many pages of 32 subscribers a scan reads together: no more than it needs before they are old.
func (s *scan) pages() int {
	if s.c.Rate > 0 {
		return int(min(stretchPages, 2+s.c.Rate/32))
	}
	return stretchPages
}

// read reads the next people of a chunk.
func (c *Campaigns) read(ctx context.Context, s *scan, chunk, size int) error {
	if s.to == s.at {
		s.read = c.opts.Now()
	}
	from, end := uint32(chunk*sendlog.ChunkSize+s.to), uint32(chunk*sendlog.ChunkSize+size)
	people, next, err := c.Audience.People(ctx, s.choice, from, end, s.pages())
	if err != nil {
		return err
	}
	due, again, err := c.whoseTurn(ctx, s, chunk, people)
	if err != nil {
		return err
	}
	if s.again.IsZero() || !again.IsZero() && again.Before(s.again) {
		s.again = again
	}
	s.buffer = append(s.buffer, due...)
	s.to = int(next) - chunk*sendlog.ChunkSize
	return nil
}

// reread returns the people of a chunk who may be sent to now, as they are now, and when to look again at the
// others; zero means never.
func (c *Campaigns) reread(ctx context.Context, s *scan, chunk int, ordinals []uint32) ([]audience.Person,
	time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setsOf = -1
	people, err := c.Audience.These(ctx, s.choice, ordinals)
	if err != nil {
		return nil, time.Time{}, err
	}
	return c.whoseTurn(ctx, s, chunk, people)
}

// whoseTurn returns the people of a chunk that the run goes to now, and when to look again at others; zero
// means never.
func (c *Campaigns) whoseTurn(ctx context.Context, s *scan, chunk int, people []audience.Person) (
	due []audience.Person, again time.Time, err error) {
	if err := c.readSets(ctx, s, chunk); err != nil {
		return nil, again, err
	}
	now := c.opts.Now()
	for _, p := range people {
		if !s.wanted(p) {
			continue
		}
		opens := s.opens(p, now)
		if s.c.variantOf(s.key.Number, p.Ordinal) == undecided {
			opens = forWinner
		}
		if !opens.After(now) {
			due = append(due, p)
		} else if again.IsZero() || opens.Before(again) {
			again = opens
		}
	}
	return due, again, nil
}

// opens returns when the window allows sending to a person.
func (s *scan) opens(p audience.Person, now time.Time) time.Time {
	if s.c.Window == nil || s.c.Window.Of != "recipient" {
		return now
	}
	zone, err := schedule.Zone(p.TZ)
	if err != nil {
		zone = s.zone
	}
	return s.window.Next(now, zone)
}

// excludedRuns returns all runs so far of the campaigns whose recipients are left out.
func (c *Campaigns) excludedRuns(ctx context.Context, one *campaign) (runs []sendlog.Run, _ error) {
	for _, id := range one.ExcludeCampaigns {
		other, err := c.known(ctx, id)
		if err != nil {
			return nil, err
		}
		for n := range other.Runs {
			runs = append(runs, sendlog.Run{Campaign: other.Number, Number: n + 1})
		}
	}
	return runs, nil
}

// readSets reads a chunk's recipients of other campaigns, and of earlier runs.
func (c *Campaigns) readSets(ctx context.Context, s *scan, chunk int) error {
	now := c.opts.Now()
	if s.setsOf == chunk && now.Sub(s.setsAt) < freshFor || len(s.c.ExcludeCampaigns)+len(s.earlier) == 0 {
		return nil
	}
	var err error
	if s.excluded, err = c.excludedRuns(ctx, s.c); err != nil {
		return err
	}
	s.sets, s.opened = map[sendlog.Run][]sendlog.State{}, map[sendlog.Run]sendlog.Set{}
	for _, run := range slices.Concat(s.excluded, s.earlier) {
		states, err := c.Log.States(ctx, run, chunk)
		if err != nil {
			return err
		}
		s.sets[run] = states
		if s.c.run().To == toNotOpened {
			if s.opened[run], err = c.Log.Bits(ctx, run, chunk, sendlog.Opened); err != nil {
				return err
			}
		}
	}
	s.setsOf, s.setsAt = chunk, now
	return nil
}

// got reports whether a person got an email of a run, or may have.
func (s *scan) got(run sendlog.Run, offset int) bool {
	states := s.sets[run]
	if offset >= len(states) {
		return false
	}
	switch states[offset] {
	case sendlog.Sent, sendlog.Deferred, sendlog.AtDot, sendlog.InDoubt:
		return true
	}
	return false
}

// wanted reports whether the run goes to a person of its lists: the person got no excluded campaign, and had
// in the runs before what the run is for.
func (s *scan) wanted(p audience.Person) bool {
	_, offset := sendlog.ChunkOf(p.Ordinal)
	for _, run := range s.excluded {
		if s.got(run, offset) {
			return false
		}
	}
	if len(s.earlier) == 0 {
		return true
	}
	had, got, opened := sendlog.Waiting, false, false // in the last run that had the person
	for _, run := range s.earlier {
		if states := s.sets[run]; offset < len(states) && states[offset] != sendlog.Waiting {
			had = states[offset]
		}
		got = got || s.got(run, offset)
		opened = opened || s.opened[run].Has(offset)
	}
	switch s.c.run().To {
	case toFailed:
		return had == sendlog.Failed && !got
	case toInDoubt:
		return had == sendlog.InDoubt
	case toNotOpened:
		return had == sendlog.Sent && !opened
	}
	return !got && had == sendlog.Waiting
}

// ask looks up people without a result in the suppressions. version is the suppressions' previous version.
func (b *batch) ask(ctx context.Context, version string, people []audience.Person) error {
	byList := map[string][]audience.Person{}
	for _, p := range people {
		if _, o := sendlog.ChunkOf(p.Ordinal); !b.settled[o] && !p.Left {
			byList[p.ListID] = append(byList[p.ListID], p)
		}
	}
	for list, people := range byList {
		addresses := make([]string, len(people))
		for i, p := range people {
			addresses[i] = p.Email
		}
		found, err := b.c.Outbox.Mailings.Stopped(ctx, b.scan.c.Account, list, addresses)
		if err != nil {
			return err
		}
		for i, entry := range found {
			_, o := sendlog.ChunkOf(people[i].Ordinal)
			b.barred[o] = entry
		}
	}
	b.version, b.asked = version, true
	return nil
}

// look returns the person as they are now, or nil if they must wait again, with the suppression that stops
// the mail, or nil. The person is read again if that was long ago, and looked up again if anyone was
// suppressed since. version is the suppressions' version right now, or empty to ask for it.
func (m *marks) look(ctx context.Context, version string) (_ *audience.Person, _ *suppression.Entry,
	err error) {
	b := m.b
	if version == "" {
		if version, err = b.c.suppressionVersion(ctx); err != nil {
			return nil, nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.c.opts.Now(); now.Sub(b.read) > freshFor {
		var ordinals []uint32
		for _, p := range b.people {
			if _, o := sendlog.ChunkOf(p.Ordinal); !b.settled[o] {
				ordinals = append(ordinals, p.Ordinal)
			}
		}
		if b.people, _, err = b.c.reread(ctx, b.scan, b.Chunk, ordinals); err != nil {
			return nil, nil, err
		}
		b.read, b.asked = now, false
	}
	i := slices.IndexFunc(b.people, func(p audience.Person) bool { return p.Ordinal == m.ordinal })
	if i < 0 {
		return nil, nil, nil
	}
	switch {
	case b.c.Suppressions.VersionKey() == "":
		err = b.ask(ctx, version, b.people[i:i+1])
	case b.version != version || !b.asked:
		err = b.ask(ctx, version, b.people)
	}
	m.version = version
	return &b.people[i], b.barred[m.offset], err
}

// suppressionVersion returns the suppressions' version, or "" in a Cluster, which has none. Concurrent
// callers share the answer.
func (c *Campaigns) suppressionVersion(ctx context.Context) (string, error) {
	key := c.Suppressions.VersionKey()
	if key == "" {
		return "", nil
	}
	return c.versions.Do(ctx, key, struct{}{})
}

// readVersion reads the version of the suppressions for all who ask.
func (c *Campaigns) readVersion(ctx context.Context, key string, all []struct{}) ([]string, error) {
	found, err := c.DB.Client().MGet(ctx, key).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "read the version of the suppressions")
	}
	version, ok := found[0].(string)
	if !ok {
		version = "0" // no one was ever suppressed
	}
	return slices.Repeat([]string{version}, len(all)), nil
}

// stops returns the state of a person who must not get mail, and whether it is one. People who unsubscribed
// while the run was under way are unsubscribed, however they did it.
func (s *scan) stops(p audience.Person, barred *suppression.Entry) (sendlog.Move, bool) {
	_, offset := sendlog.ChunkOf(p.Ordinal)
	began := s.c.run().Began.Truncate(time.Second) // as exact as the times of suppressions
	switch {
	case p.Left:
		return sendlog.Move{Offset: offset, To: sendlog.Unsubscribed, Why: "left list " + p.ListID}, true
	case barred == nil:
		return sendlog.Move{}, false
	case barred.Reason == suppression.Unsubscribe && !barred.Created.Before(began):
		return sendlog.Move{Offset: offset, To: sendlog.Unsubscribed, Why: cut(outbox.Explain(barred))}, true
	}
	return sendlog.Move{Offset: offset, To: sendlog.Suppressed, Why: cut(outbox.Explain(barred))}, true
}
