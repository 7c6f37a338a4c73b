package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates/render"
)

// Sender takes one message to one of its account's relays. The routes package implements it; package app joins the two.
type Sender interface {
	Send(ctx context.Context, d Dispatch) Dispatched
}

// Dispatch is a message on its way to a relay.
type Dispatch struct {
	ID      string // of the message
	Account string
	Gateway string // the only one to use; empty: as the account and the lane say
	Lane    api.Lane
	Slot    string // the place in a limit that an earlier Dispatched gave; empty: none
	Message smtpsend.Message
}

// Dispatched says what came of it.
type Dispatched struct {
	Tries  []Try           // in order; the last one is what counts
	Result smtpsend.Result // of the one that counts
	Err    error           // nil: somebody got the message; [ErrNoGateway]: the one named does not exist

	Wait   time.Time // not zero: a limit is reached, nothing was tried; come back then, and show Slot
	Slot   string
	Reason string // why to wait, for people
}

// Try is one relay asked.
type Try struct {
	Gateway    string // empty: the account's own relay
	Host       string // with port
	Start, End time.Time
	Result     smtpsend.Result
	Err        error
}

// ErrNoGateway is why a message can't be sent whose gateway was deleted.
var ErrNoGateway = errors.New("the gateway no longer exists")

// Signer signs messages at the door.
type Signer interface {
	// Sign answers the content with the signature that belongs to the account, or to the author's domain; as it is when there is no key.
	Sign(ctx context.Context, account, domain string, content []byte) ([]byte, error)
}

// Templates finds stored templates. The templates package implements it; package app joins the two.
type Templates interface {
	// Template finds a template as an account may use it, in its variant for a locale, with all that rendering needs. Unknown: a fault of
	// kind NotFound with code TemplateNotFound.
	Template(ctx context.Context, account, id, locale string) (Template, error)
}

// Template is a stored template at one version.
type Template struct {
	ID      string
	Version int
	Source  render.Source
	Options render.Options
	Strict  bool // variables that are missing are an error
}

// Accounts knows who sends and through which relay. The accounts package implements it; package app joins the two.
type Accounts interface {
	// Account finds an account. Unknown: a fault of kind NotFound.
	Account(ctx context.Context, id string) (Account, error)
	// Gateway says whether there is a gateway of this id. None: a fault of kind NotFound.
	Gateway(ctx context.Context, id string) error
	// Outcome tells what an attempt through the account met; nil is success.
	Outcome(ctx context.Context, id string, err error)
	// Trial says whether a message of a held account may be tried all the same: once at each check that is due.
	Trial(ctx context.Context, id string) (bool, error)
}

// Account is a sender, ready to use.
type Account struct {
	ID     string
	Name   string
	Email  string
	Locale string // of the templates it uses; empty: en
	TZ     string // likewise; empty: UTC

	TrackOpens, TrackClicks *bool // of mail that doesn't say; nil: as Options.Track says

	Retry []time.Duration      // delays between attempts; nil: Options.Backoff
	Hold  bool                 // mail waits while the account itself is refused, instead of failing
	Held  *Held                // nil: it does not wait now
	Ready func(api.Lane) error // why no message of a lane is taken that names no gateway; nil error, or nil: there is a relay
}

// Held is an account whose mail waits because its login, token, certificate or sender was refused.
type Held struct {
	Reason string
	Next   time.Time // when a message is tried again
}

// Parts are what an Outbox is built from.
type Parts struct {
	DB        *redisdb.DB
	Queue     *queue.Client
	Control   *queue.Control
	Sender    Sender
	Accounts  Accounts
	Signer    Signer    // nil: nothing is signed
	Templates Templates // nil: there are none

	Suppressions *suppression.Store // whom not to mail; nil: everybody may be mailed

	Tokens *signedtoken.Ring // makes the tokens of links, pictures and return paths; nil: there are none
}
