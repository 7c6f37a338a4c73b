package alerts

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// OverviewParts are what an Overview needs. All are required.
type OverviewParts struct {
	// From the outbox
	Rates       func(ctx context.Context, q api.RatesQuery) (api.Rates, error)
	Messages    func(ctx context.Context, q api.LogQuery) (api.LogPage, error)
	List        func(ctx context.Context, q api.OutboxQuery) (api.OutboxPage, error)
	QueueStatus func(ctx context.Context, queue string) (api.QueueStatus, error)

	Account       func(ctx context.Context, id string) (api.AccountInfo, error)
	Troubled      func(ctx context.Context) ([]string, error) // ids of refused accounts, longest refused first
	Gateways      func(ctx context.Context, page, pageSize int) (api.GatewayPage, error)
	Endpoints     func(ctx context.Context, page, pageSize int) (api.EndpointPage, error)
	Endpoint      func(ctx context.Context, id string) (api.Endpoint, error) // NotFound: there is none
	EndpointStats func(ctx context.Context, id string, hours int) (api.EndpointStats, error)

	// Alerts lists the current problems, oldest first. With an error it returns what this process knows.
	Alerts func(ctx context.Context) ([]api.Alert, error)
}

// OverviewOptions are the settings. The zero value works.
type OverviewOptions struct {
	Late time.Duration    // age of the transactional queue from which on mail is late; defaults to 5 minutes
	Now  func() time.Time // the clock, for tests; defaults to time.Now
}

// Overview gathers what operators have to know. It is safe for concurrent use.
type Overview struct {
	OverviewParts
	now  func() time.Time
	late time.Duration

	mu       sync.Mutex
	alerting int       // alerts that were on at asked
	asked    time.Time // when they were last counted; zero means never
}

// NewOverview returns an Overview. It does no I/O.
func NewOverview(parts OverviewParts, o OverviewOptions) (*Overview, error) {
	if err := complete(parts); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Overview{OverviewParts: parts, now: o.Now, late: cmp.Or(o.Late, late)}, nil
}

// Of returns the overview of an account, or of the instance for "". days is the period: 1, 7 or 30; zero
// means 1. Other numbers are Invalid.
func (o *Overview) Of(ctx context.Context, account string, days int) (api.Overview, error) {
	now := o.now().UTC()
	days = cmp.Or(days, 1)
	step := steps[days]
	if step == 0 {
		return api.Overview{}, fault.InvalidField("days", "must be 1, 7 or 30")
	}
	out := api.Overview{Account: account, Time: now, Days: days, From: begin(now, days, step),
		Alerts: []api.OverviewAlert{}, Troubles: []api.OverviewTrouble{}}
	for _, gather := range []func(context.Context, *api.Overview) error{
		o.count, o.queues, o.flow, o.failures, o.troubles, o.alerts,
	} {
		if err := gather(ctx, &out); err != nil {
			return api.Overview{}, err
		}
	}
	return out, nil
}

const (
	alertingFor      = time.Second            // how long a number of alerts is used
	alertingPatience = 500 * time.Millisecond // every page waits for it
)

// Alerting returns how many alerts of the instance are on, up to a second old. If they can't be read, it
// returns how many this process knows of.
func (o *Overview) Alerting(ctx context.Context) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked.IsZero() || o.now().Sub(o.asked) >= alertingFor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alertingPatience)
		defer cancel()
		known, _ := o.Alerts(ctx) // with an error, what this process knows
		o.alerting, o.asked = len(known), o.now()
	}
	return o.alerting
}

// alerts fills in the alerts of the instance. An account has none.
func (o *Overview) alerts(ctx context.Context, out *api.Overview) error {
	if out.Account != "" {
		return nil
	}
	on, err := o.Alerts(ctx)
	for _, a := range on {
		out.Alerts = append(out.Alerts, explain(a))
	}
	return err
}
