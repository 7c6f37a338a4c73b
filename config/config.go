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
	Data           string      `key:"data" default:"./data" check:"path" doc:"Directory of the embedded Redis, the secret and the admin token. Created at the first start, readable by its owner only."`
	Secret         Secret      `key:"secret" check:"32 bytes or more" secret:"value" empty:"made at first start, in the data directory" doc:"Key that seals the passwords and other secrets Postroom stores. Every process on one Redis needs the same one. Without it, sealed values cannot be read."`
	SecretPrevious Secret      `key:"secretPrevious" check:"32 bytes or more" secret:"value" empty:"none" doc:"The previous secret after a change: values sealed under it can still be opened. Remove it after postroom secret rotate has sealed everything again. See Changing the secret."`
	Token          Secret      `key:"token" check:"16 characters or more" secret:"value" empty:"made at first start, in the data directory" doc:"The first admin token, with all rights. Make it random and long: only wrong tokens are limited. Tokens created through the API can replace it."`
	ServiceURL     string      `key:"serviceUrl" check:"web address" empty:"none" doc:"Public address of this Postroom, such as https://mail.example.com. Webhooks carry it."`
	SMTP           Relay       `key:"smtp" secret:"url" empty:"none" doc:"Relay of the default account (named default): smtp://user:password@host:587, or smtps:// for TLS from the first byte. See Relay URLs."`
	From           Mailbox     `key:"from" empty:"none" doc:"Sender of the default account: an address, or a name with an address such as Example Shop <shop@example.com>. Needs smtp."`
	Role           string      `key:"role" default:"all" values:"all,api,worker" doc:"What this process does: api accepts mail and serves the pages, worker delivers, all does both. With separate api and worker processes, redis.url must be set."`
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

// Sessions are those of the pages.
type Sessions struct {
	Lifetime time.Duration `key:"lifetime" default:"168h" min:"5m" max:"8760h" doc:"How long a session of the pages lasts at most. One that is not used ends after 12 hours."`
}

// Senders says who may send as whom.
type Senders struct {
	Enforce string `key:"enforce" default:"bound" values:"bound,all,off" doc:"Whose messages may name only senders and gateways of their account: those handed in with a token that is bound to an account, those of all tokens, or none. See Senders of an account."`
	Own     string `key:"own" default:"domain" values:"domain,address" doc:"What an account may send as without a further record: every address of the domain of its own address, or that address only. Use address if accounts that distrust each other have addresses at one domain."`

	MailAccount string `key:"mailAccount" empty:"off" doc:"Account that sends the mails by which other accounts prove that an address is theirs. Whoever has a token of it can read the links in these mails: name one that no customer has a token of. Empty: addresses are not verified by mail."`
}

// Relays says where accounts and gateways may have Postroom connect to.
type Relays struct {
	AllowPrivate bool `key:"allowPrivate" default:"true" doc:"Whether relays, proxies and token servers that accounts, gateways and messages name may have private and loopback addresses. Set it to false if you do not trust everyone who may change accounts. The relay of the setting smtp is exempt. Link-local and cloud metadata addresses are always refused. See Where Postroom connects to."`
}

