package accounts

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

const (
	// maxDelay bounds one delay between attempts.
	maxDelay = 30 * 24 * time.Hour
	// maxGateways bounds the list of an account.
	maxGateways = 20
)

// faults collects a request's invalid fields.
type faults struct{ gateways.Faults }

// validate returns all wrong fields of an account that can be found without Redis.
func validate(account api.Account) error { return fault.InvalidFields(check(account).Fields) }

func check(account api.Account) *faults {
	f := &faults{}
	f.ID("account", account.Account)
	f.Text("name", account.Name, 256)
	if _, err := message.NormalizeAddress(account.Email); err != nil {
		f.Add("email", "%v", err)
	}
	f.webhooks(account.Webhooks)
	f.Text("locale", account.Locale, 64)
	if _, err := schedule.Zone(cmp.Or(account.TZ, "UTC")); err != nil {
		f.Add("tz", "%v", err)
	}
	f.Fields = append(f.Fields, gateways.OfAccount(account).Check()...)
	if account.SMTP == nil {
		f.withoutRelay(account)
	}
	f.gateways(account)
	f.senders(account.Senders)
	f.quota(account.Quota)
	if account.DKIM != nil {
		_, wrong := dkim.Check(*account.DKIM, true)
		for _, field := range wrong {
			f.Add("dkim."+field.Key, "%s", field.Message)
		}
	}
	if !slices.Contains([]string{"", "fail", "hold"}, account.AccountTrouble) {
		f.Add("accountTrouble", "must be fail or hold")
	}
	if len(account.Retry) > 100 {
		f.Add("retry", "must not have more than 100 delays")
	}
	for i, s := range account.Retry {
		if d, err := schedule.ParseDuration(s); err != nil || d <= 0 || d > maxDelay {
			f.Add(fmt.Sprintf("retry[%d]", i), "must be a delay such as 30s, 5m or 8h, at most 720h")
		}
	}
	return f
}

// withoutRelay checks an account without its own relay. Settings of such a relay must not be ignored
// silently.
func (f *faults) withoutRelay(account api.Account) {
	if len(account.Gateways) == 0 {
		f.Add("smtp", "is required, or gateways, to send this account's messages through")
		return
	}
	var l api.Limits
	if account.Limits != nil {
		l = *account.Limits
	}
	for _, field := range []struct {
		key   string
		given bool
	}{
		{"oauth2", account.OAuth2 != nil}, {"proxy", account.Proxy != ""},
		{"localAddress", account.LocalAddress != ""},
		{"smtpEhloName", account.SMTPEhloName != ""}, {"limits.connections", l.Connections != 0},
		{"limits.perConnection", l.PerConnection != 0},
	} {
		if field.given {
			f.Add(field.key, "goes with smtp: each gateway has its own")
		}
	}
}

// gateways checks the list of an account. [Accounts.unknownGateways] checks whether they exist.
func (f *faults) gateways(account api.Account) {
	if len(account.Gateways) > maxGateways {
		f.Add("gateways", "must not be more than %d", maxGateways)
	}
	weights := false
	seen := map[string]bool{}
	for i, g := range account.Gateways {
		key := fmt.Sprintf("gateways[%d]", i)
		f.ID(key+".gateway", g.Gateway)
		if seen[g.Gateway] {
			f.Add(key+".gateway", "is already in the list")
		}
		if g.Weight < 0 || g.Weight > 1000 {
			f.Add(key+".weight", "must be 0 to 1000")
		}
		if g.Lane != "" && g.Lane != api.Transactional && g.Lane != api.Bulk {
			f.Add(key+".lane", "must be %s or %s", api.Transactional, api.Bulk)
		}
		seen[g.Gateway], weights = true, weights || g.Weight > 0
	}
	if weights && account.SMTP != nil {
		f.Add("gateways", "must not have weights together with smtp, because weights share the load among "+
			"gateways. Make the account's relay a gateway, or remove the weights")
	}
}

// unknownGateways adds the gateways of an account's list that don't exist. Those in the old list may have
// been deleted since; that must not prevent other changes.
func (a *Accounts) unknownGateways(ctx context.Context, f *faults, account api.Account, old *stored) error {
	for i, g := range account.Gateways {
		listed := func(r api.Route) bool { return r.Gateway == g.Gateway }
		if old != nil && slices.ContainsFunc(old.Value.Gateways, listed) || !gateways.ValidID(g.Gateway) {
			continue
		}
		exists, err := a.gateways.Exists(ctx, g.Gateway)
		if err != nil {
			return err
		}
		if !exists {
			f.Add(fmt.Sprintf("gateways[%d].gateway", i), "doesn't exist: add the gateway %q with POST "+
				"/v1/gateway",
				g.Gateway)
		}
	}
	return nil
}

// checked returns an account in normal form, or all its wrong fields.
func (a *Accounts) checked(ctx context.Context, account api.Account, old *stored) (api.Account, error) {
	f := check(account)
	if !a.operatorsOwn(account) {
		f.Fields = append(f.Fields, a.gateways.Destinations(gateways.OfAccount(account))...)
	}
	if err := a.unknownGateways(ctx, f, account, old); err != nil {
		return api.Account{}, err
	}
	if err := fault.InvalidFields(f.Fields); err != nil {
		return api.Account{}, err
	}
	if account.DKIM != nil {
		key, _ := dkim.Check(*account.DKIM, true)
		account.DKIM = &key
	}
	account.Senders = a.normalSenders(account.Senders)
	return account, nil
}

// operatorsOwn reports whether an account's relay is from the settings file, and so may have a private
// address. That is the configured account, whatever else of it was edited.
func (a *Accounts) operatorsOwn(account api.Account) bool {
	own, is := a.own, account.SMTP
	return own != nil && is != nil && account.Account == DefaultID && is.Host == own.Host &&
		is.Port == own.Port && account.Proxy == "" && account.OAuth2 == nil
}

// webhooks checks the URL that gets the account's events. Answers show it, so it must not hold a password.
func (f *faults) webhooks(s string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	switch {
	case len(s) > 2048:
		f.Add("webhooks", "must not be longer than 2048 characters")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		f.Add("webhooks", "must be an HTTP or HTTPS URL")
	case u.User != nil:
		f.Add("webhooks", "must not contain a user or password")
	}
}
