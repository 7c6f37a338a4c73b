package api

// ReturnedMail is the content of a returned message and its effect. Only Result is proven.
type ReturnedMail struct {
	Kind         string              `json:"kind" enum:"none,bounced,delayed,delivered,complained,autoreply,challenge" doc:"Type of message. none if Postroom doesn't recognize it"`
	Form         string              `json:"form,omitempty" doc:"Format in which it was read: dsn, arf, ses, or the name of a server's own format"`
	Result       string              `json:"result" enum:"taken,unproven,forgotten,ignored" doc:"What Postroom does with it. If it is taken, Postroom applies the reports soon. It is unproven if nothing proves that it is about a message from this instance. It is forgotten if the log no longer has the message. It is ignored if it contains no report"`
	Proof        string              `json:"proof,omitempty" enum:"token,message_id" doc:"Evidence that it is about a message from this instance: the token in a return path, or the Message-ID of a message that was sent to the same recipient"`
	QueueID      string              `json:"queueId,omitempty" doc:"ID of that message"`
	MessageID    string              `json:"messageId,omitempty" doc:"Message-ID that it refers to"`
	ReportingMTA string              `json:"reportingMta,omitempty" doc:"Server that claims to have written it"`
	FeedbackType string              `json:"feedbackType,omitempty" doc:"Type of a complaint (RFC 5965), such as abuse"`
	Recipients   []ReturnedRecipient `json:"recipients" doc:"Recipients that it reports on"`
	About        []string            `json:"about,omitempty" doc:"Recipients of the message that it reports on"`
	Truncated    bool                `json:"truncated,omitempty" doc:"Whether it was too long, too deeply nested or about too many recipients to be read completely"`
}

// ReturnOptions are the options for a returned message.
type ReturnOptions struct {
	EnvelopeTo string `query:"envelopeTo" maxLength:"320" doc:"Address given in RCPT TO. Without it, Postroom searches the message's header"`
}

// ReturnedRecipient is a returned message's report about one recipient.
type ReturnedRecipient struct {
	Address    string `json:"address" doc:"Address that failed. It can be one that the message was forwarded to"`
	Original   string `json:"original,omitempty" doc:"The address as the sender wrote it"`
	Action     string `json:"action,omitempty" enum:"failed,delayed,delivered,relayed,expanded" doc:"Action field of the report (RFC 3464)"`
	Status     string `json:"status,omitempty" doc:"Enhanced status code (RFC 3463)"`
	Code       int    `json:"smtpResponseCode,omitempty" doc:"SMTP code of the quoted reply"`
	Diagnostic string `json:"smtpResponse,omitempty" doc:"Response of the recipient's server"`
	MTA        string `json:"mta,omitempty" doc:"Server that gave the response"`
	Verdict    string `json:"verdict,omitempty" doc:"Classification of the failure: hard, soft, throttle, policy or block"`
	Suppress   bool   `json:"suppress,omitempty" doc:"Whether the address is invalid or no longer exists"`
}
