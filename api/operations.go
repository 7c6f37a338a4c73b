package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Operation is an operation of the API. The server's table of routes and the OpenAPI document take its route,
// its id and its sentence from here.
type Operation struct {
	Group, ID, Summary string
	Method, Path       string       // the path as in OpenAPI
	In                 reflect.Type // the query or the body; nil: the path is all
	AsQuery            bool         // In is the query
	Media              string       // media type of a body that isn't JSON
	Raw                bool         // the response isn't JSON
	Paged              bool         // the response is a page of what the query selects, if that chooses pages
}

// Params returns the names in the braces of the path.
func (o Operation) Params() (names []string) {
	for _, part := range strings.Split(o.Path, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		names = append(names, name)
	}
	return names
}

// Do sends a request and writes the response to w while it arrives. The ids replace the braces of the path,
// in order. An upload and a response that isn't JSON have no timeout except ctx's.
func (o Operation) Do(
	ctx context.Context, c *Client, q url.Values, body io.Reader, w io.Writer, ids ...any,
) error {
	req := newRequest(o.Method+" "+o.Path+" "+o.Media, ids)
	if req.query, req.body = q, body; o.Media == "" {
		req.kind = "application/json"
	}
	if o.Raw || o.Media != "" {
		c = c.untimed()
	}
	return c.copy(ctx, req, w)
}

// routed is a route of any kind.
type routed interface{ operation() Operation }

func (f Fetch[Out]) operation() Operation {
	o := split(string(f))
	o.Raw = reflect.TypeFor[Out]() == reflect.TypeFor[[]byte]()
	return o
}

func (r Call[In, Out]) operation() Operation {
	o := split(string(r))
	o.In, o.Paged = reflect.TypeFor[In](), o.Method == http.MethodGet
	return o
}

func (d Download[Query]) operation() Operation {
	o := split(string(d))
	o.In, o.Raw = reflect.TypeFor[Query](), true
	return o
}

func (u Upload[Options, Out]) operation() Operation {
	o := split(string(u))
	o.In, o.AsQuery = reflect.TypeFor[Options](), true
	return o
}

// split returns what a route's text says.
func split(route string) (o Operation) {
	var rest string
	o.Method, rest, _ = strings.Cut(route, " ")
	rest, o.Media, _ = strings.Cut(rest, " ")
	o.Path, o.AsQuery = strings.CutSuffix(rest, "?")
	o.AsQuery = o.AsQuery || o.Method == http.MethodGet || o.Method == http.MethodDelete
	return o
}

func named(id, summary string, route routed) Operation {
	o := route.operation()
	o.ID, o.Summary = id, summary
	return o
}

// about puts operations under a heading.
func about(group string, all ...Operation) []Operation {
	for i := range all {
		all[i].Group = group
	}
	return all
}

// Operations returns the operations of the API, in the order of the OpenAPI document.
func Operations() []Operation { return slices.Clone(operations) }

