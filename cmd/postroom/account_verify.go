package main

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/api"
)

// accountVerifyCmd tries the relays of an account, or any other.
type accountVerifyCmd struct {
	reachFlags
	Account string `arg:"" optional:"" help:"Id of an account, whose stored login is tried, and those of its gateways; or describe a relay with --smtp."`
	SMTP    string `name:"smtp" placeholder:"URL" help:"Relay to try, as account add takes it."`
}

// Run tries a relay from where Postroom runs.
func (a *accountVerifyCmd) Run(ctx context.Context, con *console) error {
	if (a.Account == "") == (a.SMTP == "") {
		return usage("which relay? give either the id of an account or --smtp")
	}
	req, name, own := api.VerifyRequest{Account: a.Account}, "the relay of account "+a.Account, true
	if a.SMTP != "" {
		relay, err := readRelay(a.SMTP, nil, con)
		if err != nil {
			return err
		}
		req, name = api.VerifyRequest{SMTP: relay}, relayURL(relay)
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	answer, err := api.VerifyAccount.Do(ctx, client, req)
	if err != nil {
		return err
	}
	if len(answer.Gateways) > 0 { // then what is said of smtp may be about the first of them
		info, err := api.GetAccount.Do(ctx, client, a.Account)
		if err != nil {
			return err
		}
		own = info.SMTP != nil
	}
	if a.JSON {
		err = con.printJSON(answer)
	}
	for _, t := range trials(name, own, answer) {
		switch {
		case t.Success && !a.JSON:
			con.say("%s takes these settings", t.name)
		case !t.Success && !a.JSON:
			con.note("%s refuses: %s", t.name, clean(t.Error))
		}
		if !t.Success && err == nil {
			err = errReported
		}
	}
	return err
}

// trial is what trying one relay met.
type trial struct {
	name string
	api.VerifyResult
}

// trials lists the relays that an answer is about. Own says whether one of them is the account's own, or the only one.
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
