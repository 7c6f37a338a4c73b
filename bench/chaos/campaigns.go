package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// lanes is how many campaigns are sent at a time.
const lanes = 2

// listsOf are the lists that a person is on.
func listsOf(n int) (out []string) {
	if n%2 == 0 || n%3 == 0 {
		out = append(out, "weekly")
	}
	if n%2 == 1 || n%3 == 0 {
		out = append(out, "daily")
	}
	return out
}

// enlist makes the lists, and puts all people on them.
func (h *testbed) enlist(ctx context.Context) error {
	if h.o.campaigns == 0 {
		return nil
	}
	client := h.apis[0].client
	for _, list := range []string{"weekly", "daily"} {
		_, err := api.CreateList.Do(ctx, client, api.List{ListID: list, Name: list, OptIn: "single"})
		if err != nil {
			return err
		}
		var file strings.Builder
		file.WriteString("email\n")
		for n := range h.o.people {
			if strings.Contains(strings.Join(listsOf(n), " "), list) {
				file.WriteString(person(n) + "\n")
			}
		}
		done, err := api.ImportSubscribers.Do(ctx, client, strings.NewReader(file.String()),
			api.SubscriberImportOptions{ListID: []string{list}, State: "subscribed", Consent: "I want news"})
		if err != nil || done.Bad > 0 {
			return fmt.Errorf("import of list %s: %d bad lines: %w", list, done.Bad, err)
		}
	}
	return nil
}

// campaigning sends campaigns until the weather is fine. all reports when the last of them has ended.
func (c *clients) campaigning(ctx, weather context.Context) {
	for lane := range lanes {
		c.all.Go(func() {
			for n := lane; n < c.h.o.campaigns && weather.Err() == nil; n += lanes {
				c.campaign(ctx, n)
			}
		})
	}
	c.all.Go(func() { c.wishes(ctx, weather) })
}

// campaign sends one campaign, and does what its operator does about it until it ends.
func (c *clients) campaign(ctx context.Context, n int) {
	r := random(c.seed, "campaign "+strconv.Itoa(n))
	id, text := newsletter(n), strings.Repeat("All work and no play makes a dull boy.\n", 20)
	// so that all campaigns together take about half of the storm, and more with its faults
	rate := float64(c.h.o.people*c.h.o.campaigns) / lanes / (0.4 * c.h.o.length.Seconds())
	created := c.insist(ctx, r, "campaign created", func(door *api.Client) error {
		_, err := api.CreateCampaign.Do(ctx, door, api.Campaign{Campaign: id, Name: id,
			Lists: []string{"weekly", "daily"}, Rate: rate, Events: "all", KeepLog: true,
			CampaignContent: api.CampaignContent{Subject: id, From: &api.Address{Address: sender},
				Text: text + "Leave: {{rcpt.unsubscribeUrl}}\n" + lastLine(n, "{{subscriber.email}}") + "\n"}})
		if kindOf(err) == "409" { // an answer was lost
			return nil
		}
		return err
	})
	if !created {
		return
	}
	c.ledger.mailing(n)
	if !c.insist(ctx, r, "campaign sent", func(door *api.Client) error {
		_, err := api.SendCampaign.Do(ctx, door, api.CampaignStart{}, id)
		return err
	}) {
		return
	}
	pauseAt, cancelAt := 0.1+0.3*r.Float64(), 2.0 // shares of the people
	if n%5 == 4 {
		cancelAt = 0.5 + 0.3*r.Float64()
	}
	for rig.Wait(ctx, 200*time.Millisecond) == nil {
		one, err := api.GetCampaign.Do(ctx, c.some(r).client, id)
		if err != nil {
			continue
		}
		done := 1 - float64(one.States.Open())/float64(max(1, one.States.Total()))
		switch {
		case one.State == api.CampaignSent, one.State == api.CampaignCancelled, one.State == api.CampaignFailed:
			return
		case one.State == api.CampaignHeld, one.State == api.CampaignPaused:
			c.resume(ctx, r, n)
		case done >= cancelAt:
			c.cancelCampaign(ctx, r, n)
		case done >= pauseAt:
			pauseAt = 2
			c.pauseCampaign(ctx, r, n)
		}
	}
}

// pauseCampaign pauses a campaign for a while. From the answer on no mail of it begins.
func (c *clients) pauseCampaign(ctx context.Context, r *rand.Rand, n int) {
	if !c.insist(ctx, r, "campaign paused", func(door *api.Client) error {
		_, err := api.PauseCampaign.Do(ctx, door, newsletter(n))
		return err
	}) {
		return // it ended, or is held
	}
	c.ledger.shuts(n, "operator: it is paused")
	_ = rig.Wait(ctx, time.Second+time.Duration(r.IntN(2000))*time.Millisecond)
	c.resume(ctx, r, n)
}

