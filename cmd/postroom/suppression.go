package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func suppressionVerbs() []verb {
	return []verb{
		{name: "list", help: "List suppressions (the default).",
			run: &suppressionsListCmd{suppressionFlags: suppressionsOf()}},
		{name: "check", help: "Find out whether Postroom sends to an address.", run: &suppressionsCheckCmd{}},
		{name: "add", help: "Suppress addresses or domains.", run: &suppressionsAddCmd{}},
		{name: "delete", help: "Delete the suppressions of an address or a domain.", run: &suppressionsDeleteCmd{}},
		{name: "import", help: "Import suppressions from a CSV file.", run: &suppressionsImportCmd{}},
		{name: "export", help: "Export suppressions as CSV.",
			run: &suppressionsExportCmd{suppressionFlags: suppressionsOf()}},
	}
}

// scopeFlags say whose mail is meant; none of them: that of the whole instance.
type scopeFlags struct {
	Account string `placeholder:"ID" help:"Only this account."`
	List    string `placeholder:"ID" help:"Only this list of the account. Needs --account, except for list and export."`
}

func (f scopeFlags) scope() api.SuppressionScope {
	return api.SuppressionScope{Account: f.Account, List: f.List}
}

type suppressionFlags struct {
	filter[api.SuppressionQuery]
	Instance bool `help:"Only suppressions of the whole instance, without accounts and lists."`
}

func suppressionsOf() suppressionFlags {
	return suppressionFlags{filter: filterOf[api.SuppressionQuery]("scope")}
}

func (f suppressionFlags) query() (api.SuppressionQuery, error) {
	q, err := f.filter.query()
	if f.Instance {
		q.Scope = "instance"
	}
	return q, err
}

type suppressionsListCmd struct {
	suppressionFlags
	limitFlag
}

func (c *suppressionsListCmd) Run(s *session) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	q.PageSize = c.pageSize(maxPage)
	list, more, last, err := fetch(s, api.ListSuppressions, q, c.limitFlag, nil)
	out := struct {
		Total        int               `json:"total"` // of scope and reason, whatever the domain
		Suppressions []api.Suppression `json:"suppressions"`
		More         bool              `json:"more"` // there are others
	}{last.Total, list, more}
	return s.table(out, err, "no suppressions", suppressionGrid(list, time.Now()),
		noteIf(more, "%d in all; all of them: --limit 0, or postroom suppressions export", last.Total))
}

func suppressionGrid(list []api.Suppression, now time.Time) grid {
	g := newGrid("whom", "reason", "mail of", "since", "until", "source", "message", "evidence")
	for _, s := range list {
		until := "for ever"
		switch {
		case s.Expired:
			until = "over"
		case s.Expires != nil:
			until = moment(*s.Expires, now)
		}
		g.add(whom(s), s.Reason, scopeWords(s.SuppressionScope), moment(s.Created, now), until, orDash(s.Source),
			orDash(s.MessageID),
			clip(orDash(strings.Join(strings.Fields(s.Response+" "+s.RemoteAddress+" "+s.UserAgent), " ")), 60))
	}
	return g
}

func whom(s api.Suppression) string {
	if s.Domain != "" {
		return "@" + s.Domain
	}
	return s.Email
}

func scopeWords(s api.SuppressionScope) string {
	switch {
	case s.List != "":
		return "list " + s.List + " of " + s.Account
	case s.Account != "":
		return "account " + s.Account
	}
	return "everybody"
}

// suppressionsCheckCmd says why an address is not mailed.
type suppressionsCheckCmd struct {
	Address string `arg:"" help:"The address."`
}

func (c *suppressionsCheckCmd) Run(s *session) error {
	found, err := api.CheckSuppression.Do(s, s.client, api.SuppressionCheck{Email: c.Address})
	return s.answer(found, err, func() {
		if len(found.Suppressions) == 0 {
			s.say("%s is not suppressed, and neither is its domain", clean(found.Email))
			return
		}
		s.show(suppressionGrid(found.Suppressions, time.Now()))
		for _, line := range verdicts(found.Suppressions) {
			s.say("%s", clean(line))
		}
	})
}

// verdicts returns the consequences of suppressions, the widest first.
func verdicts(list []api.Suppression) []string {
	var all []string
	seen := map[string]bool{}
	for _, s := range list {
		what := "every mail is stopped"
		switch {
		case s.Reason == "unsubscribe" && s.List == "":
			what = "bulk mail and mail of lists are stopped, other transactional mail passes"
		case s.List != "":
			what = "mail of this list is stopped"
		}
		line := scopeWords(s.SuppressionScope) + ": " + what
		if s.Expired || seen[line] {
			continue
		}
		seen[line] = true
		all = append(all, line)
	}
	if len(all) == 0 {
		all = append(all, "it receives email again: all entries expired")
	}
	return all
}

type suppressionsAddCmd struct {
	Whom []string `arg:"" help:"Addresses, or domains like @example.com."`
	scopeFlags
	Reason  string `enum:"unsubscribe,hard_bounce,spam_report,manual" default:"manual" help:"unsubscribe stops bulk and list email; hard_bounce, spam_report and manual (the default) stop every email."`
	Expires string `placeholder:"WHEN" help:"Expiry: an age (30d) or a time, for example 2030-12-31. Defaults to never."`
	Note    string `placeholder:"TEXT" help:"Note, for example a ticket number."`
}

// Run adds them, none if one is wrong.
func (c *suppressionsAddCmd) Run(s *session) error {
	expires, err := optionalTime("--expires", c.Expires, parseWhen)
	if err != nil {
		return err
	}
	list := make([]api.NewSuppression, len(c.Whom))
	for i, who := range c.Whom {
		list[i] = api.NewSuppression{Reason: c.Reason, SuppressionScope: c.scope(), Source: "cli", Response: c.Note,
			Expires: expires}
		list[i].Email, list[i].Domain = addressOrDomain(who)
	}
	answer, err := api.AddSuppressions.Do(s, s.client, api.SuppressionRequest{Suppressions: list})
	return s.said(answer, err, "%d added, %d known already", answer.Added, answer.Known)
}

// addressOrDomain reads an address, or a domain as @example.com.
func addressOrDomain(text string) (address, domain string) {
	if domain, ok := strings.CutPrefix(text, "@"); ok {
		return "", domain
	}
	return text, ""
}

// suppressionsDeleteCmd deletes the suppressions of an address or a domain in a scope.
type suppressionsDeleteCmd struct {
	Whom string `arg:"" help:"Address, or domain like @example.com (without the entries of its addresses)."`
	scopeFlags
	Reason string `enum:",unsubscribe,hard_bounce,spam_report,manual" default:"" placeholder:"REASON" help:"Only this reason. Defaults to all."`
}

// Run deletes them. It fails if there are none, because the caller expects that Postroom sends to the address
// now.
func (c *suppressionsDeleteCmd) Run(s *session) error {
	r := api.SuppressionRemoval{Account: c.Account, List: c.List, Reason: c.Reason}
	r.Email, r.Domain = addressOrDomain(c.Whom)
	answer, err := api.RemoveSuppression.Do(s, s.client, r)
	if err == nil && !answer.Deleted {
		where := "; see postroom suppressions check"
		for _, other := range answer.Elsewhere {
			where += ", but for " + scopeWords(other.SuppressionScope)
		}
		return cmp.Or(s.answer(answer, nil, func() {}),
			fmt.Errorf("%s is not suppressed for %s%s", c.Whom, scopeWords(c.scope()), where))
	}
	return s.said(answer, err, "%s is no longer suppressed for %s", clean(c.Whom), clean(scopeWords(c.scope())))
}
