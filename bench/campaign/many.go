package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/bench/rig"
)

// apart is how far campaigns that run at once may be from each other, as shares of their people.
const apart = 0.15

// many sends some campaigns to the same people at once, and measures how far they get from each other.
func (h *house) many(ctx context.Context) error {
	ids := make([]string, h.campaigns)
	for i := range ids {
		ids[i] = fmt.Sprintf("many-%d", i)
		if err := h.draft(ctx, ids[i]); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := rig.InParallel(ctx, len(ids), len(ids), func(ctx context.Context, i int) error {
		_, err := api.SendCampaign.Do(ctx, h.client, api.CampaignStart{}, ids[i])
		return err
	}); err != nil {
		return err
	}
	widest, at := 0.0, 0.0
	var first time.Duration // until the first campaign had everybody
	if err := rig.Until(ctx, time.Hour, 20*time.Millisecond, func() (bool, error) {
		shares := h.ledger.shares(ids)
		least, most := slices.Min(shares), slices.Max(shares)
		if most-least > widest {
			widest, at = most-least, most
		}
		if most >= 1 && first == 0 {
			first = time.Since(began)
		}
		return least >= 1, nil
	}); err != nil {
		return err
	}
	took := time.Since(began)
	rig.Title(fmt.Sprintf("%d campaigns at once, to %d people each", len(ids), h.people))
	rig.Tell("mails a second", fmt.Sprintf("%.0f", float64(h.people*len(ids))/took.Seconds()))
	rig.Tell("from the start until the first, and the last, had everybody",
		fmt.Sprintf("%s / %s", rig.Round(first), rig.Round(took)))
	h.check("widest spread of the shares of people who have it",
		fmt.Sprintf("%.1f %%, the first at %.0f %%", 100*widest, 100*at), "at most 15 %", widest <= apart)
	for _, id := range ids {
		st, err := h.finished(ctx, id)
		if err != nil {
			return err
		}
		got, twice := h.ledger.of(id)
		if got != h.people || twice > 0 || st.States.Sent != h.people {
			h.check("people of "+id, fmt.Sprintf("%d got it, %d twice, %d sent", got, twice, st.States.Sent),
				fmt.Sprint(h.people), false)
		}
	}
	return nil
}
