package app

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// buildDelivery builds everything between a due message and its relay.
func (a *App) buildDelivery(context.Context) error {
	c := a.cfg
	a.tasks = queue.NewClient(a.db.Client(), queue.Options{Keep: a.queueKeep})
	a.control = queue.NewControl(a.db.Client())
	a.metrics.MustRegister(queue.NewCollector(a.control, queueNames(a.db)...))
	if err := a.buildRouting(); err != nil {
		return err
	}
	var err error
	a.outbox, err = outbox.New(outbox.Parts{
		DB: a.db, Queue: a.tasks, Control: a.control, Router: a.router, Accounts: a.accounts, Gateways: a.gateways,
		Signer: dkim.NewSigner(a.keys), Templates: a.stored, Suppressions: a.suppressions, Tokens: a.signedTokens,
		Ring:      a.ring,
		Reports:   a.reports,
		Campaign:  func(ctx context.Context, id string) (outbox.Turn, error) { return a.campaigns.Turn(ctx, id) },
		MayReplay: func(ctx context.Context, id string) error { return a.campaigns.MayReplay(ctx, id) },
		Kept: func(ctx context.Context, account string) (subscribers, events int, err error) {
			subscribers, errSubscribers := a.audience.Count(ctx, account)
			events, err = a.digests.CountEvents(ctx, account)
			return subscribers, events, errors.Join(errSubscribers, err)
		},
	}, outbox.Options{
		Traces:     a.traces,
		ServiceURL: func() string { return a.settings.Current().ServiceURL },
		Track: func() (opens, clicks bool) {
			v := a.settings.Current()
			return v.TrackOpens, v.TrackClicks
		},
		Archived: archives(c), RefuseSuppressed: c.Suppression.Refuse, BounceDomain: c.Bounce.Domain,
		OwnReturnPaths: c.Bounce.OwnReturnPaths,
		StrictWords:    c.Templates.Missing == "error",
		Attempts:       func() int { return a.settings.Current().DeliveryAttempts }, Backoff: backoff(c),
		Lease:       c.Delivery.Lease,
		Window:      max(c.Workers.Submit, c.Workers.Bulk) * 5 / 4,
		Seal:        c.Storage.Seal,
		HoldInDoubt: c.Delivery.InDoubt == "hold", ReportWait: c.Delivery.ReportWait,
		MaxSize: int(c.Message.MaxSize), MaxAhead: c.Message.MaxAhead,
		MaxLive:        c.Outbox.MaxLive,
		MaxMemoryShare: c.Redis.MaxMemoryShare, KeyRetention: c.Idempotency.Retention,
		RequireKey: c.Idempotency.Required, Senders: c.Senders.Enforce,
		KeepDeadLetters: orNone(c.DeadLetters.Retention),
		MaxDeadLetters:  c.DeadLetters.Max, KeepEnded: orNone(c.Messages.Retention), MaxEnded: c.Messages.Max,
		KeepContent: c.Outbox.KeepContent,
		KeepText:    keepText(c.Documents), KeepReferences: c.Feedback.Window,
		ReportedBy: a.reportedBy(), Logger: a.log, Registry: a.metrics,
	})
	if err != nil {
		return err
	}
	a.life.onRun("outbox", a.outbox.Run)
	return nil
}

// reports reports whether a relay's provider reports the results of messages by webhook.
func (a *App) reports(ctx context.Context, r gateways.Relay) bool {
	if apisend.Known(r.Type) {
		info, err := a.gateways.Get(ctx, r.Gateway)
		if err == nil && info.Webhook != nil && info.Webhook.State == api.HookOK {
			return true
		}
	}
	name := provider.Name(r.Type)
	switch {
	case r.Type == api.GatewayHTTP:
		name = provider.Generic
	case r.IsSMTP():
		name, _ = provider.OfRelay(r.SMTP.Host)
	}
	return len(providerSecrets(a.cfg.Feedback.Providers)[name]) > 0
}

// reportedBy returns whether somebody may report about a gateway's messages, so that they must be found by
// foreign ids: any gateway if webhooks of providers or bounces are set up, else gateways with an API.
func (a *App) reportedBy() func(ctx context.Context, gateway string) bool {
	c := a.cfg
	b := c.Bounce
	if b != (config.Bounce{MaxConnections: b.MaxConnections, OwnReturnPaths: b.OwnReturnPaths}) ||
		c.Feedback.Providers != (config.Providers{}) {
		return nil
	}
	return func(ctx context.Context, gateway string) bool {
		if gateway == "" {
			return false
		}
		relay, err := a.gateways.Resolve(ctx, gateway)
		return err == nil && apisend.Known(relay.Type)
	}
}

