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

func (s *Server) routes() []group {
	return slices.Concat(s.mailRoutes(), s.queueRoutes(), s.senderRoutes(), s.audienceRoutes(),
		s.programRoutes(), s.publicRoutes())
}

// mailRoutes are about messages.
func (s *Server) mailRoutes() []group {
	p := s.parts
	submits := submitRoutes{accept: p.Submit, metrics: s.metrics, draining: &s.draining}
	messages := messageRoutes{box: p.Outbox}
	documents := documentRoutes{documents: p.Documents}
	return []group{
		{"Submit", "Submit messages for delivery.", []route{
			large(s.opts.maxSubmit(), on(api.Submit, own(api.ScopeSend), unlogged("in the email log"),
				submits.submit)),
			large(s.opts.maxSubmit(), on(api.SubmitAs, own(api.ScopeSend), unlogged("in the email log"),
				submits.submitAs)),
		}},
		{"Outbox", "Show, change and cancel queued messages.", []route{
			get(api.ListOutbox, own(api.ScopeOutbox), messages.listOutbox),
			long(on(api.CancelMessages, own(api.ScopeOutbox), changes("message", ""), messages.cancelAll)),
			get(api.GetMessage, own(api.ScopeOutbox), ofMine(messages, p.Outbox.Reader.Get)),
			on(api.CancelMessage, own(api.ScopeOutbox), changes("message", "queueId"), messages.cancelMessage),
			on(api.PatchMessage, own(api.ScopeOutbox), changes("message", "queueId"), messages.patchMessage),
			on(api.RetryMessage, own(api.ScopeOutbox), changes("message", "queueId"),
				ofMine(messages, p.Outbox.Operations.Retry)),
			get(api.MessageContent, own(api.ScopeOutbox), messages.messageContent),
		}},
		{"Email log", "Show the history of all messages.", []route{
			get(api.ListMessages, own(api.ScopeOutbox), messages.listMessages),
			get(api.GetRates, own(api.ScopeOutbox), messages.getRates),
			get(api.GetLoggedMessage, own(api.ScopeOutbox), messages.getLogged),
			get(api.ListMessageEvents, own(api.ScopeOutbox), messages.listEvents),
			get(api.ListMessageDeliveries, partly(api.ScopeAPI, api.ScopeOutbox),
				webhookRoutes{webhooks: p.Webhooks}.listAbout(messages)),
			get(api.DownloadMessage, own(api.ScopeOutbox), messages.downloadMessage),
			get(api.GetMessageParts, own(api.ScopeOutbox), messages.getParts),
			get(api.DownloadMessagePart, own(api.ScopeOutbox), messages.downloadPart),
		}},
		{"Search", "Search the text of all messages.", []route{
			get(api.SearchDocuments, own(api.ScopeOutbox), documents.searchDocuments),
			get(api.GetDocuments, whole(api.ScopeAPI), of(p.Documents.State)),
			on(api.RebuildDocuments, whole(api.ScopeAPI), changes("documents", ""), of(p.Documents.Rebuild)),
		}},
		{"Dead letters", "Show, replay and delete messages that failed permanently.", []route{
			get(api.ListDeadLetters, own(api.ScopeOutbox), messages.listDeadLetters),
			get(api.ListDeadLetterReasons, own(api.ScopeOutbox), messages.listDeadLetterReasons),
			get(api.ExplainReply, own(api.ScopeOutbox), messages.explainReply),
			get(api.GetDeadLetter, own(api.ScopeOutbox), ofMine(messages, p.Outbox.Reader.DeadLetter)),
			long(on(api.ReplayDeadLetters, own(api.ScopeOutbox), changes("message", ""), messages.replayDeadLetters)),
			on(api.ReplayDeadLetter, own(api.ScopeOutbox), changes("message", "queueId"), messages.replayDeadLetter),
			on(api.DeleteDeadLetter, own(api.ScopeOutbox), changes("message", "queueId"),
				ofMine(messages, p.Outbox.Operations.DeleteDeadLetter)),
		}},
	}
}

