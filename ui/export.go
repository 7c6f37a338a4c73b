package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// A page with a list is data for programs, too: with format=csv or format=json in its URL it answers with
// all rows of its filter. To get them, its handler is called for one page after the other, so that filters,
// rights and the binding to an account are those of the page.

// listPage is the data of a page with a list: its rows, a slice, and the URL of the next page; empty: these
// are the last.
type listPage interface {
	listed() (rows any, next string)
}

// exportKey is the key of the collector in the context of a request for a file.
type exportKey struct{}

// collector gets the data of one page in place of the browser.
type collector struct{ page listPage }

// exportRows is how many rows an exported page of messages has.
const exportRows = 500

// collects returns where show puts the data of a page; nil: it goes to the browser.
func collects(r *http.Request) *collector {
	c, _ := r.Context().Value(exportKey{}).(*collector)
	return c
}

// rowsFor returns the number of messages on a page, or in a part of a file.
func rowsFor(r *http.Request) int {
	if collects(r) != nil {
		return exportRows
	}
	return rowsPerPage
}

// exports makes h answer with a file if the URL asks for one, and if it has a list.
func exports(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		format := r.URL.Query().Get("format")
		if format == "" {
			return h(w, r)
		}
		if format != "csv" && format != "json" {
			return wrongField("format", "is neither csv nor json")
		}
		first := &collector{}
		r = r.WithContext(context.WithValue(r.Context(), exportKey{}, first))
		if err := h(w, r); err != nil || first.page == nil {
			return err
		}
		return export(w, r, h, format, first.page)
	}
}

// export writes the rows of a page and of those after it. If it fails halfway the connection is cut, so that
// nobody takes a part for the whole.
func export(w http.ResponseWriter, r *http.Request, h handler, format string, page listPage) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // fails for recorders of tests only
	name := strings.ReplaceAll(strings.Trim(r.URL.Path, "/"), "/", "-")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name+"."+format))
	w.Header().Set("Content-Type", map[string]string{"csv": "text/csv; charset=utf-8; header=present",
		"json": "application/json"}[format])
	rows, next := page.listed()
	out := newFile(w, format, reflect.TypeOf(rows).Elem())
	for at := ""; ; {
		if err := out.add(reflect.ValueOf(rows)); err != nil {
			panic(http.ErrAbortHandler)
		}
		if next == "" || next == at {
			break
		}
		got := &collector{}
		at = next
		if err := h(w, following(r, at, got)); err != nil || got.page == nil {
			panic(http.ErrAbortHandler)
		}
		rows, next = got.page.listed()
	}
	if out.end() != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// following returns the request for the page at a URL of the same path.
func following(r *http.Request, at string, into *collector) *http.Request {
	next := r.Clone(context.WithValue(r.Context(), exportKey{}, into))
	_, next.URL.RawQuery, _ = strings.Cut(at, "?")
	return next
}

// file is a list in CSV or JSON, while it is written.
type file struct {
	to      io.Writer
	csv     *api.CSVWriter // nil: JSON
	columns []string
	some    bool // there is a row
	err     error
}

func newFile(to io.Writer, format string, row reflect.Type) *file {
	f := &file{to: to, columns: columnsOf(row)}
	if format == "csv" {
		f.csv = api.NewCSVWriter(to)
		f.err = f.csv.Write(f.columns)
	}
	return f
}

func (f *file) add(rows reflect.Value) error {
	for i := 0; i < rows.Len() && f.err == nil; i++ {
		var raw []byte
		if raw, f.err = json.Marshal(rows.Index(i).Interface()); f.err == nil {
			f.err = f.row(raw)
		}
		f.some = true
	}
	if f.csv != nil {
		f.err = errors.Join(f.err, f.csv.Flush())
	}
	return f.err
}

