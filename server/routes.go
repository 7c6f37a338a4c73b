package server

import (
	"slices"

	"github.com/postroom/postroom/api"
)

// group is a section of the table and of the documentation.
type group struct {
	name, about string
	routes      []route
}

// routes returns the table of all routes.
func (s *Server) routes() []group {
	return slices.Concat(s.mailRoutes(), s.senderRoutes(), s.audienceRoutes(), s.programRoutes(),
		s.publicRoutes())
}

// mailRoutes are about messages and their queues.
func (s *Server) mailRoutes() []group {
	p := s.parts
	submits := submitRoutes{intake: p.Intake, metrics: s.metrics, draining: &s.draining}
	messages := messageRoutes{box: p.Outbox}
	documents := documentRoutes{documents: p.Documents}
	queues := queueRoutes{box: p.Outbox, accounts: p.Accounts, documents: p.Documents, digests: p.Digests,
		settings: p.Settings, state: p.State, version: s.opts.Version}
	return []group{
		{"Submit", "Submit mail for delivery.", []route{
			large(s.opts.maxSubmit(), post("/v1/submit", own(api.ScopeSend), unlogged("in the email log"),
				submits.submit, "submit", "Queue a message for delivery")),
			large(s.opts.maxSubmit(), post("/v1/account/{account}/submit", own(api.ScopeSend),
				unlogged("in the email log"),
				submits.submitAs, "submitAs", "Queue a message of an account for delivery")),
		}},
		{"Outbox", "Show, change and cancel queued messages.", []route{
			get("/v1/outbox", own(api.ScopeOutbox), messages.listOutbox, "listOutbox",
				"List queued messages, oldest first"),
			long(remove("/v1/outbox", own(api.ScopeOutbox), changes("message", ""),
				messages.cancelAll, "cancelMessages", "Cancel all queued messages that match")),
			get("/v1/outbox/{queueId}", own(api.ScopeOutbox), messages.getMessage, "getMessage",
				"Show a queued message"),
			remove("/v1/outbox/{queueId}", own(api.ScopeOutbox), changes("message", "queueId"),
				messages.cancelMessage, "cancelMessage", "Cancel a queued message"),
			patch("/v1/outbox/{queueId}", own(api.ScopeOutbox), changes("message", "queueId"),
				messages.patchMessage, "patchMessage", "Change when and how a queued message is sent"),
			post("/v1/outbox/{queueId}/retry", own(api.ScopeOutbox), changes("message", "queueId"),
				messages.retryMessage, "retryMessage", "Attempt delivery now"),
			get("/v1/outbox/{queueId}/content", own(api.ScopeOutbox), messages.messageContent, "messageContent",
				"Download a queued message as it will be sent"),
		}},
		{"Email log", "The history of all messages.", []route{
			get("/v1/messages", own(api.ScopeOutbox), messages.listMessages, "listMessages",
				"List the email log, newest message first"),
			get("/v1/rates", own(api.ScopeOutbox), messages.getRates, "getRates",
				"Count what became of mail, by hour and day, for 13 months"),
			get("/v1/messages/{queueId}", own(api.ScopeOutbox), messages.getLogged, "getLoggedMessage",
				"Show a message of the email log, with all of its attempts"),
			get("/v1/messages/{queueId}/events", own(api.ScopeOutbox), messages.listEvents, "listMessageEvents",
				"List the events of a message, oldest first"),
			get("/v1/messages/{queueId}/deliveries", partly(api.ScopeAPI, api.ScopeOutbox),
				webhookRoutes{webhooks: p.Webhooks}.listAbout(messages), "listMessageDeliveries",
				"List the webhook deliveries of the events of a message, oldest first"),
			get("/v1/messages/{queueId}/content", own(api.ScopeOutbox), messages.downloadMessage,
				"downloadMessage", "Download a message for as long as its content is stored"),
			get("/v1/messages/{queueId}/parts", own(api.ScopeOutbox), messages.getParts, "getMessageParts",
				"Take a message apart: its header, its texts, and what its files are"),
			get("/v1/messages/{queueId}/parts/{part}", own(api.ScopeOutbox), messages.downloadPart,
				"downloadMessagePart", "Download a text or a file of a message, decoded"),
		}},
		{"Search", "Full-text search of all mail.", []route{
			get("/v1/documents/search", own(api.ScopeOutbox), documents.searchDocuments, "searchDocuments",
				"Find messages, also those that are no longer in the email log"),
			get("/v1/documents", whole(api.ScopeAPI), documents.getDocuments, "getDocuments",
				"Show the state of the search index"),
			post("/v1/documents/rebuild", whole(api.ScopeAPI), changes("documents", ""),
				documents.rebuildDocuments, "rebuildDocuments",
				"Rebuild the search index; the current one is used meanwhile"),
		}},
		{"Dead letters", "Show, replay and delete messages that failed permanently.", []route{
			get("/v1/dead-letters", own(api.ScopeOutbox), messages.listDeadLetters, "listDeadLetters",
				"List dead letters, oldest first"),
			get("/v1/dead-letters/reasons", own(api.ScopeOutbox), messages.listDeadLetterReasons,
				"listDeadLetterReasons", "Count dead letters by the reason why they failed"),
			get("/v1/replies", own(api.ScopeOutbox), messages.explainReply, "explainReply",
				"Say what a mail server's reply means, and what to do about it"),
			get("/v1/dead-letters/{queueId}", own(api.ScopeOutbox), messages.getDeadLetter, "getDeadLetter",
				"Show a dead letter with its content"),
			long(post("/v1/dead-letters/replay", own(api.ScopeOutbox), changes("message", ""),
				messages.replayDeadLetters, "replayDeadLetters",
				"Queue all dead letters that match again")),
			post("/v1/dead-letters/{queueId}/replay", own(api.ScopeOutbox), changes("message", "queueId"),
				messages.replayDeadLetter, "replayDeadLetter",
				"Queue a dead letter again, for the failed recipients or with corrections"),
			remove("/v1/dead-letters/{queueId}", own(api.ScopeOutbox), changes("message", "queueId"),
				messages.deleteDeadLetter, "deleteDeadLetter", "Delete a dead letter"),
		}},
		{"Queues", "Watch, pause and resume the queues.", []route{
			get("/v1/settings/queue/{queue}", whole(api.ScopeAPI), queues.getQueue, "getQueue", "Show a queue"),
			put("/v1/settings/queue/{queue}", whole(api.ScopeAPI), changes("queue", "queue"),
				queues.putQueue, "putQueue", "Pause or resume a queue"),
			get("/v1/stats", partly(api.ScopeMetrics, api.ScopeOutbox), queues.getStats, "stats",
				"Show counters, queues and alerts"),
			get("/v1/overview", partly(api.ScopeMetrics, api.ScopeOutbox),
				overviewRoutes{p.Overview}.getOverview, "getOverview",
				"Say whether mail flows, what is wrong, and where it is mended"),
		}},
		{"Settings", "The settings that can be changed while Postroom runs.", []route{
			get("/v1/settings", whole(api.ScopeAdmin), queues.getSettings, "getSettings",
				"Show settings; those that the query names, such as queueKeep=true, or all"),
			get("/v1/settings/configuration", whole(api.ScopeAdmin), s.getConfiguration, "getConfiguration",
				"Show the settings that this process was started with, and where each came from"),
			post("/v1/settings", whole(api.ScopeAdmin), changes("settings", ""),
				queues.postSettings, "updateSettings", "Change settings"),
		}},
	}
}

