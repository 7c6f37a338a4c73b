package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/alerts"
)

// buildWatch builds the alerts to the team, and the overview, which lists them with what else is wrong. Every
// process watches. All share the alert state.
func (a *App) buildWatch(context.Context) error {
	c := a.cfg
	w, err := alerts.New(alerts.Parts{DB: a.db, Durability: a.db.Durability, MemoryShare: a.db.MemoryShare,
		Evicted: a.db.Evicted, Counts: a.control.Counts, Counters: a.outbox.Queues.Counters,
		Rates:    a.outbox.Counts.Rates,
		Troubled: a.accounts.Troubled, Away: a.router.Away, Refused: a.ring.Refused, Intact: a.audit.Intact,
		Held: a.campaigns.Held, Late: func(ctx context.Context) (time.Duration, error) {
			state, err := a.digests.State(ctx)
			return state.Late, err
		}, Failing: a.webhooks.Failing},
		alerts.Options{
			Every: c.Alerts.Every, Paused: c.Alerts.Paused, DeadLetters: c.Alerts.DeadLetters,
			RelayAway: c.Alerts.RelayAway, DigestsLate: c.Alerts.DigestsLate,
			WebhookFailing: c.Alerts.WebhookFailing,
			FailedShare:    c.Alerts.FailedShare, BounceRate: c.Alerts.BounceRate,
			ComplaintRate: c.Alerts.ComplaintRate,
			Queues: []alerts.Queue{
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
	a.overview, err = alerts.NewOverview(alerts.OverviewParts{Rates: a.outbox.Counts.Rates,
		Messages: a.outbox.Reader.Messages,
		List:     a.outbox.Reader.List, QueueStatus: a.outbox.Queues.QueueStatus, Account: a.accounts.Get,
		Troubled: a.accounts.Troubled, Gateways: a.gateways.List, Endpoints: a.webhooks.Endpoints,
		Endpoint: a.webhooks.Endpoint, EndpointStats: a.webhooks.Stats, Alerts: w.Standing},
		alerts.OverviewOptions{Late: c.Alerts.QueueAge})
	return err
}

// watched returns a lane's queues. Due work there may wait up to age.
func watched(lane string, db *redisdb.DB, age time.Duration) alerts.Queue {
	return alerts.Queue{Name: lane, Parts: slices.Sorted(maps.Keys(spread(lane, db))), Age: age}
}
