package outbox

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/queue"
)

// Queues counts, pauses and resumes the queues of messages.
type Queues struct{ *store }

// Owns says whether a queue holds the tasks of messages.
func (qs *Queues) Owns(name string) bool {
	for p := range qs.DB.Partitions() {
		if name == laneQueue(api.Transactional, p) || name == laneQueue(api.Bulk, p) {
			return true
		}
	}
	return false
}

// queuesOf are the queues of asynq that a queue of the API stands for.
func (qs *Queues) queuesOf(name string) ([]string, error) {
	lanes := lanesOf(name)
	if lanes == nil {
		if slices.Contains(queue.Names(), name) {
			return []string{name}, nil
		}
		return nil, fault.New(fault.NotFound, "QueueNotFound", "No queue %q; there are %s", name,
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

// SetPaused holds a queue back, or lets it go on. Jobs that are active finish. submit stands for all sending,
// both lanes; bulk for the bulk lane alone.
func (qs *Queues) SetPaused(ctx context.Context, name string, paused bool) error {
	names, err := qs.queuesOf(name)
	if err != nil {
		return err
	}
	set := qs.Control.Resume
	if paused {
		set = qs.Control.Pause
	}
	for _, n := range names {
		if err := set(ctx, n); err != nil {
			return away(err, "pause or resume queue "+n)
		}
	}
	qs.log.InfoContext(ctx, "queue switched", "queue", name, "paused", paused)
	return nil
}

// QueueStatus counts a queue. Messages are counted by their records, which are the truth; other jobs by their
// tasks.
func (qs *Queues) QueueStatus(ctx context.Context, name string) (api.QueueStatus, error) {
	names, err := qs.queuesOf(name)
	if err != nil {
		return api.QueueStatus{}, err
	}
	counts, err := qs.Control.Counts(ctx, names...)
	if err != nil {
		return api.QueueStatus{}, away(err, "count queue "+name)
	}
	s := api.QueueStatus{Queue: name, Paused: true}
	var oldest time.Duration
	for _, c := range counts {
		s.Paused = s.Paused && c.Paused
		s.Jobs.Completed += c.Completed
		s.ProcessedTotal += c.ProcessedTotal
		s.FailedTotal += c.FailedTotal
		oldest = max(oldest, c.Latency)
	}
	s.Latency = oldest.Seconds()
	if lanes := lanesOf(name); lanes != nil {
		return s, qs.countMessages(ctx, lanes, "", &s.Jobs)
	}
	c := counts[0]
	s.Jobs.Active, s.Jobs.Delayed, s.Jobs.Failed, s.Jobs.Waiting = c.Active, c.Delayed(), c.Archived, c.Waiting
	if c.Paused {
		s.Jobs.Waiting, s.Jobs.Paused = 0, c.Waiting
	}
	return s, nil
}

// countMessages counts the messages of some lanes by state: those of an account, or of all.
func (qs *Queues) countMessages(ctx context.Context, lanes []api.Lane, account string, jobs *api.Jobs) error {
	paused, err := qs.pausedLanes(ctx)
	if err != nil {
		return err
	}
	n := qs.counting()
	for _, lane := range lanes {
		waiting := &jobs.Waiting
		if paused[lane] {
			waiting = &jobs.Paused
		}
		for st, into := range map[string]*int{
			stateWaiting: waiting, stateActive: &jobs.Active, stateDelayed: &jobs.Delayed, stateFailed: &jobs.Failed,
		} {
			n.add(ctx, into, account, func(p int) string { return qs.keys.index(p, string(lane), st) })
		}
	}
	return n.exec(ctx)
}

// counting adds up the sizes of indexes over all partitions, in one round trip.
type counting struct {
	partitions int
	pipe       redis.Pipeliner
	sums       []func()
}

func (qs *Queues) counting() *counting {
	return &counting{partitions: qs.DB.Partitions(), pipe: qs.DB.Client().Pipeline()}
}

// add adds the size of an index to a number, or that of its part for an account.
func (c *counting) add(ctx context.Context, into *int, account string, key func(p int) string) {
	for p := range c.partitions {
		n := c.pipe.ZCard(ctx, of(key(p), account))
		c.sums = append(c.sums, func() { *into += int(n.Val()) })
	}
}

func (c *counting) exec(ctx context.Context) error {
	if _, err := c.pipe.Exec(ctx); err != nil {
		return away(err, "count messages")
	}
	for _, sum := range c.sums {
		sum()
	}
	return nil
}

// Counters counts the messages pending, failed and dead, and what happened in the last hour and day, to the
// minute.
func (qs *Queues) Counters(ctx context.Context, q api.CounterQuery) (api.Counters, error) {
	lanes := lanesOf(queue.Submit)
	if q.Lane != "" {
		lanes = []api.Lane{q.Lane}
	}
	var jobs api.Jobs
	if err := qs.countMessages(ctx, lanes, q.Account, &jobs); err != nil {
		return api.Counters{}, err
	}
	c := api.Counters{Pending: jobs.Waiting + jobs.Paused + jobs.Active + jobs.Delayed, Failed: jobs.Failed,
		Dead: jobs.Failed}
	n := qs.counting()
	for _, lane := range lanes {
		n.add(ctx, &c.Failed, q.Account, func(p int) string {
			return qs.keys.logged(p, string(lane), resultFailed)
		})
	}
	if err := n.exec(ctx); err != nil {
		return api.Counters{}, err
	}
	hour, day, err := qs.happened(ctx, q, qs.clock.Now())
	c.QueuedHour, c.SentHour, c.FailedHour, c.AttemptsHour = hour["queued"], hour["sent"], hour["failed"],
		hour["attempts"]
	c.SuppressedHour, c.SuppressedDay = hour["suppressed"]+hour["skipped"], day["suppressed"]+day["skipped"]
	c.LaterHour, c.LaterDay = laterCounters(hour), laterCounters(day)
	c.QueuedDay, c.SentDay, c.FailedDay, c.AttemptsDay = day["queued"], day["sent"], day["failed"],
		day["attempts"]
	return c, err
}

func laterCounters(n map[string]int) api.LaterCounters {
	return api.LaterCounters{
		Delivered: n["delivered"], Bounced: n["bounced"], Complained: n["complained"],
		Unsubscribed: n["unsubscribed"],
		Opened:       n["opened"], OpenedBots: n["openedBots"], Clicked: n["clicked"],
		ClickedBots: n["clickedBots"],
	}
}

// happened adds up the counters of the last 60 minutes and the last 24 hours.
func (qs *Queues) happened(ctx context.Context, q api.CounterQuery, now time.Time) (hour, day map[string]int,
	_ error) {
	hour, day = map[string]int{}, map[string]int{}
	minute := millis(now) / 60_000
	pipe := qs.DB.Client().Pipeline()
	got := map[int64][]*redis.MapStringStringCmd{}
	for h := minute/60 - 24; h <= minute/60; h++ {
		for p := range qs.DB.Partitions() {
			got[h] = append(got[h], pipe.HGetAll(ctx, of(qs.keys.stats(p, h), q.Account)))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, away(err, "read counters")
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
			}
		}
	}
	return hour, day, nil
}

// collector counts the live messages when asked to.
type collector struct{ queues *Queues }

var liveDesc = prometheus.NewDesc("postroom_outbox_messages",
	"Live messages by state and lane; failed ones are dead letters.", []string{"state", "lane"}, nil)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { ch <- liveDesc }

// Collect implements prometheus.Collector. While Redis is away there is nothing to tell.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) // Collect is given no context
	defer cancel()
	for _, lane := range lanesOf(queue.Submit) {
		var jobs api.Jobs
		if err := c.queues.countMessages(ctx, []api.Lane{lane}, "", &jobs); err != nil {
			return
		}
		for state, n := range map[string]int{"waiting": jobs.Waiting, "paused": jobs.Paused, "active": jobs.Active,
			"delayed": jobs.Delayed, "failed": jobs.Failed} {
			ch <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, float64(n), state, string(lane))
		}
	}
}