// senderRoutes are about accounts, gateways, keys and templates.
func (s *Server) senderRoutes() []group {
	p := s.parts
	changed := p.Provision()
	accounts := accountRoutes{provision: changed, accounts: p.Accounts, senders: p.Senders, box: p.Outbox}
	gateways := gatewayRoutes{provision: changed, gateways: p.Gateways}
	keys := dkimRoutes{keys: p.DomainKeys}
	templates := templateRoutes{templates: p.Templates, accounts: p.Accounts}
	return []group{
		{"Accounts", "The senders, and the relays their mail goes through.", []route{
			post("/v1/account", whole(api.ScopeAPI), changes("account", ""),
				accounts.createAccount, "createAccount", "Create an account, or replace it"),
			get("/v1/accounts", whole(api.ScopeAPI), accounts.listAccounts, "listAccounts", "List accounts"),
			get("/v1/account/{account}", own(api.ScopeAPI), accounts.getAccount, "getAccount", "Show an account"),
			put("/v1/account/{account}", whole(api.ScopeAPI), changes("account", "account"),
				accounts.updateAccount, "updateAccount", "Change an account"),
			long(remove("/v1/account/{account}", whole(api.ScopeAPI), changes("account", "account"),
				accounts.deleteAccount, "deleteAccount", "Delete an account and its queued messages")),
			get("/v1/account/{account}/usage", own(api.ScopeAPI), accounts.getUsage, "getUsage",
				"Show what an account uses of its quotas"),
			get("/v1/account/{account}/dns", own(api.ScopeAPI), accounts.getAccountDNS, "getAccountDNS",
				"Show the DNS records that an account needs, and what is published in their place"),
			get("/v1/account/{account}/senders", own(api.ScopeAPI), accounts.listSenders, "listSenders",
				"List the addresses and domains that an account may send as"),
			post("/v1/account/{account}/senders", own(api.ScopeAPI), changes("account", "account"),
				accounts.addSender, "addSender", "Add an address or a domain that an account may send as"),
			post("/v1/account/{account}/senders/{sender}/verify", own(api.ScopeAPI),
				changes("account", "account"), accounts.verifySender, "verifySender",
				"Look for the DNS record that verifies a domain"),
			post("/v1/account/{account}/senders/{sender}/mail", own(api.ScopeAPI),
				changes("account", "account"), accounts.mailSender, "mailSender",
				"Send a mail to an address, whose link lets the account send as it"),
			remove("/v1/account/{account}/senders/{sender}", own(api.ScopeAPI), changes("account", "account"),
				accounts.removeSender, "removeSender",
				"Remove an address or a domain that an account may send as"),
			post("/v1/verifyAccount", whole(api.ScopeAPI), unlogged("changes nothing"),
				accounts.verifyAccount, "verifyAccount", "Try to log in to a relay"),
		}},
		{"Gateways", "The relays that accounts share.", []route{
			post("/v1/gateway", whole(api.ScopeAPI), changes("gateway", ""),
				gateways.createGateway, "createGateway", "Create a gateway, or replace it"),
			get("/v1/gateways", whole(api.ScopeAPI), gateways.listGateways, "listGateways", "List gateways"),
			get("/v1/gateway/{gateway}", whole(api.ScopeAPI), gateways.getGateway, "getGateway", "Show a gateway"),
			put("/v1/gateway/edit/{gateway}", whole(api.ScopeAPI), changes("gateway", "gateway"),
				gateways.updateGateway, "updateGateway", "Change a gateway"),
			remove("/v1/gateway/{gateway}", whole(api.ScopeAPI), changes("gateway", "gateway"),
				gateways.deleteGateway, "deleteGateway", "Delete a gateway that no account lists"),
		}},
		{"DKIM", "The keys that sign the mail of a domain.", []route{
			put("/v1/dkim/{domain}", whole(api.ScopeAPI), changes("dkim", "domain"),
				keys.putDomainKey, "putDomainKey",
				"Store the key of a domain; the answer has the DNS record to publish"),
			get("/v1/dkim", whole(api.ScopeAPI), keys.listDomainKeys, "listDomainKeys",
				"List the keys of all domains"),
			get("/v1/dkim/{domain}", whole(api.ScopeAPI), keys.getDomainKey, "getDomainKey",
				"Show the key of a domain, with its DNS record"),
			remove("/v1/dkim/{domain}", whole(api.ScopeAPI), changes("dkim", "domain"),
				keys.deleteDomainKey, "deleteDomainKey", "Delete the key of a domain"),
		}},
		{"Templates", "Stored templates, partials and layouts.", []route{
			grows(large(templateBody, post("/v1/templates/template", own(api.ScopeAPI), changes("template", ""),
				templates.createTemplate, "createTemplate", "Store a template, a partial or a layout"))),
			get("/v1/templates", own(api.ScopeAPI), templates.listTemplates, "listTemplates",
				"List templates, without their content"),
			large(templateBody, post("/v1/templates/render", own(api.ScopeAPI), unlogged("changes nothing"),
				templates.tryTemplate, "tryTemplate", "Render a template that is not stored")),
			get("/v1/templates/template/{id}", own(api.ScopeAPI), templates.getTemplate, "getTemplate",
				"Show a template"),
			grows(large(templateBody, put("/v1/templates/template/{id}", own(api.ScopeAPI), changes("template", "id"),
				templates.updateTemplate, "updateTemplate",
				"Change a template; new content makes a new version"))),
			remove("/v1/templates/template/{id}", own(api.ScopeAPI), changes("template", "id"),
				templates.deleteTemplate, "deleteTemplate", "Delete a template that no other one uses"),
			get("/v1/templates/template/{id}/versions", own(api.ScopeAPI), templates.listTemplateVersions,
				"listTemplateVersions", "List the stored versions of a template, the current one first"),
			get("/v1/templates/template/{id}/versions/{version}", own(api.ScopeAPI), templates.getTemplateVersion,
				"getTemplateVersion", "Show a version of a template"),
			grows(post("/v1/templates/template/{id}/restore", own(api.ScopeAPI), changes("template", "id"),
				templates.restoreTemplate, "restoreTemplate",
				"Restore the content of a version, as a new version")),
			post("/v1/templates/template/{id}/render", own(api.ScopeAPI), unlogged("changes nothing"),
				templates.previewTemplate, "previewTemplate", "Render a template"),
			long(remove("/v1/templates/account/{account}", own(api.ScopeAPI), changes("template", ""),
				templates.flushTemplates, "flushTemplates", "Delete all templates of an account")),
		}},
	}
}

