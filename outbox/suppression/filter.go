package suppression

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// Filter selects entries. The zero value selects all.
type Filter struct {
	Account  string // entries of this account, and of its lists
	List     string // entries of this list: that of Account, or without Account the lists of this id of all
	Instance bool   // entries of the whole instance; Account and List are empty then
	Reason   Reason // empty: every reason
	Address  string // entries of exactly this address, in any form
	// entries of this domain and of its addresses. It has no index and is found by reading: see [Store.List]
	Domain string
}

// normal returns the filter with its fields in the form that entries have.
func (f Filter) normal() (Filter, error) {
	e, wrong := Entry{Address: f.Address, Domain: f.Domain, Reason: f.Reason,
		Account: cmp.Or(f.Account, "any"), List: f.List}, []fault.Field(nil)
	if e.Address == "" && e.Domain == "" {
		e.Domain = "example.com" // nothing to check
	}
	if e.Reason == "" {
		e.Reason = Manual
	}
	if e, wrong = e.Normal("", time.Time{}); len(wrong) > 0 {
		return f, fault.InvalidFields(wrong)
	}
	f.List = e.List
	if f.Address != "" {
		f.Address = e.Address
	}
	if f.Domain != "" {
		f.Domain = e.Domain
	}
	return f, nil
}

// selects reports whether a filter selects the entries of a scope.
func (f Filter) selects(account, list string) bool {
	if f.Instance {
		return account == ""
	}
	return (f.Account == "" || f.Account == account) && (f.List == "" || strings.EqualFold(f.List, list))
}

// reasons returns the reasons that a filter selects.
func (f Filter) reasons() []Reason {
	if f.Reason != "" {
		return []Reason{f.Reason}
	}
	return Reasons[:]
}

// mostScopes bounds the scopes whose indexes one page reads. Beyond it the indexes of all entries are read,
// and the entries of other scopes are passed over.
const mostScopes = 32

// scopes returns the scopes of the indexes that have the entries of a filter. An account has any number of
// lists, and a list may be one of several accounts, so the counts say which there are.
func (s *Store) scopes(ctx context.Context, f Filter) ([]string, error) {
	switch {
	case f.Instance:
		return []string{instance}, nil
	case f.Account == "" && f.List == "":
		return []string{anyScope}, nil
	case f.Account != "" && f.List != "":
		return []string{scopeOf(f.Account, strings.ToLower(f.List))}, nil
	}
	counts, err := s.Counts(ctx)
	if err != nil {
		return nil, err
	}
	var scopes []string
	for _, c := range counts {
		if scope := scopeOf(c.Account, c.List); f.selects(c.Account, c.List) && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) > mostScopes {
		scopes = []string{anyScope}
	}
	return scopes, nil
}

// matches reports whether the filter selects one entry.
func (f Filter) matches(r *row) bool {
	if !f.selects(parseScope(r.scope)) {
		return false
	}
	if f.Reason != "" && f.Reason != r.reason {
		return false
	}
	if f.Address != "" && !slices.Contains(message.AddressForms(f.Address), r.subject) {
		return false
	}
	return f.Domain == "" || domainOf(r.subject)[1:] == f.Domain
}

// position is the place where a list continues: in a group of a shard, after a row.
type position struct {
	shard, group int
	after        string // order of the last row returned; empty: none of this group
}

func (p position) String() string {
	text := strconv.Itoa(p.shard) + "." + strconv.Itoa(p.group) + "." + p.after
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parsePosition parses a cursor; an empty one is the beginning.
func parsePosition(cursor string) (p position, err error) {
	if cursor == "" {
		return p, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(text), ".", 3)
	if err != nil || len(parts) != 3 {
		return p, errBadCursor()
	}
	var errs [2]error
	p.shard, errs[0] = strconv.Atoi(parts[0])
	p.group, errs[1] = strconv.Atoi(parts[1])
	p.after = parts[2]
	if errs[0] != nil || errs[1] != nil || p.shard < 0 || p.shard >= shards || p.group < 0 || p.group > groups {
		return p, errBadCursor()
	}
	return p, nil
}

func errBadCursor() error {
	return fault.InvalidFields([]fault.Field{{Key: "cursor", Message: "is none of this list"}})
}