// queueRoutes are about the queues and the settings of the instance.
func (s *Server) queueRoutes() []group {
	p := s.parts
	queues := queueRoutes{box: p.Outbox, accounts: p.Accounts, documents: p.Documents, digests: p.Digests,
		settings: p.Settings, state: p.State, version: s.opts.Version}
	return []group{
		{"Queues", "Watch, pause and resume the queues.", []route{
			get(api.GetQueue, whole(api.ScopeAPI), queues.getQueue),
			on(api.PutQueue, whole(api.ScopeAPI), changes("queue", "queue"), queues.putQueue),
			get(api.GetStats, partly(api.ScopeMetrics, api.ScopeOutbox), queues.getStats),
			get(api.GetOverview, partly(api.ScopeMetrics, api.ScopeOutbox), overviewRoutes{p.Overview}.getOverview),
		}},
		{"Settings", "Show and change settings while Postroom runs.", []route{
			get(api.GetSettings, whole(api.ScopeAdmin), queues.getSettings),
			get(api.GetConfiguration, whole(api.ScopeAdmin), s.getConfiguration),
			on(api.UpdateSettings, whole(api.ScopeAdmin), changes("settings", ""), queues.postSettings),
		}},
	}
}

// senderRoutes are about accounts, gateways, keys and templates.
func (s *Server) senderRoutes() []group {
	p := s.parts
	changed, scope := p.Provision(), whole(api.ScopeAPI)
	accounts := accountRoutes{provision: changed, accounts: p.Accounts, senders: p.Senders, box: p.Outbox}
	keys := dkimRoutes{keys: p.DomainKeys}
	templates := templateRoutes{templates: p.Templates, accounts: p.Accounts}
	return []group{
		{"Accounts", "Manage senders and their relays.", []route{
			on(api.CreateAccount, scope, changes("account", ""),
				byBody[body[api.Account]](unbound(changed.CreateAccount))),
			get(api.ListAccounts, scope, accounts.listAccounts),
			get(api.GetAccount, own(api.ScopeAPI), accounts.getAccount),
			on(api.UpdateAccount, scope, changes("account", "account"), accounts.updateAccount),
			long(on(api.DeleteAccount, scope, changes("account", "account"),
				byID[accountInput](unbound(changed.DeleteAccount)))),
			get(api.GetUsage, own(api.ScopeAPI), accounts.getUsage),
			get(api.GetAccountDNS, own(api.ScopeAPI), accounts.getAccountDNS),
			get(api.ListSenders, own(api.ScopeAPI), accounts.listSenders),
			on(api.AddSender, own(api.ScopeAPI), changes("account", "account"), accounts.addSender),
			on(api.VerifySender, own(api.ScopeAPI), changes("account", "account"), accounts.verifySender),
			on(api.MailSender, own(api.ScopeAPI), changes("account", "account"), accounts.mailSender),
			on(api.RemoveSender, own(api.ScopeAPI), changes("account", "account"), accounts.removeSender),
			on(api.VerifyAccount, scope, unlogged("changes nothing"),
				byBody[body[api.VerifyRequest]](unbound(changed.Verify))),
		}},
		{"Gateways", "Manage relays that accounts share.", []route{
			on(api.CreateGateway, scope, changes("gateway", ""),
				byBody[body[api.Gateway]](unbound(changed.CreateGateway))),
			get(api.ListGateways, scope, byPage(p.Gateways.List)),
			get(api.GetGateway, scope, byID[gatewayInput](unbound(p.Gateways.Get))),
			on(api.UpdateGateway, scope, changes("gateway", "gateway"),
				byIDAndBody[updateGatewayInput](unboundChange(changed.UpdateGateway))),
			on(api.ImportProviderList, scope, changes("gateway", "gateway"), importProviderList(p)),
			get(api.GetProviderImport, scope, byID[gatewayInput](unbound(p.Provider.Progress))),
			on(api.DeleteGateway, scope, changes("gateway", "gateway"),
				byID[gatewayInput](unbound(changed.DeleteGateway))),
			on(api.SetGatewayWebhook, scope, changes("gateway", "gateway"),
				byIDAndBody[gatewayWebhookInput](unboundChange(changed.SetWebhook))),
			get(api.ListGatewayDomains, scope, byID[gatewayInput](unbound(changed.GatewayDomains))),
		}},
		{"DKIM", "Manage the keys that sign a domain's messages.", []route{
			on(api.PutDomainKey, scope, changes("dkim", "domain"), keys.putDomainKey),
			get(api.ListDomainKeys, scope, of(p.DomainKeys.List)),
			get(api.GetDomainKey, scope, byID[domainInput](unbound(p.DomainKeys.Get))),
			on(api.DeleteDomainKey, scope, changes("dkim", "domain"), keys.deleteDomainKey),
		}},
		{"Templates", "Manage stored templates, partials and layouts.", []route{
			grows(large(templateBody, on(api.CreateTemplate, own(api.ScopeAPI), changes("template", ""),
				templates.createTemplate))),
			get(api.ListTemplates, own(api.ScopeAPI), templates.listTemplates),
			large(templateBody, on(api.TryTemplate, own(api.ScopeAPI), unlogged("changes nothing"),
				byBody[body[api.TemplateTrial]](p.Templates.Try))),
			get(api.GetTemplate, own(api.ScopeAPI), byID[templateInput](p.Templates.Get)),
			grows(large(templateBody, on(api.UpdateTemplate, own(api.ScopeAPI), changes("template", "id"),
				byIDAndBody[updateTemplateInput](p.Templates.Update)))),
			on(api.DeleteTemplate, own(api.ScopeAPI), changes("template", "id"),
				byID[templateInput](p.Templates.Delete)),
			get(api.ListTemplateVersions, own(api.ScopeAPI), byID[templateInput](p.Templates.Versions)),
			get(api.GetTemplateVersion, own(api.ScopeAPI), templates.getTemplateVersion),
			grows(on(api.RestoreTemplate, own(api.ScopeAPI), changes("template", "id"), templates.restoreTemplate)),
			on(api.PreviewTemplate, own(api.ScopeAPI), unlogged("changes nothing"),
				byIDAndBody[previewTemplateInput](p.Templates.Preview)),
			long(on(api.FlushTemplates, own(api.ScopeAPI), changes("template", ""), templates.flushTemplates)),
		}},
	}
}