// HTTP is the listener of the API and the pages.
type HTTP struct {
	Listen string `key:"listen" default:"127.0.0.1:3000" check:"host:port" doc:"Address of the API and the pages, host:port. An empty host (:3000) means every network interface of the machine. Port 0 picks a free port."`
	TLS    TLS    `key:"tls"`
	// networks in CIDR form, without bits beyond their length
	TrustedProxies []netip.Prefix `key:"trustedProxies" empty:"none" doc:"Addresses of your proxies: IP addresses and ranges such as [127.0.0.1, 10.0.0.0/8]. X-Forwarded-For, X-Forwarded-Proto and Forwarded are believed from them only, and the PROXY protocol of all listeners. No address is trusted by itself. See Behind a proxy."`
	ProxyProtocol  bool           `key:"proxyProtocol" default:"false" doc:"Whether the trusted proxies send the PROXY protocol (v1 or v2) on http.listen. If true, their connections must begin with it. Needs http.trustedProxies."`

	// time that a browser remembers
	HSTS time.Duration `key:"hsts" default:"8760h" min:"0" max:"17520h" doc:"How long browsers that came over TLS use nothing but TLS with this host name (Strict-Transport-Security), on all of its ports. Sent if the client uses TLS: http.tls is set, or a trusted proxy says so. 0: never."`

	MaxConnections           int  `key:"maxConnections" default:"4096" min:"16" max:"100000" doc:"Maximum concurrent HTTP connections. Beyond it, the oldest connection that has sent no valid token makes room for a new one."`
	MaxConnectionsPerAddress int  `key:"maxConnectionsPerAddress" default:"256" min:"1" max:"100000" doc:"Maximum concurrent HTTP connections from one address (IPv6: /64) that have sent no valid token. Trusted proxies are not limited."`
	BodyMemory               Size `key:"bodyMemory" default:"256MB" min:"1MB" max:"64GB" doc:"Memory for the request bodies of clients with a token, while they arrive and are worked on. An account, or a token without one, gets at most as much as is left for all others. It is at least the size of the largest body."`
	PublicBodyMemory         Size `key:"publicBodyMemory" default:"32MB" min:"4MB" max:"1GB" doc:"The same for webhooks of providers, which need no token."`
	MinRate                  Size `key:"minRate" default:"4KB" min:"1" max:"1MB" doc:"Bytes a second with which a request body must arrive, measured over 30 seconds, and over 5 minutes with SMTP. Slower ones are cut off."`
	MaxWrongProofs           int  `key:"maxWrongProofs" default:"120" min:"1" max:"1000000" doc:"Requests with a wrong tracking token, unsubscribe token or signature of a webhook that one address (IPv6: /64) can send within a minute. Further ones get 429. Right ones are always taken."`
}

// TLS is the certificate of the HTTP server.
type TLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"File with the certificate chain in PEM, for HTTPS; read again when it changes. Needs http.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"File with the certificate's private key in PEM. Needs http.tls.cert."`
}

// Monitor is the separate listener of health and metrics.
type Monitor struct {
	Listen string `key:"listen" check:"host:port" empty:"off" doc:"Address that serves only /health, /ready and /metrics, such as 127.0.0.1:3001; with TLS if http.tls is set. It is the only listener of a worker. In a process with the API, /metrics is then no longer served on http.listen."`
}

// Traces are OpenTelemetry spans about the way of each message.
type Traces struct {
	Endpoint string  `key:"endpoint" check:"web address" empty:"off" doc:"Address of an OpenTelemetry collector that takes OTLP over HTTP in protobuf, such as http://127.0.0.1:4318. Without a path, /v1/traces is added. See Traces."`
	Headers  Secret  `key:"headers" secret:"value" empty:"none" doc:"Headers of requests to the collector: Name=value, several separated by commas."`
	Share    float64 `key:"share" default:"1" min:"0" max:"1" doc:"Share of new traces that have spans. A trace that a traceparent names has them if that says so."`
}

// Redis is the store of all data.
type Redis struct {
	URL            Secret        `key:"url" check:"Redis address" secret:"url" empty:"embedded" doc:"Address of Redis: redis://, rediss:// (TLS), redis+sentinel://, redis+cluster:// or unix://, see Redis addresses. If empty, Postroom runs its own redis-server (or valkey-server) in the data directory; install one."`
	Fsync          string        `key:"fsync" default:"everysec" values:"everysec,always" doc:"When the embedded Redis writes to disk: everysec can lose the last two seconds in a power cut, always loses nothing and is slower."`
	Partitions     int           `key:"partitions" default:"1" min:"1" max:"256" doc:"Number of parts the outbox is split into, to spread it over a Redis Cluster. Must be the same for every process. Do not change it while messages are queued."`
	WaitReplicas   int           `key:"waitReplicas" default:"0" min:"0" max:"10" doc:"Number of Redis replicas that must have a message before it is accepted, and before its final dot is sent. 0: accepted when the master has it. See Which Redis, and what it can lose."`
	WaitTimeout    time.Duration `key:"waitTimeout" default:"1s" min:"10ms" max:"5s" doc:"How long to wait for these replicas. After that: 503 NotReplicated."`
	MaxMemory      Memory        `key:"maxMemory" default:"50%" doc:"Memory that the embedded Redis may use for data: a size such as 2GB, or a share of the memory of the machine, or of its container if that has less, such as 50%. It never throws anything away for it: new mail is refused before it is full (redis.maxMemoryShare). 0: no limit. A Redis of your own has its own maxmemory."`
	MaxMemoryShare float64       `key:"maxMemoryShare" default:"0.75" min:"0.1" max:"1" doc:"Share of Redis' maxmemory beyond which new mail, and all else that makes Redis larger, is refused (503, Retry-After), so that queued mail can still be delivered. Without maxmemory it has no effect."`
}

