package server

import (
	"github.com/postroom/postroom/api"
)

// programRoutes are about suppressions, tokens and webhooks.
func (s *Server) programRoutes() []group {
	p := s.parts
	suppressions := suppressionRoutes{store: p.Suppressions}
	tokens := tokenRoutes{tokens: p.Access, box: p.Outbox}
	people := peopleRoutes{people: p.People, sessions: p.Access, settings: p.Settings}
	log := auditRoutes{log: p.Audit}
	webhooks := webhookRoutes{webhooks: p.Webhooks}
	return []group{
		{"Suppressions", "The addresses that are not mailed, and why.", []route{
			get(api.ListSuppressions, own(api.ScopeAPI), suppressions.listSuppressions),
			on(api.AddSuppressions, own(api.ScopeAPI), changes("suppression", ""), suppressions.addSuppressions),
			on(api.RemoveSuppression, own(api.ScopeAPI), changes("suppression", ""), suppressions.removeSuppression),
			get(api.CheckSuppression, own(api.ScopeAPI), suppressions.checkSuppression),
			grows(upload(api.ImportSuppressions, own(api.ScopeAPI), changes("suppression", ""),
				suppressions.importSuppressions)),
			get(api.GetSuppressionImport, own(api.ScopeAPI), suppressions.importProgress),
			long(get(api.ExportSuppressions, own(api.ScopeAPI), suppressions.exportSuppressions)),
			get(api.ListBlocklists, own(api.ScopeAPI), suppressions.listBlocklists),
			get(api.GetBlocklist, own(api.ScopeAPI), suppressions.getBlocklist),
			on(api.AddToBlocklist, own(api.ScopeAPI), changes("suppression", "listId"), suppressions.addToBlocklist),
			on(api.RemoveFromBlocklist, own(api.ScopeAPI), changes("suppression", "listId"),
				suppressions.removeFromBlocklist),
		}},
		{"Tokens", "Access tokens for programs.", []route{
			on(api.CreateToken, whole(api.ScopeAdmin), changes("token", ""), tokens.createToken),
			get(api.ListTokens, whole(api.ScopeAdmin), tokens.listTokens),
			get(api.GetToken, whole(api.ScopeAdmin), tokens.getToken),
			on(api.RotateToken, whole(api.ScopeAdmin), changes("token", "id"), tokens.rotateToken),
			get(api.GetTokenUsage, whole(api.ScopeAdmin), tokens.getTokenUsage),
			on(api.DeleteToken, whole(api.ScopeAdmin), changes("token", "id"), tokens.deleteToken),
		}},
		{"People", "The persons who use the pages, and their sessions.", []route{
			on(api.CreatePerson, whole(api.ScopeAdmin), changes("person", ""), people.createPerson),
			get(api.ListPeople, whole(api.ScopeAdmin), people.listPeople),
			get(api.GetPerson, whole(api.ScopeAdmin), people.getPerson),
			on(api.UpdatePerson, whole(api.ScopeAdmin), changes("person", "person"), people.updatePerson),
			on(api.DeletePerson, whole(api.ScopeAdmin), changes("person", "person"), people.deletePerson),
			on(api.LinkPerson, whole(api.ScopeAdmin), changes("person", "person"), people.linkPerson),
			on(api.SignOutPerson, whole(api.ScopeAdmin), changes("person", "person"), people.signOutPerson),
			on(api.ResetTOTP, whole(api.ScopeAdmin), changes("person", "person"), people.resetTOTP),
			get(api.ListSessions, selfOr(api.ScopeAdmin), people.listSessions),
			on(api.EndSession, selfOr(api.ScopeAdmin), changes("session", "id"), people.endSession),
		}},
		{"Me", "The person of the session. Tokens are refused.", []route{
			get(api.GetMe, self(), people.getMe),
			on(api.ChangePassword, self(), changes("person", ""), people.changePassword),
			on(api.EnrolTOTP, self(), changes("person", ""), people.enrolTOTP),
			on(api.ConfirmTOTP, self(), changes("person", ""), people.confirmTOTP),
			on(api.RemoveTOTP, self(), changes("person", ""), people.removeTOTP),
			on(api.ChooseAccount, self(), changes("person", ""), people.chooseAccount),
		}},
		{"Audit log", "Who did what.", []route{
			get(api.ListAudit, whole(api.ScopeAdmin), log.listAudit),
			long(get(api.ExportAudit, whole(api.ScopeAdmin), log.exportAudit)),
			long(get(api.VerifyAudit, whole(api.ScopeAdmin), log.verifyAudit)),
		}},
		{"Webhooks", "Webhook endpoints and their deliveries.", []route{
			grows(on(api.CreateEndpoint, whole(api.ScopeAPI), changes("endpoint", ""), webhooks.createEndpoint)),
			get(api.ListEndpoints, whole(api.ScopeAPI), webhooks.listEndpoints),
			get(api.GetEndpoint, whole(api.ScopeAPI), webhooks.getEndpoint),
			on(api.UpdateEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.updateEndpoint),
			on(api.PatchEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.patchEndpoint),
			on(api.RotateEndpointSecret, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.rotateSecret),
			on(api.WakeEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.wakeEndpoint),
			get(api.GetEndpointStats, whole(api.ScopeAPI), webhooks.endpointStats),
			on(api.DeleteEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.deleteEndpoint),
			on(api.TestEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.testEndpoint),
			grows(on(api.ReplayEndpoint, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.replayEndpoint)),
			get(api.GetEndpointReplay, whole(api.ScopeAPI), webhooks.replayState),
			get(api.ListDeliveries, whole(api.ScopeAPI), webhooks.listDeliveries),
			get(api.GetDelivery, whole(api.ScopeAPI), webhooks.getDelivery),
			on(api.Redeliver, whole(api.ScopeAPI), changes("endpoint", "id"), webhooks.redeliver),
			get(api.ListWebhookRoutes, whole(api.ScopeAPI), webhooks.listRoutes),
			get(api.GetWebhookRoute, whole(api.ScopeAPI), webhooks.getRoute),
		}},
	}
}
