package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/go-json-experiment/json/v1" // half of the time of encoding/json
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// Counts counts the results of mail by hour and day, from the events. Each event is counted once, whatever
// process dies: the counters and the place in the stream change in one step. All processes take turns.
type Counts struct{ *store }

const (
	ratesGroup = "rates" // has the place of the last event that was counted; rates.lua has the name too
	ratesBatch = 500
	ratesEvery = time.Second
	// keepRates and keepHours are how long counters are kept, as in rates.lua. Hourly counters of tags, lists
	// and domains are kept for a shorter time.
	keepRates, keepHours = 400 * 24 * time.Hour, 35 * 24 * time.Hour
	// partsMost bounds the tags, the lists and the domains of an account and a day, in each partition.
	partsMost = 200
	day       = 24 * time.Hour
)

// The columns of a counter, in the order of Redis. New ones are added at the end.
const (
	columnSent = iota
	columnFailed
	columnSuppressed
	columnDelivered
	columnDeferred
	columnHard
	columnSoft
	columnBlocked
	columnComplained
	columnUnsubscribed
	columnOpened
	columnClicked
	columnOpenedBots
	columnClickedBots
	columnAccepted // for all mail and for lanes only: the rest is not known yet, or changes
	columns
)

// tallied are the numbers of a counter, by column.
type tallied [columns]int

// rate returns the numbers with the names of the API.
func (n tallied) rate() api.Rate {
	r := api.Rate{
		Sent: n[columnSent], Failed: n[columnFailed], Suppressed: n[columnSuppressed],
		Delivered: n[columnDelivered], Deferred: n[columnDeferred], Hard: n[columnHard], Soft: n[columnSoft],
		Blocked:    n[columnBlocked],
		Complained: n[columnComplained], Unsubscribed: n[columnUnsubscribed], Opened: n[columnOpened],
		Clicked: n[columnClicked], OpenedBots: n[columnOpenedBots], ClickedBots: n[columnClickedBots],
		Accepted: n[columnAccepted],
	}
	if r.Sent > 0 {
		r.BounceRate = float64(r.Hard) / float64(r.Sent)
		r.ComplaintRate = float64(r.Complained) / float64(r.Sent)
	}
	return r
}

// countedEvent has the fields of an event that are counted.
type countedEvent struct {
	Type    event.Type `json:"event"`
	Account string     `json:"account"`
	Time    time.Time  `json:"date"`
	Data    struct {
		event.Message
		BounceType string `json:"bounceType"`
		Reason     string `json:"reason"`
		Bot        bool   `json:"bot"`
	} `json:"data"`
}

// plain are the columns of events that all count alike.
var plain = map[event.Type]int{
	event.MessageQueued: columnAccepted, event.MessageSent: columnSent, event.MessageFailed: columnFailed,
	event.MessageSuppressed: columnSuppressed, event.MessageDelivered: columnDelivered,
	event.MessageDeferred: columnDeferred, event.MessageComplaint: columnComplained,
	event.ListUnsubscribe: columnUnsubscribed,
}

// column is the column of an event; -1: none.
func (e *countedEvent) column() int {
	at, ok := plain[e.Type]
	switch bot := e.Data.Bot; {
	case e.Data.Reason == event.Unproven:
	case ok:
		return at
	case e.Type == event.TrackOpen && bot:
		return columnOpenedBots
	case e.Type == event.TrackOpen:
		return columnOpened
	case e.Type == event.TrackClick && bot:
		return columnClickedBots
	case e.Type == event.TrackClick:
		return columnClicked
	case e.Type != event.MessageBounce:
	case e.Data.BounceType == "hard", e.Data.Reason == event.Unconfirmed:
		return columnHard
	case e.Data.Reason == "blocked":
		return columnBlocked
	default:
		return columnSoft
	}
	return -1
}

// cell is a counter: of an hour, of an account ("": of all), and of a part of its mail ("": of all).
type cell struct {
	hour          int64 // since 1970
	account, part string
}

