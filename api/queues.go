package api

// Jobs counts the jobs of a queue by state. The counts are exact.
type Jobs struct {
	Active    int `json:"active"`
	Scheduled int `json:"scheduled" doc:"Those of delayed that wait for a time that was chosen: sendAt"`
	Delayed   int `json:"delayed" doc:"After a failed attempt, for a limit, for an account in trouble, or for a time that was chosen"`
	Paused    int `json:"paused" doc:"Waiting jobs that a pause holds back"`
	Waiting   int `json:"waiting"`
	Failed    int `json:"failed" doc:"Dead letters; without them as many as queueKeep keeps visible, for 24 hours at most"`
	Completed int `json:"completed" doc:"As many of each lane as queueKeep keeps visible, for 24 hours at most"`
}

// Pending returns how many jobs are not done and have not failed.
func (j Jobs) Pending() int { return j.Waiting + j.Paused + j.Active + j.Delayed }

// OnlyDelayed returns how many jobs are delayed, but not scheduled.
func (j Jobs) OnlyDelayed() int { return j.Delayed - j.Scheduled }

// QueueStatus is the state of one queue.
type QueueStatus struct {
	Queue          string  `json:"queue"`
	Jobs           Jobs    `json:"jobs"`
	Paused         bool    `json:"paused"` // of submit: whether transactional mail is held back
	Latency        float64 `json:"latency" doc:"Age of the oldest waiting job, in seconds"`
	ProcessedTotal int     `json:"processedTotal"`
	FailedTotal    int     `json:"failedTotal"`

	PerMinute *float64 `json:"perMinute,omitempty" doc:"Tasks done per minute by all processes, over the last minutes; absent: the process that answers runs for less than half a minute"`
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
	Scheduled int  `json:"scheduled" doc:"Part of delayed"`
	Delayed   int  `json:"delayed" doc:"With the scheduled ones"`
	Waiting   int  `json:"waiting"`
	Paused    int  `json:"paused"`
	Total     int  `json:"total" doc:"Each job once"`
	IsPaused  bool `json:"isPaused"`
}

// Stats is a summary of the instance.
type Stats struct {
	Version  string                 `json:"version"`
	Accounts int                    `json:"accounts"`
	Redis    string                 `json:"redis" doc:"How Redis is connected: embedded, single, sentinel, cluster, memory"`
	Queues   map[string]QueueCounts `json:"queues"`
	Counters Counters               `json:"counters"`
	Alerts   []Alert                `json:"alerts" doc:"What is wrong now, oldest first; none for a token that is bound to an account"`
	Search   *DocumentsState        `json:"search,omitempty" doc:"The search index; absent for a token that is bound to an account"`

	Connections  *Connections `json:"connections,omitempty" doc:"Accounts by state, some seconds old; absent for a token that is bound to an account"`
	RedisVersion string       `json:"redisVersion,omitempty" doc:"Absent: there is no redis-server"`
	Go           string       `json:"go" doc:"Version of the Go runtime"`
	Arch         string       `json:"arch" doc:"Architecture of the processor: amd64, arm64"`
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
	Pending      int `json:"pending" doc:"Live messages that will still be tried"`
	Failed       int `json:"failed" doc:"Messages in the email log that failed for good, those that can be replayed among them"`
	Dead         int `json:"dead" doc:"Failed messages that can be replayed"`
	QueuedHour   int `json:"queuedHour" doc:"Messages accepted in the last 60 minutes"`
	SentHour     int `json:"sentHour" doc:"Messages sent in the last 60 minutes"`
	FailedHour   int `json:"failedHour" doc:"Messages failed in the last 60 minutes; a replayed one counts again only when it fails again"`
	AttemptsHour int `json:"attemptsHour" doc:"Attempts made in the last 60 minutes"`
	QueuedDay    int `json:"queuedDay" doc:"Messages accepted in the last 24 hours"`
	SentDay      int `json:"sentDay" doc:"Messages sent in the last 24 hours"`
	FailedDay    int `json:"failedDay" doc:"Messages failed in the last 24 hours"`
	AttemptsDay  int `json:"attemptsDay" doc:"Attempts made in the last 24 hours"`

	SuppressedHour int `json:"suppressedHour" doc:"Messages not sent in the last 60 minutes because all their recipients are suppressed"`
	SuppressedDay  int `json:"suppressedDay" doc:"Messages not sent in the last 24 hours because all their recipients are suppressed"`

	LaterHour LaterCounters `json:"laterHour" doc:"Reports in the last 60 minutes about messages sent"`
	LaterDay  LaterCounters `json:"laterDay" doc:"Reports in the last 24 hours about messages sent"`

	PeriodCounters
}

