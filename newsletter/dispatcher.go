package newsletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

var (
	errBarred  = errors.New("the person was suppressed")
	errStopped = errors.New("the campaign was paused, or its batch is another's")
)

const (
	keepEvery  = time.Second
	relayMost  = 15 * time.Minute // how long a relay may take no mail before the campaign is held
	countLease = 30 * time.Second
)

// keep looks at the live campaigns once a second while there are any, and when this process changed one's
// state, until ctx ends. Every process does: what one does, the others find done.
func (c *Campaigns) keep(ctx context.Context) {
	defer c.counts.Wait()
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "campaigns not looked at; tried again soon", "error", err)
			redisdb.Pause(ctx, keepEvery)
		} else if !c.live.Pause(ctx, keepEvery) {
			return
		}
	}
}

// revive lists all campaigns that are live, if a crash or a lost answer left one unlisted.
func (c *Campaigns) revive(ctx context.Context) error {
	return c.store.Each(ctx, func(r *records.Record[stored]) error {
		if !live(r.Value.State) {
			return nil
		}
		return c.enliven(ctx, r.ID)
	})
}

// look begins due campaigns, sets permissions, ends runs, and makes the scans of this process.
func (c *Campaigns) look(ctx context.Context) error {
	var failed error
	if !c.listed {
		failed = c.revive(ctx)
		c.listed = failed == nil
	}
	ids, err := c.DB.Client().SMembers(ctx, liveKey()).Result()
	if err != nil {
		return redisdb.Failed(err, "list the live campaigns")
	}
	resting, err := c.Resting(ctx)
	if err != nil {
		return err
	}
	scans := map[string]*scan{}
	for _, id := range ids {
		s, err := c.tend(ctx, id)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("campaign %s: %w", id, err))
		}
		if s != nil && !resting {
			scans[id] = s
		}
	}
	c.scheduler.set(scans)
	c.metrics.sending.Set(float64(len(scans)))
	return failed
}

// tend does what a campaign needs now, and returns its scan if it is being sent.
func (c *Campaigns) tend(ctx context.Context, id string) (*scan, error) {
	one, err := c.known(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, redisdb.Failed(c.DB.Client().SRem(ctx, liveKey(), id).Err(), "strike campaign %s", id)
	}
	if err != nil {
		return nil, err
	}
	if len(one.PendingEvents) > 0 { // its process died before the event or the permission
		if err := c.settled(ctx, one); err != nil {
			return nil, err
		}
	}
	over, err := c.conclude(ctx, one)
	if err != nil {
		return nil, err
	}
	switch one.State {
	case api.CampaignScheduled:
		return nil, c.due(ctx, one)
	case api.CampaignSending:
		if !over { // the run's people aren't known yet
			return nil, c.showWait(ctx, one, &api.CampaignWait{Reason: "emails of a cancelled run are under way"})
		}
		return c.tendRun(ctx, one)
	case api.CampaignPaused, api.CampaignHeld:
		if one.run() != nil {
			_, err = c.mend(ctx, one, nil)
		}
		return nil, err
	}
	if !over {
		return nil, nil
	}
	return nil, c.finish(ctx, one)
}

// conclude ends the rest of a campaign's cancelled runs, and reports whether none of their people are under
// way any more.
func (c *Campaigns) conclude(ctx context.Context, one *campaign) (over bool, err error) {
	over = true
	for n, run := range one.Runs {
		if !run.cancelled() {
			continue
		}
		of := *one
		of.Runs = one.Runs[:n+1]
		chunks, err := c.mend(ctx, &of, nil)
		if err != nil {
			return false, err
		}
		if sum := sendlog.Sum(chunks); sum.States[sendlog.Deferred] == 0 && sum.Sending() == 0 {
			continue
		}
		over = false
		if err := c.cancelDeferred(ctx, &of, chunks); err != nil {
			return false, err
		}
	}
	return over, nil
}

// due begins a campaign whose time has come. A campaign that is far too late is held: after a restored
// backup, no one wants last month's mail.
func (c *Campaigns) due(ctx context.Context, one *campaign) error {
	now := c.opts.Now()
	if one.At == nil || one.At.After(now) {
		return nil
	}
	if late := now.Sub(*one.At); late > c.opts.Expire {
		c.hold(ctx, one, "expired", fmt.Sprintf("it was due %s ago (newsletter.expire: %s)",
			late.Round(time.Second), c.opts.Expire))
		return nil
	}
	err := c.mayName(ctx, one.Campaign, one.Bound)
	if fault.Is(err, fault.Forbidden) {
		c.hold(ctx, one, outbox.HoldSender, err.Error())
		return nil
	}
	if err == nil {
		err = c.refused(ctx, one, now)
	}
	if err == nil {
		_, err = c.begin(ctx, one, api.CampaignResend{})
	}
	if err == nil || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Internal) ||
		fault.CodeOf(err) == codeChanged {
		return err
	}
	_, failed := c.transition(ctx, "", one.id, one.Permission, api.CampaignFailed, "content", err.Error(),
		"fail it", api.CampaignScheduled)
	return failed
}

