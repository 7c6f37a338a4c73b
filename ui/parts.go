package ui

import (
	"context"
	"net/http"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/alerts"
	"github.com/postroom/postroom/server/erasure"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/server/provision"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/server/why"
	"github.com/postroom/postroom/webhooks"
)

// Parts are what the pages show and change. All are required.
type Parts struct {
	Outbox       *outbox.Outbox
	Webhooks     *webhooks.Webhooks
	Suppressions *suppression.Store
	Audience     *audience.Subscribers
	Campaigns    *newsletter.Campaigns
	Digests      *digest.Digests
	Erasures     *erasure.Erasures
	Why          *why.Why
	Overview     *alerts.Overview
	Accounts     *accounts.Accounts
	Gateways     *gateways.Store
	Provision    *provision.Provisioner
	Templates    *templates.Templates
	Documents    *search.Documents
	Access       *access.Access
	People       *people.People
	Settings     *settings.Settings
	Audit        *audit.Log
	Look         audit.Look // at records, before and after a change
	State        State
	OpenAPI      func() ([]byte, error) // the OpenAPI document, as JSON
	Dashboard    http.Handler           // of the queues, mounted at DashboardPath; queue.Dashboard is one
	Viewer       http.Handler           // the same, without buttons, for those who may change nothing
	// LinkURL returns the URL of the page of a one-time link; server.LinkURL is one
	LinkURL func(service, secret string) string
	// AskAgain sends the mail again that asks to confirm a subscription; Again of audience.Confirmations
	AskAgain func(ctx context.Context, bound string, of api.SubscriberAccount, subscriber, list string) (
		api.ConfirmationSent, error)
	// ListForm returns the public form of a list; Form of audience.Confirmations
	ListForm func(ctx context.Context, bound, list string) (api.ListForm, error)
	// AskSender sends a mail to an address, whose link lets an account send as it; Ask of senders.Proofs
	AskSender func(ctx context.Context, account, address string) (api.SenderInfo, error)
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
