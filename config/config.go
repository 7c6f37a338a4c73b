package config

import (
	"log/slog"
	"time"
)

// Config is the whole of the settings. The tags of a field describe it, to the program and to its documentation alike:
//
//	key      its name; the path is made of the names from the top, joined by dots
//	default  its value when nobody sets it, written as in the file
//	doc      what it means
//	empty    what an empty value means; a setting without this tag must have a value
//	min, max the limits of numbers, sizes and durations, both included
//	values   the words it may be
//	check    the rule of format.go that a text has to follow, named as the documentation names it
//	secret   "value": never shown; "url": shown without its credentials
type Config struct {
	HTTP           HTTP        `key:"http"`
	Monitor        Monitor     `key:"monitor"`
	Redis          Redis       `key:"redis"`
	Outbox         Outbox      `key:"outbox"`
	Data           string      `key:"data" default:"./data" check:"path" doc:"Directory of the embedded Redis, the secret and the admin token. Made at first start, readable by its owner only."`
	Secret         Secret      `key:"secret" check:"32 bytes or more" secret:"value" empty:"made at first start, in the data directory" doc:"Key that seals the passwords and other secrets Postroom stores. Every process on one Redis needs the same one; without it, what it sealed can't be read again."`
	SecretPrevious Secret      `key:"secretPrevious" check:"32 bytes or more" secret:"value" empty:"none" doc:"The secret that was in force before, after a change of it: what it sealed can still be opened. Once postroom secret rotate has sealed everything anew it can go, see Changing the secret."`
	Token          Secret      `key:"token" check:"16 characters or more" secret:"value" empty:"made at first start, in the data directory" doc:"Admin token to begin with: it may do everything, tokens made through the API can replace it."`
	ServiceURL     string      `key:"serviceUrl" check:"web address" empty:"none" doc:"Public address of this Postroom, such as https://mail.example.com. Webhooks carry it."`
	SMTP           Relay       `key:"smtp" secret:"url" empty:"none" doc:"Relay of the default account (named default): smtp://user:password@host:587, or smtps:// for TLS from the first byte. See Relay URLs."`
	From           Mailbox     `key:"from" empty:"none" doc:"Sender of the default account, an address or a name with an address: Example Shop <shop@example.com>. Needs smtp."`
	Role           string      `key:"role" default:"all" values:"all,api,worker" doc:"What this process does: api takes mail and shows pages, worker delivers, all does both. With api and worker apart, redis.url must be set."`
	Workers        Workers     `key:"workers"`
	Delivery       Delivery    `key:"delivery"`
	Message        Message     `key:"message"`
	Templates      Templates   `key:"templates"`
	DeadLetters    DeadLetters `key:"deadLetters"`
	Messages       Messages    `key:"messages"`
	Idempotency    Idempotency `key:"idempotency"`
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
	Log            Log         `key:"log"`
	Shutdown       Shutdown    `key:"shutdown"`
}

// HTTP is where the API and the pages are served.
type HTTP struct {
	Listen string `key:"listen" default:"127.0.0.1:3000" check:"host:port" doc:"Address of the API and the pages, host:port. An empty host (:3000) means every network of the machine; port 0 picks a free one."`
	TLS    TLS    `key:"tls"`
}

// TLS is the certificate of the HTTP server.
type TLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"File with the certificate chain in PEM, for HTTPS. Needs http.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"File with the certificate's private key in PEM. Needs http.tls.cert."`
}

// Monitor is where health and metrics are served apart from the API.
type Monitor struct {
	Listen string `key:"listen" check:"host:port" empty:"off" doc:"Address that answers /health, /ready and /metrics and nothing else, such as 127.0.0.1:3001; with TLS where http.tls is set. It is the only listener of a worker. Beside an API it takes /metrics away from http.listen."`
}

// Redis is the store of everything.
type Redis struct {
	URL            Secret        `key:"url" check:"Redis address" secret:"url" empty:"embedded" doc:"Address of Redis: redis://, rediss:// (TLS), redis+sentinel://, redis+cluster:// or unix://, see Redis addresses. Without one, Postroom runs a redis-server of its own in the data directory, or keeps everything in memory where none is installed."`
	Fsync          string        `key:"fsync" default:"everysec" values:"everysec,always" doc:"When the embedded Redis writes to disk: everysec can lose the last second in a power cut, always loses nothing and is slower."`
	Partitions     int           `key:"partitions" default:"1" min:"1" max:"256" doc:"Parts the outbox is split into, to spread it over a Redis Cluster. The same for every process; not to be changed while messages are queued."`
	WaitReplicas   int           `key:"waitReplicas" default:"0" min:"0" max:"10" doc:"Replicas of Redis that must have a message before it is accepted, and before its final dot is sent. 0: accepted when the master has it. See Which Redis, and what it can lose."`
	WaitTimeout    time.Duration `key:"waitTimeout" default:"1s" min:"10ms" max:"5s" doc:"How long to wait for these replicas. Beyond it: 503 NotReplicated."`
	MaxMemoryShare float64       `key:"maxMemoryShare" default:"0.75" min:"0.1" max:"1" doc:"Share of Redis' maxmemory beyond which new mail is refused (503, Retry-After), so that queued mail can still be worked off. Without maxmemory it has no effect."`
}

