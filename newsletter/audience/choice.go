package audience

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/segment"
)

// Selection names a campaign's audience, by ids.
type Selection struct {
	Account                   string
	Lists, ExcludeLists       []string
	Segments, ExcludeSegments []string
	Began                     time.Time // whoever was not subscribed then does not count; zero means all count
}

// Choice is a selection that is ready to be applied. It is not safe for concurrent use.
type Choice struct {
	account                   string
	judge                     *judge
	lists, excludeLists       []*List
	segments, excludeSegments []segment.Rule
	began                     time.Time
}

// Person is a recipient of a campaign.
type Person struct {
	Ordinal                 uint32
	ID                      string // the subscriber's
	Email, Name, Locale, TZ string
	Attributes              json.RawMessage // an object; empty if none
	Tags                    []string
	ListID                  string // the first list of the selection that the person is subscribed to
	Left                    bool   // the person left after Began: the campaign must not be sent
}

// Choose prepares a selection. A list or segment that does not exist, or is of another account: NotFound.
func (s *Subscribers) Choose(ctx context.Context, sel Selection) (*Choice, error) {
	c := &Choice{account: sel.Account, began: sel.Began}
	var err error
	if c.lists, err = s.Lists.these(ctx, sel.Account, sel.Lists); err != nil {
		return nil, err
	}
	if c.excludeLists, err = s.Lists.these(ctx, sel.Account, sel.ExcludeLists); err != nil {
		return nil, err
	}
	if c.segments, err = s.Segments.rules(ctx, sel.Account, sel.Segments); err != nil {
		return nil, err
	}
	if c.excludeSegments, err = s.Segments.rules(ctx, sel.Account, sel.ExcludeSegments); err != nil {
		return nil, err
	}
	c.judge = s.judge(sel.Account, slices.Concat(c.segments, c.excludeSegments)...)
	c.judge.strict = true // else "did not get it" would select everybody
	return c, nil
}

// Campaigns returns the ids of the campaigns that the segments of a choice name.
func (c *Choice) Campaigns() []string {
	return slices.Compact(slices.Sorted(slices.Values(c.judge.campaigns)))
}

