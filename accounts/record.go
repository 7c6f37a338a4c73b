package accounts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/relays"
)

// stored is an account as Redis has it: its secrets are sealed.
type stored struct {
	Account  api.Account `json:"account"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	revision string      // changes with every write; empty: nothing is stored
}

// place names an account's record, which is what its sealed secrets are bound to and what its connections are counted under.
func place(id string) string { return "account:" + id }

func (s stored) encode() (redisdb.Record, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return redisdb.Record{}, fmt.Errorf("encode account %s: %w", s.Account.Account, err)
	}
	return redisdb.Record{ID: s.Account.Account, Text: string(text), Revision: s.revision}, nil
}

// decodeStored reads a record; nil when there is none.
func decodeStored(record redisdb.Record) (*stored, error) {
	if record.Revision == "" {
		return nil, nil
	}
	s := &stored{revision: record.Revision}
	if err := json.Unmarshal([]byte(record.Text), s); err != nil {
		return nil, fmt.Errorf("read the record of account %s: %w", record.ID, err)
	}
	return s, nil
}

// load gives an account as stored, else the configured one as if it were stored; nil when there is neither.
func (a *Accounts) load(ctx context.Context, id string) (*stored, error) {
	old, err := a.store.load(ctx, id)
	if err != nil {
		return nil, away(err, "load account %s", id)
	}
	if old != nil || !a.Configured(id) {
		return old, nil
	}
	s, err := a.sealed(*a.configured, nil)
	if err != nil {
		return nil, err
	}
	s.Created, s.Updated, s.revision = a.started, a.started, ""
	return s, nil
}

// withSecrets gives a copy of an account after something was done to its secrets.
func withSecrets(account api.Account, do func(relays.Secrets) error) (api.Account, error) {
	settings := relays.OfAccount(account)
	all := settings.Secrets()
	if account.DKIM != nil {
		key := *account.DKIM
		account.DKIM = &key
		all = append(all, relays.Secret{Field: "dkim.privateKey", Value: &key.PrivateKey})
	}
	err := do(all)
	return settings.IntoAccount(account), err
}

// sealed makes the record of an account, with the masked secrets taken over from the record before.
func (a *Accounts) sealed(account api.Account, old *stored) (*stored, error) {
	now := a.now().UTC().Truncate(time.Millisecond)
	next := &stored{Created: now, Updated: now, revision: rand.Text()}
	var before relays.Secrets
	if old != nil {
		next.Created = old.Created
		_, _ = withSecrets(old.Account, func(all relays.Secrets) error { before = all; return nil })
	}
	var err error
	next.Account, err = withSecrets(account, func(all relays.Secrets) error {
		return fault.InvalidFields(all.Seal(a.ring, place(account.Account), before))
	})
	return next, err
}

// opened gives an account with its secrets in clear.
func (a *Accounts) opened(s *stored) (api.Account, error) {
	return withSecrets(s.Account, func(all relays.Secrets) error { return all.Open(a.ring, place(s.Account.Account)) })
}

// masked gives an account as answers show it.
func masked(account api.Account) api.Account {
	account, _ = withSecrets(account, func(all relays.Secrets) error { all.Mask(); return nil })
	return account
}

// patched lays the fields that a patch has over an account. A login that the patch names replaces one of the other kind.
func patched(account api.Account, p api.AccountPatch) api.Account {
	set(&account.Name, p.Name)
	set(&account.Email, p.Email)
	set(&account.Gateways, p.Gateways)
	set(&account.AccountTrouble, p.AccountTrouble)
	set(&account.Proxy, p.Proxy)
	set(&account.Webhooks, p.Webhooks)
	set(&account.LocalAddress, p.LocalAddress)
	set(&account.SMTPEhloName, p.SMTPEhloName)
	set(&account.Retry, p.Retry)
	if p.DKIM != nil {
		account.DKIM = p.DKIM
	}
	if p.Limits != nil {
		account.Limits = p.Limits
	}
	return relogged(account, p)
}

// relogged lays the relay and the login that a patch has over an account.
func relogged(account api.Account, p api.AccountPatch) api.Account {
	if p.SMTP != nil {
		account.SMTP = p.SMTP
		if p.SMTP.Auth != nil && p.OAuth2 == nil {
			account.OAuth2 = nil
		}
	}
	if p.OAuth2 == nil {
		return account
	}
	account.OAuth2 = p.OAuth2
	if account.SMTP != nil && p.SMTP == nil {
		smtp := *account.SMTP
		smtp.Auth = nil
		account.SMTP = &smtp
	}
	return account
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
