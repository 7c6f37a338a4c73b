package feedback

import (
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// Page is one answer of an events API, which has the events of the provider's webhooks.
type Page = apiadmin.EventPage

// Source is an events API to reconcile with. [Gateway] implements it.
type Source interface {
	// Name is the source in keys, metrics and [Feedback.Status]. It has its own position.
	Name() string
	// Page returns one page of the events between two times. cursor is empty for the first page, then Page.Next
	// of the page before. It returns ErrPaused if nothing may be asked now.
	Page(ctx context.Context, from, to time.Time, cursor string) (Page, error)
}

// ErrPaused is the error for a source that must not be asked now. It isn't a failure.
var ErrPaused = errors.New("the gateway is paused after failures, or its provider asked to slow down; its " +
	"events are read when it works again")

// Gateway is the events API of a gateway, or of an account at a provider that the settings name.
type Gateway struct {
	ID     string
	Client *apiadmin.Client
	// Target returns the account at the provider, or ErrPaused. It is asked at the beginning of each reading and
	// again for each page: a corrected key counts immediately.
	Target func(ctx context.Context) (apisend.Target, error)
}

// Name returns the gateway's id.
func (g Gateway) Name() string { return g.ID }

// Page reads one page of the gateway's events API.
func (g Gateway) Page(ctx context.Context, from, to time.Time, cursor string) (Page, error) {
	t, err := g.Target(ctx)
	if err != nil {
		return Page{}, err
	}
	return g.Client.Events(ctx, t, from, to, cursor)
}
