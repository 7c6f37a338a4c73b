package accounts

import (
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb/records"
)

// stored is an account as it is kept.
type stored = records.Record[api.Account]

// place names an account's record, which is what its connections are counted under.
func place(id string) string { return "account:" + id }

// secrets lists the secrets of an account where they stand, in its own copy of what holds them.
func secrets(account *api.Account) []records.Secret {
	all := gateways.AccountSecrets(account)
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
	set(&account.SMTP, p.SMTP)
	set(&account.OAuth2, p.OAuth2)
	set(&account.Gateways, p.Gateways)
	set(&account.DKIM, p.DKIM)
	set(&account.Limits, p.Limits)
	set(&account.AccountTrouble, p.AccountTrouble)
	set(&account.Proxy, p.Proxy)
	set(&account.Webhooks, p.Webhooks)
	set(&account.LocalAddress, p.LocalAddress)
	set(&account.SMTPEhloName, p.SMTPEhloName)
	set(&account.Locale, p.Locale)
	set(&account.TZ, p.TZ)
	set(&account.TrackOpens, p.TrackOpens)
	set(&account.TrackClicks, p.TrackClicks)
	set(&account.Retry, p.Retry)
	switch smtp := account.SMTP; {
	case smtp == nil || smtp.Auth == nil || account.OAuth2 == nil: // one login, or none
	case p.OAuth2 == nil && p.SMTP != nil:
		account.OAuth2 = nil
	case p.OAuth2 != nil && p.SMTP == nil:
		account.SMTP = new(*smtp)
		account.SMTP.Auth = nil
	}
	return account
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
