package emailengine

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// Options say where an EmailEngine is and how to read it.
type Options struct {
	From   string // http:// or https:// of its API; redis://, rediss:// or unix:// of its Redis
	Token  string // of its API; not needed for its Redis
	Secret string // EENGINE_SECRET, that its Redis is sealed with; empty: nothing is sealed
	Prefix string // EENGINE_REDIS_PREFIX, without its colon; empty: keys have none
}

// Source is an EmailEngine: its API or its Redis.
type Source interface {
	// Read returns everything but addresses of blocklists and queued mail.
	Read(ctx context.Context) (*Found, error)
	// Blocked iterates over the addresses of a blocklist.
	Blocked(ctx context.Context, list string) iter.Seq2[Blocked, error]
	// Queue returns the state of the queue of outgoing mail.
	Queue(ctx context.Context) (Queue, error)
	// Mail iterates over the queued messages. An error that is an *Unfit is about one message; the next ones
	// follow. Any other one ends it.
	Mail(ctx context.Context) iter.Seq2[Message, error]
	// Close ends the connections.
	Close() error
}

// Found is what an EmailEngine has.
type Found struct {
	Accounts  []Part[api.Account]
	Gateways  []Part[api.Gateway]
	Templates []api.TemplateRequest // with their ids
	Lists     []api.Blocklist
	Settings  Part[api.Settings]
	Unfit     []Unfit // what can't be taken
}

// Part is something that can be taken, perhaps without some of it.
type Part[T any] struct {
	Value T
	Lacks []string // what is not taken, each with its reason; empty: all of it is taken
}

// Unfit is something that can't be taken.
type Unfit struct {
	Kind string // account, gateway, template, blocklist, setting, webhook route, message
	ID   string
	Why  string
}

func (u *Unfit) Error() string { return u.Kind + " " + u.ID + ": " + u.Why }

// Blocked is an address of a blocklist.
type Blocked struct {
	Account   string    `json:"account"` // that the entry was made for; empty: not known
	Recipient string    `json:"recipient"`
	Reason    string    `json:"reason"`
	Created   time.Time `json:"created"` // zero: not known
}

// Queue is the state of EmailEngine's queue of outgoing mail.
type Queue struct {
	Paused bool
	Queued int // messages waiting, delayed, or being sent
}

// Message is a queued message. Its idempotency key is made of its id in EmailEngine, so that it is queued
// here once, however often it is submitted.
type Message struct {
	ID     string
	Submit api.SubmitRequest
}

// Open returns the source at o.From. It does not connect yet. An error says what is wrong with o.From.
func Open(o Options) (Source, error) {
	u, err := url.Parse(o.From)
	if err != nil {
		return nil, &addressError{}
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host == "" {
			return nil, &addressError{}
		}
		return openAPI(u, o.Token), nil
	case "redis", "rediss", "unix":
		return openRedis(o)
	}
	return nil, &addressError{}
}

// addressError is that of an address of no EmailEngine. It does not repeat it, since it may have a password.
type addressError struct{}

func (*addressError) Error() string {
	return "must be the address of EmailEngine's API, such as http://127.0.0.1:3000, or of its Redis, such as redis://127.0.0.1:6379/8"
}

// masked is how EmailEngine's API shows a secret.
const masked = "******"

// hidden reports whether a text has a masked secret in it, perhaps escaped as in a URL.
func hidden(text string) bool {
	return strings.Contains(text, masked) || strings.Contains(strings.ToLower(text), "%2a%2a%2a%2a%2a%2a")
}
