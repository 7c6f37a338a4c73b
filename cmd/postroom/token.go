package main

import (
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// tokenCmd is about access tokens.
type tokenCmd struct {
	List   tokenListCmd   `cmd:"" default:"withargs" help:"List tokens (the default); never the tokens themselves."`
	Create tokenCreateCmd `cmd:"" help:"Make a token. It is shown this once."`
	Delete tokenDeleteCmd `cmd:"" help:"Delete a token: it is refused from now on."`
}

// tokenListCmd lists tokens.
type tokenListCmd struct{ reachFlags }

// Run lists tokens.
func (t *tokenListCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	list, err := pages(func(page int) ([]api.TokenInfo, int, error) {
		p, err := api.ListTokens.Do(ctx, client, api.PageQuery{Page: page, PageSize: maxPage})
		return p.Tokens, p.Pages, err
	})
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(list)
	}
	if len(list) == 0 {
		con.say("no tokens but the admin token of the settings")
		return nil
	}
	g, now := grid{headings: []string{"id", "description", "scopes", "account", "created", "last used", "expires"}}, time.Now()
	for _, info := range list {
		g.add(info.ID, info.Description, joinScopes(info.Scopes), orDash(info.Account), moment(info.Created, now), orNever(info.LastUsed, now), orNever(info.Expires, now))
	}
	con.show(g)
	return nil
}

func joinScopes(scopes []api.Scope) string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return strings.Join(out, " ")
}

func orNever(t *time.Time, now time.Time) string {
	if t == nil {
		return "never"
	}
	return moment(*t, now)
}

// tokenCreateCmd makes a token.
type tokenCreateCmd struct {
	reachFlags
	Description string        `arg:"" help:"What it is for, such as 'web shop'."`
	Scope       []string      `enum:"api,send,outbox,metrics,admin,*" placeholder:"SCOPE" help:"What it may do: send, outbox, metrics, api (all but tokens and settings; the default) or admin. Several by commas."`
	Account     string        `placeholder:"ID" help:"Bind it to an account: it sends as that one and sees only its mail."`
	Expires     string        `placeholder:"WHEN" help:"When it ends: 720h, or 2030-12-24. Default: never."`
	Address     []string      `placeholder:"CIDR" help:"Where it may be used from, such as 10.0.0.0/8. Default: anywhere."`
	Requests    int           `placeholder:"N" help:"Requests at most, in the time of --per. Default: no limit."`
	Per         time.Duration `default:"1m" help:"Time for --requests."`
}

// Run makes a token and prints it, alone on standard output, so that it can be piped to where it belongs.
func (t *tokenCreateCmd) Run(ctx context.Context, con *console) error {
	req, err := t.request(time.Now())
	if err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	answer, err := api.CreateToken.Do(ctx, client, req)
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(answer)
	}
	con.note("token %s; it is shown this once:", answer.ID)
	con.say("%s", answer.Token)
	return nil
}

func (t *tokenCreateCmd) request(now time.Time) (api.TokenRequest, error) {
	req := api.TokenRequest{Description: t.Description, Account: t.Account}
	for _, s := range t.Scope {
		req.Scopes = append(req.Scopes, api.Scope(s))
	}
	if t.Expires != "" {
		at, err := parseWhen(t.Expires, now)
		if err != nil {
			return req, usage("--expires: %v", err)
		}
		req.Expires = &at
	}
	if len(t.Address) > 0 || t.Requests > 0 {
		req.Restrictions = &api.Restrictions{Addresses: t.Address}
	}
	if t.Requests > 0 {
		if t.Per < time.Second {
			return req, usage("--per: %s is too short, 1s is the least", t.Per)
		}
		req.Restrictions.RateLimit = &api.RateLimit{MaxRequests: t.Requests, TimeWindow: int(t.Per.Seconds())}
	}
	return req, nil
}

// tokenDeleteCmd deletes a token.
type tokenDeleteCmd struct {
	reachFlags
	ID string `arg:"" help:"Id of the token, as the list shows it."`
}

// Run deletes a token.
func (t *tokenDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	answer, err := api.DeleteToken.Do(ctx, client, t.ID)
	if err != nil {
		return err
	}
	return con.deleted(t.JSON, "token", t.ID, answer)
}

// deleted tells what came of a deletion; nothing to delete is a failure.
func (c *console) deleted(asJSON bool, what, id string, answer api.Deleted) error {
	var err error
	switch {
	case asJSON:
		err = c.printJSON(answer)
	case answer.Deleted:
		c.say("%s %s deleted", what, clean(id))
	default:
		c.note("there is no %s %s", what, clean(id))
	}
	if err == nil && !answer.Deleted {
		err = errReported
	}
	return err
}
