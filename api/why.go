package api

import "time"

// The answers to whether somebody got their mail.
const (
	ArrivedYes     = "yes"     // the person, or the server of the person, proved it
	ArrivedNo      = "no"      // it did not arrive, and will not by itself
	ArrivedNotYet  = "notYet"  // it waits, and will go
	ArrivedUnknown = "unknown" // a relay has it, or may have it, and nothing more was reported
)

// Why is the answer to the question whether an address got its mail, and why not.
type Why struct {
	Address  string       `json:"address" doc:"In the form it is compared by"`
	Account  string       `json:"account,omitempty" doc:"Only mail of this account was looked at; absent: of all"`
	Message  string       `json:"message,omitempty" doc:"Only this message was looked at, and what stops mail"`
	Arrived  string       `json:"arrived" enum:"yes,no,notYet,unknown" doc:"By the first finding. no, too, where nothing was submitted"`
	Sentence string       `json:"sentence" doc:"The answer: the text of the first finding"`
	Findings []WhyFinding `json:"findings" doc:"What explains it, the most important first"`
	Unasked  []WhyUnasked `json:"unasked" doc:"What could not be asked. The answer is that of the others, and may change"`
	Partial  bool         `json:"partial,omitempty" doc:"The address has more messages than one question reads: older ones may be missing"`

	Messages     []WhyMessage       `json:"messages" doc:"The newest 10 to the address, newest first"`
	Suppressions []Suppression      `json:"suppressions" doc:"Of the address and of its domain, also expired ones"`
	Subscribers  []Subscriber       `json:"subscribers"`
	Campaigns    []PersonalCampaign `json:"campaigns" doc:"What became of each campaign's mail to the address"`
	Digests      []WhyReader        `json:"digests" doc:"Readers of digests with the address"`
	Deliveries   []WhyDelivery      `json:"deliveries" doc:"Webhook deliveries about these messages, newest first"`
}

// WhyFinding is one fact that explains whether mail arrives.
type WhyFinding struct {
	Kind    string     `json:"kind" enum:"opened,delivered,sent,complained,bounced,deferred,refused,inDoubt,suppressed,erased,unsubscribed,unconfirmed,cancelled,held,paused,paced,scheduled,delayed,waiting,sending,webhookLost,webhookWaits,digestOff,digestWaiting,digestFailed,notTo,neverSubmitted,unasked"`
	Text    string     `json:"text" doc:"A sentence"`
	QueueID string     `json:"queueId,omitempty" doc:"The message it is about"`
	Account string     `json:"account,omitempty" doc:"The account it is about"`
	Time    *time.Time `json:"time,omitempty" doc:"When it happened, or will"`
	Do      []WhyStep  `json:"do" doc:"What can be done"`

	Explanation *Explanation `json:"explanation,omitempty" doc:"What the quoted reply or error means, and what to do about it"`
}

// WhyStep is something that can be done about a finding.
type WhyStep struct {
	Text    string `json:"text"`
	Command string `json:"command" doc:"Of the command line of Postroom"`
	Page    string `json:"page,omitempty" doc:"Path of the page where it can be done; absent: there is none"`
}

// WhyUnasked is a source that could not be asked.
type WhyUnasked struct {
	Source string `json:"source" doc:"email log, search index, suppressions, accounts, queues, subscribers, campaigns, digests, webhooks"`
	Error  string `json:"error"`
}

// WhyMessage is a message, as far as the address is concerned. Other recipients are left out.
type WhyMessage struct {
	QueueID   string          `json:"queueId"`
	Account   string          `json:"account"`
	MessageID string          `json:"messageId"`
	Subject   string          `json:"subject"`
	Status    MessageStatus   `json:"status" enum:"queued,sending,sent,failed,cancelled,suppressed,dead" doc:"Of the message; see recipient for this address"`
	State     State           `json:"state,omitempty" enum:"waiting,active,delayed,paused,failed,completed" doc:"In the outbox; absent: it has ended"`
	Recipient RecipientStatus `json:"recipient"`
	Lane      Lane            `json:"lane" enum:"transactional,bulk"`
	Created   time.Time       `json:"created"`
	Scheduled *time.Time      `json:"scheduled,omitempty" doc:"When the first attempt was wanted"`
	Ended     *time.Time      `json:"ended,omitempty"`
	Next      *time.Time      `json:"nextAttempt,omitempty"`
	Made      int             `json:"attemptsMade"`
	Attempts  int             `json:"attempts"`
	Reason    string          `json:"reason,omitempty" doc:"Why it waits, or why it was cancelled"`
	Error     *DeliveryFault  `json:"error,omitempty"`
	InDoubt   int             `json:"inDoubt,omitempty"`
	Log       []Attempt       `json:"log,omitempty" doc:"Every attempt"`
	Events    []MessageEvent  `json:"events,omitempty" doc:"About this address, oldest first"`
	Indexed   bool            `json:"indexed,omitempty" doc:"Only the search index has it any more; its status is as last indexed"`
}

// WhyReader is a reader of digests.
type WhyReader struct {
	DigestRecipient
	Runs []DigestRun `json:"runs" doc:"The last ones, newest first"`
}

// WhyDelivery is a webhook delivery about a message.
type WhyDelivery struct {
	Endpoint   string     `json:"endpoint,omitempty" doc:"Absent for tokens that are bound to an account, unless it is an endpoint of the account"`
	ID         string     `json:"id,omitempty"`
	Event      string     `json:"event"`
	QueueID    string     `json:"queueId"`
	Status     string     `json:"status" enum:"pending,delivered,failed,skipped"`
	Attempts   int        `json:"attempts"`
	StatusCode int        `json:"statusCode,omitempty" doc:"Of the last answer"`
	Error      string     `json:"error,omitempty"`
	Created    time.Time  `json:"created"`
	Next       *time.Time `json:"nextAttempt,omitempty"`
}

// WhyQuery narrows Why. The zero query looks at all mail to the address.
type WhyQuery struct {
	Message string `query:"message" maxLength:"1024" doc:"Only this message: its queueId or its Message-ID"`
	Account string `query:"account" maxLength:"256" doc:"Only mail of this account; all, or that of the token, when absent"`
}