func (s *Server) subscriberFileRoutes() group {
	imports := subscriberImportRoutes{audience: s.parts.Audience}
	return group{"Files of subscribers", "Import and export subscribers.", []route{
		grows(upload(api.ImportSubscribers, own(api.ScopeLists), changes("subscriber", ""),
			imports.importSubscribers)),
		get(api.ListSubscriberImports, own(api.ScopeLists), byQuery(imports.audience.Imports.List)),
		get(api.GetSubscriberImport, own(api.ScopeLists),
			byKey[subscriberImportInput](imports.audience.Imports.Get)),
		on(api.StopSubscriberImport, own(api.ScopeLists), changes("subscriber", "id"), imports.stopImport),
		long(get(api.ExportSubscribers, own(api.ScopeLists), imports.exportSubscribers)),
	}}
}

func (s *Server) segmentRoutes() group {
	segments := s.parts.Audience.Segments
	return group{"Segments", "Manage rules that select subscribers.", []route{
		grows(large(segmentBody, on(api.CreateSegment, own(api.ScopeLists), changes("segment", ""),
			byBody[newBody[api.Segment]](segments.Create)))),
		get(api.ListSegments, readsLists(), byQuery(segments.Page)),
		get(api.GetSegment, readsLists(), byID[segmentInput](segments.Get)),
		grows(large(segmentBody, on(api.UpdateSegment, own(api.ScopeLists), changes("segment", "segment"),
			byIDAndBody[updateSegmentInput](segments.Update)))),
		on(api.DeleteSegment, own(api.ScopeLists), changes("segment", "segment"),
			deletes[segmentInput](segments.Delete)),
		on(api.CountSegment, own(api.ScopeLists), unlogged("changes nothing"),
			byID[segmentInput](segments.StartCount)),
		get(api.GetSegmentCount, readsLists(), byID[segmentInput](segments.Count)),
		get(api.ExplainSegment, readsLists(), segmentRoutes{segments}.explainSegment),
	}}
}

func (s *Server) campaignRoutes() group {
	all, scope := s.parts.Campaigns, own(api.ScopeCampaigns)
	campaigns := campaignRoutes{campaigns: all, draining: &s.draining}
	campaign := changes("campaign", "campaign")
	return group{"Campaigns", "Send one email to everyone on your lists.", []route{
		grows(on(api.CreateCampaign, scope, changes("campaign", ""), byBody[newBody[api.Campaign]](all.Create))),
		get(api.ListCampaigns, scope, byQuery(all.Page)),
		get(api.GetCampaign, scope, byID[campaignInput](all.Get)),
		grows(on(api.UpdateCampaign, scope, campaign, byIDAndBody[campaignChange[api.CampaignPatch]](all.Update))),
		long(on(api.DeleteCampaign, scope, campaign, deletes[campaignInput](all.Delete))),
		grows(on(api.CopyCampaign, scope, changes("campaign", ""), byIDAndBody[copyCampaignInput](all.Copy))),
		grows(on(api.SendCampaign, scope, campaign, campaigns.sendCampaign)),
		on(api.PauseCampaign, scope, campaign, byID[campaignInput](all.Pause)),
		on(api.ResumeCampaign, scope, campaign, byID[campaignInput](all.Resume)),
		on(api.CancelCampaign, scope, campaign, byID[campaignInput](all.Cancel)),
		on(api.PreviewCampaign, scope, unlogged("changes nothing"), byIDAndBody[previewCampaignInput](all.Preview)),
		on(api.CheckCampaign, scope, unlogged("changes nothing"), byID[campaignInput](all.Check)),
		on(api.TestCampaign, scope, campaign, campaigns.testCampaign),
		get(api.ListCampaignRecipients, scope, campaigns.listCampaignRecipients),
		long(get(api.ExportCampaignRecipients, scope, campaigns.exportCampaignRecipients)),
		on(api.SettleCampaign, scope, campaign, byIDAndBody[settleCampaignInput](all.Settle)),
		grows(on(api.ResendCampaign, scope, campaign, campaigns.resendCampaign)),
		on(api.DecideCampaign, scope, campaign, byIDAndBody[campaignChange[api.CampaignWinner]](all.Winner)),
		get(api.GetCampaignStats, scope, campaigns.campaignStats),
		get(api.WatchCampaignStats, scope, campaigns.liveStats),
		long(on(api.RecountCampaign, scope, campaign, byID[campaignInput](all.Recount))),
	}}
}