// tendRun repairs a run, holds or ends it, and returns its scan.
func (c *Campaigns) tendRun(ctx context.Context, one *campaign) (*scan, error) {
	s := c.scheduler.of(one.id)
	if s == nil || s.key != one.key() || s.c.Permission != one.Permission {
		var err error
		if s, err = c.newScan(ctx, one); err != nil {
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
				c.hold(ctx, one, "content", err.Error())
				return nil, nil
			}
			return nil, err
		}
		if err := c.Log.Allow(ctx, one.key(), one.Permission); err != nil {
			return nil, err
		}
	}
	chunks, err := c.mend(ctx, one, s)
	if err != nil {
		return s, err
	}
	sum, now := sendlog.Sum(chunks), c.opts.Now()
	if c.holds(ctx, one, s, sum, now) {
		return nil, nil
	}
	if end := one.EndAt; end != nil && now.After(*end) {
		_, err := c.Cancel(ctx, "", one.id)
		return nil, err
	}
	if sum.States[sendlog.Deferred] > c.opts.InFlight {
		s.rest(now.Add(2*keepEvery), "newsletter.inFlight messages are deferred")
	}
	if err := errors.Join(c.showQuota(ctx, one, s), c.count(ctx, one), c.try(ctx, one, chunks,
		now)); err != nil {
		return s, err
	}
	return s, c.whole(ctx, one, s, chunks, now)
}

// whole ends a run that no one waits for, and makes the scan look again at chunks with people to send to.
func (c *Campaigns) whole(ctx context.Context, one *campaign, s *scan, chunks []sendlog.Chunk,
	now time.Time) error {
	over, look := true, false
	var left []time.Time // when the chunks are scanned again that are not done
	for i, chunk := range chunks {
		over = over && chunk.Over()
		again := now.After(chunk.Again) || chunk.Again.Equal(forWinner) && !one.open()
		if !chunk.Done && !chunk.Again.IsZero() && again {
			if err := c.Log.ScanAgain(ctx, one.key(), i); err != nil {
				return err
			}
			look = true
		}
		look = look || !chunk.Done && chunk.Again.IsZero()
		if !chunk.Done {
			left = append(left, chunk.Again)
		}
	}
	if over {
		return c.end(ctx, one)
	}
	s.mu.Lock()
	through := s.passed >= s.chunks
	s.mu.Unlock()
	if look && through {
		s.restart()
	}
	wait := s.waits(now)
	if wait == nil {
		wait = one.waitsFor(left, now)
	}
	return c.showWait(ctx, one, wait)
}

// end ends a run.
func (c *Campaigns) end(ctx context.Context, one *campaign) error {
	_, err := c.transition(ctx, "", one.id, one.Permission, api.CampaignSent, "", "", "end it",
		api.CampaignSending)
	if err == nil {
		c.log.InfoContext(ctx, "campaign sent", "campaign", one.id, "run", len(one.Runs))
	}
	return err
}

// finish releases the data that an ended campaign needed, and removes it from the live campaigns.
func (c *Campaigns) finish(ctx context.Context, one *campaign) error {
	if err := c.keepContent(ctx, one.id); err != nil {
		return err
	}
	c.scheduler.over(one.id)
	err := redisdb.Failed(c.DB.Client().SRem(ctx, liveKey(), one.id).Err(), "strike campaign %s", one.id)
	if err == nil {
		one, err = c.find(ctx, "", one.id)
	}
	if err == nil && live(one.State) { // its next run began after it was read
		err = c.enliven(ctx, one.id)
	}
	c.listed = c.listed && err == nil
	return err
}

// mend ends dead processes' batches, and enqueues deferred people whose message was not made. It returns the
// run's chunks.
func (c *Campaigns) mend(ctx context.Context, one *campaign, s *scan) ([]sendlog.Chunk, error) {
	run := one.run()
	chunks, err := c.Log.Chunks(ctx, one.key(), run.End)
	if err != nil {
		return nil, err
	}
	for i, chunk := range chunks {
		if chunk.Batches > 0 {
			back, doubts, err := c.Log.ExpireLeases(ctx, one.key(), i, c.opts.ResendInDoubt)
			if err != nil {
				return nil, err
			}
			if back+doubts > 0 {
				c.log.WarnContext(ctx, "people of a dead process wait again, or are in doubt", "campaign", one.id,
					"again", back, "in_doubt", doubts)
			}
		}
		if s != nil && chunk.Counts.States[sendlog.Deferred] > 0 {
			if err := c.enqueueOwed(ctx, one, s, i); err != nil {
				return nil, err
			}
		}
	}
	return chunks, nil
}