// Outbox limits the queued mail, and says what is kept of mail that was sent.
type Outbox struct {
	KeepContent time.Duration `key:"keepContent" default:"0" min:"0" doc:"How long the content of a message stays readable after it was sent, on its page, in the API and on the command line; messages.retention at most. It takes memory of Redis for all this time, see Memory for kept contents in docs/redis.md. 0: it is deleted when the message ends. Content of messages that were cancelled or failed is not kept."`
	MaxLive     int           `key:"maxLive" default:"0" min:"0" doc:"Number of unfinished messages beyond which new mail is refused (503, Retry-After). 0: no limit."`
}

// Workers is the number of concurrent jobs of each queue in one process.
type Workers struct {
	Submit    int `key:"submit" default:"50" min:"1" max:"10000" doc:"Transactional messages that one process delivers at once."`
	Bulk      int `key:"bulk" default:"50" min:"1" max:"10000" doc:"Bulk messages that one process delivers at once."`
	Notify    int `key:"notify" default:"50" min:"1" max:"10000" doc:"Webhook requests that one process makes at once."`
	Documents int `key:"documents" default:"4" min:"1" max:"1000" doc:"Jobs of the documents queue that one process runs at once."`
	Digests   int `key:"digests" default:"8" min:"1" max:"1000" doc:"Digests that one process makes at once."`
}

// DNS is who is asked for mail servers and for the records of sender domains.
type DNS struct {
	Servers []netip.AddrPort `key:"servers" empty:"those of /etc/resolv.conf" doc:"Name servers to ask for recipients' mail servers and for the records of sender domains: IP addresses, with a port where it is not 53, such as [127.0.0.1, 192.0.2.53:5353]. The hosts of relays, webhooks and Redis are looked up by the system."`
	Trusted bool             `key:"trusted" default:"false" doc:"Whether the name servers validate DNSSEC and nobody can change their answers on the way. DANE needs that. Name servers on this machine are trusted anyway, if there are no others."`
}

// Addresses returns the name servers as host:port; none: those of /etc/resolv.conf.
func (d DNS) Addresses() (all []string) {
	for _, server := range d.Servers {
		all = append(all, server.String())
	}
	return all
}

// Delivery is how messages are delivered.
type Delivery struct {
	Attempts       int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Total number of attempts for a message, unless its deliveryAttempts sets another. 1: no retry."`
	Retry          Retry         `key:"retry"`
	Timeout        time.Duration `key:"timeout" default:"120s" min:"1s" max:"1h" doc:"How long a relay may stay silent before the attempt is given up."`
	Lease          time.Duration `key:"lease" default:"4s" min:"2s" max:"10m" doc:"How long a message stays with a worker that stopped responding, before another worker takes it over. Live workers extend their leases."`
	InDoubt        string        `key:"inDoubt" default:"resend" values:"resend,hold" doc:"What happens if the connection or the process died between the end of a message and the relay's reply, so that its delivery is in doubt: resend tries again and may deliver twice; hold makes it a dead letter for you to decide."`
	ReportWait     time.Duration `key:"reportWait" default:"2m" min:"0" max:"1h" doc:"How long a message whose delivery is in doubt waits for a webhook of its provider, if the provider's webhooks are set up. One that tells about the message shows that the provider took it, and ends the doubt. 0: it does not wait."`
	AccountTrouble string        `key:"accountTrouble" default:"fail" values:"fail,hold" doc:"What happens to mail while its account's login, token, certificate or sender is refused: fail makes it dead letters, to be replayed together after the account is fixed; hold keeps it waiting, tries one message from time to time, and uses up no attempts. An account can override this."`
	QueueKeep      int           `key:"queueKeep" default:"0" min:"0" max:"100000" doc:"Number of completed and of failed jobs of each lane that stay visible in the queues and in the outbox list, for at most 24 hours. While dead letters are kept, failed jobs stay as long as their dead letter."`
	DirectPort     int           `key:"directPort" default:"25" min:"1" max:"65535" doc:"Port of recipients' mail servers, for gateways of type mx. Change it only where a firewall forwards another port to 25."`
	Classifier     string        `key:"classifier" default:"full" values:"full,basic" doc:"How an SMTP failure is classified as temporary or permanent: full uses command, code, enhanced code and text; basic treats every code from 500 on, except 503, as permanent."`
}

