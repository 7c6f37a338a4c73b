package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/why"
)

type whyInput struct {
	Address string `path:"address" maxLength:"254" doc:"The address"`
	api.WhyQuery
}

type whyRoutes struct{ why *why.Why }

func (y whyRoutes) whyTo(ctx context.Context, in *whyInput) (api.Why, error) {
	return y.why.To(ctx, boundTo(ctx), in.Address, in.WhyQuery)
}

// whyRoutes need the scope of everything, because the answer joins everything.
func (s *Server) whyRoutes() group {
	routes := whyRoutes{why: s.parts.Why}
	return group{"Why", "Why mail did not arrive.", []route{
		get(api.WhyTo, own(api.ScopeAPI), routes.whyTo),
	}}
}