// buildRouting builds the path of a message to a relay: connections, their limits, and the choice of relay.
func (a *App) buildRouting() error {
	var err error
	a.limits, err = limits.New(a.db, limits.Options{Logger: a.log, Registry: a.metrics})
	if err != nil {
		return err
	}
	a.life.onRun("limits", a.limits.Run)
	a.sender, err = smtpsend.New(smtpsend.Options{
		Timeout: a.cfg.Delivery.Timeout, Classifier: a.cfg.Delivery.Classifier, Admit: admission{a.limits}.admit,
		Guard: a.guard, Registry: a.metrics, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.life.onStop("smtp connections", func() error { a.sender.Close(); return nil })
	a.life.onRun("smtp connections", a.sender.Run)
	a.apiSender, err = apisend.New(apisend.Options{Timeout: a.cfg.Delivery.Timeout, Guard: a.guard,
		Admit: admission{a.limits}.admitRequest, Registry: a.metrics, Logger: a.log})
	if err != nil {
		return err
	}
	a.life.onStop("connections to APIs", func() error { a.apiSender.Close(); return nil })
	direct, err := a.buildDirect()
	if err != nil {
		return err
	}
	a.router, err = routing.New(routing.Parts{Transports: routing.NewTransports(a.sender, a.apiSender, direct),
		Limits: a.limits, Token: a.oauth.Access, Gateways: a.gateways, Group: direct.Group},
		routing.Options{Logger: a.log, Registry: a.metrics, Untested: max(1, a.cfg.Workers.Submit/2)})
	if err != nil {
		return err
	}
	a.life.onRun("relays", a.router.Run)
	return nil
}

// buildDirect builds direct delivery. It has its own connections: hosts of recipients are often dead, and
// must not be waited for as long as a relay.
func (a *App) buildDirect() (*mxsend.Sender, error) {
	sender, err := smtpsend.New(smtpsend.Options{Timeout: a.cfg.Delivery.Timeout,
		ConnectTimeout: 10 * time.Second, Classifier: a.cfg.Delivery.Classifier, Guard: a.guard, Logger: a.log})
	if err != nil {
		return nil, err
	}
	a.life.onStop("connections to recipients' servers", func() error { sender.Close(); return nil })
	a.life.onRun("connections to recipients' servers", sender.Run)
	resolver, err := maildns.NewClient(maildns.ClientOptions{Servers: a.cfg.DNS.Addresses(),
		Trusted: a.cfg.DNS.Trusted})
	if err != nil { // this machine names no name servers; one may listen here
		a.log.Debug("name servers not found", "error", err)
		resolver, err = maildns.NewClient(maildns.ClientOptions{Servers: []string{"127.0.0.1:53"}})
	}
	if err != nil {
		return nil, err
	}
	return mxsend.New(mxsend.Options{SMTP: sender, Resolver: resolver, HTTP: a.guard.Client(dialing.HTTP{}),
		Policies: gateways.NewPolicies(a.db), Port: a.cfg.Delivery.DirectPort, Logger: a.log, Registry: a.metrics})
}

// resolver looks up the DNS records of sender domains.
func (a *App) resolver() *net.Resolver { return maildns.NewResolver(a.cfg.DNS.Addresses()) }

// admission counts the connections to a relay across all processes.
type admission struct{ limits *limits.Limits }

// If all connections are taken, a message asks again before it returns to the queue. The queue retries it
// only after a second or two, and a connection may be free much sooner. admitOften limits the cost.
const (
	admitOften = 2
	admitEvery = 100 * time.Millisecond
)

func (a admission) admit(ctx context.Context, relay smtpsend.Relay) (release func(), err error) {
	return a.connect(ctx, relay.Shared, relay.Connections)
}

// admitRequest counts the requests under way at an API in the same way.
func (a admission) admitRequest(ctx context.Context, t apisend.Target) (release func(), err error) {
	return a.connect(ctx, t.Shared, t.Connections)
}

func (a admission) connect(ctx context.Context, scope string, most int) (release func(), err error) {
	for n := 1; ; n++ {
		release, err = a.limits.Connect(ctx, scope, most)
		if _, full := errors.AsType[*limits.Full](err); !full || n == admitOften {
			return release, err
		}
		select {
		case <-time.After(admitEvery/2 + rand.N(admitEvery)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
