package app

import (
	"context"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/sendlog"
)

// mailsAtOnce is how many messages of a batch are under way together. As many more are written and wait in
// line for a connection, so that their envelopes leave with the previous messages' content.
const mailsAtOnce = 10

// buildCampaigns builds the campaigns. Processes that deliver send them: as many messages together as they
// have workers for bulk mail.
func (a *App) buildCampaigns(context.Context) error {
	c, workers := a.cfg.Newsletter, 0
	if a.delivers {
		workers = max(1, a.cfg.Workers.Bulk/mailsAtOnce)
	}
	var err error
	a.campaigns, err = newsletter.New(newsletter.Parts{
		DB: a.db, Audience: a.audience,
		Log: sendlog.New(a.db, 0, a.suppressions.VersionKey()), Outbox: a.outbox, Limits: a.limits,
		Suppressions: a.suppressions, Relays: a.router.Relays, DNS: a.resolver(),
		Web: dialing.New(dialing.Options{AllowPrivate: a.cfg.Webhooks.AllowPrivate,
			Setting: "webhooks.allowPrivate",
			Logger:  a.log}).Client(dialing.HTTP{}),
		Resting: func(ctx context.Context) (bool, error) {
			paused, err := a.control.Paused(ctx, queue.Bulk)
			return len(paused) > 0, err
		},
	}, newsletter.Options{
		Workers: workers, Connections: 2 * min(mailsAtOnce, a.cfg.Workers.Bulk), InFlight: c.InFlight,
		Expire:        c.Expire,
		ResendInDoubt: c.InDoubt == "resend", HoldAfter: c.HoldAfter, HoldBounces: c.HoldBounces,
		HoldComplaints: c.HoldComplaints, HoldFaults: c.HoldFaults, Archived: archives(a.cfg),
		ServiceURL: func() string { return a.settings.Current().ServiceURL }, Logger: a.log, Registry: a.metrics,
	})
	if err != nil {
		return err
	}
	a.life.onFollow("campaigns", a.campaigns.Run)
	return nil
}

// inUse returns the function that refuses to delete what campaigns need. They are built later.
func inUse(a *App) records.InUse {
	return func(ctx context.Context, kind, id string) error { return a.campaigns.InUse(ctx, kind, id) }
}
