package main

import (
	"context"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

// barFrom is the number of messages from which a bar shows how far it is.
const barFrom = 50

// outboxRetryCmd attempts delivery now.
type outboxRetryCmd struct {
	reachFlags
	filterFlags
	IDs []string `arg:"" optional:"" name:"id" help:"Queue ids of messages; or select them by flags."`
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

// Run attempts delivery of the chosen messages. One that cannot be tried now does not keep the others from it.
func (o *outboxRetryCmd) Run(ctx context.Context, con *console) error {
	q, err := selection(o.IDs, o.filterFlags)
	if err != nil {
		return err
	}
	client, err := o.client()
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
	out, err := o.retry(ctx, con, client, ids)
	if err != nil {
		return err
	}
	if o.JSON {
		err = con.printJSON(out)
	} else {
		con.say("attempting %d now", out.Retried)
		for _, r := range out.Refused {
			con.note("%s: %s", r.QueueID, r.Error)
		}
	}
	if err == nil && len(out.Refused) > 0 {
		err = errReported
	}
	return err
}

func (o *outboxRetryCmd) retry(ctx context.Context, con *console, client *api.Client, ids []string) (retried, error) {
	var out retried
	step := con.bar(len(ids), "retrying")
	defer step(0)
	for _, id := range ids {
		_, err := client.Retry(ctx, id)
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

// selection is the query of the flags; naming messages and selecting them at once is a mistake, and so is doing neither.
func selection(ids []string, f filterFlags) (api.OutboxQuery, error) {
	switch chosen := f != (filterFlags{}); {
	case chosen && len(ids) > 0:
		return api.OutboxQuery{}, usage("give ids or flags that select messages, not both")
	case !chosen && len(ids) == 0:
		return api.OutboxQuery{}, usage("which messages? give their ids, or select them: --state failed")
	}
	return f.query(time.Now())
}

// outboxCancelCmd takes messages back.
type outboxCancelCmd struct {
	reachFlags
	filterFlags
	Yes bool     `short:"y" help:"Do not ask before messages selected by flags are cancelled."`
	IDs []string `arg:"" optional:"" name:"id" help:"Queue ids of messages; or select them by flags."`
}

// cancelled is what is printed for programs.
type cancelled struct {
	Deleted int      `json:"deleted"`
	Active  int      `json:"active,omitempty"`  // left alone, because they were being sent
	Unknown []string `json:"unknown,omitempty"` // not queued: sent, cancelled, or never there
}

// Run cancels the chosen messages.
func (o *outboxCancelCmd) Run(ctx context.Context, con *console) error {
	q, err := selection(o.IDs, o.filterFlags)
	if err != nil {
		return err
	}
	client, err := o.client()
	if err != nil {
		return err
	}
	out, err := o.cancel(ctx, con, client, q)
	if err != nil {
		return err
	}
	if o.JSON {
		err = con.printJSON(out)
	} else {
		con.cancelled(out)
	}
	if err == nil && len(o.IDs) > 0 && out.Deleted < len(o.IDs) {
		err = errReported
	}
	return err
}

func (o *outboxCancelCmd) cancel(ctx context.Context, con *console, client *api.Client, q api.OutboxQuery) (cancelled, error) {
	var out cancelled
	if len(o.IDs) == 0 {
		if err := o.agreed(ctx, con, client, q); err != nil {
			return out, err
		}
		answer, err := client.CancelAll(ctx, q)
		out.Deleted, out.Active = answer.Deleted, answer.Active
		return out, err
	}
	for _, id := range o.IDs {
		answer, err := client.Cancel(ctx, id)
		switch {
		case err != nil:
			return out, err
		case answer.Deleted:
			out.Deleted++
		case answer.Code == "MessageActive":
			out.Active++
		default:
			out.Unknown = append(out.Unknown, id)
		}
	}
	return out, nil
}

// agreed makes sure that somebody wants all these messages cancelled.
func (o *outboxCancelCmd) agreed(ctx context.Context, con *console, client *api.Client, q api.OutboxQuery) error {
	if o.Yes {
		return nil
	}
	q.PageSize = 1
	page, err := client.Outbox(ctx, q)
	if err != nil {
		return err
	}
	if !con.confirm("Cancel %d messages?", page.Total) {
		return fmt.Errorf("nothing was cancelled: %d messages are selected, say --yes to cancel them", page.Total)
	}
	return nil
}

func (c *console) cancelled(out cancelled) {
	c.say("cancelled %d", out.Deleted)
	if out.Active > 0 {
		c.note("left alone, because it was being sent at this moment: %d", out.Active)
	}
	for _, id := range out.Unknown {
		c.note("%s is not queued", id)
	}
}
