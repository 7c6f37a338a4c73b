package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
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
	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/server"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/alerts"
	"github.com/postroom/postroom/server/erasure"
	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/server/provision"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/server/smtpd"
	"github.com/postroom/postroom/server/why"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/ui"
	"github.com/postroom/postroom/webhooks"
)

// Options are the inputs that the settings don't have.
type Options struct {
	Version string       // of Postroom; empty: "dev"
	Logger  *slog.Logger // nil if nothing is logged
	Demo    *ui.Demo     // nil if this isn't a demo
	// Configuration is the settings with their sources, secrets masked, for the API and the pages. If nil, they
	// are not shown.
	Configuration []config.Row
}

// App is a built Postroom, ready to run.
type App struct {
	cfg        *config.Config
	log        *slog.Logger
	version    string
	demo       *ui.Demo
	life       lifecycle
	metrics    *prometheus.Registry
	traces     *telemetry.Tracer // nil if off
	creds      *config.Credentials
	configured []api.ConfiguredSetting
	proxies    *peers.Proxies // those in front of the listeners

	delivers bool // this process handles tasks
	serves   bool // this process has the API and the other listeners

	db           *redisdb.DB
	ring         *seal.Ring
	signedTokens *signedtoken.Ring
	settings     *settings.Settings
	guard        *dialing.Guard // judges what accounts, gateways and messages name
	gateways     *gateways.Store
	accounts     *accounts.Accounts
	people       *people.People
	access       *access.Access
	audit        *audit.Log
	oauth        *oauth.Tokens
	keys         *dkim.Keys
	stored       *templates.Templates
	tasks        *queue.Client
	control      *queue.Control
	limits       *limits.Limits
	sender       *smtpsend.Sender
	apiSender    *apisend.Sender
	apiAdmin     *apiadmin.Client
	router       *routing.Router
	outbox       *outbox.Outbox
	verifying    sync.Map // see verifier
	webhooks     *webhooks.Webhooks
	suppressions *suppression.Store
	provider     *suppression.Providers
	audience     *audience.Subscribers
	optIn        *audience.Confirmations
	campaigns    *newsletter.Campaigns
	digests      *digest.Digests
	documents    *search.Documents
	erasures     *erasure.Erasures
	why          *why.Why
	overview     *alerts.Overview
	feedback     *feedback.Feedback
	tracking     *tracking.Tracking // nil where no HTTP is served
	watch        *alerts.Watch
	server       *server.Server
	monitor      *server.Server // health and metrics separate from the API; nil if none
	working      atomic.Bool    // workers handle tasks
	inlet        *smtpd.Inlet
	bounces      *feedback.Bounces
	unsubscribe  *unsubscribe.Service
	senders      *senders.Proofs
	bounceInlet  *smtpd.Inlet // for returned mail; nil if none
}

// New builds Postroom from its settings. On an error it closes everything opened so far.
func New(ctx context.Context, cfg *config.Config, o Options) (*App, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Version = cmp.Or(o.Version, "dev")
	a := newApp(cfg, o.Version, o.Logger)
	a.demo = o.Demo
	for _, r := range o.Configuration {
		a.configured = append(a.configured, api.ConfiguredSetting(r))
	}
	a.metrics.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, build := range []func(context.Context) error{
		func(ctx context.Context) error { return lookAtPorts(ctx, a.cfg, a.serves) }, // before anything is made
		a.buildTraces,     // spans to a collector; closed last
		a.openRedis,       // connects, or starts a Redis of our own
		a.openSecrets,     // the instance secret and the admin token; created at the first start
		a.buildStores,     // user data: settings, gateways, accounts, templates, suppressions, tokens
		a.buildAudience,   // lists and their subscribers
		a.buildDelivery,   // queues, connections to relays, and the outbox
		a.buildOptIn,      // mails that ask people to confirm subscriptions
		a.buildCampaigns,  // campaigns, and the workers that send them
		a.buildDigests,    // notifications, collected and sent
		a.buildWebhooks,   // events to endpoints
		a.buildDocuments,  // events to the search index
		a.buildErasures,   // people's data erased everywhere
		a.buildWhy,        // why mail did not arrive
		a.buildArchive,    // events to files or a column store
		a.buildFeedback,   // results that arrive later: from providers and returned mail
		a.buildRecipients, // links in mail: tracking, unsubscribe pages
		a.buildWatch,      // alerts and the overview: whether mail flows, and current problems
		a.buildMonitor,    // health and metrics on a separate port
		a.buildWorkers,    // from here on tasks are handled
		a.buildServer,     // the HTTP API
		a.buildInlet,      // SMTP in
		a.buildPages,      // the operator's pages
	} {
		if err := build(ctx); err != nil {
			return nil, errors.Join(err, a.life.close())
		}
	}
	return a, nil
}

