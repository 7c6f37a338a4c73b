package config

import (
	"log/slog"
	"net/netip"
	"time"
)

// Config holds all settings. The tags of a field describe it for the program and for the documentation:
//
//	key      its name; the path is made of the names from the top, joined by dots
//	default  its value if it is not set, written as in the file
//	doc      what it means
//	empty    what an empty value means; a setting without this tag must have a value
//	min, max the limits of numbers, sizes and durations, both included
//	values   the allowed words
//	check    the rule of format.go that a text must follow, named as in the documentation
//	secret   "value": never shown; "url": shown without its credentials
type Config struct {
	HTTP           HTTP        `key:"http"`
	Monitor        Monitor     `key:"monitor"`
	Redis          Redis       `key:"redis"`
	Outbox         Outbox      `key:"outbox"`
	Data           string      `key:"data" default:"./data" check:"path" doc:"Directory of the embedded Redis, the secret and the admin token. The first start creates it, readable only by its owner."`
	Secret         Secret      `key:"secret" check:"32 bytes or more" secret:"value" empty:"generated at the first start, in the data directory" doc:"Key that encrypts the passwords and other secrets that Postroom stores. All processes on one Redis need the same key; without it, stored secrets can't be read."`
	SecretPrevious Secret      `key:"secretPrevious" check:"32 bytes or more" secret:"value" empty:"none" doc:"Previous secret, to read values that were encrypted with it. Remove it after postroom secret rotate."`
	Token          Secret      `key:"token" check:"16 characters or more" secret:"value" empty:"generated at the first start, in the data directory" doc:"First admin token, with all rights. Make it random and long, because Postroom limits only wrong tokens."`
	ServiceURL     string      `key:"serviceUrl" check:"web address" empty:"none" doc:"Public URL of this Postroom, such as https://mail.example.com, for links in messages and webhooks."`
	SMTP           Relay       `key:"smtp" secret:"url" empty:"none" doc:"Relay of the account default: smtp://user:password@host:587, or smtps:// for TLS from the first byte. See Relay URLs."`
	From           Mailbox     `key:"from" empty:"none" doc:"Sender of the account default: an address, or a name and an address such as Example Shop <shop@example.com>. Requires smtp."`
	Role           string      `key:"role" default:"all" values:"all,api,worker" doc:"Role of this process: api accepts messages and serves the dashboard, worker delivers, and all does both. Separate processes require redis.url."`
	Workers        Workers     `key:"workers"`
	Sessions       Sessions    `key:"sessions"`
	OIDC           OIDC        `key:"oidc"`
	Senders        Senders     `key:"senders"`
	Relays         Relays      `key:"relays"`
	Delivery       Delivery    `key:"delivery"`
	DNS            DNS         `key:"dns"`
	Message        Message     `key:"message"`
	Templates      Templates   `key:"templates"`
	DeadLetters    DeadLetters `key:"deadLetters"`
	Messages       Messages    `key:"messages"`
	Idempotency    Idempotency `key:"idempotency"`
	Storage        Storage     `key:"storage"`
	Quotas         Quotas      `key:"quotas"`
	Newsletter     Newsletter  `key:"newsletter"`
	Digest         Digest      `key:"digest"`
	Traces         Traces      `key:"traces"`
	Documents      Documents   `key:"documents"`
	Webhooks       Webhooks    `key:"webhooks"`
	Tracking       Tracking    `key:"tracking"`
	Unsubscribe    Unsubscribe `key:"unsubscribe"`
	Suppression    Suppression `key:"suppression"`
	Feedback       Feedback    `key:"feedback"`
	Archive        Archive     `key:"archive"`
	SMTPD          SMTPD       `key:"smtpd"`
	Bounce         Bounce      `key:"bounce"`
	Alerts         Alerts      `key:"alerts"`
	Audit          Audit       `key:"audit"`
	Log            Log         `key:"log"`
	Shutdown       Shutdown    `key:"shutdown"`
}

// Sessions limits the sessions of the dashboard.
type Sessions struct {
	Lifetime time.Duration `key:"lifetime" default:"168h" min:"5m" max:"8760h" doc:"Maximum lifetime of a dashboard session. An unused session ends after 12 hours."`
}

// Senders controls which accounts may send as which senders.
type Senders struct {
	Enforce string `key:"enforce" default:"bound" values:"bound,all,off" doc:"Messages whose senders and gateways must belong to their account: messages submitted with tokens bound to an account, all messages, or none. See Senders of an account."`
	Own     string `key:"own" default:"domain" values:"domain,address" doc:"What an account may send as by default: every address in its own address's domain, or only its own address. Use address if accounts that don't trust each other share a domain."`

	MailAccount string `key:"mailAccount" empty:"addresses aren't verified by email" doc:"Account that sends the emails that verify other accounts' addresses. Don't give its tokens to customers, because they could read the links."`
}

