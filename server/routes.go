package server

import "github.com/postroom/postroom/api"

// group is a chapter of the table, and of the documentation.
type group struct {
	name, about string
	routes      []route
}

// routes is the table of all routes: method and path, who may call it, what answers.
func (s *Server) routes() []group {
	return []group{
		{"Submit", "Hand over mail to be sent.", []route{
			large(s.opts.maxSubmit(), post("/v1/submit", own(api.ScopeSend), s.submit, "submit", "Queue a message for delivery")),
			large(s.opts.maxSubmit(), post("/v1/account/{account}/submit", own(api.ScopeSend), s.submitAs, "submitAs", "Queue a message of an account for delivery")),
		}},
		{"Outbox", "See, change and take back what is queued.", []route{
			get("/v1/outbox", own(api.ScopeOutbox), s.listOutbox, "listOutbox", "List queued messages, oldest first"),
			long(remove("/v1/outbox", own(api.ScopeOutbox), s.cancelAll, "cancelMessages", "Take back all queued messages that match")),
			get("/v1/outbox/{queueId}", own(api.ScopeOutbox), s.getMessage, "getMessage", "Show a queued message"),
			remove("/v1/outbox/{queueId}", own(api.ScopeOutbox), s.cancelMessage, "cancelMessage", "Take back a queued message"),
			patch("/v1/outbox/{queueId}", own(api.ScopeOutbox), s.patchMessage, "patchMessage", "Change when and how a queued message is sent"),
			post("/v1/outbox/{queueId}/retry", own(api.ScopeOutbox), s.retryMessage, "retryMessage", "Attempt delivery now"),
			get("/v1/outbox/{queueId}/content", own(api.ScopeOutbox), s.messageContent, "messageContent", "Download a queued message as it will be sent"),
		}},
		{"Email log", "See what became of messages, when they are long sent, too.", []route{
			get("/v1/messages", own(api.ScopeOutbox), s.listMessages, "listMessages", "List the email log, newest message first"),
			long(get("/v1/messages/rates", own(api.ScopeOutbox), s.getRates, "getRates", "Count what became of messages, such as those of a campaign")),
			get("/v1/messages/{queueId}", own(api.ScopeOutbox), s.getLogged, "getLoggedMessage", "Show a message of the email log, with all of its attempts"),
			get("/v1/messages/{queueId}/events", own(api.ScopeOutbox), s.listEvents, "listMessageEvents", "Tell what happened to a message, oldest event first"),
		}},
		{"Search", "Find any mail again.", []route{
			get("/v1/documents/search", own(api.ScopeOutbox), s.searchDocuments, "searchDocuments", "Find messages, long after the email log has forgotten them"),
			get("/v1/documents", whole(api.ScopeAPI), s.getDocuments, "getDocuments", "Show how the search index is doing"),
			post("/v1/documents/rebuild", whole(api.ScopeAPI), s.rebuildDocuments, "rebuildDocuments", "Make the search index anew, beside the one in use"),
		}},
		{"Dead letters", "See, replay and forget messages that failed for good.", []route{
			get("/v1/dead-letters", own(api.ScopeOutbox), s.listDeadLetters, "listDeadLetters", "List dead letters, oldest first"),
			get("/v1/dead-letters/{queueId}", own(api.ScopeOutbox), s.getDeadLetter, "getDeadLetter", "Show a dead letter with its content"),
			long(post("/v1/dead-letters/replay", own(api.ScopeOutbox), s.replayDeadLetters, "replayDeadLetters", "Queue all dead letters again that match")),
			post("/v1/dead-letters/{queueId}/replay", own(api.ScopeOutbox), s.replayDeadLetter, "replayDeadLetter", "Queue a dead letter again, for the recipients that failed, or as corrected"),
			remove("/v1/dead-letters/{queueId}", own(api.ScopeOutbox), s.deleteDeadLetter, "deleteDeadLetter", "Forget a dead letter"),
		}},
		{"Queues", "Watch, pause and resume the queues.", []route{
			get("/v1/settings/queue/{queue}", whole(api.ScopeAPI), s.getQueue, "getQueue", "Show a queue"),
			put("/v1/settings/queue/{queue}", whole(api.ScopeAPI), s.putQueue, "putQueue", "Pause or resume a queue"),
			get("/v1/stats", partly(api.ScopeMetrics, api.ScopeOutbox), s.getStats, "stats", "The instance at a glance"),
		}},
		{"Settings", "What can be changed while Postroom runs.", []route{
			get("/v1/settings", whole(api.ScopeAdmin), s.getSettings, "getSettings", "Show settings"),
			post("/v1/settings", whole(api.ScopeAdmin), s.postSettings, "updateSettings", "Change settings"),
		}},
		{"Accounts", "The senders, and the relays their mail goes through.", []route{
			post("/v1/account", whole(api.ScopeAPI), s.createAccount, "createAccount", "Create an account, or replace it"),
			get("/v1/accounts", whole(api.ScopeAPI), s.listAccounts, "listAccounts", "List accounts"),
			get("/v1/account/{account}", own(api.ScopeAPI), s.getAccount, "getAccount", "Show an account"),
			put("/v1/account/{account}", whole(api.ScopeAPI), s.updateAccount, "updateAccount", "Change an account"),
			long(remove("/v1/account/{account}", whole(api.ScopeAPI), s.deleteAccount, "deleteAccount", "Delete an account and its queued messages")),
			post("/v1/verifyAccount", whole(api.ScopeAPI), s.verifyAccount, "verifyAccount", "Try to log in to a relay"),
		}},
		{"Gateways", "The relays that accounts share.", []route{
			post("/v1/gateway", whole(api.ScopeAPI), s.createGateway, "createGateway", "Create a gateway, or replace it"),
			get("/v1/gateways", whole(api.ScopeAPI), s.listGateways, "listGateways", "List gateways"),
			get("/v1/gateway/{gateway}", whole(api.ScopeAPI), s.getGateway, "getGateway", "Show a gateway"),
			put("/v1/gateway/edit/{gateway}", whole(api.ScopeAPI), s.updateGateway, "updateGateway", "Change a gateway"),
			remove("/v1/gateway/{gateway}", whole(api.ScopeAPI), s.deleteGateway, "deleteGateway", "Delete a gateway that no account lists"),
		}},
		{"DKIM", "The keys that the mail of a domain is signed with.", []route{
			put("/v1/dkim/{domain}", whole(api.ScopeAPI), s.putDomainKey, "putDomainKey", "Keep the key of a domain; the answer has the DNS record to publish"),
			get("/v1/dkim", whole(api.ScopeAPI), s.listDomainKeys, "listDomainKeys", "List the keys of all domains"),
			get("/v1/dkim/{domain}", whole(api.ScopeAPI), s.getDomainKey, "getDomainKey", "Show the key of a domain, with its DNS record"),
			remove("/v1/dkim/{domain}", whole(api.ScopeAPI), s.deleteDomainKey, "deleteDomainKey", "Forget the key of a domain"),
		}},
		{"Templates", "What mail is made of.", []route{
			large(templateBody, post("/v1/templates/template", own(api.ScopeAPI), s.createTemplate, "createTemplate", "Store a template, a partial or a layout")),
			get("/v1/templates", own(api.ScopeAPI), s.listTemplates, "listTemplates", "List templates, without their content"),
			large(templateBody, post("/v1/templates/render", own(api.ScopeAPI), s.tryTemplate, "tryTemplate", "Show what a template says that is not stored")),
			get("/v1/templates/template/{id}", own(api.ScopeAPI), s.getTemplate, "getTemplate", "Show a template"),
			large(templateBody, put("/v1/templates/template/{id}", own(api.ScopeAPI), s.updateTemplate, "updateTemplate", "Change a template; another content is a new version")),
			remove("/v1/templates/template/{id}", own(api.ScopeAPI), s.deleteTemplate, "deleteTemplate", "Delete a template that no other one uses"),
			get("/v1/templates/template/{id}/versions", own(api.ScopeAPI), s.listTemplateVersions, "listTemplateVersions", "List the versions that are kept of a template, the current one first"),
			get("/v1/templates/template/{id}/versions/{version}", own(api.ScopeAPI), s.getTemplateVersion, "getTemplateVersion", "Show a version of a template"),
			post("/v1/templates/template/{id}/restore", own(api.ScopeAPI), s.restoreTemplate, "restoreTemplate", "Give a template the content of a version again, as a new version"),
			post("/v1/templates/template/{id}/render", own(api.ScopeAPI), s.previewTemplate, "previewTemplate", "Show what a template says"),
			long(remove("/v1/templates/account/{account}", own(api.ScopeAPI), s.flushTemplates, "flushTemplates", "Delete all templates of an account")),
		}},
		s.suppressionRoutes(),
		{"Tokens", "Access tokens for programs.", []route{
			post("/v1/tokens", whole(api.ScopeAdmin), s.createToken, "createToken", "Create an access token"),
			get("/v1/tokens", whole(api.ScopeAdmin), s.listTokens, "listTokens", "List access tokens"),
			get("/v1/tokens/{id}", whole(api.ScopeAdmin), s.getToken, "getToken", "Show an access token"),
			remove("/v1/tokens/{id}", whole(api.ScopeAdmin), s.deleteToken, "deleteToken", "Delete an access token"),
		}},
		{"Webhooks", "Where events are sent, and what was sent.", []route{
			post("/v1/webhook-endpoints", whole(api.ScopeAPI), s.createEndpoint, "createEndpoint", "Create a webhook endpoint; the answer shows its secret, this once"),
			get("/v1/webhook-endpoints", whole(api.ScopeAPI), s.listEndpoints, "listEndpoints", "List webhook endpoints"),
			get("/v1/webhook-endpoints/{id}", whole(api.ScopeAPI), s.getEndpoint, "getEndpoint", "Show a webhook endpoint"),
			put("/v1/webhook-endpoints/{id}", whole(api.ScopeAPI), s.updateEndpoint, "updateEndpoint", "Change a webhook endpoint"),
			remove("/v1/webhook-endpoints/{id}", whole(api.ScopeAPI), s.deleteEndpoint, "deleteEndpoint", "Delete a webhook endpoint"),
			post("/v1/webhook-endpoints/{id}/test", whole(api.ScopeAPI), s.testEndpoint, "testEndpoint", "Send a test event now"),
			post("/v1/webhook-endpoints/{id}/replay", whole(api.ScopeAPI), s.replayEndpoint, "replayEndpoint", "Send events again, from a moment on"),
			get("/v1/webhook-endpoints/{id}/deliveries", whole(api.ScopeAPI), s.listDeliveries, "listDeliveries", "List deliveries, newest first"),
			get("/v1/webhook-endpoints/{id}/deliveries/{deliveryId}", whole(api.ScopeAPI), s.getDelivery, "getDelivery", "Show a delivery and what was sent"),
			post("/v1/webhook-endpoints/{id}/deliveries/{deliveryId}/redeliver", whole(api.ScopeAPI), s.redeliver, "redeliver", "Send a delivery again"),
		}},
		{"Feedback", "What became known about mail after a relay took it.", []route{
			get("/v1/feedback", whole(api.ScopeAPI), s.feedbackStatus, "getFeedback", "Show who told what about sent mail, and what became of it"),
			large(returnedBody, post("/v1/bounces", whole(api.ScopeAPI), s.returnMail, "returnMail", "Take in a mail that came back: a bounce, a delay notice, a complaint")),
			hookRoute("/webhooks/provider", s.providerHook),
			hookRoute("/webhooks/provider/{name}", s.providerHook),
		}},
		{"Unsubscribe", "The pages that recipients see.", s.unsubscribeRoutes()},
		{"Tracking", "What mail programs fetch and readers follow. No token is needed beside the one in the address.", []route{
			plain("/o/{token}", public(), s.trackOpen),
			plain("/c/{token}", public(), s.trackClick),
			plain("/track/open", public(), s.trackOpen),
			plain("/track/click", public(), s.trackClickTo),
		}},
		{"Instance", "Health, metrics and this document.", []route{
			s.healthRoute(),
			s.readyRoute(),
			s.metricsRoute(),
			plain("/openapi.json", public(), s.openAPIJSON),
			plain("/openapi.yaml", public(), s.openAPIYAML),
			plain("/docs", public(), s.docsPage),
			plain("/docs/*", public(), s.docsFile),
		}},
	}
}
