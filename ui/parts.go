package ui

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/server"
)

// Parts are what the pages show and change: the parts of the API, of which they need no Submit, Feedback,
// Bounces, Unsubscribe and Tracking, and fields of their own, which are all required.
type Parts struct {
	server.Parts
	Look      audit.Look             // at records, before and after a change; server.Look is one
	OpenAPI   func() ([]byte, error) // the OpenAPI document, as JSON
	Dashboard http.Handler           // of the queues, mounted at DashboardPath; queue.Dashboard is one
	Viewer    http.Handler           // the same, without buttons, for those who may change nothing
	// AskAgain sends the mail again that asks to confirm a subscription; Again of audience.Confirmations
	AskAgain func(ctx context.Context, bound string, of api.SubscriberAccount, subscriber, list string) (
		api.ConfirmationSent, error)
	// AskSender sends a mail to an address, whose link lets an account send as it; Ask of senders.Proofs
	AskSender func(ctx context.Context, account, address string) (api.SenderInfo, error)
}