// Relays controls where accounts and gateways may connect to.
type Relays struct {
	AllowPrivate bool `key:"allowPrivate" default:"true" doc:"Whether relays, proxies and token servers may have private and loopback addresses, except in the setting smtp. Set to false if you don't trust everyone who may change accounts. Link-local and cloud metadata addresses are always refused."`
}

// HTTP is the listener of the API and the dashboard.
type HTTP struct {
	Listen string `key:"listen" default:"127.0.0.1:3000" check:"host:port" doc:"Address of the API and the dashboard. An empty host, as in :3000, listens on all interfaces; port 0 picks a free port."`
	TLS    TLS    `key:"tls"`
	// networks in CIDR form, with all host bits 0
	TrustedProxies []netip.Prefix `key:"trustedProxies" empty:"none" doc:"IP addresses and ranges of your proxies, such as [127.0.0.1, 10.0.0.0/8], whose forwarding headers and PROXY protocol Postroom trusts. See Behind a proxy."`
	ProxyProtocol  bool           `key:"proxyProtocol" default:"false" doc:"Whether trusted proxies must send the PROXY protocol (v1 or v2) on http.listen. Requires http.trustedProxies."`

	// how long browsers remember it
	HSTS time.Duration `key:"hsts" default:"8760h" min:"0" max:"17520h" doc:"How long browsers that connected over TLS must use TLS for this host name on all ports (Strict-Transport-Security). Set to 0 to turn it off."`

	MaxConnections           int  `key:"maxConnections" default:"4096" min:"16" max:"100000" doc:"Maximum concurrent HTTP connections. Beyond it, a new connection replaces the oldest one without a valid token."`
	MaxConnectionsPerAddress int  `key:"maxConnectionsPerAddress" default:"256" min:"1" max:"100000" doc:"Maximum concurrent HTTP connections without a valid token from one address (IPv6: /64). Trusted proxies aren't limited."`
	BodyMemory               Size `key:"bodyMemory" default:"256MB" min:"1MB" max:"64GB" doc:"Memory for request bodies of clients with a token. One account, or one token without an account, gets at most as much as is left for all others."`
	PublicBodyMemory         Size `key:"publicBodyMemory" default:"32MB" min:"4MB" max:"1GB" doc:"Memory for request bodies of providers' webhooks, which need no token."`
	MinRate                  Size `key:"minRate" default:"4KB" min:"1" max:"1MB" doc:"Minimum bytes per second of a request body, measured over 30 seconds (SMTP: over 5 minutes). Slower clients are disconnected."`
	MaxWrongProofs           int  `key:"maxWrongProofs" default:"120" min:"1" max:"1000000" doc:"Maximum requests per minute with an invalid tracking token, unsubscribe token or webhook signature from one address (IPv6: /64). More return 429."`
}

// TLS is the certificate of the HTTP server.
type TLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"PEM file with the certificate chain for HTTPS, reloaded when it changes. Requires http.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"PEM file with the certificate's private key. Requires http.tls.cert."`
}

// Monitor is the separate listener of health and metrics.
type Monitor struct {
	Listen string `key:"listen" check:"host:port" empty:"off" doc:"Address that serves only /health, /ready and /metrics, such as 127.0.0.1:3001. http.listen then no longer serves /metrics."`
}

// Traces configures OpenTelemetry spans for messages.
type Traces struct {
	Endpoint string  `key:"endpoint" check:"web address" empty:"off" doc:"URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318. Without a path, Postroom adds /v1/traces."`
	Headers  Secret  `key:"headers" secret:"value" empty:"none" doc:"Headers of requests to the collector, as Name=value, separated by commas."`
	Share    float64 `key:"share" default:"1" min:"0" max:"1" doc:"Share of new traces to record. A traceparent header decides for its own trace."`
}

