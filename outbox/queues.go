package outbox

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// Queues counts, pauses and resumes the queues of messages.
type Queues struct{ *store }

// Now returns the time by Redis' clock, which dates messages.
func (qs *Queues) Now() time.Time { return qs.clock.Now() }

// Owns reports whether a queue holds the tasks of messages.
func (qs *Queues) Owns(name string) bool {
	names, _ := qs.queuesOf(queue.Submit) // there is this queue
	return slices.Contains(names, name)
}

// queuesOf returns the queues of asynq that make up a queue of the API.
func (qs *Queues) queuesOf(name string) ([]string, error) {
	lanes := lanesOf(name)
	if lanes == nil {
		if slices.Contains(queue.Names(), name) {
			return []string{name}, nil
		}
		return nil, fault.New(fault.NotFound, "QueueNotFound", "There is no queue %q. Use one of %s", name,
			strings.Join(queue.Names(), ", "))
	}
	var names []string
	for _, lane := range lanes {
		for p := range qs.DB.Partitions() {
			names = append(names, laneQueue(lane, p))
		}
	}
	return names, nil
}

// SetPaused pauses or resumes a queue in all its partitions. Active jobs finish. The queue submit is both
// lanes, bulk the bulk lane. A partition's queue name, which the dashboard shows, stands for the whole queue.
// Pauses that end are noted for message timelines. If that fails, the error is logged and they end anyway: a
// full Redis accepts no notes, and needs its mail sent.
func (qs *Queues) SetPaused(ctx context.Context, name string, paused bool) error {
	name = queue.Whole(name)
	names, err := qs.queuesOf(name)
	if err != nil {
		return err
	}
	if err := qs.clock.ready(ctx, qs.DB.Client()); err != nil {
		return redisError(err, "pause or resume queue "+name)
	}
	now := qs.clock.Now()
	if paused {
		err = qs.Control.Pause(ctx, now, names...)
	} else {
		if err := qs.notePauses(ctx, lanesOf(name), now); err != nil {
			qs.log.WarnContext(ctx, "pause not noted: timelines will not show it", "queue", name, "error", err)
		}
		err = qs.Control.Resume(ctx, names...)
	}
	if err != nil {
		return redisError(err, "pause or resume queue "+name)
	}
	qs.log.InfoContext(ctx, "queue switched", "queue", name, "paused", paused)
	return nil
}

// QueueStatus counts the jobs of a queue: messages by their records, which are the truth, others by their
// tasks. A queue is paused if any of its partitions is, as asynq's own tools may do; submit is if that holds
// for the transactional lane, whatever the bulk lane does.
func (qs *Queues) QueueStatus(ctx context.Context, name string) (api.QueueStatus, error) {
	names, err := qs.queuesOf(name)
	if err != nil {
		return api.QueueStatus{}, err
	}
	counts, err := qs.Control.Counts(ctx, names...)
	if err != nil {
		return api.QueueStatus{}, redisError(err, "count queue "+name)
	}
	s := api.QueueStatus{Queue: name}
	var oldest time.Duration
	buried := 0
	s.PerMinute = sumOf(counts)
	for _, c := range counts {
		s.Paused = s.Paused || c.Paused && queue.Whole(c.Queue) == name
		s.Jobs.Completed += c.Completed
		buried += c.Archived
		s.ProcessedTotal += c.ProcessedTotal
		s.FailedTotal += c.FailedTotal
		oldest = max(oldest, c.Latency)
	}
	s.Latency = oldest.Seconds()
	if lanes := lanesOf(name); lanes != nil {
		completed := s.Jobs.Completed
		s.Jobs, _, err = qs.countMessages(ctx, lanes, "")
		if s.Jobs.Completed = completed; qs.opts.KeepDeadLetters < 0 {
			s.Jobs.Failed = buried
		}
		return s, err
	}
	c := counts[0]
	s.Jobs.Active, s.Jobs.Failed, s.Jobs.Waiting = c.Active, c.Archived, c.Waiting
	s.Jobs.Scheduled, s.Jobs.Delayed = c.Scheduled, c.Scheduled+c.Retrying
	if c.Paused {
		s.Jobs.Waiting, s.Jobs.Paused = 0, c.Waiting
	}
	return s, nil
}

