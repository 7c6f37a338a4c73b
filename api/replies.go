package api

// Explanation says in plain words what a refusal means.
type Explanation struct {
	Reason string `json:"reason" doc:"Its name, such as mailboxFull; the same for all replies of this meaning"`
	Title  string `json:"title" doc:"What happened, in a few words"`
	Cause  string `json:"cause" doc:"Why"`
	Remedy string `json:"remedy" doc:"What to do"`
	Source string `json:"source" doc:"URL of the document that says so"`
}

// ReplyQuery is a reply to explain.
type ReplyQuery struct {
	Reply string `query:"reply" required:"true" minLength:"1" maxLength:"4000" doc:"The reply, such as 550 5.1.1 User unknown; HTTP 404 for the answer of a webhook endpoint"`
}

// DeadLetterReasons are the dead letters by reason.
type DeadLetterReasons struct {
	Total   int                `json:"total" doc:"Dead letters that were counted"`
	Reasons []DeadLetterReason `json:"reasons" doc:"The most frequent first"`
}

// DeadLetterReason is one reason why messages failed for good.
type DeadLetterReason struct {
	Explanation
	Count    int      `json:"count" doc:"Dead letters with this reason"`
	Accounts []string `json:"accounts" doc:"Of the first 20 accounts of them"`
	Example  string   `json:"example" doc:"The error of one of them"`
	QueueID  string   `json:"queueId" doc:"The message of the example"`
}
