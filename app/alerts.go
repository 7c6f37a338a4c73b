package app

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/watch"
)

// buildWatch makes what alerts the team. Every process watches: what one sees, all have seen.
func (a *App) buildWatch(context.Context) error {
	c := a.cfg
	w, err := watch.New(watch.Parts{DB: a.db, Redis: a.db, Queues: a.control, Mail: a.outbox, Accounts: a.accounts}, watch.Options{
		Every: c.Alerts.Every, Paused: c.Alerts.Paused, DeadLetters: c.Alerts.DeadLetters, FailedShare: c.Alerts.FailedShare,
		Queues: []watch.Queue{
			a.watched(queue.Submit, c.Alerts.QueueAge), a.watched(queue.Bulk, c.Alerts.BulkAge),
			{Name: queue.Notify, Parts: []string{queue.Notify}, Age: c.Alerts.QueueAge},
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

// watched is a lane, whose work may wait for so long.
func (a *App) watched(lane string, age time.Duration) watch.Queue {
	return watch.Queue{Name: lane, Parts: slices.Sorted(maps.Keys(a.lanes(lane))), Age: age}
}
