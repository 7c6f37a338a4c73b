package feedback

import (
	"context"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

// countLast is the time of the last fact, in Unix milliseconds.
const countLast = "last"

// isTime reports whether a count is a time: the latest time counts, not the sum.
func isTime(name string) bool { return strings.HasSuffix(name, ":"+countLast) }

// Status returns the facts by source and outcome since counting began, and the state of the inbox and the
// reconciliation.
func (f *Feedback) Status(ctx context.Context) (api.FeedbackStatus, error) {
	c, err := f.keys.counted(ctx)
	if err != nil {
		return api.FeedbackStatus{}, err
	}
	s := api.FeedbackStatus{
		Inbox: api.FeedbackInbox{
			Urgent: c.streams[urgent], Deliveries: c.streams[deliveries], Hits: c.streams[hits], Waiting: c.waiting,
			Max: f.opts.MaxFacts,
		},
		Sources: []api.FeedbackSource{},
	}
	for _, name := range Sources() {
		_, configured := f.verifiers[provider.Name(name)]
		count := func(what string) int64 { return c.values[name+":"+what] }
		one := api.FeedbackSource{
			Source: name, Configured: configured, Received: count(countReceived), Applied: count(string(applied)),
			Duplicates: count(string(duplicate)),
			Unknown:    count(string(unknown)), Full: count(string(full)), Failed: count(string(failed)),
			Last: known(redisdb.Time(count(countLast))),
		}
		if configured || one.Received > 0 {
			s.Sources = append(s.Sources, one)
		}
	}
	s.Reconciliation, err = f.reconciliation(ctx)
	return s, err
}

// reconciliation returns the state of each source.
func (f *Feedback) reconciliation(ctx context.Context) ([]api.FeedbackReconciliation, error) {
	all := []api.FeedbackReconciliation{}
	if f.opts.Sources == nil {
		return all, nil
	}
	sources, err := f.opts.Sources(ctx)
	for _, source := range sources {
		p, err := f.keys.progress(ctx, source.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, api.FeedbackReconciliation{Source: source.Name(), Position: known(p.Position),
			Ran: known(p.Ran), Events: p.Events, Broken: p.Broken, Error: p.Error, Note: p.Note})
	}
	return all, err
}

// known returns nil for the zero time, so that JSON omits it.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
