package outbox

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
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
	case c.unrecorded(): // it was not a message of the outbox
	case dec.outcome == sent:
		d.metrics.ended.WithLabelValues(resultSent).Inc()
	case dec.outcome == failed || dec.outcome == dropped:
		d.metrics.ended.WithLabelValues(resultFailed).Inc()
	}
}

// The spans of a message contain no address, no subject and no relay's text, which often has addresses in it.
// A message without a trace, for example a campaign's, has no spans.

// trace begins the span of an attempt. It is of the trace of the submit, however long ago that was.
func (d *Delivery) trace(ctx context.Context, c *claim) (context.Context, *telemetry.Span) {
	ctx, span := d.opts.Traces.Child(d.opts.Traces.Continue(ctx, c.envelope.Trace), "attempt",
		telemetry.Internal)
	span.Set("postroom.message_id", c.id)
	span.Set("postroom.account", c.envelope.Account)
	span.Set("postroom.lane", string(c.lane))
	span.SetInt("postroom.recipients", len(c.envelope.To))
	return ctx, span
}

// tracedAttempt notes the result of an attempt.
func tracedAttempt(span *telemetry.Span, dec decision) {
	span.Set("postroom.outcome", string(dec.outcome))
	span.SetInt("postroom.attempt", dec.attempts)
	if dec.cause != nil {
		span.Fail(cmp.Or(dec.cause.Code, "error"))
	}
}

// tracedTries makes a span of each relay that was asked.
func (d *Delivery) tracedTries(ctx context.Context, tries []routing.Try) {
	for _, try := range tries {
		d.opts.Traces.Past(ctx, "relay", telemetry.Asks, try.Start, try.End, func(span *telemetry.Span) {
			span.Set("server.address", try.Host)
			span.Set("postroom.gateway", try.Gateway)
			span.Set("tls.protocol", try.Result.TLS)
			if code := try.Result.Code; code > 0 {
				span.SetInt("postroom.smtp_code", code)
			}
			took := try.Result.Timings
			for name, part := range map[string]time.Duration{"wait": took.Wait, "connect": took.Connect,
				"tls": took.TLS, "auth": took.Auth, "mail": took.Mail, "rcpt": took.Rcpt, "data": took.Data,
				"body": took.Body, "dot": took.Dot} {
				if part > 0 {
					span.SetInt("postroom."+name+"_us", int(part.Microseconds()))
				}
			}
			if try.Err != nil {
				se, _ := errors.AsType[*smtpsend.Error](try.Err)
				span.Fail(describe(try.Err, se).Code)
			}
		})
	}
}
