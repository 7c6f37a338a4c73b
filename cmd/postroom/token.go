package main

import (
	"time"

	"github.com/postroom/postroom/api"
)

func tokenVerbs() []verb {
	return []verb{
		{name: "list", help: "List tokens (the default); never the tokens themselves.",
			run: list(api.ListTokens, "no tokens but the admin token of the settings", tokensGrid)},
		{name: "create", help: "Make a token. It is shown only once.", run: &tokenCreateCmd{}},
		{name: "delete", help: "Delete a token: it is refused from now on.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteToken, what: "token"}},
	}
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

type tokenCreateCmd struct {
	Description string        `arg:"" help:"What it is for, such as 'web shop'."`
	Scope       []api.Scope   `enum:"api,send,smtp,outbox,lists,campaigns,digests,metrics,admin,*" placeholder:"SCOPE" help:"What it may do: send, smtp, outbox, lists, campaigns, digests, metrics, api (all but tokens and settings; the default) or admin. Several by commas."`
	Account     string        `placeholder:"ID" help:"Bind it to an account: it sends as that one and sees only its mail."`
	Expires     string        `placeholder:"WHEN" help:"When it ends: 30d, or 2030-12-24. Default: never."`
	Address     []string      `placeholder:"CIDR" help:"Where it may be used from, such as 10.0.0.0/8. Default: anywhere."`
	Requests    int           `placeholder:"N" help:"Requests at most, in the time of --per. Default: no limit."`
	Per         time.Duration `default:"1m" help:"Time for --requests."`
	NeedsKey    bool          `help:"Refuse its submits without an idempotency key."`
	Quota       []string      `placeholder:"NAME=N" help:"How much may be handed in with it: messages and bytes that wait, messages perDay. Several by commas. Default: as much as the account may have."`
}

// Run makes a token and prints it, alone on standard output, so that it can be piped to where it belongs.
func (t *tokenCreateCmd) Run(s *session) error {
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
		s.note("token %s; it is shown only this once:", answer.ID)
		s.say("%s", answer.Token)
	})
}
