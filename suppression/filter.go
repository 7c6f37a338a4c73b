package suppression

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/fault"
)

// Filter selects entries. The zero value selects all.
type Filter struct {
	Account  string // entries of this account
	List     string // entries of this list
	Instance bool   // entries of the whole instance; Account and List are empty then
	Reason   Reason // empty: every reason
	Address  string // entries of exactly this address, in any form
	// entries of this domain and of its addresses. It has no index and is found by reading: see [Store.List]
	Domain string
}

// normal returns the filter with its fields in the form that entries have.
func (f Filter) normal() (Filter, error) {
	e, wrong := Entry{Address: f.Address, Domain: f.Domain, Reason: f.Reason, Account: f.Account,
		List: f.List}, []fault.Field(nil)
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

// index returns the scope and the reasons of the indexes to read.
func (f Filter) index() (scope string, reasons []Reason) {
	scope = anyScope
	if f.Account != "" || f.List != "" || f.Instance {
		scope = scopeOf(f.Account, strings.ToLower(f.List))
	}
	if f.Reason != "" {
		return scope, []Reason{f.Reason}
	}
	return scope, Reasons[:]
}

// matches reports whether the filter selects one entry.
func (f Filter) matches(r *row) bool {
	if scope, _ := f.index(); scope != anyScope && scope != r.scope {
		return false
	}
	if f.Reason != "" && f.Reason != r.reason {
		return false
	}
	if f.Address != "" && f.Address != r.subject {
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
