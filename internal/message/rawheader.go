package message

import (
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// rawHeader is the header of a raw message, changed for sending.
type rawHeader struct{ fields []rawField }

// onlyOnce are the fields that may appear once (RFC 5322 section 3.6). Large receivers refuse a second one.
var onlyOnce = []string{
	"From", "Sender", "Reply-To", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
}

// apply applies the overrides, removes Bcc, and returns the author, subject and envelope of the header.
func (h *rawHeader) apply(f *faults, o Override) *Composed {
	d := Draft{Sender: o.Sender, ReplyTo: o.ReplyTo, Subject: o.Subject, MessageID: o.MessageID,
		InReplyTo:  o.InReplyTo,
		References: o.References, Date: o.Date, Headers: o.Headers}
	f.takeHeaders(&d, true)
	h.completeAddresses(domainOf(o.DefaultFrom.Address))
	c := &Composed{From: h.author(f, o)}
	sender := h.sender(f, c.From, d.Sender)
	// otherwise they are not used and may be unreadable
	headersCount := o.Envelope == nil || len(o.Envelope.To) == 0
	to := h.recipients(f, "To", "to", o.To, headersCount)
	cc := h.recipients(f, "Cc", "cc", o.Cc, headersCount)
	bcc := h.recipients(f, "Bcc", "bcc", o.Bcc, headersCount)
	h.remove("bcc")
	h.remove("resent-bcc")
	c.Envelope = f.envelope(o.Envelope, sender, to, cc, bcc)
	h.setAddresses("Reply-To", f.addresses("replyTo", d.ReplyTo)...)
	h.overrideText(f, d, o.Date)
	for _, name := range onlyOnce {
		if n := len(h.values(name)); n > 1 {
			f.Add("raw", "has %d headers %s, but may have one", n, name)
		}
	}
	// ParseDate takes no notice of what follows the zone.
	if _, err := mail.ParseDate(h.get("Date")); err != nil || asciiLikeness(h.get("Date")) != h.get("Date") {
		h.remove("Date") // complete writes another
	}
	if id, err := messageID(bracketed(h.get("Message-ID"))); err != nil {
		h.remove("Message-ID")
	} else if !strings.Contains(h.get("Message-ID"), "<") {
		h.setIdentifiers("Message-ID", id)
	}
	c.Subject = decodeText(h.get("Subject"))
	return c
}

// completeAddresses adds the domain to names without one in the fields of authors, as cron writes them. All
// other fields stay as they are.
func (h *rawHeader) completeAddresses(domain string) {
	for i, field := range h.fields {
		name := map[string]string{"from": "From", "sender": "Sender", "reply-to": "Reply-To"}[field.name]
		if name == "" || domain == "" {
			continue
		}
		completed := withDomain(field.value(), domain)
		if list, err := ParseAddressList(completed); err == nil && completed != unfold(field.value()) {
			var w headerWriter
			w.addresses(name, list...)
			h.fields[i].bytes = w.buf
		}
	}
}

// author returns the (first) author in normal form.
func (h *rawHeader) author(f *faults, o Override) Address {
	if o.From == (Address{}) && h.get("From") == "" {
		o.From = o.DefaultFrom
	}
	if o.From != (Address{}) {
		from := f.address("from", o.From)
		h.setAddresses("From", from)
		return from
	}
	list, err := ParseAddressList(h.get("From"))
	switch {
	case err != nil:
		f.Add("raw", "its From %s", err)
	case len(list) == 0:
		f.Add("from", "is required, because the message has no author")
	default:
		return f.rawAddress("From", list[0])
	}
	return Address{}
}

// sender returns the return path: the author, or the Sender of several authors.
func (h *rawHeader) sender(f *faults, author, override Address) string {
	if override != (Address{}) {
		h.setAddresses("Sender", f.address("sender", override))
	}
	authors, err := ParseAddressList(h.get("From"))
	if err != nil || len(authors) < 2 {
		return author.Address
	}
	senders, err := ParseAddressList(h.get("Sender"))
	if err != nil || len(senders) != 1 {
		f.Add("raw", "has %d authors, so it requires a Sender with one address (RFC 5322 section 3.6.2)",
			len(authors))
		return ""
	}
	return f.rawAddress("Sender", senders[0]).Address
}

// recipients returns the addresses of a header in normal form, after its override. If needed is false, only
// an override is checked. An unreadable header counts as a recipient without address, so it is not reported
// as missing too.
func (h *rawHeader) recipients(f *faults, name, key string, override []Address, needed bool) []Address {
	if len(override) > 0 {
		checked := f.addresses(key, override)
		h.setAddresses(name, checked...)
		return checked
	}
	var all []Address
	for _, field := range h.fields {
		if !needed || field.name != strings.ToLower(name) {
			continue
		}
		list, err := ParseAddressList(field.value())
		if err != nil {
			f.Add("raw", "its %s %s", name, err)
			list = []Address{{}}
		}
		for _, a := range list {
			if a != (Address{}) {
				a = f.rawAddress(name, a)
			}
			all = append(all, a)
		}
	}
	return all
}

// rawAddress checks an address found in a header.
func (f *faults) rawAddress(header string, a Address) Address {
	normal, err := NormalizeAddress(a.Address)
	if err != nil {
		f.Add("raw", "its %s: %q %s", header, a.Address, err)
	}
	return Address{Name: printable(a.Name), Address: normal}
}

// overrideText applies the overrides that are not addresses, and the additional headers. Several of one name
// replace the old ones together.
func (h *rawHeader) overrideText(f *faults, d Draft, now time.Time) {
	if d.Subject != "" && f.line("subject", d.Subject) {
		h.write("Subject", func(w *headerWriter) { w.text("Subject", d.Subject) })
	}
	if !d.Date.Equal(now) {
		h.write("Date", func(w *headerWriter) { w.date(d.Date) })
	}
	id, inReplyTo, references := f.thread(d.MessageID, d.InReplyTo, d.References)
	h.setIdentifiers("Message-ID", id)
	h.setIdentifiers("In-Reply-To", inReplyTo)
	h.setIdentifiers("References", references...)
	for _, header := range d.Headers {
		h.remove(header.Name)
	}
	for _, header := range d.Headers {
		if f.headerValue(header.Name, header.Value) {
			var w headerWriter
			w.field(header.Name, header.Value)
			h.fields = append(h.fields, rawField{name: strings.ToLower(header.Name), bytes: w.buf})
		}
	}
}

// complete adds the fields a message must have.
func (h *rawHeader) complete(c *Composed, o Override, random io.Reader) error {
	if h.get("Date") == "" {
		h.write("Date", func(w *headerWriter) { w.date(o.Date) })
	}
	if c.MessageID = bracketed(h.get("Message-ID")); c.MessageID == "" {
		id, err := NewMessageID(domainOf(c.From.Address), random)
		if err != nil {
			return fmt.Errorf("complete the header: %w", err)
		}
		h.setIdentifiers("Message-ID", id)
		c.MessageID = id
	}
	if h.get("MIME-Version") == "" {
		h.setIdentifiers("MIME-Version", "1.0")
	}
	return nil
}

func (h *rawHeader) setAddresses(name string, list ...Address) {
	h.write(name, func(w *headerWriter) { w.addresses(name, list...) })
}

func (h *rawHeader) setIdentifiers(name string, ids ...string) {
	h.write(name, func(w *headerWriter) { w.identifiers(name, ids...) })
}

// write replaces the first field of the name by what field writes, or appends it, and removes all other
// fields of the name. If field writes nothing, nothing changes.
func (h *rawHeader) write(name string, field func(*headerWriter)) {
	var w headerWriter
	if field(&w); len(w.buf) == 0 {
		return
	}
	name = strings.ToLower(name)
	i := slices.IndexFunc(h.fields, func(f rawField) bool { return f.name == name })
	if i < 0 {
		h.fields = append(h.fields, rawField{name: name, bytes: w.buf})
		return
	}
	h.fields[i].bytes = w.buf
	rest := slices.DeleteFunc(h.fields[i+1:], func(f rawField) bool { return f.name == name })
	h.fields = h.fields[:i+1+len(rest)]
}

// checkMIME refuses fields of MIME that contradict each other: filters read the first one, readers the last
// (RFC 2045 section 3).
func (h *rawHeader) checkMIME(f *faults) {
	for _, name := range []string{"MIME-Version", "Content-Type", "Content-Transfer-Encoding",
		"Content-Disposition", "Content-ID", "Content-Description"} {
		if values := h.values(name); len(slices.Compact(values)) > 1 {
			f.Add("raw", "has %d headers %s in one part, but may have one", len(values), name)
		}
	}
}

func (h *rawHeader) values(name string) (values []string) {
	for _, field := range h.fields {
		if field.name == strings.ToLower(name) {
			values = append(values, field.value())
		}
	}
	return values
}

func (h *rawHeader) remove(name string) {
	name = strings.ToLower(name)
	h.fields = slices.DeleteFunc(h.fields, func(f rawField) bool { return f.name == name })
}

// size is the size of the fields in octets.
func (h *rawHeader) size() (n int) {
	for _, f := range h.fields {
		n += len(f.bytes)
	}
	return n
}

// get returns the value of the first field of the name, or "".
func (h *rawHeader) get(name string) string {
	name = strings.ToLower(name)
	for _, f := range h.fields {
		if f.name == name {
			return f.value()
		}
	}
	return ""
}

// bracketed returns the message id of a value that may contain comments.
func bracketed(value string) string {
	if from := strings.IndexByte(value, '<'); from >= 0 {
		if to := strings.IndexByte(value[from:], '>'); to > 0 {
			return value[from : from+to+1]
		}
	}
	return value
}