// row writes a row, given as a JSON object.
func (f *file) row(raw []byte) error {
	if f.csv == nil {
		before := ",\n"
		if !f.some {
			before = "[\n"
		}
		_, err := f.to.Write(append([]byte(before), raw...))
		return err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	cells := make([]string, len(f.columns))
	for i, column := range f.columns {
		cells[i] = cell(fields[column])
	}
	return f.csv.Write(cells)
}

// end completes the file.
func (f *file) end() error {
	if f.csv != nil || f.err != nil {
		return f.err
	}
	last := "\n]\n"
	if !f.some {
		last = "[]\n"
	}
	_, err := io.WriteString(f.to, last)
	return err
}

// cell returns a JSON value as a cell: a text as it is, an object or a list as JSON.
func cell(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || bytes.Equal(raw, []byte("null")):
		return ""
	case json.Unmarshal(raw, &text) != nil:
		return string(raw)
	}
	return text
}

// columnsOf returns the names of a struct's fields in JSON, in their order.
func columnsOf(t reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-" || field.Anonymous && name == "":
		case slices.Contains(names, name):
		case name != "":
			names = append(names, name)
		default:
			names = append(names, field.Name)
		}
	}
	return names
}

// exportURL returns the URL of the file of a list, without its format, which the caller appends.
func exportURL(r *http.Request) string {
	v := filtersOf(r)
	return address(r.URL.Path, v) + map[bool]string{true: "?", false: "&"}[len(v) == 0] + "format="
}

func (v outboxView) listed() (any, string)           { return v.Rows, v.Next }
func (v logView) listed() (any, string)              { return v.Rows, v.Next }
func (v replayView) listed() (any, string)           { return v.Letters, v.next }
func (v inboxView) listed() (any, string)            { return []CaughtMail(v), "" }
func (v auditView) listed() (any, string)            { return v.Rows, v.Older }
func (v suppressionsView) listed() (any, string)     { return v.Page.Suppressions, v.Next }
func (v subscribersView) listed() (any, string)      { return v.Page.Subscribers, v.Next }
func (v recipientsView) listed() (any, string)       { return v.Recipients, v.Next }
func (v digestRunsView) listed() (any, string)       { return v.Runs, v.Next }
func (v digestRecipientsView) listed() (any, string) { return v.Recipients, v.Next }
func (v searchView) listed() (any, string)           { return v.Found.Documents, v.Older }
func (v peopleView) listed() (any, string)           { return v.People, v.Pager.Next() }
func (v accountsView) listed() (any, string)         { return v.Accounts, v.Pager.Next() }
func (v gatewaysView) listed() (any, string)         { return v.Gateways, v.Pager.Next() }
func (v webhooksView) listed() (any, string)         { return v.Endpoints, v.Pager.Next() }
func (v endpointView) listed() (any, string)         { return v.Deliveries, v.Pager.Next() }
func (v campaignsView) listed() (any, string)        { return v.Campaigns, v.Pager.Next() }
func (v listsView) listed() (any, string)            { return v.Lists, v.Pager.Next() }
func (v segmentsView) listed() (any, string)         { return v.Segments, v.Pager.Next() }
func (v templatesView) listed() (any, string)        { return v.Templates, v.Pager.Next() }
func (v importsView) listed() (any, string)          { return v.Imports, "" }
func (v sessionsView) listed() (any, string)         { return v.Sessions, "" }
func (v ratesView) listed() (any, string)            { return v.Rates.Rates, "" }

func (v digestKindsView) listed() (any, string) {
	kinds := make([]api.DigestKindInfo, len(v.Kinds))
	for i, row := range v.Kinds {
		kinds[i] = row.DigestKindInfo
	}
	return kinds, v.Pager.Next()
}

func (v tokensView) listed() (any, string) {
	tokens := make([]api.TokenInfo, len(v.Tokens))
	for i, row := range v.Tokens {
		tokens[i] = row.TokenInfo
	}
	return tokens, v.Pager.Next()
}