// sumOf returns the tasks per minute of all partitions, or nil if one isn't known.
func sumOf(counts []queue.Counts) *float64 {
	sum := 0.0
	for _, c := range counts {
		if c.PerMinute == nil {
			return nil
		}
		sum += *c.PerMinute
	}
	return &sum
}

// countMessages counts the messages of some lanes by state, and the failed messages in the log. "" counts all
// accounts' messages.
func (qs *Queues) countMessages(ctx context.Context, lanes []api.Lane, account string) (jobs api.Jobs,
	failed int, _ error) {
	paused, err := qs.pausedQueues(ctx)
	if err != nil {
		return jobs, 0, err
	}
	pipe, sums := qs.DB.Client().Pipeline(), []func(){}
	add := func(into *int, key string) {
		n := pipe.ZCard(ctx, of(key, account))
		sums = append(sums, func() { *into += int(n.Val()) })
	}
	for p := range qs.DB.Partitions() {
		sending := qs.sending(ctx, pipe, p)
		for _, lane := range lanes {
			waiting := &jobs.Waiting
			if paused[laneQueue(lane, p)] {
				waiting = &jobs.Paused
			}
			all := pipe.ZCard(ctx, of(qs.keys.index(p, string(lane), stateWaiting), account))
			sums = append(sums, func() {
				active := min(len(sending(lane, account)), int(all.Val()))
				jobs.Active += active
				*waiting += int(all.Val()) - active
			})
			for st, into := range map[string]*int{stateScheduled: &jobs.Scheduled, stateDelayed: &jobs.Delayed,
				stateFailed: &jobs.Failed} {
				add(into, qs.keys.index(p, string(lane), st))
			}
			add(&failed, qs.keys.logged(p, string(lane), resultFailed))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return jobs, 0, redisError(err, "count messages")
	}
	for _, sum := range sums {
		sum()
	}
	jobs.Delayed += jobs.Scheduled
	return jobs, failed, nil
}

// Jobs counts an account's live messages by state, in one lane or both. An empty account means all.
func (qs *Queues) Jobs(ctx context.Context, q api.CounterQuery) (api.Jobs, error) {
	jobs, _, err := qs.countMessages(ctx, lanesFor(q.Lane), q.Account)
	return jobs, err
}

// lanesFor returns the lane, or both if it is empty.
func lanesFor(lane api.Lane) []api.Lane {
	if lane == "" {
		return lanesOf(queue.Submit)
	}
	return []api.Lane{lane}
}

// Counters counts the pending, failed and dead messages, and what happened in the last hour and day, to the
// minute.
func (qs *Queues) Counters(ctx context.Context, q api.CounterQuery) (api.Counters, error) {
	jobs, failed, err := qs.countMessages(ctx, lanesFor(q.Lane), q.Account)
	if err != nil {
		return api.Counters{}, err
	}
	hour, day, period, err := qs.happened(ctx, q, qs.clock.Now())
	if err == nil && q.Seconds > daySeconds {
		period, err = qs.rated(ctx, q)
	}
	return api.Counters{
		Pending: jobs.Pending(), Failed: jobs.Failed + failed, Dead: jobs.Failed,
		QueuedHour: hour["queued"], SentHour: hour["sent"], FailedHour: hour["failed"],
		AttemptsHour: hour["attempts"], SuppressedHour: hour["suppressed"] + hour["skipped"],
		QueuedDay: day["queued"], SentDay: day["sent"], FailedDay: day["failed"], AttemptsDay: day["attempts"],
		SuppressedDay: day["suppressed"] + day["skipped"],
		LaterHour:     laterCounters(hour), LaterDay: laterCounters(day),
		PeriodCounters: periodCounters(period),
	}, err
}

// daySeconds is the longest period that is counted to the minute.
const daySeconds = 24 * 60 * 60

func periodCounters(n map[string]int) api.PeriodCounters {
	return api.PeriodCounters{
		SubmitSuccess: n["sent"], SubmitFail: n["failed"], MessageQueued: n["queued"], MessageSent: n["sent"],
		MessageFailed: n["failed"], MessageSuppressed: n["suppressed"] + n["skipped"],
		MessageDelivered: n["delivered"], MessageBounce: n["bounced"], MessageComplaint: n["complained"],
		ListUnsubscribe: n["unsubscribed"], TrackOpen: n["opened"] + n["openedBots"],
		TrackClick: n["clicked"] + n["clickedBots"],
	}
}

// rated returns the counters of a period longer than a day, computed from the rates' counters.
func (qs *Queues) rated(ctx context.Context, q api.CounterQuery) (map[string]int, error) {
	by := api.RatesQuery{Account: q.Account, From: qs.clock.Now().Add(-time.Duration(q.Seconds) * time.Second)}
	if q.Lane != "" {
		by.By, by.Name = "lane", string(q.Lane)
	}
	rates, err := (&Counts{qs.store}).Rates(ctx, by)
	if err != nil || len(rates.Rates) == 0 {
		return nil, err
	}
	r := rates.Rates[0]
	return map[string]int{
		"sent": r.Sent, "failed": r.Failed, "suppressed": r.Suppressed, "delivered": r.Delivered,
		"bounced": r.Hard + r.Soft + r.Blocked, "complained": r.Complained, "unsubscribed": r.Unsubscribed,
		"opened": r.Opened, "openedBots": r.OpenedBots, "clicked": r.Clicked, "clickedBots": r.ClickedBots,
	}, nil
}

func laterCounters(n map[string]int) api.LaterCounters {
	return api.LaterCounters{
		Delivered: n["delivered"], Bounced: n["bounced"], Complained: n["complained"],
		Unsubscribed: n["unsubscribed"], Opened: n["opened"], OpenedBots: n["openedBots"], Clicked: n["clicked"],
		ClickedBots: n["clickedBots"],
	}
}

// happened sums the counters of the last 60 minutes, of the last 24 hours, and of the seconds of a query, at
// most 24 hours of them.
func (qs *Queues) happened(ctx context.Context, q api.CounterQuery, now time.Time) (hour, day,
	period map[string]int, _ error) {
	hour, day, period = map[string]int{}, map[string]int{}, map[string]int{}
	if err := (&Counts{qs.store}).countNew(ctx); err != nil {
		return nil, nil, nil, err
	}
	minutes := int64(cmp.Or(q.Seconds, 3600)+59) / 60
	minute := redisdb.Millis(now) / 60_000
	pipe := qs.DB.Client().Pipeline()
	got := map[int64][]*redis.MapStringStringCmd{}
	for h := minute/60 - 24; h <= minute/60; h++ {
		for p := range qs.DB.Partitions() {
			got[h] = append(got[h], pipe.HGetAll(ctx, of(qs.keys.stats(p, h), q.Account)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, nil, redisError(err, "read counters")
	}
	for h, cmds := range got {
		for _, cmd := range cmds {
			for field, value := range cmd.Val() {
				parts := strings.Split(field, ":") // name, lane, minute
				if q.Lane != "" && parts[1] != string(q.Lane) {
					continue
				}
				m, _ := strconv.ParseInt(parts[2], 10, 64)
				n, _ := strconv.Atoi(value)
				age := minute - (h*60 + m)
				if age < 60 {
					hour[parts[0]] += n
				}
				if age < 24*60 {
					day[parts[0]] += n
				}
				if age < minutes {
					period[parts[0]] += n
				}
			}
		}
	}
	return hour, day, period, nil
}

// collector counts the live messages for Prometheus.
type collector struct{ queues *Queues }

var liveDesc = prometheus.NewDesc("postroom_outbox_messages",
	"Messages in the outbox by state: waiting, paused (waiting in a paused queue), active, scheduled, delayed (after a failed attempt, or for a limit or account), failed (dead letters). Missing while Redis is unavailable.", []string{"state", "lane"}, nil)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- liveDesc }

// Collect implements prometheus.Collector. While Redis is unreachable it returns nothing.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // Collect is given no context
	defer cancel()
	for _, lane := range lanesOf(queue.Submit) {
		jobs, _, err := c.queues.countMessages(ctx, []api.Lane{lane}, "")
		if err != nil {
			return
		}
		for state, n := range map[string]int{"waiting": jobs.Waiting, "paused": jobs.Paused, "active": jobs.Active,
			"scheduled": jobs.Scheduled, "delayed": jobs.OnlyDelayed(), "failed": jobs.Failed} {
			ch <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, float64(n), state, string(lane))
		}
	}
}