// countNew counts the events that were not counted yet.
func (r *Counts) countNew(ctx context.Context) error {
	for p := range r.DB.Partitions() {
		if err := (&counting{Counts: r, partition: p}).next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// counting counts the events of a partition.
type counting struct {
	*Counts
	partition int
	end       string // everything up to this event was counted at the last look; empty if that isn't known
}

// next counts the events that were not counted yet.
func (c *counting) next(ctx context.Context) error {
	for {
		former, entries, err := c.uncounted(ctx, c.partition)
		if err != nil {
			return redisdb.Failed(err, "read the events of partition %d", c.partition)
		}
		if c.end = former; len(entries) == 0 {
			return nil
		}
		counted, err := c.count(ctx, c.partition, former, entries)
		if err != nil {
			return redisdb.Failed(err, "count %d events", len(entries))
		}
		if c.end = ""; !counted || len(entries) < ratesBatch { // else there are more; another process counts them
			return nil
		}
	}
}

// pause waits for a while, and longer until there are events to count.
func (c *counting) pause(ctx context.Context, every time.Duration) bool {
	if c.end != "" {
		c.DB.AwaitEntry(ctx, redisdb.Key(c.partition, "events"), c.end, time.Minute)
	}
	return redisdb.Pause(ctx, every)
}

// uncounted returns events that were not counted yet, and the id of the last one that was.
func (r *Counts) uncounted(ctx context.Context, p int) (former string, _ []redis.XMessage, _ error) {
	rdb, key := r.DB.Client(), r.keys.events(p)
	groups, err := rdb.XInfoGroups(ctx, key).Result()
	if err != nil && !strings.Contains(err.Error(), "no such key") { // nothing was ever added
		return "", nil, err
	}
	at := slices.IndexFunc(groups, func(g redis.XInfoGroup) bool { return g.Name == ratesGroup })
	if at < 0 {
		err := rdb.XGroupCreateMkStream(ctx, key, ratesGroup, "0").Err()
		if err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") { // somebody was faster
			return "", nil, err
		}
		return r.uncounted(ctx, p)
	}
	former = groups[at].LastDeliveredID
	entries, err := rdb.XRangeN(ctx, key, "("+former, "+", ratesBatch).Result()
	return former, entries, err
}

// count counts events that come after the former one. It reports false if another process did.
func (r *Counts) count(ctx context.Context, p int, former string, entries []redis.XMessage) (bool, error) {
	args := ratesArgs{Former: former, Last: entries[len(entries)-1].ID, Events: len(entries),
		PartsMost: partsMost, Cells: r.tally(entries)}
	answer, err := ratesScript.Run(ctx, r.DB.Client(), []string{r.keys.events(p)}, args)
	return answer.Word == "OK", err
}

// tally adds up the numbers of events. An event that cannot be read counts nothing.
func (r *Counts) tally(entries []redis.XMessage) (cells []string) {
	sums, now := map[cell]*tallied{}, r.clock.Now()
	events := map[[2]string]int{}  // by account and type
	minutes := map[[2]string]int{} // by account ("": all), and by name, lane and minute
	quotas := map[[2]string]int{}  // by account, and by day ("": the bytes that wait)
	var undone []string
	for _, entry := range entries {
		line, _ := entry.Values["e"].(string)
		var e countedEvent
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if text, _ := entry.Values["u"].(string); text != "" {
			undone = append(undone, strings.Split(text, "\n")...)
		}
		n, _ := entry.Values["n"].(string)
		counted := strings.Fields(n)
		for _, name := range counted {
			if bytes, err := strconv.Atoi(name); err == nil {
				quotas[[2]string{e.Account, ""}] += bytes
			} else if name != countedDay {
				minutes[[2]string{"", name}]++
				minutes[[2]string{e.Account, name}]++
			}
		}
		if e.Type == event.MessageQueued && !slices.Contains(counted, countedDay) {
			quotas[[2]string{e.Account, e.Time.UTC().Format(dayForm)}]++
		}
		if e.Account != "" && e.Type != event.MessageQueued {
			events[[2]string{e.Account, string(e.Type)}]++
		}
		if first, _ := entry.Values["f"].(string); e.Type.Later() && first == "" {
			continue
		}
		if at := e.column(); at >= 0 {
			e.add(sums, at, now)
		}
	}
	cells = cellsOf(sums)
	for e, n := range events {
		cells = append(cells, fmt.Sprintf("#\t%s\t%s\t%d", e[0], e[1], n))
	}
	for m, n := range minutes {
		cells = append(cells, minuteCell(m[0], m[1], n))
	}
	for q, n := range quotas {
		if n != 0 {
			cells = append(cells, fmt.Sprintf("=\t%s\t%s\t%d", q[0], q[1], n))
		}
	}
	return append(cells, undone...) // they may undo what has just been added
}

// countedDay says in the field n of an event that accept.lua counted the message in its day.
const countedDay = "counted"

// minuteCell returns a minute counter's cell, which is counted as "name:lane:minute".
func minuteCell(account, counted string, n int) string {
	at := strings.LastIndexByte(counted, ':')
	return fmt.Sprintf(":\t%s\t%s\t%s\t%d", account, counted[:at], counted[at+1:], n)
}

// cellsOf returns counters as rates.lua takes them: sorted, so that among many tags of a batch the same ones
// count apart in each account.
func cellsOf(sums map[cell]*tallied) (cells []string) {
	for c, sum := range sums {
		last := columns - 1
		for last > 0 && sum[last] == 0 {
			last--
		}
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(sum[:last+1]), " ", ","), "[]")
		cells = append(cells, fmt.Sprintf("%s\t%02d\t%s\t%s\t%s",
			time.Unix(c.hour*3600, 0).UTC().Format(dayForm), c.hour%24, c.account, c.part, text))
	}
	slices.Sort(cells)
	return cells
}

