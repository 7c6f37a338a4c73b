package main

import (
	"cmp"
	"strings"
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

// ofRun names a run.
type ofRun struct {
	ID string `arg:"" help:"Id of the run, as postroom digest runs shows it."`
}

// digestRun shows a run, and what it mailed below it.
func digestRun(s *session, c ofRun) error {
	r, err := api.GetDigestRun.Do(s, s.client, c.ID)
	return s.answer(r, err, func() {
		now := time.Now()
		s.show(digestRunFacts(r, now))
		if len(r.Groups) > 0 {
			s.say("")
			s.show(digestGroupsGrid(r.Groups, now))
		}
	})
}

func digestRunFacts(r api.DigestRun, now time.Time) grid {
	var g grid
	g.add("run", r.Run)
	g.add("account", r.Account)
	g.add("recipient", r.Recipient)
	g.add("schedule", r.Schedule)
	g.add("period", r.Period)
	g.add("state", r.State+colon(r.Reason))
	g.add("scheduled", stamp(r.Scheduled, now))
	for _, at := range []struct {
		name string
		when *time.Time
	}{{"started", r.Started}, {"ended", r.Ended}} {
		if at.when != nil {
			g.add(at.name, stamp(*at.when, now))
		}
	}
	g.add("attempts", r.Attempts)
	g.add("events", r.Events)
	g.fact("message", r.QueueID)
	return g
}

func digestGroupsGrid(list []api.DigestGroup, now time.Time) grid {
	g := newGrid("category", "about", "events", "title", "by", "last")
	for _, one := range list {
		actors := make([]string, len(one.Actors))
		for i, a := range one.Actors {
			actors[i] = cmp.Or(a.Name, a.ID)
		}
		by := clip(strings.Join(actors, ", "), 8) + noteIf(one.Others > 0, " +%d", one.Others)
		g.add(clip(one.Category, 10), clip(one.EntityType+" "+one.EntityID, 14), one.Count,
			orDash(clip(one.Title, 12)), orDash(by), moment(one.Last, now))
	}
	return g
}

// digestRetry queues it again. It fails unless the run has failed.
func digestRetry(s *session, c ofRun) error {
	r, err := api.RetryDigestRun.Do(s, s.client, c.ID)
	return s.said(r, err, "run %s is %s, with %s", r.Run, r.State, plural(r.Events, "event"))
}
