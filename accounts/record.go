package accounts

import (
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/records"
)

// stored is the record of an account.
type stored = records.Record[api.Account]

// place returns the name of an account's record. Its connections are counted under that name.
func place(id string) string { return "account:" + id }

// secrets returns the secrets of an account, in its own copy of what holds them.
func secrets(account *api.Account) []records.Secret {
	all := gateways.AccountSecrets(account)
	if account.DKIM != nil {
		account.DKIM = new(*account.DKIM)
		all = append(all, records.Secret{Field: "dkim.privateKey", Value: &account.DKIM.PrivateKey})
	}
	return all
}

// patched returns an account with the fields of a patch. A login in the patch replaces one of the other kind.
func patched(account api.Account, p api.AccountPatch) api.Account {
	api.Patch(&account, p)
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
