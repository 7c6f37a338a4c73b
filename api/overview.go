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
	Account string `query:"account" maxLength:"256" doc:"Only this account; all, or that of the token, when absent"`
	Days    int    `query:"days" enum:"0,1,7,30" doc:"The period; 1 when absent or 0"`
}

// Overview is what an operator has to know now: whether mail flows, what is wrong, and where it is mended.
type Overview struct {
	Account string    `json:"account,omitempty" doc:"Only this account was looked at; absent: the whole instance"`
	Time    time.Time `json:"time" doc:"When this was"`
	Days    int       `json:"days" enum:"1,7,30"`
	From    time.Time `json:"from" doc:"Begin of the period: of a whole hour, of six hours or of a day of UTC"`

	Flow     OverviewFlow      `json:"flow"`
	Bars     []OverviewBar     `json:"bars" doc:"The period in steps of an hour (24 hours), six hours (7 days) or a day (30 days), oldest first, those with nothing too"`
	Total    Rate              `json:"total" doc:"The sum of the period"`
	Rates    []OverviewRate    `json:"rates" doc:"Bounces and complaints of the period, beside the usual limits"`
	Alerts   []OverviewAlert   `json:"alerts" doc:"What is wrong now, oldest first; none for an account, as alerts are the instance's"`
	Failures OverviewFailures  `json:"failures"`
	Troubles []OverviewTrouble `json:"troubles" doc:"Accounts, gateways and webhook endpoints in trouble, 10 of each kind at most, and queues that are paused"`
	More     int               `json:"more,omitempty" doc:"Further ones in trouble"`
}

// OverviewFlow says whether mail flows. It counts messages.
type OverviewFlow struct {
	State     string              `json:"state" enum:"sending,idle,late,stuck,paused" doc:"stuck: no relay of an account takes its mail, and some waits; the sentence names the account"`
	Sentence  string              `json:"sentence" doc:"The state in words"`
	Waiting   int                 `json:"waiting" doc:"Due, and waiting for a worker"`
	Active    int                 `json:"active" doc:"Being sent"`
	Scheduled int                 `json:"scheduled" doc:"For a time that was chosen: sendAt"`
	Delayed   int                 `json:"delayed" doc:"To be tried again, or for a limit or an account in trouble"`
	Paused    int                 `json:"paused" doc:"Due, and held back by a pause"`
	Dead      int                 `json:"dead" doc:"Failed for good; can be sent again"`
	Oldest    *OverviewOldest     `json:"oldest,omitempty" doc:"Of those that are due, the one that was accepted first; absent: there is none"`
	Relay     *OverviewRelayTimes `json:"relayTimes,omitempty" doc:"Absent: nothing was sent in the period"`
}

// OverviewOldest is the oldest message that waits.
type OverviewOldest struct {
	QueueID string    `json:"queueId"`
	Since   time.Time `json:"since" doc:"Since when it is due"`
}

// OverviewRelayTimes is how long messages took to a relay, with the retries: from when they were wanted until
// the result for the last recipient was known.
type OverviewRelayTimes struct {
	Messages int     `json:"messages" doc:"How many were looked at: the newest of the period, 200 at most"`
	P50      float64 `json:"p50" doc:"Seconds that half of them took at most"`
	P95      float64 `json:"p95" doc:"Seconds that 95 % of them took at most"`
}

// OverviewBar counts recipients in one step of time.
type OverviewBar struct {
	Time     time.Time `json:"time" doc:"Begin of the step"`
	Accepted int       `json:"accepted" doc:"Accepted by Postroom"`
	Sent     int       `json:"sent" doc:"Accepted by a relay"`
	Failed   int       `json:"failed" doc:"Given up by Postroom, and not replayed since"`
	Bounced  int       `json:"bounced" doc:"Came back after a relay had accepted it"`
}

// OverviewRate is a rate of the period, beside the limits from which providers stop mail.
type OverviewRate struct {
	Kind   string  `json:"kind" enum:"bounces,complaints"`
	Events int     `json:"events" doc:"Dead addresses, or complaints"`
	Value  float64 `json:"value" doc:"events / sent; 0 if nothing was sent"`
	High   float64 `json:"high" doc:"From here on it is high"`
	Limit  float64 `json:"limit" doc:"From here on providers stop mail"`
	State  string  `json:"state" enum:"good,few,high,over" doc:"few: the rate is high, but of fewer than 10 bounces or 3 complaints"`
}

// OverviewAlert is an alert with what to do about it.
type OverviewAlert struct {
	Alert
	Playbook string    `json:"playbook" doc:"Path of the page that says how to find the cause and what to do"`
	Do       []WhyStep `json:"do" doc:"Where it is mended"`
}

// OverviewFailures are the reasons why messages of the period failed for good.
type OverviewFailures struct {
	Total   int              `json:"total" doc:"Messages accepted in the period that failed for good"`
	Counted int              `json:"counted" doc:"How many of them were looked at: the newest, 200 at most"`
	Reasons []OverviewReason `json:"reasons" doc:"The most frequent first, 5 at most"`
}

// OverviewReason is one reason of failures.
type OverviewReason struct {
	Text     string `json:"text" doc:"In the words of the newest such message, without addresses"`
	Messages int    `json:"messages"`
	QueueID  string `json:"queueId" doc:"The newest such message"`
}

// OverviewTrouble is an account, a gateway or a webhook endpoint in trouble, or a queue that is paused.
type OverviewTrouble struct {
	Kind  string     `json:"kind" enum:"account,gateway,endpoint,queue"`
	ID    string     `json:"id"`
	State string     `json:"state" doc:"error or held (accounts), error or open (gateways), disabled or failing (endpoints), paused (queues)"`
	Text  string     `json:"text,omitempty" doc:"The last error"`
	Since *time.Time `json:"since,omitempty" doc:"When the last error was; of an endpoint, since when it fails"`
	Do    []WhyStep  `json:"do" doc:"Where it is mended"`
}
