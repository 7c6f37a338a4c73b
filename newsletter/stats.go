package newsletter

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
)

func subscriberID(ordinal uint32) string { return audience.IDOf(ordinal) }

// stateNames are the states as the API has them.
var stateNames = map[sendlog.State]string{
	sendlog.Taken: "sending", sendlog.AtDot: "sending", sendlog.Sent: "sent", sendlog.Deferred: "deferred",
	sendlog.Suppressed: "suppressed", sendlog.Unsubscribed: "unsubscribed", sendlog.Bounced: "bounced",
	sendlog.Failed: "failed", sendlog.InDoubt: "inDoubt", sendlog.Cancelled: "cancelled",
}

// states returns a campaign run's recipients by state, and how many there are.
func (c *campaign) states(run int, sum sendlog.Counts) (api.CampaignStates, int) {
	s := named(sum)
	return s, sum.Taken + c.wait(&s, run, sum.Taken)
}

// wait counts the people of a run who were not looked at, and returns how many there are.
func (c *campaign) wait(s *api.CampaignStates, run, taken int) int {
	r := c.Runs[run-1]
	if r.Sent {
		return 0
	}
	waiting := max(0, r.Audience-taken)
	if r.Ended != nil {
		s.Cancelled += waiting
	} else {
		s.Waiting += waiting
	}
	return waiting
}

// named returns counted states as the API has them.
func named(sum sendlog.Counts) api.CampaignStates {
	return api.CampaignStates{
		Sending: sum.Sending(), Sent: sum.States[sendlog.Sent], Deferred: sum.States[sendlog.Deferred],
		Suppressed: sum.States[sendlog.Suppressed], Unsubscribed: sum.States[sendlog.Unsubscribed],
		Bounced: sum.States[sendlog.Bounced], Failed: sum.States[sendlog.Failed],
		InDoubt: sum.States[sendlog.InDoubt], Cancelled: sum.States[sendlog.Cancelled],
	}
}

// checkRun returns an error if a campaign has no such run; 0 is the last one, or all.
func (c *campaign) checkRun(run int) error {
	if run >= 0 && run <= len(c.Runs) {
		return nil
	}
	return fault.InvalidField("run", "must be a run of the campaign, which has %d", len(c.Runs))
}

// Stats returns the numbers of one run of a campaign, or of all its runs together (0). Variants are the first
// run's, which has the test.
func (c *Campaigns) Stats(ctx context.Context, bound, id string, run int) (api.CampaignStats, error) {
	one, err := c.find(ctx, bound, id)
	if err == nil {
		err = one.checkRun(run)
	}
	if err != nil {
		return api.CampaignStats{}, err
	}
	st := api.CampaignStats{Campaign: id, State: one.State, Run: cmp.Or(run, len(one.Runs)),
		Runs: []api.CampaignRunStats{}, Links: []api.CampaignLink{}, Hours: []api.CampaignHour{},
		Domains: []api.CampaignDomain{}}
	if one.State == api.CampaignSending {
		st.Waits = one.Waits
	}
	if st.Run == 0 {
		return st, nil
	}
	sums := make([]sendlog.Counts, len(one.Runs))
	for i, r := range one.Runs {
		if sums[i], err = c.sum(ctx, one, i+1); err != nil {
			return st, err
		}
		of := api.CampaignRunStats{Run: i + 1, To: r.To}
		of.States, of.Audience = one.states(i+1, sums[i])
		of.Started, of.Ended, of.Recounted = &r.Began, r.Ended, r.Recounted
		of.Counting = !r.Counted && r.Ended == nil
		if took := cmp.Or(endOf(&r), c.opts.Now()).Sub(r.Began).Seconds(); took > 0 {
			of.Rate = float64(of.States.Sent) / took
		}
		known(&of.CampaignNumbers, sums[i])
		st.Runs = append(st.Runs, of)
	}
	all, sum := st.Runs[st.Run-1].CampaignNumbers, sums[st.Run-1]
	if run == 0 && len(one.Runs) > 1 {
		if sum, all.States, all.Audience, err = c.totals(ctx, one); err != nil {
			return st, err
		}
		all.Started = &one.Runs[0].Began
		known(&all, sum)
	}
	st.CampaignNumbers = all
	tables(&st, sum.Fields)
	if len(one.Variants) > 0 {
		st.Winner, st.Decided = one.run().Winner, one.run().Decided
		if t := trialOf(one.Campaign); one.open() && one.run().Tested != nil && t.metric != byHand {
			at := one.run().Tested.Add(t.wait)
			st.Decides = &at
		}
		st.Variants = outcomes(one, sums[max(run, 1)-1])
	}
	return st, nil
}

// sum returns the counters of a run.
func (c *Campaigns) sum(ctx context.Context, one *campaign, run int) (sendlog.Counts, error) {
	chunks, err := c.Log.Chunks(ctx, sendlog.Run{Campaign: one.Number, Number: run}, one.Runs[run-1].End)
	return sendlog.Sum(chunks), err
}

