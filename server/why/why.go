package why

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox"
)

// Log is the email log; outbox.Reader implements it.
type Log interface {
	To(ctx context.Context, w outbox.Whom, most int) (found []api.LoggedMessage, partial bool, _ error)
	Message(ctx context.Context, id string) (api.LoggedMessage, error)
	MessageEvents(ctx context.Context, id string) (api.MessageEvents, error)
	Get(ctx context.Context, id string) (api.OutboxMessage, error)
}

// Source is a place that knows something of an address, other than the email log.
type Source struct {
	Name string // as the answer names it if it can't be asked
	// Read adds what the place knows of the address, in one account or in all. NotFound: there is no such place.
	Read func(ctx context.Context, w outbox.Whom, into *Known) error
}

// Known is the data about an address, apart from its messages.
type Known struct {
	Indexed      []api.FoundMessage // messages that the search index has, newest first
	Suppressions []api.Suppression
	Subscribers  []api.Subscriber
	Campaigns    []api.PersonalCampaign
	Digests      []api.WhyReader
}

// Parts are what a Why needs. Log and Account are required.
type Parts struct {
	Log         Log
	QueueStatus func(ctx context.Context, name string) (api.QueueStatus, error)
	Sources     []Source
	// Account returns an account with its state.
	Account func(ctx context.Context, id string) (api.AccountInfo, error)
	// Deliveries returns the webhook deliveries for an account's events; nil if there are no webhooks.
	Deliveries func(ctx context.Context, account string, bound bool, events []string) (api.MessageDeliveries,
		error)
}

// Options are the settings. The zero value works.
type Options struct {
	KeepLog  time.Duration         // how long the email log keeps messages, to say so; zero if not said
	Patience time.Duration         // how long each source may take; defaults to 10 s
	Registry prometheus.Registerer // nil means no metrics
	Logger   *slog.Logger          // nil means no log
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
}

// Why says why addresses did or did not get their mail. It is safe for concurrent use.
type Why struct {
	Parts
	opts    Options
	log     *slog.Logger
	metrics *metrics
}

// New returns a Why. It does no I/O.
func New(parts Parts, o Options) (*Why, error) {
	if parts.Log == nil || parts.Account == nil {
		return nil, errors.New("new why: a part is missing")
	}
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Why{Parts: parts, opts: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		metrics: newMetrics(o.Registry, parts.Sources)}, nil
}

// question is one question, with its data so far.
type question struct {
	outbox.Whom
	bound  bool // the caller sees this account only
	named  string
	now    time.Time
	keeps  time.Duration
	answer api.Why
	Known
	events map[string][]string        // ids of the events of each message
	held   map[string]api.AccountInfo // accounts whose mail waits
	paused map[string]bool            // queues that are paused
	others bool                       // the message that was asked about is not to the address
	blind  bool                       // the email log could not be asked
}

// To says why an address did or did not get its mail, within the account of a bound caller, or returns
// Invalid. If a source fails, that isn't an error: the answer names it.
func (y *Why) To(ctx context.Context, bound, address string, in api.WhyQuery) (api.Why, error) {
	if bound != "" && in.Account != "" && in.Account != bound {
		return api.Why{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	traces, err := message.NewTraces(address)
	if err != nil {
		return api.Why{}, fault.InvalidField("address", "%s", err)
	}
	q := &question{Whom: outbox.Whom{Traces: traces, Account: cmp.Or(bound, in.Account)}, bound: bound != "",
		named: in.Message, now: y.opts.Now(), keeps: y.opts.KeepLog, events: map[string][]string{}}
	q.answer = api.Why{Address: q.Address(), Account: q.Account, Message: in.Message,
		Findings: []api.WhyFinding{}, Unasked: []api.WhyUnasked{}, Messages: []api.WhyMessage{}}
	for _, source := range y.Sources {
		y.ask(ctx, q, source.Name, func(ctx context.Context) error { return source.Read(ctx, q.Whom, &q.Known) })
	}
	y.ask(ctx, q, sourceLog, func(ctx context.Context) error { return y.messages(ctx, q) })
	y.ask(ctx, q, sourceWebhooks, func(ctx context.Context) error { return y.deliveries(ctx, q) })
	y.ask(ctx, q, sourceAccounts, func(ctx context.Context) error { return y.accounts(ctx, q) })
	y.ask(ctx, q, sourceQueues, func(ctx context.Context) error { return y.queues(ctx, q) })
	if err := ctx.Err(); err != nil {
		return api.Why{}, err
	}
	q.keep()
	q.judge()
	y.metrics.answers.WithLabelValues(q.answer.Arrived).Inc()
	return q.answer, nil
}

// The names of the sources that are no [Source].
const (
	sourceLog      = "email log"
	sourceWebhooks = "webhooks"
	sourceAccounts = "accounts"
	sourceQueues   = "queues"
)

// ask asks one source. Its failure becomes part of the answer. The log names no address, and the error of a
// source may: it is logged at debug only.
func (y *Why) ask(ctx context.Context, q *question, name string, read func(context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, y.opts.Patience)
	defer cancel()
	err := read(limited)
	if err == nil || fault.Is(err, fault.NotFound) {
		return
	}
	q.blind = q.blind || name == sourceLog
	y.metrics.unasked.WithLabelValues(name).Inc()
	y.log.WarnContext(ctx, "a question about an address was answered without a source", "source", name)
	y.log.DebugContext(ctx, "a source could not be asked", "source", name, "error", err)
	q.answer.Unasked = append(q.answer.Unasked, api.WhyUnasked{Source: name, Error: words(err)})
}

// words returns an error for callers. Only errors that were made for callers are shown in full.
func words(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal && e.Message != "" {
		return e.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "It didn't respond in time"
	}
	return "It is unavailable. Postroom's log has more at level debug"
}

// keep puts the data about the address into the answer.
func (q *question) keep() {
	a := &q.answer
	a.Suppressions, a.Subscribers, a.Campaigns = q.Suppressions, q.Subscribers, q.Campaigns
	a.Digests = q.Digests
}