// Redis stores all data.
type Redis struct {
	URL            Secret        `key:"url" check:"Redis address" secret:"url" empty:"embedded" doc:"Redis address: redis://, rediss:// (TLS), redis+sentinel://, redis+cluster:// or unix://. If empty, Postroom runs its own redis-server or valkey-server in the data directory. See Redis addresses."`
	Fsync          string        `key:"fsync" default:"everysec" values:"everysec,always" doc:"When the embedded Redis writes to disk. everysec can lose the last two seconds in a power failure; always loses nothing and is slower."`
	Partitions     int           `key:"partitions" default:"1" min:"1" max:"256" doc:"Number of partitions of the outbox, to spread it over a Redis Cluster. Must be the same in every process; don't change it while messages are queued."`
	WaitReplicas   int           `key:"waitReplicas" default:"0" min:"0" max:"10" doc:"Number of Redis replicas that must store a message before Postroom accepts it, and before it sends the end of the message. 0 waits for the master only."`
	WaitTimeout    time.Duration `key:"waitTimeout" default:"1s" min:"10ms" max:"5s" doc:"Maximum time to wait for these replicas. Beyond it, the request returns 503 NotReplicated."`
	MaxMemory      Memory        `key:"maxMemory" default:"50%" doc:"Memory limit of the embedded Redis: a size such as 2GB, or a share of the machine's or container's memory such as 50%. Set to 0 for no limit."`
	MaxMemoryShare float64       `key:"maxMemoryShare" default:"0.75" min:"0.1" max:"1" doc:"Share of Redis's maxmemory from which Postroom refuses new messages (503), so that it can still deliver queued ones. It has no effect if Redis has no maxmemory."`
}

// Outbox limits queued messages, and sets how long the content of sent messages is kept.
type Outbox struct {
	KeepContent time.Duration `key:"keepContent" default:"0" min:"0" doc:"How long the content of a sent message stays readable, at most messages.retention, which takes memory in Redis. Set to 0 to delete it when the message finishes."`
	MaxLive     int           `key:"maxLive" default:"0" min:"0" doc:"Maximum number of unfinished messages. Beyond it, new messages get 503. Set to 0 for no limit."`
}

// Workers is the number of concurrent jobs of each queue in one process.
type Workers struct {
	Submit    int `key:"submit" default:"50" min:"1" max:"10000" doc:"Maximum transactional messages that one process delivers at the same time."`
	Bulk      int `key:"bulk" default:"50" min:"1" max:"10000" doc:"Maximum bulk messages that one process delivers at the same time."`
	Notify    int `key:"notify" default:"50" min:"1" max:"10000" doc:"Maximum webhook requests that one process makes at the same time."`
	Documents int `key:"documents" default:"4" min:"1" max:"1000" doc:"Maximum jobs of the queue documents that one process runs at the same time."`
	Digests   int `key:"digests" default:"8" min:"1" max:"1000" doc:"Maximum digests that one process creates at the same time."`
}

// DNS configures the servers that look up mail servers and the records of sender domains.
type DNS struct {
	Servers []netip.AddrPort `key:"servers" empty:"those in /etc/resolv.conf" doc:"DNS servers for recipients' mail servers and senders' records: IP addresses with an optional port, such as [127.0.0.1, 192.0.2.53:5353]. The system resolves relays, webhooks and Redis."`
	Trusted bool             `key:"trusted" default:"false" doc:"Whether the DNS servers validate DNSSEC and the network between is trusted, as DANE requires. Servers on this machine are always trusted if there are no others."`
}

// Addresses returns the DNS servers as host:port. It returns nil if /etc/resolv.conf applies.
func (d DNS) Addresses() (all []string) {
	for _, server := range d.Servers {
		all = append(all, server.String())
	}
	return all
}

// Delivery configures attempts and what follows a failed one.
type Delivery struct {
	Attempts       int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Maximum number of attempts for a message, unless its deliveryAttempts overrides it. Set to 1 for no retries."`
	Retry          Retry         `key:"retry"`
	Timeout        time.Duration `key:"timeout" default:"120s" min:"1s" max:"1h" doc:"How long a relay may stay silent before Postroom gives up the attempt."`
	Lease          time.Duration `key:"lease" default:"4s" min:"2s" max:"10m" doc:"How long a worker that stopped responding keeps a message before another worker continues it. Running workers extend their leases."`
	InDoubt        string        `key:"inDoubt" default:"resend" values:"resend,hold" doc:"What to do with messages in doubt, because the connection or process died before the relay's reply. resend retries them and can deliver twice; hold makes them dead letters."`
	ReportWait     time.Duration `key:"reportWait" default:"2m" min:"0" max:"1h" doc:"How long a message in doubt waits for a provider's webhook that shows whether it was delivered. Set to 0 not to wait."`
	AccountTrouble string        `key:"accountTrouble" default:"fail" values:"fail,hold" doc:"What to do with messages while the account's login, token, certificate or sender is refused. Use fail to make them dead letters that you can replay, or hold to keep them waiting without using up attempts."`
	QueueKeep      int           `key:"queueKeep" default:"0" min:"0" max:"100000" doc:"Number of completed and failed jobs of each stream to keep visible in the queues and the outbox, for at most 24 hours. Failed jobs stay as long as their dead letters."`
	DirectPort     int           `key:"directPort" default:"25" min:"1" max:"65535" doc:"Port of recipients' mail servers, for gateways of type mx. Change it only if a firewall forwards another port to 25."`
	Classifier     string        `key:"classifier" default:"full" values:"full,basic" doc:"How to classify SMTP failures. full uses the command, code, enhanced code and text; basic treats every code from 500 on, except 503, as permanent."`
}

