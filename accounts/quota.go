package accounts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/telemetry"
)

// Quota is how much an account may have. Zero means any number.
type Quota struct {
	Messages     int // that wait
	Bytes        int // of templates
	PerDay       int // messages accepted in a day (UTC)
	Templates    int
	Suppressions int
	ImportSize   int // bytes of one import
	Subscribers  int
	Events       int // waiting for digests
	Requests     int // per minute with a token that is bound to the account and has no limit
}

// with returns the quota of an account: what its record says, and for the rest the settings.
func (q Quota) with(own *api.Quota) Quota {
	if own != nil {
		api.Patch(&q, *own)
	}
	return q
}

// quota checks the quota of an account.
func (f *faults) quota(q *api.Quota) {
	if q == nil {
		return
	}
	for _, field := range []struct {
		key   string
		value *int
	}{
		{"messages", q.Messages}, {"bytes", q.Bytes}, {"perDay", q.PerDay}, {"templates", q.Templates},
		{"suppressions", q.Suppressions}, {"importSize", q.ImportSize},
		{"subscribers", q.Subscribers}, {"events", q.Events}, {"requests", q.Requests},
	} {
		if field.value != nil && *field.value < 0 {
			f.Add("quota."+field.key, "must be 0 or more")
		}
	}
}

// Quota returns the quota of an account, even if its relays can't be used. An account that does not exist has
// none.
func (a *Accounts) Quota(ctx context.Context, id string) (Quota, error) {
	e, err := a.find(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return Quota{}, nil
	}
	return e.sender.Quota, err
}

// Excess is an amount that a quota has no room for.
type Excess struct {
	Quota   string // one of quotaNames
	Account string // whose quota it is; empty for a token's
	Token   string // id of the token; empty if it is the account's
	Limit   int
	Used    int
	More    int       // the requested amount
	Until   time.Time // when there is room again; zero if unknown
	Now     time.Time
}

// quotaNames are the quotas by their field in the API, with the things that they count.
var quotaNames = map[string]string{
	"messages": "messages waiting", "bytes": "bytes of messages waiting", "perDay": "messages accepted today",
	"templates": "templates", "suppressions": "suppressions", "importSize": "bytes in one import",
	"subscribers": "subscribers", "events": "events of digests waiting",
}

// Fault returns the client's error: Limited if waiting helps, TooLarge if it is more than the whole quota,
// and Forbidden if the account has to delete something first.
func (e Excess) Fault() *fault.Error {
	whose := fmt.Sprintf("account %q", e.Account)
	details := map[string]any{"quota": e.Quota, "limit": e.Limit, "used": e.Used}
	if e.Token != "" {
		whose, details["token"] = "this token", e.Token
	} else {
		details["account"] = e.Account
	}
	f := fault.New(fault.Limited, "QuotaExceeded", "The quota of %s is %d %s (%s)", whose, e.Limit,
		quotaNames[e.Quota], e.Quota)
	f.Details = details
	switch {
	case e.Quota == "importSize":
		f.Kind = fault.TooLarge
		f.Message += ", and this file has more: divide it"
		return f
	case e.Quota == "templates" || e.Quota == "suppressions" || e.Quota == "subscribers":
		f.Kind = fault.Forbidden
		f.Message += fmt.Sprintf(", and it has %d: there is no room for %d more until some are deleted", e.Used,
			e.More)
		return f
	case e.More > e.Limit:
		f.Kind = fault.TooLarge
		f.Message += fmt.Sprintf(", and this request needs %d. Nothing was queued; submit less per request", e.More)
		return f
	}
	f.Message += fmt.Sprintf(", and %d are used: there is no room for %d more", e.Used, e.More)
	if e.Until.IsZero() {
		if e.Quota == "events" {
			f.Message += " until some of them are sent or withdrawn"
			return f
		}
		f.Message += " until some of its mail has gone out"
		return f
	}
	details["until"] = e.Until.UTC().Format(time.RFC3339)
	f.Message += " until " + e.Until.UTC().Format(time.RFC3339)
	f.RetryAfter = max(e.Until.Sub(e.Now), time.Second)
	return f
}

// refusals counts and logs what quotas refuse.
type refusals struct {
	counts *prometheus.CounterVec
	log    *slog.Logger
	now    func() time.Time
	mu     sync.Mutex
	logged map[[3]string]time.Time // by quota and owner
}

// logAgain is how often the refusals of one quota are logged, and loggedMost how many quotas are remembered.
const (
	logAgain   = time.Minute
	loggedMost = 10_000
)

// Exceeded counts an excess, logs it once a minute, and returns the client's error.
func (r *refusals) Exceeded(ctx context.Context, e Excess) error {
	of := "account"
	if e.Token != "" {
		of = "token"
	}
	r.counts.WithLabelValues(e.Quota, of).Inc()
	if r.isNew([3]string{e.Quota, e.Account, e.Token}) {
		r.log.WarnContext(ctx, "quota exceeded", "quota", e.Quota, of, cmp.Or(e.Account, e.Token),
			"limit", e.Limit, "used", e.Used, "more", e.More)
	}
	return e.Fault()
}

// isNew reports whether a refusal must be logged.
func (r *refusals) isNew(key [3]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if last, ok := r.logged[key]; ok && now.Sub(last) < logAgain {
		return false
	}
	if len(r.logged) >= loggedMost {
		clear(r.logged)
	}
	r.logged[key] = now
	return true
}

// Room returns a function that checks a quota for something that other packages count, such as templates or
// subscribers. If the account has a limit, the function calls count for what it has and how much more it
// wants, and returns the error if there is no room.
func Room(a *Accounts, quota string) func(ctx context.Context, account string,
	count func() (used, more int, err error)) error {
	return func(ctx context.Context, account string, count func() (used, more int, err error)) error {
		q, err := a.Quota(ctx, account)
		most := map[string]int{"templates": q.Templates, "suppressions": q.Suppressions,
			"importSize": q.ImportSize, "subscribers": q.Subscribers, "events": q.Events}[quota]
		if err != nil || most == 0 {
			return err
		}
		used, more, err := count()
		if err != nil || used+more <= most || more == 0 {
			return err
		}
		return a.Exceeded(ctx, Excess{Quota: quota, Account: account, Limit: most, Used: used, More: more})
	}
}

// newRefusals makes the counter of refusals, with all its labels.
func newRefusals(o Options) *refusals {
	c := telemetry.MetricsOf(o.Registry).CountersBy("postroom_quota_refusals_total",
		"Requests and messages refused by a quota of an account or token; the log has one line a minute for each.", "quota", "of")
	for name := range quotaNames {
		c.WithLabelValues(name, "account")
	}
	for _, name := range []string{"messages", "bytes", "perDay"} {
		c.WithLabelValues(name, "token")
	}
	return &refusals{counts: c, log: o.Logger, now: o.Now, logged: map[[3]string]time.Time{}}
}
