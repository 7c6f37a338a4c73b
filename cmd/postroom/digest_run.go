package main

import (
	"cmp"
	"time"

	"github.com/postroom/postroom/api"
)

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