// audienceRoutes are about lists, subscribers and campaigns.
func (s *Server) audienceRoutes() []group {
	lists := s.parts.Audience.Lists
	subscribers := subscriberRoutes{audience: s.parts.Audience}
	forms := s.subscribing()
	return []group{
		{"Lists", "Manage mailing lists.", []route{
			grows(large(listMailBody, on(api.CreateList, own(api.ScopeLists), changes("list", ""),
				byBody[newBody[api.List]](lists.Create)))),
			get(api.ListLists, readsLists(), byQuery(lists.Page)),
			get(api.GetList, readsLists(), byID[listInput](lists.Get)),
			grows(large(listMailBody, on(api.UpdateList, own(api.ScopeLists), changes("list", "listId"),
				byIDAndBody[updateListInput](lists.Update)))),
			long(on(api.DeleteList, own(api.ScopeLists), changes("list", "listId"), deletes[listInput](lists.Delete))),
			get(api.GetListForm, readsLists(), forms.form),
		}},
		{"Subscribers", "Manage the people who receive newsletters.", []route{
			grows(on(api.CreateSubscriber, own(api.ScopeLists), changes("subscriber", ""),
				subscribers.createSubscriber)),
			get(api.ListSubscribers, own(api.ScopeLists), byQuery(s.parts.Audience.Page)),
			get(api.GetSubscriber, own(api.ScopeLists), byKey[subscriberInput](s.parts.Audience.Get)),
			grows(on(api.UpdateSubscriber, own(api.ScopeLists), changes("subscriber", "subscriber"),
				subscribers.updateSubscriber)),
			on(api.DeleteSubscriber, own(api.ScopeLists), changes("subscriber", "subscriber"),
				subscribers.deleteSubscriber),
			grows(on(api.Subscribe, own(api.ScopeLists), changes("subscriber", "subscriber"), subscribers.subscribe)),
			on(api.LeaveList, own(api.ScopeLists), changes("subscriber", "subscriber"), subscribers.leaveList),
			on(api.AskAgain, own(api.ScopeLists), changes("subscriber", "subscriber"), forms.again),
			get(api.ListConsents, own(api.ScopeLists), byKey[subscriberInput](s.parts.Audience.Consents)),
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
		{"Feedback", "Show reports about messages that a relay has accepted.", []route{
			get(api.GetFeedback, whole(api.ScopeAPI), of(p.Feedback.Status)),
			large(returnedBody, on(api.ReturnMail, whole(api.ScopeAPI), unlogged("in the events of the message"),
				feedback.returnMail)),
			plainPost("/webhooks/provider", feedback.providerHook),
			plainPost("/webhooks/provider/{name}", feedback.providerHook),
			hookExists("/webhooks/provider/{name}"),
			plainPost("/webhooks/provider/{name}/{gateway}", feedback.providerHook),
			hookExists("/webhooks/provider/{name}/{gateway}"),
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
		{"Instance", "Show health, metrics and this document.", []route{
			instance.healthRoute(),
			instance.readyRoute(),
			instance.metricsRoute(s.opts.MetricsApart),
			profileRoute(),
			plain("/openapi.json", public(), instance.serveSpec("json", func(s spec) []byte { return s.json })),
			plain("/openapi.yaml", public(), instance.serveSpec("yaml", func(s spec) []byte { return s.yaml })),
			plain("/openapi-3.0.json", public(), instance.serveSpec("json", func(s spec) []byte { return s.older })),
		}},
	}
}
