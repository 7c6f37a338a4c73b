package newsletter

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// Resend begins the next run of a campaign that was sent or cancelled, to some of its people. If there are
// none, it begins none, and says so. While a run to them is under way, it returns that run.
func (c *Campaigns) Resend(ctx context.Context, bound, id string, in api.CampaignResend) (api.CampaignRun,
	error) {
	if !slices.Contains([]string{toFailed, toInDoubt, toNotOpened, toNewcomers}, in.To) {
		return api.CampaignRun{}, fault.InvalidField("to", "must be failed, inDoubt, notOpened or newcomers")
	}
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignRun{}, err
	}
	over := one.State == api.CampaignSent || one.State == api.CampaignCancelled
	underWay := one.State == api.CampaignSending || one.State == api.CampaignPaused
	switch run := one.run(); {
	case run != nil && underWay && run.To == in.To:
		return ran(one), nil // a repetition of the request that began it
	case run == nil || !over:
		return api.CampaignRun{}, wrongState(&one.stored, "send it again")
	}
	if len(one.Runs) == mostRuns {
		return api.CampaignRun{}, fault.New(fault.Conflict, "CampaignState",
			"Campaign %q was sent %d times, which is the maximum", id, mostRuns)
	}
	one.Token, one.TokenQuota = in.Token, in.TokenQuota
	if err := c.ready(ctx, bound, one, time.Time{}); err != nil {
		return api.CampaignRun{}, err
	}
	if err := c.setPermission(ctx, one); err != nil { // otherwise no one denies it if a process died before
		return api.CampaignRun{}, err
	}
	anybody, err := c.anybody(ctx, one, in.To)
	if err != nil {
		return api.CampaignRun{}, err
	}
	if !anybody {
		run := ran(one)
		run.Reason = "There is nobody to send it to"
		return run, nil
	}
	return c.begin(ctx, one, in)
}

// lookFor bounds how long Resend looks for somebody. After that it assumes that there is somebody.
const lookFor = 5 * time.Second

// anybody reports whether the next run of a campaign would go to anybody.
func (c *Campaigns) anybody(ctx context.Context, before *campaign, to string) (bool, error) {
	if over, err := c.conclude(ctx, before); err != nil || !over {
		return true, err // the results of people under way decide whether the run goes to them
	}
	end, err := c.Audience.End(ctx, before.Account)
	if err != nil {
		return false, err
	}
	next, began := *before, time.Now()
	next.Runs = append(slices.Clip(next.Runs), sending{Began: c.opts.Now(), End: end, To: to})
	s, err := c.newScan(ctx, &next)
	if err != nil {
		return false, err
	}
	found := false
	err = c.eachWanted(ctx, s, func(n int) bool {
		found = n > 0 || time.Since(began) > lookFor
		return !found
	})
	return found, err
}

// eachWanted calls fn with the number of people that a run goes to, for some subscribers after the other,
// until it returns false.
func (c *Campaigns) eachWanted(ctx context.Context, s *scan, fn func(n int) bool) error {
	for from := uint32(0); from < s.c.run().End; {
		people, next, err := c.Audience.People(ctx, s.choice, from, s.c.run().End, stretchPages)
		if err != nil {
			return err
		}
		if err := c.readSets(ctx, s, int(from/sendlog.ChunkSize)); err != nil {
			return err
		}
		n := 0
		for _, p := range people {
			if s.wanted(p) {
				n++
			}
		}
		if from = next; !fn(n) {
			return nil
		}
	}
	return nil
}