// subscriberFileRoutes are about files of subscribers.
func (s *Server) subscriberFileRoutes() group {
	imports := subscriberImportRoutes{audience: s.parts.Audience}
	return group{"Files of subscribers", "Import and export subscribers.", []route{
		grows(upload("/v1/subscribers/import", own(api.ScopeLists), changes("subscriber", ""),
			imports.importSubscribers, "importSubscribers",
			"Import a file of any size; the answer comes after its end")),
		get("/v1/subscribers/imports", own(api.ScopeLists), imports.listImports, "listSubscriberImports",
			"List the imports of the last week, the latest first"),
		get("/v1/subscribers/imports/{id}", own(api.ScopeLists), imports.getImport, "subscriberImport",
			"Show the progress of an import, while it runs and for a week"),
		remove("/v1/subscribers/imports/{id}", own(api.ScopeLists), changes("subscriber", "id"),
			imports.stopImport, "stopSubscriberImport", "Stop a running import, or forget one that has ended"),
		long(get("/v1/subscribers/export", own(api.ScopeLists), imports.exportSubscribers,
			"exportSubscribers", "Download subscribers, in a form that can be imported")),
	}}
}

// segmentRoutes are about segments.
func (s *Server) segmentRoutes() group {
	segments := segmentRoutes{segments: s.parts.Audience.Segments}
	return group{"Segments", "Stored rules that select subscribers.", []route{
		grows(large(segmentBody, post("/v1/segments", own(api.ScopeLists), changes("segment", ""),
			segments.createSegment, "createSegment", "Store a rule that selects subscribers"))),
		get("/v1/segments", readsLists(), segments.listSegments, "listSegments",
			"List segments, by their ids"),
		get("/v1/segments/{segment}", readsLists(), segments.getSegment, "getSegment",
			"Show a segment, with its rule in words"),
		grows(large(segmentBody, put("/v1/segments/{segment}", own(api.ScopeLists), changes("segment", "segment"),
			segments.updateSegment, "updateSegment", "Change a segment"))),
		remove("/v1/segments/{segment}", own(api.ScopeLists), changes("segment", "segment"),
			segments.deleteSegment, "deleteSegment", "Delete a segment"),
		post("/v1/segments/{segment}/count", own(api.ScopeLists), unlogged("changes nothing"),
			segments.countSegment, "countSegment", "Begin to count the subscribers of a segment"),
		get("/v1/segments/{segment}/count", readsLists(), segments.segmentCount, "segmentCount",
			"Show the progress or the result of the last count, with a sample"),
		get("/v1/segments/{segment}/explain", readsLists(), segments.explainSegment, "explainSegment",
			"Say why a subscriber is in a segment, or not"),
	}}
}

