package unsubscribe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Sender is an account as its recipients see it. The zero Sender is an account that does not exist any more.
type Sender struct {
	Name    string // display name; empty if none
	Address string // that its mail comes from
	Locale  string // language of its mail (BCP 47); empty if not known
}

// Parts are what unsubscribing needs. All are required.
type Parts struct {
	Tokens       *signedtoken.Ring // reads the links of an email
	Suppressions *suppression.Store
	Append       func(ctx context.Context, facts []outbox.Fact) error               // feedback.Feedback's
	Account      func(ctx context.Context, account string) (api.AccountInfo, error) // Get of accounts.Accounts
}

// Options are the settings. The zero value works.
type Options struct {
	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // defaults to time.Now
	// StoreAddress is the part of a visitor's IP address that is kept, as in feedback.Options. Defaults to
	// feedback.AddressMasked.
	StoreAddress string
}

// Service carries out unsubscribe requests. It is safe for concurrent use.
type Service struct {
	Parts
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time

	storeAddress string
}

// New makes a Service.
func New(parts Parts, o Options) (*Service, error) {
	if parts.Tokens == nil || parts.Suppressions == nil || parts.Append == nil || parts.Account == nil {
		return nil, errors.New("new unsubscribe: a part is missing")
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{Parts: parts, log: o.Logger, metrics: newMetrics(o.Registry), now: o.Now,
		storeAddress: o.StoreAddress}, nil
}