// totals returns a campaign's counters over all runs, and its recipients by state, each person once.
func (c *Campaigns) totals(ctx context.Context, one *campaign) (sum sendlog.Counts, s api.CampaignStates,
	all int, err error) {
	last := len(one.Runs)
	own, err := c.sum(ctx, one, last)
	if err != nil || last == 1 {
		s, all = one.states(last, own)
		return own, s, all, err
	}
	runs, end := make([]sendlog.Run, last), uint32(0)
	for i, r := range one.Runs {
		runs[i], end = sendlog.Run{Campaign: one.Number, Number: i + 1}, max(end, r.End)
	}
	if sum, err = c.Log.Together(ctx, end, runs...); err != nil {
		return sum, s, all, err
	}
	s, all = named(sum), sum.Taken
	if one.run().To == toNewcomers { // other runs go to people of the runs before
		all += one.wait(&s, last, own.Taken)
	}
	return sum, s, all, nil
}

// known fills in what became known of the recipients.
func known(into *api.CampaignNumbers, sum sendlog.Counts) {
	for field, n := range map[string]*int{
		string(sendlog.Delivered): &into.Delivered, string(sendlog.Complained): &into.Complained,
		string(sendlog.Left): &into.Left, string(sendlog.Opened): &into.Opened, "openedTotal": &into.OpenedTotal,
		string(sendlog.OpenedBots): &into.OpenedBots, string(sendlog.Clicked): &into.Clicked,
		"clickedTotal": &into.ClickedTotal, string(sendlog.ClickedBots): &into.ClickedBots,
	} {
		*n = sum.Fields[field]
	}
}

func endOf(run *sending) time.Time {
	if run.Ended == nil {
		return time.Time{}
	}
	return *run.Ended
}

// mostRows bounds the links and domains of the stats.
const mostRows = 100

// tables fills in links, hours and domains from the counters.
func tables(st *api.CampaignStats, fields map[string]int) {
	hours, domains := map[string]*api.CampaignHour{}, map[string]*api.CampaignDomain{}
	for field, n := range fields {
		kind, name, _ := strings.Cut(field, ":")
		switch what, of, _ := strings.Cut(name, ":"); kind {
		case "l":
			st.Links = append(st.Links, api.CampaignLink{URL: name, Clicks: n})
		case "h":
			at, err := time.Parse(hourForm, of)
			if err != nil {
				continue
			}
			if hours[of] == nil {
				hours[of] = &api.CampaignHour{Hour: at}
			}
			h := hours[of]
			*map[string]*int{"sent": &h.Sent, "opens": &h.Opens, "clicks": &h.Clicks}[what] += n
		case "d":
			if domains[of] == nil {
				domains[of] = &api.CampaignDomain{Domain: of}
			}
			d := domains[of]
			*map[string]*int{"sent": &d.Sent, "bounced": &d.Bounced, "failed": &d.Failed, "opened": &d.Opened,
				"clicked": &d.Clicked}[what] += n
		}
	}
	for _, h := range hours {
		st.Hours = append(st.Hours, *h)
	}
	for _, d := range domains {
		st.Domains = append(st.Domains, *d)
	}
	slices.SortFunc(st.Links, func(a, b api.CampaignLink) int {
		return cmp.Or(cmp.Compare(b.Clicks, a.Clicks), strings.Compare(a.URL, b.URL))
	})
	slices.SortFunc(st.Hours, func(a, b api.CampaignHour) int { return a.Hour.Compare(b.Hour) })
	slices.SortFunc(st.Domains, func(a, b api.CampaignDomain) int {
		return cmp.Or(cmp.Compare(b.Sent+b.Bounced+b.Failed, a.Sent+a.Bounced+a.Failed),
			strings.Compare(a.Domain, b.Domain))
	})
	st.Links = st.Links[:min(len(st.Links), mostRows)]
	st.Domains = st.Domains[:min(len(st.Domains), mostRows)]
}

// Recount compares the counters of all runs with each recipient's stored data, and replaces the counters that
// differ.
func (c *Campaigns) Recount(ctx context.Context, bound, id string) (api.CampaignRecount, error) {
	var answer api.CampaignRecount
	one, err := c.find(ctx, bound, id)
	if err != nil || one.run() == nil {
		return answer, err
	}
	if _, answer.Before, _, err = c.totals(ctx, one); err != nil {
		return answer, err
	}
	for i, run := range one.Runs {
		changed, err := c.Log.Recount(ctx, sendlog.Run{Campaign: one.Number, Number: i + 1}, run.End)
		if err != nil {
			return answer, err
		}
		answer.Changed = answer.Changed || changed > 0
	}
	if _, answer.After, _, err = c.totals(ctx, one); err != nil {
		return answer, err
	}
	_, err = c.change(ctx, bound, id, func(s *stored) error {
		now := c.opts.Now().UTC()
		s.Version--
		for i := range min(len(one.Runs), len(s.Runs)) {
			s.Runs[i].Recounted = &now
		}
		return nil
	})
	return answer, err
}
