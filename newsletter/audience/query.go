package audience

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/segment"
)

// queryPages bounds the pages that one request for a page of rows reads: some 16,000 subscribers, 3 MB and
// 75 ms.
const queryPages = 500

// filter selects subscribers. The zero value selects all of an account.
type filter struct {
	account string
	members
	tag, search             string
	rule                    *segment.Rule // nil if none
	judge                   *judge        // for rule
	createdFrom, createdEnd uint32        // 0 if not bounded
}

func (s *Subscribers) filterOf(ctx context.Context, bound string, q api.SubscriberQuery) (filter, error) {
	account, err := requestAccount(bound, q.Account)
	if err != nil {
		return filter{}, err
	}
	f := filter{account: account, tag: norm.NFC.String(q.Tag),
		search: norm.NFC.String(strings.ToLower(strings.TrimSpace(q.Search)))}
	f.state = stateNamed(q.State)
	switch {
	case q.State != "" && f.state == None:
		return f, invalid("state", "must be pending, subscribed or left")
	case q.State != "" && q.ListID == "":
		return f, invalid("listId", "is required with state: the state on which list")
	}
	if q.ListID != "" {
		var err error
		if f.list, err = s.Lists.of(ctx, account, q.ListID); err != nil {
			return f, err
		}
	}
	if q.Segment != "" {
		r, rule, err := s.Segments.find(ctx, bound, q.Segment)
		if err == nil && r.Value.Account != account {
			err = segmentNotFound(q.Segment)
		}
		if err != nil {
			return f, err
		}
		f.rule, f.judge = &rule, s.judge(account, rule)
	}
	if !q.CreatedAfter.IsZero() {
		f.createdFrom = seconds(q.CreatedAfter)
	}
	if !q.CreatedBefore.IsZero() {
		f.createdEnd = seconds(q.CreatedBefore)
	}
	return f, nil
}

func invalid(key, text string) error {
	return fault.InvalidField(key, "%s", text)
}

// selects reports whether a record, whose list matches, is selected.
func (s *Subscribers) selects(ctx context.Context, f *filter, ordinal uint32, r *record) (bool, error) {
	if !f.matches(r) {
		return false, nil
	}
	if f.rule == nil {
		return true, nil
	}
	judged, err := f.judge.subscriber(ctx, ordinal, r)
	return err == nil && f.rule.Holds(judged, s.now()), err
}

// matches reports whether a filter's direct conditions select a record.
func (f *filter) matches(r *record) bool {
	switch {
	case f.createdFrom != 0 && r.created < f.createdFrom, f.createdEnd != 0 && r.created >= f.createdEnd:
		return false
	case f.tag != "" && !slices.Contains(r.tags, f.tag):
		return false
	}
	return f.search == "" || message.AddressHas(r.email, f.search) ||
		strings.Contains(strings.ToLower(r.name), f.search)
}

// Page returns a page of subscribers, in the order in which they came. A request reads at most some 16,000,
// so a page of a search may have fewer rows than asked for, and a cursor.
func (s *Subscribers) Page(ctx context.Context, bound string, q api.SubscriberQuery) (api.SubscriberPage,
	error) {
	size := min(max(0, q.PageSize), 1000)
	size = cmp.Or(size, 20)
	page := api.SubscriberPage{PageSize: size, Subscribers: []api.Subscriber{}}
	f, err := s.filterOf(ctx, bound, q)
	if err != nil {
		return page, err
	}
	from, err := readCursor(q.Cursor)
	if err != nil {
		return page, err
	}
	if q.Cursor == "" && strings.Contains(f.search, "@") {
		if done, err := s.pageOfAddress(ctx, f, &page); done || err != nil {
			return page, err
		}
	}
	next, more, err := s.walk(ctx, f.account, f.members, from, queryPages,
		func(ordinal uint32, r *record) (bool, error) {
			if selected, err := s.selects(ctx, &f, ordinal, r); err != nil || !selected {
				return true, err
			}
			sub, err := s.shown(ctx, f.account, ordinal, r)
			page.Subscribers = append(page.Subscribers, sub)
			return len(page.Subscribers) < size, err
		})
	if err != nil {
		return page, err
	}
	if more {
		page.Cursor = strconv.FormatUint(uint64(next), 36)
	}
	page.Total, err = s.total(ctx, f)
	return page, err
}

// pageOfAddress answers a search for a whole address from the index. It reports whether there is a subscriber
// of that address.
func (s *Subscribers) pageOfAddress(ctx context.Context, f filter, page *api.SubscriberPage) (bool, error) {
	_, ordinal, r, err := s.find(ctx, f.account, folded(f.search))
	if err != nil || r == nil {
		return false, err
	}
	f.search = ""
	if state := None; f.list != nil {
		if state = r.stateOn(f.list.Number); state == None || f.state != None && state != f.state {
			return true, nil
		}
	}
	selected, err := s.selects(ctx, &f, ordinal, r)
	if err != nil || !selected {
		return true, err
	}
	sub, err := s.shown(ctx, f.account, ordinal, r)
	page.Subscribers = append(page.Subscribers, sub)
	return true, err
}

func readCursor(text string) (uint32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 36, 32)
	if err != nil {
		return 0, invalid("cursor", "is not one of an earlier response")
	}
	return uint32(n), nil
}

// total returns the number of selected subscribers, or nil if only a scan could count them.
func (s *Subscribers) total(ctx context.Context, f filter) (*int, error) {
	if f.rule != nil || f.tag != "" || f.search != "" || f.createdFrom != 0 || f.createdEnd != 0 {
		return nil, nil
	}
	if f.list != nil {
		info, err := s.Lists.Get(ctx, "", f.list.ListID)
		if err != nil {
			return nil, err
		}
		c := info.Counts
		n := map[State]int{None: c.Pending + c.Subscribed + c.Left, Pending: c.Pending, Subscribed: c.Subscribed,
			Left: c.Left}[f.state]
		return &n, nil
	}
	n, err := s.Count(ctx, f.account)
	return &n, err
}

// Count returns the number of subscribers of an account.
func (s *store) Count(ctx context.Context, account string) (int, error) {
	pipe := s.db.Client().Pipeline()
	for shard := range shards {
		pipe.HGet(ctx, totalsKey(account, shard), "subscribers")
	}
	found, err := pipe.Exec(ctx)
	if err = ignoreNil(err); err != nil {
		return 0, redisdb.Failed(err, "count the subscribers of account %s", account)
	}
	total := 0
	for _, cmd := range found {
		n, _ := strconv.Atoi(textOf(cmd))
		total += n
	}
	return total, nil
}