// Retry sets the delays between attempts.
type Retry struct {
	Base     time.Duration   `key:"base" default:"5s" min:"1ms" max:"24h" doc:"First retry delay is base × factor. Each further delay is multiplied by factor again: with 5s and 2, the delays are 10 s, 20 s, 40 s and so on."`
	Factor   float64         `key:"factor" default:"2" min:"1" max:"100" doc:"Factor by which the delay grows with each attempt. Set to 1 for constant delays."`
	Jitter   float64         `key:"jitter" default:"0.2" min:"0" max:"1" doc:"Share by which each delay varies at random, so that messages that failed together aren't retried together. Set to 0 to turn it off."`
	Max      time.Duration   `key:"max" default:"0" min:"0" doc:"Maximum delay. Set to 0 for no limit."`
	Schedule []time.Duration `key:"schedule" min:"1s" empty:"none" doc:"Delays before the second, third and further attempts, such as [1m, 5m, 30m, 2h, 8h], instead of base and factor. The last delay repeats."`
}

// Message limits one message.
type Message struct {
	MaxSize Size `key:"maxSize" default:"25MB" min:"1KB" max:"256MB" doc:"Maximum size of a message with attachments, as it is sent. A larger message returns 413."`

	MaxAhead time.Duration `key:"maxAhead" default:"8760h" min:"0" doc:"Maximum time from now until sendAt. A later time returns 400. Set to 0 for no limit."`
}

// Templates limits the content and number of stored templates.
type Templates struct {
	Missing     string `key:"missing" default:"empty" values:"empty,error" doc:"What happens if data lacks a template's variable: empty prints nothing, and error refuses the message. A template can override it."`
	EscapedOnly bool   `key:"escapedOnly" default:"false" doc:"Whether to refuse templates with {{{name}}} or {{& name}}, which print unescaped HTML."`
	Max         int    `key:"max" default:"10000" min:"1" max:"100000" doc:"Maximum number of stored templates, partials and layouts. Each takes about 1 KB of memory in every process."`
}

// DeadLetters limits how long permanently failed messages are kept for replay.
type DeadLetters struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long to keep a failed message and its content for replay. Set to 0 to delete its content immediately."`
	Max       int           `key:"max" default:"100000" min:"1" doc:"Maximum number of dead letters. Beyond it, Postroom deletes the oldest."`
}

// Messages limits the email log.
type Messages struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long a finished message stays in the email log, without its content. Set to 0 to remove it immediately."`
	Max       int           `key:"max" default:"1000000" min:"1" doc:"Maximum number of finished messages in the email log. Beyond it, Postroom deletes the oldest."`
}

// Storage configures how Redis stores messages.
type Storage struct {
	Seal bool `key:"seal" default:"false" doc:"Whether to encrypt message bodies, mail merge params, search texts and SMTP dialogues before they are stored in Redis. Addresses, subjects, metadata, templates and the search index aren't encrypted."`
}

// Idempotency configures idempotency keys.
type Idempotency struct {
	Retention time.Duration `key:"retention" default:"168h" min:"1m" doc:"How long an idempotency key is remembered after its message finished. Used again later, the key queues a new message."`
	Required  bool          `key:"required" default:"false" doc:"Whether to refuse every submit without an idempotency key. Accounts and tokens can require one with idempotencyRequired."`
}

