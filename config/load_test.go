package config_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/config"
)

// write puts content into a file of the test and gives its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load fails the test when the settings are refused.
func load(t *testing.T, s config.Sources) *config.Loaded {
	t.Helper()
	l, err := config.Load(s)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return l
}

// faults loads settings that must be refused, and gives the problems as lines.
func faults(t *testing.T, s config.Sources) []string {
	t.Helper()
	_, err := config.Load(s)
	invalid, ok := errors.AsType[*config.Invalid](err)
	if !ok {
		t.Fatalf("Load gave %v, want faults", err)
	}
	var out []string
	for _, p := range invalid.Problems {
		out = append(out, p.String())
	}
	return out
}

// row finds one setting as it is shown.
func row(t *testing.T, l *config.Loaded, key string) config.Row {
	t.Helper()
	for _, r := range l.Rows() {
		if r.Key == key {
			return r
		}
	}
	t.Fatalf("no row for %s", key)
	return config.Row{}
}

func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	want := config.Config{
		HTTP: config.HTTP{Listen: "127.0.0.1:3000", HSTS: 8760 * time.Hour, MaxConnections: 4096,
			MaxConnectionsPerAddress: 256,
			BodyMemory:               256_000_000, PublicBodyMemory: 32_000_000, MinRate: 4000, MaxWrongProofs: 120},
		Redis: config.Redis{Fsync: "everysec", Partitions: 1, MaxMemory: config.Memory{Share: 0.5},
			MaxMemoryShare: 0.75, WaitTimeout: time.Second},
		Data:     "./data",
		Role:     "all",
		Workers:  config.Workers{Submit: 50, Bulk: 50, Notify: 50, Documents: 4, Digests: 8},
		Sessions: config.Sessions{Lifetime: 7 * 24 * time.Hour},
		Senders:  config.Senders{Enforce: "bound", Own: "domain"},
		Relays:   config.Relays{AllowPrivate: true},
		Message:  config.Message{MaxSize: 25_000_000, MaxAhead: 8760 * time.Hour},
		OIDC: config.OIDC{Name: "single sign-on", Scopes: "email, profile", NameClaim: "email",
			RoleClaim: "groups"},
		Templates:   config.Templates{Missing: "empty", Max: 10_000},
		DeadLetters: config.DeadLetters{Retention: 168 * time.Hour, Max: 100_000},
		Audit:       config.Audit{Retention: 8760 * time.Hour, Max: 100_000},
		Messages:    config.Messages{Retention: 168 * time.Hour, Max: 1_000_000},
		Idempotency: config.Idempotency{Retention: 168 * time.Hour},
		Newsletter: config.Newsletter{ConfirmExpiry: 168 * time.Hour, ConfirmPerDay: 3, FormPerMinute: 10,
			PendingRetention: 720 * time.Hour, InFlight: 10_000, Expire: 24 * time.Hour, InDoubt: "hold",
			HoldAfter: 500, HoldBounces: 0.05, HoldComplaints: 0.003, HoldFaults: 0.01},
		Traces: config.Traces{Share: 1},
		Digest: config.Digest{Mode: "daily", Hour: 8, Lane: "bulk", Gap: 5 * time.Minute, Cap: 50, CapCategory: 10,
			Keep: 1000, Retention: 2160 * time.Hour, Stagger: time.Hour, Grace: 15 * time.Minute, Attempts: 10,
			Failed: "return"},
		Documents: config.Documents{Store: "embedded", Index: "postroom", Text: 4000,
			Retention: 2160 * time.Hour},
		Webhooks: config.Webhooks{Attempts: 10, Timeout: 30 * time.Second, DisableAfter: 120 * time.Hour},
		Archive:  config.Archive{MaxSpool: 1_000_000_000},
		Tracking: config.Tracking{Expiry: 180 * 24 * time.Hour, StoreAddress: "masked"},
		Feedback: config.Feedback{Window: 30 * 24 * time.Hour, KeepRaw: true, Reconcile: config.Reconcile{
			Mailgun: config.ReconcileMailgun{BaseURL: "https://api.mailgun.net", Every: time.Hour}}},
		SMTPD: config.SMTPD{MaxRecipients: 1000, MaxConnections: 500, MaxConnectionsPerAddress: 50,
			IdleTimeout: 5 * time.Minute},
		Bounce: config.Bounce{MaxConnections: 200, MaxConnectionsPerAddress: 20, OwnReturnPaths: 100},
		Suppression: config.Suppression{Scope: "account", SoftBounces: 5, SoftWindow: 168 * time.Hour,
			SoftExpiry: 336 * time.Hour},
		Alerts: config.Alerts{
			Every: 15 * time.Second, QueueAge: 5 * time.Minute, BulkAge: 6 * time.Hour, Paused: time.Hour,
			RelayAway: 2 * time.Minute, DigestsLate: 10 * time.Minute,
			WebhookFailing: 10 * time.Minute,
			DeadLetters:    100, FailedShare: 0.5, BounceRate: 0.05, ComplaintRate: 0.001,
		},
		Log:      config.Log{Level: slog.LevelInfo, Format: "auto"},
		Shutdown: config.Shutdown{Grace: 30 * time.Second},
		Delivery: config.Delivery{
			Attempts: 10, Timeout: 120 * time.Second, Lease: 4 * time.Second, InDoubt: "resend",
			AccountTrouble: "fail", Classifier: "full", ReportWait: 2 * time.Minute, DirectPort: 25,
			Retry: config.Retry{Base: 5 * time.Second, Factor: 2, Jitter: 0.2},
		},
	}
	l := load(t, config.Sources{})
	if diff := cmp.Diff(want, l.Config); diff != "" {
		t.Error(diff)
	}
	if l.File != "" || l.Warnings != nil {
		t.Errorf("file %q, warnings %q, want none", l.File, l.Warnings)
	}
}