// Retry is how long a message waits between attempts.
type Retry struct {
	Base     time.Duration   `key:"base" default:"5s" min:"1ms" max:"24h" doc:"Attempt n waits base × factor^(n-1): with 5s and 2, the second waits 10 s, the third 20 s, then 40 s."`
	Factor   float64         `key:"factor" default:"2" min:"1" max:"100" doc:"Factor by which the wait grows with each attempt. 1: always the same wait."`
	Jitter   float64         `key:"jitter" default:"0.2" min:"0" max:"1" doc:"Share by which each wait varies at random, up or down, so that messages that failed together are not retried together. 0: none."`
	Max      time.Duration   `key:"max" default:"0" min:"0" doc:"Longest wait. 0: no limit."`
	Schedule []time.Duration `key:"schedule" min:"1s" empty:"none" doc:"Waits before the second, third… attempt instead of base and factor, such as [1m, 5m, 30m, 2h, 8h]. The last one repeats."`
}

// Message limits one message.
type Message struct {
	MaxSize Size `key:"maxSize" default:"25MB" min:"1KB" max:"256MB" doc:"Largest message, attachments included, encoded as it is sent. Beyond it: 413."`

	MaxAhead time.Duration `key:"maxAhead" default:"8760h" min:"0" doc:"How far ahead the sendAt of a message may be when it is submitted or rescheduled. Beyond it: 400. 0: any time."`
}

// Templates is what stored templates may contain, and how many there may be.
type Templates struct {
	Missing     string `key:"missing" default:"empty" values:"empty,error" doc:"What happens if the data of a mail lacks a variable: empty prints nothing; error refuses the mail and names the variable. A template can override this."`
	EscapedOnly bool   `key:"escapedOnly" default:"false" doc:"Whether templates must escape all values. If true, {{{name}}} and {{& name}}, which print html unescaped, are refused."`
	Max         int    `key:"max" default:"10000" min:"1" max:"100000" doc:"Maximum number of stored templates, partials and layouts. Every process keeps their names and references in memory, about 1 KB each."`
}

// DeadLetters is how long permanently failed messages are kept for replay.
type DeadLetters struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long a failed message and its content are kept for replay. 0: its content is deleted immediately."`
	Max       int           `key:"max" default:"100000" min:"1" doc:"Maximum number of failed messages kept; the oldest are deleted first."`
}

// Messages is the retention of the email log.
type Messages struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long a finished message stays in the email log, without its content. 0: it is removed immediately."`
	Max       int           `key:"max" default:"1000000" min:"1" doc:"Maximum number of finished messages in the email log; the oldest are deleted first."`
}

// Storage is how mail is stored in Redis.
type Storage struct {
	Seal bool `key:"seal" default:"false" doc:"Whether the bodies of mail are encrypted with the secret before they reach Redis: contents, attachments, the content and params of mail merges, texts kept for the search index, SMTP dialogues of attempts. Addresses, subjects, metadata, stored templates and the search index itself are not. Can be changed while mail is queued. See Sealed mail."`
}

// Idempotency is the lifetime of idempotency keys.
type Idempotency struct {
	Retention time.Duration `key:"retention" default:"168h" min:"1m" doc:"How long an idempotency key is remembered after its message ended. A key used again later queues a new message."`
	Required  bool          `key:"required" default:"false" doc:"Refuse every submit without an idempotency key. Accounts and tokens may demand one by themselves: idempotencyRequired."`
}

// Quotas is how much an account may have, unless its record says otherwise.
type Quotas struct {
	Messages     int  `key:"messages" default:"0" min:"0" doc:"Messages of an account that may wait: queued, delayed or being sent. Beyond it: 429 QuotaExceeded. An account can have another number. 0: any. See Quotas."`
	Bytes        Size `key:"bytes" default:"0" min:"0" doc:"Bytes of these messages, as they are sent. 0: any."`
	PerDay       int  `key:"perDay" default:"0" min:"0" doc:"Messages of an account that are accepted in a day (UTC). 0: any."`
	Templates    int  `key:"templates" default:"0" min:"0" doc:"Templates, partials and layouts of an account. Beyond it: 403. 0: any."`
	Suppressions int  `key:"suppressions" default:"0" min:"0" doc:"Suppressions of an account and of its lists, beyond which requests add none: 403. Bounces, complaints and unsubscribes always count. 0: any."`
	ImportSize   Size `key:"importSize" default:"0" min:"0" doc:"Bytes of one import of suppressions or subscribers of an account. Beyond it: 413. 0: any."`
	Subscribers  int  `key:"subscribers" default:"0" min:"0" doc:"Subscribers of an account, on any number of lists. Beyond it: 403. 0: any."`
	Events       int  `key:"events" default:"0" min:"0" doc:"Events of an account that wait for digests. Beyond it: 429. 0: any."`
	Requests     int  `key:"requests" default:"0" min:"0" doc:"Requests in a minute with each token that is bound to an account and has no rateLimit of its own. Beyond it: 429. 0: any."`
}

