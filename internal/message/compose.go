package message

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Compose builds the message of a draft. All errors in the draft are returned in one fault.InvalidFields. Any
// other error means that random failed (nil means crypto/rand) or that the draft has no Date.
func Compose(d Draft, random io.Reader) (*Composed, error) { return new(Composer).Compose(d, random) }

// Compose is the function Compose, and keeps what further messages may have in common with this one.
func (k *Composer) Compose(d Draft, random io.Reader) (*Composed, error) {
	random = cmp.Or(random, rand.Reader)
	if d.Date.IsZero() {
		return nil, errors.New("compose: the draft has no date")
	}
	token, err := newToken(random)
	if err != nil {
		return nil, fmt.Errorf("compose: %w", err)
	}
	h, err := check(&d)
	if err != nil {
		return nil, err
	}
	if h.messageID == "" {
		if h.messageID, err = NewMessageID(domainOf(h.from.Address), random); err != nil {
			return nil, fmt.Errorf("compose: %w", err)
		}
	}
	tree := k.tree(d, token, domainOf(h.from.Address))
	return render(h, tree, token), nil
}

// head is a draft's header in checked, normal form.
type head struct {
	from, sender         Address
	to, cc, replyTo      []Address
	envelope             Envelope
	date                 time.Time
	subject              string
	messageID, inReplyTo string
	references           []string
	others               []Header
}

// check checks every field of a draft and reports all errors together.
func check(d *Draft) (head, error) {
	var f faults
	f.takeHeaders(d, true)
	h := head{date: d.Date, subject: d.Subject, others: d.Headers}
	h.from = f.address("from", d.From)
	if d.Sender != (Address{}) {
		h.sender = f.address("sender", d.Sender)
	}
	h.to, h.cc, h.replyTo = f.addresses("to", d.To), f.addresses("cc", d.Cc), f.addresses("replyTo", d.ReplyTo)
	bcc := f.addresses("bcc", d.Bcc)
	h.envelope = f.envelope(d.Envelope, h.from.Address, h.to, h.cc, bcc)
	f.line("subject", d.Subject)
	h.messageID, h.inReplyTo, h.references = f.thread(d.MessageID, d.InReplyTo, d.References)
	for _, header := range d.Headers {
		f.headerValue(header.Name, header.Value)
	}
	f.attachments(d.Attachments)
	return h, f.err()
}

// thread checks the message ids of a conversation. The returned id is the last of its references (RFC 5322
// section 3.6.4).
func (f *faults) thread(id, inReplyTo string, references []string) (string, string, []string) {
	var err error
	if id != "" {
		id, err = messageID(id)
		f.addError("messageId", err)
	}
	checked := make([]string, 0, len(references)+1)
	for i, reference := range references {
		reference, err = referenceID(reference)
		f.addError(fmt.Sprintf("references[%d]", i), err)
		checked = append(checked, reference)
	}
	if inReplyTo != "" {
		inReplyTo, err = referenceID(inReplyTo)
		f.addError("inReplyTo", err)
		if len(checked) == 0 || checked[len(checked)-1] != inReplyTo {
			checked = append(checked, inReplyTo)
		}
	}
	return id, inReplyTo, shortenReferences(checked)
}

// attachments checks the fields of attachments that are written into headers.
func (f *faults) attachments(list []Attachment) {
	for i, a := range list {
		key := fmt.Sprintf("attachments[%d]", i)
		f.line(key+".filename", a.Filename)
		f.line(key+".contentType", a.ContentType)
		switch strings.ToLower(a.Disposition) {
		case "", "inline", "attachment":
		default:
			f.Add(key+".contentDisposition", "must be inline or attachment")
		}
		if a.CID != "" {
			if _, err := referenceID(a.CID); err != nil {
				f.Add(key+".cid", "must be printable ASCII without spaces, < and >")
			}
		}
	}
}

// render writes the message into one buffer, allocated at the estimated size.
func render(h head, tree *part, token string) *Composed {
	w := headerWriter{buf: make([]byte, 0, headerRoom(h)+tree.size())}
	h.write(&w)
	c := Composed{MessageID: h.messageID, Subject: h.subject, From: h.from, Envelope: h.envelope}
	c.SMTPUTF8 = !isASCII(w.buf) || c.Envelope.needsSMTPUTF8()
	c.EightBit = tree.isEightBit()
	tree.write(&w, token, new(int))
	if !bytes.HasSuffix(w.buf, []byte("\r\n")) {
		w.end()
	}
	c.Raw = w.buf
	return &c
}

// write writes the fields in their usual order.
func (h head) write(w *headerWriter) {
	w.addresses("From", h.from)
	if h.sender.Address != "" {
		w.addresses("Sender", h.sender)
	}
	w.addresses("Reply-To", h.replyTo...)
	w.addresses("To", h.to...)
	if len(h.to)+len(h.cc) == 0 { // all recipients in Bcc: an empty group (RFC 5322 section 3.4, A.1.3)
		w.identifiers("To", "undisclosed-recipients:;")
	}
	w.addresses("Cc", h.cc...)
	if h.subject != "" {
		w.text("Subject", h.subject)
	}
	w.date(h.date)
	w.identifiers("Message-ID", h.messageID)
	w.identifiers("In-Reply-To", h.inReplyTo)
	w.identifiers("References", h.references...)
	for _, header := range h.others {
		w.field(header.Name, header.Value)
	}
	w.identifiers("MIME-Version", "1.0")
}

func (w *headerWriter) date(t time.Time) {
	w.identifiers("Date", t.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

func (e Envelope) needsSMTPUTF8() bool {
	return NeedsSMTPUTF8(e.From) || slices.ContainsFunc(e.To, NeedsSMTPUTF8)
}

// headerRoom is a high estimate of the header's size.
func headerRoom(h head) int {
	n := 1024 + 3*len(h.subject) + 64*len(h.references)
	n += 64 * (len(h.to) + len(h.cc) + len(h.replyTo))
	for _, header := range h.others {
		n += len(header.Name) + len(header.Value) + 64
	}
	return n
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }
