package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/alerts"
)

type overviewRoutes struct{ overview *alerts.Overview }

func (o overviewRoutes) getOverview(ctx context.Context, in *api.OverviewQuery) (api.Overview, error) {
	account, err := ownAccount(ctx, in.Account)
	if err != nil {
		return api.Overview{}, err
	}
	return o.overview.Of(ctx, account, in.Days)
}
