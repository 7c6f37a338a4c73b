package api

import "time"

// The answers to whether mail flows.
const (
	FlowSending = "sending" // mail was sent within ten minutes, and none that is due waits for long
	FlowIdle    = "idle"    // nothing was sent within ten minutes, and nothing that is due waits for long
	FlowLate    = "late"    // a message that is due has waited for five minutes or more
	FlowStuck   = "stuck"   // no relay of an account takes its mail, and some waits
	FlowPaused  = "paused"  // a pause holds mail back
)

// OverviewQuery narrows an Overview. The zero query is about all mail of the last 24 hours.
type OverviewQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Limit the overview to this account. Defaults to the token's account, or to all"`
	Days    int    `query:"days" enum:"0,1,7,30" doc:"Period in days. Defaults to 1"`
}

// Overview shows an operator whether messages are being sent, and any problems with their fixes.
type Overview struct {
	Account string    `json:"account,omitempty" doc:"Account that the overview is limited to. Absent for the whole instance"`
	Time    time.Time `json:"time" doc:"When the overview was made"`
	Days    int       `json:"days" enum:"1,7,30"`
	From    time.Time `json:"from" doc:"Start of the period, at the start of an hour, of six hours or of a day (UTC)"`

	Flow     OverviewFlow      `json:"flow"`
	Bars     []OverviewBar     `json:"bars" doc:"The period in steps of an hour (24 hours), six hours (7 days) or a day (30 days), oldest first, including empty steps"`
	Total    Rate              `json:"total" doc:"Sum of the period"`
	Rates    []OverviewRate    `json:"rates" doc:"Bounce and complaint rates of the period, with the usual limits"`
	Alerts   []OverviewAlert   `json:"alerts" doc:"Current alerts, oldest first. Empty for an account, because alerts concern the instance"`
	Failures OverviewFailures  `json:"failures"`
	Troubles []OverviewTrouble `json:"troubles" doc:"Accounts, gateways and webhook endpoints with problems, at most 10 of each, and paused queues"`
	More     int               `json:"more,omitempty" doc:"Number of other objects with problems"`
}

// OverviewFlow says whether mail flows. It counts messages.
type OverviewFlow struct {
	State     string              `json:"state" enum:"sending,idle,late,stuck,paused" doc:"State of sending. stuck means that messages wait, but no relay of an account accepts them. The sentence names the account"`
	Sentence  string              `json:"sentence" doc:"Description of the state"`
	Waiting   int                 `json:"waiting" doc:"Messages that are due and wait for a worker"`
	Active    int                 `json:"active" doc:"Messages being sent"`
	Scheduled int                 `json:"scheduled" doc:"Messages scheduled with sendAt"`
	Delayed   int                 `json:"delayed" doc:"Messages that will be retried, or that wait for a limit or an account with a problem"`
	Paused    int                 `json:"paused" doc:"Messages that are due but paused"`
	Dead      int                 `json:"dead" doc:"Messages that failed permanently. You can replay them"`
	Oldest    *OverviewOldest     `json:"oldest,omitempty" doc:"The due message that was accepted first. Absent if no message is due"`
	Relay     *OverviewRelayTimes `json:"relayTimes,omitempty" doc:"Times of the relays. Absent if nothing was sent in the period"`
}

// OverviewOldest is the oldest message that waits.
type OverviewOldest struct {
	QueueID string    `json:"queueId"`
	Since   time.Time `json:"since" doc:"When it became due"`
}

// OverviewRelayTimes is how long messages took to a relay, with the retries: from when they were wanted until
// the result for the last recipient was known.
type OverviewRelayTimes struct {
	Messages int     `json:"messages" doc:"Number of messages measured: the newest in the period, at most 200"`
	P50      float64 `json:"p50" doc:"Median time in seconds"`
	P95      float64 `json:"p95" doc:"95th percentile of the time in seconds"`
}

// OverviewBar counts recipients in one step of time.
type OverviewBar struct {
	Time     time.Time `json:"time" doc:"Start of the step"`
	Accepted int       `json:"accepted" doc:"Number accepted by Postroom"`
	Sent     int       `json:"sent" doc:"Number accepted by a relay"`
	Failed   int       `json:"failed" doc:"Number that Postroom gave up on, without those replayed since"`
	Bounced  int       `json:"bounced" doc:"Number that bounced after a relay accepted them"`
}

// OverviewRate is a rate of the period, with the limits from which providers block messages.
type OverviewRate struct {
	Kind   string  `json:"kind" enum:"bounces,complaints"`
	Events int     `json:"events" doc:"Number of hard bounces or complaints"`
	Value  float64 `json:"value" doc:"events / sent. 0 if nothing was sent"`
	High   float64 `json:"high" doc:"Rate from which it is considered high"`
	Limit  float64 `json:"limit" doc:"Rate from which providers block your messages"`
	State  string  `json:"state" enum:"good,few,high,over" doc:"Assessment of the rate. few means that it is high, but with fewer than 10 bounces or 3 complaints"`
}

// OverviewAlert is an alert with what to do about it.
type OverviewAlert struct {
	Alert
	Playbook string    `json:"playbook" doc:"Path of the playbook page, which explains how to find the cause and fix it"`
	Do       []WhyStep `json:"do" doc:"Where to fix it"`
}

// OverviewFailures are the reasons why messages of the period failed permanently.
type OverviewFailures struct {
	Total   int              `json:"total" doc:"Number of messages accepted in the period that failed permanently"`
	Counted int              `json:"counted" doc:"Number of these messages examined: the newest, at most 200"`
	Reasons []OverviewReason `json:"reasons" doc:"Most frequent reasons, at most 5"`
}

// OverviewReason is one reason of failures.
type OverviewReason struct {
	Text     string `json:"text" doc:"Error of the newest such message, without addresses"`
	Messages int    `json:"messages"`
	QueueID  string `json:"queueId" doc:"ID of the newest such message"`
}

// OverviewTrouble is an account, a gateway or a webhook endpoint in trouble, or a queue that is paused.
type OverviewTrouble struct {
	Kind  string     `json:"kind" enum:"account,gateway,endpoint,queue"`
	ID    string     `json:"id"`
	State string     `json:"state" doc:"State: error or held (accounts), error or open (gateways), disabled or failing (endpoints), or paused (queues)"`
	Text  string     `json:"text,omitempty" doc:"The last error"`
	Since *time.Time `json:"since,omitempty" doc:"Time of the last error. For an endpoint, the time since which it fails"`
	Do    []WhyStep  `json:"do" doc:"Where to fix it"`
}
