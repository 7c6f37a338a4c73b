package accounts

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

// Sender is an account ready to use. Its relay holds secrets in clear: it is for sending, not for showing.
type Sender struct {
	ID       string
	Name     string // display name; empty: none
	Email    string
	Relay    smtpsend.Relay
	Retry    []time.Duration // delays between attempts, the last repeats; nil: the setting. Not to be changed
	Webhooks string          // URL that gets the account's events; empty: none
}

// LogValue keeps the relay's secrets out of logs.
func (s Sender) LogValue() slog.Value { return slog.StringValue(s.ID) }

// String keeps the relay's secrets out of text.
func (s Sender) String() string { return "account " + s.ID }

// Resolve gives an account ready to use; the empty id means DefaultID. What it gives is at most about a second old, and mostly costs no
// round trip. Unknown: NotFound, code AccountNotFound, with a message that says what to do.
func (a *Accounts) Resolve(ctx context.Context, id string) (Sender, error) {
	if id == "" {
		id = DefaultID
	}
	sender, _, err := a.senders.Get(ctx, id, a.now(), func(ctx context.Context) (Sender, bool, error) {
		s, err := a.loadSender(ctx, id)
		return s, err == nil, err
	})
	if redisdb.Unavailable(err) && fault.KindOf(err) == fault.Internal {
		err = away(err, "look up account %s", id)
	}
	return sender, err
}

// loadSender reads an account and opens its secrets.
func (a *Accounts) loadSender(ctx context.Context, id string) (Sender, error) {
	s, err := a.store.load(ctx, id)
	switch {
	case err != nil:
		return Sender{}, away(err, "load account %s", id)
	case s == nil && a.Configured(id):
		return newSender(*a.configured)
	case s == nil:
		return Sender{}, a.notFound(id)
	}
	account, err := a.opened(s)
	if err != nil {
		return Sender{}, err
	}
	return newSender(account)
}

func newSender(account api.Account) (Sender, error) {
	if account.SMTP == nil {
		return Sender{}, fmt.Errorf("account %s has no relay", account.Account)
	}
	s := Sender{ID: account.Account, Name: account.Name, Email: account.Email, Webhooks: account.Webhooks, Relay: relay(*account.SMTP)}
	s.Relay.ID = account.Account
	s.Relay.LocalAddress, s.Relay.EHLOName = account.LocalAddress, account.SMTPEhloName
	if l := account.Limits; l != nil {
		s.Relay.Connections, s.Relay.MessagesPerConnection = l.Connections, l.PerConnection
	}
	for _, text := range account.Retry {
		d, err := time.ParseDuration(text)
		if err != nil {
			return Sender{}, fmt.Errorf("retry schedule of account %s: %w", account.Account, err)
		}
		s.Retry = append(s.Retry, d)
	}
	return s, nil
}

// VerifyRelay gives the relay that a request to verify settings is about. Invalid reports every wrong field.
func VerifyRelay(req api.VerifyRequest) (smtpsend.Relay, error) {
	var f faults
	f.relay(req.SMTP, req.LocalAddress, req.SMTPEhloName)
	if err := fault.InvalidFields(f); err != nil {
		return smtpsend.Relay{}, err
	}
	r := relay(*req.SMTP)
	r.LocalAddress, r.EHLOName = req.LocalAddress, req.SMTPEhloName
	return r, nil
}

// relay puts the settings of a relay into smtpsend's terms.
func relay(s api.SMTPServer) smtpsend.Relay {
	r := smtpsend.Relay{Host: s.Host, Port: s.Port}
	if s.Auth != nil {
		r.Username, r.Password, r.AccessToken = s.Auth.User, s.Auth.Pass, s.Auth.AccessToken
	}
	var t api.SMTPTLS
	if s.TLS != nil {
		t = *s.TLS
	}
	switch {
	case s.Secure:
		r.TLS = smtpsend.TLSImplicit
	case t.StartTLS == "required":
		r.TLS = smtpsend.TLSRequired
	case t.StartTLS == "opportunistic":
		r.TLS = smtpsend.TLSOpportunistic
	case t.StartTLS == "off":
		r.TLS = smtpsend.TLSNone
	}
	r.InsecureSkipVerify = t.RejectUnauthorized != nil && !*t.RejectUnauthorized
	if t.MinVersion == "TLSv1.3" {
		r.MinVersion = tls.VersionTLS13
	}
	return r
}