// Newsletter is about lists and their subscribers.
type Newsletter struct {
	ConfirmExpiry    time.Duration `key:"confirmExpiry" default:"168h" min:"1h" doc:"How long the link is good for that confirms a subscription."`
	ConfirmPerDay    int           `key:"confirmPerDay" default:"3" min:"0" doc:"Mails that ask one address to confirm subscriptions of an account within a day. A further one is not sent; the API answers 429. 0: any number."`
	FormPerMinute    int           `key:"formPerMinute" default:"10" min:"0" doc:"Public forms that one address (IPv6: /64) can send to one process within a minute. Further ones get 429. 0: any number."`
	PendingRetention time.Duration `key:"pendingRetention" default:"720h" min:"1h" doc:"How long a subscription waits for its confirmation before it is removed. A list can have another time."`
	InFlight         int           `key:"inFlight" default:"10000" min:"1" doc:"Mails of a campaign that wait for another attempt. While there are more, the campaign waits."`
	Expire           time.Duration `key:"expire" default:"24h" min:"1m" doc:"A scheduled campaign that would begin this late or later is held instead, as after a backup was restored."`
	InDoubt          string        `key:"inDoubt" default:"hold" values:"hold,resend" doc:"What happens to people of a campaign if the process died between the end of their mail and the relay's reply: hold lists them as in doubt; resend mails them again, perhaps for the second time."`
	HoldAfter        int           `key:"holdAfter" default:"500" min:"1" doc:"Mails of a campaign before its rates of bounces, complaints and faults can hold it."`
	HoldBounces      float64       `key:"holdBounces" default:"0.05" min:"0" max:"1" doc:"Share of the mails of a campaign that may be refused because of their address. Beyond it the campaign is held. 0: never."`
	HoldComplaints   float64       `key:"holdComplaints" default:"0.003" min:"0" max:"1" doc:"Share of the mails of a campaign that may be reported as spam. Beyond it the campaign is held. 0: never."`
	HoldFaults       float64       `key:"holdFaults" default:"0.01" min:"0" max:"1" doc:"Share of the mails of a campaign that may fail otherwise, such as for a variable that a person lacks. Beyond it the campaign is held. 0: never."`
}

// Digest is how notifications are collected and mailed.
type Digest struct {
	Mode        string        `key:"mode" default:"daily" values:"immediate,hourly,daily,weekly,monthly,off" doc:"When events are mailed of which neither the reader nor their kind says when. See Digests."`
	Hour        int           `key:"hour" default:"8" min:"0" max:"23" doc:"Hour of daily, weekly and monthly digests, by the clock of the reader, if the preference has none."`
	Lane        string        `key:"lane" default:"bulk" values:"bulk,transactional" doc:"Lane of digests whose kind has none."`
	Gap         time.Duration `key:"gap" default:"5m" min:"0" max:"168h" doc:"Least time between two immediate mails to a reader about one category. What comes meanwhile is in the second one."`
	Cap         int           `key:"cap" default:"50" min:"1" max:"1000" doc:"Lines of a digest. The others are counted."`
	CapCategory int           `key:"capCategory" default:"10" min:"1" max:"1000" doc:"Lines of one category, in a digest of several."`
	Keep        int           `key:"keep" default:"1000" min:"1" max:"100000" doc:"Events of a category that are kept one by one for a reader. Of older ones there are exact counts and the last event."`
	Retention   time.Duration `key:"retention" default:"2160h" min:"1h" doc:"How long runs are kept, and events that no digest takes."`
	Stagger     time.Duration `key:"stagger" default:"1h" min:"0" max:"24h" doc:"Digests of one time are spread over this time; each reader gets them at the same minute every day. 0: all at once."`
	Grace       time.Duration `key:"grace" default:"15m" min:"0" max:"24h" doc:"A digest that is due within this time is sent before a change of the reader's preferences counts."`
	Attempts    int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Attempts to make a digest, as while its template fails."`
	Failed      string        `key:"failed" default:"return" values:"return,drop" doc:"What becomes of the events of a digest that failed: return, they are in the next one, once; drop."`
	Threads     bool          `key:"threads" default:"false" doc:"Mail programs show the digests of a reader's schedule as one conversation: each has the same made-up message in References (RFC 5322)."`
	FeedURL     string        `key:"feedUrl" empty:"none" doc:"Address of all events of a reader in your application, for the end of the mail. {recipient} stands for the reader's id: https://app.example.com/feed?user={recipient}."`
}

