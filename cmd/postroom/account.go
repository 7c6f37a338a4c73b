package main

import (
	"context"
	"errors"
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
	Update accountUpdateCmd `cmd:"" help:"Change what the flags name of an account. Mail it holds is tried at once."`
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
	g := grid{headings: []string{"account", "sender", "relay", "limits", "state", "last error"}}
	for _, info := range list {
		g.add(info.Account.Account, mailbox(info.Name, info.Email), way(info.Account), orDash(info.Limits.Words()), info.State, orDash(clip(info.LastError, 60)))
	}
	con.show(g)
	return nil
}

func allAccounts(ctx context.Context, client *api.Client) ([]api.AccountInfo, error) {
	return pages(func(page int) ([]api.AccountInfo, int, error) {
		p, err := api.ListAccounts.Do(ctx, client, api.PageQuery{Page: page, PageSize: maxPage})
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
	info, err := api.GetAccount.Do(ctx, client, a.Account)
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(info)
	}
	con.show(accountGrid(info, time.Now()))
	return nil
}

func accountGrid(info api.AccountInfo, now time.Time) grid {
	g := grid{headings: []string{"account", info.Account.Account}}
	row := func(name, value string) {
		if value != "" {
			g.add(name, value)
		}
	}
	row("sender", mailbox(info.Name, info.Email))
	row("relay", relayURL(info.SMTP))
	row("gateways", routes(info.Gateways))
	settingsOf(info.Account).add(&g)
	row("state", info.State)
	if info.LastErrorAt != nil {
		row("last error", info.LastError+" ("+moment(*info.LastErrorAt, now)+")")
	}
	row("in trouble", map[string]string{"fail": "mail fails at once", "hold": "mail waits"}[info.AccountTrouble])
	if k := info.DKIM; k != nil {
		row("signed by", k.Selector+"._domainkey."+k.Domain)
	}
	row("retry", strings.Join(info.Retry, ", "))
	row("webhooks", info.Webhooks)
	row("created", info.Created.Local().Format(time.DateTime))
	return g
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
	answer, err := api.DeleteAccount.Do(ctx, client, a.Account)
	if err != nil {
		return err
	}
	if a.JSON {
		return con.printJSON(answer)
	}
	con.say("account %s deleted, %d queued messages cancelled", answer.Account, answer.Cancelled)
	return nil
}

func mailbox(name, address string) string {
	if name == "" {
		return address
	}
	return name + " <" + address + ">"
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