// campaignRoutes are about campaigns.
func (s *Server) campaignRoutes() group {
	campaigns := campaignRoutes{campaigns: s.parts.Campaigns, draining: &s.draining}
	campaign := changes("campaign", "campaign")
	return group{"Campaigns", "Newsletters: one content, mailed once to each person that it chooses.", []route{
		grows(post("/v1/campaigns", own(api.ScopeCampaigns), changes("campaign", ""), campaigns.createCampaign,
			"createCampaign", "Store the draft of a campaign")),
		get("/v1/campaigns", own(api.ScopeCampaigns), campaigns.listCampaigns, "listCampaigns",
			"List campaigns, the latest first"),
		get("/v1/campaigns/{campaign}", own(api.ScopeCampaigns), campaigns.getCampaign, "getCampaign",
			"Show a campaign with its state"),
		grows(put("/v1/campaigns/{campaign}", own(api.ScopeCampaigns), campaign, campaigns.updateCampaign,
			"updateCampaign", "Change a campaign that is not being sent")),
		long(remove("/v1/campaigns/{campaign}", own(api.ScopeCampaigns), campaign, campaigns.deleteCampaign,
			"deleteCampaign", "Delete a campaign that is not being sent and that no segment names, and what is known of its recipients")),
		grows(post("/v1/campaigns/{campaign}/copy", own(api.ScopeCampaigns), changes("campaign", ""),
			campaigns.copyCampaign, "copyCampaign", "Make a draft of a campaign's content and audience")),
		grows(post("/v1/campaigns/{campaign}/send", own(api.ScopeCampaigns), campaign, campaigns.sendCampaign,
			"sendCampaign", "Begin to send a campaign, now or at a time")),
		post("/v1/campaigns/{campaign}/pause", own(api.ScopeCampaigns), campaign, campaigns.pauseCampaign,
			"pauseCampaign", "Stop a campaign: no further mail of it is sent"),
		post("/v1/campaigns/{campaign}/resume", own(api.ScopeCampaigns), campaign, campaigns.resumeCampaign,
			"resumeCampaign", "Go on with a campaign that is paused or held"),
		post("/v1/campaigns/{campaign}/cancel", own(api.ScopeCampaigns), campaign, campaigns.cancelCampaign,
			"cancelCampaign", "End a campaign: who has not got it will not"),
		post("/v1/campaigns/{campaign}/preview", own(api.ScopeCampaigns), unlogged("changes nothing"),
			campaigns.previewCampaign, "previewCampaign", "Show the mail of a campaign as one person would get it"),
		post("/v1/campaigns/{campaign}/check", own(api.ScopeCampaigns), unlogged("changes nothing"),
			campaigns.checkCampaign, "checkCampaign",
			"Find what keeps a campaign from being sent, and what should be looked at"),
		post("/v1/campaigns/{campaign}/test", own(api.ScopeCampaigns), campaign, campaigns.testCampaign,
			"testCampaign", "Mail a campaign to given addresses"),
		get("/v1/campaigns/{campaign}/recipients", own(api.ScopeCampaigns), campaigns.listCampaignRecipients,
			"listCampaignRecipients", "List what became of the people of a campaign"),
		long(get("/v1/campaigns/{campaign}/recipients/export", own(api.ScopeCampaigns),
			campaigns.exportCampaignRecipients, "exportCampaignRecipients",
			"Download what became of the people of a campaign, as CSV")),
		post("/v1/campaigns/{campaign}/settle", own(api.ScopeCampaigns), campaign, campaigns.settleCampaign,
			"settleCampaign", "Count recipients in doubt as sent"),
		grows(post("/v1/campaigns/{campaign}/resend", own(api.ScopeCampaigns), campaign, campaigns.resendCampaign,
			"resendCampaign", "Begin the next run of a campaign, to some of its people")),
		post("/v1/campaigns/{campaign}/winner", own(api.ScopeCampaigns), campaign, campaigns.decideCampaign,
			"decideCampaign", "Decide which variant wins the test of a campaign"),
		get("/v1/campaigns/{campaign}/stats", own(api.ScopeCampaigns), campaigns.campaignStats,
			"getCampaignStats", "Show the numbers of a campaign"),
		get("/v1/campaigns/{campaign}/stats/live", own(api.ScopeCampaigns), campaigns.liveStats,
			"watchCampaignStats",
			"Show the numbers of a campaign each second, as server-sent events, while it is under way"),
		long(post("/v1/campaigns/{campaign}/recount", own(api.ScopeCampaigns), campaign,
			campaigns.recountCampaign, "recountCampaign",
			"Compare the counters of a campaign with what is stored of each recipient")),
	}}
}

