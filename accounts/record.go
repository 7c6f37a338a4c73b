package accounts

import (
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/records"
	"github.com/postroom/postroom/relays"
)

// stored is an account as it is kept.
type stored = records.Record[api.Account]

// place names an account's record, which is what its connections are counted under.
func place(id string) string { return "account:" + id }

// secrets lists the secrets of an account where they stand, in its own copy of what holds them.
func secrets(account *api.Account) []records.Secret {
	all := relays.AccountSecrets(account)
	if account.DKIM != nil {
		account.DKIM = new(*account.DKIM)
		all = append(all, records.Secret{Field: "dkim.privateKey", Value: &account.DKIM.PrivateKey})
	}
	return all
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