// PeriodCounters count, with EmailEngine's names, what happened in the seconds of a query: messages to the
// minute, or if there are more than 86400 seconds, their recipients in whole hours. Absent: none.
type PeriodCounters struct {
	SubmitSuccess     int `json:"submit:success,omitempty" doc:"As events:messageSent"`
	SubmitFail        int `json:"submit:fail,omitempty" doc:"As events:messageFailed"`
	MessageQueued     int `json:"events:messageQueued,omitempty" doc:"Absent beyond 86400 seconds"`
	MessageSent       int `json:"events:messageSent,omitempty" doc:"Messages sent, or over 86400 seconds, their recipients"`
	MessageFailed     int `json:"events:messageFailed,omitempty"`
	MessageSuppressed int `json:"events:messageSuppressed,omitempty"`
	MessageDelivered  int `json:"events:messageDelivered,omitempty"`
	MessageBounce     int `json:"events:messageBounce,omitempty"`
	MessageComplaint  int `json:"events:messageComplaint,omitempty"`
	ListUnsubscribe   int `json:"events:listUnsubscribe,omitempty"`
	TrackOpen         int `json:"events:trackOpen,omitempty" doc:"By people and bots"`
	TrackClick        int `json:"events:trackClick,omitempty" doc:"By people and bots"`
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
	Webhooks              *string         `json:"webhooks,omitempty" maxLength:"2048" doc:"URL that receives every event in webhookEvents; empty switches it off"`
	WebhookEvents         *[]string       `json:"webhookEvents,omitempty" doc:"Event types sent to webhooks; * for all"`
	WebhooksCustomHeaders *[]CustomHeader `json:"webhooksCustomHeaders,omitempty" maxItems:"20" doc:"Headers added to each request to webhooks, such as Authorization; at most 20"`
	WebhooksEnabled       *bool           `json:"webhooksEnabled,omitempty" doc:"Whether events are sent to the URL of webhooks"`
	ServiceURL            *string         `json:"serviceUrl,omitempty" maxLength:"2048" doc:"Public address of this Postroom, for links in mail and webhooks; empty if it has none"`
	DeliveryAttempts      *int            `json:"deliveryAttempts,omitempty" minimum:"1" maximum:"100" doc:"How often a message is tried before it fails, unless its submit says otherwise"`
	QueueKeep             *int            `json:"queueKeep,omitempty" minimum:"0" maximum:"100000" doc:"Completed and failed jobs of each lane kept visible in the queues, for at most 24 hours; with dead letters, failed ones stay as long as these"`
	TrackOpens            *bool           `json:"trackOpens,omitempty" doc:"Whether opens are counted, unless an account or message says otherwise"`
	TrackClicks           *bool           `json:"trackClicks,omitempty" doc:"Whether clicks are counted, unless an account or message says otherwise"`
	BlockedLinks          *[]string       `json:"blockedLinks,omitempty" maxItems:"1000" doc:"Links of mail that lead to a page which says that they are switched off, and are not counted: hosts, with their subdomains, and queueIds of messages, whose links are all meant"`
}

// CustomHeader is one header added to webhook requests.
type CustomHeader struct {
	Key   string `json:"key" maxLength:"256"`
	Value string `json:"value" maxLength:"2048"`
}

// SettingsFound are the settings that a query names.
type SettingsFound struct {
	Settings
	EventTypes []string `json:"eventTypes,omitempty" doc:"The types of events, if the query names eventTypes"`
	Ignored    []string `json:"ignored,omitempty" doc:"Settings that only EmailEngine has"`
}

// SettingsUpdated lists the settings a request changed.
type SettingsUpdated struct {
	Updated []string `json:"updated"`
	Ignored []string `json:"ignored,omitempty" doc:"Settings that only EmailEngine has; they change nothing"`
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
	Mode       string   `json:"mode" doc:"embedded, single, sentinel, cluster, memory"`
	Version    string   `json:"version,omitempty" doc:"Of redis-server; absent: there is none"`
	Persistent bool     `json:"persistent" doc:"Whether data survives a restart of Redis"`
	Fsync      string   `json:"fsync" doc:"appendfsync of the append-only file; none without one"`
	Replicas   int      `json:"replicas"`
	Policy     string   `json:"policy" doc:"maxmemory-policy; anything but noeviction can lose mail"`
	Summary    string   `json:"summary,omitempty" doc:"What is kept, and what a crash or a power cut can lose, in words"`
	Warnings   []string `json:"warnings" doc:"What should be changed so that less can be lost, in words"`
}