// Quotas limits each account, unless the account has its own quota.
type Quotas struct {
	Messages     int  `key:"messages" default:"0" min:"0" doc:"Maximum pending messages of an account. Beyond it, a submit returns 429 QuotaExceeded. Set to 0 for no limit. See Quotas."`
	Bytes        Size `key:"bytes" default:"0" min:"0" doc:"Maximum total size of an account's pending messages. Set to 0 for no limit."`
	PerDay       int  `key:"perDay" default:"0" min:"0" doc:"Maximum messages that an account may submit per day (UTC). Set to 0 for no limit."`
	Templates    int  `key:"templates" default:"0" min:"0" doc:"Maximum templates, partials and layouts of an account. More return 403. Set to 0 for no limit."`
	Suppressions int  `key:"suppressions" default:"0" min:"0" doc:"Maximum suppressions of an account and its lists that requests can add. More return 403; bounces, complaints and unsubscribes are always added. Set to 0 for no limit."`
	ImportSize   Size `key:"importSize" default:"0" min:"0" doc:"Maximum size of a suppression or subscriber import. A larger file returns 413. Set to 0 for no limit."`
	Subscribers  int  `key:"subscribers" default:"0" min:"0" doc:"Maximum subscribers of an account, on any number of lists. More return 403. Set to 0 for no limit."`
	Events       int  `key:"events" default:"0" min:"0" doc:"Maximum pending digest events of an account. More return 429. Set to 0 for no limit."`
	Requests     int  `key:"requests" default:"0" min:"0" doc:"Maximum requests per minute with a token that is bound to an account and has no rateLimit. More return 429. Set to 0 for no limit."`
}

// Newsletter configures lists and campaigns.
type Newsletter struct {
	ConfirmExpiry    time.Duration `key:"confirmExpiry" default:"168h" min:"1h" doc:"How long a link that confirms a subscription is valid."`
	ConfirmPerDay    int           `key:"confirmPerDay" default:"3" min:"0" doc:"Maximum confirmation emails to one address per day and account. More return 429. Set to 0 for no limit."`
	FormPerMinute    int           `key:"formPerMinute" default:"10" min:"0" doc:"Maximum public forms that one address (IPv6: /64) can submit to one process per minute. More return 429. Set to 0 for no limit."`
	PendingRetention time.Duration `key:"pendingRetention" default:"720h" min:"1h" doc:"How long a subscription waits for confirmation before Postroom deletes it. A list can override it."`
	InFlight         int           `key:"inFlight" default:"10000" min:"1" doc:"Maximum emails of a campaign that wait for a retry. Beyond it, the campaign waits."`
	Expire           time.Duration `key:"expire" default:"24h" min:"1m" doc:"Delay after which a scheduled campaign is held instead of started, for example after you restore a backup."`
	InDoubt          string        `key:"inDoubt" default:"hold" values:"hold,resend" doc:"What to do with campaign recipients if the process died before the relay's reply. hold lists them as in doubt; resend sends again, possibly twice."`
	HoldAfter        int           `key:"holdAfter" default:"500" min:"1" doc:"Minimum emails of a campaign before its bounces, complaints and errors can hold it."`
	HoldBounces      float64       `key:"holdBounces" default:"0.05" min:"0" max:"1" doc:"Share of a campaign's emails that may bounce because of their address before the campaign is held. Set to 0 to turn it off."`
	HoldComplaints   float64       `key:"holdComplaints" default:"0.003" min:"0" max:"1" doc:"Share of a campaign's emails that may be reported as spam before the campaign is held. Set to 0 to turn it off."`
	HoldFaults       float64       `key:"holdFaults" default:"0.01" min:"0" max:"1" doc:"Share of a campaign's emails that may fail for other reasons, such as a missing variable, before the campaign is held. Set to 0 to turn it off."`
}

// Digest configures how notifications are collected and sent.
type Digest struct {
	Mode        string        `key:"mode" default:"daily" values:"immediate,hourly,daily,weekly,monthly,off" doc:"Default schedule of digests, if neither the recipient nor the category sets one."`
	Hour        int           `key:"hour" default:"8" min:"0" max:"23" doc:"Default hour of daily, weekly and monthly digests, in the recipient's time zone."`
	Lane        string        `key:"lane" default:"bulk" values:"bulk,transactional" doc:"Default stream of digests, if the category sets none."`
	Gap         time.Duration `key:"gap" default:"5m" min:"0" max:"168h" doc:"Minimum time between two immediate emails to a recipient about one category. The second email contains the events that arrive in between."`
	Cap         int           `key:"cap" default:"50" min:"1" max:"1000" doc:"Maximum lines in a digest. The digest shows how many more there are."`
	CapCategory int           `key:"capCategory" default:"10" min:"1" max:"1000" doc:"Maximum lines for one category in a digest with several categories."`
	Keep        int           `key:"keep" default:"1000" min:"1" max:"100000" doc:"Maximum events that Postroom stores individually for each recipient and category. For older events, it keeps exact counts and the last event."`
	Retention   time.Duration `key:"retention" default:"2160h" min:"1h" doc:"How long to keep runs, and events that no digest includes."`
	Stagger     time.Duration `key:"stagger" default:"1h" min:"0" max:"24h" doc:"Period over which digests with the same time are spread. Each recipient gets them at the same minute every day. Set to 0 to send all at the same time."`
	Grace       time.Duration `key:"grace" default:"15m" min:"0" max:"24h" doc:"Time before a digest is due from which changed preferences no longer affect it."`
	Attempts    int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Maximum attempts to create a digest, for example while its template fails."`
	Failed      string        `key:"failed" default:"return" values:"return,drop" doc:"What to do with the events of a failed digest: return puts them into the next digest once, and drop discards them."`
	Threads     bool          `key:"threads" default:"false" doc:"Whether email programs should show a recipient's digests as one conversation, with a shared message ID in References (RFC 5322)."`
	FeedURL     string        `key:"feedUrl" empty:"none" doc:"URL of a recipient's events in your application, linked at the end of a digest. {recipient} stands for the recipient's ID, as in https://app.example.com/feed?user={recipient}."`
}

