package api

// ReturnedMail is the content of a returned mail and its effect. Only what Result states is proven.
type ReturnedMail struct {
	Kind         string              `json:"kind" enum:"none,bounced,delayed,delivered,complained,autoreply,challenge" doc:"Kind of the mail; none: none of the others is recognized"`
	Form         string              `json:"form,omitempty" doc:"How it was read: dsn, arf, ses, or the name of a server's own form"`
	Result       string              `json:"result" enum:"taken,unproven,forgotten,ignored" doc:"What was done with it: taken, it is applied soon; unproven, nothing, since nothing proves that it is about mail of ours; forgotten, nothing, since the log no longer has the message; ignored, nothing, since it contains no report"`
	Proof        string              `json:"proof,omitempty" enum:"token,message_id" doc:"What proves that it is about a message of ours: the token of a return path, or the Message-ID of a message that was sent to the very recipient"`
	QueueID      string              `json:"queueId,omitempty" doc:"Id of that message"`
	MessageID    string              `json:"messageId,omitempty" doc:"Message-ID of the message that it says it is about"`
	ReportingMTA string              `json:"reportingMta,omitempty" doc:"Server that wrote it, as it says"`
	FeedbackType string              `json:"feedbackType,omitempty" doc:"Type of a complaint (RFC 5965), such as abuse"`
	Recipients   []ReturnedRecipient `json:"recipients" doc:"Recipients that it reports on"`
	About        []string            `json:"about,omitempty" doc:"Recipients of the message that it reports on"`
	Truncated    bool                `json:"truncated,omitempty" doc:"It was longer, more nested, or about more recipients than are read"`
}

// ReturnOptions are the options of a returned mail.
type ReturnOptions struct {
	EnvelopeTo string `query:"envelopeTo" maxLength:"320" doc:"Address of RCPT TO; when absent, the header of the mail is searched"`
}

// ReturnedRecipient is the report of a returned mail about one recipient.
type ReturnedRecipient struct {
	Address    string `json:"address" doc:"Address that failed; it may be one that mail was forwarded to"`
	Original   string `json:"original,omitempty" doc:"The address as the sender gave it"`
	Action     string `json:"action,omitempty" enum:"failed,delayed,delivered,relayed,expanded" doc:"Action field of the report (RFC 3464)"`
	Status     string `json:"status,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Code       int    `json:"smtpResponseCode,omitempty" doc:"Of the reply that is quoted"`
	Diagnostic string `json:"smtpResponse,omitempty" doc:"What the recipient's server said"`
	MTA        string `json:"mta,omitempty" doc:"Server that said it"`
	Verdict    string `json:"verdict,omitempty" doc:"What that means: hard, soft, throttle, policy or block"`
	Suppress   bool   `json:"suppress,omitempty" doc:"The address is invalid or gone"`
}
