package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// mailsAtOnce is how many mails of campaigns one Postroom has under way at most.
const mailsAtOnce = 50

// storm sends the second campaign, and breaks what can break.
func (h *house) storm(ctx context.Context) error {
	dice := rand.New(rand.NewPCG(h.seed, 1)) //nolint:gosec // dice
	if _, err := api.SendCampaign.Do(ctx, h.client, api.CampaignStart{}, "storm"); err != nil {
		return err
	}
	before := h.ledger.mails()
	moments := make([]int, h.kills+2) // in mails; of the kills, one of Redis, and a pause
	for i := range moments {
		moments[i] = before + h.people/20 + dice.IntN(h.people*8/10)
	}
	slices.Sort(moments)
	redis, pause := dice.IntN(len(moments)), 0
	if pause = dice.IntN(len(moments) - 1); pause >= redis {
		pause++
	}
	wishes, stop := context.WithCancel(ctx)
	defer stop()
	group, wishing := errgroup.WithContext(wishes)
	group.Go(func() error { return h.wish(wishing, dice.Uint64()) })
	for i, at := range moments {
		if err := h.reach(ctx, at); err != nil {
			return err
		}
		what := h.killPostroom
		switch i {
		case redis:
			what = h.killRedis
		case pause:
			what = h.pauses
		}
		if err := what(ctx); err != nil {
			return err
		}
	}
	st, err := h.finished(ctx, "storm")
	if err != nil {
		return err
	}
	stop()
	if err := group.Wait(); err != nil && ctx.Err() == nil && wishes.Err() == nil {
		return err
	}
	return h.judge(ctx, st)
}

// reach waits until the relay has so many mails, or no more come.
func (h *house) reach(ctx context.Context, mails int) error {
	return rig.Until(ctx, time.Hour, 10*time.Millisecond, func() (bool, error) {
		if h.ledger.mails() >= mails {
			return true, nil
		}
		st, err := h.stats(ctx, "storm")
		return err == nil && st.State == api.CampaignSent, nil
	})
}

// killPostroom kills Postroom, and starts it again.
func (h *house) killPostroom(context.Context) error {
	fmt.Println("  kill -9 of Postroom")
	h.postroom.Kill()
	return h.open()
}

// killRedis kills Redis, and starts it again with what it wrote.
func (h *house) killRedis(ctx context.Context) error {
	fmt.Println("  kill -9 of redis-server")
	h.Redis.Kill()
	return h.RestartRedis(ctx, h.durable()...)
}

// pauses pauses the campaign for a while. From the answer on no mail begins.
func (h *house) pauses(ctx context.Context) error {
	fmt.Println("  pause and resume")
	for _, verb := range []func() error{
		func() error { _, err := api.PauseCampaign.Do(ctx, h.client, "storm"); return err },
		func() error {
			h.ledger.pause(time.Now())
			err := rig.Wait(ctx, 3*time.Second)
			h.ledger.pause(time.Time{})
			return err
		},
		func() error { _, err := api.ResumeCampaign.Do(ctx, h.client, "storm"); return err },
	} {
		if err := h.insist(ctx, verb); err != nil {
			return err
		}
	}
	return nil
}

// insist repeats a request while Postroom or Redis is away.
func (h *house) insist(ctx context.Context, request func() error) error {
	var last error
	err := rig.Until(ctx, 2*time.Minute, 50*time.Millisecond, func() (bool, error) {
		last = request()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// wish lets people leave, and others be suppressed, all along.
func (h *house) wish(ctx context.Context, seed uint64) error {
	dice := rand.New(rand.NewPCG(seed, 2))             //nolint:gosec // dice
	if err := rig.Wait(ctx, time.Second); err != nil { // who left in the second of the start had left before
		return err
	}
	who := dice.Perm(h.people)[:2*h.wishes]
	for i, n := range who {
		at := h.people + (h.people*9/10)*i/len(who) // mails of both campaigns
		if err := rig.Until(ctx, time.Hour, 5*time.Millisecond, func() (bool, error) {
			return h.ledger.mails() >= at, nil
		}); err != nil {
			return err
		}
		err := h.insist(ctx, func() error {
			if i%2 == 0 {
				_, err := api.LeaveList.Do(ctx, h.client, api.SubscriberAccount{}, address(n), "weekly")
				return err
			}
			_, err := api.AddSuppressions.Do(ctx, h.client, api.SuppressionRequest{
				NewSuppression: api.NewSuppression{Email: address(n)}})
			return err
		})
		if err != nil {
			return err
		}
		h.ledger.wish(n)
	}
	return nil
}

// judge compares the numbers with the ledger.
func (h *house) judge(ctx context.Context, st api.CampaignStats) error {
	late, broken := h.ledger.faults()
	s := st.States
	rig.Title("A campaign in a storm")
	h.books("storm", st)
	sum := s.Sent + s.Suppressed + s.Unsubscribed + s.InDoubt
	h.check("people who have a state that ends", fmt.Sprintf("%d sent, %d suppressed, %d left, %d in doubt",
		s.Sent,
		s.Suppressed, s.Unsubscribed, s.InDoubt), fmt.Sprint(h.people), sum == h.people && st.Audience == h.people)
	most := mailsAtOnce * (h.kills + 1)
	h.check("in doubt", fmt.Sprint(s.InDoubt), fmt.Sprintf("at most %d", most), s.InDoubt <= most)
	h.check("mails that began after a wish was answered", fmt.Sprint(late), "none", late == 0)
	h.check("mails that began after the answer to the pause", fmt.Sprint(broken), "none", broken == 0)
	recount, err := api.RecountCampaign.Do(ctx, h.client, "storm")
	if err != nil {
		return err
	}
	h.check("counters that a recount changes", fmt.Sprint(recount.Changed), "false", !recount.Changed)
	return nil
}