func newApp(cfg *config.Config, version string, log *slog.Logger) *App {
	return &App{
		cfg: cfg, log: log, version: version, metrics: prometheus.NewRegistry(), life: lifecycle{log: log},
		proxies:  peers.New(cfg.HTTP.TrustedProxies, log),
		delivers: cfg.Role != "api", serves: cfg.Role != "worker",
	}
}

// Run runs Postroom until ctx ends, stops the parts in order, and closes what New opened.
func (a *App) Run(ctx context.Context) error {
	preempt()
	collectLess()
	a.log.Info("postroom runs", "version", a.version, "role", a.cfg.Role, "url", a.URL(), "monitor",
		a.Addrs().Monitor, "redis", a.db.Mode(), "data", a.cfg.Data)
	return errors.Join(a.life.run(ctx), a.life.close())
}

// URL returns the address of the API and the pages; empty if this process serves none.
func (a *App) URL() string {
	if a.server == nil {
		return ""
	}
	return a.server.URL()
}

// Addrs are the addresses of the listeners other than the API. Each is empty if this process has no such
// listener.
type Addrs struct {
	Monitor            string // URL of health and metrics separate from the API
	SMTP, SMTPS        string // host:port of the inlet; SMTPS has TLS from the first byte
	Bounce, BounceLMTP string // addresses of the bounce listeners: host:port; LMTP may be a path
}

// Addrs returns the addresses of the listeners other than the API.
func (a *App) Addrs() (addrs Addrs) {
	if a.monitor != nil {
		addrs.Monitor = a.monitor.URL()
	}
	if a.inlet != nil {
		addrs.SMTP, addrs.SMTPS = a.inlet.Addr(), a.inlet.AddrTLS()
	}
	if a.bounceInlet != nil {
		addrs.Bounce, addrs.BounceLMTP = a.bounceInlet.Addr(), a.bounceInlet.AddrLMTP()
	}
	return addrs
}

// Token returns the initial admin token.
func (a *App) Token() string { return a.creds.Token.Reveal() }

// FirstLink returns a one-time link that makes the first admin, at the first start of all; otherwise "".
func (a *App) FirstLink(ctx context.Context) (string, error) {
	if a.server == nil || !a.creds.FirstStart {
		return "", nil
	}
	secret, err := a.people.FirstLink(ctx, time.Now())
	if secret == "" || err != nil {
		return "", err
	}
	return server.LinkURL(cmp.Or(a.settings.Current().ServiceURL, a.URL()), secret), nil
}

// lookAtPorts reports an address that another program uses.
func lookAtPorts(ctx context.Context, c *config.Config, serves bool) error {
	listeners := map[string]string{"monitor.listen": c.Monitor.Listen}
	if serves {
		listeners["http.listen"], listeners["bounce.listen"] = c.HTTP.Listen, c.Bounce.Listen
		listeners["smtpd.listen"], listeners["smtpd.listenTls"] = c.SMTPD.Listen, c.SMTPD.ListenTLS
	}
	for setting, address := range listeners {
		if address == "" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		_ = listener.Close() // no one has connected
	}
	return nil
}

