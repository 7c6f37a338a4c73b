package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

func documentVerbs() []verb {
	return []verb{
		{name: "status", help: "Show the state of the search index (the default).", run: &documentsStatusCmd{}},
		{name: "rebuild", help: "Rebuild the search index from the old index and the email log. The old index stays in use.",
			run: &documentsRebuildCmd{}},
	}
}

type documentsStatusCmd struct{}

func (d *documentsStatusCmd) Run(s *session) error {
	state, err := api.GetDocuments.Do(s, s.client)
	return s.answer(state, err, func() { s.documents(state, time.Now()) })
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
	c.line("Indexer", s.Indexer)
	waiting := plural(s.Waiting, "job")
	if s.Lag > 1 {
		waiting += ", the oldest for " + seconds(s.Lag)
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

// behindSince returns since when changes are missing. A new index misses all.
func behindSince(since, now time.Time) string {
	if since.Year() < 2000 {
		return "it is being filled from the email log"
	}
	return "changes since " + moment(since, now) +
		" are missing; Postroom adds them from the email log automatically"
}

func rebuildLine(b api.DocumentRebuild, now time.Time) string {
	switch {
	case b.Status == "running":
		return fmt.Sprintf("runs: %d of %s", b.Done, plural(b.Total, "message"))
	case b.Status == "failed":
		return "failed: " + b.Error
	case b.Ended != nil:
		return fmt.Sprintf("done %s, %s", moment(*b.Ended, now), plural(b.Done, "message"))
	}
	return "wanted " + moment(b.Wanted, now)
}

// documentsRebuildCmd rebuilds the search index.
type documentsRebuildCmd struct {
	NoWait bool `help:"Don't wait for it; postroom documents shows the progress."`
}

const rebuildPoll = 300 * time.Millisecond

func (d *documentsRebuildCmd) Run(s *session) error {
	asked, err := api.RebuildDocuments.Do(s, s.client)
	build := &asked
	if err == nil && !d.NoWait {
		build, err = s.awaitRebuild()
	}
	if err != nil {
		return err
	}
	return s.done(build, build.Status == "failed", func() { s.line("Rebuild", rebuildLine(*build, time.Now())) })
}

// awaitRebuild shows the progress of the rebuild until it is over.
func (s *session) awaitRebuild() (*api.DocumentRebuild, error) {
	var bar *progressbar.ProgressBar
	for {
		state, err := api.GetDocuments.Do(s, s.client)
		if err != nil {
			return nil, err
		}
		b := state.Rebuild
		if b == nil {
			return nil, fmt.Errorf("the rebuild was forgotten")
		}
		if bar == nil && b.Total > 0 {
			bar = s.bar(b.Total, "rebuilding")
		}
		if b.Status == "done" || b.Status == "failed" {
			if bar != nil {
				_ = bar.Clear()
			}
			return b, nil
		}
		if bar != nil {
			_ = bar.Set(b.Done)
		}
		if err := sleep(s, rebuildPoll); err != nil {
			return nil, err
		}
	}
}
