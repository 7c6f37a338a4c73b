package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// searchCmd finds mail.
type searchCmd struct {
	reachFlags
	Query []string `arg:"" optional:"" help:"Words, \"phrases\", -not, OR, prefix*, and fields: to: from: subject: text: status: tag: account: gateway: lane: code: id: before: after:. Best in single quotes: postroom search 'invoice to:example.com after:7d -status:sent'. Default: everything."`
	Sort  string   `enum:"newest,relevance" default:"newest" help:"newest or relevance: the best first."`
	Limit int      `short:"n" default:"20" help:"Messages at most; 0: all."`
}

// searchList is what is printed for programs.
type searchList struct {
	Total     int                `json:"total"`
	Documents []api.FoundMessage `json:"documents"`
	Facets    api.DocumentFacets `json:"facets"`
	More      bool               `json:"more"` // there are others
}

// searchPage is how many messages are asked for at once.
const searchPage = 500

// Run finds mail.
func (s *searchCmd) Run(ctx context.Context, con *console) error {
	if s.Limit < 0 {
		return usage("--limit: %d is not a number of messages; 0 means all", s.Limit)
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	list, err := s.fetch(ctx, client)
	if err != nil {
		return err
	}
	if s.JSON {
		return con.printJSON(list)
	}
	if len(list.Documents) == 0 {
		con.say("nothing found")
		return nil
	}
	con.show(foundGrid(list.Documents, time.Now()))
	con.note("%s", countsLine(list))
	if list.More {
		con.note("there are more; all of them: --limit 0")
	}
	return nil
}

// fetch gets up to Limit messages.
func (s *searchCmd) fetch(ctx context.Context, client *api.Client) (searchList, error) {
	list, q := searchList{Documents: []api.FoundMessage{}}, api.DocumentQuery{Q: strings.Join(s.Query, " "), Sort: api.DocumentSort(s.Sort)}
	for {
		q.PageSize = searchPage
		if s.Limit > 0 {
			q.PageSize = min(searchPage, s.Limit-len(list.Documents))
		}
		page, err := api.SearchDocuments.Do(ctx, client, q)
		if err != nil {
			return list, err
		}
		list.Total, list.Facets, q.Cursor = page.Total, page.Facets, page.Cursor
		list.Documents = append(list.Documents, page.Documents...)
		if list.More = page.Cursor != ""; !list.More || s.Limit > 0 && len(list.Documents) >= s.Limit {
			return list, nil
		}
	}
}

func foundGrid(found []api.FoundMessage, now time.Time) grid {
	g := grid{headings: []string{"id", "status", "account", "to", "subject", "accepted", "text"}}
	for _, m := range found {
		g.add(m.QueueID, string(m.Status), m.Account, someOf(m.To), clip(m.Subject, 40), moment(m.Created, now), clip(plainText(m.Highlights.Text), 60))
	}
	return g
}

// plainText joins fragments.
func plainText(fragments []api.Fragment) string {
	var b strings.Builder
	for _, f := range fragments {
		b.WriteString(f.Text)
	}
	return b.String()
}

// countsLine tells how many were found, and how they stand.
func countsLine(list searchList) string {
	parts := make([]string, len(list.Facets.Status))
	for i, c := range list.Facets.Status {
		parts[i] = fmt.Sprintf("%d %s", c.Count, c.Value)
	}
	return fmt.Sprintf("%d found: %s", list.Total, strings.Join(parts, ", "))
}
