package app

import (
	"context"

	"github.com/postroom/postroom/server/alerts"
)

// buildOverview joins what operators have to know now to package alerts.
func (a *App) buildOverview(context.Context) error {
	var err error
	a.overview, err = alerts.NewOverview(alerts.OverviewParts{Rates: a.outbox.Rates, Messages: a.outbox.Messages,
		List: a.outbox.List, QueueStatus: a.outbox.QueueStatus, Account: a.accounts.Get,
		Troubled: a.accounts.Troubled, Gateways: a.gateways.List, Endpoints: a.webhooks.Endpoints,
		Endpoint: a.webhooks.Endpoint, EndpointStats: a.webhooks.Stats, Alerts: a.watch.Standing},
		alerts.OverviewOptions{})
	return err
}
