package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// searchCmd finds mail.
type searchCmd struct {
	Query []string `arg:"" optional:"" help:"Words, \"phrases\", -not, OR, prefix*, and fields: to: from: subject: text: status: tag: account: gateway: lane: code: id: before: after:. Best in single quotes: postroom search 'invoice to:example.com after:7d -status:sent'. Default: everything."`
	Sort  string   `enum:"newest,relevance" default:"newest" help:"Order: newest or relevance."`
	limitFlag
}

// searchPage is the largest page of a search.
const searchPage = 500

func (c *searchCmd) Run(s *session) error {
	q := api.DocumentQuery{Q: strings.Join(c.Query, " "), Sort: api.DocumentSort(c.Sort),
		PageSize: c.pageSize(searchPage)}
	found, more, last, err := fetch(s, api.SearchDocuments, q, c.limitFlag, nil)
	out := struct {
		Total     int                `json:"total"`
		Documents []api.FoundMessage `json:"documents"`
		Facets    api.DocumentFacets `json:"facets"`
		More      bool               `json:"more"` // there are others
	}{last.Total, found, last.Facets, more}
	parts := make([]string, len(last.Facets.Status))
	for i, f := range last.Facets.Status {
		parts[i] = fmt.Sprintf("%d %s", f.Count, f.Value)
	}
	return s.table(out, err, "nothing found", foundGrid(found, time.Now()),
		fmt.Sprintf("%d found: %s", last.Total, strings.Join(parts, ", "))+
			noteIf(more, "\nthere are more; all of them: --limit 0"))
}

func foundGrid(found []api.FoundMessage, now time.Time) grid {
	g := newGrid("id", "status", "account", "to", "subject", "accepted", "text")
	for _, m := range found {
		text := ""
		for _, fragment := range m.Highlights.Text {
			text += fragment.Text
		}
		g.add(m.QueueID, m.Stands(), m.Account, someOf(m.To), clip(m.Subject, 40), moment(m.Created, now),
			clip(text, 60))
	}
	return g
}
