package api

// Jobs counts the jobs of a queue by state. The counts are exact.
type Jobs struct {
	Active    int `json:"active"`
	Scheduled int `json:"scheduled" doc:"Delayed jobs that are scheduled with sendAt"`
	Delayed   int `json:"delayed" doc:"Jobs that wait after a failed attempt, for a limit, for an account with a problem, or for their scheduled time"`
	Paused    int `json:"paused" doc:"Waiting jobs in a paused queue"`
	Waiting   int `json:"waiting"`
	Failed    int `json:"failed" doc:"Dead letters. If dead letters are disabled, as many failed jobs as queueKeep keeps visible, for at most 24 hours"`
	Completed int `json:"completed" doc:"As many completed jobs of each stream as queueKeep keeps visible, for at most 24 hours"`
}

// Pending returns how many jobs are not done and have not failed.
func (j Jobs) Pending() int { return j.Waiting + j.Paused + j.Active + j.Delayed }

// OnlyDelayed returns how many jobs are delayed, but not scheduled.
func (j Jobs) OnlyDelayed() int { return j.Delayed - j.Scheduled }

// QueueStatus is the state of one queue.
type QueueStatus struct {
	Queue          string  `json:"queue"`
	Jobs           Jobs    `json:"jobs"`
	Paused         bool    `json:"paused"` // for submit: whether transactional messages are paused
	Latency        float64 `json:"latency" doc:"Age of the oldest waiting job in seconds"`
	ProcessedTotal int     `json:"processedTotal"`
	FailedTotal    int     `json:"failedTotal"`

	PerMinute *float64 `json:"perMinute,omitempty" doc:"Tasks completed per minute by all processes in the last few minutes. Absent during the first half minute of this process"`
}

// QueuePatch pauses or resumes a queue.
type QueuePatch struct {
	Paused *bool `json:"paused,omitempty"`
}

// QueuePaused is the response to a QueuePatch.
type QueuePaused struct {
	Queue  string `json:"queue"`
	Paused bool   `json:"paused"`
}

// QueueCounts are the counts of a queue in the stats.
type QueueCounts struct {
	Active    int  `json:"active"`
	Scheduled int  `json:"scheduled" doc:"Scheduled jobs, which are part of delayed"`
	Delayed   int  `json:"delayed" doc:"Delayed jobs, including scheduled ones"`
	Waiting   int  `json:"waiting"`
	Paused    int  `json:"paused"`
	Total     int  `json:"total" doc:"All jobs, each counted once"`
	IsPaused  bool `json:"isPaused"`
}

// Stats is a summary of the instance.
type Stats struct {
	Version  string                 `json:"version"`
	Accounts int                    `json:"accounts"`
	Redis    string                 `json:"redis" doc:"Redis setup: embedded, single, sentinel, cluster or memory"`
	Queues   map[string]QueueCounts `json:"queues"`
	Counters Counters               `json:"counters"`
	Alerts   []Alert                `json:"alerts" doc:"Current alerts, oldest first. Empty for a token that is bound to an account"`
	Search   *DocumentsState        `json:"search,omitempty" doc:"The search index. Absent for a token that is bound to an account"`

	Connections  *Connections `json:"connections,omitempty" doc:"Accounts by state, some seconds old. Absent for a token that is bound to an account"`
	RedisVersion string       `json:"redisVersion,omitempty" doc:"Version of redis-server. Absent without a redis-server"`
	Go           string       `json:"go" doc:"Version of the Go runtime"`
	Arch         string       `json:"arch" doc:"Processor architecture, such as amd64 or arm64"`
}

// Connections counts the accounts by state, as in AccountInfo.
type Connections struct {
	Unset     int `json:"unset"`
	Connected int `json:"connected"`
	Error     int `json:"error"`
	Held      int `json:"held"`
}

// Counters count messages and recipients over rolling hours.
type Counters struct {
	Pending      int `json:"pending" doc:"Live messages that Postroom will still try to send"`
	Failed       int `json:"failed" doc:"Messages in the email log that failed permanently, including dead letters"`
	Dead         int `json:"dead" doc:"Failed messages that can be replayed"`
	QueuedHour   int `json:"queuedHour" doc:"Messages accepted in the last 60 minutes"`
	SentHour     int `json:"sentHour" doc:"Messages sent in the last 60 minutes"`
	FailedHour   int `json:"failedHour" doc:"Messages that failed in the last 60 minutes. A replayed message counts again only if it fails again"`
	AttemptsHour int `json:"attemptsHour" doc:"Attempts in the last 60 minutes"`
	QueuedDay    int `json:"queuedDay" doc:"Messages accepted in the last 24 hours"`
	SentDay      int `json:"sentDay" doc:"Messages sent in the last 24 hours"`
	FailedDay    int `json:"failedDay" doc:"Messages that failed in the last 24 hours"`
	AttemptsDay  int `json:"attemptsDay" doc:"Attempts in the last 24 hours"`

	SuppressedHour int `json:"suppressedHour" doc:"Messages not sent in the last 60 minutes because all their recipients are suppressed"`
	SuppressedDay  int `json:"suppressedDay" doc:"Messages not sent in the last 24 hours because all their recipients are suppressed"`

	LaterHour LaterCounters `json:"laterHour" doc:"Reports received in the last 60 minutes about sent messages"`
	LaterDay  LaterCounters `json:"laterDay" doc:"Reports received in the last 24 hours about sent messages"`

	PeriodCounters
}

