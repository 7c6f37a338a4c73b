package outbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/internal/traces"
	"github.com/postroom/postroom/smtpsend"
)

// The spans of a message. None has an address, a subject or the words of a relay, which often has addresses
// in them. A message without a trace, as that of a campaign, has no spans.

// trace begins the span of an attempt. It is of the trace of the submit, however long ago that was.
func (d *Delivery) trace(ctx context.Context, c *claim) (context.Context, *traces.Span) {
	ctx, span := d.opts.Traces.Child(d.opts.Traces.Continue(ctx, c.envelope.Trace), "attempt", traces.Internal)
	span.Set("postroom.message_id", c.id)
	span.Set("postroom.account", c.envelope.Account)
	span.Set("postroom.lane", string(c.lane))
	span.SetInt("postroom.recipients", len(c.envelope.To))
	return ctx, span
}

// tracedAttempt notes what came of an attempt.
func tracedAttempt(span *traces.Span, dec decision) {
	span.Set("postroom.outcome", string(dec.outcome))
	span.SetInt("postroom.attempt", dec.attempts)
	if dec.cause != nil {
		span.Fail(cmp.Or(dec.cause.Code, "error"))
	}
}

// tracedTries makes a span of each relay that was asked.
func (d *Delivery) tracedTries(ctx context.Context, tries []routing.Try) {
	for _, try := range tries {
		d.opts.Traces.Past(ctx, "relay", traces.Asks, try.Start, try.End, func(span *traces.Span) {
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