// TestNames holds the names that are documented and so can't change.
func TestNames(t *testing.T) {
	want := [][2]string{
		{"http.listen", "POSTROOM_HTTP_LISTEN"},
		{"http.tls.cert", "POSTROOM_HTTP_TLS_CERT"},
		{"http.tls.key", "POSTROOM_HTTP_TLS_KEY"},
		{"http.trustedProxies", "POSTROOM_HTTP_TRUSTED_PROXIES"},
		{"http.proxyProtocol", "POSTROOM_HTTP_PROXY_PROTOCOL"},
		{"http.hsts", "POSTROOM_HTTP_HSTS"},
		{"http.maxConnections", "POSTROOM_HTTP_MAX_CONNECTIONS"},
		{"http.maxConnectionsPerAddress", "POSTROOM_HTTP_MAX_CONNECTIONS_PER_ADDRESS"},
		{"http.bodyMemory", "POSTROOM_HTTP_BODY_MEMORY"},
		{"http.publicBodyMemory", "POSTROOM_HTTP_PUBLIC_BODY_MEMORY"},
		{"http.minRate", "POSTROOM_HTTP_MIN_RATE"},
		{"http.maxWrongProofs", "POSTROOM_HTTP_MAX_WRONG_PROOFS"},
		{"monitor.listen", "POSTROOM_MONITOR_LISTEN"},
		{"redis.url", "POSTROOM_REDIS_URL"},
		{"redis.fsync", "POSTROOM_REDIS_FSYNC"},
		{"redis.partitions", "POSTROOM_REDIS_PARTITIONS"},
		{"redis.waitReplicas", "POSTROOM_REDIS_WAIT_REPLICAS"},
		{"redis.waitTimeout", "POSTROOM_REDIS_WAIT_TIMEOUT"},
		{"redis.maxMemory", "POSTROOM_REDIS_MAX_MEMORY"},
		{"redis.maxMemoryShare", "POSTROOM_REDIS_MAX_MEMORY_SHARE"},
		{"outbox.keepContent", "POSTROOM_OUTBOX_KEEP_CONTENT"},
		{"outbox.maxLive", "POSTROOM_OUTBOX_MAX_LIVE"},
		{"data", "POSTROOM_DATA"},
		{"secret", "POSTROOM_SECRET"},
		{"secretPrevious", "POSTROOM_SECRET_PREVIOUS"},
		{"token", "POSTROOM_TOKEN"},
		{"serviceUrl", "POSTROOM_SERVICE_URL"},
		{"smtp", "POSTROOM_SMTP"},
		{"from", "POSTROOM_FROM"},
		{"role", "POSTROOM_ROLE"},
		{"workers.submit", "POSTROOM_WORKERS_SUBMIT"},
		{"workers.bulk", "POSTROOM_WORKERS_BULK"},
		{"workers.notify", "POSTROOM_WORKERS_NOTIFY"},
		{"workers.documents", "POSTROOM_WORKERS_DOCUMENTS"},
		{"workers.digests", "POSTROOM_WORKERS_DIGESTS"},
		{"sessions.lifetime", "POSTROOM_SESSIONS_LIFETIME"},
		{"oidc.issuer", "POSTROOM_OIDC_ISSUER"},
		{"oidc.clientId", "POSTROOM_OIDC_CLIENT_ID"},
		{"oidc.clientSecret", "POSTROOM_OIDC_CLIENT_SECRET"},
		{"oidc.name", "POSTROOM_OIDC_NAME"},
		{"oidc.scopes", "POSTROOM_OIDC_SCOPES"},
		{"oidc.nameClaim", "POSTROOM_OIDC_NAME_CLAIM"},
		{"oidc.roleClaim", "POSTROOM_OIDC_ROLE_CLAIM"},
		{"oidc.roles.admin", "POSTROOM_OIDC_ROLES_ADMIN"},
		{"oidc.roles.operator", "POSTROOM_OIDC_ROLES_OPERATOR"},
		{"oidc.roles.viewer", "POSTROOM_OIDC_ROLES_VIEWER"},
		{"senders.enforce", "POSTROOM_SENDERS_ENFORCE"},
		{"senders.own", "POSTROOM_SENDERS_OWN"},
		{"senders.mailAccount", "POSTROOM_SENDERS_MAIL_ACCOUNT"},
		{"relays.allowPrivate", "POSTROOM_RELAYS_ALLOW_PRIVATE"},
		{"delivery.attempts", "POSTROOM_DELIVERY_ATTEMPTS"},
		{"delivery.retry.base", "POSTROOM_DELIVERY_RETRY_BASE"},
		{"delivery.retry.factor", "POSTROOM_DELIVERY_RETRY_FACTOR"},
		{"delivery.retry.jitter", "POSTROOM_DELIVERY_RETRY_JITTER"},
		{"delivery.retry.max", "POSTROOM_DELIVERY_RETRY_MAX"},
		{"delivery.retry.schedule", "POSTROOM_DELIVERY_RETRY_SCHEDULE"},
		{"delivery.timeout", "POSTROOM_DELIVERY_TIMEOUT"},
		{"delivery.lease", "POSTROOM_DELIVERY_LEASE"},
		{"delivery.inDoubt", "POSTROOM_DELIVERY_IN_DOUBT"},
		{"delivery.reportWait", "POSTROOM_DELIVERY_REPORT_WAIT"},
		{"delivery.accountTrouble", "POSTROOM_DELIVERY_ACCOUNT_TROUBLE"},
		{"delivery.queueKeep", "POSTROOM_DELIVERY_QUEUE_KEEP"},
		{"delivery.directPort", "POSTROOM_DELIVERY_DIRECT_PORT"},
		{"delivery.classifier", "POSTROOM_DELIVERY_CLASSIFIER"},
		{"dns.servers", "POSTROOM_DNS_SERVERS"},
		{"dns.trusted", "POSTROOM_DNS_TRUSTED"},
		{"message.maxSize", "POSTROOM_MESSAGE_MAX_SIZE"},
		{"message.maxAhead", "POSTROOM_MESSAGE_MAX_AHEAD"},
		{"templates.missing", "POSTROOM_TEMPLATES_MISSING"},
		{"templates.escapedOnly", "POSTROOM_TEMPLATES_ESCAPED_ONLY"},
		{"templates.max", "POSTROOM_TEMPLATES_MAX"},
		{"deadLetters.retention", "POSTROOM_DEAD_LETTERS_RETENTION"},
		{"deadLetters.max", "POSTROOM_DEAD_LETTERS_MAX"},
		{"messages.retention", "POSTROOM_MESSAGES_RETENTION"},
		{"messages.max", "POSTROOM_MESSAGES_MAX"},
		{"idempotency.retention", "POSTROOM_IDEMPOTENCY_RETENTION"},
		{"idempotency.required", "POSTROOM_IDEMPOTENCY_REQUIRED"},
		{"storage.seal", "POSTROOM_STORAGE_SEAL"},
		{"quotas.messages", "POSTROOM_QUOTAS_MESSAGES"},
		{"quotas.bytes", "POSTROOM_QUOTAS_BYTES"},
		{"quotas.perDay", "POSTROOM_QUOTAS_PER_DAY"},
		{"quotas.templates", "POSTROOM_QUOTAS_TEMPLATES"},
		{"quotas.suppressions", "POSTROOM_QUOTAS_SUPPRESSIONS"},
		{"quotas.importSize", "POSTROOM_QUOTAS_IMPORT_SIZE"},
		{"quotas.subscribers", "POSTROOM_QUOTAS_SUBSCRIBERS"},
		{"quotas.events", "POSTROOM_QUOTAS_EVENTS"},
		{"quotas.requests", "POSTROOM_QUOTAS_REQUESTS"},
		{"newsletter.confirmExpiry", "POSTROOM_NEWSLETTER_CONFIRM_EXPIRY"},
		{"newsletter.confirmPerDay", "POSTROOM_NEWSLETTER_CONFIRM_PER_DAY"},
		{"newsletter.formPerMinute", "POSTROOM_NEWSLETTER_FORM_PER_MINUTE"},
		{"newsletter.pendingRetention", "POSTROOM_NEWSLETTER_PENDING_RETENTION"},
		{"newsletter.inFlight", "POSTROOM_NEWSLETTER_IN_FLIGHT"},
		{"newsletter.expire", "POSTROOM_NEWSLETTER_EXPIRE"},
		{"newsletter.inDoubt", "POSTROOM_NEWSLETTER_IN_DOUBT"},
		{"newsletter.holdAfter", "POSTROOM_NEWSLETTER_HOLD_AFTER"},
		{"newsletter.holdBounces", "POSTROOM_NEWSLETTER_HOLD_BOUNCES"},
		{"newsletter.holdComplaints", "POSTROOM_NEWSLETTER_HOLD_COMPLAINTS"},
		{"newsletter.holdFaults", "POSTROOM_NEWSLETTER_HOLD_FAULTS"},
		{"digest.mode", "POSTROOM_DIGEST_MODE"},
		{"digest.hour", "POSTROOM_DIGEST_HOUR"},
		{"digest.lane", "POSTROOM_DIGEST_LANE"},
		{"digest.gap", "POSTROOM_DIGEST_GAP"},
		{"digest.cap", "POSTROOM_DIGEST_CAP"},
		{"digest.capCategory", "POSTROOM_DIGEST_CAP_CATEGORY"},
		{"digest.keep", "POSTROOM_DIGEST_KEEP"},
		{"digest.retention", "POSTROOM_DIGEST_RETENTION"},
		{"digest.stagger", "POSTROOM_DIGEST_STAGGER"},
		{"digest.grace", "POSTROOM_DIGEST_GRACE"},
		{"digest.attempts", "POSTROOM_DIGEST_ATTEMPTS"},
		{"digest.failed", "POSTROOM_DIGEST_FAILED"},
		{"digest.threads", "POSTROOM_DIGEST_THREADS"},
		{"digest.feedUrl", "POSTROOM_DIGEST_FEED_URL"},
		{"traces.endpoint", "POSTROOM_TRACES_ENDPOINT"},
		{"traces.headers", "POSTROOM_TRACES_HEADERS"},
		{"traces.share", "POSTROOM_TRACES_SHARE"},
		{"documents.store", "POSTROOM_DOCUMENTS_STORE"},
		{"documents.url", "POSTROOM_DOCUMENTS_URL"},
		{"documents.index", "POSTROOM_DOCUMENTS_INDEX"},
		{"documents.text", "POSTROOM_DOCUMENTS_TEXT"},
		{"documents.retention", "POSTROOM_DOCUMENTS_RETENTION"},
		{"webhooks.allowPrivate", "POSTROOM_WEBHOOKS_ALLOW_PRIVATE"},
		{"webhooks.attempts", "POSTROOM_WEBHOOKS_ATTEMPTS"},
		{"webhooks.timeout", "POSTROOM_WEBHOOKS_TIMEOUT"},
		{"webhooks.disableAfter", "POSTROOM_WEBHOOKS_DISABLE_AFTER"},
		{"webhooks.signingSecret", "POSTROOM_WEBHOOKS_SIGNING_SECRET"},
		{"tracking.opens", "POSTROOM_TRACKING_OPENS"},
		{"tracking.clicks", "POSTROOM_TRACKING_CLICKS"},
		{"tracking.expiry", "POSTROOM_TRACKING_EXPIRY"},
		{"tracking.storeAddress", "POSTROOM_TRACKING_STORE_ADDRESS"},
		{"unsubscribe.getUnsubscribes", "POSTROOM_UNSUBSCRIBE_GET_UNSUBSCRIBES"},
		{"suppression.refuse", "POSTROOM_SUPPRESSION_REFUSE"},
		{"suppression.scope", "POSTROOM_SUPPRESSION_SCOPE"},
		{"suppression.hardBounceExpiry", "POSTROOM_SUPPRESSION_HARD_BOUNCE_EXPIRY"},
		{"suppression.complaintExpiry", "POSTROOM_SUPPRESSION_COMPLAINT_EXPIRY"},
		{"suppression.softBounces", "POSTROOM_SUPPRESSION_SOFT_BOUNCES"},
		{"suppression.softWindow", "POSTROOM_SUPPRESSION_SOFT_WINDOW"},
		{"suppression.softExpiry", "POSTROOM_SUPPRESSION_SOFT_EXPIRY"},
		{"feedback.window", "POSTROOM_FEEDBACK_WINDOW"},
		{"feedback.keepRaw", "POSTROOM_FEEDBACK_KEEP_RAW"},
		{"feedback.providers.ses", "POSTROOM_FEEDBACK_PROVIDERS_SES"},
		{"feedback.providers.sendgrid", "POSTROOM_FEEDBACK_PROVIDERS_SENDGRID"},
		{"feedback.providers.mailgun", "POSTROOM_FEEDBACK_PROVIDERS_MAILGUN"},
		{"feedback.providers.postmark", "POSTROOM_FEEDBACK_PROVIDERS_POSTMARK"},
		{"feedback.providers.mailjet", "POSTROOM_FEEDBACK_PROVIDERS_MAILJET"},
		{"feedback.providers.sparkpost", "POSTROOM_FEEDBACK_PROVIDERS_SPARKPOST"},
		{"feedback.providers.brevo", "POSTROOM_FEEDBACK_PROVIDERS_BREVO"},
		{"feedback.providers.resend", "POSTROOM_FEEDBACK_PROVIDERS_RESEND"},
		{"feedback.providers.postal", "POSTROOM_FEEDBACK_PROVIDERS_POSTAL"},
		{"feedback.providers.mandrill", "POSTROOM_FEEDBACK_PROVIDERS_MANDRILL"},
		{"feedback.providers.generic", "POSTROOM_FEEDBACK_PROVIDERS_GENERIC"},
		{"feedback.reconcile.mailgun.apiKey", "POSTROOM_FEEDBACK_RECONCILE_MAILGUN_API_KEY"},
		{"feedback.reconcile.mailgun.domain", "POSTROOM_FEEDBACK_RECONCILE_MAILGUN_DOMAIN"},
		{"feedback.reconcile.mailgun.baseUrl", "POSTROOM_FEEDBACK_RECONCILE_MAILGUN_BASE_URL"},
		{"feedback.reconcile.mailgun.every", "POSTROOM_FEEDBACK_RECONCILE_MAILGUN_EVERY"},
		{"archive.dir", "POSTROOM_ARCHIVE_DIR"},
		{"archive.url", "POSTROOM_ARCHIVE_URL"},
		{"archive.maxSpool", "POSTROOM_ARCHIVE_MAX_SPOOL"},
		{"smtpd.listen", "POSTROOM_SMTPD_LISTEN"},
		{"smtpd.listenTls", "POSTROOM_SMTPD_LISTEN_TLS"},
		{"smtpd.tls.cert", "POSTROOM_SMTPD_TLS_CERT"},
		{"smtpd.tls.key", "POSTROOM_SMTPD_TLS_KEY"},
		{"smtpd.hostname", "POSTROOM_SMTPD_HOSTNAME"},
		{"smtpd.insecureAuth", "POSTROOM_SMTPD_INSECURE_AUTH"},
		{"smtpd.proxyProtocol", "POSTROOM_SMTPD_PROXY_PROTOCOL"},
		{"smtpd.maxRecipients", "POSTROOM_SMTPD_MAX_RECIPIENTS"},
		{"smtpd.maxConnections", "POSTROOM_SMTPD_MAX_CONNECTIONS"},
		{"smtpd.maxConnectionsPerAddress", "POSTROOM_SMTPD_MAX_CONNECTIONS_PER_ADDRESS"},
		{"smtpd.idleTimeout", "POSTROOM_SMTPD_IDLE_TIMEOUT"},
		{"bounce.domain", "POSTROOM_BOUNCE_DOMAIN"},
		{"bounce.ownReturnPaths", "POSTROOM_BOUNCE_OWN_RETURN_PATHS"},
		{"bounce.address", "POSTROOM_BOUNCE_ADDRESS"},
		{"bounce.listen", "POSTROOM_BOUNCE_LISTEN"},
		{"bounce.lmtp", "POSTROOM_BOUNCE_LMTP"},
		{"bounce.hostname", "POSTROOM_BOUNCE_HOSTNAME"},
		{"bounce.proxyProtocol", "POSTROOM_BOUNCE_PROXY_PROTOCOL"},
		{"bounce.maxConnections", "POSTROOM_BOUNCE_MAX_CONNECTIONS"},
		{"bounce.maxConnectionsPerAddress", "POSTROOM_BOUNCE_MAX_CONNECTIONS_PER_ADDRESS"},
		{"alerts.every", "POSTROOM_ALERTS_EVERY"},
		{"alerts.queueAge", "POSTROOM_ALERTS_QUEUE_AGE"},
		{"alerts.bulkAge", "POSTROOM_ALERTS_BULK_AGE"},
		{"alerts.paused", "POSTROOM_ALERTS_PAUSED"},
		{"alerts.relayAway", "POSTROOM_ALERTS_RELAY_AWAY"},
		{"alerts.digestsLate", "POSTROOM_ALERTS_DIGESTS_LATE"},
		{"alerts.webhookFailing", "POSTROOM_ALERTS_WEBHOOK_FAILING"},
		{"alerts.deadLetters", "POSTROOM_ALERTS_DEAD_LETTERS"},
		{"alerts.failedShare", "POSTROOM_ALERTS_FAILED_SHARE"},
		{"alerts.bounceRate", "POSTROOM_ALERTS_BOUNCE_RATE"},
		{"alerts.complaintRate", "POSTROOM_ALERTS_COMPLAINT_RATE"},
		{"audit.retention", "POSTROOM_AUDIT_RETENTION"},
		{"audit.max", "POSTROOM_AUDIT_MAX"},
		{"log.level", "POSTROOM_LOG_LEVEL"},
		{"log.format", "POSTROOM_LOG_FORMAT"},
		{"shutdown.grace", "POSTROOM_SHUTDOWN_GRACE"},
	}
	var got [][2]string
	for _, k := range config.Keys() {
		got = append(got, [2]string{k.Path, k.Env})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// samples is a valid value of every setting, other than its default.
func samples() map[string]string {
	return map[string]string{
		"monitor.listen":      "127.0.0.1:3001",
		"http.trustedProxies": "127.0.0.1, 10.1.2.3/8, ::ffff:192.0.2.1, 2001:db8::/32",
		"http.proxyProtocol":  "true",
		"smtpd.proxyProtocol": "true", "bounce.proxyProtocol": "true",
		"http.listen": ":8080", "http.tls.cert": "cert.pem", "http.tls.key": "key.pem",
		"redis.url": "redis://db:6379/2", "redis.fsync": "always", "redis.partitions": "4",
		"redis.maxMemoryShare": "0.5", "redis.waitReplicas": "2", "redis.waitTimeout": "300ms",
		"outbox.maxLive": "7", "outbox.keepContent": "3h",
		"data": "elsewhere", "secret": strings.Repeat("s", 32), "secretPrevious": strings.Repeat("p", 32),
		"token": strings.Repeat("t", 16), "serviceUrl": "https://mail.example.com",
		"smtp": "smtp://relay.example.com:2525", "from": "Shop <shop@example.com>", "role": "worker",
		"sessions.lifetime": "48h", "http.hsts": "24h",
		"senders.enforce": "all", "senders.own": "address", "senders.mailAccount": "notices",
		"relays.allowPrivate": "false",
		"dns.servers":         "127.0.0.1, [2001:db8::53]:5353", "dns.trusted": "true",
		"delivery.directPort": "2525",
		"workers.submit":      "1", "workers.bulk": "2", "workers.notify": "3", "workers.documents": "5",
		"workers.digests": "6",
		"oidc.issuer":     "https://login.example.com/", "oidc.clientId": "mail",
		"oidc.clientSecret": "client secret",
		"oidc.name":         "Example", "oidc.scopes": "email, groups", "oidc.nameClaim": "upn",
		"oidc.roleClaim":   "roles",
		"oidc.roles.admin": "a, b", "oidc.roles.operator": "o", "oidc.roles.viewer": "v",
		"delivery.attempts": "3", "delivery.retry.base": "1s", "delivery.retry.factor": "3",
		"delivery.retry.jitter": "0", "delivery.retry.max": "1h",
		"delivery.retry.schedule": "1m, 5m", "delivery.timeout": "10s", "delivery.lease": "20s",
		"delivery.inDoubt": "hold", "delivery.accountTrouble": "hold",
		"delivery.reportWait": "90s",
		"delivery.queueKeep":  "100", "delivery.classifier": "basic", "message.maxSize": "10MiB",
		"message.maxAhead": "720h", "redis.maxMemory": "2GB",
		"templates.missing": "error", "templates.escapedOnly": "true", "templates.max": "50",
		"deadLetters.retention": "0", "deadLetters.max": "9", "messages.retention": "24h", "messages.max": "8",
		"idempotency.retention": "1h",
		"idempotency.required":  "true",
		"storage.seal":          "true",
		"quotas.messages":       "1000", "quotas.bytes": "1GB", "quotas.perDay": "5000", "quotas.templates": "60",
		"quotas.suppressions": "70000", "quotas.importSize": "8MB",
		"quotas.subscribers": "80000", "quotas.events": "90000", "quotas.requests": "600",
		"newsletter.confirmExpiry": "24h", "newsletter.confirmPerDay": "5", "newsletter.formPerMinute": "7",
		"newsletter.pendingRetention": "48h", "newsletter.inFlight": "200", "newsletter.expire": "2h",
		"newsletter.inDoubt": "resend", "newsletter.holdAfter": "50", "newsletter.holdBounces": "0.1",
		"newsletter.holdComplaints": "0.01", "newsletter.holdFaults": "0.2",
		"digest.mode": "weekly", "digest.hour": "0", "digest.lane": "transactional", "digest.gap": "0",
		"digest.cap": "40", "digest.capCategory": "5", "digest.keep": "100", "digest.retention": "24h",
		"digest.stagger": "0", "digest.grace": "1m", "digest.attempts": "3", "digest.failed": "drop",
		"digest.threads":  "true",
		"digest.feedUrl":  "https://app.example.com/feed?user={recipient}",
		"traces.endpoint": "http://127.0.0.1:4318", "traces.headers": "Authorization=Bearer x",
		"traces.share":    "0.5",
		"documents.store": "opensearch", "documents.url": "https://finder:pw@search.internal:9200",
		"documents.index": "mail-2", "documents.text": "1KB", "documents.retention": "0",
		"alerts.every": "2s", "alerts.queueAge": "1m", "alerts.bulkAge": "1h", "alerts.paused": "30m",
		"alerts.digestsLate": "4m", "alerts.webhookFailing": "6m",
		"alerts.deadLetters": "3", "alerts.failedShare": "0.25",
		"alerts.bounceRate": "0.02", "alerts.relayAway": "3m", "alerts.complaintRate": "0.002",
		"audit.retention": "48h", "audit.max": "5000",
		"webhooks.allowPrivate": "true", "webhooks.attempts": "2", "webhooks.timeout": "3s",
		"webhooks.disableAfter":  "0",
		"webhooks.signingSecret": strings.Repeat("w", 32),
		"tracking.opens":         "true", "tracking.clicks": "true", "tracking.expiry": "24h",
		"tracking.storeAddress":       "none",
		"unsubscribe.getUnsubscribes": "true",
		"feedback.keepRaw":            "false", "feedback.window": "48h",
		"feedback.providers.ses":      "arn:aws:sns:eu-west-1:123456789012:mail",
		"feedback.providers.sendgrid": "sendgrid key",
		"feedback.providers.mailgun":  "mailgun key", "feedback.providers.postmark": "postmark secret",
		"feedback.providers.mailjet":   "mailjet secret",
		"feedback.providers.sparkpost": "sparkpost secret", "feedback.providers.brevo": "brevo secret",
		"feedback.providers.resend": "whsec_resend",
		"feedback.providers.postal": "postal key", "feedback.providers.mandrill": "mandrill key",
		"feedback.providers.generic": "generic secret", "feedback.reconcile.mailgun.apiKey": "api key",
		"feedback.reconcile.mailgun.domain":  "mg.example.com",
		"feedback.reconcile.mailgun.baseUrl": "https://api.eu.mailgun.net",
		"feedback.reconcile.mailgun.every":   "30m",
		"suppression.refuse":                 "true", "suppression.scope": "instance",
		"suppression.hardBounceExpiry": "1h",
		"suppression.complaintExpiry":  "2h",
		"suppression.softBounces":      "3", "suppression.softWindow": "24h", "suppression.softExpiry": "48h",
		"bounce.ownReturnPaths": "20",
		"bounce.domain":         "bounce.example.com",
		"bounce.address":        "returns@example.com", "bounce.listen": ":25",
		"bounce.lmtp":     "/run/bounce.sock",
		"bounce.hostname": "mx.example.com", "bounce.maxConnections": "5",
		"bounce.maxConnectionsPerAddress": "4",
		"archive.dir":                     "events", "archive.url": "https://store.internal/",
		"archive.maxSpool": "2MB",
		"smtpd.listen":     "127.0.0.1:2525", "smtpd.listenTls": ":465", "smtpd.tls.cert": "cert.pem",
		"smtpd.tls.key":  "key.pem",
		"smtpd.hostname": "mail.example.com", "smtpd.insecureAuth": "true", "smtpd.maxRecipients": "50",
		"smtpd.maxConnections": "60", "smtpd.maxConnectionsPerAddress": "6", "http.maxConnections": "70",
		"http.maxConnectionsPerAddress": "7", "http.bodyMemory": "80MB", "http.publicBodyMemory": "8MB",
		"http.minRate": "9KB", "http.maxWrongProofs": "10",
		"smtpd.idleTimeout": "1m",
		"log.level":         "debug", "log.format": "json", "shutdown.grace": "1m",
	}
}

func sampled() config.Config {
	return config.Config{
		HTTP: config.HTTP{Listen: ":8080", HSTS: 24 * time.Hour, TLS: config.TLS{Cert: "cert.pem", Key: "key.pem"},
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8"),
				netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/32")}, ProxyProtocol: true,
			MaxConnections: 70, MaxConnectionsPerAddress: 7, BodyMemory: 80_000_000, PublicBodyMemory: 8_000_000,
			MinRate: 9000, MaxWrongProofs: 10},
		Monitor: config.Monitor{Listen: "127.0.0.1:3001"},
		Redis: config.Redis{URL: "redis://db:6379/2", Fsync: "always", Partitions: 4,
			MaxMemory: config.Memory{Size: 2_000_000_000}, MaxMemoryShare: 0.5,
			WaitReplicas: 2, WaitTimeout: 300 * time.Millisecond},
		Outbox:         config.Outbox{KeepContent: 3 * time.Hour, MaxLive: 7},
		Data:           "elsewhere",
		Secret:         config.Secret(strings.Repeat("s", 32)),
		SecretPrevious: config.Secret(strings.Repeat("p", 32)),
		Token:          config.Secret(strings.Repeat("t", 16)),
		ServiceURL:     "https://mail.example.com",
		SMTP:           config.Relay{Host: "relay.example.com", Port: 2525, StartTLS: "opportunistic"},
		From:           config.Mailbox{Name: "Shop", Address: "shop@example.com"},
		Role:           "worker",
		Workers:        config.Workers{Submit: 1, Bulk: 2, Notify: 3, Documents: 5, Digests: 6},
		Sessions:       config.Sessions{Lifetime: 48 * time.Hour},
		Senders:        config.Senders{Enforce: "all", Own: "address", MailAccount: "notices"},
		Message:        config.Message{MaxSize: 10 << 20, MaxAhead: 720 * time.Hour},
		Templates:      config.Templates{Missing: "error", EscapedOnly: true, Max: 50},
		DeadLetters:    config.DeadLetters{Max: 9},
		Messages:       config.Messages{Retention: 24 * time.Hour, Max: 8},
		Idempotency:    config.Idempotency{Retention: time.Hour, Required: true},
		Storage:        config.Storage{Seal: true},
		OIDC: config.OIDC{Issuer: "https://login.example.com/", ClientID: "mail", ClientSecret: "client secret",
			Name: "Example", Scopes: "email, groups", NameClaim: "upn", RoleClaim: "roles",
			Roles: config.OIDCRoles{Admin: "a, b", Operator: "o", Viewer: "v"}},
		Quotas: config.Quotas{Messages: 1000, Bytes: 1_000_000_000, PerDay: 5000, Templates: 60,
			Suppressions: 70_000, ImportSize: 8_000_000, Subscribers: 80_000,
			Events: 90_000, Requests: 600},
		Newsletter: config.Newsletter{ConfirmExpiry: 24 * time.Hour, ConfirmPerDay: 5, FormPerMinute: 7,
			PendingRetention: 48 * time.Hour, InFlight: 200, Expire: 2 * time.Hour, InDoubt: "resend", HoldAfter: 50,
			HoldBounces: 0.1, HoldComplaints: 0.01, HoldFaults: 0.2},
		Traces: config.Traces{Endpoint: "http://127.0.0.1:4318", Headers: "Authorization=Bearer x", Share: 0.5},
		Digest: config.Digest{Mode: "weekly", Lane: "transactional", Cap: 40, CapCategory: 5, Keep: 100,
			Retention: 24 * time.Hour, Grace: time.Minute, Attempts: 3, Failed: "drop",
			Threads: true, FeedURL: "https://app.example.com/feed?user={recipient}"},
		Documents: config.Documents{Store: "opensearch", URL: "https://finder:pw@search.internal:9200",
			Index: "mail-2", Text: 1000},
		Webhooks: config.Webhooks{AllowPrivate: true, Attempts: 2, Timeout: 3 * time.Second,
			SigningSecret: config.Secret(strings.Repeat("w", 32))},
		Tracking:    config.Tracking{Opens: true, Clicks: true, Expiry: 24 * time.Hour, StoreAddress: "none"},
		Unsubscribe: config.Unsubscribe{GetUnsubscribes: true},
		Feedback: config.Feedback{
			Window: 48 * time.Hour,
			Providers: config.Providers{
				SES: "arn:aws:sns:eu-west-1:123456789012:mail", SendGrid: "sendgrid key", Mailgun: "mailgun key",
				Postmark: "postmark secret",
				Mailjet:  "mailjet secret", SparkPost: "sparkpost secret", Brevo: "brevo secret", Resend: "whsec_resend",
				Postal: "postal key", Mandrill: "mandrill key", Generic: "generic secret",
			},
			Reconcile: config.Reconcile{Mailgun: config.ReconcileMailgun{
				APIKey: "api key", Domain: "mg.example.com", BaseURL: "https://api.eu.mailgun.net",
				Every: 30 * time.Minute,
			}},
		},
		Archive: config.Archive{Dir: "events", URL: "https://store.internal/", MaxSpool: 2_000_000},
		SMTPD: config.SMTPD{
			Listen: "127.0.0.1:2525", ListenTLS: ":465", TLS: config.SMTPDTLS{Cert: "cert.pem", Key: "key.pem"},
			Hostname:     "mail.example.com",
			InsecureAuth: true, ProxyProtocol: true, MaxRecipients: 50, MaxConnections: 60,
			MaxConnectionsPerAddress: 6, IdleTimeout: time.Minute,
		},
		Suppression: config.Suppression{
			Refuse: true, Scope: "instance", HardBounceExpiry: time.Hour, ComplaintExpiry: 2 * time.Hour,
			SoftBounces: 3, SoftWindow: 24 * time.Hour, SoftExpiry: 48 * time.Hour,
		},
		Bounce: config.Bounce{
			Domain: "bounce.example.com", Address: "returns@example.com", Listen: ":25", LMTP: "/run/bounce.sock",
			Hostname: "mx.example.com", ProxyProtocol: true, MaxConnections: 5, MaxConnectionsPerAddress: 4,
			OwnReturnPaths: 20,
		},
		Alerts: config.Alerts{Every: 2 * time.Second, QueueAge: time.Minute, BulkAge: time.Hour,
			Paused: 30 * time.Minute, RelayAway: 3 * time.Minute, DigestsLate: 4 * time.Minute,
			WebhookFailing: 6 * time.Minute, DeadLetters: 3,
			FailedShare: 0.25, BounceRate: 0.02, ComplaintRate: 0.002},
		Audit:    config.Audit{Retention: 48 * time.Hour, Max: 5000},
		Log:      config.Log{Level: slog.LevelDebug, Format: "json"},
		Shutdown: config.Shutdown{Grace: time.Minute},
		DNS: config.DNS{Trusted: true, Servers: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:53"),
			netip.MustParseAddrPort("[2001:db8::53]:5353")}},
		Delivery: config.Delivery{
			Attempts: 3, Timeout: 10 * time.Second, Lease: 20 * time.Second, InDoubt: "hold", AccountTrouble: "hold",
			ReportWait: 90 * time.Second, QueueKeep: 100, Classifier: "basic", DirectPort: 2525,
			Retry: config.Retry{
				Base: time.Second, Factor: 3, Max: time.Hour,
				Schedule: []time.Duration{time.Minute, 5 * time.Minute},
			},
		},
	}
}

// TestEverySettingFromEveryPlace sets all of them by each way in turn: a key that one way forgets shows its
// default.
func TestEverySettingFromEveryPlace(t *testing.T) {
	all := samples()
	var file strings.Builder
	var env, envFiles []string
	for _, k := range config.Keys() {
		text, ok := all[k.Path]
		if !ok {
			t.Fatalf("no sample for %s", k.Path)
		}
		file.WriteString(k.Path + ": " + quote(text) + "\n")
		env = append(env, k.Env+"="+text)
		envFiles = append(envFiles, k.Env+"_FILE="+write(t, "value", text+"\n"))
	}
	rows := map[string]config.Sources{
		"file":                 {File: write(t, "config.yaml", file.String())},
		"environment":          {Env: env},
		"files of environment": {Env: envFiles},
		"flags":                {Flags: all},
	}
	for name, sources := range rows {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(sampled(), load(t, sources).Config,
				cmpopts.EquateComparable(netip.Prefix{}, netip.AddrPort{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func quote(text string) string { return `"` + text + `"` }

func TestLaterSourceWins(t *testing.T) {
	file := write(t, "config.yaml", "delivery:\n  attempts: 2\n")
	rows := []struct {
		name    string
		sources config.Sources
		want    int
		source  string
	}{
		{"file beats default", config.Sources{File: file}, 2, file + ":2"},
		{"environment beats file", config.Sources{File: file, Env: []string{"POSTROOM_DELIVERY_ATTEMPTS=3"}}, 3,
			"POSTROOM_DELIVERY_ATTEMPTS"},
		{"flag beats environment", config.Sources{File: file, Env: []string{"POSTROOM_DELIVERY_ATTEMPTS=3"},
			Flags: map[string]string{"delivery.attempts": "4"}}, 4, "flag delivery.attempts"},
		{"empty variable is not set", config.Sources{File: file, Env: []string{"POSTROOM_DELIVERY_ATTEMPTS="}}, 2,
			file + ":2"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			l := load(t, r.sources)
			if l.Delivery.Attempts != r.want {
				t.Errorf("attempts %d, want %d", l.Delivery.Attempts, r.want)
			}
			if got := row(t, l, "delivery.attempts").Source; got != r.source {
				t.Errorf("source %q, want %q", got, r.source)
			}
		})
	}
}

func TestEmptyFlagEmptiesSetting(t *testing.T) {
	l := load(t, config.Sources{Env: []string{"POSTROOM_SMTP=smtp://relay"}, Flags: map[string]string{
		"smtp": ""}})
	if l.SMTP != (config.Relay{}) {
		t.Errorf("relay %v, want none", l.SMTP)
	}
}

func TestSettingsThatContradictEachOther(t *testing.T) {
	rows := []struct {
		name  string
		flags map[string]string
		want  []string
	}{
		{"certificate without key", map[string]string{"http.tls.cert": "c.pem"},
			[]string{"http.tls.key: is missing, but http.tls.cert is set; TLS needs both files (flag http.tls.cert)"}},
		{"key without certificate", map[string]string{"http.tls.key": "k.pem"},
			[]string{"http.tls.cert: is missing, but http.tls.key is set; TLS needs both files (flag http.tls.key)"}},
		{"inlet's certificate without key", map[string]string{"smtpd.tls.cert": "c.pem"},
			[]string{"smtpd.tls.key: is missing, but smtpd.tls.cert is set; TLS needs both files (flag smtpd.tls.cert)"}},
		{"a door for bounces that is open to none", map[string]string{"bounce.lmtp": "/run/b.sock"},
			[]string{"bounce.domain: is missing, but bounce.lmtp is set; say which domain mail comes back to, or set bounce.address (flag bounce.lmtp)"}},
		{"TLS inlet without certificate", map[string]string{"smtpd.listenTls": ":465"},
			[]string{"smtpd.tls.cert: is missing, but smtpd.listenTls is set; TLS needs a certificate (flag smtpd.listenTls)"}},
		{"the PROXY protocol of nobody", map[string]string{"http.proxyProtocol": "true",
			"smtpd.proxyProtocol": "true", "bounce.proxyProtocol": "true"},
			[]string{"http.proxyProtocol: is true, but no proxy is trusted; set http.trustedProxies to the addresses of your proxies (flag http.proxyProtocol)",
				"smtpd.proxyProtocol: is true, but no proxy is trusted; set http.trustedProxies to the addresses of your proxies (flag smtpd.proxyProtocol)",
				"bounce.proxyProtocol: is true, but no proxy is trusted; set http.trustedProxies to the addresses of your proxies (flag bounce.proxyProtocol)"}},
		{"OpenSearch without address", map[string]string{"documents.store": "opensearch"},
			[]string{"documents.url: is missing, but documents.store is opensearch; set its address (flag documents.store)"}},
		{"sender without relay", map[string]string{"from": "a@example.com"},
			[]string{"from: is the sender of the default account, which needs a relay; set smtp too (flag from)"}},
		{"relay without sender", map[string]string{"smtp": "smtp://relay.example.com"},
			[]string{"from: is missing, but smtp is set; set the default account's sender, such as Shop <shop@example.com> (flag smtp)"}},
		{"worker alone without Redis", map[string]string{"role": "worker"},
			[]string{"role: is worker, but the embedded Redis serves one process only; set redis.url, or role to all (flag role)"}},
		{"replicas of a Redis that has none", map[string]string{"redis.waitReplicas": "1"},
			[]string{"redis.waitReplicas: is 1, but the embedded Redis has no replicas; set redis.url, or it to 0 (flag redis.waitReplicas)"}},
		{
			"a wrong relay is not also called missing", map[string]string{"from": "a@example.com", "smtp": "relay"},
			[]string{`smtp: "relay" is not a relay URL: it must start with smtp:// or smtps://; write one such as smtp://user:password@smtp.example.com:587 or smtps://smtp.example.com (flag smtp)`},
		},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if diff := cmp.Diff(r.want, faults(t, config.Sources{Flags: r.flags})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFsyncOfForeignRedisIsWarnedAbout(t *testing.T) {
	l := load(t, config.Sources{Flags: map[string]string{"redis.url": "redis://db", "redis.fsync": "always"}})
	want := []string{"redis.fsync (flag redis.fsync) has no effect: it is for the embedded Redis, and redis.url names another"}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestSamePreviousSecretIsWarnedAbout(t *testing.T) {
	same := strings.Repeat("s", 32)
	l := load(t, config.Sources{Flags: map[string]string{"secret": same, "secretPrevious": same}})
	want := []string{"secretPrevious (flag secretPrevious) has no effect: it is the same as secret"}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestTrustInEverybodyIsWarnedAbout(t *testing.T) {
	l := load(t, config.Sources{Flags: map[string]string{"http.trustedProxies": "10.0.0.0/8, ::/0"}})
	want := []string{"http.trustedProxies (flag http.trustedProxies) trusts every address: anybody can claim to be any client; list only your proxies"}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	file := write(t, "config.yaml", "delivry:\n  attempts: 2\nworkers:\n  submit: many\n")
	got := faults(t, config.Sources{
		File: file,
		Env: []string{"POSTROOM_DELIVERY_TIMEOUT=30", "POSTROOM_SECRET_FILE=" + filepath.Join(t.TempDir(),
			"absent")},
		Flags: map[string]string{"role": "boss", "rol": "all"},
	})
	if len(got) != 6 {
		t.Errorf("%d faults, want 6:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestInletNobodyElseCanUseIsWarnedAbout(t *testing.T) {
	rows := []struct {
		name  string
		flags map[string]string
		want  []string
	}{
		{"loopback", map[string]string{"smtpd.listen": "127.0.0.1:2525"}, nil},
		{"localhost", map[string]string{"smtpd.listen": "localhost:2525"}, nil},
		{"with TLS", map[string]string{"smtpd.listen": ":587", "smtpd.tls.cert": "c.pem", "smtpd.tls.key": "k.pem"},
			nil},
		{"allowed without", map[string]string{"smtpd.listen": ":25", "smtpd.insecureAuth": "true"}, nil},
		{"every network", map[string]string{"smtpd.listen": ":587"}, []string{
			"smtpd.listen (flag smtpd.listen) has no TLS: only clients on this machine can log in; set smtpd.tls, or smtpd.insecureAuth in a network you trust",
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if diff := cmp.Diff(r.want, load(t, config.Sources{Flags: r.flags}).Warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}