// audienceRoutes are about lists, subscribers and campaigns.
func (s *Server) audienceRoutes() []group {
	lists := listRoutes{lists: s.parts.Audience.Lists}
	subscribers := subscriberRoutes{audience: s.parts.Audience}
	forms := s.subscribing()
	return []group{
		{"Lists", "The mailing lists of accounts.", []route{
			grows(large(listMailBody, post("/v1/lists", own(api.ScopeLists), changes("list", ""), lists.createList,
				"createList", "Create a list"))),
			get("/v1/lists", readsLists(), lists.listLists, "listLists", "List lists, by their ids"),
			get("/v1/lists/{listId}", readsLists(), lists.getList, "getList",
				"Show a list, with its numbers of subscribers"),
			grows(large(listMailBody, put("/v1/lists/{listId}", own(api.ScopeLists), changes("list", "listId"),
				lists.updateList, "updateList", "Change a list"))),
			long(remove("/v1/lists/{listId}", own(api.ScopeLists), changes("list", "listId"), lists.deleteList,
				"deleteList", "Delete a list and its subscriptions; the subscribers stay")),
			get("/v1/lists/{listId}/form", readsLists(), forms.form, "getListForm",
				"Show the public form of a list: its address, and html to embed"),
		}},
		{"Subscribers", "Who gets the newsletters of accounts.", []route{
			grows(post("/v1/subscribers", own(api.ScopeLists), changes("subscriber", ""),
				subscribers.createSubscriber, "createSubscriber", "Create a subscriber, and put it on lists")),
			get("/v1/subscribers", own(api.ScopeLists), subscribers.listSubscribers, "listSubscribers",
				"List the subscribers of an account, in the order in which they came"),
			get("/v1/subscribers/{subscriber}", own(api.ScopeLists), subscribers.getSubscriber, "getSubscriber",
				"Show a subscriber"),
			grows(put("/v1/subscribers/{subscriber}", own(api.ScopeLists), changes("subscriber", "subscriber"),
				subscribers.updateSubscriber, "updateSubscriber", "Change a subscriber")),
			remove("/v1/subscribers/{subscriber}", own(api.ScopeLists), changes("subscriber", "subscriber"),
				subscribers.deleteSubscriber, "deleteSubscriber",
				"Delete a subscriber with its subscriptions; suppressions stay"),
			grows(post("/v1/subscribers/{subscriber}/lists", own(api.ScopeLists), changes("subscriber", "subscriber"),
				subscribers.subscribe, "subscribe", "Put a subscriber on lists")),
			remove("/v1/subscribers/{subscriber}/lists/{listId}", own(api.ScopeLists),
				changes("subscriber", "subscriber"), subscribers.leaveList, "leaveList",
				"Take a subscriber off a list, and stop its mail"),
			post("/v1/subscribers/{subscriber}/lists/{listId}/confirmation", own(api.ScopeLists),
				changes("subscriber", "subscriber"), forms.again, "askAgain",
				"Send the mail again that asks to confirm a subscription"),
			get("/v1/subscribers/{subscriber}/consents", own(api.ScopeLists), subscribers.listConsents,
				"listConsents", "List the steps of the subscriptions of a subscriber with their proofs, the latest first"),
		}},
		s.subscriberFileRoutes(), s.segmentRoutes(), s.campaignRoutes(), s.digestRoutes(), s.erasureRoutes(),
		s.whyRoutes(),
	}
}

