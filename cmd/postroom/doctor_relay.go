package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// relay logs in to the relay of the settings, from here.
func (x *exam) relay(ctx context.Context) []finding {
	const name = "relay"
	if x.cfg.SMTP.Host == "" {
		return nil // accounts tells when there is none at all
	}
	server := relayOf(x.cfg.SMTP)
	x.meet(x.cfg.From.Address)
	if x.cfg.From.Address == "" {
		return []finding{{name, warn, "smtp is set but from is not: the default account has no sender", "set from, such as 'Shop <shop@example.com>'"}}
	}
	relay, err := accounts.VerifyRelay(api.VerifyRequest{SMTP: server})
	if err != nil {
		return []finding{{name, fail, err.Error(), "correct smtp"}}
	}
	sender, err := smtpsend.New(smtpsend.Options{Timeout: min(x.cfg.Delivery.Timeout, 20*time.Second)})
	if err != nil {
		return []finding{{name, fail, err.Error(), ""}}
	}
	defer sender.Close() //nolint:errcheck // connections that were only tried
	if err := sender.Verify(ctx, relay); err != nil {
		return []finding{{name, fail, relayURL(server) + ": " + err.Error(), adviseRelay(err)}}
	}
	message := relayURL(server) + " lets us in"
	if server.Auth == nil {
		message = relayURL(server) + " answers; no login is set"
	}
	return []finding{{name, ok, message, ""}}
}

// adviseRelay says what to do about a relay that can't be used.
func adviseRelay(err error) string {
	e, _ := errors.AsType[*smtpsend.Error](err)
	if e == nil {
		return ""
	}
	switch e.Name() {
	case "EAUTH", "ENOAUTH":
		return "check user and password in smtp; many providers want a password made for programs"
	case "ETLS":
		return "use the name that stands in the relay's certificate; smtps:// for TLS from the first byte (465), smtp:// for STARTTLS (587)"
	case "EDNS":
		return "check the host in smtp, and the DNS of this machine"
	case "ESOCKET", "ECONNECTION", "ETIMEDOUT":
		return "check host and port in smtp, and the firewall; many networks block port 25, try 587 or 465"
	}
	return "ask whoever runs the relay, with the reply above"
}

// accounts looks at how the accounts fared.
func (x *exam) accounts(ctx context.Context) []finding {
	const name = "accounts"
	if x.away {
		if x.cfg.SMTP.Host == "" {
			return []finding{{name, warn, "no relay is set", "set smtp and from, or add an account once Postroom runs: postroom account add --help"}}
		}
		return nil
	}
	client, err := x.reach.client()
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	list, err := allAccounts(ctx, client)
	if err != nil {
		return []finding{{name, fail, explain(err), ""}}
	}
	if len(list) == 0 {
		return []finding{{name, warn, "there is no account: nothing can be sent", "set smtp and from, or: postroom account add --help"}}
	}
	var found []finding
	for _, a := range list {
		x.meet(a.Email)
		if a.State == "error" {
			found = append(found, finding{name, fail, fmt.Sprintf("%s (%s): %s", a.Account.Account, relayURL(a.SMTP), a.LastError),
				"correct it: postroom account add " + a.Account.Account + " …, or PUT /v1/account/" + a.Account.Account})
		}
	}
	if len(found) == 0 {
		found = []finding{{name, ok, fmt.Sprintf("%d, none in trouble", len(list)), ""}}
	}
	return found
}

// meet notes the domain of a sender, for its DNS to be looked at.
func (x *exam) meet(address string) {
	if at := strings.LastIndexByte(address, '@'); at >= 0 && !x.fixed {
		x.domains[strings.ToLower(address[at+1:])] = true
	}
}
