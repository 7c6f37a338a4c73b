package suppression

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// Page is a part of a list.
type Page struct {
	Entries []Entry
	Next    string // cursor of the next page; empty on the last
}

// lookedGroups bounds the work of one page: a thirty-second of all entries. Only a search by domain
// reaches it.
const lookedGroups = groups * shards / 32

// List returns entries with their evidence from a cursor on (empty: the beginning), including expired ones
// that are not swept yet. size is 1 to 1,000; zero means 20. A page may have fewer entries, even none, while
// Next is not empty: a search by domain reads a bounded number of entries a page. An entry that exists from
// the first page to the last is returned once. The order has no meaning.
func (s *Store) List(ctx context.Context, f Filter, cursor string, size int) (Page, error) {
	f, err := f.normal()
	if err != nil {
		return Page{}, err
	}
	at, err := parsePosition(cursor)
	if err != nil {
		return Page{}, err
	}
	if f.Address != "" {
		rows, err := s.rowsOf(ctx, f.Address)
		if err != nil {
			return Page{}, err
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return !f.matches(&r) })
		entries, err := s.entries(ctx, rows)
		return Page{Entries: entries}, err
	}
	return s.page(ctx, f, at, api.PageQuery{PageSize: size}.Size())
}

func (s *Store) page(ctx context.Context, f Filter, at position, size int) (Page, error) {
	c, err := s.cursor(ctx, f, at)
	if err != nil {
		return Page{}, err
	}
	var rows []row
	next := ""
	for len(rows) < size {
		if c.looked >= lookedGroups && c.seek() {
			next = c.at.String()
			break
		}
		more, err := c.next(ctx)
		if err != nil {
			return Page{}, err
		}
		if more == nil {
			break
		}
		rows = append(rows, more...)
	}
	if len(rows) > size || len(rows) == size && c.seek() {
		last := rows[size-1]
		next = position{last.shard, last.bucket / groupSize, last.order()}.String()
		rows = rows[:size]
	}
	entries, err := s.entries(ctx, rows)
	return Page{Entries: entries, Next: next}, err
}

// Walk calls fn with every entry of a filter, in little memory. It stops at the first error of fn.
func (s *Store) Walk(ctx context.Context, f Filter, fn func(Entry) error) error {
	f, err := f.normal()
	if err != nil {
		return err
	}
	c, err := s.cursor(ctx, f, position{})
	if err != nil {
		return err
	}
	for {
		rows, err := c.next(ctx)
		if err != nil {
			return err
		}
		if rows == nil {
			return nil
		}
		entries, err := s.entries(ctx, rows)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
}

// Find returns all entries of an address and of its domain, in all scopes, with their evidence, the strongest
// first. It includes expired ones that are not swept yet. It shows why an address gets no mail.
func (s *Store) Find(ctx context.Context, address string) ([]Entry, error) {
	f, err := Filter{Address: address}.normal()
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, f.Address, domainOf(f.Address))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.reason.strength() - a.reason.strength() })
	erased, err := s.findErased(ctx, f.Address)
	if err != nil {
		return nil, err
	}
	entries, err := s.entries(ctx, rows)
	return slices.Concat(erased, entries), err
}

// Filter selects entries. The zero value selects all.
type Filter struct {
	Account  string // entries of this account, and of its lists
	List     string // entries of Account's list, or without Account all lists with this id
	Instance bool   // entries of the whole instance; Account and List are empty then
	Reason   Reason // empty for every reason
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
	e.Reason = cmp.Or(e.Reason, Manual)
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
	after        string // order of the last row returned, empty before the group's first
}

func (p position) String() string {
	text := strconv.Itoa(p.shard) + "." + strconv.Itoa(p.group) + "." + p.after
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// parsePosition parses a cursor; an empty cursor is the beginning.
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
	return fault.InvalidField("cursor", "isn't a cursor of this list")
}

// row is an entry with its place.
type row struct {
	record
	shard, bucket  int
	field          string
	scope, subject string
}

// order is the sort key of a row in its group. Cursors contain it.
func (r *row) order() string { return r.subject + " " + r.scope + " " + r.reason.letter() }

// readAhead bounds the groups read with one round trip.
const readAhead = 16

// cursor visits the groups that have entries of a filter, in order.
type cursor struct {
	s      *Store
	f      Filter
	marked [shards][]byte // a bit for each group, the highest of a byte first, as SETBIT writes them
	at     position       // where to continue
	ahead  int            // groups to read together
	looked int            // groups read
}

