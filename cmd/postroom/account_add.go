package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

// accountFlags describe an account beside its id and sender.
type accountFlags struct {
	Gateway             []string `placeholder:"[LANE:]ID[=WEIGHT]" help:"Gateway to send through. Repeat the flag to name fallbacks, in order. Gateways with a weight share the load. A prefix of bulk: or transactional: limits a gateway to this kind of email."`
	AccountTrouble      string   `enum:",fail,hold" default:"" placeholder:"fail|hold" help:"Hold messages or fail them while the relay refuses the login, token, certificate or sender. Defaults to the setting delivery.accountTrouble."`
	Retry               []string `placeholder:"DELAY" help:"Delays between attempts, for example 1m,5m,30m. The last delay repeats. Defaults to the settings."`
	Webhooks            *string  `placeholder:"URL" help:"Additional URL for this account's events."`
	Locale              *string  `placeholder:"TAG" help:"Language, for example de-CH, of template variants, numbers and dates. Default: en."`
	TrackOpens          *bool    `negatable:"" help:"Track opens. Defaults to the setting trackOpens."`
	TrackClicks         *bool    `negatable:"" help:"Track clicks. Defaults to the setting trackClicks."`
	IdempotencyRequired *bool    `name:"needs-key" negatable:"" help:"Require an idempotency key for each submit."`
	Quotas              []string `name:"quota" placeholder:"NAME=N" help:"Quotas, separated by commas: messages and bytes (waiting), perDay, templates, suppressions, importSize (bytes), subscribers, events (waiting for digests), requests (per minute, with a bound token). Use 0 for no limit. NAME= restores the default (settings quotas)."`
	TZ                  *string  `name:"tz" placeholder:"ZONE" help:"Time zone of dates in templates, for example Europe/Zurich. Default: UTC."`
	relayFlags
	DKIMDomain   string `name:"dkim-domain" group:"dkim" placeholder:"DOMAIN" help:"Domain of the signature. Defaults to the sender's domain."`
	DKIMSelector string `name:"dkim-selector" group:"dkim" placeholder:"NAME" help:"Selector of the key. Its DNS record is NAME._domainkey.DOMAIN."`
	DKIMKey      string `name:"dkim-key" group:"dkim" placeholder:"FILE" help:"Private key (PEM): RSA with at least 2048 bits, or Ed25519. Defaults to the key of the sender's domain, if it has one."`
}

// over returns the account changed by the flags. from is its sender; empty: unchanged.
func (f accountFlags) over(a api.Account, from string, con *console) (api.Account, error) {
	if from != "" {
		sender, err := oneAddress("--from", from)
		if err != nil {
			return a, err
		}
		a.Name, a.Email = sender.Name, sender.Address
	}
	s, err := f.relayFlags.over(settingsOf(a), con)
	if err != nil {
		return a, err
	}
	a.SMTP, a.OAuth2, a.Limits, a.Proxy, a.LocalAddress, a.SMTPEhloName = s.SMTP, s.OAuth2, s.limits, s.Proxy,
		s.LocalAddress, s.SMTPEhloName
	if len(f.Gateway) > 0 {
		if a.Gateways, err = readRoutes(f.Gateway); err != nil {
			return a, err
		}
	}
	api.Patch(&a, f)
	a.AccountTrouble = cmp.Or(f.AccountTrouble, a.AccountTrouble)
	if a.Quota, err = quotaOver(a.Quota, f.Quotas); err != nil {
		return a, err
	}
	a.DKIM, err = f.dkim(a)
	return a, err
}

func settingsOf(a api.Account) relaySettings {
	return relaySettings{api.VerifyRequest{
		SMTP: a.SMTP, OAuth2: a.OAuth2, Proxy: a.Proxy, LocalAddress: a.LocalAddress, SMTPEhloName: a.SMTPEhloName,
	}, a.Limits}
}

