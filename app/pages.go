package app

import (
	"context"
	"errors"

	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/server"
	"github.com/postroom/postroom/ui"
	"github.com/postroom/postroom/webhooks"
)

// buildPages mounts the operator's pages next to the API.
func (a *App) buildPages(ctx context.Context) error {
	if a.server == nil {
		return nil
	}
	// The dashboard shows all queues from the start. If Redis is unavailable now, the workers register them
	// later.
	if err := a.control.Register(ctx, queueNames(a.db)...); err != nil {
		a.log.Warn("queues not registered yet", "error", err)
	}
	board, err := queue.NewDashboard(a.db.Client(), queue.DashboardOptions{
		Path: ui.DashboardPath, Queues: queueNames(a.db), Payload: payload, Before: a.beforeAction,
		SetPaused: a.outbox.Queues.SetPaused, Logger: a.log,
	})
	if err != nil {
		return err
	}
	viewer, err := queue.NewDashboard(a.db.Client(), queue.DashboardOptions{
		Path: ui.DashboardPath, Queues: queueNames(a.db), Payload: payload, ReadOnly: true, Logger: a.log,
	})
	if err != nil {
		return err
	}
	signOn, err := a.signOn()
	if err != nil {
		return err
	}
	parts := a.serverParts()
	pages, err := ui.New(ui.Parts{
		Parts: parts, Look: server.Look(parts), OpenAPI: a.server.OpenAPI, Dashboard: board, Viewer: viewer,
		AskAgain: a.optIn.Again, AskSender: a.senders.Ask,
	}, ui.Options{Version: a.version, Logger: a.log, SignOn: signOn, Demo: a.demo,
		Configuration: a.configured})
	if err != nil {
		return err
	}
	pages.Mount(a.server.Echo())
	return nil
}

// beforeAction applies to messages and deliveries what an operator does to their tasks in the dashboard.
func (a *App) beforeAction(ctx context.Context, action queue.Action, name string, _ queue.State,
	ids []string) []error {
	do := a.taskAction(action, name)
	if do == nil {
		return nil
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		errs[i] = do(ctx, id)
	}
	return errs
}

// taskAction returns what an action on a queue's task means for the task's record, or nil.
func (a *App) taskAction(action queue.Action, name string) func(ctx context.Context, id string) error {
	switch {
	case a.outbox.Queues.Owns(name):
		return map[queue.Action]func(context.Context, string) error{
			queue.ActionDelete: a.outbox.Operations.TaskDeleted, queue.ActionRun: a.outbox.Operations.TaskRun,
			queue.ActionArchive: a.outbox.Operations.TaskArchived,
		}[action]
	case name == queue.Notify && action == queue.ActionDelete:
		return func(ctx context.Context, id string) error {
			payload, err := a.control.Payload(ctx, name, id)
			if errors.Is(err, queue.ErrNoTask) {
				return nil
			}
			if err != nil {
				return err
			}
			return a.webhooks.TaskDeleted(ctx, payload)
		}
	}
	return nil
}

// payload makes task payloads readable in the dashboard. All payloads are ids. A payload of an unknown type
// shows its type only. Tasks of messages have no payload: the task id is the id of the message.
func payload(taskType string, payload []byte) string {
	switch taskType {
	case outbox.TaskDeliver:
		return "the message that the task's id names"
	case webhooks.TaskType, webhooks.ReplayTaskType, search.TaskType:
		return string(payload)
	}
	return "a task of type " + taskType
}