// cursor returns a cursor over the groups that the indexes of a filter mark.
func (s *Store) cursor(ctx context.Context, f Filter, at position) (*cursor, error) {
	c := &cursor{s: s, f: f, at: at, ahead: 1}
	scopes, err := s.scopes(ctx, f)
	if err != nil {
		return nil, err
	}
	pipe := s.db.Client().Pipeline()
	var answers [shards][]*redis.StringCmd
	for shard := range shards {
		for _, r := range f.reasons() {
			for _, scope := range scopes {
				answers[shard] = append(answers[shard], pipe.Get(ctx, indexKey(shard, r, scope)))
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read indexes")
	}
	for shard := range shards {
		c.marked[shard] = make([]byte, groups/8)
		for _, answer := range answers[shard] {
			for i, b := range []byte(answer.Val()) {
				if i < len(c.marked[shard]) {
					c.marked[shard][i] |= b
				}
			}
		}
	}
	return c, nil
}

// seek moves to the next marked group, at or after the current one. It returns false if there is none.
func (c *cursor) seek() bool {
	for ; c.at.shard < shards; c.at = (position{shard: c.at.shard + 1}) {
		for c.at.group < groups {
			b := c.marked[c.at.shard][c.at.group/8] << (c.at.group % 8)
			if b&0x80 != 0 {
				return true
			}
			step := min(bits.LeadingZeros8(b), 8-c.at.group%8)
			c.at = position{shard: c.at.shard, group: c.at.group + step}
		}
	}
	return false
}

// next reads some groups and returns their matching rows, which may be none. It returns nil after the last
// group.
func (c *cursor) next(ctx context.Context) ([]row, error) {
	var first position
	var read []bucketRead
	pipe := c.s.db.Client().Pipeline()
	for n := 0; n < c.ahead && c.seek(); n++ {
		if n == 0 {
			first = c.at
		}
		for b := c.at.group * groupSize; b < (c.at.group+1)*groupSize; b++ {
			read = append(read, bucketRead{c.at.shard, b, pipe.HGetAll(ctx, bucketKey(c.at.shard, b))})
		}
		c.looked++
		c.at = position{shard: c.at.shard, group: c.at.group + 1}
	}
	if len(read) == 0 {
		return nil, nil
	}
	c.ahead = min(2*c.ahead, readAhead)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "suppression: read entries")
	}
	rows, err := c.s.rows(ctx, read)
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(rows, func(r row) bool {
		passed := r.shard == first.shard && r.bucket/groupSize == first.group && r.order() <= first.after
		return passed || !c.f.matches(&r)
	})
	slices.SortFunc(matching, func(a, b row) int {
		return cmp.Or(a.shard-b.shard, a.bucket/groupSize-b.bucket/groupSize, cmp.Compare(a.order(), b.order()))
	})
	if matching == nil {
		matching = []row{}
	}
	return matching, nil
}

// bucketRead is a bucket and its content in Redis.
type bucketRead struct {
	shard, bucket int
	fields        *redis.MapStringStringCmd
}

// rowsOf reads all entries of some subjects.
func (s *Store) rowsOf(ctx context.Context, subjects ...string) ([]row, error) {
	var forms []string
	for _, subject := range subjects {
		forms = append(forms, message.AddressForms(subject)...)
	}
	subjects = forms
	pipe := s.db.Client().Pipeline()
	var read []bucketRead
	for _, subject := range subjects {
		p := bucketOf(subject)
		read = append(read, bucketRead{p.shard, p.number, pipe.HGetAll(ctx, p.key())})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "suppression: read entries")
	}
	all, err := s.rows(ctx, read)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, subject := range subjects {
		for _, r := range all {
			if r.subject == subject && !slices.ContainsFunc(rows, func(o row) bool { return o.order() == r.order() }) {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// rows returns the entries of buckets. It looks up the names that are stored as digests.
func (s *Store) rows(ctx context.Context, read []bucketRead) ([]row, error) {
	var rows []row
	var names []*redis.StringCmd
	var named []int // rows that names belong to
	pipe := s.db.Client().Pipeline()
	for _, b := range read {
		for field, value := range b.fields.Val() {
			for _, rec := range records(value) {
				r := row{record: rec, shard: b.shard, bucket: b.bucket, field: field}
				r.scope, r.subject = parseName(field)
				if isDigest(field) {
					names = append(names, pipe.HGet(ctx, evidenceKey(b.shard, b.bucket), field))
					named = append(named, len(rows))
				}
				rows = append(rows, r)
			}
		}
	}
	if len(names) == 0 {
		return rows, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read names")
	}
	for i, at := range named {
		rows[at].scope, rows[at].subject = parseName(names[i].Val())
	}
	// removed since
	return slices.DeleteFunc(rows, func(r row) bool { return isDigest(r.subject) || r.subject == "" }), nil
}

// entries returns rows as entries, with their evidence.
func (s *Store) entries(ctx context.Context, rows []row) ([]Entry, error) {
	entries := make([]Entry, len(rows))
	evidence := map[int]*redis.StringCmd{}
	pipe := s.db.Client().Pipeline()
	for i, r := range rows {
		entries[i] = r.entry(r.scope, r.subject)
		if r.evidence {
			evidence[i] = pipe.HGet(ctx, evidenceKey(r.shard, r.bucket), r.reason.letter()+r.field)
		}
	}
	if len(evidence) == 0 {
		return entries, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read evidence")
	}
	for i, text := range evidence {
		entries[i].setEvidence(text.Val())
	}
	return entries, nil
}
