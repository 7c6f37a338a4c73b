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
		named("submitAs", "Queue an account's message for delivery", SubmitAs),
	),
	about("Outbox",
		named("listOutbox", "List queued messages, oldest first", ListOutbox),
		named("cancelMessages", "Cancel all matching queued messages", CancelMessages),
		named("getMessage", "Show a queued message", GetMessage),
		named("cancelMessage", "Cancel a queued message", CancelMessage),
		named("patchMessage", "Change when and how a queued message is sent", PatchMessage),
		named("retryMessage", "Attempt delivery now", RetryMessage),
		named("messageContent", "Download a queued message as it will be sent", MessageContent),
	),
	about("Email log",
		named("listMessages", "List the email log, newest first", ListMessages),
		named("getRates", "Count the results of messages by hour and day, for 13 months", GetRates),
		named("getLoggedMessage", "Show a message in the email log with all its attempts", GetLoggedMessage),
		named("listMessageEvents", "List a message's events, oldest first", ListMessageEvents),
		named("listMessageDeliveries", "List the webhook deliveries of a message's events, oldest first", ListMessageDeliveries),
		named("downloadMessage", "Download a message while its content is stored", DownloadMessage),
		named("getMessageParts", "Show a message's header, texts and list of files", GetMessageParts),
		named("downloadMessagePart", "Download a message's text or file, decoded", DownloadMessagePart),
	),
	about("Search",
		named("searchDocuments", "Search messages, including messages that are no longer in the email log", SearchDocuments),
		named("getDocuments", "Show the state of the search index", GetDocuments),
		named("rebuildDocuments", "Rebuild the search index; the current one stays in use", RebuildDocuments),
	),
	about("Dead letters",
		named("listDeadLetters", "List dead letters, oldest first", ListDeadLetters),
		named("listDeadLetterReasons", "Count dead letters by reason", ListDeadLetterReasons),
		named("explainReply", "Explain a mail server's reply", ExplainReply),
		named("getDeadLetter", "Show a dead letter with its content", GetDeadLetter),
		named("replayDeadLetters", "Replay all matching dead letters", ReplayDeadLetters),
		named("replayDeadLetter", "Replay a dead letter, to the failed recipients or with corrections", ReplayDeadLetter),
		named("deleteDeadLetter", "Delete a dead letter", DeleteDeadLetter),
	),
	about("Queues",
		named("getQueue", "Show a queue", GetQueue),
		named("putQueue", "Pause or resume a queue", PutQueue),
		named("stats", "Show counters, queues and alerts", GetStats),
		named("getOverview", "Show whether messages are being sent, and any problems with their fixes", GetOverview),
	),
	about("Settings",
		named("getSettings", "Show all settings, or the settings that the query names, such as queueKeep=true", GetSettings),
		named("getConfiguration", "Show the settings that this process started with, and their sources", GetConfiguration),
		named("updateSettings", "Change settings", UpdateSettings),
	),
	about("Accounts",
		named("createAccount", "Create or replace an account", CreateAccount),
		named("listAccounts", "List accounts", ListAccounts),
		named("getAccount", "Show an account", GetAccount),
		named("updateAccount", "Change an account", UpdateAccount),
		named("deleteAccount", "Delete an account and its queued messages", DeleteAccount),
		named("getUsage", "Show an account's quota usage", GetUsage),
		named("getAccountDNS", "Check the DNS records that an account needs", GetAccountDNS),
		named("listSenders", "List the addresses and domains that an account may send as", ListSenders),
		named("addSender", "Let an account send as an address or a domain", AddSender),
		named("verifySender", "Verify a domain by its DNS record", VerifySender),
		named("mailSender", "Send an email with a link that verifies an address", MailSender),
		named("removeSender", "Stop an account from sending as an address or a domain", RemoveSender),
		named("verifyAccount", "Test the login to a relay", VerifyAccount),
	),
	about("Gateways",
		named("createGateway", "Create or replace a gateway", CreateGateway),
		named("listGateways", "List gateways", ListGateways),
		named("getGateway", "Show a gateway", GetGateway),
		named("updateGateway", "Change a gateway", UpdateGateway),
		named("importProviderList", "Import the suppression list of a gateway's provider in the background", ImportProviderList),
		named("providerImport", "Show the progress of importing a provider's suppression list", GetProviderImport),
		named("deleteGateway", "Delete a gateway that no account uses", DeleteGateway),
		named("setGatewayWebhook", "Create or fix the webhook at a gateway's provider", SetGatewayWebhook),
		named("listGatewayDomains", "List the sender domains that a gateway's provider knows", ListGatewayDomains),
	),
	about("DKIM",
		named("putDomainKey", "Store a domain's key; the response has the DNS record to publish", PutDomainKey),
		named("listDomainKeys", "List the keys of all domains", ListDomainKeys),
		named("getDomainKey", "Show a domain's key and DNS record", GetDomainKey),
		named("deleteDomainKey", "Delete a domain's key", DeleteDomainKey),
	),
	about("Templates",
		named("createTemplate", "Store a template, a partial or a layout", CreateTemplate),
		named("listTemplates", "List templates without their content", ListTemplates),
		named("tryTemplate", "Render a template without storing it", TryTemplate),
		named("getTemplate", "Show a template", GetTemplate),
		named("updateTemplate", "Change a template; new content creates a new version", UpdateTemplate),
		named("deleteTemplate", "Delete a template that no other template uses", DeleteTemplate),
		named("listTemplateVersions", "List a template's stored versions, newest first", ListTemplateVersions),
		named("getTemplateVersion", "Show a version of a template", GetTemplateVersion),
		named("restoreTemplate", "Restore a version's content as a new version", RestoreTemplate),
		named("previewTemplate", "Render a template", PreviewTemplate),
		named("flushTemplates", "Delete all templates of an account", FlushTemplates),
	),
	about("Lists",
		named("createList", "Create a list", CreateList),
		named("listLists", "List lists, sorted by ID", ListLists),
		named("getList", "Show a list with its subscriber counts", GetList),
		named("updateList", "Change a list", UpdateList),
		named("deleteList", "Delete a list and its subscriptions; the subscribers stay", DeleteList),
		named("getListForm", "Show a list's public form: its URL, and HTML to embed", GetListForm),
	),
	about("Subscribers",
		named("createSubscriber", "Create a subscriber and add it to lists", CreateSubscriber),
		named("listSubscribers", "List an account's subscribers, oldest first", ListSubscribers),
		named("getSubscriber", "Show a subscriber", GetSubscriber),
		named("updateSubscriber", "Change a subscriber", UpdateSubscriber),
		named("deleteSubscriber", "Delete a subscriber with its subscriptions; suppressions stay", DeleteSubscriber),
		named("subscribe", "Add a subscriber to lists", Subscribe),
		named("leaveList", "Unsubscribe a subscriber from a list", LeaveList),
		named("askAgain", "Resend a confirmation email", AskAgain),
		named("listConsents", "List a subscriber's consent records, newest first", ListConsents),
	),
	about("Files of subscribers",
		named("importSubscribers", "Import a file of any size; the response follows its end", ImportSubscribers),
		named("listSubscriberImports", "List the imports of the last week, newest first", ListSubscriberImports),
		named("subscriberImport", "Show an import's progress or, for a week, its result", GetSubscriberImport),
		named("stopSubscriberImport", "Stop a running import, or delete a finished one", StopSubscriberImport),
		named("exportSubscribers", "Download subscribers in a format that you can import", ExportSubscribers),
	),
	about("Segments",
		named("createSegment", "Store a rule that selects subscribers", CreateSegment),
		named("listSegments", "List segments, sorted by ID", ListSegments),
		named("getSegment", "Show a segment with a description of its rule", GetSegment),
		named("updateSegment", "Change a segment", UpdateSegment),
		named("deleteSegment", "Delete a segment", DeleteSegment),
		named("countSegment", "Start counting a segment's subscribers", CountSegment),
		named("segmentCount", "Show the last count's progress or result, with a sample", GetSegmentCount),
		named("explainSegment", "Explain why a subscriber is in a segment or not", ExplainSegment),
	),
	about("Campaigns",
		named("createCampaign", "Create a campaign as a draft", CreateCampaign),
		named("listCampaigns", "List campaigns, newest first", ListCampaigns),
		named("getCampaign", "Show a campaign and its state", GetCampaign),
		named("updateCampaign", "Change a campaign that isn't being sent", UpdateCampaign),
		named("deleteCampaign", "Delete a campaign and its recipients' results, unless it is being sent or a segment uses it", DeleteCampaign),
		named("copyCampaign", "Copy a campaign's content and audience to a draft", CopyCampaign),
		named("sendCampaign", "Send a campaign now, or schedule it", SendCampaign),
		named("pauseCampaign", "Pause a campaign", PauseCampaign),
		named("resumeCampaign", "Resume a paused or held campaign", ResumeCampaign),
		named("cancelCampaign", "Cancel a campaign; the remaining recipients don't get it", CancelCampaign),
		named("previewCampaign", "Preview a campaign as one subscriber would see it", PreviewCampaign),
		named("checkCampaign", "Check a campaign for errors and warnings", CheckCampaign),
		named("testCampaign", "Send a test of a campaign to given addresses", TestCampaign),
		named("listCampaignRecipients", "List a campaign's recipients and their results", ListCampaignRecipients),
		named("exportCampaignRecipients", "Download a campaign's recipients and their results as CSV", ExportCampaignRecipients),
		named("settleCampaign", "Mark recipients in doubt as sent", SettleCampaign),
		named("resendCampaign", "Send a campaign again to some of its recipients", ResendCampaign),
		named("decideCampaign", "Choose the winning variant of a campaign's test", DecideCampaign),
		named("getCampaignStats", "Show a campaign's numbers", GetCampaignStats),
		named("watchCampaignStats", "Stream a running campaign's numbers every second as server-sent events", WatchCampaignStats),
		named("recountCampaign", "Recalculate a campaign's counters from its stored recipients", RecountCampaign),
	),
	about("Digests",
		named("takeDigestEvents", "Submit up to 1,000 digest events; each has its own result", TakeDigestEvents),
		named("deleteDigestEvents", "Withdraw pending digest events", DeleteDigestEvents),
		named("createDigestKind", "Create a category's settings", CreateDigestKind),
		named("listDigestKinds", "List category settings", ListDigestKinds),
		named("getDigestKind", "Show a category's settings", GetDigestKind),
		named("updateDigestKind", "Change a category's settings", UpdateDigestKind),
		named("deleteDigestKind", "Delete a category's settings; its events stay", DeleteDigestKind),
		named("listDigestRecipients", "List an account's digest recipients, sorted by ID", ListDigestRecipients),
		named("getDigestRecipient", "Show a recipient with the next times and pending events", GetDigestRecipient),
		named("putDigestRecipient", "Create or replace a recipient and its preferences", PutDigestRecipient),
		named("patchDigestRecipient", "Change a recipient and the preferences in the request", PatchDigestRecipient),
		named("deleteDigestRecipient", "Delete a recipient and its pending events", DeleteDigestRecipient),
		named("listWaitingDigestEvents", "List a recipient's pending events, oldest first", ListWaitingDigestEvents),
		named("previewDigest", "Preview a recipient's next digest", PreviewDigest),
		named("sendDigest", "Send a recipient's digest now", SendDigest),
		named("computeDigestTimes", "Calculate the times of a preference", ComputeDigestTimes),
		named("listDigestRuns", "List runs, newest first", ListDigestRuns),
		named("getDigestRun", "Show a run and its groups", GetDigestRun),
		named("retryDigestRun", "Retry a failed run", RetryDigestRun),
	),
	about("Erasures",
		named("erasePerson", "Erase a person everywhere; the response doesn't reveal whether the person is known", ErasePerson),
		named("getErasure", "Show an erasure's progress or receipt", GetErasure),
		named("exportPerson", "Export all data about a person", ExportPerson),
	),
	about("Why",
		named("whyTo", "Explain why an address did or didn't receive its messages", WhyTo),
	),
	about("Suppressions",
		named("listSuppressions", "List suppressions in no particular order", ListSuppressions),
		named("addSuppressions", "Add up to 1,000 suppressions", AddSuppressions),
		named("removeSuppression", "Remove an address or a domain from the suppressions of one scope", RemoveSuppression),
		named("checkSuppression", "Check an address and its domain for suppressions", CheckSuppression),
		named("importSuppressions", "Import a CSV file of any size; the response follows its end", ImportSuppressions),
		named("suppressionImport", "Show an import's progress or, for a week, its result", GetSuppressionImport),
		named("exportSuppressions", "Download suppressions as CSV that you can import", ExportSuppressions),
		named("listBlocklists", "List the lists that have suppressions", ListBlocklists),
		named("getBlocklist", "List a list's suppressions", GetBlocklist),
		named("addToBlocklist", "Add an address to a list's suppressions", AddToBlocklist),
		named("removeFromBlocklist", "Remove an address from a list's suppressions", RemoveFromBlocklist),
	),
	about("Tokens",
		named("createToken", "Create an access token", CreateToken),
		named("listTokens", "List access tokens", ListTokens),
		named("getToken", "Show an access token", GetToken),
		named("rotateToken", "Replace an access token; the old token keeps working for a while", RotateToken),
		named("getTokenUsage", "Show a token's quota usage", GetTokenUsage),
		named("deleteToken", "Delete an access token", DeleteToken),
	),
	about("People",
		named("createPerson", "Create a user; only this response has the link to set a password", CreatePerson),
		named("listPeople", "List users", ListPeople),
		named("getPerson", "Show a user", GetPerson),
		named("updatePerson", "Change a user; this ends the user's sessions", UpdatePerson),
		named("deletePerson", "Delete a user", DeletePerson),
		named("linkPerson", "Create a one-time link for a user to set a new password", LinkPerson),
		named("signOutPerson", "Sign a user out of all sessions", SignOutPerson),
		named("resetTOTP", "Remove a user's second factor", ResetTOTP),
		named("listSessions", "List dashboard sessions, newest first", ListSessions),
		named("endSession", "End a dashboard session", EndSession),
	),
	about("Me",
		named("getMe", "Show the signed-in user", GetMe),
		named("changePassword", "Change your password; this ends your other sessions", ChangePassword),
		named("enrolTOTP", "Create a secret for an authenticator app", EnrolTOTP),
		named("confirmTOTP", "Turn on two-factor sign-in with a first code; this ends your other sessions", ConfirmTOTP),
		named("removeTOTP", "Turn off two-factor sign-in; this ends your other sessions", RemoveTOTP),
		named("chooseAccount", "Choose the account that the session acts for", ChooseAccount),
	),
	about("Audit log",
		named("listAudit", "List changes, logins and refusals, newest first", ListAudit),
		named("exportAudit", "Download the audit log as JSON lines, oldest first", ExportAudit),
		named("verifyAudit", "Check the audit log for changed or deleted entries", VerifyAudit),
	),
	about("Webhooks",
		named("createEndpoint", "Create a webhook endpoint; only this response has its secret", CreateEndpoint),
		named("listEndpoints", "List webhook endpoints", ListEndpoints),
		named("getEndpoint", "Show a webhook endpoint", GetEndpoint),
		named("updateEndpoint", "Change a webhook endpoint", UpdateEndpoint),
		named("patchEndpoint", "Change fields of a webhook endpoint", PatchEndpoint),
		named("rotateEndpointSecret", "Replace a webhook endpoint's secret; only this response has the new one", RotateEndpointSecret),
		named("wakeEndpoint", "Resume a webhook endpoint that Postroom paused", WakeEndpoint),
		named("getEndpointStats", "Count the requests to a webhook endpoint by hour", GetEndpointStats),
		named("deleteEndpoint", "Delete a webhook endpoint", DeleteEndpoint),
		named("testEndpoint", "Send a test event", TestEndpoint),
		named("replayEndpoint", "Replay events since a given time", ReplayEndpoint),
		named("getEndpointReplay", "Show the progress of the last background replay", GetEndpointReplay),
		named("listDeliveries", "List deliveries, newest first", ListDeliveries),
		named("getDelivery", "Show a delivery and its body", GetDelivery),
		named("redeliver", "Send a delivery again", Redeliver),
		named("listWebhookRoutes", "List webhook endpoints as EmailEngine's webhook routes", ListWebhookRoutes),
		named("getWebhookRoute", "Show a webhook endpoint as one of EmailEngine's webhook routes", GetWebhookRoute),
	),
	about("Feedback",
		named("getFeedback", "Count the reports about sent mail, by source and result", GetFeedback),
		named("returnMail", "Process a returned message: a bounce, a delay notice or a complaint", ReturnMail),
	),
	about("Instance",
		named("health", "Show whether the process is alive", GetHealth),
		named("ready", "Show whether messages are accepted, and what a crash of Redis can lose", GetReady),
	),
)
