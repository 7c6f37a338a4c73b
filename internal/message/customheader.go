package message

import (
	"cmp"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// HeadersOf returns the fields of a JSON object, sorted by name: the same request always makes the same
// message.
func HeadersOf[Text ~string, Values ~[]Text, Object ~map[string]Values](object Object) []Header {
	list := make([]Header, 0, len(object))
	for name, values := range object {
		for _, value := range values {
			list = append(list, Header{Name: name, Value: string(value)})
		}
	}
	slices.SortStableFunc(list, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// TakeHeaders takes the control headers out of the additional headers of a draft, and moves headers such as
// Reply-To to the draft's field of that meaning. Clients of other services expect this, and no field may
// appear twice (RFC 5322 section 3.6). It returns the wrong headers. A time without an offset is in zone.
func TakeHeaders(d *Draft, zone *time.Location) (Control, []fault.Field) {
	var f faults
	var controls rawHeader
	others := make([]Header, 0, len(d.Headers))
	for _, header := range d.Headers {
		if !IsControl(header.Name) {
			others = append(others, header)
		} else if f.line("headers."+header.Name, header.Value) {
			controls.fields = append(controls.fields,
				rawField{strings.ToLower(header.Name), []byte(header.Name + ": " + header.Value)})
		}
	}
	d.Headers = others
	control := controls.takeControl(&f, zone)
	f.takeHeaders(d, false)
	return control, f.Fields
}

// takeHeaders checks a draft's additional headers and moves headers that have their own field there. It moves
// Sender and Date, which a request has no fields for, only if all is set. Headers that depend on the
// message's structure or recipients are refused.
func (f *faults) takeHeaders(d *Draft, all bool) {
	others := make([]Header, 0, len(d.Headers))
	for i, header := range d.Headers {
		key, name := "headers."+header.Name, strings.ToLower(header.Name)
		switch {
		case !f.headerName(key, header.Name) || name == "mime-version" && header.Value == "1.0":
		case name == "from" || name == "to" || name == "cc" || name == "bcc" || name == "resent-bcc":
			f.Add(key, "can't be set as a header. Use the field %s", strings.TrimPrefix(name, "resent-"))
		case name == "return-path":
			f.Add(key, "can't be set, because the last server writes it. Use the field envelope.from")
		case name == "mime-version" || strings.HasPrefix(name, "content-") && name != "content-language":
			f.Add(key, "can't be set, because Postroom writes it from text, html and attachments, or from "+
				"raw")
		case isOnlyOnce(name) && slices.ContainsFunc(d.Headers[:i], func(before Header) bool {
			return strings.ToLower(before.Name) == name
		}):
			f.Add(key, "is given more than once, but a message has one %s", header.Name)
		case !all && (name == "sender" || name == "date") || !f.takeHeader(d, key, name, header.Value):
			others = append(others, header)
		}
	}
	d.Headers = others
}

func isOnlyOnce(name string) bool {
	return slices.ContainsFunc(onlyOnce, func(once string) bool { return strings.EqualFold(once, name) })
}

// takeHeader stores a header in its field of the draft. It returns false if the draft has no such field.
func (f *faults) takeHeader(d *Draft, key, name, value string) bool {
	switch name {
	case "subject":
		fill(f, &d.Subject, value, key, "subject")
	case "message-id":
		id, err := messageID(value)
		f.addError(key, err)
		if given, err := messageID(d.MessageID); err == nil && given == id {
			d.MessageID = id
		}
		fill(f, &d.MessageID, id, key, "messageId")
	case "in-reply-to":
		fill(f, &d.InReplyTo, value, key, "inReplyTo")
	case "references":
		list := strings.Join(d.References, " ")
		fill(f, &list, value, key, "references")
		d.References = strings.Fields(list)
	case "reply-to":
		list := f.list(key, value)
		if len(d.ReplyTo) == 0 {
			d.ReplyTo = list
		} else if !slices.Equal(d.ReplyTo, list) {
			f.Add(key, "differs from the field replyTo")
		}
	case "sender":
		if list := f.list(key, value); len(list) != 1 {
			f.Add(key, "must be one address")
		} else {
			fill(f, &d.Sender, list[0], key, "sender")
		}
	case "date":
		date, err := mail.ParseDate(value)
		if err != nil {
			f.Add(key, "isn't a date in the format of RFC 5322")
			break
		}
		d.Date = date
	default:
		return false
	}
	return true
}

// fill sets an empty field. If it has another value, the header is invalid.
func fill[T comparable](f *faults, field *T, value T, key, name string) {
	if *field != *new(T) && *field != value && value != *new(T) {
		f.Add(key, "differs from the field %s", name)
	}
	*field = cmp.Or(*field, value)
}

func (f *faults) list(key, value string) []Address {
	if !f.line(key, value) {
		return nil
	}
	list, err := ParseAddressList(value)
	f.addError(key, err)
	return list
}
