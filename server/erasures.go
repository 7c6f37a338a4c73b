package server

import "github.com/postroom/postroom/api"

type erasureInput struct{ body[api.ErasureRequest] }

func (*erasureInput) namesPeople() {}

type getErasureInput struct {
	ID string `path:"id" maxLength:"64" doc:"ID of the erasure"`
}

func (in getErasureInput) id() string { return in.ID }

// erasureRoutes need the scope of everything, because they reach into everything.
func (s *Server) erasureRoutes() group {
	erasures := s.parts.Erasures
	return group{"Erasures", "Erase or export all data about a person.", []route{
		on(api.ErasePerson, own(api.ScopeAPI), changes("erasure", ""), byBody[erasureInput](erasures.Start)),
		get(api.GetErasure, own(api.ScopeAPI), byID[getErasureInput](erasures.Get)),
		long(on(api.ExportPerson, own(api.ScopeAPI), changes("export", ""),
			byBody[erasureInput](erasures.Export))),
	}}
}
