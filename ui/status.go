package ui

import (
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/queue"
)

// statusView is the page of the instance's health. Without Redis, the data of Redis is left out.
type statusView struct {
	Ready      bool
	Checks     []api.Check
	Alerts     []api.Alert
	Durability *api.Durability
	Queues     []api.QueueStatus
	Counters   *api.Counters
}

// shownQueues are the queues on the page.
var shownQueues = []string{"submit", "bulk", "notify", "documents", "digests"}

func (u *UI) status(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	view := statusView{Ready: true, Checks: u.State.Checks(ctx)}
	for _, check := range view.Checks {
		view.Ready = view.Ready && check.OK
	}
	alerts, err := u.State.Alerts(ctx)
	if err != nil {
		u.log.WarnContext(ctx, "alerts not read", "error", err)
	}
	view.Alerts = alerts
	if d, err := u.State.Durability(ctx); err == nil {
		view.Durability = &d
	}
	if view.Durability != nil {
		for _, name := range shownQueues {
			q, err := u.Outbox.QueueStatus(ctx, name)
			if err == nil && name == queue.Digests {
				err = u.Digests.Count(ctx, &q)
			}
			if err != nil {
				u.log.WarnContext(ctx, "queue not counted", "queue", name, "error", err)
				break
			}
			view.Queues = append(view.Queues, q)
		}
		if c, err := u.Outbox.Counters(ctx, api.CounterQuery{}); err == nil {
			view.Counters = &c
		}
	}
	return u.show(w, r, http.StatusOK, "status", "Status", view)
}
