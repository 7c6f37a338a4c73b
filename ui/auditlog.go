package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type auditView struct {
	Query    api.AuditQuery
	Kinds    []string
	Results  []api.AuditResult
	Rows     []api.AuditEntry
	Older    string             // URL of the next entries; empty: none
	Further  bool               // newer entries exist
	Verified *api.AuditVerified // nil: not requested
	URL      string             // of the page with these filters
}

// auditKinds are the kinds of objects in the log.
var auditKinds = []string{"account", "gateway", "dkim", "template", "token", "person", "session",
	"endpoint", "settings", "queue", "message", "suppression", "list", "segment", "subscriber", "campaign",
	"digestKind", "digestRecipient", "digestRun", "documents"}

var auditResults = []api.AuditResult{api.AuditBegun, api.AuditDone, api.AuditRefused, api.AuditFailed}

// Any reports whether there is a filter.
func (v auditView) Any() bool { return v.Query != api.AuditQuery{} }

// FromField returns the time From for the field of the form, and ToField To.
func (v auditView) FromField() string { return formMoment(v.Query.From) }

func (v auditView) ToField() string { return formMoment(v.Query.To) }

// auditPage shows who did what, newest first, and verifies the log if the URL says so.
func (u *UI) auditPage(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	q, err := readAuditQuery(in)
	if err != nil {
		return err
	}
	v := auditView{Query: q, Kinds: auditKinds, Results: auditResults, Further: in.Get("cursor") != ""}
	params := values(map[string]string{"who": q.Who, "kind": q.Kind, "id": q.ID, "account": q.Account,
		"result": string(q.Result), "from": fieldMoment(q.From), "to": fieldMoment(q.To)})
	v.URL = address("/audit", params)
	q.PageSize, q.Cursor = rowsPerPage, in.Get("cursor")
	page, err := u.Audit.List(r.Context(), q)
	if err != nil {
		return err
	}
	if v.Rows = page.Entries; page.More {
		params.Set("cursor", page.Cursor)
		v.Older = address("/audit", params)
	}
	if in.Get("verify") != "" {
		found, err := u.Audit.Verify(r.Context(), api.AuditHead{})
		if err != nil {
			return err
		}
		v.Verified = &found
	}
	return u.show(w, r, http.StatusOK, "audit", "Audit log", v)
}

func readAuditQuery(v url.Values) (api.AuditQuery, error) {
	text := func(name string) string { return strings.TrimSpace(v.Get(name)) }
	q := api.AuditQuery{Who: text("who"), Kind: text("kind"), ID: text("id"), Account: text("account"),
		Result: api.AuditResult(text("result"))}
	var wrong fault.Fields
	for name, into := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		var err error
		if *into, err = readSince(v.Get(name)); err != nil {
			wrong.Add(name, "isn't a date and time like 2026-01-31T08:30, or an age like 7d")
		}
	}
	if q.Kind != "" && !slices.Contains(auditKinds, q.Kind) {
		wrong.Add("kind", "isn't a kind of object")
	}
	if q.Result != "" && !slices.Contains(auditResults, q.Result) {
		wrong.Add("result", "isn't a result")
	}
	if len(q.Who)+len(q.ID)+len(q.Account) > 3*256 {
		wrong.Add("who", "or another filter is too long")
	}
	return q, fault.InvalidFields(wrong)
}