// Documents configures the search index.
type Documents struct {
	Store     string        `key:"store" default:"embedded" values:"embedded,opensearch,none" doc:"Search index: embedded in the data directory of one API process, a shared OpenSearch or Elasticsearch (opensearch), or none."`
	URL       Secret        `key:"url" check:"search address" secret:"url" empty:"none" doc:"URL of OpenSearch or Elasticsearch: https://user:password@search.internal:9200. Separate several nodes of one cluster with commas. Required for opensearch."`
	Index     string        `key:"index" default:"postroom" check:"index name" doc:"Name of the index. Instances that share a cluster need different names."`
	Text      Size          `key:"text" default:"4KB" min:"0" max:"64KB" doc:"Size of the start of each message's text to store for search and display. Set to 0 to store none."`
	Retention time.Duration `key:"retention" default:"2160h" min:"0" doc:"How long a message can be found after it was accepted. Set to 0 to keep it forever."`
}

// Webhooks configures how events are delivered to endpoints.
type Webhooks struct {
	AllowPrivate  bool          `key:"allowPrivate" default:"false" doc:"Whether webhooks may go to private and loopback addresses. Link-local and cloud metadata addresses are always refused."`
	Attempts      int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Maximum attempts for one event at one endpoint, with the delays of delivery.retry."`
	Timeout       time.Duration `key:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long an endpoint may take to respond."`
	DisableAfter  time.Duration `key:"disableAfter" default:"120h" min:"0" doc:"Time without a successful delivery after which Postroom disables an endpoint and sends an event. Set to 0 to turn it off."`
	SigningSecret Secret        `key:"signingSecret" check:"32 bytes or more" secret:"value" empty:"derived from the secret" doc:"Key that signs X-EE-Wh-Signature and the requests to the webhook URLs in settings and accounts. postroom secret signing prints the current one."`
}

// Tracking configures how opens and clicks are counted.
type Tracking struct {
	Opens        bool          `key:"opens" default:"false" doc:"Whether to count opens with an image in the HTML, unless an account or message overrides it. You can change it at runtime as trackOpens. Requires serviceUrl."`
	Clicks       bool          `key:"clicks" default:"false" doc:"Whether to count clicks with redirecting links, unless an account or message overrides it. You can change it at runtime as trackClicks. Requires serviceUrl."`
	Expiry       time.Duration `key:"expiry" default:"4320h" min:"0" doc:"How long after a message was accepted its opens and clicks are counted. Links redirect forever. Set to 0 to count forever."`
	StoreAddress string        `key:"storeAddress" default:"masked" values:"ip,masked,none" doc:"Part of the IP address to store for an open, click or unsubscribe: all of it (ip), without the last octet or, for IPv6, the last 80 bits (masked), or none."`
}

// Unsubscribe configures the unsubscribe links in messages.
type Unsubscribe struct {
	GetUnsubscribes bool `key:"getUnsubscribes" default:"false" doc:"Whether opening an unsubscribe link unsubscribes immediately. If false, the link opens a page with a button, because mail scanners open every link."`
}