var operations = slices.Concat(
	about("Submit",
		named("submit", "Queue a message for delivery", Submit),
		named("submitAs", "Queue a message of an account for delivery", SubmitAs),
	),
	about("Outbox",
		named("listOutbox", "List queued messages, oldest first", ListOutbox),
		named("cancelMessages", "Cancel all queued messages that match", CancelMessages),
		named("getMessage", "Show a queued message", GetMessage),
		named("cancelMessage", "Cancel a queued message", CancelMessage),
		named("patchMessage", "Change when and how a queued message is sent", PatchMessage),
		named("retryMessage", "Attempt delivery now", RetryMessage),
		named("messageContent", "Download a queued message as it will be sent", MessageContent),
	),
	about("Email log",
		named("listMessages", "List the email log, newest message first", ListMessages),
		named("getRates", "Count what became of mail, by hour and day, for 13 months", GetRates),
		named("getLoggedMessage", "Show a message of the email log, with all of its attempts", GetLoggedMessage),
		named("listMessageEvents", "List the events of a message, oldest first", ListMessageEvents),
		named("listMessageDeliveries", "List the webhook deliveries of the events of a message, oldest first", ListMessageDeliveries),
		named("downloadMessage", "Download a message for as long as its content is stored", DownloadMessage),
		named("getMessageParts", "Take a message apart: its header, its texts, and what its files are", GetMessageParts),
		named("downloadMessagePart", "Download a text or a file of a message, decoded", DownloadMessagePart),
	),
	about("Search",
		named("searchDocuments", "Find messages, also those that are no longer in the email log", SearchDocuments),
		named("getDocuments", "Show the state of the search index", GetDocuments),
		named("rebuildDocuments", "Rebuild the search index; the current one is used meanwhile", RebuildDocuments),
	),
	about("Dead letters",
		named("listDeadLetters", "List dead letters, oldest first", ListDeadLetters),
		named("listDeadLetterReasons", "Count dead letters by the reason why they failed", ListDeadLetterReasons),
		named("explainReply", "Say what a mail server's reply means, and what to do about it", ExplainReply),
		named("getDeadLetter", "Show a dead letter with its content", GetDeadLetter),
		named("replayDeadLetters", "Queue all dead letters that match again", ReplayDeadLetters),
		named("replayDeadLetter", "Queue a dead letter again, for the failed recipients or with corrections", ReplayDeadLetter),
		named("deleteDeadLetter", "Delete a dead letter", DeleteDeadLetter),
	),
	about("Queues",
		named("getQueue", "Show a queue", GetQueue),
		named("putQueue", "Pause or resume a queue", PutQueue),
		named("stats", "Show counters, queues and alerts", GetStats),
		named("getOverview", "Say whether mail flows, what is wrong, and where it is mended", GetOverview),
	),
	about("Settings",
		named("getSettings", "Show settings; those that the query names, such as queueKeep=true, or all", GetSettings),
		named("getConfiguration", "Show the settings that this process was started with, and where each came from", GetConfiguration),
		named("updateSettings", "Change settings", UpdateSettings),
	),
	about("Accounts",
		named("createAccount", "Create an account, or replace it", CreateAccount),
		named("listAccounts", "List accounts", ListAccounts),
		named("getAccount", "Show an account", GetAccount),
		named("updateAccount", "Change an account", UpdateAccount),
		named("deleteAccount", "Delete an account and its queued messages", DeleteAccount),
		named("getUsage", "Show what an account uses of its quotas", GetUsage),
		named("getAccountDNS", "Show the DNS records that an account needs, and what is published in their place", GetAccountDNS),
		named("listSenders", "List the addresses and domains that an account may send as", ListSenders),
		named("addSender", "Add an address or a domain that an account may send as", AddSender),
		named("verifySender", "Look for the DNS record that verifies a domain", VerifySender),
		named("mailSender", "Send a mail to an address, whose link lets the account send as it", MailSender),
		named("removeSender", "Remove an address or a domain that an account may send as", RemoveSender),
		named("verifyAccount", "Try to log in to a relay", VerifyAccount),
	),
	about("Gateways",
		named("createGateway", "Create a gateway, or replace it", CreateGateway),
		named("listGateways", "List gateways", ListGateways),
		named("getGateway", "Show a gateway", GetGateway),
		named("updateGateway", "Change a gateway", UpdateGateway),
		named("importProviderList", "Import the suppression list of a gateway's provider, in the background", ImportProviderList),
		named("providerImport", "Show the progress of the import of a provider's suppression list", GetProviderImport),
		named("deleteGateway", "Delete a gateway that no account lists", DeleteGateway),
	),
	about("DKIM",
		named("putDomainKey", "Store the key of a domain; the answer has the DNS record to publish", PutDomainKey),
		named("listDomainKeys", "List the keys of all domains", ListDomainKeys),
		named("getDomainKey", "Show the key of a domain, with its DNS record", GetDomainKey),
		named("deleteDomainKey", "Delete the key of a domain", DeleteDomainKey),
	),
	about("Templates",
		named("createTemplate", "Store a template, a partial or a layout", CreateTemplate),
		named("listTemplates", "List templates, without their content", ListTemplates),
		named("tryTemplate", "Render a template that is not stored", TryTemplate),
		named("getTemplate", "Show a template", GetTemplate),
		named("updateTemplate", "Change a template; new content makes a new version", UpdateTemplate),
		named("deleteTemplate", "Delete a template that no other one uses", DeleteTemplate),
		named("listTemplateVersions", "List the stored versions of a template, the current one first", ListTemplateVersions),
		named("getTemplateVersion", "Show a version of a template", GetTemplateVersion),
		named("restoreTemplate", "Restore the content of a version, as a new version", RestoreTemplate),
		named("previewTemplate", "Render a template", PreviewTemplate),
		named("flushTemplates", "Delete all templates of an account", FlushTemplates),
	),
	about("Lists",
		named("createList", "Create a list", CreateList),
		named("listLists", "List lists, by their ids", ListLists),
		named("getList", "Show a list, with its numbers of subscribers", GetList),
		named("updateList", "Change a list", UpdateList),
		named("deleteList", "Delete a list and its subscriptions; the subscribers stay", DeleteList),
		named("getListForm", "Show the public form of a list: its address, and html to embed", GetListForm),
	),
	about("Subscribers",
		named("createSubscriber", "Create a subscriber, and put it on lists", CreateSubscriber),
		named("listSubscribers", "List the subscribers of an account, in the order in which they came", ListSubscribers),
		named("getSubscriber", "Show a subscriber", GetSubscriber),
		named("updateSubscriber", "Change a subscriber", UpdateSubscriber),
		named("deleteSubscriber", "Delete a subscriber with its subscriptions; suppressions stay", DeleteSubscriber),
		named("subscribe", "Put a subscriber on lists", Subscribe),
		named("leaveList", "Take a subscriber off a list, and stop its mail", LeaveList),
		named("askAgain", "Send the mail again that asks to confirm a subscription", AskAgain),
		named("listConsents", "List the steps of the subscriptions of a subscriber with their proofs, the latest first", ListConsents),
	),
	about("Files of subscribers",
		named("importSubscribers", "Import a file of any size; the answer comes after its end", ImportSubscribers),
		named("listSubscriberImports", "List the imports of the last week, the latest first", ListSubscriberImports),
		named("subscriberImport", "Show the progress of an import, while it runs and for a week", GetSubscriberImport),
		named("stopSubscriberImport", "Stop a running import, or forget one that has ended", StopSubscriberImport),
		named("exportSubscribers", "Download subscribers, in a form that can be imported", ExportSubscribers),
	),
	about("Segments",
		named("createSegment", "Store a rule that selects subscribers", CreateSegment),
		named("listSegments", "List segments, by their ids", ListSegments),
		named("getSegment", "Show a segment, with its rule in words", GetSegment),
		named("updateSegment", "Change a segment", UpdateSegment),
		named("deleteSegment", "Delete a segment", DeleteSegment),
		named("countSegment", "Begin to count the subscribers of a segment", CountSegment),
		named("segmentCount", "Show the progress or the result of the last count, with a sample", GetSegmentCount),
		named("explainSegment", "Say why a subscriber is in a segment, or not", ExplainSegment),
	),
	about("Campaigns",
		named("createCampaign", "Store the draft of a campaign", CreateCampaign),
		named("listCampaigns", "List campaigns, the latest first", ListCampaigns),
		named("getCampaign", "Show a campaign with its state", GetCampaign),
		named("updateCampaign", "Change a campaign that is not being sent", UpdateCampaign),
		named("deleteCampaign", "Delete a campaign that is not being sent and that no segment names, and what is known of its recipients", DeleteCampaign),
		named("copyCampaign", "Make a draft of a campaign's content and audience", CopyCampaign),
		named("sendCampaign", "Begin to send a campaign, now or at a time", SendCampaign),
		named("pauseCampaign", "Stop a campaign: no further mail of it is sent", PauseCampaign),
		named("resumeCampaign", "Go on with a campaign that is paused or held", ResumeCampaign),
		named("cancelCampaign", "End a campaign: who has not got it will not", CancelCampaign),
		named("previewCampaign", "Show the mail of a campaign as one person would get it", PreviewCampaign),
		named("checkCampaign", "Find what keeps a campaign from being sent, and what should be looked at", CheckCampaign),
		named("testCampaign", "Mail a campaign to given addresses", TestCampaign),
		named("listCampaignRecipients", "List what became of the people of a campaign", ListCampaignRecipients),
		named("exportCampaignRecipients", "Download what became of the people of a campaign, as CSV", ExportCampaignRecipients),
		named("settleCampaign", "Count recipients in doubt as sent", SettleCampaign),
		named("resendCampaign", "Begin the next run of a campaign, to some of its people", ResendCampaign),
		named("decideCampaign", "Decide which variant wins the test of a campaign", DecideCampaign),
		named("getCampaignStats", "Show the numbers of a campaign", GetCampaignStats),
		named("watchCampaignStats", "Show the numbers of a campaign each second, as server-sent events, while it is under way", WatchCampaignStats),
		named("recountCampaign", "Compare the counters of a campaign with what is stored of each recipient", RecountCampaign),
	),
	about("Digests",
		named("takeDigestEvents", "Take in an event, or up to 1,000; each has its own answer", TakeDigestEvents),
		named("deleteDigestEvents", "Delete events that are not mailed yet", DeleteDigestEvents),
		named("createDigestKind", "Store what is known of a category", CreateDigestKind),
		named("listDigestKinds", "List what is known of categories", ListDigestKinds),
		named("getDigestKind", "Show what is known of a category", GetDigestKind),
		named("updateDigestKind", "Change what is known of a category", UpdateDigestKind),
		named("deleteDigestKind", "Delete what is known of a category; its events stay", DeleteDigestKind),
		named("listDigestRecipients", "List the readers of an account, by their ids", ListDigestRecipients),
		named("getDigestRecipient", "Show a reader, with the next times and what waits", GetDigestRecipient),
		named("putDigestRecipient", "Store a reader; its preferences are replaced", PutDigestRecipient),
		named("patchDigestRecipient", "Change a reader, and the preferences of the categories that the request names", PatchDigestRecipient),
		named("deleteDigestRecipient", "Delete a reader with everything that waits", DeleteDigestRecipient),
		named("listWaitingDigestEvents", "List the events of a reader that are not mailed yet, oldest first", ListWaitingDigestEvents),
		named("previewDigest", "Show what would be mailed to a reader now", PreviewDigest),
		named("sendDigest", "Mail what waits for a reader now", SendDigest),
		named("computeDigestTimes", "Say when a preference comes", ComputeDigestTimes),
		named("listDigestRuns", "List runs, the newest first", ListDigestRuns),
		named("getDigestRun", "Show a run with its groups", GetDigestRun),
		named("retryDigestRun", "Let a failed run be tried again", RetryDigestRun),
	),
	about("Erasures",
		named("erasePerson", "Erase a person everywhere; the answer is the same whether the person is known or not", ErasePerson),
		named("getErasure", "Show how far an erasure is, or its receipt", GetErasure),
		named("exportPerson", "Return what there is of a person", ExportPerson),
	),
	about("Why",
		named("whyTo", "Say why an address did or did not get its mail, from all that is known of it", WhyTo),
	),
	about("Suppressions",
		named("listSuppressions", "List suppressions, in no particular order", ListSuppressions),
		named("addSuppressions", "Add a suppression, or up to 1,000", AddSuppressions),
		named("removeSuppression", "Remove the suppressions of an address or a domain in one scope", RemoveSuppression),
		named("checkSuppression", "List all suppressions of an address and its domain", CheckSuppression),
		named("importSuppressions", "Import a CSV file of any size; the answer comes after its end", ImportSuppressions),
		named("suppressionImport", "Show the progress of an import, while it runs and for a week", GetSuppressionImport),
		named("exportSuppressions", "Download suppressions as CSV, which can be imported", ExportSuppressions),
		named("listBlocklists", "List the lists that have suppressions", ListBlocklists),
		named("getBlocklist", "List the suppressions of a list", GetBlocklist),
		named("addToBlocklist", "Add an address to the suppressions of a list", AddToBlocklist),
		named("removeFromBlocklist", "Remove an address from the suppressions of a list", RemoveFromBlocklist),
	),
	about("Tokens",
		named("createToken", "Create an access token", CreateToken),
		named("listTokens", "List access tokens", ListTokens),
		named("getToken", "Show an access token", GetToken),
		named("rotateToken", "Make an access token in place of another, which works on for a while", RotateToken),
		named("getTokenUsage", "Show what a token uses of its quota", GetTokenUsage),
		named("deleteToken", "Delete an access token", DeleteToken),
	),
	about("People",
		named("createPerson", "Create a person; only this answer has the link to set a password", CreatePerson),
		named("listPeople", "List persons", ListPeople),
		named("getPerson", "Show a person", GetPerson),
		named("updatePerson", "Change a person; this ends the person's sessions", UpdatePerson),
		named("deletePerson", "Delete a person", DeletePerson),
		named("linkPerson", "Make a one-time link by which a person sets a new password", LinkPerson),
		named("signOutPerson", "End the sessions of a person", SignOutPerson),
		named("resetTOTP", "Remove the second factor of a person who lost it", ResetTOTP),
		named("listSessions", "List the sessions of the pages, newest first", ListSessions),
		named("endSession", "End a session of the pages", EndSession),
	),
	about("Me",
		named("getMe", "Show the person of the session", GetMe),
		named("changePassword", "Replace the own password; this ends the other sessions", ChangePassword),
		named("enrolTOTP", "Make a secret for an app that shows codes", EnrolTOTP),
		named("confirmTOTP", "Have logins need codes from now on, with a first one; this ends the other sessions", ConfirmTOTP),
		named("removeTOTP", "Have logins need no codes any more; this ends the other sessions", RemoveTOTP),
		named("chooseAccount", "Choose the account that the session acts for", ChooseAccount),
	),
	about("Audit log",
		named("listAudit", "List the changes that were made, logins and refusals, newest first", ListAudit),
		named("exportAudit", "Download the audit log as JSON lines, oldest first", ExportAudit),
		named("verifyAudit", "Check that nothing of the audit log was changed or deleted", VerifyAudit),
	),
	about("Webhooks",
		named("createEndpoint", "Create a webhook endpoint; only this answer has its secret", CreateEndpoint),
		named("listEndpoints", "List webhook endpoints", ListEndpoints),
		named("getEndpoint", "Show a webhook endpoint", GetEndpoint),
		named("updateEndpoint", "Change a webhook endpoint", UpdateEndpoint),
		named("patchEndpoint", "Change fields of a webhook endpoint", PatchEndpoint),
		named("rotateEndpointSecret", "Replace the secret of a webhook endpoint; only this answer has the new one", RotateEndpointSecret),
		named("wakeEndpoint", "End the rest of a webhook endpoint that failed", WakeEndpoint),
		named("getEndpointStats", "Show the numbers of the requests to a webhook endpoint, by hour", GetEndpointStats),
		named("deleteEndpoint", "Delete a webhook endpoint", DeleteEndpoint),
		named("testEndpoint", "Send a test event", TestEndpoint),
		named("replayEndpoint", "Send the events since a time again", ReplayEndpoint),
		named("getEndpointReplay", "Show how far the last replay in the background is", GetEndpointReplay),
		named("listDeliveries", "List deliveries, newest first", ListDeliveries),
		named("getDelivery", "Show a delivery with its body", GetDelivery),
		named("redeliver", "Send a delivery again", Redeliver),
		named("listWebhookRoutes", "List webhook endpoints, with the fields of EmailEngine's webhook routes", ListWebhookRoutes),
		named("getWebhookRoute", "Show a webhook endpoint, with the fields of EmailEngine's webhook routes", GetWebhookRoute),
	),
	about("Feedback",
		named("getFeedback", "Count the reports about sent mail, by source and result", GetFeedback),
		named("returnMail", "Process a mail that came back: a bounce, a delay notice, a complaint", ReturnMail),
	),
	about("Instance",
		named("health", "Show whether the process is alive", GetHealth),
		named("ready", "Show whether mail can be accepted, and what Redis can lose in a crash", GetReady),
	),
)