// Documents is the search index.
type Documents struct {
	Store     string        `key:"store" default:"embedded" values:"embedded,opensearch,none" doc:"Where mail is indexed for search: embedded, in the data directory of one process that serves the API; opensearch, an OpenSearch or Elasticsearch that all processes share; none. See Search."`
	URL       Secret        `key:"url" check:"search address" secret:"url" empty:"none" doc:"Address of OpenSearch or Elasticsearch: https://user:password@search.internal:9200; several nodes of one cluster are separated by commas. Needed if documents.store is opensearch."`
	Index     string        `key:"index" default:"postroom" check:"index name" doc:"Name of the index in that cluster. Instances that share a cluster need different names."`
	Text      Size          `key:"text" default:"4KB" min:"0" max:"64KB" doc:"How much of each message's text, from its beginning, is kept for search and display. 0: none."`
	Retention time.Duration `key:"retention" default:"2160h" min:"0" doc:"How long a message can be found, from its acceptance. Longer than messages.retention, as the index is on disk. 0: forever."`
}

// Webhooks is how events are delivered to endpoints.
type Webhooks struct {
	AllowPrivate  bool          `key:"allowPrivate" default:"false" doc:"Whether webhooks may go to private and loopback addresses. Link-local and cloud metadata addresses are always refused."`
	Attempts      int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Total number of attempts for one event at one endpoint. The waits between them are those of mail (delivery.retry)."`
	Timeout       time.Duration `key:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long an endpoint may take to respond."`
	DisableAfter  time.Duration `key:"disableAfter" default:"120h" min:"0" doc:"An endpoint that has failed for this long without one success is switched off, with an event. 0: never."`
	SigningSecret Secret        `key:"signingSecret" check:"32 bytes or more" secret:"value" empty:"derived from the secret" doc:"Key of X-EE-Wh-Signature, and of the requests to the endpoints of settings and accounts, which have no secret of their own. postroom secret signing prints the current one."`
}

// Tracking is how opens and clicks are counted.
type Tracking struct {
	Opens        bool          `key:"opens" default:"false" doc:"Whether opens are counted, by an image at the end of html. The default for accounts and messages that do not set it. Can be changed while Postroom runs, as trackOpens of /v1/settings. Needs serviceUrl. See Tracking."`
	Clicks       bool          `key:"clicks" default:"false" doc:"Whether clicks are counted, by links through this Postroom. A default as above: trackClicks of /v1/settings."`
	Expiry       time.Duration `key:"expiry" default:"4320h" min:"0" doc:"How long after a message was accepted its opens and clicks are counted. Links redirect to their targets forever. 0: forever."`
	StoreAddress string        `key:"storeAddress" default:"masked" values:"ip,masked,none" doc:"What is kept of the IP address of an open, click or unsubscribe: ip, all of it; masked, without its last octet (IPv4) or its last 80 bits (IPv6); none, nothing."`
}

// Unsubscribe is the behaviour of the unsubscribe links in mail.
type Unsubscribe struct {
	GetUnsubscribes bool `key:"getUnsubscribes" default:"false" doc:"Whether following an unsubscribe link is enough. If false, it leads to a page with a button, because mail scanners follow every link and would unsubscribe recipients who did not ask for it. The button of mail programs (RFC 8058) works in both cases. See Unsubscribe."`
}

// Suppression is which addresses get no more mail, and for how long.
type Suppression struct {
	Refuse           bool          `key:"refuse" default:"false" doc:"The response to a submit if all its recipients are suppressed: false, 200 with the recipients under skipped; true, 422 RecipientSuppressed. See Suppression."`
	Scope            string        `key:"scope" default:"account" values:"account,instance" doc:"Whose mail a bounce or a complaint stops: account, only mail of the account that sent the message; instance, mail of every account. Choose instance only if all accounts are of one team: each account can then stop the mail of all others to an address."`
	HardBounceExpiry time.Duration `key:"hardBounceExpiry" default:"0" min:"0" doc:"How long a hard bounce stops mail to an address. 0: forever."`
	ComplaintExpiry  time.Duration `key:"complaintExpiry" default:"0" min:"0" doc:"How long a complaint stops mail to an address. 0: forever."`
	SoftBounces      int           `key:"softBounces" default:"5" min:"0" max:"1000" doc:"Number of messages to an address that must fail for temporary reasons, such as a full mailbox, to stop mail to it for a while. 0: never."`
	SoftWindow       time.Duration `key:"softWindow" default:"168h" min:"1m" doc:"Period within which these messages must have failed."`
	SoftExpiry       time.Duration `key:"softExpiry" default:"336h" min:"1m" doc:"How long mail to the address is then stopped."`
}

