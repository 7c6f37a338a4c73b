package outbox

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates"
)

// Router sends one message through one of its account's relays. It is routing.Router.
type Router interface {
	Send(ctx context.Context, d routing.Dispatch) routing.Sent
	Slots(scope string, lane api.Lane) int
	ExpectWaiting(scope string, n int)
	Answers(scope string) bool
	Instead(account accounts.Sender, lane api.Lane, scope string) string
}

// Accounts finds senders and their relays. It is accounts.Accounts.
type Accounts interface {
	Resolve(ctx context.Context, id string) (accounts.Sender, error)
	Outcome(ctx context.Context, id string, err error)
	Trial(ctx context.Context, id string) (bool, error)
	Quota(ctx context.Context, id string) (accounts.Quota, error)
	Exceeded(ctx context.Context, e accounts.Excess) error
}

// Gateways reports whether a gateway exists, and judges the path of a message. It is gateways.Store.
type Gateways interface {
	CheckPath(p gateways.Path) gateways.Faults
	Exists(ctx context.Context, id string) (bool, error)
}

// Templates finds stored templates. It is templates.Templates.
type Templates interface {
	Template(ctx context.Context, account, id, locale string) (templates.Template, error)
	Count(ctx context.Context, account string) (int, error)
}

// Parts are what an Outbox is built from.
type Parts struct {
	DB        *redisdb.DB
	Queue     *queue.Client
	Control   *queue.Control
	Router    Router
	Accounts  Accounts
	Gateways  Gateways
	Signer    *dkim.Signer // nil: nothing is signed
	Templates Templates    // nil: there are none

	Suppressions *suppression.Store // nil: nobody is suppressed
	Tokens       *signedtoken.Ring  // signs links, pixels and return paths; nil: there are none
	// Campaign reports whether the run that a message is of goes on; nil: all do
	// and Conflict if the message must not be sent any more
	Campaign func(ctx context.Context, messageID string) (Turn, error)
	// MayReplay returns Conflict if a dead letter of a campaign must not be replayed; nil: all may be
	MayReplay func(ctx context.Context, messageID string) error
	// Kept returns what an account has in other parts: subscribers, and events that wait for digests; nil: none
	Kept func(ctx context.Context, account string) (subscribers, events int, err error)
	Ring *seal.Ring // opens sealed contents; nil: none are sealed
}
