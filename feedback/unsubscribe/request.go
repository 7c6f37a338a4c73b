package unsubscribe

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/suppression"
)

// Via is how a wish came.
type Via string

// The ways.
const (
	OneClick    Via = "one-click"   // a mail client's button (RFC 8058)
	Page        Via = "page"        // the button of the unsubscribe page
	Preferences Via = "preferences" // the page of preferences
	Link        Via = "link"        // a link that was merely followed, where the setting wants that to be enough
)

// vias are all of them.
var vias = [...]Via{OneClick, Page, Preferences, Link}

// toldWithin is how long a repeated wish is told again, in case it could not be told the first time. Facts have keys, so this tells none twice.
const toldWithin = time.Hour

// Unsubscribe takes a visitor off a list, or off all bulk mail of the account. When it returns nil the wish is in the suppression list; having
// been there before is as good. An error of kind Unavailable means that it may not be.
func (u *Service) Unsubscribe(ctx context.Context, v Visit, scope Scope, via Via) error {
	e, err := v.entry(scope, u.now())
	if err != nil {
		return err
	}
	e.Source = string(via)
	added, err := u.Suppressions.Add(ctx, e)
	if err != nil {
		u.metrics.requests.WithLabelValues("leave", string(via), "failed").Inc()
		return fmt.Errorf("unsubscribe by a link of message %s: %w", v.MessageID, err)
	}
	if added == 0 {
		u.metrics.requests.WithLabelValues("leave", string(via), "repeated").Inc()
		if first, ok := u.first(ctx, e); ok && e.Created.Sub(first.Created) < toldWithin {
			u.tell(ctx, event.ListUnsubscribe, v, first, via)
		}
		return nil
	}
	u.metrics.requests.WithLabelValues("leave", string(via), "done").Inc()
	u.log.Info("unsubscribed", "message_id", v.MessageID, "account", v.Account, "list", e.List, "to", v.Masked(), "via", string(via))
	u.tell(ctx, event.ListUnsubscribe, v, e, via)
	return nil
}

// Resubscribe puts a visitor back. Only a wish to leave is taken away; what else there is about the address stays. Who has not left gets the same
// answer.
func (u *Service) Resubscribe(ctx context.Context, v Visit, scope Scope, via Via) error {
	e, err := v.entry(scope, u.now())
	if err != nil {
		return err
	}
	removed, err := u.Suppressions.Remove(ctx, e)
	if err != nil {
		u.metrics.requests.WithLabelValues("return", string(via), "failed").Inc()
		return fmt.Errorf("subscribe by a link of message %s: %w", v.MessageID, err)
	}
	if !removed {
		u.metrics.requests.WithLabelValues("return", string(via), "repeated").Inc()
		return nil
	}
	u.metrics.requests.WithLabelValues("return", string(via), "done").Inc()
	u.log.Info("subscribed again", "message_id", v.MessageID, "account", v.Account, "list", e.List, "to", v.Masked(), "via", string(via))
	e.Created = u.now().UTC()
	u.tell(ctx, event.ListSubscribe, v, e, via)
	return nil
}

// first is the entry that a wish found in its place.
func (u *Service) first(ctx context.Context, e suppression.Entry) (suppression.Entry, bool) {
	entries, err := u.Suppressions.Find(ctx, e.Address)
	if err != nil {
		u.log.Warn("unsubscribed already, by what is not known", "message_id", e.MessageID, "error", err)
		return e, false
	}
	for _, there := range entries {
		if there.Reason == e.Reason && there.Address == e.Address && there.Account == e.Account && there.List == e.List {
			return there, true
		}
	}
	return e, false
}

// tell puts what happened onto the timeline of the message, and so into webhooks. The message is that of the entry: who unsubscribes by two
// mails has unsubscribed by the first.
func (u *Service) tell(ctx context.Context, what event.Type, v Visit, e suppression.Entry, via Via) {
	fact := outbox.Later{
		Key: key(e), Type: what, Account: v.Account, MessageID: e.MessageID, Recipient: v.Address, At: e.Created,
		Told: event.Later{Source: "unsubscribe", Reason: string(via), ListID: e.List},
	}
	if err := u.Inbox.Append(ctx, []outbox.Later{fact}); err != nil {
		u.metrics.untold.Inc()
		u.log.Error("a wish was heeded but not told to webhooks", "event", string(what), "message_id", e.MessageID, "account", v.Account, "error", err)
	}
}

// key is the same each time one wish is told: of an address, about an account or a list, at a time.
func key(e suppression.Entry) string {
	sum := sha256.Sum256([]byte(e.Address + "\x00" + e.Account + "\x00" + e.List))
	return fmt.Sprintf("unsubscribe/%s/%d", base64.RawURLEncoding.EncodeToString(sum[:18]), e.Created.UnixMilli())
}
