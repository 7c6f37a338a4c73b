package api

import "time"

// The answers to the question whether a message arrived.
const (
	ArrivedYes     = "yes"     // the recipient or the recipient's server proved it
	ArrivedNo      = "no"      // it didn't arrive and won't without your help
	ArrivedNotYet  = "notYet"  // it waits and will be sent
	ArrivedUnknown = "unknown" // a relay has it, or may have it, and nothing more was reported
)

// Why explains whether an address received its messages, and why not.
type Why struct {
	Address  string       `json:"address" doc:"Address in its normalized form"`
	Account  string       `json:"account,omitempty" doc:"Account that the answer is limited to. Absent for all accounts"`
	Message  string       `json:"message,omitempty" doc:"Message that the answer is limited to, with suppressions"`
	Arrived  string       `json:"arrived" enum:"yes,no,notYet,unknown" doc:"Whether the message arrived, according to the first finding. no if nothing was submitted"`
	Sentence string       `json:"sentence" doc:"Text of the first finding, which answers the question"`
	Findings []WhyFinding `json:"findings" doc:"Findings, most important first"`
	Unasked  []WhyUnasked `json:"unasked" doc:"Sources that Postroom couldn't query. The answer is based on the others, and can change"`
	Partial  bool         `json:"partial,omitempty" doc:"Whether the address has more messages than Postroom reads for this answer, so that older ones may be missing"`

	Messages     []WhyMessage       `json:"messages" doc:"The newest 10 messages to the address, newest first"`
	Suppressions []Suppression      `json:"suppressions" doc:"Suppressions of the address and its domain, including expired ones"`
	Subscribers  []Subscriber       `json:"subscribers"`
	Campaigns    []PersonalCampaign `json:"campaigns" doc:"Result of each campaign's message to the address"`
	Digests      []WhyReader        `json:"digests" doc:"Digest recipients with the address"`
	Deliveries   []WhyDelivery      `json:"deliveries" doc:"Webhook deliveries about these messages, newest first"`
}

// WhyFinding is one reason why messages arrive or don't.
type WhyFinding struct {
	Kind    string     `json:"kind" enum:"opened,delivered,sent,complained,bounced,deferred,refused,inDoubt,suppressed,erased,unsubscribed,unconfirmed,cancelled,held,paused,paced,scheduled,delayed,waiting,sending,webhookLost,webhookWaits,digestOff,digestWaiting,digestFailed,notTo,neverSubmitted,unasked"`
	Text    string     `json:"text" doc:"Finding, as a sentence"`
	QueueID string     `json:"queueId,omitempty" doc:"Message that it is about"`
	Account string     `json:"account,omitempty" doc:"Account that it is about"`
	Time    *time.Time `json:"time,omitempty" doc:"When it happened or will happen"`
	Do      []WhyStep  `json:"do" doc:"What you can do"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"Meaning of the quoted reply or error, and what to do"`
}

// WhyStep is something that can be done about a finding.
type WhyStep struct {
	Text    string `json:"text"`
	Command string `json:"command" doc:"Command of Postroom's command line"`
	Page    string `json:"page,omitempty" doc:"Path of the page where you can do it. Absent if there is none"`
}

// WhyUnasked is a source that was unavailable.
type WhyUnasked struct {
	Source string `json:"source" doc:"Source: email log, search index, suppressions, accounts, queues, subscribers, campaigns, digests or webhooks"`
	Error  string `json:"error"`
}

// WhyMessage is a message, as far as the address is concerned. Other recipients are left out.
type WhyMessage struct {
	QueueID   string          `json:"queueId"`
	Account   string          `json:"account"`
	MessageID string          `json:"messageId"`
	Subject   string          `json:"subject"`
	Status    MessageStatus   `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead" doc:"Status of the message. See recipient for the status of this address"`
	State     State           `json:"state,omitempty" enum:"waiting,active,delayed,paused,failed,completed" doc:"State in the outbox. Absent if the message is finished"`
	Recipient RecipientStatus `json:"recipient"`
	Lane      Lane            `json:"lane" enum:"transactional,bulk"`
	Created   time.Time       `json:"created"`
	Scheduled *time.Time      `json:"scheduled,omitempty" doc:"Requested time of the first attempt"`
	Ended     *time.Time      `json:"ended,omitempty"`
	Next      *time.Time      `json:"nextAttempt,omitempty"`
	Made      int             `json:"attemptsMade"`
	Attempts  int             `json:"attempts"`
	Reason    string          `json:"reason,omitempty" doc:"Why the message waits or why it was cancelled"`
	Error     *DeliveryFault  `json:"error,omitempty"`
	InDoubt   int             `json:"inDoubt,omitempty"`
	Log       []Attempt       `json:"log,omitempty" doc:"All attempts"`
	Events    []MessageEvent  `json:"events,omitempty" doc:"Events about this address, oldest first"`
	Indexed   bool            `json:"indexed,omitempty" doc:"Whether only the search index still has it. Its status is as last indexed"`
}

// WhyReader is a recipient of digests.
type WhyReader struct {
	DigestRecipient
	Runs []DigestRun `json:"runs" doc:"Last runs, newest first"`
}

// WhyDelivery is a webhook delivery about a message.
type WhyDelivery struct {
	Endpoint   string     `json:"endpoint,omitempty" doc:"ID of the endpoint. Absent for a token that is bound to an account, unless the endpoint belongs to the account"`
	ID         string     `json:"id,omitempty"`
	Event      string     `json:"event"`
	QueueID    string     `json:"queueId"`
	Status     string     `json:"status" enum:"pending,delivered,failed,skipped"`
	Attempts   int        `json:"attempts"`
	StatusCode int        `json:"statusCode,omitempty" doc:"HTTP status of the last response"`
	Error      string     `json:"error,omitempty"`
	Created    time.Time  `json:"created"`
	Next       *time.Time `json:"nextAttempt,omitempty"`
}

// WhyQuery filters Why. The zero query covers all messages to the address.
type WhyQuery struct {
	Message string `query:"message" maxLength:"1024" doc:"Filter by message: its queueId or Message-ID"`
	Account string `query:"account" maxLength:"256" doc:"Filter by account. Defaults to the token's account, or to all"`
}
