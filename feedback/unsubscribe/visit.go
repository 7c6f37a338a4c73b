package unsubscribe

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/suppression"
)

// Visit is a recipient who followed a link of a mail: whom it was sent to, by whom, and about what.
type Visit struct {
	Account   string // id of the account that sent the mail
	MessageID string // queueId of the mail; empty: the link was not in one
	List      string // id of the list the mail belongs to; empty: none
	Address   string // of the recipient
}

// Read says who has a token. One that can't be read is a fault of kind NotFound; it doesn't say why.
func (u *Service) Read(token string) (Visit, error) {
	s, err := u.Tokens.Read(signedtoken.Unsubscribe, token)
	if err != nil {
		u.metrics.badToken(errors.Is(err, signedtoken.ErrUnknownKey))
		return Visit{}, fault.Wrap(err, fault.NotFound, "UnknownLink", "This link is not one of ours, or not whole")
	}
	return Visit{Account: s.Account, MessageID: s.MessageID, List: s.List, Address: s.Address}, nil
}

// Sender tells whose mail a visit is about. One that is gone, or can't be asked for, is the zero Sender: the visitor's wish doesn't depend
// on it.
func (u *Service) Sender(ctx context.Context, v Visit) Sender {
	s, err := u.Senders.Sender(ctx, v.Account)
	if err != nil && !fault.Is(err, fault.NotFound) {
		u.log.Warn("sender of an unsubscribe page not known", "account", v.Account, "message_id", v.MessageID, "error", err)
	}
	return s
}

// Masked is the address so that its owner knows it, and nobody else who sees the page does: the first character of the local part and
// the domain.
func (v Visit) Masked() string {
	local, domain, ok := strings.Cut(v.Address, "@")
	if i := strings.LastIndexByte(v.Address, '@'); ok {
		local, domain = v.Address[:i], v.Address[i+1:]
	}
	_, size := utf8.DecodeRuneInString(local)
	if size == 0 || !ok {
		return "…"
	}
	return local[:size] + "…@" + domain
}

// Scope is what somebody leaves, or comes back to.
type Scope string

// What can be left.
const (
	List Scope = "list" // the list that the mail belongs to
	All  Scope = "all"  // all mail of the account that is sent in bulk
)

// Scope is what a visit is about where its visitor doesn't choose: the list, or everything where the mail belongs to none.
func (v Visit) Scope() Scope {
	if v.List == "" {
		return All
	}
	return List
}

// entry is the wish of a visit to leave, as the suppression list has it.
func (v Visit) entry(scope Scope, now time.Time) (suppression.Entry, error) {
	e := suppression.Entry{Address: v.Address, Reason: suppression.Unsubscribe, MessageID: v.MessageID, Created: now}
	if scope == List {
		e.List = v.List
	} else {
		e.Account = v.Account
	}
	e, wrong := e.Normal("", now)
	if len(wrong) > 0 || scope == List && v.List == "" {
		return e, fault.New(fault.NotFound, "UnknownLink", "This link is about nothing that can be left")
	}
	return e, nil
}

// Standing is what a visitor has left.
type Standing struct {
	List bool // the list of the visit
	All  bool // all bulk mail of the account
}

// Unsubscribed says whether the visitor gets nothing more of what the visit is about.
func (s Standing) Unsubscribed(scope Scope) bool { return s.All || scope == List && s.List }

// Standing tells what a visitor has left, of what the visit is about. What others found out about the address is not told.
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
		s.All = s.All || e.Account == v.Account && e.List == ""
		s.List = s.List || v.List != "" && strings.EqualFold(e.List, v.List)
	}
	return s, nil
}
