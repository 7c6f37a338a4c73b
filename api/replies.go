package api

// Explanation says in plain words what a refusal means.
type Explanation struct {
	Reason string `json:"reason" doc:"Name of the reason, such as mailboxFull. All replies with the same meaning share it"`
	Title  string `json:"title" doc:"What happened"`
	Cause  string `json:"cause" doc:"Why it happened"`
	Remedy string `json:"remedy" doc:"What to do"`
	Source string `json:"source" doc:"URL of a document with details"`
}

// ReplyQuery is a reply to explain.
type ReplyQuery struct {
	Reply string `query:"reply" required:"true" minLength:"1" maxLength:"4000" doc:"Reply to explain, such as 550 5.1.1 User unknown, or HTTP 404 for the response of a webhook endpoint"`
}

// DeadLetterReasons are the dead letters by reason.
type DeadLetterReasons struct {
	Total   int                `json:"total" doc:"Number of dead letters counted"`
	Reasons []DeadLetterReason `json:"reasons" doc:"Reasons, most frequent first"`
}

// DeadLetterReason is one reason why messages failed permanently.
type DeadLetterReason struct {
	Explanation
	Count    int      `json:"count" doc:"Number of dead letters with this reason"`
	Accounts []string `json:"accounts" doc:"Their first 20 accounts"`
	Example  string   `json:"example" doc:"Error of one of them"`
	QueueID  string   `json:"queueId" doc:"ID of the message in the example"`
}
