package ui

import (
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/search/query"
)

// longestQuery is longer than the index accepts; the index has the better error.
const longestQuery = 4096

type searchView struct {
	Q      string
	Best   bool // best first; otherwise newest first
	Wrong  string
	Quoted string // URL of the search for the words of a wrong query as they stand; empty: it has none
	Found  api.DocumentPage
	Facets []facet
	Order  string // URL of the search in the other order
	Older  string // URL of the next rows; empty: none
	Top    string // URL of the first rows; empty: these are the first
}

// facet are the numbers of found messages by the values of a field.
type facet struct {
	Name   string
	Values []facetValue
}

// facetValue is a link to the found messages with a value.
type facetValue struct {
	Value string
	Count int
	URL   string // empty: a query cannot contain the value
}

// searchPage finds mail in the search index. An address alone leads to the page of the address.
// A wrong query is answered with the error and its place.
func (u *UI) searchPage(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	view := searchView{Q: strings.TrimSpace(v.Get("q")), Best: v.Get("sort") == string(api.SortRelevance)}
	if len(view.Q) > longestQuery || len(v.Get("cursor")) > 1024 {
		return fault.New(fault.Invalid, "", "The address is too long")
	}
	if isAddress(view.Q) && !v.Has("sort") && !v.Has("cursor") {
		return redirect(w, r, whyPath(view.Q))
	}
	q := api.DocumentQuery{Q: view.Q, Account: boundTo(r), PageSize: rowsPerPage, Cursor: v.Get("cursor")}
	if view.Best {
		q.Sort = api.SortRelevance
	}
	var err error
	if view.Found, err = u.Documents.Search(r.Context(), q); err != nil {
		if view.Wrong = wrongQuery(err); view.Wrong == "" {
			return err
		}
		asItStands := view
		asItStands.Q = `"` + strings.Join(strings.Fields(strings.ReplaceAll(view.Q, `"`, " ")), " ") + `"`
		if _, err := query.Parse(asItStands.Q, time.Now()); err == nil {
			view.Quoted = asItStands.at("")
		}
		return u.show(w, r, http.StatusBadRequest, "search", "Search", view)
	}
	f := view.Found.Facets
	for _, each := range []struct {
		name, field string
		values      []api.FacetCount
	}{{"Status", "status", f.Status}, {"Account", "account", f.Account}, {"Tag", "tag", f.Tag}, {"Lane", "lane",
		f.Lane}} {
		if len(each.values) > 0 {
			view.Facets = append(view.Facets, newFacet(view, each.name, each.field, each.values))
		}
	}
	other := view
	other.Best = !view.Best
	view.Order = other.at("")
	if view.Found.Cursor != "" {
		view.Older = view.at(view.Found.Cursor)
	}
	if q.Cursor != "" {
		view.Top = view.at("")
	}
	return u.show(w, r, http.StatusOK, "search", "Search", view)
}

// wrongQuery returns the error in the query, or "" if the query is not at fault.
func wrongQuery(err error) string {
	if !fault.Is(err, fault.Invalid) {
		return ""
	}
	for _, f := range wordsOf(err).Fields {
		if f.Key == "q" {
			return f.Message
		}
	}
	return ""
}

func newFacet(view searchView, name, field string, values []api.FacetCount) facet {
	f := facet{Name: name}
	for _, v := range values {
		next := view
		next.Q = narrow(view.Q, field, v.Value)
		value := facetValue{Value: v.Value, Count: v.Count}
		if next.Q != "" {
			value.URL = next.at("")
		}
		f.Values = append(f.Values, value)
	}
	return f
}

// narrow adds a field to a query. It returns "" if a query cannot contain the value.
func narrow(q, field, value string) string {
	switch {
	case strings.Contains(value, `"`):
		return ""
	case strings.ContainsAny(value, " \t\n()*") || value == "":
		value = `"` + value + `"`
	}
	term := field + ":" + value
	switch {
	case q == "":
		return term
	case strings.Contains(" "+q+" ", " "+term+" "):
		return q
	case strings.Contains(q, "OR"):
		return "(" + q + ") " + term
	}
	return q + " " + term
}

// at returns the URL of this search after a cursor.
func (s searchView) at(cursor string) string {
	all := map[string]string{"q": s.Q, "cursor": cursor}
	if s.Best {
		all["sort"] = string(api.SortRelevance)
	}
	return address("/search", values(all))
}
