package main

import (
	"time"

	"github.com/postroom/postroom/api"
)

func tokenVerbs() []verb {
	return []verb{
		{name: "list", help: "List tokens, without their secrets (the default).",
			run: list(api.ListTokens, "no tokens except the admin token of the settings", tokensGrid)},
		{name: "show", help: "Show one token, without the secret.", run: show(api.GetToken, tokenGrid)},
		{name: "add", help: "Create a token and print it. Postroom shows it only once.", run: &tokenAddCmd{}},
		{name: "delete", help: "Delete a token. Requests with it fail from now on.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteToken, what: "token"}},
	}
}

// tokenGrid lists the fields of a token.
func tokenGrid(t api.TokenInfo, now time.Time) grid {
	g := newGrid("token", t.ID)
	g.add("description", t.Description)
	g.add("scopes", words(t.Scopes, " "))
	g.fact("account", string(t.Account))
	g.fact("refused", t.Refused)
	g.fact("replaced by", t.ReplacedBy)
	g.add("created", moment(t.Created, now))
	g.add("last used", orNever(t.LastUsed, now))
	g.fact("from", t.LastUsedFrom)
	g.add("expires", orNever(t.Expires, now))
	return g
}

func tokensGrid(list []api.TokenInfo, now time.Time) grid {
	g := newGrid("id", "description", "scopes", "account", "created", "last used", "from", "expires")
	for _, t := range list {
		if t.ReplacedBy != "" {
			t.Description += " (replaced by " + t.ReplacedBy + ")"
		}
		if t.Refused != "" {
			t.Description = "REFUSED: " + t.Refused
		}
		g.add(t.ID, t.Description, words(t.Scopes, " "), orDash(string(t.Account)), moment(t.Created, now),
			orNever(t.LastUsed, now),
			orDash(t.LastUsedFrom), orNever(t.Expires, now))
	}
	return g
}

type tokenAddCmd struct {
	Description string        `arg:"" help:"Purpose, for example 'web shop'."`
	Scope       []api.Scope   `enum:"api,send,smtp,outbox,lists,campaigns,digests,metrics,admin,*" placeholder:"SCOPE" help:"Scopes, separated by commas: send, smtp, outbox, lists, campaigns, digests, metrics, api (everything except tokens and settings; the default) or admin."`
	Account     string        `placeholder:"ID" help:"Bind it to an account. It sends as this account, and sees only its messages."`
	Expires     string        `placeholder:"WHEN" help:"Expiry: 30d, or 2030-12-24. Defaults to never."`
	Address     []string      `placeholder:"CIDR" help:"Addresses that may use it, for example 10.0.0.0/8. Defaults to all."`
	Requests    int           `placeholder:"N" help:"Maximum requests within --per. Defaults to no limit."`
	Per         time.Duration `default:"1m" help:"Period for --requests."`
	NeedsKey    bool          `help:"Require an idempotency key for each submit."`
	Quota       []string      `placeholder:"NAME=N" help:"Quotas, separated by commas: messages and bytes (waiting), perDay. Defaults to the account's quotas."`
}

// Run creates a token and prints it, alone on standard output, so that you can pipe it.
func (t *tokenAddCmd) Run(s *session) error {
	expires, err := optionalTime("--expires", t.Expires, parseWhen)
	if err != nil {
		return err
	}
	req := api.TokenRequest{Description: t.Description, Account: t.Account, Scopes: t.Scope, Expires: expires}
	quota, err := quotaOver[api.TokenQuota](nil, t.Quota)
	if err != nil {
		return err
	}
	if len(t.Address) > 0 || t.Requests > 0 || t.NeedsKey || quota != nil {
		req.Restrictions = &api.Restrictions{Addresses: t.Address, IdempotencyRequired: t.NeedsKey, Quota: quota}
	}
	if t.Requests > 0 {
		if t.Per < time.Second {
			return usage("--per: %s is too short, 1s is the least", t.Per)
		}
		req.Restrictions.RateLimit = &api.RateLimit{MaxRequests: t.Requests, TimeWindow: int(t.Per.Seconds())}
	}
	answer, err := api.CreateToken.Do(s, s.client, req)
	return s.answer(answer, err, func() {
		s.note("token %s; copy it now, Postroom doesn't show it again:", answer.ID)
		s.say("%s", answer.Token)
	})
}
