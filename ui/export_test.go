package ui

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// table reads a page as CSV.
func (p page) table(t *testing.T) (head []string, rows [][]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(p.body)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("no CSV: %v\n%s", err, p.body)
	}
	return all[0], all[1:]
}

// TestListsAsFiles: a list is a file with all rows of its filter, over all pages, and runs nothing in a
// spreadsheet.
func TestListsAsFiles(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const rows = exportRows + 3
	for i := range rows {
		w.later(api.SubmitRequest{Subject: fmt.Sprint("=HYPERLINK(", i), Tags: []string{"news", "old"}})
	}
	w.later(api.SubmitRequest{Subject: "plain", Lane: api.Bulk})
	b := w.operator()
	for _, path := range []string{"/outbox", "/log"} {
		p := b.get(path + "?format=csv&lane=transactional&page=7")
		head, got := p.table(t)
		if at := slices.Index(head, "subject"); len(got) != rows || !strings.HasPrefix(got[0][at], "'=HYPERLINK(") {
			t.Errorf("%s: %d rows, %v", path, len(got), got[0])
		}
		if at := slices.Index(head, "tags"); at < 0 || got[0][at] != `["news","old"]` {
			t.Errorf("%s: %v %v", path, head, got[0])
		}
		ids := map[string]bool{}
		for _, row := range got {
			ids[row[slices.Index(head, "queueId")]] = true
		}
		if len(ids) != rows || p.header.Get("Content-Disposition") != `attachment; filename="`+path[1:]+`.csv"` {
			t.Errorf("%s: %d different messages, %v", path, len(ids), p.header)
		}
		var all []api.OutboxMessage
		if err := json.Unmarshal([]byte(b.get(path+"?format=json").body), &all); err != nil || len(all) != rows+1 {
			t.Errorf("%s as JSON: %d rows, %v", path, len(all), err)
		}
		b.get(path+"?lane=bulk").has(t, path+"?lane=bulk&format=csv", path+"?lane=bulk&format=json")
	}
	p := b.get("/log?format=xml")
	if p.status != http.StatusBadRequest {
		t.Errorf("a format that is none: %d", p.status)
	}
	p.has(t, "is neither csv nor json")
	if p := b.get("/log?format=csv&lane=none"); p.status != http.StatusBadRequest {
		t.Errorf("a filter that is none: %d", p.status)
	}
}

// TestEachListIsAFile: also those without a row, and for who is bound to an account only what is of that one.
func TestEachListIsAFile(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("shop")
	w.later(api.SubmitRequest{Account: "shop", Subject: "of the shop"})
	w.later(api.SubmitRequest{Subject: "of another"})
	b := w.operator()
	for _, path := range strings.Fields("/outbox /log /suppressions /lists /segments /campaigns /audience " +
		"/rates /webhooks /accounts /gateways /templates /tokens /audit /people /sessions /imports " +
		"/replay /digests/categories") {
		head, _ := b.get(path + "?format=csv").table(t)
		if len(head) < 3 || slices.Contains(head, "") {
			t.Errorf("%s has the columns %v", path, head)
		}
		var rows []map[string]any
		if err := json.Unmarshal([]byte(b.get(path+"?format=json").body), &rows); err != nil {
			t.Errorf("%s as JSON: %v", path, err)
		}
	}
	bound := w.person("berta", api.RoleViewer, "shop")
	p := bound.get("/outbox?format=csv")
	p.has(t, "of the shop")
	p.lacks(t, "of another")
	if p := bound.get("/people?format=csv"); p.status != http.StatusForbidden {
		t.Errorf("people for who is bound: %d", p.status)
	}
	b.header.Set("Accept", "text/html")
	if p := w.browser().get("/log?format=csv"); p.to() == "" {
		t.Errorf("without a login: %d", p.status)
	}
}
