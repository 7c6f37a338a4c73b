package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// suppressionsCmd is about whom not to mail.
type suppressionsCmd struct {
	List   suppressionsListCmd   `cmd:"" default:"withargs" help:"List suppressions (the default)."`
	Check  suppressionsCheckCmd  `cmd:"" help:"Say why an address is not mailed, or that it is."`
	Add    suppressionsAddCmd    `cmd:"" help:"Stop mail to addresses or domains."`
	Remove suppressionsRemoveCmd `cmd:"" help:"Let mail to an address or a domain pass again."`
	Import suppressionsImportCmd `cmd:"" help:"Add what a CSV file says, of any size."`
	Export suppressionsExportCmd `cmd:"" help:"Write suppressions as CSV."`
}

// scopeFlags say whose mail is meant; none of them: that of the whole instance.
type scopeFlags struct {
	Account string `placeholder:"ID" help:"Of this account only."`
	List    string `placeholder:"ID" help:"Of this list only."`
}

func (f scopeFlags) scope() api.SuppressionScope {
	return api.SuppressionScope{Account: f.Account, List: f.List}
}

// suppressionFlags choose suppressions.
type suppressionFlags struct {
	scopeFlags
	Instance bool   `help:"Only those of the whole instance, not those of accounts and lists."`
	Reason   string `enum:",unsubscribe,hard_bounce,spam_report,manual" default:"" placeholder:"REASON" help:"Only this reason: unsubscribe, hard_bounce, spam_report or manual."`
	Domain   string `placeholder:"DOMAIN" help:"Only this domain and its addresses. Looks through all suppressions."`
}

func (f suppressionFlags) query() api.SuppressionQuery {
	q := api.SuppressionQuery{SuppressionScope: f.scope(), Reason: f.Reason, Domain: f.Domain}
	if f.Instance {
		q.Scope = "instance"
	}
	return q
}

// suppressionsListCmd lists suppressions.
type suppressionsListCmd struct {
	suppressionFlags
	Limit int `short:"n" default:"20" help:"Suppressions at most; 0: all."`
	reachFlags
}

// suppressionList is what is printed for programs.
type suppressionList struct {
	Total        int               `json:"total"` // of scope and reason, whatever the domain
	Suppressions []api.Suppression `json:"suppressions"`
	More         bool              `json:"more"` // there are others
}

// Run lists suppressions.
func (s *suppressionsListCmd) Run(ctx context.Context, con *console) error {
	if s.Limit < 0 {
		return usage("--limit: %d is not a number of suppressions; 0 means all", s.Limit)
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	list, err := s.fetch(ctx, client)
	switch {
	case err != nil:
		return err
	case s.JSON:
		return con.printJSON(list)
	case len(list.Suppressions) == 0:
		con.say("no suppressions")
		return nil
	}
	con.show(suppressionGrid(list.Suppressions, time.Now()))
	if list.More {
		con.note("%d in all; all of them: --limit 0, or postroom suppressions export", list.Total)
	}
	return nil
}

func (s *suppressionsListCmd) fetch(ctx context.Context, client *api.Client) (suppressionList, error) {
	list, q := suppressionList{Suppressions: []api.Suppression{}}, s.query()
	for {
		q.PageSize = maxPage
		if s.Limit > 0 {
			q.PageSize = min(maxPage, s.Limit-len(list.Suppressions))
		}
		page, err := api.ListSuppressions.Do(ctx, client, q)
		if err != nil {
			return list, err
		}
		list.Total, list.More = page.Total, page.Cursor != ""
		list.Suppressions = append(list.Suppressions, page.Suppressions...)
		if q.Cursor = page.Cursor; q.Cursor == "" || s.Limit > 0 && len(list.Suppressions) >= s.Limit {
			return list, nil
		}
	}
}

func suppressionGrid(list []api.Suppression, now time.Time) grid {
	g := grid{headings: []string{"whom", "reason", "mail of", "since", "until", "source", "message", "evidence"}}
	for _, s := range list {
		until := "for ever"
		if s.Expires != nil {
			until = moment(*s.Expires, now)
		}
		if s.Expired {
			until = "over"
		}
		g.add(whom(s), s.Reason, scopeWords(s.SuppressionScope), moment(s.Created, now), until, orDash(s.Source), orDash(s.MessageID), clip(orDash(s.Response), 60))
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
		return "list " + s.List
	case s.Account != "":
		return "account " + s.Account
	}
	return "everybody"
}

// suppressionsCheckCmd says why an address is not mailed.
type suppressionsCheckCmd struct {
	Address string `arg:"" help:"The address."`
	reachFlags
}

// Run tells all that is known against the address.
func (s *suppressionsCheckCmd) Run(ctx context.Context, con *console) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	found, err := api.CheckSuppression.Do(ctx, client, api.SuppressionCheck{Email: s.Address})
	switch {
	case err != nil:
		return err
	case s.JSON:
		return con.printJSON(found)
	case len(found.Suppressions) == 0:
		con.say("%s is mailed: nothing is known against it or its domain", clean(found.Email))
		return nil
	}
	con.show(suppressionGrid(found.Suppressions, time.Now()))
	for _, line := range verdicts(found.Suppressions) {
		con.say("%s", clean(line))
	}
	return nil
}

