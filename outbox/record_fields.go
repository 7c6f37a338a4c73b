package outbox

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
)

// fielded is a part of a message that is stored as its fields in binary form, one after the other without
// names. visit writes and reads them, so that both have the same order. A new field or order requires a new
// fieldsFormat.
type fielded interface{ visit(f *fields) }

// fields are written or read. Numbers are varints. Texts and lists have their length before them.
type fields struct {
	buf     []byte // written or read bytes
	reading bool
	text    string // buf, if it is read
	at      int    // how much of it was read
	short   bool   // a field could not be read
}

// appendFields appends the fields of a part.
func appendFields(buf []byte, part fielded) []byte {
	f := fields{buf: buf}
	part.visit(&f)
	return f.buf
}

// readFields reads the fields of a part that has none yet.
func readFields(raw []byte, part fielded) error {
	f := fields{buf: raw, reading: true, text: string(raw)}
	part.visit(&f)
	if f.short || f.at < len(raw) {
		return errors.New("it does not have these fields")
	}
	return nil
}

func varints[T ~int | ~int64](f *fields, all ...*T) {
	for _, n := range all {
		if !f.reading {
			f.buf = binary.AppendVarint(f.buf, int64(*n))
			continue
		}
		v, size := binary.Varint(f.buf[f.at:])
		if f.short = f.short || size <= 0; !f.short {
			*n = T(v)
			f.at += size
		}
	}
}

// length limits the length of a text or a list to what is left to read, since each element takes an octet.
func (f *fields) length(n int) int {
	varints(f, &n)
	if f.reading && (f.short || n < 0 || n > len(f.buf)-f.at) {
		f.short = true
		return 0
	}
	return n
}

func octets[T ~string | ~[]byte](f *fields, s *T) {
	n := f.length(len(*s))
	switch {
	case !f.reading:
		f.buf = append(f.buf, *s...)
	case n > 0:
		*s = T(f.text[f.at : f.at+n])
		f.at += n
	}
}

func list[T any](f *fields, all *[]T, each func(*T)) {
	if n := f.length(len(*all)); f.reading && n > 0 {
		*all = make([]T, n)
	}
	for i := range *all {
		each(&(*all)[i])
	}
}

func optional[T any](f *fields, value **T, each func(*T)) {
	given := *value != nil
	f.flags(&given)
	if given && f.reading {
		*value = new(T)
	}
	if given {
		each(*value)
	}
}

func (f *fields) string(s *string) { octets(f, s) }

func (f *fields) strings(all ...*string) {
	for _, s := range all {
		octets(f, s)
	}
}

// flags are the bits of one number.
func (f *fields) flags(all ...*bool) {
	bits := 0
	for i, b := range all {
		if *b {
			bits |= 1 << i
		}
	}
	varints(f, &bits)
	for i, b := range all {
		if f.reading {
			*b = bits&(1<<i) != 0
		}
	}
}

func (f *fields) time(t *time.Time) {
	seconds, nanos := t.Unix(), int64(t.Nanosecond())
	varints(f, &seconds, &nanos)
	if f.reading {
		*t = time.Unix(seconds, nanos).UTC()
	}
}

func (e *envelope) visit(f *fields) {
	f.strings(&e.Account, &e.Source, &e.MessageID, &e.From, &e.Subject, &e.Key, &e.Trace, &e.Proxy,
		&e.LocalAddress, &e.ListID, &e.Base, &e.Domain)
	octets(f, &e.Priority)
	octets(f, &e.Metadata)
	varints(f, &e.Size, &e.Added)
	f.flags(&e.UTF8, &e.RequireTLS, &e.EightBit, &e.Returns, &e.Raw, &e.Bound, &e.Opens, &e.Clicks)
	list(f, &e.To, f.string)
	list(f, &e.Tags, f.string)
	list(f, &e.Named, f.string)
	optional(f, &e.DeliverBy, f.time)
	optional(f, &e.DSN, func(d *api.DSN) {
		f.strings(&d.ID, &d.Return, &d.Recipient)
		list(f, &d.Notify, f.string)
	})
	optional(f, &e.Template, func(t *api.TemplateRef) {
		f.string(&t.ID)
		varints(f, &t.Version)
	})
	optional(f, &e.Campaign, func(c *CampaignMail) {
		f.strings(&c.Campaign.Campaign, &c.Subscriber, &c.Variant, &c.Events)
		varints(f, &c.Run)
		f.flags(&c.KeepLog)
	})
}

func (s *status) visit(f *fields) {
	list(f, &s.Recipients, func(r *recipient) {
		f.strings(&r.Status, &r.Response, &r.ID)
		varints(f, &r.Attempts)
	})
	list(f, &s.Log, func(a *api.Attempt) {
		varints(f, &a.Number, &a.Code, &a.Status)
		f.time(&a.Start)
		optional(f, &a.End, f.time)
		f.strings(&a.Gateway, &a.Host, &a.Address, &a.TLS, &a.Enhanced, &a.Line, &a.Error, &a.ProviderCode)
		f.flags(&a.InDoubt, &a.Held)
	})
	for _, e := range []**lastError{&s.Last, &s.Lost} {
		optional(f, e, func(e *lastError) {
			f.strings(&e.Message, &e.Code)
			varints(f, &e.SMTP)
			f.flags(&e.Account)
		})
	}
	list(f, &s.Events, func(e *pastEvent) {
		f.strings(&e.ID, &e.Reason)
		octets(f, &e.Type)
		varints(f, &e.At, &e.Until)
		varints(f, &e.Attempt)
		list(f, &e.To, func(n *int) { varints(f, n) })
	})
	optional(f, &s.Doubt, func(r *remembered) {
		f.string(&r.Gateway)
		f.time(&r.Until)
		varints(f, &r.Answered)
	})
	list(f, &s.Ready, func(s *span) { varints(f, &s[0], &s[1]) })
}

func (e *ended) visit(f *fields) {
	e.Envelope.visit(f)
	e.Status.visit(f)
	f.strings(&e.Result, &e.Gateway, &e.Reason, &e.Shared)
	octets(f, &e.Lane)
	varints(f, &e.At, &e.Created, &e.Scheduled)
	varints(f, &e.Attempts, &e.Max, &e.Doubts)
}
