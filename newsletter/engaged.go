package newsletter

import (
	"context"

	"github.com/postroom/postroom/newsletter/segment"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// Runs returns how often a campaign of an account was sent. Unknown, or of another account: NotFound.
func (c *Campaigns) Runs(ctx context.Context, account, id string) (int, error) {
	one, err := c.find(ctx, account, id)
	if err != nil {
		return 0, err
	}
	return len(one.Runs), nil
}

// Engaged returns what the subscribers of a chunk did with the mail of all runs of a campaign together, also
// of one that is under way. Its errors are those of Runs.
func (c *Campaigns) Engaged(ctx context.Context, account, id string, chunk int) (segment.Engaged, error) {
	one, err := c.find(ctx, account, id)
	if err != nil {
		return segment.Engaged{}, err
	}
	var runs []sendlog.Run
	for n, run := range one.Runs {
		if chunk < sendlog.Chunks(run.End) {
			runs = append(runs, sendlog.Run{Campaign: one.Number, Number: n + 1})
		}
	}
	e, err := c.Log.Engaged(ctx, runs, chunk)
	return segment.Engaged{Got: e.Got, Opened: e.Opened, Clicked: e.Clicked}, err
}
