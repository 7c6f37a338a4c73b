package audience

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/segment"
)

const (
	segmentSample = 20
	countSaved    = time.Second          // how often the progress is stored
	countDead     = time.Minute          // without progress: its process has ended
	countKept     = 30 * 24 * time.Hour  // how long a result is kept
	countTimeout  = 30 * time.Minute     // for the whole count
	countPause    = 2 * time.Millisecond // between batches of pages, so that mail goes first
)

func segmentCountKey(id string) string { return redisdb.Key(0, "segment-count", id) }

// StartCount begins to count a segment, unless that is under way, and returns the progress. The count
// continues after ctx ends.
func (s *Segments) StartCount(ctx context.Context, bound, id string) (api.SegmentCount, error) {
	r, rule, err := s.find(ctx, bound, id)
	if err != nil {
		return api.SegmentCount{}, err
	}
	running, err := s.Count(ctx, bound, id)
	if err == nil && running.State == "running" && running.Version == r.Value.Version {
		return running, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return api.SegmentCount{}, err
	}
	total, err := s.subscribers.Count(ctx, r.Value.Account)
	if err != nil {
		return api.SegmentCount{}, err
	}
	now := s.subscribers.now().UTC()
	c := &counting{s: s.subscribers, record: r, rule: rule, judge: s.subscribers.judge(r.Value.Account, rule),
		now: now}
	c.state = api.SegmentCount{State: "running", Total: total, Version: r.Value.Version, Started: now,
		Sample: []api.Subscriber{}}
	if err := c.save(ctx); err != nil {
		return api.SegmentCount{}, err
	}
	started := c.state
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
		defer cancel()
		defer context.AfterFunc(s.stopped, cancel)()
		c.run(ctx)
	})
	return started, nil
}

// Count returns the progress or the result of a segment's last count. It returns NotFound if there was none.
func (s *Segments) Count(ctx context.Context, bound, id string) (api.SegmentCount, error) {
	if _, _, err := s.find(ctx, bound, id); err != nil {
		return api.SegmentCount{}, err
	}
	text, err := s.subscribers.db.Client().Get(ctx, segmentCountKey(id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return api.SegmentCount{}, fault.New(fault.NotFound, "CountNotFound",
			"Segment %q wasn't counted. Start a count with POST /v1/segments/%s/count", id, id)
	}
	if err != nil {
		return api.SegmentCount{}, redisdb.Failed(err, "read the count of segment %s", id)
	}
	var c api.SegmentCount
	if err := json.Unmarshal(text, &c); err != nil {
		return api.SegmentCount{}, errRecord
	}
	if c.State == "running" && s.subscribers.now().Sub(c.Updated) > countDead {
		c.State, c.Error = "interrupted", "The process that counted has ended"
	}
	return c, nil
}

// counting is the state of a count.
type counting struct {
	s      *Subscribers
	record *records.Record[storedSegment]
	rule   segment.Rule
	judge  *judge
	now    time.Time // for spans before now
	state  api.SegmentCount
	sample []sampled
	saved  time.Time
}

type sampled struct {
	ordinal uint32
	record  *record
}

// run counts, and stores the result.
func (c *counting) run(ctx context.Context) {
	err := c.walk(ctx)
	c.state.State = "done"
	switch {
	case ctx.Err() != nil:
		c.state.State, c.state.Error = "interrupted", "It took too long, or its process ended"
	case err != nil:
		c.state.State, c.state.Error = "failed", "The message store is not available"
		c.s.log.Warn("a segment could not be counted", "segment", c.record.ID, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := c.save(ctx); err != nil {
		c.s.log.Warn("the count of a segment could not be stored", "segment", c.record.ID, "error", err)
	}
}

// walk judges all subscribers of the account.
func (c *counting) walk(ctx context.Context) error {
	account := c.record.Value.Account
	for from, more := uint32(0), true; more; {
		var err error
		from, more, err = c.s.walk(ctx, account, members{}, from, walkPages,
			func(ordinal uint32, r *record) (bool, error) { return true, c.look(ctx, ordinal, r) })
		if err != nil {
			return err
		}
		if !redisdb.Pause(ctx, countPause) {
			return ctx.Err()
		}
		if time.Since(c.saved) > countSaved {
			if err := c.save(ctx); err != nil {
				return err
			}
		}
	}
	for _, one := range c.sample {
		sub, err := c.s.shown(ctx, account, one.ordinal, one.record)
		if err != nil {
			return err
		}
		c.state.Sample = append(c.state.Sample, sub)
	}
	return nil
}

// look counts a subscriber, if the rule selects it.
func (c *counting) look(ctx context.Context, ordinal uint32, r *record) error {
	c.state.Done++
	judged, err := c.judge.subscriber(ctx, ordinal, r)
	if err != nil || !c.rule.Holds(judged, c.now) {
		return err
	}
	c.state.Count++
	one := sampled{ordinal, r}
	if len(c.sample) < segmentSample {
		c.sample = append(c.sample, one)
	} else if at := rand.IntN(c.state.Count); at < segmentSample { // each has the same chance
		c.sample[at] = one
	}
	return nil
}

func (c *counting) save(ctx context.Context) error {
	c.saved = time.Now()
	c.state.Updated = c.s.now().UTC()
	text, err := json.Marshal(c.state)
	if err == nil {
		err = c.s.db.Client().Set(ctx, segmentCountKey(c.record.ID), text, countKept).Err()
	}
	if err != nil {
		return redisdb.Failed(err, "store the count of segment %s", c.record.ID)
	}
	return nil
}

// SegmentTrial is what a rule that isn't stored selects.
type SegmentTrial struct {
	Sentence string
	Warnings []string
	Count    int // selected, of those that were looked at
	Looked   int
	Total    int // subscribers of the account
}

// mostTried bounds how many subscribers a trial looks at, so that an editor can ask again and again.
const mostTried = 20_000

// Try returns what a rule would select. It looks at the first 20,000 subscribers only. It returns the
// errors of Create.
func (s *Segments) Try(ctx context.Context, bound, account string, raw []byte) (SegmentTrial, error) {
	account, err := requestAccount(bound, account)
	if err != nil {
		return SegmentTrial{}, err
	}
	rule, err := segment.Parse("rule", raw)
	if err == nil {
		err = s.checkCampaigns(ctx, account, raw)
	}
	if err != nil {
		return SegmentTrial{}, err
	}
	trial := SegmentTrial{Sentence: rule.Sentence()}
	if trial.Warnings, err = s.warnings(ctx, account, rule); err != nil {
		return trial, err
	}
	if trial.Total, err = s.subscribers.Count(ctx, account); err != nil {
		return trial, err
	}
	judge, now := s.subscribers.judge(account, rule), s.subscribers.now()
	for from, more := uint32(0), true; more && trial.Looked < mostTried; {
		from, more, err = s.subscribers.walk(ctx, account, members{}, from, walkPages,
			func(ordinal uint32, r *record) (bool, error) {
				trial.Looked++
				judged, err := judge.subscriber(ctx, ordinal, r)
				if err == nil && rule.Holds(judged, now) {
					trial.Count++
				}
				return true, err
			})
		if err != nil {
			return trial, err
		}
	}
	return trial, nil
}

// Attributes returns the attributes that subscribers of an account have, with the types of their values.
func (s *Subscribers) Attributes(ctx context.Context, account string) (map[string][]string, error) {
	return s.attributes.all(ctx, account)
}
