package apisend

import (
	"context"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// alone sends a request that only the caller waits for.
func (d *delivery) alone(ctx context.Context, q request, g group) sent {
	begun := time.Now()
	leave, failure := d.s.enter(ctx, d.t, d.m.Message)
	if failure != nil {
		return sent{wait: time.Since(begun), unsent: failure}
	}
	defer leave()
	waited := time.Since(begun)
	out := d.s.deliver(ctx, d.t, q, g, func(bool) func(context.Context) error {
		return marksOf(d.m.Message, g.all())
	})
	out.wait = waited
	return out
}

// deliver sends a request with its marks. It sends it once more over another connection if the first one had
// ended, and repeats it with its key if it is in doubt.
func (s *Sender) deliver(ctx context.Context, t Target, q request, g group, marks marking) sent {
	out := s.try(ctx, t, q, g, marks(false))
	if out.reused && out.err != nil && ctx.Err() == nil {
		out = s.try(ctx, t, q, g, marks(false)) // the connection had ended before
	}
	if q.key != "" && out.inDoubt(q) {
		out = s.repeat(ctx, t, q, g, marks, out)
	}
	return out
}

// doubtWaits are the waits before a request in doubt is repeated with its key.
var doubtWaits = []time.Duration{0, time.Second, 5 * time.Second}

// marking returns the function to call before the last byte leaves, for a repeated or the first request.
type marking func(repeated bool) func(context.Context) error

// repeat repeats a request in doubt with its key until an answer settles the doubt. A later attempt can do so
// for a message that is alone in its request.
func (s *Sender) repeat(ctx context.Context, t Target, q request, g group, marks marking, doubt sent) sent {
	for _, pause := range doubtWaits {
		if !s.o.Wait(ctx, pause) {
			break
		}
		s.metrics.repeats.Inc()
		if again := s.try(ctx, t, q, g, marks(true)); again.settles(q) {
			return again
		}
	}
	if doubt.err == nil {
		doubt.err, doubt.x = doubt.x.doubt(doubt.x.strange()), nil
	}
	if !q.list {
		doubt.err.Remembered = adapters[t.Type].remembers
	}
	return doubt
}

// said returns what the answer to a request means. An answer to a list has a meaning for each message.
func (o sent) said(q request) answer {
	if q.list && o.x.ok() {
		_, list := o.x.adapter.list.split(o.x)
		return answer{unreadable: !list}
	}
	return o.x.adapter.read(o.x)
}

// settles reports whether an answer shows the result of the request before it, which had the same key: the
// provider took it, or judges it now. An answer about the gateway doesn't.
func (o sent) settles(q request) bool {
	if o.err != nil {
		return false
	}
	a := o.said(q)
	if a.unreadable {
		return false
	}
	return a.refusal == nil || a.refusal.scope != smtpsend.ScopeAccount &&
		a.refusal.scope != smtpsend.ScopeConnection && a.refusal.verdict != smtpsend.Soft
}

// inDoubt reports whether it is not known if a request was taken.
func (o sent) inDoubt(q request) bool {
	if o.err != nil {
		return o.err.InDoubt
	}
	_, known := byStatus(o.x.status, false)
	return o.said(q).unreadable && !known
}
