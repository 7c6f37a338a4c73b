package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/watch"
)

// buildWatch builds the alerts to the team. Every process watches. All share the alert state.
func (a *App) buildWatch(context.Context) error {
	c := a.cfg
	w, err := watch.New(watch.Parts{DB: a.db, Queues: a.control, Mail: a.outbox, Accounts: a.accounts,
		Relays: a.router, Ring: a.ring, Audit: a.audit, Held: a.campaigns.Held, Late: func(ctx context.Context) (
			time.Duration, error) {
			state, err := a.digests.State(ctx)
			return state.Late, err
		}, Failing: a.webhooks.Failing},
		watch.Options{
			Every: c.Alerts.Every, Paused: c.Alerts.Paused, DeadLetters: c.Alerts.DeadLetters,
			RelayAway: c.Alerts.RelayAway, DigestsLate: c.Alerts.DigestsLate,
			WebhookFailing: c.Alerts.WebhookFailing,
			FailedShare:    c.Alerts.FailedShare, BounceRate: c.Alerts.BounceRate,
			ComplaintRate: c.Alerts.ComplaintRate,
			Queues: []watch.Queue{
				watched(queue.Submit, a.db, c.Alerts.QueueAge), watched(queue.Bulk, a.db, c.Alerts.BulkAge),
				{Name: queue.Notify, Parts: []string{queue.Notify}, Age: c.Alerts.QueueAge},
				{Name: queue.Digests, Parts: []string{queue.Digests}}, // digestsLate is about its age
			},
			MaxLive: c.Outbox.MaxLive, MemoryShare: c.Redis.MaxMemoryShare, Logger: a.log, Registry: a.metrics,
		})
	if err != nil {
		return err
	}
	a.watch = w
	a.life.onRun("alerts", w.Run)
	return nil
}

// watched returns a lane's queues. Due work there may wait up to age.
func watched(lane string, db *redisdb.DB, age time.Duration) watch.Queue {
	return watch.Queue{Name: lane, Parts: slices.Sorted(maps.Keys(spread(lane, db))), Age: age}
}
