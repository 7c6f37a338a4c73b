package routing

import (
	"context"
	"slices"

	"github.com/postroom/postroom/smtpsend"
)

// merge puts the results of several tries together, recipient by recipient.
type merge struct {
	original smtpsend.Message
	left     []int           // recipients nobody has judged yet, as indexes into original.To
	result   smtpsend.Result // lists all recipients
	begun    bool            // result holds a try
	noted    bool            // and something that was not tried
}

func newMerge(m smtpsend.Message) merge {
	g := merge{original: m, left: make([]int, len(m.To))}
	g.result.Recipients = make([]smtpsend.RecipientResult, len(m.To))
	for i, to := range m.To {
		g.left[i] = i
		g.result.Recipients[i].Address = to
	}
	return g
}

// done reports whether every recipient was judged. A message to nobody is judged by the first relay.
func (g *merge) done() bool { return g.begun && len(g.left) == 0 }

// message is the message to those left. What was judged before is told along whenever the sender tells of an answer.
func (g *merge) message() smtpsend.Message {
	m := g.original
	if len(g.left) == len(m.To) {
		return m
	}
	m.To = make([]string, len(g.left))
	for n, i := range g.left {
		m.To[n] = g.original.To[i]
	}
	if tell := g.original.Answered; tell != nil {
		before := g.judged()
		m.Answered = func(ctx context.Context, done []smtpsend.RecipientResult) error {
			return tell(ctx, append(slices.Clone(before), done...))
		}
	}
	return m
}

// judged lists what became of those who are not left.
func (g *merge) judged() []smtpsend.RecipientResult {
	var out []smtpsend.RecipientResult
	for i, r := range g.result.Recipients {
		if !slices.Contains(g.left, i) {
			out = append(out, r)
		}
	}
	return out
}

// add takes in what a try came to for those left.
func (g *merge) add(r smtpsend.Result) {
	var left []int
	changed := !g.begun
	for n, i := range g.left {
		got := r.Recipients[n]
		if got.Err != nil && elsewhere(got.Err) {
			left = append(left, i)
			if !better(got.Err, g.result.Recipients[i].Err) {
				continue
			}
		}
		g.result.Recipients[i], changed = got, true
	}
	if changed {
		all := g.result.Recipients
		g.result = r
		g.result.Recipients = all
	}
	g.begun, g.left = true, left
}

// elsewhere reports whether another relay may do better by a recipient. A relay that wants less mail from our network, and says so before
// it knows for whom, is no judge of the recipient either.
func elsewhere(e *smtpsend.Error) bool {
	return e.Elsewhere() || e.Phase == smtpsend.PhaseMail && e.Verdict == smtpsend.Throttle && e.Scope == smtpsend.ScopeDestination
}

// note takes in why a relay was not tried for those left.
func (g *merge) note(why *smtpsend.Error) {
	for _, i := range g.left {
		if r := &g.result.Recipients[i]; why != nil && better(why, r.Err) {
			r.Err, r.Response, g.noted = why, why.Line, true
		}
	}
}

// better reports whether a failure is more worth another attempt than the one known so far.
func better(e, known *smtpsend.Error) bool {
	return known == nil || known.Permanent() && !e.Permanent()
}

// err speaks for the whole message as smtpsend does: nil when somebody got it, else the failure most worth another attempt.
func (g *merge) err() error {
	var worst *smtpsend.Error
	for _, r := range g.result.Recipients {
		switch {
		case r.Err == nil:
			return nil
		case worst == nil, worst.Permanent() && !r.Err.Permanent(), !worst.InDoubt && r.Err.InDoubt:
			worst = r.Err
		}
	}
	if worst == nil {
		return nil
	}
	return worst
}
