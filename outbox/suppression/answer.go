package suppression

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// The methods below serve the API and the pages. bound is the account that a caller is confined to, if any:
// the caller sees and changes only the entries of that account and of its lists.

// mayChange returns an error if a caller may not change the entries of an account.
func mayChange(bound, account string) error {
	if bound != "" && account != bound {
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return nil
}

// Query returns a page of entries.
func (s *Store) Query(ctx context.Context, bound string, q api.SuppressionQuery) (api.SuppressionPage,
	error) {
	f, err := filterOf(bound, q)
	if err != nil {
		return api.SuppressionPage{}, err
	}
	page, err := s.List(ctx, f, q.Cursor, q.PageSize)
	if err != nil {
		return api.SuppressionPage{}, err
	}
	total, err := s.CountOf(ctx, f)
	return api.SuppressionPage{Total: int(total), Cursor: page.Next, Suppressions: s.rowsFor(page.Entries)}, err
}

// filterOf returns the filter of a query, confined to the caller's scope.
func filterOf(bound string, q api.SuppressionQuery) (Filter, error) {
	f := Filter{Account: q.Account, List: q.List, Instance: q.Scope == "instance", Reason: Reason(q.Reason),
		Address: q.Address, Domain: q.Domain}
	if f.Instance && (f.Account != "" || f.List != "") {
		return f, fault.InvalidField("scope", "can't be combined with account or list")
	}
	if bound == "" {
		return f, nil
	}
	if f.Instance || f.Account != "" && f.Account != bound {
		return f, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	f.Account = bound
	return f, nil
}

func (s *Store) rowsFor(entries []Entry) []api.Suppression {
	rows, now := make([]api.Suppression, len(entries)), s.now()
	for i, e := range entries {
		rows[i] = api.Suppression{
			Email: e.Address, Domain: e.Domain, Reason: string(e.Reason), SuppressionScope: api.SuppressionScope{
				Account: e.Account, List: e.List},
			Created: e.Created, Expires: orNil(e.Expires), Expired: !e.Expires.IsZero() && !e.Expires.After(now),
			Source: e.Source, MessageID: e.MessageID, Response: e.Response,
			RemoteAddress: e.RemoteAddress, UserAgent: e.UserAgent,
		}
	}
	return rows
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Lookup returns all entries against an address.
func (s *Store) Lookup(ctx context.Context, bound, email string) (api.SuppressionFound, error) {
	entries, err := s.Find(ctx, email)
	if err != nil {
		return api.SuppressionFound{}, asAsked(err)
	}
	if bound != "" {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Account != bound })
	}
	return api.SuppressionFound{Email: foldAddress(email), Suppressions: s.rowsFor(entries)}, nil
}

// Put adds entries. If one is invalid, nothing is added, and the error names the fields as the API does.
func (s *Store) Put(ctx context.Context, bound string, list []api.NewSuppression) (api.SuppressionsAdded,
	error) {
	entries, err := newEntries(bound, list)
	if err != nil {
		return api.SuppressionsAdded{}, err
	}
	now := s.now()
	if entries, err = normalAll(entries, now); err != nil {
		return api.SuppressionsAdded{}, asAsked(err)
	}
	if err := s.hasRoom(ctx, entries); err != nil {
		return api.SuppressionsAdded{}, err
	}
	added, err := s.add(ctx, entries, now)
	if err != nil {
		return api.SuppressionsAdded{}, err
	}
	return api.SuppressionsAdded{Success: true, Added: added, Known: len(list) - added}, nil
}

// Faults returns the error that Put would return for invalid entries, or nil. It adds nothing and does no
// I/O.
func (s *Store) Faults(bound string, list []api.NewSuppression) error {
	entries, err := newEntries(bound, list)
	if err != nil {
		return err
	}
	_, err = normalAll(entries, s.now())
	return asAsked(err)
}

// newEntries reads the entries of a request, and confines them to the caller's scope.
func newEntries(bound string, list []api.NewSuppression) ([]Entry, error) {
	entries := make([]Entry, len(list))
	for i, n := range list {
		e := Entry{
			Address: n.Email, Domain: n.Domain, Reason: Reason(n.Reason), Account: n.Account, List: n.List,
			Source: n.Source, MessageID: n.MessageID, Response: n.Response,
		}
		if n.Expires != nil {
			e.Expires = *n.Expires
		}
		e.Reason = cmp.Or(e.Reason, Manual)
		if e.Source == "" {
			e.Source = "api"
		}
		if bound != "" && e.Account == "" {
			e.Account = bound
		}
		if err := mayChange(bound, e.Account); err != nil {
			return nil, err
		}
		entries[i] = e
	}
	return entries, nil
}

// asAsked renames an error's fields to a request's fields, where an address is called email.
func asAsked(err error) error {
	f, ok := err.(*fault.Error)
	if !ok {
		return err
	}
	for i, field := range f.Fields {
		if path, isAddress := strings.CutSuffix(field.Key, "address"); isAddress {
			f.Fields[i].Key = path + "email"
		}
	}
	return f
}

// Delete removes the entries of one scope about an address or a domain.
func (s *Store) Delete(ctx context.Context, bound string, r api.SuppressionRemoval) (api.SuppressionRemoved,
	error) {
	e := Entry{Address: r.Email, Domain: r.Domain, Reason: Reason(r.Reason), Account: r.Account, List: r.List}
	if bound != "" && e.Account == "" {
		e.Account = bound
	}
	if err := mayChange(bound, e.Account); err != nil {
		return api.SuppressionRemoved{}, err
	}
	removed, err := s.Remove(ctx, e)
	if err != nil || removed || bound != "" {
		return api.SuppressionRemoved{Deleted: removed}, asAsked(err)
	}
	answer := api.SuppressionRemoved{}
	found, err := s.Lookup(ctx, "", cmp.Or(r.Email, "postmaster@"+r.Domain))
	answer.Elsewhere = scopesOf(found, r.Email == "")
	return answer, err
}

// scopesOf returns all scopes in which an address, or its domain alone, is suppressed.
func scopesOf(found api.SuppressionFound, domain bool) (all []api.SuppressionElsewhere) {
	for _, row := range found.Suppressions {
		if row.Expired || domain && row.Domain == "" {
			continue
		}
		query := "email=" + url.QueryEscape(row.Email)
		if row.Domain != "" {
			query = "domain=" + url.QueryEscape(row.Domain)
		}
		if row.Account != "" {
			query += "&account=" + url.QueryEscape(row.Account)
		}
		if row.List != "" {
			query += "&list=" + url.QueryEscape(row.List)
		}
		one := api.SuppressionElsewhere{SuppressionScope: row.SuppressionScope, Query: query}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
