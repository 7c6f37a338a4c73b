package main

import (
	"cmp"
	"time"

	"github.com/postroom/postroom/api"
)

// digestRunsCmd lists runs.
type digestRunsCmd struct {
	Account   string `placeholder:"ID" help:"Only those of this account. Default: that of the token, else default."`
	Recipient string `placeholder:"ID" help:"Only those of this reader."`
	State     string `enum:",pending,processing,submitted,sent,failed,skipped" default:"" placeholder:"STATE" help:"Only those in this state: pending, processing, submitted, sent, failed or skipped."`
	Since     string `placeholder:"WHEN" help:"Only those since then: a distance (2h) or a time."`
	Until     string `placeholder:"WHEN" help:"Only those before then."`
	limitFlag
}

// Run lists runs.
func (c *digestRunsCmd) Run(s *session) error {
	q := api.DigestRunQuery{Account: c.Account, Recipient: c.Recipient, State: c.State,
		PageSize: c.pageSize(maxPage)}
	after, err := optionalTime("--since", c.Since, parseSince)
	if err != nil {
		return err
	}
	before, err := optionalTime("--until", c.Until, parseSince)
	if err != nil {
		return err
	}
	api.Set(&q.After, after)
	api.Set(&q.Before, before)
	found, more, _, err := fetch(s, api.ListDigestRuns, q, c.limitFlag, nil)
	return s.some("runs", found, more, err, "no runs", digestRunsGrid(found, time.Now()))
}

func digestRunsGrid(list []api.DigestRun, now time.Time) grid {
	g := newGrid("run", "recipient", "state", "events", "when")
	for _, r := range list {
		g.add(r.Run, clip(r.Recipient, 9), clip(r.State+colon(r.Reason), 15), r.Events,
			moment(digestRunWhen(r), now))
	}
	return g
}

// digestRunWhen returns the time of a run that its list shows.
func digestRunWhen(r api.DigestRun) time.Time {
	return *cmp.Or(r.Ended, r.Started, &r.Scheduled)
}