// Suppression configures which addresses Postroom stops sending to, and for how long.
type Suppression struct {
	Refuse           bool          `key:"refuse" default:"false" doc:"Whether a submit returns 422 RecipientSuppressed if all its recipients are suppressed. If false, it returns 200 and lists them under skipped."`
	Scope            string        `key:"scope" default:"account" values:"account,instance" doc:"Scope of a suppression after a bounce or complaint: only the account that sent the message, or all accounts (instance). With instance, each account can stop all other accounts' messages to an address."`
	HardBounceExpiry time.Duration `key:"hardBounceExpiry" default:"0" min:"0" doc:"How long a hard bounce suppresses an address. Set to 0 for no expiry."`
	ComplaintExpiry  time.Duration `key:"complaintExpiry" default:"0" min:"0" doc:"How long a complaint suppresses an address. Set to 0 for no expiry."`
	SoftBounces      int           `key:"softBounces" default:"5" min:"0" max:"1000" doc:"Number of messages to an address that must fail temporarily, for example because of a full mailbox, before it is suppressed for a while. Set to 0 to turn it off."`
	SoftWindow       time.Duration `key:"softWindow" default:"168h" min:"1m" doc:"Period within which these messages must fail."`
	SoftExpiry       time.Duration `key:"softExpiry" default:"336h" min:"1m" doc:"How long the address is then suppressed."`
}

// SMTPD is the SMTP listener for applications.
type SMTPD struct {
	Listen         string   `key:"listen" check:"host:port" empty:"off" doc:"Address that accepts messages over SMTP, such as 127.0.0.1:2525, with STARTTLS if smtpd.tls is set. Applications log in with a token as the password."`
	ListenTLS      string   `key:"listenTls" check:"host:port" empty:"off" doc:"Address that accepts messages over SMTP with TLS from the first byte, such as :465. Requires smtpd.tls."`
	TLS            SMTPDTLS `key:"tls"`
	Hostname       string   `key:"hostname" empty:"the machine's" doc:"Host name in this listener's greeting."`
	InsecureAuth   bool     `key:"insecureAuth" default:"false" doc:"Whether to accept tokens without TLS. From this machine, they're always accepted."`
	ProxyProtocol  bool     `key:"proxyProtocol" default:"false" doc:"Whether trusted proxies must send the PROXY protocol (v1 or v2) on both listeners, before TLS. Requires http.trustedProxies."`
	MaxRecipients  int      `key:"maxRecipients" default:"1000" min:"1" max:"10000" doc:"Maximum recipients of a message over SMTP. Beyond it, recipients get 452, and clients send to them separately."`
	MaxConnections int      `key:"maxConnections" default:"500" min:"1" max:"100000" doc:"Maximum concurrent SMTP connections. Beyond it, a new connection replaces the oldest one without a login, or gets 421."`

	MaxConnectionsPerAddress int `key:"maxConnectionsPerAddress" default:"50" min:"1" max:"100000" doc:"Maximum concurrent SMTP connections without a login from one address (IPv6: /64). Beyond it, a new connection replaces one older than 10 seconds, or gets 421."`

	IdleTimeout time.Duration `key:"idleTimeout" default:"5m" min:"1s" max:"1h" doc:"How long a client may stay silent before Postroom closes its connection. RFC 5321 requires 5 minutes."`
}

// SMTPDTLS is the certificate of the SMTP listener.
type SMTPDTLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"PEM file with the certificate chain for STARTTLS and smtpd.listenTls, reloaded when it changes. Requires smtpd.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"PEM file with the certificate's private key. Requires smtpd.tls.cert."`
}

// Bounce configures how bounces are received.
type Bounce struct {
	Domain         string `key:"domain" check:"mail domain" empty:"return paths don't change" doc:"Domain of return paths, bounces+<token>@domain, whose token identifies a bounce's message and recipient. Messages to this domain must be delivered to Postroom."`
	OwnReturnPaths int    `key:"ownReturnPaths" default:"100" min:"0" max:"10000" doc:"Maximum recipients of a message that each get their own return path and SMTP transaction. With more recipients, they share both, and a bounce suppresses no one."`
	Address        string `key:"address" check:"email address" empty:"none" doc:"Address for bounces if a relay sets its own return path. A bounce to it counts if it contains the Message-ID of a message that Postroom sent to the recipient."`
	Listen         string `key:"listen" check:"host:port" empty:"off" doc:"Address that accepts messages to bounce.domain and bounce.address over SMTP without a login, such as :25, with STARTTLS if smtpd.tls is set."`
	LMTP           string `key:"lmtp" check:"socket" empty:"off" doc:"Unix socket or host:port that accepts the same messages over LMTP from your mail server, such as /run/postroom/bounce.sock."`
	Hostname       string `key:"hostname" empty:"the machine's" doc:"Host name in the greeting of both listeners."`
	ProxyProtocol  bool   `key:"proxyProtocol" default:"false" doc:"Whether trusted proxies must send the PROXY protocol (v1 or v2) on bounce.listen. Requires http.trustedProxies."`
	MaxConnections int    `key:"maxConnections" default:"200" min:"1" max:"10000" doc:"Maximum concurrent connections to each of the two listeners. Beyond it, a new connection replaces the oldest one."`

	MaxConnectionsPerAddress int `key:"maxConnectionsPerAddress" default:"20" min:"1" max:"10000" doc:"Maximum concurrent connections to bounce.listen from one address (IPv6: /64). Beyond it, a new connection replaces one older than 10 seconds, or gets 421."`
}