func (a *App) openRedis(ctx context.Context) error {
	c := a.cfg
	workers := c.Workers.Submit + c.Workers.Bulk + c.Workers.Notify + c.Workers.Documents
	db, err := redisdb.Open(ctx, redisdb.Options{
		URL: c.Redis.URL.Reveal(), Partitions: c.Redis.Partitions, Dir: c.Data, Fsync: c.Redis.Fsync,
		MaxMemory: a.maxMemory(), PoolSize: workers + 100, Logger: a.log,
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
		a.log.Info("first start: secret and admin token made", "secret_file", creds.SecretFile, "token_file",
			creds.TokenFile)
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
	a.guard = dialing.New(dialing.Options{AllowPrivate: c.Relays.AllowPrivate, Setting: "relays.allowPrivate",
		Logger: a.log})
	if a.gateways, err = gateways.New(a.db, a.ring, gateways.Options{Guard: a.guard, InUse: inUse(a),
		ServiceURL: func() string { return a.settings.Current().ServiceURL }, Logger: a.log}); err != nil {
		return err
	}
	a.life.onRun("gateways", a.gateways.Run)
	a.accounts, err = accounts.New(a.db, a.ring, a.gateways, accounts.Options{
		Default: defaultAccount(c), Hold: c.Delivery.AccountTrouble == "hold", Logger: a.log,
		AddressOnly: c.Senders.Own == "address", InUse: inUse(a), Quota: quota(c.Quotas), Registry: a.metrics,
		LookUpTXT: a.resolver().LookupTXT})
	if err != nil {
		return err
	}
	if a.keys, err = dkim.NewKeys(a.db, a.ring, dkim.Options{}); err != nil {
		return err
	}
	a.stored, err = templates.New(a.db, previewers{a.settings, a.accounts}, templates.Options{
		Strict: c.Templates.Missing == "error", EscapedOnly: c.Templates.EscapedOnly, Max: c.Templates.Max,
		Room: accounts.Room(a.accounts, "templates"), InUse: inUse(a)})
	if err != nil {
		return err
	}
	if a.signedTokens, err = newSignedTokens(a.ring); err != nil {
		return err
	}
	if a.suppressions, err = newSuppressions(a); err != nil {
		return err
	}
	a.life.onRun("suppressions", a.suppressions.Run)
	if a.oauth, err = oauth.New(a.db, a.ring, oauth.Options{Guard: a.guard, Logger: a.log}); err != nil {
		return err
	}
	a.life.onRun("access tokens of relays", a.oauth.Run)
	a.audit, err = audit.New(a.db, a.ring, audit.Options{Retention: c.Audit.Retention, Max: c.Audit.Max,
		Logger: a.log, Registry: a.metrics})
	if err != nil {
		return err
	}
	if a.serves {
		a.life.onRun("audit log", a.audit.Run)
	}
	if a.people, err = people.New(a.db, a.ring, people.Options{Logger: a.log}); err != nil {
		return err
	}
	a.access, err = access.New(a.db, a.ring, access.Options{Token: a.creds.Token.Reveal(), People: a.people,
		SessionTTL: c.Sessions.Lifetime, Requests: requestsOf(a), Logger: a.log})
	return err
}

// takers is the number of asynq servers that take tasks from each lane. Each asks for one task at a time, and
// a round trip takes longer the busier Redis is. Six keep all workers busy. In an idle process they cost next
// to nothing.
const takers = 6

// buildWorkers builds the worker pools. Each lane has its own pool: a backlog of bulk mail does not take the
// workers of transactional mail, and a slow webhook delays neither.
func (a *App) buildWorkers(context.Context) error {
	if !a.delivers {
		return nil
	}
	c := a.cfg
	handlers := map[string]queue.Handler{outbox.TaskDeliver: a.outbox.Delivery.Deliver,
		webhooks.TaskType: a.webhooks.Deliver, webhooks.ReplayTaskType: a.webhooks.ContinueReplay}
	take := a.outbox.Delivery.Take
	if !a.db.Together() {
		take = nil
	}
	s, err := queue.NewServer(a.db.Client(), handlers, queue.ServerOptions{
		Pools: []queue.Pool{
			{Name: queue.Submit, Queues: spread(queue.Submit, a.db), Workers: c.Workers.Submit, Servers: takers,
				Take: take},
			{Name: queue.Bulk, Queues: spread(queue.Bulk, a.db), Workers: c.Workers.Bulk, Servers: takers, Take: take},
			{Name: queue.Notify, Queues: map[string]int{queue.Notify: 1}, Workers: c.Workers.Notify},
		},
		Keep: a.queueKeep, KeepBuried: c.DeadLetters.Retention == 0, Grace: c.Shutdown.Grace, Logger: a.log,
		Metrics: a.metrics, Scripts: a.db.Shared(), Looks: a.db.Looks(),
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
	if !a.serves {
		return nil
	}
	c := a.cfg
	s, err := server.New(a.serverParts(), server.Options{
		Listen: c.HTTP.Listen, TLSCert: c.HTTP.TLS.Cert, TLSKey: c.HTTP.TLS.Key, Version: a.version,
		Proxies: a.proxies, ProxyProtocol: c.HTTP.ProxyProtocol,
		Connections: c.HTTP.MaxConnections, ConnectionsPerAddress: c.HTTP.MaxConnectionsPerAddress,
		BodyMemory: int64(c.HTTP.BodyMemory), PublicBodyMemory: int64(c.HTTP.PublicBodyMemory),
		MinRate: int64(c.HTTP.MinRate), WrongProofs: c.HTTP.MaxWrongProofs,
		FormsPerMinute:  c.Newsletter.FormPerMinute,
		MaxMessage:      int64(c.Message.MaxSize),
		HSTS:            c.HTTP.HSTS,
		GetUnsubscribes: c.Unsubscribe.GetUnsubscribes,
		Configuration:   a.configured,
		Metrics:         a.metrics, MetricsApart: a.monitor != nil, Logger: a.log, Traces: a.traces,
	})
	if err != nil {
		return err
	}
	a.server = s
	a.life.onStop("http listener", s.Close)
	a.life.onRun("http", s.Run)
	return nil
}

func (a *App) serverParts() server.Parts {
	return server.Parts{
		Submit: a.outbox.Intake.Submit, Outbox: a.outbox, Accounts: a.accounts, Gateways: a.gateways,
		OAuth: a.oauth, DomainKeys: a.keys, Templates: a.stored, Documents: a.documents,
		Login: verifier{a.router, a.accounts, a.gateways, a.oauth, &a.verifying}.Verify, Access: a.access,
		Admin: a.apiAdmin,
		DNS: &provision.DNS{Resolver: a.resolver(), Keys: a.keys, BounceDomain: a.cfg.Bounce.Domain,
			ServiceURL: func() string { return a.settings.Current().ServiceURL }},
		People: a.people, Settings: a.settings, Webhooks: a.webhooks, Suppressions: a.suppressions,
		Provider: a.provider,
		Audience: a.audience, OptIn: a.optIn, Campaigns: a.campaigns, Digests: a.digests,
		Feedback: a.feedback, Bounces: a.bounces, Tracking: a.tracking, Unsubscribe: a.unsubscribe,
		Senders: a.senders, Erasures: a.erasures, Why: a.why, Overview: a.overview,
		Audit: a.audit, State: a.state(),
	}
}

// queueKeep returns how many done tasks of a queue stay visible: the current setting of that name, divided
// among the partitions of a lane.
func (a *App) queueKeep(name string) int {
	n := a.settings.Current().QueueKeep
	if name == queue.Notify || name == queue.Documents {
		return n
	}
	return (n + a.db.Partitions() - 1) / a.db.Partitions()
}

func queueNames(db *redisdb.DB) []string {
	return slices.Concat([]string{queue.Notify, queue.Documents},
		slices.Collect(maps.Keys(spread(queue.Submit, db))), slices.Collect(maps.Keys(spread(queue.Bulk, db))))
}

// spread returns the queues of a lane, one per partition, all with the same weight.
func spread(lane string, db *redisdb.DB) map[string]int {
	out := make(map[string]int, db.Partitions())
	for p := range db.Partitions() {
		out[queue.Lane(lane, p)] = 1
	}
	return out
}

// defaultAccount returns the account that the settings smtp and from describe; nil without smtp.
func defaultAccount(c *config.Config) *api.Account {
	if c.SMTP.Host == "" {
		return nil
	}
	return &api.Account{Account: accounts.DefaultID, Name: c.From.Name, Email: c.From.Address,
		SMTP: SMTPServer(c.SMTP)}
}

// SMTPServer returns a relay URL of the settings as an API type. Its password is not masked.
func SMTPServer(r config.Relay) *api.SMTPServer {
	verify := !r.Insecure
	s := &api.SMTPServer{Host: r.Host, Port: r.Port, Secure: r.Implicit, TLS: &api.SMTPTLS{
		RejectUnauthorized: &verify, StartTLS: r.StartTLS}}
	if r.User != "" {
		s.Auth = &api.SMTPAuth{User: r.User, Pass: r.Pass.Reveal()}
	}
	return s
}

// backoff returns the wait between attempts, for mail and webhooks.
func backoff(c *config.Config) queue.Backoff {
	r := c.Delivery.Retry
	return queue.Backoff{Base: r.Base, Factor: r.Factor, Jitter: r.Jitter, Max: r.Max, Schedule: r.Schedule}
}

// orNone returns d, or -1 for 0. A retention of 0 in the settings keeps nothing; package outbox expects -1
// for that.
func orNone(d time.Duration) time.Duration { return cmp.Or(d, -1) }

// orNever returns d, or the longest duration for 0. A webhooks.disableAfter of 0 never disables.
func orNever(d time.Duration) time.Duration { return cmp.Or(d, math.MaxInt64) }
