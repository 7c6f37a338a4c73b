package server

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
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
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/webhooks"
)

// Parts are what the server needs. All are required.
type Parts struct {
	Outbox *outbox.Outbox
	// Submit accepts a message. It is Outbox.Intake's method; tests replace it to make it fail.
	Submit func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error)

	Accounts   *accounts.Accounts
	Gateways   *gateways.Store
	OAuth      *oauth.Tokens
	DomainKeys *dkim.Keys
	Templates  *templates.Templates
	Documents  *search.Documents
	// Login tries to log in to the relays that a request names or describes.
	Login        func(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error)
	Admin        *apiadmin.Client // asks the providers' APIs
	DNS          *provision.DNS
	Senders      *senders.Proofs
	Access       *access.Access
	People       *people.People
	Settings     *settings.Settings
	Webhooks     *webhooks.Webhooks
	Suppressions *suppression.Store
	Provider     *suppression.Providers
	Audience     *audience.Subscribers
	OptIn        *audience.Confirmations
	Campaigns    *newsletter.Campaigns
	Digests      *digest.Digests
	Erasures     *erasure.Erasures
	Why          *why.Why
	Overview     *alerts.Overview
	Feedback     *feedback.Feedback
	Bounces      *feedback.Bounces
	Unsubscribe  *unsubscribe.Service
	Tracking     *tracking.Tracking
	Audit        *audit.Log
	State        State
}

// Provision returns what changes accounts and gateways.
func (p Parts) Provision() *provision.Provisioner {
	return &provision.Provisioner{Accounts: p.Accounts, Gateways: p.Gateways, OAuth: p.OAuth, Outbox: p.Outbox,
		Tokens: p.Access, People: p.People, Templates: p.Templates, DNS: p.DNS, Login: p.Login,
		Admin: p.Admin}
}

// State is the health of the instance. Package app implements it.
type State interface {
	// Checks tries each thing that must work before mail is accepted.
	Checks(ctx context.Context) []api.Check
	// Durability returns what the connected Redis can lose.
	Durability(ctx context.Context) (api.Durability, error)
	// Alerts lists the current problems, oldest first. With an error it returns what this process knows.
	Alerts(ctx context.Context) ([]api.Alert, error)
}
