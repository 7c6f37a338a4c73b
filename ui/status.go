package ui

import (
	"net/http"

	"github.com/postroom/postroom/api"
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
		if view.Queues, err = u.countQueues(ctx); err != nil {
			u.log.WarnContext(ctx, "queues not counted", "error", err)
		}
		if c, err := u.Outbox.Queues.Counters(ctx, api.CounterQuery{}); err == nil {
			view.Counters = &c
		}
	}
	return u.show(w, r, http.StatusOK, "status", "Status", view)
}