// SMTPD is the SMTP listener for applications.
type SMTPD struct {
	Listen         string   `key:"listen" check:"host:port" empty:"off" doc:"Address that accepts mail over SMTP, such as 127.0.0.1:2525; with STARTTLS if smtpd.tls is set. Applications log in with a token as their password."`
	ListenTLS      string   `key:"listenTls" check:"host:port" empty:"off" doc:"Address that accepts mail over SMTP with TLS from the first byte, such as :465. Needs smtpd.tls."`
	TLS            SMTPDTLS `key:"tls"`
	Hostname       string   `key:"hostname" empty:"the machine's" doc:"Host name in the greeting of this listener."`
	InsecureAuth   bool     `key:"insecureAuth" default:"false" doc:"Whether tokens are accepted without TLS. From this machine they always are."`
	ProxyProtocol  bool     `key:"proxyProtocol" default:"false" doc:"Whether the trusted proxies send the PROXY protocol (v1 or v2) on the two listeners, before TLS. If true, their connections must begin with it. Needs http.trustedProxies."`
	MaxRecipients  int      `key:"maxRecipients" default:"1000" min:"1" max:"10000" doc:"Maximum recipients of one message over SMTP. Further ones get 452, which makes a client send to them separately."`
	MaxConnections int      `key:"maxConnections" default:"500" min:"1" max:"100000" doc:"Maximum concurrent SMTP connections. Beyond it, the oldest connection without a login makes room for a new one; if all have logged in, the new one gets 421."`

	MaxConnectionsPerAddress int `key:"maxConnectionsPerAddress" default:"50" min:"1" max:"100000" doc:"Maximum concurrent SMTP connections from one address (IPv6: /64) without a login. Further ones get 421, or replace one that is older than 10 seconds."`

	IdleTimeout time.Duration `key:"idleTimeout" default:"5m" min:"1s" max:"1h" doc:"How long a client may stay silent before its connection is closed. RFC 5321 requires 5 minutes."`
}

// SMTPDTLS is the certificate of the SMTP listener.
type SMTPDTLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"File with the certificate chain in PEM, for STARTTLS and smtpd.listenTls; read again when it changes. Needs smtpd.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"File with the certificate's private key in PEM. Needs smtpd.tls.cert."`
}

// Bounce is how returned mail is received.
type Bounce struct {
	Domain         string `key:"domain" check:"mail domain" empty:"return paths stay as they are" doc:"Domain of return paths: messages are sent from bounces+<token>@ this domain. The token identifies the message and recipient of a bounce and cannot be forged. Mail to this domain must be delivered here. See Mail that comes back."`
	OwnReturnPaths int    `key:"ownReturnPaths" default:"100" min:"0" max:"10000" doc:"Most recipients of a message that each have a return path, and so an SMTP transaction, of their own. The recipients of a message to more share both. A bounce to a shared return path suppresses nobody: any of the recipients may have written it. Only with bounce.domain."`
	Address        string `key:"address" check:"email address" empty:"none" doc:"Address for returned mail if a relay sets its own return path, which has no token. A bounce to it is accepted if it has the Message-ID of a message that was sent to the recipient it names. It counts only if Postroom made that Message-ID, and for that recipient alone."`
	Listen         string `key:"listen" check:"host:port" empty:"off" doc:"Address that accepts mail to bounce.domain and bounce.address, and to no other, over SMTP without login, such as :25. STARTTLS if smtpd.tls is set."`
	LMTP           string `key:"lmtp" check:"socket" empty:"off" doc:"Unix socket, or host:port, that accepts the same mail over LMTP from your own mail server, such as /run/postroom/bounce.sock."`
	Hostname       string `key:"hostname" empty:"the machine's" doc:"Host name in the greeting of these two listeners."`
	ProxyProtocol  bool   `key:"proxyProtocol" default:"false" doc:"Whether the trusted proxies send the PROXY protocol (v1 or v2) on bounce.listen. If true, their connections must begin with it. Needs http.trustedProxies."`
	MaxConnections int    `key:"maxConnections" default:"200" min:"1" max:"10000" doc:"Maximum concurrent connections to each of the two listeners. Beyond it, the oldest one makes room for a new one."`

	MaxConnectionsPerAddress int `key:"maxConnectionsPerAddress" default:"20" min:"1" max:"10000" doc:"Maximum concurrent connections to bounce.listen from one address (IPv6: /64). Further ones get 421, or replace one that is older than 10 seconds."`
}

