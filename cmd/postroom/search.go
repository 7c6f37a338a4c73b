package main

import (
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
	limitFlag
}

// searchPage is the number of messages that are asked for at once.
const searchPage = 500

// Run finds mail.
func (c *searchCmd) Run(s *session) error {
	if err := c.checked(); err != nil {
		return err
	}
	q := api.DocumentQuery{Q: strings.Join(c.Query, " "), Sort: api.DocumentSort(c.Sort),
		PageSize: c.pageSize(searchPage)}
	found, more, last, err := fetch(s, api.SearchDocuments, q, c.limitFlag, nil)
	out := struct {
		Total     int                `json:"total"`
		Documents []api.FoundMessage `json:"documents"`
		Facets    api.DocumentFacets `json:"facets"`
		More      bool               `json:"more"` // there are others
	}{last.Total, found, last.Facets, more}
	return s.answer(out, err, func() {
		if len(found) == 0 {
			s.say("nothing found")
			return
		}
		s.show(foundGrid(found, time.Now()))
		parts := make([]string, len(last.Facets.Status))
		for i, f := range last.Facets.Status {
			parts[i] = fmt.Sprintf("%d %s", f.Count, f.Value)
		}
		s.note("%d found: %s", last.Total, strings.Join(parts, ", "))
		if more {
			s.note("there are more; all of them: --limit 0")
		}
	})
}

func foundGrid(found []api.FoundMessage, now time.Time) grid {
	g := newGrid("id", "status", "account", "to", "subject", "accepted", "text")
	for _, m := range found {
		g.add(m.QueueID, m.Status, m.Account, someOf(m.To), clip(m.Subject, 40), moment(m.Created, now),
			clip(plainText(m.Highlights.Text), 60))
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
