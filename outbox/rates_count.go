package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// Counts counts what becomes of mail, by hour and day, from the events. Each event is counted once, whatever
// process dies: it is counted and acknowledged in one step.
type Counts struct{ *store }

const (
	ratesGroup = "rates" // the reader of the stream; rates.lua has it too
	ratesBatch = 500
	// keepRates and keepHours are how long the counters are kept, as rates.lua says: by hour those of tags,
	// lists and domains are kept for a shorter time.
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
	}
	if r.Sent > 0 {
		r.BounceRate = float64(r.Hard) / float64(r.Sent)
		r.ComplaintRate = float64(r.Complained) / float64(r.Sent)
	}
	return r
}

// countedEvent is what counts of an event.
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

// column is the column of an event; -1: none.
func (e *countedEvent) column() int {
	switch e.Type {
	case event.MessageSent:
		return columnSent
	case event.MessageFailed:
		return columnFailed
	case event.MessageSuppressed:
		return columnSuppressed
	case event.MessageDelivered:
		return columnDelivered
	case event.MessageDeferred:
		return columnDeferred
	case event.MessageBounce:
		switch {
		case e.Data.BounceType == "hard":
			return columnHard
		case e.Data.Reason == "blocked":
			return columnBlocked
		}
		return columnSoft
	case event.MessageComplaint:
		return columnComplained
	case event.ListUnsubscribe:
		return columnUnsubscribed
	case event.TrackOpen:
		if e.Data.Bot {
			return columnOpenedBots
		}
		return columnOpened
	case event.TrackClick:
		if e.Data.Bot {
			return columnClickedBots
		}
		return columnClicked
	}
	return -1
}

// cell is a counter: of an hour, of an account ("": of all), and of a part of its mail ("": of all).
type cell struct {
	hour          int64 // since 1970
	account, part string
}

// countEvents counts events until ctx ends.
func (r *Counts) countEvents(ctx context.Context) error {
	return r.DB.Follow(ctx, redisdb.Follow{Stream: "events", Group: ratesGroup, Batch: ratesBatch,
		Gather: 500 * time.Millisecond}, r.count)
}

// count counts the events of a batch that were not counted before.
func (r *Counts) count(ctx context.Context, entries []redisdb.Entry) error {
	for len(entries) > 0 {
		key := r.keys.events(entries[0].Partition)
		answer, err := ratesScript.Run(ctx, r.DB.Client(), []string{key}, r.tally(entries))
		if err != nil {
			return redisdb.Failed(err, "count %d events", len(entries))
		}
		if answer.Word == "OK" {
			return nil
		}
		entries = slices.DeleteFunc(slices.Clone(entries), func(e redisdb.Entry) bool {
			return slices.Contains(strings.Fields(answer.Known), e.ID)
		})
	}
	return nil
}

// tally adds up the numbers of events. An event that cannot be read counts nothing.
func (r *Counts) tally(entries []redisdb.Entry) ratesArgs {
	args, sums, now := ratesArgs{PartsMost: partsMost}, map[cell]*tallied{}, r.clock.Now()
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
		line := entry.Text("e")
		if strings.Contains(line[:min(len(line), 100)], `"`+string(event.MessageQueued)+`"`) {
			continue // every message has one, and it counts nothing
		}
		var e countedEvent
		if json.Unmarshal([]byte(line), &e) != nil || e.Type.Later() && entry.Text("f") == "" {
			continue
		}
		if at := e.column(); at >= 0 {
			e.add(sums, at, now)
		}
	}
	args.IDs = strings.Join(ids, " ")
	for c, sum := range sums {
		last := columns - 1
		for last > 0 && sum[last] == 0 {
			last--
		}
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(sum[:last+1]), " ", ","), "[]")
		args.Cells = append(args.Cells, fmt.Sprintf("%s\t%02d\t%s\t%s\t%s",
			time.Unix(c.hour*3600, 0).UTC().Format(dayForm), c.hour%24, c.account, c.part, text))
	}
	slices.Sort(args.Cells) // so that among many tags of a batch the same ones count apart in each account
	return args
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
