package newsletter

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// quotaPause is how long a run waits for room in a quota before it asks again: a quota may be raised.
const quotaPause = 5 * time.Second

// reasonQuota is the reason of a campaign that waits for room in a quota. It goes on by itself.
const reasonQuota = "quota"

// sendWithin mails as many people as the quotas have room for, and gives back the room of those it didn't
// try.
func (b *batch) sendWithin(ctx, work context.Context, people []uint32) {
	mailing := b.scan.mailings[0] // all variants have the same account
	room, err := mailing.Reserve(work, len(people))
	if err != nil {
		b.noRoom(ctx, err)
		return
	}
	b.scan.noteQuota("")
	b.sendAll(ctx, work, people[:room.Messages])
	if unsent := room.Messages - int(b.tried.Load()); unsent > 0 {
		b.persist(work, "give back room in a quota", func() error { return mailing.Unreserve(work, room, unsent) })
	}
}

// noRoom makes the scan wait because of a quota that is used up or can't be read.
func (b *batch) noRoom(ctx context.Context, err error) {
	pause, why := time.Second, "the quotas can't be asked"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Limited {
		pause, why = quotaPause, f.Message
		b.scan.noteQuota(why)
		if f.RetryAfter > 0 {
			pause = min(pause, f.RetryAfter)
		}
	} else {
		b.c.log.WarnContext(ctx, "quotas not asked; the batch is given back", "campaign", b.scan.c.id, "error", err)
	}
	b.scan.rest(b.c.opts.Now().Add(pause), why)
}

// noteQuota notes which quota has no room; empty: all have.
func (s *scan) noteQuota(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = &why
}

// showQuota stores in the campaign that a quota keeps it waiting, or does no longer.
func (c *keeper) showQuota(ctx context.Context, one *campaign, s *scan) error {
	s.mu.Lock()
	now := s.quota
	s.quota = nil
	s.mu.Unlock()
	if now == nil || *now == one.Detail && (one.Reason == reasonQuota || one.Reason == "") {
		return nil
	}
	_, err := c.change(ctx, "", one.id, func(s *stored) error {
		s.Version--
		if s.State != api.CampaignSending {
			return nil
		}
		if s.Reason, s.Detail = "", *now; *now != "" {
			s.Reason = reasonQuota
		}
		return nil
	})
	return err
}
