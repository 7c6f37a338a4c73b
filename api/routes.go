package api

// The routes, by the ids of the OpenAPI document. In GET lists a page size of 0 means 20 rows.
const (
	// Submit queues a message for delivery. Once it returns without error, the message is durable.
	Submit Call[SubmitRequest, SubmitAnswer] = "POST /v1/submit"

	// ListOutbox lists queued messages, oldest first.
	ListOutbox Call[OutboxQuery, OutboxPage] = "GET /v1/outbox"
	// GetMessage shows a queued message. One that has ended is a *Failure with status 404, whose code says how.
	GetMessage Fetch[OutboxMessage] = "GET /v1/outbox/{queueId}"
	// MessageContent downloads a queued message as it will be sent, in the form of RFC 5322.
	MessageContent Fetch[[]byte] = "GET /v1/outbox/{queueId}/content"
	// CancelMessage takes a queued message back. The answer says whether that was still possible.
	CancelMessage Fetch[DeleteAnswer] = "DELETE /v1/outbox/{queueId}"
	// CancelMessages takes back all queued messages that match. A query that selects nothing is refused.
	CancelMessages Call[OutboxQuery, BulkDeleteAnswer] = "DELETE /v1/outbox"
	// RetryMessage attempts delivery of a queued message now.
	RetryMessage Fetch[OutboxMessage] = "POST /v1/outbox/{queueId}/retry"
	// PatchMessage changes when and how a queued message is sent.
	PatchMessage Call[OutboxPatch, OutboxMessage] = "PATCH /v1/outbox/{queueId}"

	// ListMessages lists the email log, newest message first: what is queued, and what ended.
	ListMessages Call[LogQuery, LogPage] = "GET /v1/messages"
	// GetRates counts messages and what became known about them, a part of the log at a time.
	GetRates Call[RatesQuery, Rates] = "GET /v1/messages/rates"
	// GetLoggedMessage shows a message of the email log with all of its attempts, whether it has ended or not.
	GetLoggedMessage Fetch[LoggedMessage] = "GET /v1/messages/{queueId}"
	// ListMessageEvents returns the events of a message, oldest first.
	ListMessageEvents Fetch[MessageEvents] = "GET /v1/messages/{queueId}/events"

	// SearchDocuments finds messages, also those that the email log no longer has.
	SearchDocuments Call[DocumentQuery, DocumentPage] = "GET /v1/documents/search"
	// GetDocuments shows the state of the search index.
	GetDocuments Fetch[DocumentsState] = "GET /v1/documents"
	// RebuildDocuments starts a rebuild of the search index and answers at once. GetDocuments shows its progress.
	RebuildDocuments Fetch[DocumentRebuild] = "POST /v1/documents/rebuild"

	// ListDeadLetters lists the messages that failed for good, oldest first. The query may have no state.
	ListDeadLetters Call[OutboxQuery, DeadLetterPage] = "GET /v1/dead-letters"
	// GetDeadLetter shows a message that failed for good, with its content.
	GetDeadLetter Fetch[DeadLetter] = "GET /v1/dead-letters/{queueId}"
	// ReplayDeadLetter queues a dead letter again, for the recipients that failed, or as corrected.
	ReplayDeadLetter Call[Corrections, OutboxMessage] = "POST /v1/dead-letters/{queueId}/replay"
	// ReplayDeadLetters queues all dead letters again that the request selects.
	ReplayDeadLetters Call[ReplayRequest, ReplayAnswer] = "POST /v1/dead-letters/replay"
	// DeleteDeadLetter deletes a dead letter and its content.
	DeleteDeadLetter Fetch[DeleteAnswer] = "DELETE /v1/dead-letters/{queueId}"

	// GetQueue shows a queue: submit, bulk, notify or documents.
	GetQueue Fetch[QueueStatus] = "GET /v1/settings/queue/{queue}"
	// PutQueue pauses or resumes a queue.
	PutQueue Call[QueuePatch, QueuePaused] = "PUT /v1/settings/queue/{queue}"
	// GetStats shows the instance at a glance. The query narrows its counters, and nothing else of it.
	GetStats Call[CounterQuery, Stats] = "GET /v1/stats"
	// GetSettings shows the settings that can be changed while Postroom runs.
	GetSettings Fetch[Settings] = "GET /v1/settings"
	// UpdateSettings changes the settings that are not nil.
	UpdateSettings Call[Settings, SettingsUpdated] = "POST /v1/settings"
	// GetHealth reports whether the process is alive.
	GetHealth Fetch[Health] = "GET /health"
	// GetReady reports whether work can be taken on. Not being ready is an answer, not an error.
	GetReady Fetch[Ready] = "GET /ready"

	// CreateAccount creates an account, or replaces it.
	CreateAccount Call[Account, AccountCreated] = "POST /v1/account"
	// ListAccounts lists accounts.
	ListAccounts Call[PageQuery, AccountPage] = "GET /v1/accounts"
	// GetAccount shows an account, its secrets masked.
	GetAccount Fetch[AccountInfo] = "GET /v1/account/{account}"
	// UpdateAccount changes what is not nil of an account.
	UpdateAccount Call[AccountPatch, AccountInfo] = "PUT /v1/account/{account}"
	// DeleteAccount deletes an account, its queued messages, its templates, and the tokens bound to it.
	DeleteAccount Fetch[AccountDeleted] = "DELETE /v1/account/{account}"
	// VerifyAccount tries to log in to a relay, without sending anything.
	VerifyAccount Call[VerifyRequest, VerifyAnswer] = "POST /v1/verifyAccount"

	// CreateGateway creates a gateway, or replaces it.
	CreateGateway Call[Gateway, GatewayCreated] = "POST /v1/gateway"
	// ListGateways lists gateways.
	ListGateways Call[PageQuery, GatewayPage] = "GET /v1/gateways"
	// GetGateway shows a gateway, its secrets masked.
	GetGateway Fetch[GatewayInfo] = "GET /v1/gateway/{gateway}"
	// UpdateGateway changes what is not nil of a gateway.
	UpdateGateway Call[GatewayPatch, GatewayUpdated] = "PUT /v1/gateway/edit/{gateway}"
	// DeleteGateway deletes a gateway that no account lists.
	DeleteGateway Fetch[GatewayDeleted] = "DELETE /v1/gateway/{gateway}"

	// PutDomainKey stores the DKIM key of a domain, or replaces it. A masked privateKey ("******") keeps the old one.
	PutDomainKey Call[DKIM, DomainKey] = "PUT /v1/dkim/{domain}"
	// ListDomainKeys lists the DKIM keys of all domains, masked.
	ListDomainKeys Fetch[DomainKeyPage] = "GET /v1/dkim"
	// GetDomainKey shows the DKIM key of a domain, masked.
	GetDomainKey Fetch[DomainKey] = "GET /v1/dkim/{domain}"
	// DeleteDomainKey deletes the DKIM key of a domain, whose mail is not signed from then on.
	DeleteDomainKey Fetch[Deleted] = "DELETE /v1/dkim/{domain}"

	// CreateToken makes an access token. Only this answer shows it.
	CreateToken Call[TokenRequest, TokenCreated] = "POST /v1/tokens"
	// ListTokens lists access tokens.
	ListTokens Call[PageQuery, TokenPage] = "GET /v1/tokens"
	// GetToken shows an access token by its id.
	GetToken Fetch[TokenInfo] = "GET /v1/tokens/{id}"
	// DeleteToken deletes an access token by its id.
	DeleteToken Fetch[Deleted] = "DELETE /v1/tokens/{id}"

	// CreateTemplate stores a new template, partial or layout.
	CreateTemplate Call[TemplateRequest, TemplateCreated] = "POST /v1/templates/template"
	// ListTemplates lists templates without their content.
	ListTemplates Call[TemplateQuery, TemplatePage] = "GET /v1/templates"
	// GetTemplate shows a template.
	GetTemplate Fetch[Template] = "GET /v1/templates/template/{id}"
	// UpdateTemplate changes what is not nil of a template.
	UpdateTemplate Call[TemplatePatch, TemplateUpdated] = "PUT /v1/templates/template/{id}"
	// DeleteTemplate deletes a template that no other one uses.
	DeleteTemplate Fetch[TemplateDeleted] = "DELETE /v1/templates/template/{id}"
	// FlushTemplates deletes all templates of an account. The query must have force.
	FlushTemplates Call[FlushQuery, TemplatesFlushed] = "DELETE /v1/templates/account/{account}"
	// ListTemplateVersions lists the versions that are kept of a template, the current one first.
	ListTemplateVersions Fetch[TemplateVersions] = "GET /v1/templates/template/{id}/versions"
	// GetTemplateVersion shows a version of a template.
	GetTemplateVersion Fetch[TemplateVersion] = "GET /v1/templates/template/{id}/versions/{version}"
	// RestoreTemplate gives a template the content of one of its versions again, as a new version.
	RestoreTemplate Call[TemplateRestore, TemplateUpdated] = "POST /v1/templates/template/{id}/restore"
	// PreviewTemplate fills a stored template with data, without sending anything.
	PreviewTemplate Call[TemplatePreviewRequest, TemplatePreview] = "POST /v1/templates/template/{id}/render"
	// TryTemplate fills a template that is not stored with data, without sending anything.
	TryTemplate Call[TemplateTrial, TemplatePreview] = "POST /v1/templates/render"

	// CreateEndpoint creates a webhook endpoint. Only this answer shows its secret.
	CreateEndpoint Call[EndpointRequest, Endpoint] = "POST /v1/webhook-endpoints"
	// ListEndpoints lists webhook endpoints.
	ListEndpoints Call[PageQuery, EndpointPage] = "GET /v1/webhook-endpoints"
	// GetEndpoint shows a webhook endpoint, its secret masked.
	GetEndpoint Fetch[Endpoint] = "GET /v1/webhook-endpoints/{id}"
	// UpdateEndpoint changes a webhook endpoint.
	UpdateEndpoint Call[EndpointRequest, Endpoint] = "PUT /v1/webhook-endpoints/{id}"
	// DeleteEndpoint deletes a webhook endpoint.
	DeleteEndpoint Fetch[Deleted] = "DELETE /v1/webhook-endpoints/{id}"
	// TestEndpoint sends a test event to an endpoint and waits for its answer.
	TestEndpoint Fetch[EndpointTested] = "POST /v1/webhook-endpoints/{id}/test"
	// ReplayEndpoint sends an endpoint the events again that happened since a moment.
	ReplayEndpoint Call[EndpointReplay, Replayed] = "POST /v1/webhook-endpoints/{id}/replay?"
	// ListDeliveries lists the deliveries of an endpoint, newest first.
	ListDeliveries Call[DeliveryQuery, DeliveryPage] = "GET /v1/webhook-endpoints/{id}/deliveries"
	// GetDelivery shows one delivery and what was sent.
	GetDelivery Fetch[Delivery] = "GET /v1/webhook-endpoints/{id}/deliveries/{deliveryId}"
	// Redeliver sends a delivery again, as a new one.
	Redeliver Fetch[Redelivered] = "POST /v1/webhook-endpoints/{id}/deliveries/{deliveryId}/redeliver"

	// ListSuppressions lists whom not to mail.
	ListSuppressions Call[SuppressionQuery, SuppressionPage] = "GET /v1/suppressions"
	// CheckSuppression returns all suppressions of an address, in all scopes.
	CheckSuppression Call[SuppressionCheck, SuppressionFound] = "GET /v1/suppressions/check"
	// AddSuppressions adds up to 1,000 suppressions. When one of them is wrong, none is added.
	AddSuppressions Call[SuppressionRequest, SuppressionsAdded] = "POST /v1/suppressions"
	// RemoveSuppression removes what one scope has against an address or a domain.
	RemoveSuppression Call[SuppressionRemoval, SuppressionRemoved] = "DELETE /v1/suppressions"
	// ImportSuppressions imports a CSV file and answers at its end. Meanwhile GetSuppressionImport shows how far it
	// is. After an error the same file may be imported again.
	ImportSuppressions Upload[SuppressionImportOptions, SuppressionImport] = "POST /v1/suppressions/import text/csv"
	// GetSuppressionImport shows how far an import is.
	GetSuppressionImport Fetch[SuppressionImport] = "GET /v1/suppressions/imports/{id}"
	// ExportSuppressions writes suppressions as CSV.
	ExportSuppressions Download[SuppressionQuery] = "GET /v1/suppressions/export"

	// ListBlocklists lists the lists that have suppressions, with their numbers.
	ListBlocklists Call[PageQuery, Blocklists] = "GET /v1/blocklists"
	// GetBlocklist lists the suppressions of a list.
	GetBlocklist Call[PageQuery, BlocklistPage] = "GET /v1/blocklist/{listId}"
	// AddToBlocklist adds an address to the suppressions of a list.
	AddToBlocklist Call[BlocklistRequest, BlocklistAdded] = "POST /v1/blocklist/{listId}"
	// RemoveFromBlocklist removes an address from the suppressions of a list.
	RemoveFromBlocklist Call[BlocklistRemoval, SuppressionRemoved] = "DELETE /v1/blocklist/{listId}"

	// GetFeedback shows the sources of feedback about sent mail, and what was done with it.
	GetFeedback Fetch[FeedbackStatus] = "GET /v1/feedback"
	// ReturnMail hands over a mail that came back (a bounce, a delay notice or a complaint) as it is (RFC 5322).
	// What it proves is durable when the error is nil; what it does not prove is no error, and changes nothing.
	ReturnMail Upload[ReturnOptions, ReturnedMail] = "POST /v1/bounces message/rfc822"
)