// enqueueOwed makes messages for deferred people of a chunk who may have none.
func (c *Campaigns) enqueueOwed(ctx context.Context, one *campaign, s *scan, chunk int) error {
	offsets, err := c.Log.Owed(ctx, s.key, chunk)
	if err != nil {
		return err
	}
	for _, offset := range offsets {
		ordinal := uint32(chunk*sendlog.ChunkSize + offset)
		p, err := c.Audience.PersonAt(ctx, one.Account, ordinal, one.Lists)
		if fault.Is(err, fault.NotFound) {
			_, err = c.Log.Settle(ctx, s.key, chunk, sendlog.Move{Offset: offset, To: sendlog.Failed,
				Why: "the subscriber was deleted"})
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		a, err := c.addressee(s, p)
		if err != nil {
			return err
		}
		c.enqueue(ctx, s, chunk, offset, a, c.opts.Now(), "")
	}
	return nil
}

// cancelDeferred cancels deferred people's messages. The messages' events settle the people, in order: the
// message may have failed, and its event is not applied yet. People without a message, because a worker died
// before, are settled here, unless a worker that has a batch may be about to submit it.
func (c *Campaigns) cancelDeferred(ctx context.Context, one *campaign, chunks []sendlog.Chunk) error {
	for i, chunk := range chunks {
		if chunk.Counts.States[sendlog.Deferred] == 0 {
			continue
		}
		states, err := c.Log.States(ctx, one.key(), i)
		if err != nil {
			return err
		}
		owed, err := c.Log.Owed(ctx, one.key(), i)
		if err != nil {
			return err
		}
		for offset, state := range states {
			if state != sendlog.Deferred {
				continue
			}
			id := c.messageID(one.Number, len(one.Runs), uint32(i*sendlog.ChunkSize+offset), one.run().Began)
			answer, err := c.Outbox.Operations.Cancel(ctx, id, "campaign cancelled")
			if err == nil && answer.Code == "" && chunk.Batches == 0 && slices.Contains(owed, offset) {
				_, err = c.Log.Settle(ctx, one.key(), i, sendlog.Move{Offset: offset, To: sendlog.Cancelled})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// holds holds a run whose results are bad, and reports whether it did.
func (c *Campaigns) holds(ctx context.Context, one *campaign, s *scan, sum sendlog.Counts,
	now time.Time) bool {
	s.mu.Lock()
	failed, why := s.failed, s.why
	s.mu.Unlock()
	if !failed.IsZero() && now.Sub(failed) > relayMost {
		c.hold(ctx, one, "relay", fmt.Sprintf("its relay has taken no mail since %s: %s",
			failed.UTC().Format(time.RFC3339), why))
		return true
	}
	sent, bounced := sum.States[sendlog.Sent], sum.States[sendlog.Bounced]
	faulty := sum.States[sendlog.Failed]
	all := sent + bounced + faulty
	if all < c.opts.HoldAfter {
		return false
	}
	for _, rate := range []struct {
		reason string
		n      int
		most   float64
	}{
		{"bounces", bounced, c.opts.HoldBounces},
		{"complaints", sum.Fields[string(sendlog.Complained)], c.opts.HoldComplaints},
		{"faults", faulty, c.opts.HoldFaults},
	} {
		if share := float64(rate.n) / float64(all); rate.most > 0 && share > rate.most &&
			!slices.Contains(one.run().Forgiven, rate.reason) {
			c.hold(ctx, one, rate.reason, fmt.Sprintf("%d of %d people: %.1f %%, more than %.1f %%", rate.n, all,
				100*share, 100*rate.most))
			return true
		}
	}
	return false
}

// count counts the audience of a run, in one process.
func (c *Campaigns) count(ctx context.Context, one *campaign) error {
	run := one.run()
	if run.Counted {
		return nil
	}
	key := redisdb.Key(0, "campaign-count", one.key().String())
	mine, err := c.DB.Client().SetNX(ctx, key, "1", countLease).Result()
	if err != nil || !mine {
		return redisdb.Failed(err, "count the audience of campaign %s", one.id)
	}
	c.counts.Go(func() {
		n, err := c.countAll(ctx, one, key)
		if err == nil {
			_, err = c.change(ctx, "", one.id, func(s *stored) error {
				if at := one.key().Number; at <= len(s.Runs) {
					s.Runs[at-1].Audience, s.Runs[at-1].Counted = n, true
				}
				s.Version--
				return nil
			})
		}
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "audience not counted; tried again soon", "campaign", one.id, "error", err)
		}
	})
	return nil
}

// countAll counts the people of a run. It holds its lease while it does.
func (c *Campaigns) countAll(ctx context.Context, one *campaign, key string) (int, error) {
	s, err := c.newScan(ctx, one)
	if err != nil {
		return 0, err
	}
	n, renewed := 0, time.Now()
	var lost error
	err = c.eachWanted(ctx, s, func(some int) bool {
		n += some
		if time.Since(renewed) > countLease/3 {
			renewed, lost = time.Now(), c.DB.Client().Expire(ctx, key, countLease).Err()
		}
		return lost == nil
	})
	return n, cmp.Or(err, redisdb.Failed(lost, "count the audience of campaign %s", one.id))
}
