package message

import "time"

// Draft is the content of a message to compose, with its recipients.
type Draft struct {
	From        Address   // the author; required
	Sender      Address   // who sends for the author; defaults to the author
	To, Cc, Bcc []Address // at least one in total, unless Envelope has recipients
	ReplyTo     []Address
	Envelope    *Envelope // nil if made from the addresses above
	Date        time.Time // required, in the time zone to show; Compose reads no clock

	Subject     string
	Text        string // if empty, made from HTML
	HTML        string // images in data: URLs become inline attachments
	PreviewText string // mail programs show it beside the subject; hidden in HTML
	Attachments []Attachment

	MessageID  string   // angle brackets optional; empty if made from the domain of From
	InReplyTo  string   // id of the message that this one replies to
	References []string // message ids of the thread, oldest first; beyond 20 the middle is omitted

	Headers []Header // additional fields in order; a Draft field's header only if that is empty
}

// Attachment is a file in a message. A text/calendar attachment with a method, an invitation, is also sent as
// an alternative of the text: calendar programs look for it there.
type Attachment struct {
	Filename    string // path and control characters are removed; empty if made from the type, unless CID is set
	Content     []byte
	ContentType string // empty or unusable: guessed from Filename, else application/octet-stream
	// "inline", "attachment"; defaults to inline for images that html shows by CID, else attachment
	Disposition string
	CID         string // Content-ID for cid: links in html; angle brackets optional
}

// Envelope is the SMTP sender and recipients (RFC 5321), independent of the headers.
type Envelope struct {
	From string   // return path; empty for the null sender, which gets no notifications
	To   []string // defaults to the addresses in To, Cc and Bcc
}

// Composed is a message ready for sending.
type Composed struct {
	Raw       []byte   // the message, without Bcc; each line ends with CRLF
	MessageID string   // with angle brackets
	Subject   string   // decoded
	From      Address  // the (first) author
	Envelope  Envelope // addresses in normal form; no recipient twice

	SMTPUTF8 bool // an address, or a signed header, has no ASCII form: the relay needs SMTPUTF8 (RFC 6531)
	EightBit bool // body octets above 127: the relay needs 8BITMIME (RFC 6152)
}

// Size is the size of the message in octets, for the relay's SIZE limit (RFC 1870).
func (c *Composed) Size() int { return len(c.Raw) }
