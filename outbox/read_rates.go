package outbox

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
)

// Rates counts messages by what is known of them: delivered, bounced, opened, clicked, complained of. A
// message counts once for each, however often it was opened, and hits of bots count apart. One call reads
// 100,000 messages at most, newest first. The caller adds the counts of further calls with the cursor.
func (rd *Reader) Rates(ctx context.Context, q api.RatesQuery) (api.Rates, error) {
	w := window{
		indexes: rd.logIndexes(api.LogQuery{Account: q.Account, Lane: q.Lane}), newest: true, size: scanChunk,
		cursor: q.Cursor, after: q.CreatedAfter, before: q.CreatedBefore,
	}
	var sum api.Rates
	for read := 0; ; {
		found, err := rd.look(ctx, w)
		if err != nil {
			return sum, redisError(err, "read the log")
		}
		if err := rd.addRates(ctx, q, found.page, &sum); err != nil {
			return sum, err
		}
		read += len(found.page)
		w.cursor = found.next
		if !found.more || read >= logScan {
			sum.Cursor = found.next
			return sum, nil
		}
	}
}

// addRates counts the messages of a chunk.
func (rd *Reader) addRates(ctx context.Context, q api.RatesQuery, chunk []entry, sum *api.Rates) error {
	rows, err := rd.readLog(ctx, chunk)
	if err != nil {
		return redisError(err, "read messages of the log")
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		return !tagged(r.envelope, q.Tag) || q.ListID != "" && r.envelope.ListID != q.ListID ||
			q.Gateway != "" && r.through() != q.Gateway
	})
	pipe := rd.DB.Client().Pipeline()
	got := make([]*redis.StringSliceCmd, len(rows))
	for i, r := range rows {
		got[i] = pipe.HVals(ctx, rd.keys.facts(r.partition, r.id))
	}
	if _, err := pipe.Exec(ctx); err != nil && len(rows) > 0 {
		return redisError(err, "read the facts about messages")
	}
	for i, r := range rows {
		facts := make([]storedFact, len(got[i].Val()))
		for n, packed := range got[i].Val() {
			if err := rd.jsons.unpack(r.id, []byte(packed), &facts[n]); err != nil {
				return err
			}
		}
		r.addTo(sum, facts)
	}
	return nil
}

// through is the gateway of the last attempt; "" if there was none, or if it used the account's own relay.
func (r row) through() string {
	if n := len(r.status.Log); n > 0 {
		return r.status.Log[n-1].Gateway
	}
	return ""
}

// addTo adds a message and its facts to the rates.
func (r row) addTo(sum *api.Rates, facts []storedFact) {
	sum.Messages++
	add := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	add(&sum.Sent, len(r.status.having(rcptSent)) > 0)
	add(&sum.Failed, len(r.status.having(rcptFailed)) > 0)
	add(&sum.Suppressed, len(r.status.having(rcptSuppressed)) > 0)
	happened := func(kind event.Type, bot bool) bool {
		return slices.ContainsFunc(facts, func(f storedFact) bool { return f.Type == kind && f.Details.Bot == bot })
	}
	add(&sum.Delivered, happened(event.MessageDelivered, false))
	add(&sum.Bounced, happened(event.MessageBounce, false))
	add(&sum.Complained, happened(event.MessageComplaint, false))
	add(&sum.Unsubscribed, happened(event.ListUnsubscribe, false))
	clicked := happened(event.TrackClick, false)
	// a click implies an open, even if pictures were not loaded
	add(&sum.Opened, happened(event.TrackOpen, false) || clicked)
	add(&sum.Clicked, clicked)
	add(&sum.OpenedBots, happened(event.TrackOpen, true))
	add(&sum.ClickedBots, happened(event.TrackClick, true))
}
