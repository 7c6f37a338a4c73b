package api

// The routes, by the ids of the OpenAPI document. In GET lists a page size of 0 means 20 rows.
const (
	// Submit queues a message for delivery. Once it returns without error, the message is durable.
	Submit Call[SubmitRequest, SubmitAnswer] = "POST /v1/submit"
	// SubmitAs is Submit for an account that the path names.
	SubmitAs Call[SubmitRequest, SubmitAnswer] = "POST /v1/account/{account}/submit"

	// ListOutbox lists queued messages, oldest first.
	ListOutbox Call[OutboxQuery, OutboxPage] = "GET /v1/outbox"
	// GetMessage shows a queued message. A finished message is a *Failure with status 404, whose code is the
	// result.
	GetMessage Fetch[OutboxMessage] = "GET /v1/outbox/{queueId}"
	// MessageContent downloads a queued message as it will be sent, in the form of RFC 5322.
	MessageContent Fetch[[]byte] = "GET /v1/outbox/{queueId}/content"
	// CancelMessage cancels a queued message. The response reports whether that was still possible.
	CancelMessage Fetch[DeleteAnswer] = "DELETE /v1/outbox/{queueId}"
	// CancelMessages cancels all queued messages that match. A query that selects nothing is refused.
	CancelMessages Call[OutboxQuery, BulkDeleteAnswer] = "DELETE /v1/outbox"
	// RetryMessage attempts delivery of a queued message now.
	RetryMessage Fetch[OutboxMessage] = "POST /v1/outbox/{queueId}/retry"
	// PatchMessage changes when and how a queued message is sent.
	PatchMessage Call[OutboxPatch, OutboxMessage] = "PATCH /v1/outbox/{queueId}"

	// ListMessages lists the email log, newest message first: queued and ended messages.
	ListMessages Call[LogQuery, LogPage] = "GET /v1/messages"
	// GetRates counts the results of messages by hour and day, for 13 months.
	GetRates Call[RatesQuery, Rates] = "GET /v1/rates"
	// GetLoggedMessage shows a queued or ended message of the email log with all its attempts.
	GetLoggedMessage Fetch[LoggedMessage] = "GET /v1/messages/{queueId}"
	// ListMessageEvents returns the events of a message, oldest first.
	ListMessageEvents Fetch[MessageEvents] = "GET /v1/messages/{queueId}/events"
	// ListMessageDeliveries lists the webhook deliveries of a message's events, oldest first.
	ListMessageDeliveries Fetch[MessageDeliveries] = "GET /v1/messages/{queueId}/deliveries"
	// DownloadMessage downloads a message in the form of RFC 5322, for as long as its content is stored.
	DownloadMessage Fetch[[]byte] = "GET /v1/messages/{queueId}/content"
	// GetMessageParts shows a message's header, texts and list of files.
	GetMessageParts Fetch[MessageParts] = "GET /v1/messages/{queueId}/parts"
	// DownloadMessagePart downloads a text or a file of a message, decoded.
	DownloadMessagePart Fetch[[]byte] = "GET /v1/messages/{queueId}/parts/{part}"

	// SearchDocuments searches for messages, including those that the email log no longer has.
	SearchDocuments Call[DocumentQuery, DocumentPage] = "GET /v1/documents/search"
	// GetDocuments shows the state of the search index.
	GetDocuments Fetch[DocumentsState] = "GET /v1/documents"
	// RebuildDocuments starts a rebuild of the search index and returns immediately. GetDocuments shows its
	// progress.
	RebuildDocuments Fetch[DocumentRebuild] = "POST /v1/documents/rebuild"

	// ListDeadLetters lists dead letters, oldest first.
	ListDeadLetters Call[DeadLetterQuery, DeadLetterPage] = "GET /v1/dead-letters"
	// ListDeadLetterReasons counts dead letters by reason.
	ListDeadLetterReasons Call[DeadLetterFilter, DeadLetterReasons] = "GET /v1/dead-letters/reasons"
	// ExplainReply explains a mail server's reply.
	ExplainReply Call[ReplyQuery, Explanation] = "GET /v1/replies"
	// GetDeadLetter shows a dead letter with its content.
	GetDeadLetter Fetch[DeadLetter] = "GET /v1/dead-letters/{queueId}"
	// ReplayDeadLetter queues a dead letter again, for the failed recipients, or with corrections.
	ReplayDeadLetter Call[Corrections, OutboxMessage] = "POST /v1/dead-letters/{queueId}/replay"
	// ReplayDeadLetters queues all dead letters again that match the request.
	ReplayDeadLetters Call[ReplayRequest, ReplayAnswer] = "POST /v1/dead-letters/replay"
	// DeleteDeadLetter deletes a dead letter and its content.
	DeleteDeadLetter Fetch[DeleteAnswer] = "DELETE /v1/dead-letters/{queueId}"

	// GetQueue shows a queue: submit, bulk, notify, documents or digests.
	GetQueue Fetch[QueueStatus] = "GET /v1/settings/queue/{queue}"
	// PutQueue pauses or resumes a queue.
	PutQueue Call[QueuePatch, QueuePaused] = "PUT /v1/settings/queue/{queue}"
	// GetStats shows a summary of the instance. The query limits only its counters.
	GetStats Call[CounterQuery, Stats] = "GET /v1/stats"
	// GetConfiguration shows the settings that the process was started with, and where each came from.
	GetConfiguration Fetch[ConfiguredValues] = "GET /v1/settings/configuration"
	// GetSettings shows the settings that can be changed while Postroom runs.
	GetSettings Fetch[SettingsFound] = "GET /v1/settings"
	// UpdateSettings changes the settings that are not nil.
	UpdateSettings Call[Settings, SettingsUpdated] = "POST /v1/settings"
	// GetHealth reports whether the process is alive.
	GetHealth Fetch[Health] = "GET /health"
	// GetReady reports whether the instance accepts work. Not being ready is a result, not an error.
	GetReady Fetch[Ready] = "GET /ready"

	// CreateAccount creates an account, or replaces it.
	CreateAccount Call[Account, AccountCreated] = "POST /v1/account"
	// ListAccounts lists accounts.
	ListAccounts Call[PageQuery, AccountPage] = "GET /v1/accounts"
	// GetAccount shows an account, its secrets masked.
	GetAccount Fetch[AccountInfo] = "GET /v1/account/{account}"
	// UpdateAccount changes the fields of an account that aren't nil.
	UpdateAccount Call[AccountPatch, AccountInfo] = "PUT /v1/account/{account}"
	// DeleteAccount deletes an account, its queued messages, its templates, and the tokens bound to it.
	DeleteAccount Fetch[AccountDeleted] = "DELETE /v1/account/{account}"
	// VerifyAccount logs in to a relay without sending anything.
	VerifyAccount Call[VerifyRequest, VerifyAnswer] = "POST /v1/verifyAccount"

	// GetAccountDNS checks the DNS records that an account needs.
	GetAccountDNS Call[AccountDNSQuery, AccountDNS] = "GET /v1/account/{account}/dns"
	// GetUsage shows an account's quota usage.
	GetUsage Fetch[Usage] = "GET /v1/account/{account}/usage"

	// ListSenders lists the addresses and domains that an account may send as.
	ListSenders Fetch[Senders] = "GET /v1/account/{account}/senders"
	// AddSender adds an address or a domain that an account may send as.
	AddSender Call[NewSender, SenderInfo] = "POST /v1/account/{account}/senders"
	// VerifySender looks for the DNS record that verifies a domain.
	VerifySender Fetch[SenderInfo] = "POST /v1/account/{account}/senders/{sender}/verify"
	// MailSender sends an email with a link that verifies an address.
	MailSender Fetch[SenderInfo] = "POST /v1/account/{account}/senders/{sender}/mail"
	// RemoveSender removes an address or a domain that an account may send as.
	RemoveSender Fetch[Deleted] = "DELETE /v1/account/{account}/senders/{sender}"

	// CreateGateway creates a gateway, or replaces it.
	CreateGateway Call[Gateway, GatewayCreated] = "POST /v1/gateway"
	// ListGateways lists gateways.
	ListGateways Call[PageQuery, GatewayPage] = "GET /v1/gateways"
	// GetGateway shows a gateway, its secrets masked.
	GetGateway Fetch[GatewayInfo] = "GET /v1/gateway/{gateway}"
	// UpdateGateway changes the fields of a gateway that aren't nil.
	UpdateGateway Call[GatewayPatch, GatewayUpdated] = "PUT /v1/gateway/edit/{gateway}"
	// ImportProviderList starts an import of the suppression list of the gateway's provider, in the background.
	ImportProviderList Call[ProviderImportStart,
		ProviderImport] = "POST /v1/gateway/{gateway}/suppressions/import"
	// GetProviderImport shows the progress of the import that runs or ran last.
	GetProviderImport Fetch[ProviderImport] = "GET /v1/gateway/{gateway}/suppressions/import"
	// DeleteGateway deletes a gateway that no account lists.
	DeleteGateway Fetch[GatewayDeleted] = "DELETE /v1/gateway/{gateway}"
	// SetGatewayWebhook creates or fixes the webhook at a gateway's provider.
	SetGatewayWebhook Call[GatewayWebhookRequest, GatewayWebhook] = "POST /v1/gateway/{gateway}/webhook"
	// ListGatewayDomains lists the sender domains that a gateway's provider knows.
	ListGatewayDomains Fetch[GatewayDomains] = "GET /v1/gateway/{gateway}/domains"

	// PutDomainKey stores the DKIM key of a domain, or replaces it. A masked privateKey ("******") keeps the old
	// one.
	PutDomainKey Call[NewDomainKey, DomainKey] = "PUT /v1/dkim/{domain}"
	// ListDomainKeys lists the DKIM keys of all domains, masked.
	ListDomainKeys Fetch[DomainKeyPage] = "GET /v1/dkim"
	// GetDomainKey shows the DKIM key of a domain, masked.
	GetDomainKey Fetch[DomainKey] = "GET /v1/dkim/{domain}"
	// DeleteDomainKey deletes the DKIM key of a domain. Its mail is no longer signed.
	DeleteDomainKey Fetch[Deleted] = "DELETE /v1/dkim/{domain}"

	// CreateToken creates an access token. Only this response shows it.
	CreateToken Call[TokenRequest, TokenCreated] = "POST /v1/tokens"
	// ListTokens lists access tokens.
	ListTokens Call[TokenQuery, TokenPage] = "GET /v1/tokens"
	// GetToken shows an access token by its id.
	GetToken Fetch[TokenInfo] = "GET /v1/tokens/{id}"
	// RotateToken replaces a token. The old token keeps working until the overlap ends.
	RotateToken Call[TokenRotation, TokenCreated] = "POST /v1/tokens/{id}/rotate"
	// GetTokenUsage shows a token's quota usage.
	GetTokenUsage Fetch[Usage] = "GET /v1/tokens/{id}/usage"
	// DeleteToken deletes an access token by its id.
	DeleteToken Fetch[Deleted] = "DELETE /v1/tokens/{id}"

	// CreatePerson creates a user. Only this response shows the link to set a password.
	CreatePerson Call[PersonRequest, PersonLink] = "POST /v1/people"
	// ListPeople lists users.
	ListPeople Call[PageQuery, PersonPage] = "GET /v1/people"
	// GetPerson shows a user.
	GetPerson Fetch[PersonInfo] = "GET /v1/people/{person}"
	// UpdatePerson changes the fields of a user that aren't nil, and ends the user's sessions.
	UpdatePerson Call[PersonPatch, PersonInfo] = "PATCH /v1/people/{person}"
	// DeletePerson deletes a user and ends the user's sessions.
	DeletePerson Fetch[Deleted] = "DELETE /v1/people/{person}"
	// LinkPerson creates a one-time link for a user to set a new password.
	LinkPerson Fetch[PersonLink] = "POST /v1/people/{person}/link"
	// SignOutPerson ends a user's sessions.
	SignOutPerson Fetch[PersonInfo] = "DELETE /v1/people/{person}/sessions"
	// ResetTOTP removes a user's second factor.
	ResetTOTP Fetch[PersonInfo] = "DELETE /v1/people/{person}/totp"
	// ListSessions lists dashboard sessions, newest first. Users who aren't admins see only their own.
	ListSessions Call[SessionQuery, Sessions] = "GET /v1/sessions"
	// EndSession ends a dashboard session.
	EndSession Fetch[Deleted] = "DELETE /v1/sessions/{id}"

	// GetMe shows the signed-in user. This route and the following ones refuse tokens.
	GetMe Fetch[Me] = "GET /v1/me"
	// ChangePassword replaces the user's password and ends the user's other sessions.
	ChangePassword Call[PasswordChange, Me] = "POST /v1/me/password"
	// EnrolTOTP creates a secret for an authenticator app.
	EnrolTOTP Call[PasswordProof, TOTPSecret] = "POST /v1/me/totp"
	// ConfirmTOTP turns on two-factor sign-in and ends the user's other sessions.
	ConfirmTOTP Call[TOTPCode, RecoveryCodes] = "POST /v1/me/totp/confirm"
	// RemoveTOTP turns off two-factor sign-in and ends the user's other sessions.
	RemoveTOTP Call[PasswordProof, Me] = "POST /v1/me/totp/remove"
	// ChooseAccount chooses the account that the session acts for.
	ChooseAccount Call[AccountChoice, Me] = "POST /v1/me/account"

	// ListAudit lists the audit log, newest first.
	ListAudit Call[AuditQuery, AuditPage] = "GET /v1/audit"
	// ExportAudit downloads the audit log as JSON lines, oldest first.
	ExportAudit Download[AuditQuery] = "GET /v1/audit/export"
	// VerifyAudit checks the audit log for changed or deleted entries.
	VerifyAudit Call[AuditVerifyQuery, AuditVerified] = "GET /v1/audit/verify"

	// CreateTemplate stores a new template, partial or layout.
	CreateTemplate Call[TemplateRequest, TemplateCreated] = "POST /v1/templates/template"
	// ListTemplates lists templates without their content.
	ListTemplates Call[TemplateQuery, TemplatePage] = "GET /v1/templates"
	// GetTemplate shows a template.
	GetTemplate Fetch[Template] = "GET /v1/templates/template/{id}"
	// UpdateTemplate changes the fields of a template that aren't nil.
	UpdateTemplate Call[TemplatePatch, TemplateUpdated] = "PUT /v1/templates/template/{id}"
	// DeleteTemplate deletes a template that no other template uses.
	DeleteTemplate Fetch[TemplateDeleted] = "DELETE /v1/templates/template/{id}"
	// FlushTemplates deletes all templates of an account. The query must have force.
	FlushTemplates Call[FlushQuery, TemplatesFlushed] = "DELETE /v1/templates/account/{account}"
	// ListTemplateVersions lists a template's stored versions, newest first.
	ListTemplateVersions Fetch[TemplateVersions] = "GET /v1/templates/template/{id}/versions"
	// GetTemplateVersion shows a version of a template.
	GetTemplateVersion Fetch[TemplateVersion] = "GET /v1/templates/template/{id}/versions/{version}"
	// RestoreTemplate copies the content of an old version of a template into a new version.
	RestoreTemplate Call[TemplateRestore, TemplateUpdated] = "POST /v1/templates/template/{id}/restore"
	// PreviewTemplate renders a stored template with data, without sending anything.
	PreviewTemplate Call[TemplatePreviewRequest, TemplatePreview] = "POST /v1/templates/template/{id}/render"
	// TryTemplate renders a template without storing it or sending anything.
	TryTemplate Call[TemplateTrial, TemplatePreview] = "POST /v1/templates/render"

	// CreateEndpoint creates a webhook endpoint. Only this response shows its secret.
	CreateEndpoint Call[EndpointRequest, Endpoint] = "POST /v1/webhook-endpoints"
	// ListEndpoints lists webhook endpoints.
	ListEndpoints Call[PageQuery, EndpointPage] = "GET /v1/webhook-endpoints"
	// GetEndpoint shows a webhook endpoint, its secret masked.
	GetEndpoint Fetch[Endpoint] = "GET /v1/webhook-endpoints/{id}"
	// ListWebhookRoutes lists webhook endpoints as EmailEngine lists its routes.
	ListWebhookRoutes Call[PageQuery, WebhookRoutePage] = "GET /v1/webhookRoutes"
	// GetWebhookRoute shows a webhook endpoint as EmailEngine shows a route.
	GetWebhookRoute Fetch[WebhookRoute] = "GET /v1/webhookRoutes/webhookRoute/{id}"
	// UpdateEndpoint changes a webhook endpoint.
	UpdateEndpoint Call[EndpointRequest, Endpoint] = "PUT /v1/webhook-endpoints/{id}"
	// PatchEndpoint changes fields of a webhook endpoint.
	PatchEndpoint Call[EndpointPatch, Endpoint] = "PATCH /v1/webhook-endpoints/{id}"
	// RotateEndpointSecret replaces a webhook endpoint's secret. Only this response shows the new one.
	RotateEndpointSecret Call[SecretRotation, SecretRotated] = "POST /v1/webhook-endpoints/{id}/secret"
	// WakeEndpoint resumes a webhook endpoint that Postroom paused.
	WakeEndpoint Fetch[EndpointWoken] = "POST /v1/webhook-endpoints/{id}/wake"
	// GetEndpointStats counts the requests to a webhook endpoint.
	GetEndpointStats Call[EndpointStatsQuery, EndpointStats] = "GET /v1/webhook-endpoints/{id}/stats"
	// DeleteEndpoint deletes a webhook endpoint.
	DeleteEndpoint Fetch[Deleted] = "DELETE /v1/webhook-endpoints/{id}"
	// TestEndpoint sends a test event to an endpoint and waits for its response.
	TestEndpoint Call[EndpointTest, EndpointTested] = "POST /v1/webhook-endpoints/{id}/test?"
	// ReplayEndpoint sends all events since a given time to an endpoint again.
	ReplayEndpoint Call[EndpointReplay, Replayed] = "POST /v1/webhook-endpoints/{id}/replay?"
	// GetEndpointReplay shows the progress of the last background replay.
	GetEndpointReplay Fetch[EndpointReplayState] = "GET /v1/webhook-endpoints/{id}/replay"
	// ListDeliveries lists the deliveries of an endpoint, newest first.
	ListDeliveries Call[DeliveryQuery, DeliveryPage] = "GET /v1/webhook-endpoints/{id}/deliveries"
	// GetDelivery shows one delivery and the request that was sent.
	GetDelivery Fetch[Delivery] = "GET /v1/webhook-endpoints/{id}/deliveries/{deliveryId}"
	// Redeliver sends a delivery again, as a new one.
	Redeliver Fetch[Redelivered] = "POST /v1/webhook-endpoints/{id}/deliveries/{deliveryId}/redeliver"

	// ListSuppressions lists suppressions.
	ListSuppressions Call[SuppressionQuery, SuppressionPage] = "GET /v1/suppressions"
	// CheckSuppression returns all suppressions of an address, in all scopes.
	CheckSuppression Call[SuppressionCheck, SuppressionFound] = "GET /v1/suppressions/check"
	// AddSuppressions adds up to 1,000 suppressions. If one is invalid, none is added.
	AddSuppressions Call[SuppressionRequest, SuppressionsAdded] = "POST /v1/suppressions"
	// RemoveSuppression removes the suppressions of an address or a domain in one scope.
	RemoveSuppression Call[SuppressionRemoval, SuppressionRemoved] = "DELETE /v1/suppressions"
	// ImportSuppressions imports a CSV file and returns at its end. Until then, GetSuppressionImport shows the
	// progress. After an error, you can import the same file again.
	ImportSuppressions Upload[SuppressionImportOptions,
		SuppressionImport] = "POST /v1/suppressions/import text/csv"
	// GetSuppressionImport shows the progress of an import.
	GetSuppressionImport Fetch[SuppressionImport] = "GET /v1/suppressions/imports/{id}"
	// ExportSuppressions writes suppressions as CSV.
	ExportSuppressions Download[SuppressionQuery] = "GET /v1/suppressions/export"

	// ImportSubscribers imports a CSV file and returns at its end. Until then, GetSubscriberImport shows the
	// progress. To continue after an interruption, send the same file with the same ID.
	ImportSubscribers Upload[SubscriberImportOptions,
		SubscriberImport] = "POST /v1/subscribers/import text/csv"
	// ImportSubscribersJSONL is ImportSubscribers for a file with one JSON object a line.
	ImportSubscribersJSONL Upload[SubscriberImportOptions,
		SubscriberImport] = "POST /v1/subscribers/import application/x-ndjson"
	// ListSubscriberImports lists the imports of the last week, newest first.
	ListSubscriberImports Call[SubscriberAccount, SubscriberImports] = "GET /v1/subscribers/imports"
	// GetSubscriberImport shows the progress of an import.
	GetSubscriberImport Call[SubscriberAccount, SubscriberImport] = "GET /v1/subscribers/imports/{id}"
	// StopSubscriberImport stops a running import, or deletes a finished one.
	StopSubscriberImport Call[SubscriberAccount, Deleted] = "DELETE /v1/subscribers/imports/{id}"
	// ExportSubscribers writes subscribers as CSV or JSONL, which can be imported.
	ExportSubscribers Download[SubscriberExportQuery] = "GET /v1/subscribers/export"

	// ListBlocklists lists the lists that have suppressions, with their counts.
	ListBlocklists Call[PageQuery, Blocklists] = "GET /v1/blocklists"
	// GetBlocklist lists the suppressions of a list.
	GetBlocklist Call[BlocklistQuery, BlocklistPage] = "GET /v1/blocklist/{listId}"
	// AddToBlocklist adds an address to the suppressions of a list.
	AddToBlocklist Call[BlocklistRequest, BlocklistAdded] = "POST /v1/blocklist/{listId}"
	// RemoveFromBlocklist removes an address from the suppressions of a list.
	RemoveFromBlocklist Call[BlocklistRemoval, SuppressionRemoved] = "DELETE /v1/blocklist/{listId}"

	// CreateList creates a list.
	CreateList Call[List, ListInfo] = "POST /v1/lists"
	// ListLists lists the lists of an account, or of all.
	ListLists Call[ListQuery, ListPage] = "GET /v1/lists"
	// GetList shows a list with its counts.
	GetList Fetch[ListInfo] = "GET /v1/lists/{listId}"
	// UpdateList changes the fields of a list that aren't nil.
	UpdateList Call[ListPatch, ListInfo] = "PUT /v1/lists/{listId}"
	// DeleteList deletes a list and its subscriptions. The subscribers stay.
	DeleteList Fetch[Deleted] = "DELETE /v1/lists/{listId}"

	// CreateSegment stores a rule that selects subscribers.
	CreateSegment Call[Segment, SegmentInfo] = "POST /v1/segments"
	// ListSegments lists the segments of an account, or of all.
	ListSegments Call[SegmentQuery, SegmentPage] = "GET /v1/segments"
	// GetSegment shows a segment with a description of its rule.
	GetSegment Fetch[SegmentInfo] = "GET /v1/segments/{segment}"
	// UpdateSegment changes the fields of a segment that aren't nil.
	UpdateSegment Call[SegmentPatch, SegmentInfo] = "PUT /v1/segments/{segment}"
	// DeleteSegment deletes a segment.
	DeleteSegment Fetch[Deleted] = "DELETE /v1/segments/{segment}"
	// CountSegment starts counting a segment, unless a count is in progress.
	CountSegment Fetch[SegmentCount] = "POST /v1/segments/{segment}/count"
	// GetSegmentCount shows the progress or the result of the last count.
	GetSegmentCount Fetch[SegmentCount] = "GET /v1/segments/{segment}/count"
	// ExplainSegment explains why a subscriber is in a segment or not.
	ExplainSegment Call[SegmentSubject, SegmentExplanation] = "GET /v1/segments/{segment}/explain"

	// TakeDigestEvents accepts digest events. If a single event is refused, this is the error. Several events
	// each have their own result.
	TakeDigestEvents Call[DigestEventsRequest, DigestEventsAnswer] = "POST /v1/digests/events"
	// DeleteDigestEvents withdraws pending digest events.
	DeleteDigestEvents Call[DigestEventRemoval, DigestEventsDeleted] = "DELETE /v1/digests/events"
	// CreateDigestKind creates a category's settings.
	CreateDigestKind Call[DigestKind, DigestKindInfo] = "POST /v1/digests/kinds"
	// ListDigestKinds lists the category settings of an account, or of all accounts.
	ListDigestKinds Call[DigestKindQuery, DigestKindPage] = "GET /v1/digests/kinds"
	// GetDigestKind shows a category's settings.
	GetDigestKind Call[DigestAccount, DigestKindInfo] = "GET /v1/digests/kinds/{category}"
	// UpdateDigestKind changes the category settings that aren't nil.
	UpdateDigestKind Call[DigestKindPatch, DigestKindInfo] = "PUT /v1/digests/kinds/{category}"
	// DeleteDigestKind deletes a category's settings. The category's events stay.
	DeleteDigestKind Call[DigestAccount, Deleted] = "DELETE /v1/digests/kinds/{category}"
	// ListDigestRecipients lists an account's digest recipients, sorted by ID.
	ListDigestRecipients Call[DigestRecipientQuery, DigestRecipientPage] = "GET /v1/digests/recipients"
	// GetDigestRecipient shows a recipient with the next times and pending events.
	GetDigestRecipient Call[DigestAccount, DigestRecipient] = "GET /v1/digests/recipients/{recipient}"
	// PutDigestRecipient creates or replaces a recipient and its preferences.
	PutDigestRecipient Call[DigestRecipientRequest, DigestRecipient] = "PUT /v1/digests/recipients/{recipient}"
	// PatchDigestRecipient changes a recipient and the preferences in the request.
	PatchDigestRecipient Call[DigestRecipientRequest, DigestRecipient] = "PATCH /v1/digests/recipients/{recipient}"
	// DeleteDigestRecipient deletes a recipient and its pending events.
	DeleteDigestRecipient Call[DigestAccount, Deleted] = "DELETE /v1/digests/recipients/{recipient}"
	// ListWaitingDigestEvents lists a recipient's pending events.
	ListWaitingDigestEvents Call[DigestAccount, DigestWaiting] = "GET /v1/digests/recipients/{recipient}/events"
	// PreviewDigest shows the digest that a recipient would get now.
	PreviewDigest Call[DigestAccount, DigestPreview] = "GET /v1/digests/recipients/{recipient}/preview"
	// SendDigest sends a recipient's digest now.
	SendDigest Call[DigestAccount, DigestSendAnswer] = "POST /v1/digests/recipients/{recipient}/send?"
	// ComputeDigestTimes calculates the times of a preference.
	ComputeDigestTimes Call[DigestTimesRequest, DigestTimes] = "POST /v1/digests/times"
	// ListDigestRuns lists runs, newest first.
	ListDigestRuns Call[DigestRunQuery, DigestRunPage] = "GET /v1/digests/runs"
	// GetDigestRun shows a run and its groups.
	GetDigestRun Fetch[DigestRun] = "GET /v1/digests/runs/{run}"
	// RetryDigestRun retries a failed run.
	RetryDigestRun Fetch[DigestRun] = "POST /v1/digests/runs/{run}/retry"

	// CreateCampaign creates a campaign as a draft.
	CreateCampaign Call[Campaign, CampaignInfo] = "POST /v1/campaigns"
	// ListCampaigns lists the campaigns of an account, or of all accounts, newest first.
	ListCampaigns Call[CampaignQuery, CampaignPage] = "GET /v1/campaigns"
	// GetCampaign shows a campaign and its state.
	GetCampaign Fetch[CampaignInfo] = "GET /v1/campaigns/{campaign}"
	// UpdateCampaign changes the fields that aren't nil of a campaign that isn't being sent.
	UpdateCampaign Call[CampaignPatch, CampaignInfo] = "PUT /v1/campaigns/{campaign}"
	// DeleteCampaign deletes a campaign that isn't being sent, and its recipients' results.
	DeleteCampaign Fetch[Deleted] = "DELETE /v1/campaigns/{campaign}"
	// CopyCampaign copies a campaign's content and audience to a draft.
	CopyCampaign Call[CampaignCopy, CampaignInfo] = "POST /v1/campaigns/{campaign}/copy"
	// SendCampaign sends a campaign now, or schedules it.
	SendCampaign Call[CampaignStart, CampaignRun] = "POST /v1/campaigns/{campaign}/send?"
	// PauseCampaign pauses a campaign.
	PauseCampaign Fetch[CampaignRun] = "POST /v1/campaigns/{campaign}/pause"
	// ResumeCampaign resumes a paused or held campaign.
	ResumeCampaign Fetch[CampaignRun] = "POST /v1/campaigns/{campaign}/resume"
	// CancelCampaign cancels a campaign. The remaining recipients don't get it.
	CancelCampaign Fetch[CampaignRun] = "POST /v1/campaigns/{campaign}/cancel"
	// PreviewCampaign shows a campaign's message as one subscriber would see it.
	PreviewCampaign Call[CampaignSample, CampaignPreview] = "POST /v1/campaigns/{campaign}/preview"
	// CheckCampaign checks a campaign for errors and warnings.
	CheckCampaign Fetch[CampaignCheck] = "POST /v1/campaigns/{campaign}/check"
	// TestCampaign sends a test of a campaign to given addresses.
	TestCampaign Call[CampaignTest, CampaignTested] = "POST /v1/campaigns/{campaign}/test"
	// ListCampaignRecipients lists a campaign's recipients and their results.
	ListCampaignRecipients Call[CampaignRecipientQuery,
		CampaignRecipientPage] = "GET /v1/campaigns/{campaign}/recipients"
	// ExportCampaignRecipients writes a campaign's recipients and their results as CSV.
	ExportCampaignRecipients Download[CampaignRecipientQuery] = "GET /v1/campaigns/{campaign}/recipients/export"
	// SettleCampaign marks recipients in doubt as sent.
	SettleCampaign Call[CampaignSettle, CampaignSettled] = "POST /v1/campaigns/{campaign}/settle"
	// ResendCampaign sends a campaign again to some of its recipients.
	ResendCampaign Call[CampaignResend, CampaignRun] = "POST /v1/campaigns/{campaign}/resend"
	// DecideCampaign chooses the winning variant of a campaign's test.
	DecideCampaign Call[CampaignWinner, CampaignRun] = "POST /v1/campaigns/{campaign}/winner"
	// GetCampaignStats shows a campaign's numbers.
	GetCampaignStats Call[CampaignStatsQuery, CampaignStats] = "GET /v1/campaigns/{campaign}/stats"
	// WatchCampaignStats streams a campaign's numbers every second as server-sent events, while it is
	// running.
	WatchCampaignStats Download[CampaignStatsQuery] = "GET /v1/campaigns/{campaign}/stats/live"
	// RecountCampaign recalculates a campaign's counters from its stored recipients.
	RecountCampaign Fetch[CampaignRecount] = "POST /v1/campaigns/{campaign}/recount"

	// GetListForm shows the public form of a list.
	GetListForm Fetch[ListForm] = "GET /v1/lists/{listId}/form"

	// CreateSubscriber creates a subscriber and adds it to lists.
	CreateSubscriber Call[SubscriberRequest, Subscriber] = "POST /v1/subscribers"
	// ListSubscribers lists an account's subscribers, oldest first.
	ListSubscribers Call[SubscriberQuery, SubscriberPage] = "GET /v1/subscribers"
	// GetSubscriber shows a subscriber, by id or address.
	GetSubscriber Call[SubscriberAccount, Subscriber] = "GET /v1/subscribers/{subscriber}"
	// UpdateSubscriber changes the fields of a subscriber that aren't nil.
	UpdateSubscriber Call[SubscriberPatch, Subscriber] = "PUT /v1/subscribers/{subscriber}"
	// DeleteSubscriber deletes a subscriber with its subscriptions and consent records. Suppressions stay.
	DeleteSubscriber Call[SubscriberAccount, Deleted] = "DELETE /v1/subscribers/{subscriber}"
	// Subscribe adds a subscriber to lists.
	Subscribe Call[SubscribeRequest, Subscriber] = "POST /v1/subscribers/{subscriber}/lists"
	// LeaveList unsubscribes a subscriber from a list permanently, unless the subscriber
	// resubscribes.
	LeaveList Call[SubscriberAccount, ListLeft] = "DELETE /v1/subscribers/{subscriber}/lists/{listId}"
	// AskAgain resends a confirmation email.
	AskAgain Call[SubscriberAccount, ConfirmationSent] = "POST /v1/subscribers/{subscriber}/lists/{listId}/confirmation?"
	// ListConsents lists a subscriber's consent records, newest first.
	ListConsents Call[SubscriberAccount, ConsentHistory] = "GET /v1/subscribers/{subscriber}/consents"

	// ErasePerson starts erasing a person everywhere. GetErasure shows the progress.
	ErasePerson Call[ErasureRequest, Erasure] = "POST /v1/people/erase"
	// GetErasure shows an erasure's progress or receipt.
	GetErasure Fetch[Erasure] = "GET /v1/people/erasures/{id}"
	// ExportPerson returns all data about a person.
	ExportPerson Call[ErasureRequest, PersonalData] = "POST /v1/people/export"

	// GetOverview shows whether messages are being sent, and any problems with their fixes.
	GetOverview Call[OverviewQuery, Overview] = "GET /v1/overview"

	// WhyTo explains why an address did or didn't receive its messages.
	WhyTo Call[WhyQuery, Why] = "GET /v1/to/{address}"

	// GetFeedback shows the sources of feedback about sent mail, and the results.
	GetFeedback Fetch[FeedbackStatus] = "GET /v1/feedback"
	// ReturnMail submits a returned message (a bounce, a delay notice or a complaint) in RFC 5322 format. If
	// the error is nil, its proven reports are durable. Unproven reports cause no error and no change.
	ReturnMail Upload[ReturnOptions, ReturnedMail] = "POST /v1/bounces message/rfc822"
)
