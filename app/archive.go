package app

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/webhooks/archive"
)

// archives reports whether there is an archive.
func archives(c *config.Config) bool { return c.Archive.Dir != "" || c.Archive.URL != "" }

// buildArchive builds the permanent archive of events, in the processes that deliver.
func (a *App) buildArchive(ctx context.Context) error {
	c := a.cfg.Archive
	if !archives(a.cfg) {
		if err := archive.Leave(ctx, a.db); err != nil {
			a.log.Warn("the event stream is still kept for an archive that there is none of", "error", err)
		}
		return nil
	}
	if !a.delivers {
		return nil
	}
	dir := c.Dir
	dir = cmp.Or(dir, filepath.Join(a.cfg.Data, "archive"))
	events, err := archive.New(a.db, archive.Options{Dir: dir, URL: c.URL.Reveal(), MaxSpool: int64(c.MaxSpool),
		Logger: a.log, Registry: a.metrics})
	if err != nil {
		return err
	}
	a.life.onFollow("archive", events.Run)
	return nil
}
