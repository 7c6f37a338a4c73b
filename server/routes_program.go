package server

import (
	"github.com/postroom/postroom/api"
)

// programRoutes are about suppressions, tokens, people and webhooks.
func (s *Server) programRoutes() []group {
	p, admin := s.parts, whole(api.ScopeAdmin)
	suppressions := suppressionRoutes{store: p.Suppressions}
	tokens := tokenRoutes{tokens: p.Access, box: p.Outbox}
	people := peopleRoutes{people: p.People, sessions: p.Access, settings: p.Settings}
	log := auditRoutes{log: p.Audit}
	return []group{
		{"Suppressions", "Manage the addresses that Postroom doesn't send to.", []route{
			get(api.ListSuppressions, own(api.ScopeAPI), byQuery(p.Suppressions.Query)),
			on(api.AddSuppressions, own(api.ScopeAPI), changes("suppression", ""), suppressions.addSuppressions),
			on(api.RemoveSuppression, own(api.ScopeAPI), changes("suppression", ""), byQuery(p.Suppressions.Delete)),
			get(api.CheckSuppression, own(api.ScopeAPI), suppressions.checkSuppression),
			grows(upload(api.ImportSuppressions, own(api.ScopeAPI), changes("suppression", ""),
				suppressions.importSuppressions)),
			get(api.GetSuppressionImport, own(api.ScopeAPI), byID[importInput](p.Suppressions.Progress)),
			long(get(api.ExportSuppressions, own(api.ScopeAPI), suppressions.exportSuppressions)),
			get(api.ListBlocklists, own(api.ScopeAPI), suppressions.listBlocklists),
			get(api.GetBlocklist, own(api.ScopeAPI), suppressions.getBlocklist),
			on(api.AddToBlocklist, own(api.ScopeAPI), changes("suppression", "listId"),
				byIDAndBody[addToBlocklistInput](p.Suppressions.Block)),
			on(api.RemoveFromBlocklist, own(api.ScopeAPI), changes("suppression", "listId"),
				suppressions.removeFromBlocklist),
		}},
		{"Tokens", "Manage access tokens for programs.", []route{
			on(api.CreateToken, admin, changes("token", ""), tokens.createToken),
			get(api.ListTokens, admin, tokens.listTokens),
			get(api.GetToken, admin, byID[tokenInput](unbound(p.Access.Get))),
			on(api.RotateToken, admin, changes("token", "id"), tokens.rotateToken),
			get(api.GetTokenUsage, admin, tokens.getTokenUsage),
			on(api.DeleteToken, admin, changes("token", "id"), deletes[tokenInput](unbound(p.Access.Delete))),
		}},
		{"People", "Manage users who sign in to the dashboard, and their sessions.", []route{
			on(api.CreatePerson, admin, changes("person", ""), people.createPerson),
			get(api.ListPeople, admin, byPage(p.People.List)),
			get(api.GetPerson, admin, byID[personInput](unbound(p.People.Get))),
			on(api.UpdatePerson, admin, changes("person", "person"), people.updatePerson),
			on(api.DeletePerson, admin, changes("person", "person"), deletes[personInput](unbound(p.People.Delete))),
			on(api.LinkPerson, admin, changes("person", "person"), byID[personInput](unbound(people.link))),
			on(api.SignOutPerson, admin, changes("person", "person"), people.signOutPerson),
			on(api.ResetTOTP, admin, changes("person", "person"), people.resetTOTP),
			get(api.ListSessions, selfOr(api.ScopeAdmin), people.listSessions),
			on(api.EndSession, selfOr(api.ScopeAdmin), changes("session", "id"), people.endSession),
		}},
		{"Me", "Manage the signed-in user. These operations refuse tokens.", []route{
			get(api.GetMe, self(), people.getMe),
			on(api.ChangePassword, self(), changes("person", ""), people.changePassword),
			on(api.EnrolTOTP, self(), changes("person", ""), people.enrolTOTP),
			on(api.ConfirmTOTP, self(), changes("person", ""), people.confirmTOTP),
			on(api.RemoveTOTP, self(), changes("person", ""), people.removeTOTP),
			on(api.ChooseAccount, self(), changes("person", ""), people.chooseAccount),
		}},
		{"Audit log", "Show changes and the users and tokens that made them.", []route{
			get(api.ListAudit, admin, byQuery(unbound(p.Audit.List))),
			long(get(api.ExportAudit, admin, log.exportAudit)),
			long(get(api.VerifyAudit, admin, log.verifyAudit)),
		}},
		s.webhookRoutes(),
	}
}

func (s *Server) webhookRoutes() group {
	all, scope := s.parts.Webhooks, whole(api.ScopeAPI)
	webhooks := webhookRoutes{webhooks: all}
	endpoint := changes("endpoint", "id")
	return group{"Webhooks", "Manage webhook endpoints and their deliveries.", []route{
		grows(on(api.CreateEndpoint, scope, changes("endpoint", ""),
			byBody[body[api.EndpointRequest]](unbound(all.Create)))),
		get(api.ListEndpoints, scope, byPage(all.Endpoints)),
		get(api.GetEndpoint, scope, byID[endpointInput](unbound(all.Endpoint))),
		on(api.UpdateEndpoint, scope, endpoint,
			byIDAndBody[endpointChange[api.EndpointRequest]](unboundChange(all.Update))),
		on(api.PatchEndpoint, scope, endpoint,
			byIDAndBody[endpointChange[api.EndpointPatch]](unboundChange(all.Patch))),
		on(api.RotateEndpointSecret, scope, endpoint, byIDAndBody[rotateSecretInput](unboundChange(all.Rotate))),
		on(api.WakeEndpoint, scope, endpoint, byID[endpointInput](unbound(all.Wake))),
		get(api.GetEndpointStats, scope, webhooks.endpointStats),
		on(api.DeleteEndpoint, scope, endpoint, deletes[endpointInput](unbound(all.Delete))),
		on(api.TestEndpoint, scope, endpoint, webhooks.testEndpoint),
		grows(on(api.ReplayEndpoint, scope, endpoint, webhooks.replayEndpoint)),
		get(api.GetEndpointReplay, scope, byID[endpointInput](unbound(all.ReplayState))),
		get(api.ListDeliveries, scope, webhooks.listDeliveries),
		get(api.GetDelivery, scope, webhooks.getDelivery),
		on(api.Redeliver, scope, endpoint, webhooks.redeliver),
		get(api.ListWebhookRoutes, scope, webhooks.listRoutes),
		get(api.GetWebhookRoute, scope, webhooks.getRoute),
	}}
}
