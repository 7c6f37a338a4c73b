package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/alerts"
)

type overviewInput struct {
	Account string `query:"account" maxLength:"256" doc:"Only this account; all, or that of the token, when absent"`
	Days    int    `query:"days" enum:"0,1,7,30" doc:"The period; 1 when absent or 0"`
}

type overviewRoutes struct{ overview *alerts.Overview }

func (o overviewRoutes) getOverview(ctx context.Context, in *overviewInput) (api.Overview, error) {
	account, err := ownAccount(ctx, in.Account)
	if err != nil {
		return api.Overview{}, err
	}
	return o.overview.Of(ctx, account, in.Days)
}
