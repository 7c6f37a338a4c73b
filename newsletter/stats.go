package newsletter

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
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

// states returns the recipients of the last run of a campaign by state, and how many there are.
func states(one *campaign, sum sendlog.Counts) (api.CampaignStates, int) {
	s := named(sum)
	all := sum.Taken
	if run := one.run(); run != nil && one.State != api.CampaignSent {
		waiting := max(0, run.Audience-sum.Taken)
		all += waiting
		if one.State == api.CampaignCancelled {
			s.Cancelled += waiting
		} else {
			s.Waiting = waiting
		}
	}
	return s, all
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

// Stats returns the numbers of the last run of a campaign.
func (c *reports) Stats(ctx context.Context, bound, id string) (api.CampaignStats, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignStats{}, err
	}
	st := api.CampaignStats{Campaign: id, State: one.State, Run: len(one.Runs), Links: []api.CampaignLink{},
		Hours: []api.CampaignHour{}, Domains: []api.CampaignDomain{}}
	run := one.run()
	if run == nil {
		return st, nil
	}
	chunks, err := c.Log.Chunks(ctx, one.key(), run.End)
	if err != nil {
		return st, err
	}
	sum := sendlog.Sum(chunks)
	st.States, st.Audience = states(one, sum)
	st.Counting = !run.Counted && !ended(one.State)
	st.Started, st.Ended, st.Recounted = &run.Began, run.Ended, run.Recounted
	for field, into := range map[string]*int{
		string(sendlog.Delivered): &st.Delivered, string(sendlog.Complained): &st.Complained,
		string(sendlog.Left): &st.Left, string(sendlog.Opened): &st.Opened, "openedTotal": &st.OpenedTotal,
		string(sendlog.OpenedBots): &st.OpenedBots, string(sendlog.Clicked): &st.Clicked,
		"clickedTotal": &st.ClickedTotal, string(sendlog.ClickedBots): &st.ClickedBots,
	} {
		*into = sum.Fields[field]
	}
	if took := cmp.Or(endOf(run), c.opts.Now()).Sub(run.Began).Seconds(); took > 0 {
		st.Rate = float64(st.States.Sent) / took
	}
	tables(&st, sum.Fields)
	if len(one.Variants) > 0 {
		st.Winner, st.Decided = run.Winner, run.Decided
		if t := trialOf(one.Campaign); one.open() && run.Tested != nil && t.metric != byHand {
			at := run.Tested.Add(t.wait)
			st.Decides = &at
		}
		st.Variants = outcomes(one, sum)
	}
	return st, nil
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

// Recount compares the counters of the last run with what is stored of each recipient, and replaces those
// that differ.
func (c *reports) Recount(ctx context.Context, bound, id string) (api.CampaignRecount, error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignRecount{}, err
	}
	run := one.run()
	if run == nil {
		return api.CampaignRecount{}, nil
	}
	look := func() (api.CampaignStates, error) {
		chunks, err := c.Log.Chunks(ctx, one.key(), run.End)
		s, _ := states(one, sendlog.Sum(chunks))
		return s, err
	}
	var answer api.CampaignRecount
	if answer.Before, err = look(); err != nil {
		return answer, err
	}
	changed, err := c.Log.Recount(ctx, one.key(), run.End)
	if err != nil {
		return answer, err
	}
	answer.Changed = changed > 0
	if answer.After, err = look(); err != nil {
		return answer, err
	}
	_, err = c.change(ctx, bound, id, func(s *stored) error {
		now := c.opts.Now().UTC()
		s.Version--
		if n := one.key().Number; n <= len(s.Runs) {
			s.Runs[n-1].Recounted = &now
		}
		return nil
	})
	return answer, err
}
