package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

type auditCmd struct {
	filter[api.AuditQuery]
	Follow bool   `short:"f" help:"Print new entries until Ctrl-C."`
	Export bool   `help:"Print all entries as JSON lines, oldest first, as they were hashed and signed."`
	Verify bool   `help:"Check that the log is complete and unchanged. Exits with 1 if it isn't."`
	Head   string `placeholder:"SEQ:HASH" help:"With --verify: an entry that the log must have, such as the head of an earlier verification."`
	limitFlag

	interval time.Duration // of --follow; 0: a second
}

func (a *auditCmd) Run(s *session) error {
	q, err := a.query()
	switch {
	case err != nil:
		return err
	case a.Head != "" && !a.Verify:
		return usage("--head: is for --verify")
	case a.Verify:
		return a.verify(s)
	case a.Export:
		return api.ExportAudit.Do(s, s.client, q, s.out)
	case a.Follow:
		return a.follow(s, q)
	}
	q.PageSize = a.pageSize(maxPage)
	entries, more, _, err := fetch(s, api.ListAudit, q, a.limitFlag, nil)
	return s.some("entries", entries, more, err, "no entries", auditGrid(entries, time.Now()))
}

func auditGrid(entries []api.AuditEntry, now time.Time) grid {
	g := newGrid("no.", "time", "result", "who", "from", "what", "object", "changed")
	for _, e := range entries {
		g.add(e.Seq, moment(e.Time, now), e.Result, actor(e.Who), e.Who.Address, clip(e.Action, 50),
			object(e.Object),
			clip(changed(e), 80))
	}
	return g
}

func actor(a api.AuditActor) string {
	name := cmp.Or(a.Name, a.TokenID[:min(len(a.TokenID), 12)])
	if name == "" {
		return a.Kind
	}
	return a.Kind + " " + clip(name, 30)
}

func object(o *api.AuditObject) string {
	if o == nil {
		return "-"
	}
	return strings.TrimSpace(o.Kind + " " + clip(o.ID, 40))
}

// changed returns the reason of an entry, and its changes.
func changed(e api.AuditEntry) string {
	var all []string
	if e.Count > 0 {
		all = append(all, plural(e.Count, "time"))
	}
	if e.Reason != "" {
		all = append(all, e.Reason)
	}
	for _, c := range e.Changes {
		all = append(all, fmt.Sprintf("%s: %s → %s", c.Field, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-")))
	}
	return strings.Join(all, "; ")
}

// follow prints the newest entries, then new ones as they come, until Ctrl-C.
func (a *auditCmd) follow(s *session, q api.AuditQuery) error {
	q.PageSize = a.pageSize(maxPage)
	page, err := api.ListAudit.Do(s, s.client, q)
	if err != nil {
		return err
	}
	for i := len(page.Entries) - 1; i >= 0; i-- {
		if err := a.print(s, page.Entries[i]); err != nil {
			return err
		}
	}
	q.Oldest, q.PageSize = true, maxPage
	if len(page.Entries) > 0 {
		q.Cursor = page.Entries[0].ID
	}
	for {
		page, err := api.ListAudit.Do(s, s.client, q)
		if s.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			if err := a.print(s, e); err != nil {
				return err
			}
		}
		q.Cursor = page.Cursor
		if !page.More && sleep(s, cmp.Or(a.interval, time.Second)) != nil {
			return nil
		}
	}
}

func (a *auditCmd) print(s *session, e api.AuditEntry) error {
	if s.json {
		return s.encode(e, "")
	}
	s.say("%s  %d  %s  %s  %s  %s  %s", e.Time.Local().Format(time.DateTime), e.Seq, e.Result,
		clean(actor(e.Who)),
		clean(e.Action), clean(object(e.Object)), clean(changed(e)))
	return nil
}

// verify checks the log. It fails if something was tampered with.
func (a *auditCmd) verify(s *session) error {
	var q api.AuditVerifyQuery
	if a.Head != "" {
		seq, hash, ok := strings.Cut(a.Head, ":")
		n, err := strconv.ParseInt(seq, 10, 64)
		if !ok || err != nil {
			return usage("--head: %s is not a number and a hash, as --verify prints them: 17:9f86d081…", a.Head)
		}
		q = api.AuditVerifyQuery{Seq: n, Hash: hash}
	}
	v, err := api.VerifyAudit.Do(s, s.client, q)
	if err != nil {
		return err
	}
	return s.done(v, !v.Intact, func() {
		s.line("Entries", fmt.Sprintf("%d, from number %d on", v.Entries, v.First))
		s.line("Head", fmt.Sprintf("%d:%s", v.Head.Seq, v.Head.Hash))
		if len(v.Unfinished) > 0 {
			s.line("Unfinished", fmt.Sprintf("%d changes without a result: their process died, or they took long",
				len(v.Unfinished)))
		}
		if v.Intact {
			s.say("The log is complete and unchanged. Store the head elsewhere, to check later with --head.")
			return
		}
		s.say("The log was changed:")
		for _, p := range v.Problems {
			s.say("  %d  %s", p.Seq, clean(p.Text))
		}
	})
}