// Log configures the log on standard error.
type Log struct {
	Level  slog.Level `key:"level" default:"info" values:"debug,info,warn,error" doc:"Minimum level of log lines."`
	Format string     `key:"format" default:"auto" values:"auto,text,json" doc:"Log format: text is lines of key=value, json is one object per line, and auto is a readable form on a terminal and json elsewhere."`
}

// Shutdown configures how a process stops.
type Shutdown struct {
	Grace time.Duration `key:"grace" default:"30s" min:"0" max:"1h" doc:"How long attempts in progress may take to finish when the process stops. Set to 0 to abort them immediately."`
}

// Archive configures where every event is stored permanently.
type Archive struct {
	Dir      string `key:"dir" empty:"off, or archive in the data directory if archive.url is set" doc:"Directory for the event archive, with one JSON object per line and one file per day. Postroom never deletes anything in it."`
	URL      Secret `key:"url" empty:"none" secret:"value" doc:"URL that accepts events by POST, one JSON object per line, instead of files: ClickHouse or a collector."`
	MaxSpool Size   `key:"maxSpool" default:"1GB" min:"1MB" doc:"Maximum size of the events that wait on disk while archive.url is unavailable. Beyond it, Postroom drops the oldest."`
}

// Audit limits the audit log in Redis.
type Audit struct {
	Retention time.Duration `key:"retention" default:"8760h" min:"24h" doc:"How long Redis keeps entries of the audit log. The event archive, if there is one, keeps them permanently."`
	Max       int           `key:"max" default:"100000" min:"1000" doc:"Maximum entries of the audit log in Redis, about 1 kB each. Beyond it, Postroom deletes the oldest."`
}

// Alerts sets the thresholds of alerts.
type Alerts struct {
	Every          time.Duration `key:"every" default:"15s" min:"1s" max:"1m" doc:"How often each process checks the conditions of alerts. An alert is resolved after four checks without its condition."`
	QueueAge       time.Duration `key:"queueAge" default:"5m" min:"0" doc:"How long due transactional messages and webhooks may wait before an alert, without the time of a pause. Set to 0 to turn it off."`
	BulkAge        time.Duration `key:"bulkAge" default:"6h" min:"0" doc:"How long due bulk messages may wait before an alert. Set to 0 to turn it off."`
	Paused         time.Duration `key:"paused" default:"1h" min:"0" doc:"How long a queue may be paused before an alert. Set to 0 to turn it off."`
	RelayAway      time.Duration `key:"relayAway" default:"2m" min:"0" doc:"How long a relay with pending messages may be unreachable or silent before an alert. Set to 0 to turn it off."`
	DigestsLate    time.Duration `key:"digestsLate" default:"10m" min:"0" doc:"How late a digest may be before an alert, without the time of a pause. Set to 0 to turn it off."`
	WebhookFailing time.Duration `key:"webhookFailing" default:"10m" min:"0" doc:"How long a webhook endpoint may fail, from its first failed attempt to its last, before an alert. Set to 0 to turn it off."`
	DeadLetters    int           `key:"deadLetters" default:"100" min:"0" doc:"Number of messages that may fail permanently in an hour before an alert. Set to 0 to turn it off."`
	FailedShare    float64       `key:"failedShare" default:"0.5" min:"0" max:"1" doc:"Share of the messages finished in an hour that may fail before an alert, if at least 10 failed. Set to 0 to turn it off."`
	BounceRate     float64       `key:"bounceRate" default:"0.05" min:"0" max:"1" doc:"Share of a gateway's recipients in 24 hours that may bounce hard before an alert, if at least 10 did. Amazon SES reviews senders from 5 % and pauses them from 10 %. Set to 0 to turn it off."`
	ComplaintRate  float64       `key:"complaintRate" default:"0.001" min:"0" max:"1" doc:"Share of a gateway's recipients in 24 hours that may complain before an alert, if at least 3 did. Gmail asks for less than 0.1 % and blocks from 0.3 %. Set to 0 to turn it off."`
}