// verdicts say what follows from what is known against an address: the widest first.
func verdicts(list []api.Suppression) []string {
	var all []string
	told := map[string]bool{}
	for _, s := range list {
		what := "every mail is stopped"
		switch {
		case s.Reason == "unsubscribe" && s.List == "":
			what = "bulk mail is stopped, transactional mail passes"
		case s.List != "":
			what = "mail of this list is stopped"
		}
		line := scopeWords(s.SuppressionScope) + ": " + what
		if s.Expired || told[line] {
			continue
		}
		told[line] = true
		all = append(all, line)
	}
	if len(all) == 0 {
		all = append(all, "it is mailed again: all of that has expired")
	}
	return all
}

// suppressionsAddCmd adds suppressions.
type suppressionsAddCmd struct {
	Whom []string `arg:"" help:"Addresses; or domains, as @example.com."`
	scopeFlags
	Reason  string `enum:"unsubscribe,hard_bounce,spam_report,manual" default:"manual" help:"unsubscribe stops bulk mail, and mail of the list; hard_bounce, spam_report and manual (the default) stop every mail."`
	Expires string `placeholder:"WHEN" help:"Until when: a distance (720h), or a time such as 2030-12-31. Default: for ever."`
	Note    string `placeholder:"TEXT" help:"Words to find there later, such as a ticket's number."`
	reachFlags
}

// Run adds them, none if one is wrong.
func (s *suppressionsAddCmd) Run(ctx context.Context, con *console) error {
	list := make([]api.NewSuppression, len(s.Whom))
	for i, who := range s.Whom {
		list[i] = api.NewSuppression{Reason: s.Reason, SuppressionScope: s.scope(), Source: "cli", Response: s.Note}
		if domain, ok := strings.CutPrefix(who, "@"); ok {
			list[i].Domain = domain
		} else {
			list[i].Email = who
		}
		if s.Expires != "" {
			at, err := parseWhen(s.Expires, time.Now())
			if err != nil {
				return usage("--expires: %v", err)
			}
			list[i].Expires = &at
		}
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	answer, err := api.AddSuppressions.Do(ctx, client, api.SuppressionRequest{Suppressions: list})
	switch {
	case err != nil:
		return err
	case s.JSON:
		return con.printJSON(answer)
	}
	con.say("%d added, %d known already", answer.Added, answer.Known)
	return nil
}

// suppressionsRemoveCmd removes what a scope has against somebody.
type suppressionsRemoveCmd struct {
	Whom string `arg:"" help:"An address; or a domain, as @example.com, whose own entry is meant and not those of its addresses."`
	scopeFlags
	Reason string `enum:",unsubscribe,hard_bounce,spam_report,manual" default:"" placeholder:"REASON" help:"Only this reason. Default: all."`
	reachFlags
}

// Run removes it. That there was nothing is a failure: whoever asks expects mail to pass now.
func (s *suppressionsRemoveCmd) Run(ctx context.Context, con *console) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	r := api.SuppressionRemoval{Email: s.Whom, SuppressionScope: s.scope(), Reason: s.Reason}
	if domain, ok := strings.CutPrefix(s.Whom, "@"); ok {
		r.Email, r.Domain = "", domain
	}
	answer, err := api.RemoveSuppression.Do(ctx, client, r)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := con.printJSON(answer); err != nil {
			return err
		}
	}
	if !answer.Deleted {
		return fmt.Errorf("%s is not suppressed for %s; see postroom suppressions check", s.Whom, scopeWords(s.scope()))
	}
	if !s.JSON {
		con.say("%s is no longer suppressed for %s", clean(s.Whom), clean(scopeWords(s.scope())))
	}
	return nil
}
