package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func accountVerbs() []verb {
	return []verb{
		{name: "list", help: "List accounts (the default).",
			run: list(api.ListAccounts, "no accounts; to add one: postroom account add --help", accountsGrid)},
		{name: "show", help: "Show one account, with masked passwords.", run: show(api.GetAccount, accountGrid)},
		{name: "add", help: "Add an account, or replace it.", run: &accountAddCmd{}},
		{name: "update", help: "Change an account. Postroom immediately tries its held messages.",
			run: &accountUpdateCmd{}},
		{name: "delete", help: "Delete an account and cancel its queued messages.",
			run: &deleteCmd[api.AccountDeleted]{
				route: api.DeleteAccount, what: "account", consequence: " and cancel its queued mail",
				said: func(a api.AccountDeleted) string {
					return fmt.Sprintf("account %s deleted, %d queued messages cancelled", a.Account, a.Cancelled)
				},
			}},
		{name: "verify", help: "Test the login to an account's relay, or to another relay. Sends nothing.",
			run: &accountVerifyCmd{}},
		{name: "dns", help: "Show the DNS records for an account, and whether they are published.",
			run: &accountDNSCmd{}},
		{name: "sender", help: "Manage the sender addresses and domains of an account.", below: senderVerbs()},
	}
}

func accountsGrid(list []api.AccountInfo, _ time.Time) grid {
	g := newGrid("account", "sender", "relay", "limits", "state", "last error")
	for _, a := range list {
		g.add(a.Account.Account, mailbox(a.Name, a.Email), way(a.Account), orDash(a.Limits.Words()), a.State,
			orDash(clip(a.LastError, 60)))
	}
	return g
}

func accountGrid(a api.AccountInfo, now time.Time) grid {
	g := newGrid("account", a.Account.Account)
	g.fact("sender", mailbox(a.Name, a.Email))
	g.fact("relay", relayURL(a.SMTP))
	g.fact("gateways", routes(a.Gateways))
	settingsOf(a.Account).add(&g)
	g.fact("state", a.State)
	if a.LastErrorAt != nil {
		g.fact("last error", a.LastError+" ("+moment(*a.LastErrorAt, now)+")")
	} else if a.SMTPStatus != nil {
		g.fact("last login", moment(a.SMTPStatus.Created, now))
	}
	var events []string
	for _, name := range slices.Sorted(maps.Keys(a.Counters.Events)) {
		events = append(events, fmt.Sprintf("%d %s", a.Counters.Events[name], name))
	}
	g.fact("events", strings.Join(events, ", "))
	g.fact("in trouble", map[string]string{"fail": "mail fails at once", "hold": "mail waits"}[a.AccountTrouble])
	if k := a.DKIM; k != nil {
		g.fact("signed by", k.Selector+"._domainkey."+k.Domain)
	}
	g.fact("without a key", map[bool]string{true: "a submit is refused"}[a.IdempotencyRequired])
	g.fact("quota", quotaWords(a.Quota))
	g.fact("retry", strings.Join(a.Retry, ", "))
	g.fact("webhooks", a.Webhooks)
	g.fact("created", a.Created.Local().Format(time.DateTime))
	return g
}

func mailbox(name, address string) string {
	if name == "" {
		return address
	}
	return name + " <" + address + ">"
}

// accountVerifyCmd tries the relays of an account, or any other.
type accountVerifyCmd struct {
	Account string `arg:"" optional:"" help:"ID of an account, to try its login and the logins of its gateways. Or describe a relay with --smtp."`
	SMTP    string `name:"smtp" placeholder:"URL" help:"Relay to try, as for account add."`
}

func (a *accountVerifyCmd) Run(s *session) error {
	if (a.Account == "") == (a.SMTP == "") {
		return usage("which relay? give either the id of an account or --smtp")
	}
	req, name := api.VerifyRequest{Account: a.Account}, "the relay of account "+a.Account
	if a.SMTP != "" {
		relay, err := readRelay(a.SMTP, nil, s.console)
		if err != nil {
			return err
		}
		req, name = api.VerifyRequest{SMTP: relay}, relayURL(relay)
	}
	answer, err := api.VerifyAccount.Do(s, s.client, req)
	if err != nil {
		return err
	}
	own := true
	if len(answer.Gateways) > 0 { // then smtp may be the result of the first one
		info, err := api.GetAccount.Do(s, s.client, a.Account)
		if err != nil {
			return err
		}
		own = info.SMTP != nil
	}
	return s.tried(answer, trials(name, own, answer))
}

// trial is the result of trying one relay.
type trial struct {
	name string
	api.VerifyResult
}

// tried prints the results, and fails the command if a relay refused.
func (s *session) tried(answer any, all []trial) error {
	refused := false
	for _, t := range all {
		refused = refused || !t.Success
	}
	return s.done(answer, refused, func() {
		for _, t := range all {
			if t.Success {
				s.say("%s takes these settings", t.name)
			} else {
				s.note("%s refuses: %s", t.name, clean(t.Error))
			}
		}
	})
}

// trials returns the relays in an answer. own reports whether the first is the account's own, or the only
// one.
func trials(name string, own bool, answer api.VerifyAnswer) []trial {
	var all []trial
	if own {
		all = append(all, trial{name, answer.SMTP})
	}
	for _, g := range answer.Gateways {
		all = append(all, trial{fmt.Sprintf("gateway %s", g.Gateway), g.VerifyResult})
	}
	return all
}