// Outbox bounds the queued mail.
type Outbox struct {
	MaxLive int `key:"maxLive" default:"0" min:"0" doc:"Unfinished messages beyond which new mail is refused (503, Retry-After). 0: no limit."`
}

// Workers is how many jobs of each queue one process works on at once.
type Workers struct {
	Submit    int `key:"submit" default:"50" min:"1" max:"10000" doc:"Transactional messages delivered at once, by one process."`
	Bulk      int `key:"bulk" default:"50" min:"1" max:"10000" doc:"Bulk messages delivered at once, by one process."`
	Notify    int `key:"notify" default:"50" min:"1" max:"10000" doc:"Webhook requests made at once, by one process."`
	Documents int `key:"documents" default:"4" min:"1" max:"1000" doc:"Jobs of the documents queue worked on at once, by one process."`
}

// Delivery is how a message is tried.
type Delivery struct {
	Attempts       int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Attempts for a message in all, unless its deliveryAttempts says otherwise. 1: never tried again."`
	Retry          Retry         `key:"retry"`
	Timeout        time.Duration `key:"timeout" default:"120s" min:"1s" max:"1h" doc:"How long a relay may stay silent before the attempt is given up."`
	Lease          time.Duration `key:"lease" default:"8s" min:"2s" max:"10m" doc:"How long a message stays with a worker that has gone silent, before another worker takes it over. Working ones extend their leases all the time."`
	InDoubt        string        `key:"inDoubt" default:"resend" values:"resend,hold" doc:"What happens when the connection or the process died between the end of a message and the relay's reply, so that nobody knows whether it was taken: resend tries again and may deliver twice, hold makes it a dead letter for you to decide."`
	AccountTrouble string        `key:"accountTrouble" default:"fail" values:"fail,hold" doc:"What becomes of mail while its account's login, token, certificate or sender is refused: fail makes it dead letters, to be replayed together once the account is in order; hold keeps it waiting, tries one message now and then, and spends no attempts. An account can say otherwise for itself."`
	QueueKeep      int           `key:"queueKeep" default:"0" min:"0" max:"100000" doc:"Completed jobs kept visible in the queues, for 24 hours at most. Failed ones stay visible as long as their dead letter."`
	Classifier     string        `key:"classifier" default:"full" values:"full,basic" doc:"How an SMTP failure is judged temporary or permanent: full reads command, code, enhanced code and text; basic takes every code from 500 on, except 503, as permanent."`
}

// Retry is how long a message waits between attempts.
type Retry struct {
	Base     time.Duration   `key:"base" default:"5s" min:"1ms" max:"24h" doc:"Attempt n waits base × factor^(n-1): with 5s and 2, the second waits 10 s, the third 20 s, then 40 s."`
	Factor   float64         `key:"factor" default:"2" min:"1" max:"100" doc:"Growth of the wait from one attempt to the next. 1: always the same wait."`
	Jitter   float64         `key:"jitter" default:"0.2" min:"0" max:"1" doc:"Share by which each wait varies at random, either way, so that messages that failed together don't come back together. 0: none."`
	Max      time.Duration   `key:"max" default:"0" min:"0" doc:"Longest wait. 0: no limit."`
	Schedule []time.Duration `key:"schedule" min:"1s" empty:"none" doc:"Waits before the second, third… attempt instead of base and factor, such as [1m, 5m, 30m, 2h, 8h]. The last one repeats."`
}

// Message bounds one message.
type Message struct {
	MaxSize Size `key:"maxSize" default:"25MB" min:"1KB" max:"256MB" doc:"Largest message, attachments included, encoded as it is sent. Beyond it: 413."`
}

// Templates is what stored templates may say, and how many there may be.
type Templates struct {
	Missing     string `key:"missing" default:"empty" values:"empty,error" doc:"What becomes of a variable that the data of a mail lacks: empty prints nothing, error refuses the mail and names it. A template can say otherwise for itself."`
	EscapedOnly bool   `key:"escapedOnly" default:"false" doc:"Whether templates must escape all values: {{{name}}} and {{& name}}, which print html as it is, are refused then."`
	Max         int    `key:"max" default:"10000" min:"1" max:"100000" doc:"Templates, partials and layouts stored at most. Every process keeps in memory what they are called and what they use, about 1 KB each."`
}

