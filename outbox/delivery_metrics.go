package outbox

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

// learned counts an attempt, writes its line in the mail log, and wakes the messages that wait for its
// relays.
func (d *Delivery) learned(ctx context.Context, c *claim, dec *decision) {
	d.handled.Add(1)
	d.observe(ctx, c, dec)
	for _, scope := range dec.tried {
		d.lines.wake(ctx, scope)
	}
}

func (d *Delivery) observe(ctx context.Context, c *claim, dec *decision) {
	d.metrics.attempts.WithLabelValues(string(dec.outcome)).Inc()
	switch {
	case dec.outcome == released:
		return
	case dec.waits() && dec.untried():
		d.mail.waits(ctx, c.id, dec.reason, dec.due)
		return
	}
	if len(dec.stopped) > 0 {
		which := slices.Sorted(maps.Keys(dec.stopped))
		d.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(which)))
		d.mail.suppressed(ctx, c.id, c.envelope.addresses(which), string(dec.stopped[which[0]].Reason))
	}
	if dec.unasked {
		if dec.outcome != delayed {
			d.metrics.ended.WithLabelValues(string(dec.outcome)).Inc()
		}
		return
	}
	d.metrics.recipients.WithLabelValues(rcptSent).Add(float64(len(dec.sent)))
	d.metrics.recipients.WithLabelValues(rcptFailed).Add(float64(len(dec.lost)))
	d.metrics.duration.Observe(dec.took.Seconds())
	if dec.fresh {
		d.metrics.attempts.WithLabelValues("in_doubt").Inc()
	}
	if len(dec.sent) > 0 && !c.unrecorded() { // campaigns would write thousands of lines a second
		d.metrics.delay.Observe(max(0, dec.at.Sub(redisdb.Time(c.planned)).Seconds()))
		d.mail.sent(ctx, c.id, dec.attempts, c.envelope.addresses(dec.sent), dec.response, dec.took)
	}
	if dec.spent {
		d.metrics.exhausted.Inc()
	}
	if len(dec.lost) > 0 {
		d.mail.failed(ctx, c.id, dec.attempts, c.envelope.addresses(dec.lost), dec.cause, dec.doubt)
	}
	switch {
	case dec.waits():
		d.mail.waits(ctx, c.id, dec.reason, dec.due)
	case dec.outcome == delayed:
		d.mail.deferred(ctx, c.id, dec.attempts, c.envelope.addresses(dec.left), dec.cause, dec.due, dec.doubt)
	case c.unrecorded(): // it was no message of the outbox
	case dec.outcome == sent:
		d.metrics.ended.WithLabelValues(resultSent).Inc()
	case dec.outcome == failed || dec.outcome == dropped:
		d.metrics.ended.WithLabelValues(resultFailed).Inc()
	}
}

// references returns the references of a message that a relay accepted (see Lookup), as finish.lua takes
// them. A message to several recipients has one more, under its own id: their hashes (see Addressed.Went).
func (d *Delivery) references(c *claim, dec decision) string {
	if d.opts.KeepReferences == 0 || len(dec.sent) == 0 {
		return ""
	}
	var names []string
	if _, _, ours := MessageOf(c.envelope.MessageID); !ours {
		names = append(names, referenceHash(c.envelope.MessageID))
	}
	host, _, err := net.SplitHostPort(dec.host)
	if err != nil {
		host = dec.host
	}
	if n, known := provider.OfRelay(host); known {
		for _, i := range dec.sent {
			reference := provider.Reference(n, provider.AnsweredID(n, dec.status.Recipients[i].Response))
			if hash := referenceHash(reference); reference != "" && !slices.Contains(names, hash) {
				names = append(names, hash)
			}
		}
	}
	var out []string
	if len(names) > 0 {
		proof, stay := d.proof(c.id, c.envelope.Account, c.envelope.To), int(d.opts.KeepReferences.Seconds())
		for _, name := range names {
			out = append(out, fmt.Sprintf("%s %s %d", name, proof, stay))
		}
	}
	if len(c.envelope.To) > 1 {
		out = append(out, fmt.Sprintf("%s %s %d", referenceHash(c.id), recipientHashes(c.id, c.envelope),
			int(recipientsStay.Seconds())))
	}
	return strings.Join(out, " ")
}
