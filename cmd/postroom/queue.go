package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// queueCmd is about the queues.
type queueCmd struct {
	Status queueStatusCmd `cmd:"" default:"withargs" help:"Show the queues (the default)."`
	Pause  queuePauseCmd  `cmd:"" help:"Pause a queue: what is active finishes, nothing more begins, new mail is still taken."`
	Resume queueResumeCmd `cmd:"" help:"Resume a queue."`
}

// queueStatusCmd shows queues.
type queueStatusCmd struct {
	reachFlags
	Queues []string `arg:"" optional:"" name:"queue" enum:"submit,bulk,notify,documents" help:"Queues: submit (mail, both lanes), bulk (its bulk lane alone), notify (webhooks), documents. Default: all."`
}

// Run shows queues.
func (q *queueStatusCmd) Run(ctx context.Context, con *console) error {
	client, err := q.client()
	if err != nil {
		return err
	}
	names := q.Queues
	if len(names) == 0 {
		names = []string{"submit", "bulk", "notify", "documents"}
	}
	all := make([]api.QueueStatus, len(names))
	for i, name := range names {
		if all[i], err = api.GetQueue.Do(ctx, client, name); err != nil {
			return err
		}
	}
	if q.JSON {
		return con.printJSON(all)
	}
	con.show(queueGrid(all))
	return nil
}

// counting says of a queue which mail its row counts, so that nobody adds up rows that overlap.
var counting = map[string]string{"submit": "submit (both lanes)", "bulk": "bulk (part of submit)"}

func queueGrid(all []api.QueueStatus) grid {
	g := grid{headings: []string{"queue", "runs", "waiting", "paused", "active", "delayed", "failed", "oldest", "processed"}}
	for _, q := range all {
		runs, j := "yes", q.Jobs
		if q.Paused {
			runs = "paused"
		}
		g.add(cmp.Or(counting[q.Queue], q.Queue), runs, fmt.Sprint(j.Waiting), fmt.Sprint(j.Paused), fmt.Sprint(j.Active), fmt.Sprint(j.Delayed), fmt.Sprint(j.Failed),
			span(time.Duration(q.Latency*float64(time.Second))), fmt.Sprint(q.ProcessedTotal))
	}
	return g
}

// switchFlags name the queue to pause or resume.
type switchFlags struct {
	reachFlags
	Queue string `arg:"" optional:"" default:"submit" enum:"submit,bulk,notify,documents" help:"submit (mail, both lanes; the default), bulk (its bulk lane alone), notify (webhooks) or documents."`
}

// queuePauseCmd pauses a queue.
type queuePauseCmd struct{ switchFlags }

// Run pauses a queue.
func (q *queuePauseCmd) Run(ctx context.Context, con *console) error { return q.set(ctx, con, true) }

// queueResumeCmd resumes a queue.
type queueResumeCmd struct{ switchFlags }

// Run resumes a queue.
func (q *queueResumeCmd) Run(ctx context.Context, con *console) error { return q.set(ctx, con, false) }

func (s switchFlags) set(ctx context.Context, con *console, paused bool) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	answer, err := api.PutQueue.Do(ctx, client, api.QueuePatch{Paused: new(paused)}, s.Queue)
	if err != nil {
		return err
	}
	if s.JSON {
		return con.printJSON(answer)
	}
	if answer.Paused {
		con.say("queue %s is paused", answer.Queue)
	} else {
		con.say("queue %s runs", answer.Queue)
	}
	return nil
}