// DeadLetters is how long messages that failed for good are kept for replay.
type DeadLetters struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long a failed message and its content are kept for replay. 0: its content goes at once."`
	Max       int           `key:"max" default:"100000" min:"1" doc:"Failed messages kept at most; the oldest go first."`
}

// Messages is how long the email log goes back.
type Messages struct {
	Retention time.Duration `key:"retention" default:"168h" min:"0" doc:"How long a finished message stays in the email log, without its content. 0: it leaves at once."`
	Max       int           `key:"max" default:"1000000" min:"1" doc:"Finished messages kept in the email log at most; the oldest go first."`
}

// Idempotency is how long keys are remembered.
type Idempotency struct {
	Retention time.Duration `key:"retention" default:"168h" min:"1m" doc:"How long an idempotency key is remembered. A key used again later queues a new message."`
}

// Documents is the search index.
type Documents struct {
	Store     string        `key:"store" default:"embedded" values:"embedded,opensearch,none" doc:"Where mail is indexed for search: embedded, in the data directory of one process that serves the API; opensearch, an OpenSearch or Elasticsearch that all processes share; none. See Search."`
	URL       Secret        `key:"url" check:"search address" secret:"url" empty:"none" doc:"Address of OpenSearch or Elasticsearch: https://user:password@search.internal:9200; several, of one cluster, by commas. Needed where documents.store is opensearch."`
	Index     string        `key:"index" default:"postroom" check:"index name" doc:"Name of the index there. Instances that share a cluster need different ones."`
	Text      Size          `key:"text" default:"4KB" min:"0" max:"64KB" doc:"Text kept of each message, from its beginning, to be found and shown. 0: none."`
	Retention time.Duration `key:"retention" default:"2160h" min:"0" doc:"How long a message is found, counted from when it was accepted: longer than messages.retention, as the index is on disk. 0: for ever."`
}

// Webhooks is how events are handed over.
type Webhooks struct {
	AllowPrivate  bool          `key:"allowPrivate" default:"false" doc:"Whether webhooks may go to private and loopback addresses. Link-local and cloud metadata addresses are refused either way."`
	Attempts      int           `key:"attempts" default:"10" min:"1" max:"100" doc:"Attempts for one event at one endpoint, in all. They wait as mail does (delivery.retry)."`
	Timeout       time.Duration `key:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long an endpoint may take to answer."`
	DisableAfter  time.Duration `key:"disableAfter" default:"120h" min:"0" doc:"An endpoint that has failed for this long without one success is switched off, with an event. 0: never."`
	SigningSecret Secret        `key:"signingSecret" check:"32 bytes or more" secret:"value" empty:"derived from the secret" doc:"Key of X-EE-Wh-Signature, and of the requests to the endpoints of settings and accounts, which have no secret of their own. postroom secret signing prints the one in force."`
}

// Tracking is how opens and clicks are counted.
type Tracking struct {
	Opens        bool          `key:"opens" default:"false" doc:"Whether opens are counted, by a picture at the end of html, of accounts and messages that don't say. Can be changed while Postroom runs, as trackOpens of /v1/settings. Needs serviceUrl. See Tracking."`
	Clicks       bool          `key:"clicks" default:"false" doc:"Whether clicks are counted, by links that lead through this Postroom, likewise: trackClicks of /v1/settings."`
	Expiry       time.Duration `key:"expiry" default:"4320h" min:"0" doc:"How long after a message was accepted its opens and clicks are counted. Links lead to their targets for ever. 0: for ever."`
	StoreAddress string        `key:"storeAddress" default:"masked" values:"ip,masked,none" doc:"What is kept of the address of those who open and click: ip, all of it; masked, without its last octet (IPv4) or its last 80 bits (IPv6); none."`
}

// Unsubscribe is what the unsubscribe links of a mail do.
type Unsubscribe struct {
	GetUnsubscribes bool `key:"getUnsubscribes" default:"false" doc:"Whether following an unsubscribe link is enough. Otherwise it leads to a page with a button, because programs that check mail follow every link, and would unsubscribe people who never asked. The button of mail programs (RFC 8058) works either way. See Unsubscribe."`
}

