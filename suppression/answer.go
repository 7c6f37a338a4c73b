package suppression

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// What follows answers for the API and the pages. Bound is the account that a caller is confined to, who sees and changes what is of its scope
// and nothing else; empty: none.

// mayChange says whether a caller may touch a scope.
func mayChange(bound, account, list string) error {
	if bound != "" && (account != bound || list != "") {
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return nil
}

// Query lists entries.
func (s *Store) Query(ctx context.Context, bound string, q api.SuppressionQuery) (api.SuppressionPage, error) {
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

// filterOf reads a query, and keeps it within the scope of the caller.
func filterOf(bound string, q api.SuppressionQuery) (Filter, error) {
	f := Filter{Account: q.Account, List: q.List, Instance: q.Scope == "instance", Reason: Reason(q.Reason), Address: q.Address, Domain: q.Domain}
	if f.Instance && (f.Account != "" || f.List != "") {
		return f, fault.InvalidFields([]fault.Field{{Key: "scope", Message: "can't be combined with account or list"}})
	}
	if bound == "" {
		return f, nil
	}
	if f.Instance || f.List != "" || f.Account != "" && f.Account != bound {
		return f, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	f.Account = bound
	return f, nil
}

func (s *Store) rowsFor(entries []Entry) []api.Suppression {
	rows, now := make([]api.Suppression, len(entries)), s.now()
	for i, e := range entries {
		rows[i] = api.Suppression{
			Email: e.Address, Domain: e.Domain, Reason: string(e.Reason), SuppressionScope: api.SuppressionScope{Account: e.Account, List: e.List},
			Created: e.Created, Expires: orNil(e.Expires), Expired: !e.Expires.IsZero() && !e.Expires.After(now), Source: e.Source, MessageID: e.MessageID, Response: e.Response,
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

// Lookup tells all that is known against an address.
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

// Put adds entries. When one of them is wrong nothing is added, and the error names the fields as the API has them.
func (s *Store) Put(ctx context.Context, bound string, list []api.NewSuppression) (api.SuppressionsAdded, error) {
	entries, err := newEntries(bound, list)
	if err != nil {
		return api.SuppressionsAdded{}, err
	}
	added, err := s.Add(ctx, entries...)
	if err != nil {
		return api.SuppressionsAdded{}, asAsked(err)
	}
	return api.SuppressionsAdded{Success: true, Added: added, Known: len(list) - added}, nil
}

// Faults is what Put would refuse entries for; nil: nothing. It adds nothing and asks nobody.
func (s *Store) Faults(bound string, list []api.NewSuppression) error {
	entries, err := newEntries(bound, list)
	if err != nil {
		return err
	}
	_, err = normalAll(entries, s.now())
	return asAsked(err)
}

// newEntries reads what is to be added, and keeps it within the scope of the caller.
func newEntries(bound string, list []api.NewSuppression) ([]Entry, error) {
	entries := make([]Entry, len(list))
	for i, n := range list {
		e := Entry{
			Address: n.Email, Domain: n.Domain, Reason: Reason(n.Reason), Account: n.Account, List: n.List, Source: n.Source, MessageID: n.MessageID, Response: n.Response,
		}
		if n.Expires != nil {
			e.Expires = *n.Expires
		}
		if e.Reason == "" {
			e.Reason = Manual
		}
		if e.Source == "" {
			e.Source = "api"
		}
		if bound != "" && e.Account == "" {
			e.Account = bound
		}
		if err := mayChange(bound, e.Account, e.List); err != nil {
			return nil, err
		}
		entries[i] = e
	}
	return entries, nil
}

// asAsked names the fields of a refusal as a request has them, where an address is called email.
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

// Delete removes what one scope has against an address or a domain.
func (s *Store) Delete(ctx context.Context, bound string, r api.SuppressionRemoval) (api.SuppressionRemoved, error) {
	e := Entry{Address: r.Email, Domain: r.Domain, Reason: Reason(r.Reason), Account: r.Account, List: r.List}
	if bound != "" && e.Account == "" {
		e.Account = bound
	}
	if err := mayChange(bound, e.Account, e.List); err != nil {
		return api.SuppressionRemoved{}, err
	}
	removed, err := s.Remove(ctx, e)
	return api.SuppressionRemoved{Deleted: removed}, asAsked(err)
}