// readRoutes reads gateways as --gateway has them.
func readRoutes(texts []string) ([]api.Route, error) {
	out := make([]api.Route, len(texts))
	for i, text := range texts {
		id, weight, given := strings.Cut(text, "=")
		if lane, rest, named := strings.Cut(id, ":"); named {
			if out[i].Lane = api.Lane(lane); lane != string(api.Transactional) && lane != string(api.Bulk) {
				return nil, usage("--gateway: %q names no lane; write %s, transactional:%s or bulk:%s", text, rest, rest,
					rest)
			}
			id = rest
		}
		out[i].Gateway = id
		if !given {
			continue
		}
		n, err := strconv.Atoi(weight)
		if err != nil || n < 0 {
			return nil, usage("--gateway: %q has no weight that is a number; write %s, or %s=2 for a share of the load", text, id, id)
		}
		out[i].Weight = n
	}
	return out, nil
}

// dkim returns the key that signs the account's mail; nil: it has none of its own.
func (f accountFlags) dkim(a api.Account) (*api.DKIM, error) {
	if f.DKIMDomain == "" && f.DKIMSelector == "" && f.DKIMKey == "" {
		return a.DKIM, nil
	}
	k := *cmp.Or(a.DKIM, &api.DKIM{})
	_, ofSender, _ := strings.Cut(a.Email, "@")
	k.Domain, k.Selector = cmp.Or(f.DKIMDomain, k.Domain, ofSender), cmp.Or(f.DKIMSelector, k.Selector)
	if f.DKIMKey != "" {
		text, err := os.ReadFile(f.DKIMKey)
		if err != nil {
			return nil, usage("--dkim-key: %v", err)
		}
		k.PrivateKey = string(text)
	}
	if k.Selector == "" || k.PrivateKey == "" {
		return nil, usage("to sign, both --dkim-selector and --dkim-key are needed")
	}
	return &k, nil
}

type accountAddCmd struct {
	Account  string `arg:"" help:"ID of the account: letters, digits and . _ @ + -"`
	From     string `required:"" placeholder:"MAILBOX" help:"Sender: shop@example.com or 'Shop <shop@example.com>'."`
	NoVerify bool   `help:"Don't test the login."`
	accountFlags
}

// Run tries the relay, then adds the account.
func (a *accountAddCmd) Run(s *session) error {
	account, err := a.over(api.Account{Account: a.Account}, a.From, s.console)
	if err != nil {
		return err
	}
	if account.SMTP == nil && len(account.Gateways) == 0 {
		return usage("where does its mail go? give a relay (--smtp, or --preset) or gateways (--gateway)")
	}
	if !a.NoVerify {
		if err := s.tryRelay(settingsOf(account)); err != nil {
			return err
		}
	}
	answer, err := api.CreateAccount.Do(s, s.client, account)
	return s.said(answer, err, "account %s: %s", answer.Account, created[answer.State])
}

// created are the words for the states of a response.
var created = map[string]string{"new": "added", "existing": "replaced"}

// tryRelay logs in with settings before they are stored.
func (s *session) tryRelay(settings relaySettings) error {
	if settings.SMTP == nil {
		return nil
	}
	answer, err := api.VerifyAccount.Do(s, s.client, settings.VerifyRequest)
	if err == nil && !answer.SMTP.Success {
		err = fmt.Errorf("nothing was added, because the relay %s refuses: %s; to add it anyway, use --no-verify",
			relayURL(settings.SMTP), clean(answer.SMTP.Error))
	}
	return err
}

type accountUpdateCmd struct {
	Account string `arg:"" help:"ID of the account."`
	From    string `placeholder:"MAILBOX" help:"Sender: shop@example.com or 'Shop <shop@example.com>'."`
	accountFlags
}

// Run changes what the flags name. Other secrets stay, unless the relay changes.
func (a *accountUpdateCmd) Run(s *session) error {
	info, err := api.GetAccount.Do(s, s.client, a.Account)
	if err != nil {
		return err
	}
	account, err := a.over(info.Account, a.From, s.console)
	if err != nil {
		return err
	}
	patch := api.PatchOf[api.AccountPatch](info.Account, account)
	if patch == (api.AccountPatch{}) {
		return errNothing
	}
	info, err = api.UpdateAccount.Do(s, s.client, patch, a.Account)
	return s.said(info, err, "account %s: changed", info.Account.Account)
}

var errNothing = errors.New("nothing was changed: no flag says anything new")