// Suppression is who is not mailed any more, and for how long.
type Suppression struct {
	Refuse           bool          `key:"refuse" default:"false" doc:"What a submit is answered all of whose recipients are suppressed: false, 200 with them under skipped; true, 422 RecipientSuppressed. See Suppression."`
	Scope            string        `key:"scope" default:"instance" values:"instance,account" doc:"Whose mail a bounce or a complaint stops: instance, that of every account; account, that of the account which met it."`
	HardBounceExpiry time.Duration `key:"hardBounceExpiry" default:"0" min:"0" doc:"How long a hard bounce stops mail to an address. 0: for ever."`
	ComplaintExpiry  time.Duration `key:"complaintExpiry" default:"0" min:"0" doc:"How long a complaint stops mail to an address. 0: for ever."`
	SoftBounces      int           `key:"softBounces" default:"5" min:"0" max:"1000" doc:"So many messages to an address, given up for reasons that may pass, such as a full mailbox, stop mail to it for a while. 0: never."`
	SoftWindow       time.Duration `key:"softWindow" default:"168h" min:"1m" doc:"Within how long they must have been given up."`
	SoftExpiry       time.Duration `key:"softExpiry" default:"336h" min:"1m" doc:"How long they stop mail to the address."`
}

// SMTPD is the inlet for applications that speak SMTP.
type SMTPD struct {
	Listen         string        `key:"listen" check:"host:port" empty:"off" doc:"Address that takes mail over SMTP, such as 127.0.0.1:2525; with STARTTLS where smtpd.tls is set. Applications log in with a token as their password."`
	ListenTLS      string        `key:"listenTls" check:"host:port" empty:"off" doc:"Address that takes mail over SMTP with TLS from the first byte, such as :465. Needs smtpd.tls."`
	TLS            SMTPDTLS      `key:"tls"`
	Hostname       string        `key:"hostname" empty:"the machine's" doc:"Name the inlet greets with."`
	InsecureAuth   bool          `key:"insecureAuth" default:"false" doc:"Whether tokens are taken without TLS. From this machine itself they always are."`
	MaxRecipients  int           `key:"maxRecipients" default:"1000" min:"1" max:"10000" doc:"Recipients of one message over SMTP. Further ones are answered 452, which makes a client send to them separately."`
	MaxConnections int           `key:"maxConnections" default:"500" min:"1" max:"100000" doc:"Connections over SMTP at once. Further ones are answered 421."`
	IdleTimeout    time.Duration `key:"idleTimeout" default:"5m" min:"1s" max:"1h" doc:"How long a client may stay silent before its connection is ended. RFC 5321 asks for 5 minutes."`
}

// SMTPDTLS is the certificate of the SMTP inlet.
type SMTPDTLS struct {
	Cert string `key:"cert" check:"path" empty:"no TLS" doc:"File with the certificate chain in PEM, for STARTTLS and smtpd.listenTls; read again when it changes. Needs smtpd.tls.key."`
	Key  string `key:"key" check:"path" empty:"no TLS" doc:"File with the certificate's private key in PEM. Needs smtpd.tls.cert."`
}

// Bounce is where mail comes back to.
type Bounce struct {
	Domain         string `key:"domain" check:"mail domain" empty:"return paths stay as they are" doc:"Domain of return paths: messages are sent from bounces+<token>@ this domain, so that what comes back tells by itself which message and recipient it is about, and can't be forged. Its mail must come here. See Mail that comes back."`
	Address        string `key:"address" check:"email address" empty:"none" doc:"Address that mail comes back to where a relay puts its own return path, which has no token. What comes there is believed where it has the Message-ID of a message that was sent to the very recipient it names."`
	Listen         string `key:"listen" check:"host:port" empty:"off" doc:"Address that takes mail to bounce.domain and bounce.address over SMTP, without login and for nobody else, such as :25. STARTTLS where smtpd.tls is set."`
	LMTP           string `key:"lmtp" check:"socket" empty:"off" doc:"Unix socket, or host:port, that takes the same over LMTP from a mail server of yours, such as /run/postroom/bounce.sock."`
	Hostname       string `key:"hostname" empty:"the machine's" doc:"Name the two greet with."`
	MaxConnections int    `key:"maxConnections" default:"50" min:"1" max:"10000" doc:"Connections to the two at once. Further ones are answered 421."`
}

// Log is what is written to standard error.
type Log struct {
	Level  slog.Level `key:"level" default:"info" values:"debug,info,warn,error" doc:"Least important line that is written."`
	Format string     `key:"format" default:"auto" values:"auto,text,json" doc:"auto: text on a terminal, else json."`
}

// Shutdown is how a process stops.
type Shutdown struct {
	Grace time.Duration `key:"grace" default:"30s" min:"0" max:"1h" doc:"How long attempts in flight may take to finish when the process is told to stop. 0: they are cut at once."`
}
