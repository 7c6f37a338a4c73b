package unsubscribe

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox/suppression"
)

// Visit is a recipient who followed a link of an email.
type Visit struct {
	Account   string // id of the account that sent the mail
	MessageID string // queueId of the email; empty if the link was not in one
	List      string // id of the list the mail belongs to; empty if none
	Address   string // the recipient's

	RemoteAddress string // the request's IP address, as far as Options.StoreAddress allows; empty if not known
	UserAgent     string // the request's; empty if not known
}

// Read returns the visit that a token stands for. It returns NotFound if the token cannot be read, whatever
// the reason, and Forbidden for a preview token.
func (u *Service) Read(token string) (Visit, error) {
	s, err := u.Tokens.Read(signedtoken.Unsubscribe, token)
	if err != nil {
		reason := "forged"
		switch {
		case errors.Is(err, signedtoken.ErrPreview):
			reason = "preview"
		case errors.Is(err, signedtoken.ErrUnknownKey):
			reason = "unknown_key"
		}
		u.metrics.bad.WithLabelValues(reason).Inc()
		if reason == "preview" {
			return Visit{}, fault.Wrap(err, fault.Forbidden, "PreviewLink",
				"This link is from a preview, not from a message that was sent")
		}
		return Visit{}, fault.Wrap(err, fault.NotFound, "UnknownLink", "This link is invalid. Copy the "+
			"whole link from the email")
	}
	return Visit{Account: s.Account, MessageID: s.MessageID, List: s.List, Address: s.Address}, nil
}

// Sender returns the sender of a visit's email, or the zero Sender if it is gone or cannot be read: a request
// does not depend on it.
func (u *Service) Sender(ctx context.Context, v Visit) Sender {
	info, err := u.Account(ctx, v.Account)
	if err != nil && !fault.Is(err, fault.NotFound) {
		u.log.Warn("sender of an unsubscribe page not known", "account", v.Account, "message_id", v.MessageID,
			"error", err)
	}
	return Sender{Name: info.Name, Address: info.Email, Locale: info.Locale}
}

// Masked returns the address so that only its owner recognizes it: the first character of the local part, and
// the domain.
func (v Visit) Masked() string {
	at := strings.LastIndexByte(v.Address, '@')
	if at <= 0 {
		return "…"
	}
	_, size := utf8.DecodeRuneInString(v.Address)
	return v.Address[:size] + "…" + v.Address[at:]
}

// Scope is the mail that a request is about.
type Scope string

// The scopes.
const (
	List Scope = "list" // the list that the mail belongs to
	All  Scope = "all"  // all bulk mail of the account
)

// Scope returns the default scope of a visit: its list, or everything if the mail belongs to none.
func (v Visit) Scope() Scope {
	if v.List == "" {
		return All
	}
	return List
}

// entry returns the entry of the suppression list that an unsubscribe request adds.
func (u *Service) entry(v Visit, scope Scope, now time.Time) (suppression.Entry, error) {
	e := suppression.Entry{Address: v.Address, Reason: suppression.Unsubscribe, MessageID: v.MessageID,
		Created: now, Account: v.Account, UserAgent: v.UserAgent,
		RemoteAddress: feedback.AddressKept(v.RemoteAddress, u.storeAddress)}
	if scope == List {
		e.List = v.List
	}
	e, wrong := e.Normal("", now)
	if len(wrong) > 0 || scope == List && v.List == "" {
		return e, fault.New(fault.NotFound, "UnknownLink", "This link belongs to a message without a list "+
			"or category to unsubscribe from")
	}
	return e, nil
}

// Standing is what a visitor has unsubscribed from.
type Standing struct {
	List bool // the list of the visit
	All  bool // all bulk mail of the account
}

// Unsubscribed reports whether the visitor gets no mail of scope.
func (s Standing) Unsubscribed(scope Scope) bool { return s.All || scope == List && s.List }

// Standing returns what a visitor has unsubscribed from. It does not show bounces and complaints of the
// address.
func (u *Service) Standing(ctx context.Context, v Visit) (s Standing, err error) {
	entries, err := u.Suppressions.Find(ctx, v.Address)
	if err != nil {
		return s, err
	}
	now := u.now()
	for _, e := range entries {
		if e.Reason != suppression.Unsubscribe || e.Address == "" || !e.Expires.IsZero() && !now.Before(e.Expires) {
			continue
		}
		if e.Account == v.Account {
			s.All = s.All || e.List == ""
			s.List = s.List || v.List != "" && strings.EqualFold(e.List, v.List)
		}
	}
	return s, nil
}
