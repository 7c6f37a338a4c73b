package accounts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// mask stands for a secret in answers.
const mask = "******"

// stored is an account as Redis has it: its secrets are sealed.
type stored struct {
	Account  api.Account `json:"account"`
	Created  time.Time   `json:"created"`
	Updated  time.Time   `json:"updated"`
	revision string      // changes with every write; empty: nothing is stored
}

func (s stored) encode() ([]byte, error) {
	record, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode account %s: %w", s.Account.Account, err)
	}
	return record, nil
}

func decodeStored(id, record, revision string) (*stored, error) {
	s := &stored{revision: revision}
	if err := json.Unmarshal([]byte(record), s); err != nil {
		return nil, fmt.Errorf("read the record of account %s: %w", id, err)
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

// sealed makes the record of an account, with the masked secrets taken over from the record before.
func (a *Accounts) sealed(account api.Account, old *stored) (*stored, error) {
	now := a.now().UTC().Truncate(time.Millisecond)
	next := &stored{Account: account, Created: now, Updated: now, revision: rand.Text()}
	var before *api.SMTPServer
	if old != nil {
		next.Created, before = old.Created, old.Account.SMTP
	}
	if account.SMTP == nil || account.SMTP.Auth == nil {
		return next, nil
	}
	smtp, auth := *account.SMTP, *account.SMTP.Auth
	smtp.Auth, next.Account.SMTP = &auth, &smtp
	var wrong []fault.Field
	for _, s := range secrets(&auth, before) {
		switch {
		case *s.value == "":
		case *s.value != mask:
			*s.value = a.ring.Seal([]byte(*s.value), place(account.Account, s.field))
		case s.before == "":
			wrong = append(wrong, fault.Field{Key: s.field, Message: "is masked, but there is no stored value to keep"})
		case !strings.EqualFold(before.Host, smtp.Host):
			wrong = append(wrong, fault.Field{Key: s.field, Message: "must be entered again when smtp.host changes"})
		default:
			*s.value = s.before
		}
	}
	return next, fault.InvalidFields(wrong)
}

// secret is one secret field of a relay's credentials.
type secret struct {
	field  string
	value  *string
	before string // sealed, of the record before; empty: there was none
}

func secrets(auth *api.SMTPAuth, before *api.SMTPServer) []secret {
	var was api.SMTPAuth
	if before != nil && before.Auth != nil {
		was = *before.Auth
	}
	return []secret{
		{field: "smtp.auth.pass", value: &auth.Pass, before: was.Pass},
		{field: "smtp.auth.accessToken", value: &auth.AccessToken, before: was.AccessToken},
	}
}

// opened gives an account with its secrets in clear.
func (a *Accounts) opened(s *stored) (api.Account, error) {
	account := s.Account
	if account.SMTP == nil || account.SMTP.Auth == nil {
		return account, nil
	}
	smtp, auth := *account.SMTP, *account.SMTP.Auth
	smtp.Auth, account.SMTP = &auth, &smtp
	for _, s := range secrets(&auth, nil) {
		if *s.value == "" {
			continue
		}
		plain, err := a.ring.Open(*s.value, place(account.Account, s.field))
		if err != nil {
			return api.Account{}, fmt.Errorf("open %s of account %s (was the secret of this instance changed?): %w",
				s.field, account.Account, err)
		}
		*s.value = string(plain)
	}
	return account, nil
}

// place names where a sealed value belongs, and the only place where it opens.
func place(id, field string) string { return "account:" + id + ":" + field }

// masked gives an account as answers show it.
func masked(account api.Account) api.Account {
	if account.SMTP == nil || account.SMTP.Auth == nil {
		return account
	}
	smtp, auth := *account.SMTP, *account.SMTP.Auth
	smtp.Auth, account.SMTP = &auth, &smtp
	for _, s := range secrets(&auth, nil) {
		if *s.value != "" {
			*s.value = mask
		}
	}
	return account
}

// patched lays the fields that a patch has over an account.
func patched(account api.Account, p api.AccountPatch) api.Account {
	set(&account.Name, p.Name)
	set(&account.Email, p.Email)
	set(&account.Webhooks, p.Webhooks)
	set(&account.LocalAddress, p.LocalAddress)
	set(&account.SMTPEhloName, p.SMTPEhloName)
	set(&account.Retry, p.Retry)
	if p.SMTP != nil {
		account.SMTP = p.SMTP
	}
	if p.Limits != nil {
		account.Limits = p.Limits
	}
	return account
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
