package main

import (
	"time"

	"github.com/postroom/postroom/api"
)

func senderVerbs() []verb {
	return []verb{
		{name: "list", help: "List an account's sender addresses and domains.", run: &sendersCmd{}},
		{name: "add", help: "Add a sender address or domain to an account.", run: &senderAddCmd{}},
		{name: "verify", help: "Look for the DNS record that verifies a pending domain.", run: &senderVerifyCmd{}},
		{name: "mail", help: "Send a confirmation email, whose link lets the account use the address.",
			run: &senderMailCmd{}},
		{name: "delete", help: "Delete a sender address or domain of an account.",
			run: &senderRemoveCmd{}},
	}
}

type sendersCmd struct {
	Account string `arg:"" help:"ID of the account."`
}

func (c *sendersCmd) Run(s *session) error {
	answer, err := api.ListSenders.Do(s, s.client, c.Account)
	g := newGrid("sender", "status", "since", "TXT record to publish")
	for _, sender := range answer.Senders {
		record := ""
		if sender.DNS != nil {
			record = sender.DNS.Name + " " + sender.DNS.Value
		}
		since := ""
		if sender.Since != nil {
			since = sender.Since.Local().Format(time.DateTime)
		}
		status := sender.Status
		if sender.By != "" {
			status += " by " + sender.By
		}
		g.add(sender.Sender, status, orDash(since), orDash(record))
	}
	return s.table(answer, err, "no senders", g, "")
}

type senderFlags struct {
	Account string `arg:"" help:"ID of the account."`
	Sender  string `arg:"" help:"An address, or a domain with all its addresses."`
}

type senderAddCmd struct {
	senderFlags
	Verify bool `help:"It may not be used until its DNS record is found, as with a token bound to the account."`
}

func (c *senderAddCmd) Run(s *session) error {
	answer, err := api.AddSender.Do(s, s.client, api.NewSender{Sender: c.Sender, Verify: c.Verify}, c.Account)
	return s.answer(answer, err, func() {
		if answer.DNS == nil {
			s.say("account %s may send as %s (%s)", clean(c.Account), answer.Sender, answer.Status)
			return
		}
		s.say("publish this TXT record, then run postroom account sender verify %s %s\n\n%s\n%s", clean(c.Account),
			answer.Sender, answer.DNS.Name, answer.DNS.Value)
	})
}

type senderVerifyCmd struct{ senderFlags }

func (c *senderVerifyCmd) Run(s *session) error {
	answer, err := api.VerifySender.Do(s, s.client, c.Account, c.Sender)
	return s.said(answer, err, "account %s may send as %s (%s)", clean(c.Account), answer.Sender, answer.Status)
}

type senderMailCmd struct {
	Account string `arg:"" help:"ID of the account."`
	Sender  string `arg:"" help:"An address."`
}

func (c *senderMailCmd) Run(s *session) error {
	answer, err := api.MailSender.Do(s, s.client, c.Account, c.Sender)
	return s.answer(answer, err, func() {
		if answer.Mail == nil {
			s.say("account %s may send as %s (%s)", clean(c.Account), answer.Sender, answer.Status)
			return
		}
		s.say("a mail to %s asks its owner; the link works until %s", answer.Sender,
			answer.Mail.Expires.Local().Format(time.DateTime))
	})
}

type senderRemoveCmd struct{ senderFlags }

func (c *senderRemoveCmd) Run(s *session) error {
	answer, err := api.RemoveSender.Do(s, s.client, c.Account, c.Sender)
	return s.said(answer, err, "account %s may no longer send as %s by its record", clean(c.Account),
		clean(c.Sender))
}
