package unsubscribe

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Via is the way a request came.
type Via string

// The ways.
const (
	OneClick    Via = "one-click"   // a mail client's button (RFC 8058)
	Page        Via = "page"        // the button of the unsubscribe page
	Preferences Via = "preferences" // the page of preferences
	Link        Via = "link"        // a link that was followed, if the setting makes that enough
)

// repeatWithin is how long a repeated request puts its fact into the inbox again, in case that failed the
// first time. Facts have keys, so none is applied twice.
const repeatWithin = time.Hour

// Unsubscribe stops the mail of scope. When it returns nil, the entry is in the suppression list; an earlier
// entry is as good. After an error of kind Unavailable it may not be.
func (u *Service) Unsubscribe(ctx context.Context, v Visit, scope Scope, via Via) error {
	e, err := u.entry(v, scope, u.now())
	if err != nil {
		return err
	}
	e.Source = string(via)
	added, err := u.Suppressions.Add(ctx, e)
	u.count(ctx, "leave", v, e, via, added > 0, err)
	switch {
	case err != nil:
		return fmt.Errorf("unsubscribe by a link of message %s: %w", v.MessageID, err)
	case added > 0:
		u.putFact(ctx, event.ListUnsubscribe, v, e, via)
	default:
		if first, ok := u.first(ctx, e); ok && e.Created.Sub(first.Created) < repeatWithin {
			u.putFact(ctx, event.ListUnsubscribe, v, first, via)
		}
	}
	return nil
}

// Resubscribe takes an unsubscribe entry back. Other entries of the address stay. Without an entry it
// succeeds too.
func (u *Service) Resubscribe(ctx context.Context, v Visit, scope Scope, via Via) error {
	e, err := u.entry(v, scope, u.now())
	if err != nil {
		return err
	}
	removed, err := u.Suppressions.Remove(ctx, e)
	u.count(ctx, "return", v, e, via, removed, err)
	if err != nil {
		return fmt.Errorf("subscribe by a link of message %s: %w", v.MessageID, err)
	}
	if removed {
		e.Created = u.now().UTC()
		u.putFact(ctx, event.ListSubscribe, v, e, via)
	}
	return nil
}

// count counts the outcome of a request, and logs one that changed the list.
func (u *Service) count(ctx context.Context, request string, v Visit, e suppression.Entry, via Via,
	changed bool, err error) {
	outcome := "repeated"
	switch {
	case err != nil:
		outcome = "failed"
	case changed:
		outcome = "done"
		u.log.InfoContext(ctx, map[string]string{"leave": "unsubscribed", "return": "subscribed again"}[request],
			"message_id", v.MessageID, "account", v.Account, "list", e.List, "to", v.Masked(), "via", string(via))
	}
	u.metrics.requests.WithLabelValues(request, string(via), outcome).Inc()
}

// first returns the entry that was there before a repeated request.
func (u *Service) first(ctx context.Context, e suppression.Entry) (suppression.Entry, bool) {
	entries, err := u.Suppressions.Find(ctx, e.Address)
	if err != nil {
		u.log.WarnContext(ctx, "the earlier unsubscribe entry can't be read", "message_id", e.MessageID, "error",
			err)
		return e, false
	}
	for _, there := range entries {
		if there.Reason == e.Reason && there.Address == e.Address && there.Account == e.Account &&
			there.List == e.List {
			return there, true
		}
	}
	return e, false
}

// putFact puts a request onto the timeline of its message, and so into webhooks. The message is the entry's:
// someone who unsubscribes by two emails has unsubscribed by the first.
func (u *Service) putFact(ctx context.Context, what event.Type, v Visit, e suppression.Entry, via Via) {
	fact := outbox.Fact{
		Key: key(e), Type: what, Account: v.Account, MessageID: e.MessageID, Recipient: v.Address, At: e.Created,
		Details: event.Later{Source: "unsubscribe", Reason: string(via), ListID: e.List,
			RemoteAddress: e.RemoteAddress, UserAgent: e.UserAgent},
	}
	if err := u.Append(ctx, []outbox.Fact{fact}); err != nil {
		u.metrics.unsent.Inc()
		u.log.ErrorContext(ctx, "an unsubscribe request was carried out, but webhooks do not learn of it",
			"event", string(what), "message_id", e.MessageID, "account", v.Account, "error", err)
	}
}

// key is the same for each repetition of one request: an address, an account or a list, and a time.
func key(e suppression.Entry) string {
	sum := sha256.Sum256([]byte(e.Address + "\x00" + e.Account + "\x00" + e.List))
	return fmt.Sprintf("unsubscribe/%s/%d", base64.RawURLEncoding.EncodeToString(sum[:18]),
		e.Created.UnixMilli())
}