// Log is the log on standard error.
type Log struct {
	Level  slog.Level `key:"level" default:"info" values:"debug,info,warn,error" doc:"Lowest level that is written."`
	Format string     `key:"format" default:"auto" values:"auto,text,json" doc:"auto: words on a terminal, else json. text: lines of key=value."`
}

// Shutdown is how a process stops.
type Shutdown struct {
	Grace time.Duration `key:"grace" default:"30s" min:"0" max:"1h" doc:"How long attempts in flight may take to finish when the process stops. 0: they are aborted immediately."`
}

// Archive is where every event is kept for good.
type Archive struct {
	Dir      string `key:"dir" empty:"off, or archive in the data directory where archive.url is set" doc:"Directory with every event, one JSON object a line, one file a day. Nothing in it is ever deleted. See The archive of events."`
	URL      Secret `key:"url" empty:"none" secret:"value" doc:"Address that accepts events by POST, one JSON object a line, instead of files: ClickHouse, or a collector of another store."`
	MaxSpool Size   `key:"maxSpool" default:"1GB" min:"1MB" doc:"Maximum size of the events that wait on the disk of a process while archive.url is unavailable. Beyond it the oldest are dropped."`
}

// Audit is how long the audit log is kept in Redis.
type Audit struct {
	Retention time.Duration `key:"retention" default:"8760h" min:"24h" doc:"How long entries of the audit log are kept in Redis. The archive, if there is one, has them for good."`
	Max       int           `key:"max" default:"100000" min:"1000" doc:"Maximum number of entries of the audit log in Redis, of which each takes about 1 kB. Beyond it the oldest are deleted."`
}

// Alerts is from where on the team is alerted.
type Alerts struct {
	Every          time.Duration `key:"every" default:"15s" min:"1s" max:"1m" doc:"How often each process checks the conditions of the alerts. An alert is resolved after four checks without its condition."`
	QueueAge       time.Duration `key:"queueAge" default:"5m" min:"0" doc:"How long due transactional mail and webhooks may wait before an alert is raised. The time of a pause does not count. 0: no alert."`
	BulkAge        time.Duration `key:"bulkAge" default:"6h" min:"0" doc:"The same for bulk mail; a large mailing may take long. 0: no alert."`
	Paused         time.Duration `key:"paused" default:"1h" min:"0" doc:"How long a queue may be paused before an alert is raised. 0: no alert."`
	RelayAway      time.Duration `key:"relayAway" default:"2m" min:"0" doc:"How long a relay with mail may not answer before an alert is raised: it can't be reached, or is silent. 0: no alert."`
	DigestsLate    time.Duration `key:"digestsLate" default:"10m" min:"0" doc:"How late a digest may be before an alert is raised. The time of a pause does not count. 0: no alert."`
	WebhookFailing time.Duration `key:"webhookFailing" default:"10m" min:"0" doc:"How long a webhook endpoint may take no event, from its first failed attempt to its last, before an alert is raised. 0: no alert."`
	DeadLetters    int           `key:"deadLetters" default:"100" min:"0" doc:"Number of messages that may fail permanently within an hour before an alert is raised. 0: no alert."`
	FailedShare    float64       `key:"failedShare" default:"0.5" min:"0" max:"1" doc:"Share of the messages finished within an hour that may have failed before an alert is raised, if 10 or more failed. 0: no alert."`
	BounceRate     float64       `key:"bounceRate" default:"0.05" min:"0" max:"1" doc:"Share of the recipients mailed through a gateway within 24 hours whose address may be dead before an alert is raised, if it is 10 or more. Amazon SES reviews senders from 5 %, and pauses them from 10 %. 0: no alert."`
	ComplaintRate  float64       `key:"complaintRate" default:"0.001" min:"0" max:"1" doc:"The same for complaints, if there are 3 or more. Gmail asks for less than 0.1 %, and blocks from 0.3 %; SES reviews from 0.1 %. 0: no alert."`
}
