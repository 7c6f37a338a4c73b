package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/erasure"
)

type erasureRoutes struct{ erasures *erasure.Erasures }

type erasureInput struct{ Body api.ErasureRequest }

func (*erasureInput) namesPeople() {}

func (e erasureRoutes) erasePerson(ctx context.Context, in *erasureInput) (api.Erasure, error) {
	return e.erasures.Start(ctx, boundTo(ctx), in.Body)
}

func (e erasureRoutes) exportPerson(ctx context.Context, in *erasureInput) (api.PersonalData, error) {
	return e.erasures.Export(ctx, boundTo(ctx), in.Body)
}

type getErasureInput struct {
	ID string `path:"id" maxLength:"64" doc:"Id of the erasure"`
}

func (e erasureRoutes) getErasure(ctx context.Context, in *getErasureInput) (api.Erasure, error) {
	return e.erasures.Get(ctx, boundTo(ctx), in.ID)
}

// erasureRoutes need the scope of everything, because they reach into everything.
func (s *Server) erasureRoutes() group {
	erasures := erasureRoutes{erasures: s.parts.Erasures}
	return group{"Erasures", "Persons erased everywhere, and what there is of a person.", []route{
		on(api.ErasePerson, own(api.ScopeAPI), changes("erasure", ""), erasures.erasePerson),
		get(api.GetErasure, own(api.ScopeAPI), erasures.getErasure),
		long(on(api.ExportPerson, own(api.ScopeAPI), changes("export", ""), erasures.exportPerson)),
	}}
}