// publicRoutes are for providers, recipients and operators. Most need no token.
func (s *Server) publicRoutes() []group {
	p := s.parts
	feedback := feedbackRoutes{feedback: p.Feedback, bounces: p.Bounces, bodies: s.bodies,
		proofs: s.proofs, settings: p.Settings}
	unsubscribes := unsubscribeRoutes{requests: p.Unsubscribe, digests: p.Digests, pages: s.pages,
		proofs: s.proofs, getUnsubscribes: s.opts.GetUnsubscribes, log: s.log}
	tracking := trackingRoutes{tracking: p.Tracking, pages: s.pages, proofs: s.proofs}
	forms := s.subscribing()
	instance := s.instance()
	return []group{
		{"Feedback", "Reports about mail that a relay has accepted.", []route{
			get("/v1/feedback", whole(api.ScopeAPI), feedback.feedbackStatus, "getFeedback",
				"Count the reports about sent mail, by source and result"),
			large(returnedBody, post("/v1/bounces", whole(api.ScopeAPI), unlogged("in the events of the message"),
				feedback.returnMail, "returnMail",
				"Process a mail that came back: a bounce, a delay notice, a complaint")),
			plainPost("/webhooks/provider", feedback.providerHook),
			plainPost("/webhooks/provider/{name}", feedback.providerHook),
			hookExists("/webhooks/provider/{name}"),
		}},
		{"Unsubscribe", "The pages for recipients.", []route{
			plain("/unsubscribe", public(), unsubscribes.askUnsubscribe),
			plainPost("/unsubscribe", unsubscribes.postUnsubscribe),
			plain("/preferences", public(), unsubscribes.showPreferences),
			plainPost("/preferences", unsubscribes.postPreferences),
		}},
		s.senderPages(),
		{"Subscribe", "The pages for subscribers.", []route{
			plain("/subscribers", public(), forms.showForm),
			plainPost("/subscribers", forms.takeForm),
			plain("/subscribers/confirm", public(), forms.askConfirm),
			plainPost("/subscribers/confirm", forms.postConfirm),
		}},
		s.archived(),
		{"Tracking", "The images and links in mail. Their token is in the URL.", []route{
			plain("/o/{token}", public(), tracking.trackOpen),
			plain("/c/{token}", public(), tracking.trackClick),
			plain("/track/open", public(), tracking.trackOpen),
			plain("/track/click", public(), tracking.trackClickTo),
		}},
		{"Instance", "Health, metrics and this document.", []route{
			instance.healthRoute(),
			instance.readyRoute(),
			instance.metricsRoute(s.opts.MetricsApart),
			profileRoute(),
			plain("/openapi.json", public(), instance.openAPIJSON),
			plain("/openapi.yaml", public(), instance.openAPIYAML),
			plain("/openapi-3.0.json", public(), instance.olderOpenAPI),
		}},
	}
}
