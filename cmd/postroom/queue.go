package main

import (
	"cmp"
	"strconv"

	"github.com/postroom/postroom/api"
)

func queueVerbs() []verb {
	return []verb{
		{name: "status", help: "Show the queues (the default).", run: &queueStatusCmd{}},
		{name: "pause", help: "Pause a queue. Running jobs finish, and Postroom still accepts new messages.",
			run: &queueSwitchCmd{paused: true}},
		{name: "resume", help: "Resume a queue.", run: &queueSwitchCmd{}},
	}
}

// queueNames are all queues, in the order of their rows.
var queueNames = []string{"submit", "bulk", "notify", "documents", "digests"}

type queueStatusCmd struct {
	Queues []string `arg:"" optional:"" name:"queue" enum:"submit,bulk,notify,documents,digests" help:"Queues: submit (all messages), bulk (only the bulk stream), notify (webhooks), documents, digests. Defaults to all."`
}

func (q *queueStatusCmd) Run(s *session) error {
	if len(q.Queues) == 0 {
		q.Queues = queueNames
	}
	all := make([]api.QueueStatus, len(q.Queues))
	for i, name := range q.Queues {
		var err error
		if all[i], err = api.GetQueue.Do(s, s.client, name); err != nil {
			return err
		}
	}
	return s.answer(all, nil, func() { s.show(queueGrid(all)) })
}

// counting are the names of queues that count the same mail, so that nobody adds their rows up.
var counting = map[string]string{"submit": "submit (both lanes)", "bulk": "bulk (part of submit)"}

func queueGrid(all []api.QueueStatus) grid {
	g := newGrid("queue", "runs", "waiting", "paused", "active", "scheduled", "delayed", "failed", "completed",
		"oldest", "per minute", "processed")
	for _, q := range all {
		runs, j := "yes", q.Jobs
		if q.Paused {
			runs = "paused"
		}
		g.add(cmp.Or(counting[q.Queue], q.Queue), runs, j.Waiting, j.Paused, j.Active, j.Scheduled,
			j.OnlyDelayed(), j.Failed, j.Completed, seconds(q.Latency),
			perMinute(q), q.ProcessedTotal)
	}
	return g
}

func perMinute(q api.QueueStatus) string {
	if q.PerMinute == nil {
		return "-"
	}
	return strconv.FormatFloat(*q.PerMinute, 'f', 1, 64)
}

type queueSwitchCmd struct {
	Queue string `arg:"" optional:"" default:"submit" enum:"submit,bulk,notify,documents,digests" help:"submit (all messages; the default), bulk (only the bulk stream), notify (webhooks), documents or digests."`

	paused bool
}

func (q *queueSwitchCmd) Run(s *session) error {
	answer, err := api.PutQueue.Do(s, s.client, api.QueuePatch{Paused: &q.paused}, q.Queue)
	return s.answer(answer, err, func() {
		if answer.Paused {
			s.say("queue %s is paused", answer.Queue)
		} else {
			s.say("queue %s runs", answer.Queue)
		}
	})
}
