package main

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
)

// replayTimeout bounds a replay of many: a hundred thousand dead letters take minutes.
const replayTimeout = time.Hour

// deadReplayCmd sends dead letters again. Unlike outbox retry it leaves alone what has not failed, or was replayed by another meanwhile.
type deadReplayCmd struct {
	deadFlags
	IDs     []string `arg:"" optional:"" name:"id" help:"Queue ids of dead letters; or select them by flags."`
	To      []string `group:"corrections" placeholder:"ADDRESS" help:"Send to this address in place of those that failed; may be repeated. Only with ids."`
	Gateway *string  `group:"corrections" placeholder:"ID" help:"Send through this gateway; empty: through the account's own relays."`
	As      string   `group:"corrections" placeholder:"ACCOUNT" help:"Send as this account."`
	reachFlags
}

// corrections are what is to be done otherwise than before.
func (d *deadReplayCmd) corrections() api.Corrections {
	return api.Corrections{To: d.To, Gateway: d.Gateway, Account: d.As}
}

// Run queues the chosen dead letters again.
func (d *deadReplayCmd) Run(ctx context.Context, con *console) error {
	switch selected := d.deadFlags != (deadFlags{}); {
	case selected && len(d.IDs) > 0:
		return usage("give ids or flags that select dead letters, not both; --account selects, and to send as another account there is --as")
	case selected && len(d.To) > 0:
		return usage("--to is for dead letters given by their ids: others are not all meant for the same recipients")
	case !selected && len(d.IDs) == 0:
		return usage("which dead letters? give their ids, or select them: --account shop --account-trouble")
	}
	client, err := d.patient(replayTimeout).client()
	if err != nil {
		return err
	}
	if len(d.IDs) > 0 {
		replay := func(ctx context.Context, id string) (api.OutboxMessage, error) {
			return api.ReplayDeadLetter.Do(ctx, client, d.corrections(), id)
		}
		return con.retry(ctx, d.IDs, replay, d.JSON)
	}
	answer, err := d.all(ctx, con, client)
	if err != nil {
		return err
	}
	if d.JSON {
		return con.printJSON(answer)
	}
	con.say("attempting %d now", answer.Replayed)
	if answer.Skipped > 0 {
		con.note("skipped, because they were no longer dead or their content is no longer kept: %d", answer.Skipped)
	}
	return nil
}

// all replays what the flags select, in one request, and shows a person how far it is meanwhile.
func (d *deadReplayCmd) all(ctx context.Context, con *console, client *api.Client) (api.ReplayAnswer, error) {
	done := con.watchReplay(ctx, client, d.deadFlags)
	defer done()
	req := api.ReplayRequest{Account: d.Account, AccountTrouble: d.AccountTrouble, Code: d.Code, Tag: d.Tag}
	if d.Gateway != nil || d.As != "" {
		req.Corrections = new(d.corrections())
	}
	return api.ReplayDeadLetters.Do(ctx, client, req)
}

// watchReplay shows how many dead letters are left of those that may be selected. The function it gives ends that. What it asks is only
// for the eye: where no answer comes, nothing is shown.
func (c *console) watchReplay(ctx context.Context, client *api.Client, f deadFlags) func() {
	if !c.errTTY {
		return func() {}
	}
	left := func() (int, bool) {
		page, err := api.ListDeadLetters.Do(ctx, client, api.OutboxQuery{Account: f.Account, Tag: f.Tag, PageSize: 1})
		return page.Total, err == nil
	}
	total, ok := left()
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		step, seen := c.bar(total, "replaying"), total
		defer step(0)
		for sleep(ctx, time.Second) == nil {
			if now, ok := left(); ok && now < seen {
				step(seen - now)
				seen = now
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