// PeriodCounters count, with EmailEngine's names, what happened in the seconds of a query: messages to the
// minute, or if there are more than 86400 seconds, their recipients in whole hours. An absent number means
// none.
type PeriodCounters struct {
	SubmitSuccess     int `json:"submit:success,omitempty" doc:"Same as events:messageSent"`
	SubmitFail        int `json:"submit:fail,omitempty" doc:"Same as events:messageFailed"`
	MessageQueued     int `json:"events:messageQueued,omitempty" doc:"Messages queued. Absent if seconds exceeds 86400"`
	MessageSent       int `json:"events:messageSent,omitempty" doc:"Messages sent. If seconds exceeds 86400, their recipients"`
	MessageFailed     int `json:"events:messageFailed,omitempty"`
	MessageSuppressed int `json:"events:messageSuppressed,omitempty"`
	MessageDelivered  int `json:"events:messageDelivered,omitempty"`
	MessageBounce     int `json:"events:messageBounce,omitempty"`
	MessageComplaint  int `json:"events:messageComplaint,omitempty"`
	ListUnsubscribe   int `json:"events:listUnsubscribe,omitempty"`
	TrackOpen         int `json:"events:trackOpen,omitempty" doc:"Opens by people and bots"`
	TrackClick        int `json:"events:trackClick,omitempty" doc:"Clicks by people and bots"`
}

// LaterCounters count events of messages after a relay accepted them. Opens and clicks of bots count
// separately.
type LaterCounters struct {
	Delivered    int `json:"delivered"`
	Bounced      int `json:"bounced"`
	Complained   int `json:"complained"`
	Unsubscribed int `json:"unsubscribed"`
	Opened       int `json:"opened"`
	OpenedBots   int `json:"openedBots"`
	Clicked      int `json:"clicked"`
	ClickedBots  int `json:"clickedBots"`
}

// Settings are the settings that can be changed while Postroom runs. Absent fields of a request stay as they
// are.
type Settings struct {
	Webhooks              *string         `json:"webhooks,omitempty" maxLength:"2048" doc:"URL that receives the events in webhookEvents. An empty URL disables it"`
	WebhookEvents         *[]string       `json:"webhookEvents,omitempty" doc:"Event types to send to webhooks. * selects all"`
	WebhooksCustomHeaders *[]CustomHeader `json:"webhooksCustomHeaders,omitempty" maxItems:"20" doc:"Headers to add to each webhook request, such as Authorization. At most 20"`
	WebhooksEnabled       *bool           `json:"webhooksEnabled,omitempty" doc:"Whether to send events to the URL in webhooks"`
	ServiceURL            *string         `json:"serviceUrl,omitempty" maxLength:"2048" doc:"Public URL of this Postroom, for links in messages and webhooks. Empty if there is none"`
	DeliveryAttempts      *int            `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100" doc:"Default number of attempts before a message fails"`
	QueueKeep             *int            `json:"queueKeep,omitempty" minimum:"0" maximum:"100000" doc:"Number of completed and failed jobs of each stream to keep visible in the queues, for at most 24 hours. With dead letters, failed jobs stay as long as these"`
	TrackOpens            *bool           `json:"trackOpens,omitempty" doc:"Whether to count opens, unless an account or message overrides it"`
	TrackClicks           *bool           `json:"trackClicks,omitempty" doc:"Whether to count clicks, unless an account or message overrides it"`
	BlockedLinks          *[]string       `json:"blockedLinks,omitempty" maxItems:"1000" doc:"Links that are blocked: a host with its subdomains, or the queueId of a message for all of its links. They lead to a page that explains this, and aren't counted"`
}

// CustomHeader is one header added to webhook requests.
type CustomHeader struct {
	Key   string `json:"key" maxLength:"256"`
	Value string `json:"value" maxLength:"2048"`
}

// SettingsFound are the settings that a query names.
type SettingsFound struct {
	Settings
	EventTypes []string `json:"eventTypes,omitempty" doc:"Event types, if the query requests eventTypes"`
	Ignored    []string `json:"ignored,omitempty" doc:"Settings that only EmailEngine has"`
}

// SettingsUpdated lists the settings a request changed.
type SettingsUpdated struct {
	Updated []string `json:"updated"`
	Ignored []string `json:"ignored,omitempty" doc:"Settings that only EmailEngine has. They have no effect"`
}

// Health is the response of /health: the process is alive.
type Health struct {
	Success bool `json:"success"`
}

// Ready is the response of /ready: whether the instance accepts work, and the durability of its Redis.
type Ready struct {
	Ready      bool       `json:"ready"`
	Checks     []Check    `json:"checks"`
	Durability Durability `json:"durability"`
}

// Check is a condition for the instance to be ready.
type Check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

// Durability is the durability of the connected Redis: which crash loses what.
type Durability struct {
	Mode       string   `json:"mode" doc:"Redis setup: embedded, single, sentinel, cluster or memory"`
	Version    string   `json:"version,omitempty" doc:"Version of redis-server. Absent without a redis-server"`
	Persistent bool     `json:"persistent" doc:"Whether data survives a restart of Redis"`
	Fsync      string   `json:"fsync" doc:"Setting appendfsync of the append-only file, or none without one"`
	Replicas   int      `json:"replicas"`
	Policy     string   `json:"policy" doc:"Setting maxmemory-policy. Any value except noeviction can lose messages"`
	Summary    string   `json:"summary,omitempty" doc:"Description of what is stored and what a crash or a power failure can lose"`
	Warnings   []string `json:"warnings" doc:"Changes that would reduce the possible loss"`
}