// undone returns the cells that undo a dead letter's failures when it is replayed, because its next result
// counts instead. Failures before an earlier replay were undone then.
func (r row) undone(now time.Time) []string {
	sums, counted := map[cell]*tallied{}, ""
	for _, past := range r.events() {
		switch event.Type(past.Event) {
		case event.MessageReplayed:
			clear(sums)
		case event.MessageFailed:
			e := countedEvent{Account: r.envelope.Account, Time: past.Date}
			e.Data.Message = r.envelope.about(r.id, r.lane, r.gateway, past.Recipients)
			if a := past.Attempt; a != nil {
				e.Data.Gateway, e.Data.LocalAddress = a.Gateway, a.Address
			}
			e.add(sums, columnFailed, now)
			counted = fmt.Sprintf("failed:%s:%d", r.lane, redisdb.Millis(past.Date)/60_000)
		}
	}
	for _, sum := range sums {
		sum[columnFailed] = -sum[columnFailed]
	}
	cells := cellsOf(sums)
	if counted != "" {
		cells = append(cells, minuteCell("", counted, -1), minuteCell(r.envelope.Account, counted, -1))
	}
	return cells
}

// add adds an event about some recipients to the counters that it belongs to.
func (e *countedEvent) add(sums map[cell]*tallied, column int, now time.Time) {
	at := e.Time
	if at.After(now) || now.Sub(at) > keepRates-day {
		at = now
	}
	to := e.Data.Envelope.To
	one := func(part string, n int) {
		if strings.ContainsAny(part, "\t\n") {
			return
		}
		for _, account := range []string{e.Account, ""} {
			c := cell{hour: at.Unix() / 3600, account: account, part: part}
			if sums[c] == nil {
				sums[c] = &tallied{}
			}
			sums[c][column] += n
		}
	}
	n := 1
	if !e.Type.Later() {
		n = len(to)
	}
	one("", n)
	if column == columnAccepted {
		if e.Data.Lane != "" {
			one("n:"+e.Data.Lane, n)
		}
		return
	}
	for _, part := range []string{"g:" + e.Data.Gateway, "i:" + e.Data.LocalAddress, "n:" + e.Data.Lane,
		"l:" + e.Data.List} {
		if len(part) > 2 {
			one(part, n)
		}
	}
	for _, tag := range e.Data.Tags {
		one("t:"+tag, n)
	}
	if n == len(to) { // else it is not known which of them
		for _, address := range to {
			one("d:"+cmp.Or(domainOf(address), "?"), 1)
		}
	}
}