func (c *clients) resume(ctx context.Context, r *rand.Rand, n int) {
	c.ledger.opens(n)
	c.insist(ctx, r, "campaign resumed", func(door *api.Client) error {
		_, err := api.ResumeCampaign.Do(ctx, door, newsletter(n))
		return err
	})
}

func (c *clients) cancelCampaign(ctx context.Context, r *rand.Rand, n int) {
	c.ledger.ofMailing(n, func(m *mailing) string { m.cancelled = true; return "operator: asks to cancel it" })
	if c.insist(ctx, r, "campaign cancelled", func(door *api.Client) error {
		_, err := api.CancelCampaign.Do(ctx, door, newsletter(n))
		return err
	}) {
		c.ledger.shuts(n, "operator: it is cancelled")
	}
}

// wishes lets a tenth of the people leave or be suppressed, evenly over the storm.
func (c *clients) wishes(ctx, weather context.Context) {
	r, o := random(c.seed, "wishes"), c.h.o
	if o.campaigns == 0 {
		return
	}
	who := r.Perm(o.people)[:o.people/10]
	for i, n := range who {
		if rig.Wait(weather, o.length*8/10/time.Duration(len(who))) != nil {
			return
		}
		c.all.Go(func() { c.wish(ctx, n, i%2 == 0) })
	}
}

// wish lets one person leave all lists, or suppresses the address.
func (c *clients) wish(ctx context.Context, n int, leaves bool) {
	r := random(c.seed, "wish "+strconv.Itoa(n))
	answered := c.ledger.wishing(n)
	what := "address suppressed"
	requests := []func(*api.Client) error{func(door *api.Client) error {
		_, err := api.AddSuppressions.Do(ctx, door, api.SuppressionRequest{
			NewSuppression: api.NewSuppression{Email: person(n)}})
		return err
	}}
	if leaves {
		what, requests = "list left", nil
		for _, list := range listsOf(n) {
			requests = append(requests, func(door *api.Client) error {
				_, err := api.LeaveList.Do(ctx, door, api.SubscriberAccount{}, person(n), list)
				return err
			})
		}
	}
	for _, request := range requests {
		if !c.insist(ctx, r, what, request) {
			return
		}
	}
	answered()
}

// insist repeats a request, each time through any API process, until it is answered. It reports whether it
// was done, and not refused permanently.
func (c *clients) insist(ctx context.Context, r *rand.Rand, what string,
	request func(*api.Client) error) bool {
	for try := 1; ; try++ {
		err := request(c.some(r).client)
		if err == nil {
			c.ledger.count(what)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.ledger.count(what + ": " + kindOf(err))
		if final(err) || pause(ctx, r, try) != nil {
			return false
		}
	}
}

// settled reports whether no one of a campaign that has ended is under way any more, and then reads what
// Postroom says of all campaigns.
func (r *round) settled(ctx context.Context) bool {
	for n, m := range r.h.ledger.mailings.all {
		if m == nil || m.end != nil {
			continue
		}
		end, err := r.outcome(ctx, newsletter(n))
		if err != nil || end == nil {
			return false
		}
		r.h.ledger.ofMailing(n, func(m *mailing) string { m.end = end; return "" })
	}
	return true
}

// outcome reads what Postroom says of a campaign; nil: it has not ended.
func (r *round) outcome(ctx context.Context, id string) (*outcome, error) {
	client := r.h.apis[0].client
	st, err := api.GetCampaignStats.Do(ctx, client, api.CampaignStatsQuery{}, id)
	over := st.State == api.CampaignSent || st.State == api.CampaignCancelled
	if err != nil || !over || st.States.Open() > 0 {
		return nil, err
	}
	end := &outcome{stats: st, listed: map[int][]listing{}}
	for q := (api.CampaignRecipientQuery{CursorQuery: api.CursorQuery{PageSize: 1000}}); ; {
		page, err := api.ListCampaignRecipients.Do(ctx, client, q, id)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Recipients {
			n := personOf(one.Email)
			end.listed[n] = append(end.listed[n], listing{state: one.State, queueID: one.QueueID})
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	recount, err := api.RecountCampaign.Do(ctx, client, id)
	end.recounted = recount.Changed
	return end, err
}

// askMailings asks Postroom which attempts were in doubt. It asks about people who got a campaign more than
// once, or who got it although their state says otherwise.
func (r *round) askMailings(ctx context.Context) {
	for _, m := range r.h.ledger.mailings.all {
		if m == nil || m.end == nil {
			continue
		}
		for n, all := range m.end.listed {
			copies := len(m.mails[n])
			if copies > 1 || copies == 1 && all[0].state != stateSent && all[0].state != stateInDoubt {
				all[0].doubts = r.doubts(ctx, all[0].queueID)
			}
		}
	}
}
