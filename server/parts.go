package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates"
)

// Parts are what the server answers from.
type Parts struct {
	Intake       Submitter
	Outbox       Outbox
	Queues       Queues
	Accounts     Accounts
	Gateways     *gateways.Store
	OAuth        *oauth.Tokens
	DomainKeys   *dkim.Keys
	Templates    *templates.Templates
	Documents    Documents
	Verifier     Verifier
	Access       Authenticator
	Tokens       *access.Access
	Settings     *settings.Settings
	Webhooks     Webhooks
	Suppressions *suppression.Store
	Feedback     Feedback
	Returns      Returns
	Unsubscribe  *unsubscribe.Service
	Tracking     Tracking
	State        State
}

// Submitter takes messages. It is outbox.Outbox.
type Submitter interface {
	Submit(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error)
}

// Outbox shows and changes messages: queued ones, dead letters, and the email log. It is outbox.Outbox.
type Outbox interface {
	List(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error)
	Get(ctx context.Context, id string) (api.OutboxMessage, error)
	Content(ctx context.Context, id string) ([]byte, error)
	// AccountOf returns the account that a message belongs or belonged to; empty: unknown.
	AccountOf(ctx context.Context, id string) (string, error)

	Cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, error)
	CancelAll(ctx context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer, error)
	Retry(ctx context.Context, id string) (api.OutboxMessage, error)
	Patch(ctx context.Context, id string, p api.OutboxPatch) (api.OutboxMessage, error)

	DeadLetters(ctx context.Context, q api.OutboxQuery) (api.DeadLetterPage, error)
	DeadLetter(ctx context.Context, id string) (api.DeadLetter, error)
	// Replay queues a dead letter again, with corrections.
	Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error)
	ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error)
	DeleteDeadLetter(ctx context.Context, id string) (api.DeleteAnswer, error)

	Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error)
	Message(ctx context.Context, id string) (api.LoggedMessage, error)
	MessageEvents(ctx context.Context, id string) (api.MessageEvents, error)
	Rates(ctx context.Context, q api.RatesQuery) (api.Rates, error)
}

// Queues counts, pauses and resumes. It is outbox.Outbox.
type Queues interface {
	QueueStatus(ctx context.Context, name string) (api.QueueStatus, error)
	SetPaused(ctx context.Context, name string, paused bool) error
	Counters(ctx context.Context, q api.CounterQuery) (api.Counters, error)
}

// Accounts keeps the senders. It is accounts.Accounts.
type Accounts interface {
	Create(ctx context.Context, a api.Account) (api.AccountCreated, error)
	Get(ctx context.Context, id string) (api.AccountInfo, error)
	List(ctx context.Context, page, pageSize int) (api.AccountPage, error)
	Update(ctx context.Context, id string, p api.AccountPatch) (api.AccountInfo, error)
	Delete(ctx context.Context, id string) error
	Count(ctx context.Context) (int, error)
	// Configured reports whether the account is in the configuration, and so survives its deletion.
	Configured(id string) bool
	// UsingGateway lists the accounts that have a gateway on their list.
	UsingGateway(ctx context.Context, gateway string) ([]string, error)
	// GatewayEdited has held accounts that list a gateway checked at once.
	GatewayEdited(ctx context.Context, gateway string) error
}

// Verifier tries to log in to a relay. Package app makes it of accounts and smtpsend.
type Verifier interface {
	Verify(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error)
}

// Authenticator returns what the holder of a token or a session may do. It is access.Access.
type Authenticator interface {
	Authenticate(ctx context.Context, token string, remote netip.Addr, now time.Time) (*access.Grant, error)
	Session(ctx context.Context, cookie string, remote netip.Addr, now time.Time) (*access.Grant, error)
}

// Webhooks stores webhook endpoints, and shows and repeats their deliveries. It is webhooks.Webhooks.
type Webhooks interface {
	Create(ctx context.Context, req api.EndpointRequest) (api.Endpoint, error)
	Endpoint(ctx context.Context, id string) (api.Endpoint, error)
	Endpoints(ctx context.Context, page, pageSize int) (api.EndpointPage, error)
	Update(ctx context.Context, id string, req api.EndpointRequest) (api.Endpoint, error)
	Delete(ctx context.Context, id string) (bool, error)

	Test(ctx context.Context, endpoint string) (api.EndpointTested, error)
	Deliveries(ctx context.Context, endpoint string, page, pageSize int) (api.DeliveryPage, error)
	// FindDeliveries lists the deliveries about messages that a search finds.
	FindDeliveries(ctx context.Context, endpoint, q string, page, pageSize int) (api.DeliveryPage, error)
	Delivery(ctx context.Context, endpoint, id string) (api.Delivery, error)
	Redeliver(ctx context.Context, endpoint, id string) (api.Redelivered, error)
	Replay(ctx context.Context, endpoint string, since time.Time) (api.Replayed, error)
}

// Documents is the search index. It is documents.Documents.
type Documents interface {
	Search(ctx context.Context, q api.DocumentQuery) (api.DocumentPage, error)
	State(ctx context.Context) (api.DocumentsState, error)
	Rebuild(ctx context.Context) (api.DocumentRebuild, error)
}

// State is the state of the instance. Package app implements it.
type State interface {
	// Checks tries each thing that must hold for work to be taken on.
	Checks(ctx context.Context) []api.Check
	// Durability returns what the connected Redis can lose. Stats shows its Mode.
	Durability(ctx context.Context) (api.Durability, error)
	// Alerts lists what is wrong now, oldest first. It answers what this process knows even when it fails.
	Alerts(ctx context.Context) ([]api.Alert, error)
}
