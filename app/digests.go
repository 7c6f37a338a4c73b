package app

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox/templates"
)

// buildDigests builds the digests. Processes that deliver make them.
func (a *App) buildDigests(context.Context) error {
	c, workers := a.cfg.Digest, 0
	if a.delivers {
		workers = a.cfg.Workers.Digests
	}
	var err error
	a.digests, err = digest.New(digest.Parts{
		Room: accounts.Room(a.accounts, "events"),
		DB:   a.db, Suppressions: a.suppressions, Submit: a.outbox.Intake.Submit,
		Accepted: a.outbox.Reader.Accepted, BlockKey: a.outbox.Intake.BlockKey,
		DeleteDeadLetter: a.outbox.Operations.DeleteDeadLetter,
		Get:              a.outbox.Reader.Get, Mailing: a.outbox.Mailings.Mailing,
		Account: func(ctx context.Context, account string) error {
			_, err := a.accounts.Resolve(ctx, account)
			return err
		},
		HasTemplate: (&knownTemplates{stored: a.stored}).has,
		Resting: func(ctx context.Context) (bool, error) {
			paused, err := a.control.Paused(ctx, queue.Digests)
			return len(paused) > 0, err
		},
	}, digest.Options{
		Workers: workers, Cap: c.Cap, CapCategory: c.CapCategory, Keep: c.Keep, Retention: c.Retention,
		Stagger: c.Stagger, Grace: c.Grace, Gap: c.Gap, Attempts: c.Attempts, Drop: c.Failed == "drop",
		Threads: c.Threads,
		Lease:   a.cfg.Delivery.Lease, Mode: c.Mode, Hour: c.Hour, Lane: api.Lane(c.Lane), FeedURL: c.FeedURL,
		ServiceURL: func() string { return a.settings.Current().ServiceURL }, Logger: a.log, Registry: a.metrics,
	})
	if err != nil {
		return err
	}
	a.life.onFollow("digests", a.digests.Run)
	return nil
}

// knownTemplates remembers for a second whether there is a template. To look for one that does not
// exist reads the whole catalog.
type knownTemplates struct {
	stored *templates.Templates
	mu     sync.Mutex
	until  time.Time
	known  map[[2]string]bool
}

func (k *knownTemplates) has(ctx context.Context, account, template string) (bool, error) {
	name := [2]string{account, template}
	k.mu.Lock()
	if now := time.Now(); now.After(k.until) {
		k.known, k.until = map[[2]string]bool{}, now.Add(time.Second)
	}
	is, ok := k.known[name]
	k.mu.Unlock()
	if ok {
		return is, nil
	}
	_, err := k.stored.Template(ctx, account, template, "")
	is = err == nil || fault.Is(err, fault.Unprocessable) // one with errors exists
	if !is && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[name] = is
	return is, nil
}
