package message

import "time"

// Draft is what an application wants to say, and to whom.
type Draft struct {
	From        Address   // the author; required
	Sender      Address   // who sends for the author; zero: nobody else
	To, Cc, Bcc []Address // at least one in all, unless Envelope names recipients
	ReplyTo     []Address
	Envelope    *Envelope // nil: from the addresses above
	Date        time.Time // required, with the time zone to show; Compose reads no clock

	Subject     string
	Text        string // empty with HTML: a text is made from it
	HTML        string // images in data: URLs become inline attachments
	PreviewText string // shown beside the subject by mail programs; put into HTML where nobody sees it
	Attachments []Attachment

	MessageID  string   // with or without angle brackets; empty: made from the domain of From
	InReplyTo  string   // message id this message answers
	References []string // message ids of the thread, oldest first; the middle is left out beyond 20

	Headers []Header // further fields, in this order; those a Draft has a field for may only be here when that is empty
}

// Attachment is a file that travels with a message. One whose ContentType is text/calendar with a method, an invitation, is also offered
// as an alternative to the text, where calendars look for it.
type Attachment struct {
	Filename    string // path and control characters are taken off; empty: made up from the type, unless CID is set
	Content     []byte
	ContentType string // empty or unusable: guessed from Filename, else application/octet-stream
	Disposition string // "inline", "attachment"; empty: inline for images that html shows by CID, else attachment
	CID         string // Content-ID, with or without angle brackets, for cid: links in html
}

// Envelope is who the relay is told a message is from and for (RFC 5321), whatever the headers say.
type Envelope struct {
	From string   // return path; empty: the null sender, to which no notification returns
	To   []string // empty: the addresses in To, Cc and Bcc
}

// Composed is a message ready to be sent.
type Composed struct {
	Raw       []byte   // the message, without Bcc, every line ended by CRLF
	MessageID string   // with angle brackets
	Subject   string   // decoded, for people
	From      Address  // the (first) author
	Envelope  Envelope // addresses in normal form; no recipient twice

	SMTPUTF8   bool // an address in the envelope or in the header has no ASCII form: the relay must offer SMTPUTF8 (RFC 6531)
	UTF8Header bool // the header has octets above 127, which strictly needs SMTPUTF8 too; true without SMTPUTF8 only for raw messages
	EightBit   bool // the body has octets above 127: the relay must offer 8BITMIME (RFC 6152)
	LongLines  bool // a line is over 998 octets, which relays may refuse or break; only a raw message can have one
}

// Size is the size of the message in octets, for the relay's SIZE limit (RFC 1870).
func (c *Composed) Size() int { return len(c.Raw) }
