package provision

import (
	"context"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/smtpsend/apiadmin"
)

// Provisioner changes accounts and gateways. All fields are required.
type Provisioner struct {
	Accounts  *accounts.Accounts
	Gateways  *gateways.Store
	OAuth     *oauth.Tokens
	Outbox    *outbox.Outbox
	Tokens    *access.Access
	People    *people.People
	Templates *templates.Templates
	DNS       *DNS
	Admin     *apiadmin.Client // asks the providers' APIs
	// Login tries to log in to relays
	Login func(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error)
}

// verifyTimeout is the timeout for a relay while the client waits. Delivery's timeouts are longer.
const verifyTimeout = 20 * time.Second

// Verify tries to log in to the relays that a request names or describes. It sends nothing, and returns
// within 20 seconds.
func (p *Provisioner) Verify(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return p.Login(ctx, req)
}
