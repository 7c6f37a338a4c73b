package main

import (
	"context"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

// barFrom is the number of messages from which a bar shows how far it is.
const barFrom = 50

// chosenFlags choose messages, by their ids or by what they have in common.
type chosenFlags struct {
	reachFlags
	filterFlags
	IDs []string `arg:"" optional:"" name:"id" help:"Queue ids of messages; or select them by flags."`
}

// open makes the query of the flags, where no messages are named, and the client to ask with. Naming messages and selecting them at once is
// a mistake, and so is doing neither.
func (f chosenFlags) open() (q api.OutboxQuery, client *api.Client, err error) {
	switch selected := f.filterFlags != (filterFlags{}); {
	case selected && len(f.IDs) > 0:
		return q, nil, usage("give ids or flags that select messages, not both")
	case !selected && len(f.IDs) == 0:
		return q, nil, usage("which messages? give their ids, or select them: --state failed")
	}
	if q, err = f.query(time.Now()); err != nil {
		return q, nil, err
	}
	client, err = f.client()
	return q, client, err
}

// outboxRetryCmd attempts delivery now.
type outboxRetryCmd struct{ chosenFlags }

// Run attempts delivery of the chosen messages.
func (o *outboxRetryCmd) Run(ctx context.Context, con *console) error {
	q, client, err := o.open()
	if err != nil {
		return err
	}
	ids := o.IDs
	if len(ids) == 0 {
		list, err := fetch(ctx, client, q, 0)
		if err != nil {
			return err
		}
		for _, m := range list.Messages {
			ids = append(ids, m.QueueID)
		}
	}
	retry := func(ctx context.Context, id string) (api.OutboxMessage, error) {
		return api.RetryMessage.Do(ctx, client, id)
	}
	return con.retry(ctx, ids, retry, o.JSON)
}

// retried is what is printed for programs.
type retried struct {
	Retried int           `json:"retried"`
	Refused []retryFailed `json:"refused,omitempty"`
}

type retryFailed struct {
	QueueID string `json:"queueId"`
	Error   string `json:"error"`
}

// retry tries messages one by one and says what came of it. One that can't be tried now does not keep the others from it.
func (c *console) retry(ctx context.Context, ids []string, try func(context.Context, string) (api.OutboxMessage, error), asJSON bool) error {
	out, err := c.retryEach(ctx, ids, try)
	if err != nil {
		return err
	}
	if asJSON {
		err = c.printJSON(out)
	} else {
		c.say("attempting %d now", out.Retried)
		for _, r := range out.Refused {
			c.note("%s: %s", r.QueueID, r.Error)
		}
	}
	if err == nil && len(out.Refused) > 0 {
		err = errReported
	}
	return err
}

func (c *console) retryEach(ctx context.Context, ids []string, try func(context.Context, string) (api.OutboxMessage, error)) (retried, error) {
	var out retried
	step := c.bar(len(ids), "retrying")
	defer step(0)
	for _, id := range ids {
		_, err := try(ctx, id)
		switch refused := refusal(err); {
		case refused != "":
			out.Refused = append(out.Refused, retryFailed{id, refused})
		case err != nil:
			return out, err
		default:
			out.Retried++
		}
		step(1)
	}
	return out, nil
}

// bar shows a person how far a long thing is. The function it gives takes the steps made; 0 ends it.
func (c *console) bar(total int, what string) func(int) {
	if !c.errTTY || total < barFrom {
		return func(int) {}
	}
	b := progressbar.NewOptions(total, progressbar.OptionSetWriter(c.err), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
	return func(n int) {
		if n == 0 {
			_ = b.Finish()
			return
		}
		_ = b.Add(n)
	}
}
