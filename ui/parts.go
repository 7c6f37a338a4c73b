package ui

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

// Parts are what the pages show and change. All are required.
type Parts struct {
	Outbox       Outbox
	Queues       Queues
	Webhooks     Webhooks
	Suppressions Suppressions
	Accounts     Accounts
	Gateways     Gateways
	Templates    Templates
	Documents    Documents
	Access       Access
	State        State
	Dashboard    http.Handler // of the queues, mounted at DashboardPath; queue.Dashboard is one
}

// Reader shows messages. It is outbox.Outbox.
type Reader interface {
	List(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error)
	Get(ctx context.Context, id string) (api.OutboxMessage, error)
	// DeadLetter answers a message about which Get only says that it failed.
	DeadLetter(ctx context.Context, id string) (api.DeadLetter, error)
	Content(ctx context.Context, id string) ([]byte, error)
}

// Log remembers messages beyond their end. It is outbox.Outbox.
type Log interface {
	Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error)
	Message(ctx context.Context, id string) (api.LoggedMessage, error)
	MessageEvents(ctx context.Context, id string) (api.MessageEvents, error)
}

// Changer changes messages. It is outbox.Outbox.
type Changer interface {
	Cancel(ctx context.Context, id, reason string) (api.DeleteAnswer, error)
	CancelAll(ctx context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer, error)
	Retry(ctx context.Context, id string) (api.OutboxMessage, error)
	Patch(ctx context.Context, id string, p api.OutboxPatch) (api.OutboxMessage, error)
}

// Replayer sends failed messages again. It is outbox.Outbox.
type Replayer interface {
	Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error)
	ReplayAll(ctx context.Context, req api.ReplayRequest) (api.ReplayAnswer, error)
}

// Outbox is all that the pages of messages need. It is outbox.Outbox.
type Outbox interface {
	Reader
	Log
	Changer
	Replayer
}

// Queues counts, pauses and resumes. It is outbox.Outbox.
type Queues interface {
	QueueStatus(ctx context.Context, name string) (api.QueueStatus, error)
	SetPaused(ctx context.Context, name string, paused bool) error
	Counters(ctx context.Context, q api.CounterQuery) (api.Counters, error)
}

// Endpoints shows where webhooks go. It is webhooks.Webhooks.
type Endpoints interface {
	Endpoints(ctx context.Context, page, pageSize int) (api.EndpointPage, error)
	Endpoint(ctx context.Context, id string) (api.Endpoint, error)
	Test(ctx context.Context, endpoint string) (api.EndpointTested, error)
}

// Deliveries shows and repeats what was sent. It is webhooks.Webhooks.
type Deliveries interface {
	Deliveries(ctx context.Context, endpoint string, page, pageSize int) (api.DeliveryPage, error)
	// FindDeliveries lists those about messages that a search finds.
	FindDeliveries(ctx context.Context, endpoint, q string, page, pageSize int) (api.DeliveryPage, error)
	Redeliver(ctx context.Context, endpoint, id string) (api.Redelivered, error)
}

// Webhooks is all that the pages of webhooks need. It is webhooks.Webhooks.
type Webhooks interface {
	Endpoints
	Deliveries
}

// Accounts lists the senders. It is accounts.Accounts.
type Accounts interface {
	List(ctx context.Context, page, pageSize int) (api.AccountPage, error)
}

// Gateways lists the relays that accounts share. It is relays.Relays.
type Gateways interface {
	List(ctx context.Context, page, pageSize int) (api.GatewayPage, error)
}

// TemplateVersions keeps what templates were before. It is templates.Templates.
type TemplateVersions interface {
	Versions(ctx context.Context, bound, id string) (api.TemplateVersions, error)
	Version(ctx context.Context, bound, id string, number int) (api.TemplateVersion, error)
	Restore(ctx context.Context, bound, id string, number int) (api.TemplateUpdated, error)
}

// Templates shows what mail is made of. Bound is empty: the pages show the whole instance. It is templates.Templates.
type Templates interface {
	List(ctx context.Context, bound string, q api.TemplateQuery) (api.TemplatePage, error)
	Get(ctx context.Context, bound, id string) (api.Template, error)
	Preview(ctx context.Context, bound, id string, req api.TemplatePreviewRequest) (api.TemplatePreview, error)
	TemplateVersions
}

// Documents finds mail, long after the log has forgotten it. It is documents.Documents.
type Documents interface {
	Search(ctx context.Context, q api.DocumentQuery) (api.DocumentPage, error)
}

// Access says who may see the pages. It is access.Access.
type Access interface {
	Authenticate(ctx context.Context, token string, remote netip.Addr, now time.Time) (*access.Grant, error)
	Session(ctx context.Context, cookie string, remote netip.Addr, now time.Time) (*access.Grant, error)
	Sessions
}

// Sessions opens and ends sessions. It is access.Access.
type Sessions interface {
	Login(ctx context.Context, token string, remote netip.Addr, now time.Time) (cookie string, err error)
	Logout(ctx context.Context, cookie string) error
}

// State tells how the instance is doing. Package app joins it from the parts that know.
type State interface {
	// Checks tries each thing that must hold for work to be taken on.
	Checks(ctx context.Context) []api.Check
	// Durability says what the connected Redis can lose.
	Durability(ctx context.Context) (api.Durability, error)
	// Alerts lists what is wrong now, oldest first. It answers what this process knows even when it fails.
	Alerts(ctx context.Context) ([]api.Alert, error)
}
