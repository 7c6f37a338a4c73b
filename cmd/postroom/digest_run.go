package main

import (
	"cmp"
	"time"

	"github.com/postroom/postroom/api"
)

// digestRunsCmd lists runs.
type digestRunsCmd struct {
	filter[api.DigestRunQuery]
	limitFlag
}

// Run lists runs.
func (c *digestRunsCmd) Run(s *session) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	q.PageSize = c.pageSize(maxPage)
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
