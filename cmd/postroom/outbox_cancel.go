package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/api"
)

// outboxCancelCmd takes messages back.
type outboxCancelCmd struct {
	chosenFlags
	Yes bool `short:"y" help:"Do not ask before messages selected by flags are cancelled."`
}

// cancelled is what is printed for programs.
type cancelled struct {
	Deleted int      `json:"deleted"`
	Active  int      `json:"active,omitempty"`  // left alone, because they were being sent
	Unknown []string `json:"unknown,omitempty"` // not queued: sent, cancelled, or never there
}

// Run cancels the chosen messages.
func (o *outboxCancelCmd) Run(ctx context.Context, con *console) error {
	q, client, err := o.open()
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
		answer, err := api.CancelMessages.Do(ctx, client, q)
		out.Deleted, out.Active = answer.Deleted, answer.Active
		return out, err
	}
	for _, id := range o.IDs {
		answer, err := api.CancelMessage.Do(ctx, client, id)
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
	page, err := api.ListOutbox.Do(ctx, client, q)
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
