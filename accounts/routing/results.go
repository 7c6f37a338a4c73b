package routing

import (
	"context"
	"slices"

	"github.com/postroom/postroom/smtpsend"
)

// results joins the results of several tries, recipient by recipient.
type results struct {
	original smtpsend.Message
	tries    []Try
	left     []int           // recipients that no relay has judged yet, as indexes into original.To
	result   smtpsend.Result // lists all recipients
	begun    bool            // result holds a try
	noted    bool            // and something that was not tried
}

func newResults(m smtpsend.Message) results {
	r := results{original: m, left: make([]int, len(m.To))}
	r.result.Recipients = make([]smtpsend.RecipientResult, len(m.To))
	for i, to := range m.To {
		r.left[i] = i
		r.result.Recipients[i].Address = to
	}
	return r
}

// done reports whether every recipient was judged. A message without recipients is judged by the first relay.
func (r *results) done() bool { return r.begun && len(r.left) == 0 }

// message returns the message to the recipients left. Its Answered also gets the results before.
func (r *results) message() smtpsend.Message {
	m := r.original
	if len(r.left) == len(m.To) {
		return m
	}
	m.To = make([]string, len(r.left))
	for n, i := range r.left {
		m.To[n] = r.original.To[i]
	}
	if answered := r.original.Answered; answered != nil {
		before := r.judged()
		m.Answered = func(ctx context.Context, done []smtpsend.RecipientResult) error {
			return answered(ctx, append(slices.Clone(before), done...))
		}
	}
	return m
}

// judged returns the results of the recipients that are not left.
func (r *results) judged() []smtpsend.RecipientResult {
	var out []smtpsend.RecipientResult
	for i, got := range r.result.Recipients {
		if !slices.Contains(r.left, i) {
			out = append(out, got)
		}
	}
	return out
}

// add adds the result of a try to the recipients left.
func (r *results) add(t Try) {
	r.tries = append(r.tries, t)
	try := t.Result
	var left []int
	changed := !r.begun
	for n, i := range r.left {
		got := try.Recipients[n]
		if got.Err != nil && elsewhere(got.Err) {
			left = append(left, i)
			if !better(got.Err, r.result.Recipients[i].Err) {
				continue
			}
		}
		r.result.Recipients[i], changed = got, true
	}
	if changed {
		all := r.result.Recipients
		r.result = try
		r.result.Recipients = all
	}
	r.begun, r.left = true, left
}

// elsewhere reports whether another relay may accept a recipient. If a relay asks our network for less mail
// before it knows the recipient, it does not judge the recipient either.
func elsewhere(e *smtpsend.Error) bool {
	return e.Elsewhere() || e.Phase == smtpsend.PhaseMail && e.Verdict == smtpsend.Throttle &&
		e.Scope == smtpsend.ScopeDestination
}

// note adds the reason why a relay was not tried for the recipients left.
func (r *results) note(why *smtpsend.Error) {
	for _, i := range r.left {
		if got := &r.result.Recipients[i]; why != nil && better(why, got.Err) {
			got.Err, got.Response, r.noted = why, why.Line, true
		}
	}
}

// better reports whether a failure is more worth another attempt than the one known so far.
func better(e, known *smtpsend.Error) bool {
	return known == nil || known.Permanent() && !e.Permanent()
}
