package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// accountCmd is about the senders.
type accountCmd struct {
	List   accountListCmd   `cmd:"" default:"withargs" help:"List accounts (the default)."`
	Show   accountShowCmd   `cmd:"" help:"Show one account; passwords are masked."`
	Add    accountAddCmd    `cmd:"" help:"Add an account, or replace it."`
	Delete accountDeleteCmd `cmd:"" help:"Delete an account; what it has queued is cancelled."`
	Verify accountVerifyCmd `cmd:"" help:"Try to log in to the relay of an account, or any other, without sending anything."`
}

// accountListCmd lists accounts.
type accountListCmd struct{ reachFlags }

// Run lists accounts.
func (a *accountListCmd) Run(ctx context.Context, con *console) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	list, err := allAccounts(ctx, client)
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(list)
	}
	if len(list) == 0 {
		con.say("no accounts; to add one: postroom account add --help")
		return nil
	}
	g := grid{headings: []string{"account", "sender", "relay", "state", "last error"}}
	for _, info := range list {
		g.add(info.Account.Account, mailbox(info.Name, info.Email), relayURL(info.SMTP), info.State, orDash(clip(info.LastError, 60)))
	}
	con.show(g)
	return nil
}

func allAccounts(ctx context.Context, client *api.Client) ([]api.AccountInfo, error) {
	return pages(func(page int) ([]api.AccountInfo, int, error) {
		p, err := client.Accounts(ctx, page, maxPage)
		return p.Accounts, p.Pages, err
	})
}

// pages gets all rows of a list, page after page.
func pages[T any](get func(page int) (rows []T, pages int, err error)) ([]T, error) {
	all := []T{}
	for page := 0; ; page++ {
		rows, n, err := get(page)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		if page+1 >= n || len(rows) == 0 {
			return all, nil
		}
	}
}

// accountShowCmd shows one account.
type accountShowCmd struct {
	reachFlags
	Account string `arg:"" help:"Id of the account."`
}

// Run shows one account.
func (a *accountShowCmd) Run(ctx context.Context, con *console) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	info, err := client.Account(ctx, a.Account)
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(info)
	}
	g := grid{headings: []string{"account", info.Account.Account}}
	g.add("sender", mailbox(info.Name, info.Email))
	g.add("relay", relayURL(info.SMTP))
	g.add("state", info.State)
	if info.LastErrorAt != nil {
		g.add("last error", info.LastError+" ("+moment(*info.LastErrorAt, time.Now())+")")
	}
	if len(info.Retry) > 0 {
		g.add("retry", strings.Join(info.Retry, ", "))
	}
	if info.Webhooks != "" {
		g.add("webhooks", info.Webhooks)
	}
	g.add("created", info.Created.Local().Format(time.DateTime))
	con.show(g)
	return nil
}

// accountAddCmd adds an account.
type accountAddCmd struct {
	reachFlags
	relayFlag
	Account  string   `arg:"" help:"Id of the account, chosen by you: letters, digits and . _ @ + -"`
	From     string   `required:"" placeholder:"MAILBOX" help:"Sender: shop@example.com or 'Shop <shop@example.com>'."`
	Retry    []string `placeholder:"DELAY" help:"Delays between attempts, such as 1m,5m,30m; the last repeats. Default: the settings."`
	Webhooks string   `placeholder:"URL" help:"Address that gets this account's events, beside the others."`
	NoVerify bool     `help:"Do not try to log in first."`
}

// Run tries the relay, then adds the account.
func (a *accountAddCmd) Run(ctx context.Context, con *console) error {
	from, err := parseAddresses(a.From)
	if err != nil || len(from) != 1 {
		return usage("--from: %q is not one address, such as 'Shop <shop@example.com>'", a.From)
	}
	relay, err := a.server(con)
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	if !a.NoVerify {
		answer, err := client.VerifyAccount(ctx, api.VerifyRequest{SMTP: relay})
		if err != nil {
			return err
		}
		if !answer.SMTP.Success {
			return fmt.Errorf("nothing was added, because the relay %s refuses: %s; to add it all the same: --no-verify", relayURL(relay), clean(answer.SMTP.Error))
		}
	}
	answer, err := client.CreateAccount(ctx, api.Account{
		Account: a.Account, Name: from[0].Name, Email: from[0].Address, SMTP: relay, Retry: a.Retry, Webhooks: a.Webhooks,
	})
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(answer)
	}
	con.say("account %s: %s", answer.Account, map[string]string{"new": "added", "existing": "replaced"}[answer.State])
	return nil
}

// accountDeleteCmd deletes an account.
type accountDeleteCmd struct {
	reachFlags
	Account string `arg:"" help:"Id of the account."`
	Yes     bool   `short:"y" help:"Do not ask."`
}

// Run deletes an account.
func (a *accountDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	if !a.Yes && !con.confirm("Delete account %s and cancel what it has queued?", a.Account) {
		return errors.New("nothing was deleted: say --yes to delete the account and cancel what it has queued")
	}
	answer, err := client.DeleteAccount(ctx, a.Account)
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(answer)
	}
	con.say("account %s deleted, %d queued messages cancelled", answer.Account, answer.Cancelled)
	return nil
}

// accountVerifyCmd tries the relay of an account, or any other.
type accountVerifyCmd struct {
	reachFlags
	Account string `arg:"" optional:"" help:"Id of an account, whose stored login is tried; or describe a relay with --smtp."`
	SMTP    string `name:"smtp" placeholder:"URL" help:"Relay to try, as account add takes it."`
}

// Run tries a relay from where Postroom runs.
func (a *accountVerifyCmd) Run(ctx context.Context, con *console) error {
	req, name, err := a.request(con)
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	answer, err := client.VerifyAccount(ctx, req)
	if err != nil {
		return err
	}
	if a.JSON {
		if err := con.printJSON(answer); err != nil {
			return err
		}
	}
	switch {
	case !answer.SMTP.Success && a.JSON:
		return errReported
	case !answer.SMTP.Success:
		return fmt.Errorf("%s refuses: %s", name, clean(answer.SMTP.Error))
	case !a.JSON:
		con.say("%s takes these settings", name)
	}
	return nil
}

// request says what is to be tried, and names it.
func (a *accountVerifyCmd) request(con *console) (req api.VerifyRequest, name string, err error) {
	if (a.Account == "") == (a.SMTP == "") {
		return req, "", usage("which relay? give either the id of an account or --smtp")
	}
	if a.Account != "" {
		return api.VerifyRequest{Account: a.Account}, "the relay of account " + a.Account, nil
	}
	relay, err := relayFlag{a.SMTP}.server(con)
	return api.VerifyRequest{SMTP: relay}, relayURL(relay), err
}

func mailbox(name, address string) string {
	if name == "" {
		return address
	}
	return name + " <" + address + ">"
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
