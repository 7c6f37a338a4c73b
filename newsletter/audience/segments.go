package audience

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/segment"
)

type storedSegment struct {
	api.Segment
	Version int `json:"version"`
}

// Segments stores the segments of all accounts, and counts them.
type Segments struct {
	subscribers *Subscribers
	store       *records.Store[storedSegment]

	running sync.WaitGroup // counts
	stopped context.Context
	stop    context.CancelFunc
}

func newSegments(s *Subscribers) *Segments {
	segments := &Segments{subscribers: s, store: records.New(s.db, nil, records.Kind[storedSegment]{
		Key: "segment", Index: "segments", Name: "segment", Code: "SegmentChanged", Missing: segmentNotFound,
		Secrets: func(*storedSegment) []records.Secret { return nil },
	}, records.Options[storedSegment]{Now: s.now, InUse: s.opts.InUse})}
	segments.stopped, segments.stop = context.WithCancel(context.Background())
	return segments
}

// close ends the counts of this process. Their progress says so.
func (s *Segments) close() {
	s.stop()
	s.running.Wait()
}

func segmentNotFound(id string) error {
	return fault.New(fault.NotFound, "SegmentNotFound", "There is no segment %q. GET /v1/segments shows "+
		"all segments", id)
}

// segmentIDs matches the ids of segments.
var segmentIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Create stores a new segment. It returns Invalid with the invalid fields (within the rule as
// rule.and[1].tag), and Conflict, code SegmentExists, if the id is in use.
func (s *Segments) Create(ctx context.Context, bound string, in api.Segment) (api.SegmentInfo, error) {
	account, err := requestAccount(bound, in.Account)
	if err != nil {
		return api.SegmentInfo{}, err
	}
	if in.Account = account; in.Segment == "" {
		in.Segment = IDFromName("segment", in.Name)
	}
	if err := checkSegment(in); err != nil {
		return api.SegmentInfo{}, err
	}
	if err := s.subscribers.Account(ctx, account); err != nil {
		return api.SegmentInfo{}, err
	}
	if err := s.checkCampaigns(ctx, account, in.Rule); err != nil {
		return api.SegmentInfo{}, err
	}
	_, err = s.store.Change(ctx, in.Segment, func(old *records.Record[storedSegment]) (storedSegment, error) {
		if old != nil {
			return storedSegment{}, fault.New(fault.Conflict, "SegmentExists", "There is already a "+
				"segment %q",
				in.Segment)
		}
		return storedSegment{Segment: in, Version: 1}, nil
	})
	if err != nil {
		return api.SegmentInfo{}, err
	}
	return s.Get(ctx, bound, in.Segment)
}

func checkSegment(in api.Segment) error {
	var f faults
	if !segmentIDs.MatchString(in.Segment) {
		f.Add("segment", "must be up to 63 letters, digits, dots, - and _, starting with a letter or digit")
	}
	checkName(in.Name, &f.Fields)
	_, err := segment.Parse("rule", in.Rule)
	if wrong, ok := err.(*fault.Error); ok {
		f.Fields = append(f.Fields, wrong.Fields...)
	}
	return fault.InvalidFields(f.Fields)
}

// checkCampaigns returns an error that names the campaigns of a rule that the account does not have. A rule
// that can't be read is left to checkSegment.
func (s *Segments) checkCampaigns(ctx context.Context, account string, raw []byte) error {
	rule, err := segment.Parse("rule", raw)
	if err != nil {
		return nil
	}
	var f faults
	for _, one := range rule.Campaigns() {
		_, err := s.subscribers.Campaigns().Runs(ctx, account, one.Campaign)
		if fault.Is(err, fault.NotFound) {
			f.Add(one.Key, "is %q, but account %s has no such campaign", one.Campaign, account)
		} else if err != nil {
			return err
		}
	}
	return fault.InvalidFields(f.Fields)
}

// Update changes the fields of a segment that the patch has.
func (s *Segments) Update(ctx context.Context, bound, id string, p api.SegmentPatch) (api.SegmentInfo,
	error) {
	if p.Rule != nil {
		old, _, err := s.find(ctx, bound, id)
		if err == nil {
			err = s.checkCampaigns(ctx, old.Value.Account, p.Rule)
		}
		if err != nil {
			return api.SegmentInfo{}, err
		}
	}
	err := s.store.Update(ctx, id, func(old *records.Record[storedSegment]) (storedSegment, error) {
		next := old.Value
		if bound != "" && next.Account != bound {
			return next, segmentNotFound(id)
		}
		if p.Version != nil && *p.Version != next.Version {
			return next, fault.New(fault.Conflict, "SegmentChanged", "Segment %q is now at version %d, "+
				"not %d. Read it again and repeat your change", id,
				next.Version, *p.Version)
		}
		api.Set(&next.Name, p.Name)
		if p.Rule != nil {
			next.Rule = p.Rule
		}
		next.Version++
		return next, checkSegment(next.Segment)
	})
	if err != nil {
		return api.SegmentInfo{}, err
	}
	return s.Get(ctx, bound, id)
}

// Get returns a segment. Unknown, or of another account: NotFound.
func (s *Segments) Get(ctx context.Context, bound, id string) (api.SegmentInfo, error) {
	r, _, err := s.find(ctx, bound, id)
	if err != nil {
		return api.SegmentInfo{}, err
	}
	return s.shown(ctx, r)
}

// find returns a segment with its rule.
func (s *Segments) find(ctx context.Context, bound, id string) (*records.Record[storedSegment], segment.Rule,
	error) {
	r, err := s.store.Get(ctx, id)
	if err == nil && bound != "" && r.Value.Account != bound {
		err = segmentNotFound(id)
	}
	if err != nil {
		return nil, segment.Rule{}, err
	}
	rule, err := segment.Parse("rule", r.Value.Rule)
	return r, rule, err
}

// Page returns a page of segments of one account, or of all.
func (s *Segments) Page(ctx context.Context, bound string, q api.SegmentQuery) (api.SegmentPage, error) {
	mine, err := ofAccount(ctx, s.store, bound, q.Account, func(s storedSegment) string { return s.Account })
	if err != nil {
		return api.SegmentPage{}, err
	}
	numbers, from, end := q.Of(len(mine))
	page := api.SegmentPage{PageNumbers: numbers, Segments: []api.SegmentInfo{}}
	for _, r := range mine[from:end] {
		info, err := s.shown(ctx, r)
		if err != nil {
			return page, err
		}
		page.Segments = append(page.Segments, info)
	}
	return page, nil
}

// shown returns a segment with what its rule says.
func (s *Segments) shown(ctx context.Context, r *records.Record[storedSegment]) (api.SegmentInfo, error) {
	info := api.SegmentInfo{Segment: r.Value.Segment, Version: r.Value.Version, Created: r.Created,
		Updated: r.Updated, Warnings: []string{}}
	rule, err := segment.Parse("rule", r.Value.Rule)
	if err != nil {
		return info, err
	}
	info.Sentence = rule.Sentence()
	info.Warnings, err = s.warnings(ctx, r.Value.Account, rule)
	return info, err
}

// warnings returns what a rule asks for and no subscriber of the account can have.
func (s *Segments) warnings(ctx context.Context, account string, rule segment.Rule) ([]string, error) {
	list := []string{}
	seen, err := s.subscribers.attributes.all(ctx, account)
	if err != nil {
		return nil, err
	}
	for _, need := range rule.Attributes() {
		has := seen[need.Name]
		switch {
		case len(has) == 0:
			list = append(list, fmt.Sprintf("no subscriber has an attribute %s", need.Name))
		case len(need.Types) > 0 && !slices.ContainsFunc(need.Types,
			func(kind string) bool { return slices.Contains(has, kind) }):
			list = append(list, fmt.Sprintf("attribute %s is a %s, and the rule compares it with a %s", need.Name,
				strings.Join(has, " or a "), strings.Join(need.Types, " or a ")))
		}
	}
	for _, id := range rule.Lists() {
		l, err := s.subscribers.Lists.Find(ctx, id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return nil, err
		}
		if err != nil || l.Account != account {
			list = append(list, fmt.Sprintf("there is no list %s", id))
		}
	}
	for _, one := range rule.Campaigns() {
		runs, err := s.subscribers.Campaigns().Runs(ctx, account, one.Campaign)
		switch {
		case fault.Is(err, fault.NotFound):
			list = append(list, fmt.Sprintf("there is no campaign %s", one.Campaign))
		case err != nil:
			return nil, err
		case runs == 0:
			list = append(list, fmt.Sprintf("campaign %s was not sent yet", one.Campaign))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Naming returns the ids of the segments of an account that name a campaign, in order.
func (s *Segments) Naming(ctx context.Context, account, campaign string) ([]string, error) {
	var ids []string
	err := s.store.Each(ctx, func(r *records.Record[storedSegment]) error {
		if r.Value.Account != account {
			return nil
		}
		rule, err := segment.Parse("rule", r.Value.Rule)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(rule.Campaigns(),
			func(one segment.Mention) bool { return one.Campaign == campaign }) {
			ids = append(ids, r.ID)
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// Delete removes a segment, and reports whether there was one. NotFound if it is another account's.
func (s *Segments) Delete(ctx context.Context, bound, id string) (bool, error) {
	_, _, err := s.find(ctx, bound, id)
	if fault.Is(err, fault.NotFound) && bound == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.store.Delete(ctx, id); err != nil {
		return false, err
	}
	err = s.subscribers.db.Client().Del(ctx, segmentCountKey(id)).Err()
	return true, redisdb.Failed(err, "delete the count of segment %s", id)
}

// Explain says why a subscriber is in a segment, or not.
func (s *Segments) Explain(ctx context.Context, bound, id, subscriber string) (api.SegmentExplanation,
	error) {
	r, rule, err := s.find(ctx, bound, id)
	if err != nil {
		return api.SegmentExplanation{}, err
	}
	ordinal, record, err := s.subscribers.lookup(ctx, r.Value.Account, subscriber)
	if err != nil {
		return api.SegmentExplanation{}, err
	}
	judged, err := s.subscribers.judge(r.Value.Account, rule).subscriber(ctx, ordinal, record)
	if err != nil {
		return api.SegmentExplanation{}, err
	}
	now := s.subscribers.now()
	answer := api.SegmentExplanation{In: rule.Holds(judged, now), Terms: []api.SegmentTerm{}}
	for _, held := range rule.Explain(judged, now) {
		answer.Terms = append(answer.Terms, api.SegmentTerm(held))
	}
	return answer, nil
}
