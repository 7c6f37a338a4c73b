package app

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/documents"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/seal"
	"github.com/postroom/postroom/server"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/server/smtpd"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates"
	"github.com/postroom/postroom/watch"
	"github.com/postroom/postroom/webhooks"
)

// Options are what the command line knows and the settings don't.
type Options struct {
	Version string       // of Postroom; empty: "dev"
	Logger  *slog.Logger // nil: nothing is logged
}

// App is Postroom, built and ready to run.
type App struct {
	cfg     *config.Config
	log     *slog.Logger
	version string
	life    lifecycle
	metrics *prometheus.Registry
	creds   *config.Credentials

	db           *redisdb.DB
	ring         *seal.Ring
	signedTokens *signedtoken.Ring
	settings     *settings.Settings
	gateways     *gateways.Store
	accounts     *accounts.Accounts
	access       *access.Access
	oauth        *oauth.Tokens
	keys         *dkim.Keys
	stored       *templates.Templates
	tasks        *queue.Client
	control      *queue.Control
	limits       *limits.Limits
	sender       *smtpsend.Sender
	router       *routing.Router
	outbox       *outbox.Outbox
	webhooks     *webhooks.Webhooks
	suppressions *suppression.Store
	documents    *documents.Documents
	feedback     *feedback.Feedback
	tracking     *tracking.Tracking // nil where no HTTP is served
	watch        *watch.Watch
	server       *server.Server
	monitor      *server.Server // health and metrics apart from the API; nil: none
	working      atomic.Bool    // workers take tasks
	inlet        *smtpd.Inlet
	bounces      *feedback.Bounces
	unsubscribe  *unsubscribe.Service
	bounceInlet  *smtpd.Inlet // for mail that comes back; nil: none
}

// New builds Postroom from its settings. On an error everything opened so far is closed again.
func New(ctx context.Context, cfg *config.Config, o Options) (*App, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	a := &App{cfg: cfg, log: o.Logger, version: o.Version, metrics: prometheus.NewRegistry(), life: lifecycle{log: o.Logger}}
	a.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, build := range []func(context.Context) error{
		a.openRedis, a.openSecrets, a.buildStores, a.buildDelivery, a.buildWebhooks, a.buildDocuments, a.buildArchive, a.buildFeedback, a.buildTracking, a.buildUnsubscribe, a.buildBounces, a.buildWatch, a.buildMonitor, a.buildWorkers, a.buildServer, a.buildInlet, a.buildPages,
	} {
		if err := build(ctx); err != nil {
			return nil, errors.Join(err, a.life.close())
		}
	}
	return a, nil
}

// Run runs Postroom until ctx ends, stops it in order, and closes what New opened.
func (a *App) Run(ctx context.Context) error {
	preempt()
	a.announce()
	return errors.Join(a.life.run(ctx), a.life.close())
}

// URL is the address of the API and the pages; empty when this process serves none.
func (a *App) URL() string {
	if a.server == nil {
		return ""
	}
	return a.server.URL()
}

// Token is the admin token to begin with.
func (a *App) Token() string { return a.creds.Token.Reveal() }

func (a *App) openRedis(ctx context.Context) error {
	c := a.cfg
	workers := c.Workers.Submit + c.Workers.Bulk + c.Workers.Notify + c.Workers.Documents
	db, err := redisdb.Open(ctx, redisdb.Options{
		URL: c.Redis.URL.Reveal(), Partitions: c.Redis.Partitions, Dir: c.Data, Fsync: c.Redis.Fsync, PoolSize: workers + 100, Logger: a.log,
		WaitReplicas: c.Redis.WaitReplicas, WaitTimeout: c.Redis.WaitTimeout,
	})
	if err != nil {
		return err
	}
	a.db = db
	a.life.onStop("redis", db.Close)
	a.life.onRun("redis", db.Run)
	a.metrics.MustRegister(db.Collector())
	return nil
}

func (a *App) openSecrets(ctx context.Context) error {
	creds, err := config.Bootstrap(ctx, a.cfg)
	if err != nil {
		return err
	}
	a.creds = creds
	for _, w := range creds.Warnings {
		a.log.Warn("credentials", "warning", w)
	}
	if creds.FirstStart {
		a.log.Info("first start: secret and admin token made", "secret_file", creds.SecretFile, "token_file", creds.TokenFile)
	}
	a.ring, err = newRing(a.cfg, creds.Secret)
	return err
}

