package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// documentsCmd is about the search index.
type documentsCmd struct {
	Status  documentsStatusCmd  `cmd:"" default:"withargs" help:"Show how the search index is doing (the default)."`
	Rebuild documentsRebuildCmd `cmd:"" help:"Make the search index anew, beside the one in use, from what that has and the email log has."`
}

// documentsStatusCmd shows the search index.
type documentsStatusCmd struct{ reachFlags }

// Run shows the search index.
func (d *documentsStatusCmd) Run(ctx context.Context, con *console) error {
	client, err := d.client()
	if err != nil {
		return err
	}
	state, err := api.GetDocuments.Do(ctx, client)
	if err != nil {
		return err
	}
	if d.JSON {
		return con.printJSON(state)
	}
	con.documents(state, time.Now())
	return nil
}

func (c *console) documents(s api.DocumentsState, now time.Time) {
	c.line("Store", s.Store)
	if s.Store == "none" {
		return
	}
	c.line("Messages", fmt.Sprint(s.Documents))
	if s.Bytes > 0 {
		c.line("Size", fmt.Sprintf("%.1f MB", float64(s.Bytes)/1e6))
	}
	c.line("Kept by", s.Keeper)
	waiting := fmt.Sprintf("%d jobs", s.Waiting)
	if s.Lag > 1 {
		waiting += ", the oldest for " + span(time.Duration(s.Lag*float64(time.Second)))
	}
	if s.Paused {
		waiting += "; the queue is paused"
	}
	c.line("Waiting", waiting)
	if s.Behind != nil {
		c.line("Behind", behindSince(*s.Behind, now))
	}
	if s.Rebuild != nil {
		c.line("Rebuild", rebuildLine(*s.Rebuild, now))
	}
}

// behindSince says since when changes are missing; an index that was just begun misses all.
func behindSince(since, now time.Time) string {
	if since.Year() < 2000 {
		return "it is being filled from the email log"
	}
	return "changes since " + moment(since, now) + " are missing; they are taken from the email log by themselves"
}

func rebuildLine(b api.DocumentRebuild, now time.Time) string {
	switch {
	case b.Status == "running":
		return fmt.Sprintf("runs: %d of %d messages", b.Done, b.Total)
	case b.Status == "failed":
		return "failed: " + b.Error
	case b.Ended != nil:
		return fmt.Sprintf("done %s, %d messages", moment(*b.Ended, now), b.Done)
	}
	return "wanted " + moment(b.Wanted, now)
}

// documentsRebuildCmd rebuilds the search index.
type documentsRebuildCmd struct {
	reachFlags
	NoWait bool `help:"Don't wait for it; postroom documents shows how far it is."`
}

// rebuildPoll is how often a rebuild is looked at.
const rebuildPoll = 300 * time.Millisecond

// Run asks for a rebuild and waits for it.
func (d *documentsRebuildCmd) Run(ctx context.Context, con *console) error {
	client, err := d.client()
	if err != nil {
		return err
	}
	asked, err := api.RebuildDocuments.Do(ctx, client)
	if err != nil {
		return err
	}
	build := &asked
	if !d.NoWait {
		if build, err = con.awaitRebuild(ctx, client); err != nil {
			return err
		}
	}
	if d.JSON {
		err = con.printJSON(build)
	} else {
		con.line("Rebuild", rebuildLine(*build, time.Now()))
	}
	if build.Status == "failed" {
		return errReported
	}
	return err
}

// awaitRebuild shows how far the rebuild is until it is over.
func (c *console) awaitRebuild(ctx context.Context, client *api.Client) (*api.DocumentRebuild, error) {
	var step func(int)
	shown := 0
	defer func() {
		if step != nil {
			step(0)
		}
	}()
	for {
		state, err := api.GetDocuments.Do(ctx, client)
		if err != nil {
			return nil, err
		}
		b := state.Rebuild
		if b == nil {
			return nil, fmt.Errorf("the rebuild was forgotten")
		}
		if b.Status == "done" || b.Status == "failed" {
			return b, nil
		}
		if step == nil && b.Total > 0 {
			step = c.bar(b.Total, "rebuilding")
		}
		if step != nil && b.Done > shown {
			step(b.Done - shown)
			shown = b.Done
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(rebuildPoll):
		}
	}
}
