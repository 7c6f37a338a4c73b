package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/smtpsend"
)

// relay logs in to the relay of the settings, from this machine.
func (x *exam) relay(ctx context.Context) []finding {
	const name = "relay"
	if x.cfg.SMTP.Host == "" {
		return nil // the check of accounts reports that there is none at all
	}
	server := app.SMTPServer(x.cfg.SMTP)
	x.meet(x.cfg.From.Address)
	if x.cfg.From.Address == "" {
		return []finding{{name, warn, "smtp is set but from is not: the default account has no sender",
			"set from, such as 'Shop <shop@example.com>'"}}
	}
	route, err := accounts.Described(api.VerifyRequest{SMTP: server})
	if err != nil {
		return []finding{{name, fail, err.Error(), "correct smtp"}}
	}
	route.SMTP.OperatorsOwn = true
	sender, err := smtpsend.New(smtpsend.Options{Timeout: min(x.cfg.Delivery.Timeout, 20*time.Second)})
	if err != nil {
		return []finding{{name, fail, err.Error(), ""}}
	}
	defer sender.Close() //nolint:errcheck // connections that were only tried
	if err := sender.Verify(ctx, route.SMTP); err != nil {
		fault := ""
		if e, ok := errors.AsType[*smtpsend.Error](err); ok {
			fault = e.Name()
		}
		return []finding{{name, fail, relayURL(server) + ": " + err.Error(), smtpsend.Advice(fault)}}
	}
	message := relayURL(server) + " lets us in"
	if server.Auth == nil {
		message = relayURL(server) + " answers; no login is set"
	}
	return []finding{{name, ok, message, ""}}
}

// meet adds the domain of a sender to those whose DNS is checked.
func (x *exam) meet(address string) {
	if at := strings.LastIndexByte(address, '@'); at >= 0 && !x.fixed {
		x.domains[strings.ToLower(address[at+1:])] = true
	}
}