func (a *App) buildStores(context.Context) error {
	c := a.cfg
	var err error
	a.settings, err = settings.New(a.db, a.ring, settings.Options{
		ServiceURL: c.ServiceURL, DeliveryAttempts: c.Delivery.Attempts, QueueKeep: c.Delivery.QueueKeep,
		TrackOpens: c.Tracking.Opens, TrackClicks: c.Tracking.Clicks, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.life.onRun("settings", a.settings.Run)
	a.gateways, err = gateways.New(a.db, a.ring, gateways.Options{Logger: a.log})
	if err != nil {
		return err
	}
	a.life.onRun("gateways", a.gateways.Run)
	a.accounts, err = accounts.New(a.db, a.ring, a.gateways, accounts.Options{
		Default: defaultAccount(c), Hold: c.Delivery.AccountTrouble == "hold", Logger: a.log,
	})
	if err != nil {
		return err
	}
	if a.keys, err = dkim.NewKeys(a.db, a.ring, dkim.Options{}); err != nil {
		return err
	}
	a.stored, err = templates.New(a.db, previewers{a.settings, a.accounts}, templates.Options{
		Strict: c.Templates.Missing == "error", EscapedOnly: c.Templates.EscapedOnly, Max: c.Templates.Max,
	})
	if err != nil {
		return err
	}
	if a.signedTokens, err = newSignedTokens(a.ring); err != nil {
		return err
	}
	if err := a.openSuppressions(); err != nil {
		return err
	}
	if a.oauth, err = oauth.New(a.db, a.ring, oauth.Options{Logger: a.log}); err != nil {
		return err
	}
	a.life.onRun("access tokens of relays", a.oauth.Run)
	a.access, err = access.New(a.db, access.Options{Token: a.creds.Token.Reveal(), Logger: a.log})
	return err
}

func (a *App) buildWebhooks(context.Context) error {
	c := a.cfg
	signing, err := signingSecrets(c, a.ring)
	if err != nil {
		return err
	}
	a.webhooks, err = webhooks.New(a.db, a.tasks, a.control, a.ring, sources{a.settings, a.accounts}, webhooks.Options{
		Attempts: c.Webhooks.Attempts, Timeout: c.Webhooks.Timeout, Backoff: backoff(c), DisableAfter: orNever(c.Webhooks.DisableAfter),
		AllowPrivate: c.Webhooks.AllowPrivate, Secret: signing[0], OlderSecrets: signing[1:], Version: a.version, Logger: a.log, Metrics: a.metrics,
		Match: func(ctx context.Context, q string, ids []string) (map[string]bool, error) {
			return a.documents.Match(ctx, q, ids) // made after webhooks, which hear of it first
		},
	})
	if err != nil {
		return err
	}
	if a.works() {
		a.life.onRun("webhooks", a.webhooks.Run)
	}
	return nil
}

// takers is how many asynq servers take tasks off each lane. One asks for a task at a time, and a round trip takes longer the busier Redis is: six
// keep all workers at work, and cost an idle process next to nothing.
const takers = 6

// buildWorkers makes the pools of workers. Each lane has its own, so that bulk mail, however much of it waits, leaves the workers of
// transactional mail alone, and a slow webhook delays neither.
func (a *App) buildWorkers(context.Context) error {
	if !a.works() {
		return nil
	}
	c := a.cfg
	handlers := map[string]queue.Handler{outbox.TaskDeliver: a.outbox.Deliver, webhooks.TaskType: a.webhooks.Deliver}
	s, err := queue.NewServer(a.db.Client(), handlers, queue.ServerOptions{
		Pools: []queue.Pool{
			{Name: queue.Submit, Queues: a.lanes(queue.Submit), Workers: c.Workers.Submit, Servers: takers},
			{Name: queue.Bulk, Queues: a.lanes(queue.Bulk), Workers: c.Workers.Bulk, Servers: takers},
			{Name: queue.Notify, Queues: map[string]int{queue.Notify: 1}, Workers: c.Workers.Notify},
		},
		Keep: a.queueKeep, Grace: c.Shutdown.Grace, Logger: a.log, Metrics: a.metrics, Scripts: a.db.Shared(),
	})
	if err != nil {
		return err
	}
	a.life.onRun("workers", func(ctx context.Context) error {
		a.working.Store(true)
		defer context.AfterFunc(ctx, func() { a.working.Store(false) })()
		return s.Run(ctx)
	})
	return nil
}

func (a *App) buildServer(context.Context) error {
	if a.cfg.Role == "worker" {
		return nil
	}
	c := a.cfg
	s, err := server.New(server.Parts{
		Intake: a.outbox, Outbox: a.outbox, Queues: a.outbox, Accounts: accountStore{a.accounts, a.oauth}, Gateways: gatewayStore{a.gateways, a.oauth}, DomainKeys: a.keys, Templates: a.stored, Documents: a.documents,
		Verifier: verifier{a.router, a.accounts, a.gateways, a.oauth}, Access: a.access, Settings: a.settings, Webhooks: a.webhooks, Suppressions: a.suppressions, Feedback: a.feedback, Returns: a.bounces, Tracking: a.tracking, Unsubscribe: a.unsubscribe, State: a.state(),
	}, server.Options{
		Listen: c.HTTP.Listen, TLSCert: c.HTTP.TLS.Cert, TLSKey: c.HTTP.TLS.Key, Version: a.version, MaxMessage: int64(c.Message.MaxSize),
		GetUnsubscribes: c.Unsubscribe.GetUnsubscribes,
		Metrics:         a.metrics, MetricsApart: a.monitor != nil, Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.server = s
	a.life.onStop("http listener", s.Close)
	a.life.onRun("http", s.Run)
	return nil
}

// queueKeep is the setting of that name as it is now.
func (a *App) queueKeep() int { return a.settings.Current().QueueKeep }

// works says whether this process delivers.
func (a *App) works() bool { return a.cfg.Role != "api" }

// queueNames are all queues there are: each lane's, one for every partition, and the others.
func (a *App) queueNames() []string {
	names := []string{queue.Notify, queue.Documents}
	for _, lane := range []string{queue.Submit, queue.Bulk} {
		for name := range a.lanes(lane) {
			names = append(names, name)
		}
	}
	return names
}

// lanes are the queues of a lane, one for every partition, all of the same weight.
func (a *App) lanes(lane string) map[string]int {
	out := make(map[string]int, a.db.Partitions())
	for p := range a.db.Partitions() {
		out[queue.Lane(lane, p)] = 1
	}
	return out
}

// announce says at start where Postroom is to be found. What its Redis can lose is told by redisdb.
func (a *App) announce() {
	a.log.Info("postroom runs", "version", a.version, "role", a.cfg.Role, "url", a.URL(), "monitor", a.MonitorURL(), "redis", a.db.Mode(), "data", a.cfg.Data)
}

// defaultAccount is the account that the settings smtp and from describe; nil without smtp.
func defaultAccount(c *config.Config) *api.Account {
	if c.SMTP.Host == "" {
		return nil
	}
	return &api.Account{Account: accounts.DefaultID, Name: c.From.Name, Email: c.From.Address, SMTP: SMTPServer(c.SMTP)}
}

// SMTPServer puts a relay, as its URL in the settings says, into the words of the API. Its password is not masked.
func SMTPServer(r config.Relay) *api.SMTPServer {
	verify := !r.Insecure
	s := &api.SMTPServer{Host: r.Host, Port: r.Port, Secure: r.Implicit, TLS: &api.SMTPTLS{RejectUnauthorized: &verify, StartTLS: r.StartTLS}}
	if r.User != "" {
		s.Auth = &api.SMTPAuth{User: r.User, Pass: r.Pass.Reveal()}
	}
	return s
}

// backoff is how long attempts wait, for mail and webhooks alike.
func backoff(c *config.Config) queue.Backoff {
	r := c.Delivery.Retry
	return queue.Backoff{Base: r.Base, Factor: r.Factor, Jitter: r.Jitter, Max: r.Max, Schedule: r.Schedule}
}

// orNone turns the zero of a retention, which keeps nothing, into what outbox takes for it.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// orNever turns the zero of webhooks.disableAfter, which never disables, into a time that does not come.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return math.MaxInt64
	}
	return d
}