// these returns lists of an account by their ids.
func (l *Lists) these(ctx context.Context, account string, ids []string) ([]*List, error) {
	lists := make([]*List, 0, len(ids))
	for _, id := range ids {
		list, err := l.of(ctx, account, id)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// of returns an account's list.
func (l *Lists) of(ctx context.Context, account, id string) (*List, error) {
	list, err := l.Find(ctx, id)
	if err == nil && list.Account != account {
		return nil, listNotFound(id)
	}
	return list, err
}

// rules returns the rules of an account's segments.
func (s *Segments) rules(ctx context.Context, account string, ids []string) ([]segment.Rule, error) {
	rules := make([]segment.Rule, 0, len(ids))
	for _, id := range ids {
		_, rule, err := s.find(ctx, account, id)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// End returns the first ordinal of an account that was not given away.
func (s *Subscribers) End(ctx context.Context, account string) (uint32, error) {
	return s.end(ctx, account)
}

// People returns the people of a choice from an ordinal on, below end, in order, and the ordinal to continue
// from. It reads at most most pages of 32 subscribers, and stays within a chunk of 64,000. Each call reads
// once what they did with the campaigns of segments, and returns NotFound if one was deleted.
func (s *Subscribers) People(ctx context.Context, c *Choice, from, end uint32, most int) ([]Person, uint32,
	error) {
	chunk := slotOf(from).chunk
	end = min(end, uint32(chunk+1)*chunkSize)
	pages, err := s.chosenPages(ctx, c, from, end)
	if err != nil {
		return nil, from, err
	}
	next := end
	if len(pages) > most {
		pages, next = pages[:most], pages[most]*pageSize
	}
	people, err := s.choices(ctx, c, pages,
		func(ordinal uint32) bool { return ordinal >= from && ordinal < end })
	if err != nil {
		return nil, from, err
	}
	return people, next, nil
}

// These returns the people of a choice among some ordinals of one chunk, which are in order, as they are now.
// It returns the same errors as People.
func (s *Subscribers) These(ctx context.Context, c *Choice, ordinals []uint32) ([]Person, error) {
	var pages []uint32
	for _, ordinal := range ordinals {
		if page := ordinal / pageSize; len(pages) == 0 || pages[len(pages)-1] != page {
			pages = append(pages, page)
		}
	}
	return s.choices(ctx, c, pages, func(ordinal uint32) bool {
		_, is := slices.BinarySearch(ordinals, ordinal)
		return is
	})
}

// choices returns the people of a choice on a chunk's pages, among the ordinals that of is true for.
func (s *Subscribers) choices(ctx context.Context, c *Choice, pages []uint32, of func(ordinal uint32) bool) (
	[]Person, error) {
	c.judge.forget()
	var people []Person
	for batch := range slices.Chunk(pages, walkPages) {
		_, _, err := s.walkBatch(ctx, c.account, members{}, 0, batch, func(ordinal uint32, r *record) (bool,
			error) {
			if !of(ordinal) {
				return true, nil
			}
			p, ok, err := s.chosen(ctx, c, ordinal, r)
			if ok {
				p.Ordinal, p.ID = ordinal, idOf(ordinal)
				people = append(people, p)
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return people, nil
}

// chosenPages returns the pages of the chunk of an ordinal, from that on, that have people of the lists.
func (s *Subscribers) chosenPages(ctx context.Context, c *Choice, from, end uint32) ([]uint32, error) {
	at := slotOf(from)
	pipe := s.db.Client().Pipeline()
	texts := make([]*redis.StringCmd, len(c.lists))
	for i, list := range c.lists {
		texts[i] = pipe.Get(ctx, statesKey(list.Number, at.chunk))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "read the subscribers of %d lists", len(c.lists))
	}
	var has [chunkPages]bool
	for _, text := range texts {
		states, err := readStates(text.Val())
		if err != nil {
			return nil, err
		}
		for _, state := range [...]State{Subscribed, Left} {
			for _, page := range states.pages(state) {
				has[page] = true
			}
		}
	}
	first := uint32(at.chunk) * chunkPages
	var pages []uint32
	for page := at.page; page < first+chunkPages && page*pageSize < end; page++ {
		if has[page-first] {
			pages = append(pages, page)
		}
	}
	return pages, nil
}

// chosen returns a subscriber as a person of a choice, unless it leaves them out.
func (s *Subscribers) chosen(ctx context.Context, c *Choice, ordinal uint32, r *record) (Person, bool,
	error) {
	p := Person{Email: r.email, Name: r.name, Locale: r.locale, TZ: r.tz, Attributes: r.attributes, Tags: r.tags}
	for _, list := range c.lists {
		is := r.stateOn(list.Number)
		was := c.began.IsZero() || r.subscribedAt(list.Number, seconds(c.began))
		switch {
		case !was:
		case is == Subscribed && (p.ListID == "" || p.Left):
			p.ListID, p.Left = list.ListID, false
		case is == Left && !c.began.IsZero() && p.ListID == "":
			p.ListID, p.Left = list.ListID, true
		}
	}
	if p.ListID == "" {
		return p, false, nil
	}
	for _, list := range c.excludeLists {
		if r.stateOn(list.Number) == Subscribed {
			return p, false, nil
		}
	}
	if len(c.segments)+len(c.excludeSegments) == 0 {
		return p, true, nil
	}
	judged, err := c.judge.subscriber(ctx, ordinal, r)
	if err != nil {
		return p, false, err
	}
	now := s.now()
	holds := func(rule segment.Rule) bool { return rule.Holds(judged, now) }
	in := len(c.segments) == 0 || slices.ContainsFunc(c.segments, holds)
	return p, in && !slices.ContainsFunc(c.excludeSegments, holds), nil
}

// Person returns a subscriber by id or address, as a campaign sees it. ListID is the first of lists that the
// subscriber is subscribed to; empty if none.
func (s *Subscribers) Person(ctx context.Context, account, subscriber string, lists []string) (Person,
	error) {
	ordinal, r, err := s.lookup(ctx, account, subscriber)
	if err != nil {
		return Person{}, err
	}
	return s.person(ctx, account, ordinal, r, lists)
}

// PersonAt is Person for an ordinal.
func (s *Subscribers) PersonAt(ctx context.Context, account string, ordinal uint32, lists []string) (Person,
	error) {
	r, err := s.load(ctx, account, ordinal)
	if err != nil {
		return Person{}, err
	}
	if r == nil {
		return Person{}, subscriberNotFound(idOf(ordinal))
	}
	return s.person(ctx, account, ordinal, r, lists)
}

func (s *Subscribers) person(ctx context.Context, account string, ordinal uint32, r *record, ids []string) (
	Person, error) {
	lists, err := s.Lists.these(ctx, account, ids)
	if err != nil {
		return Person{}, err
	}
	p, _, err := s.chosen(ctx, &Choice{account: account, lists: lists}, ordinal, r)
	p.Ordinal, p.ID = ordinal, idOf(ordinal)
	return p, err
}

// IDOf returns the id of the subscriber with an ordinal.
func IDOf(ordinal uint32) string { return idOf(ordinal) }

// OrdinalOf is the inverse of IDOf.
func OrdinalOf(id string) (uint32, bool) { return ordinalOf(id) }
