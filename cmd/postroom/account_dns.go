package main

import (
	"strings"

	"github.com/postroom/postroom/api"
)

type accountDNSCmd struct {
	Account string `arg:"" help:"ID of the account."`
	NoCheck bool   `help:"Only print what to publish; do not ask the DNS."`
}

// Run prints each record with what was found, and fails if one is missing or differs.
func (c *accountDNSCmd) Run(s *session) error {
	q := api.AccountDNSQuery{}
	if c.NoCheck {
		q.Check = "false"
	}
	answer, err := api.GetAccountDNS.Do(s, s.client, q, c.Account)
	if err != nil {
		return err
	}
	bad := false
	for _, r := range answer.Records {
		bad = bad || r.Status == "missing" || r.Status == "differs"
	}
	return s.done(answer, bad, func() {
		for _, r := range answer.Records {
			s.say("%-9s %s %s %s", r.Status, r.Purpose, r.Type, r.Name)
			if r.Value != "" {
				s.say("%10spublish  %s", "", clean(r.Value))
			}
			if len(r.Found) > 0 {
				s.say("%10sfound    %s", "", clean(strings.Join(r.Found, " | ")))
			}
			if r.Advice != "" {
				s.say("%10s→ %s", "", clean(r.Advice))
			}
		}
		if answer.Trouble != "" {
			s.note("%s", clean(answer.Trouble))
		}
	})
}
