package ui

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates"
	"github.com/postroom/postroom/webhooks"
)

// Parts are what the pages show and change. All are required.
type Parts struct {
	Outbox       *outbox.Outbox
	Webhooks     *webhooks.Webhooks
	Deliveries   DeliverySearch
	Suppressions *suppression.Store
	Accounts     Accounts
	Gateways     Gateways
	Templates    *templates.Templates
	Documents    Documents
	Access       *access.Access
	State        State
	Dashboard    http.Handler // of the queues, mounted at DashboardPath; queue.Dashboard is one
}

// DeliverySearch finds the deliveries to an endpoint that are about certain messages. It is
// webhooks.Webhooks.
type DeliverySearch interface {
	FindDeliveries(ctx context.Context, endpoint, q string, page, pageSize int) (api.DeliveryPage, error)
}

// Accounts lists the senders. It is accounts.Accounts.
type Accounts interface {
	List(ctx context.Context, page, pageSize int) (api.AccountPage, error)
}

// Gateways lists the relays that accounts share. It is gateways.Gateways.
type Gateways interface {
	List(ctx context.Context, page, pageSize int) (api.GatewayPage, error)
}

// Documents finds mail in the search index. It is documents.Documents.
type Documents interface {
	Search(ctx context.Context, q api.DocumentQuery) (api.DocumentPage, error)
}

// State is the health of the instance. Package app implements it.
type State interface {
	// Checks tries each thing that must work before mail is accepted.
	Checks(ctx context.Context) []api.Check
	// Durability returns what the connected Redis can lose.
	Durability(ctx context.Context) (api.Durability, error)
	// Alerts lists what is wrong now, oldest first. With an error it returns what this process knows.
	Alerts(ctx context.Context) ([]api.Alert, error)
}
