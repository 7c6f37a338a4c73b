package app

import (
	"context"

	"github.com/postroom/postroom/documents"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/ui"
	"github.com/postroom/postroom/webhooks"
)

// buildPages mounts the operator's pages beside the API.
func (a *App) buildPages(ctx context.Context) error {
	if a.server == nil {
		return nil
	}
	// The dashboard shows all queues from the start. Where Redis is away at this moment, the workers make them known later.
	if err := a.control.Register(ctx, a.queueNames()...); err != nil {
		a.log.Warn("queues not registered yet", "error", err)
	}
	board, err := queue.NewDashboard(a.db.Client(), queue.DashboardOptions{
		Path: ui.DashboardPath, Queues: a.queueNames(), Payload: payload, Operator: operator{a.outbox}, Logger: a.log,
	})
	if err != nil {
		return err
	}
	pages, err := ui.New(ui.Parts{
		Outbox: a.outbox, Queues: a.outbox, Webhooks: a.webhooks, Suppressions: a.suppressions, Accounts: a.accounts, Gateways: a.gateways, Templates: a.stored, Documents: a.documents, Access: a.access,
		State: a.state(), Dashboard: board,
	}, ui.Options{Version: a.version, Logger: a.log})
	if err != nil {
		return err
	}
	pages.Mount(a.server.Echo())
	return nil
}

// payload makes the payloads of tasks readable in the dashboard. All are ids; what is none of ours shows its type only. Tasks of messages
// have no payload: the task's own id names the message.
func payload(taskType string, payload []byte) string {
	switch taskType {
	case outbox.TaskDeliver:
		return "the message that the task's id names"
	case webhooks.TaskType, documents.TaskType:
		return string(payload)
	}
	return "a task of type " + taskType
}
