package message

import (
	"cmp"
	"net/mail"
	"slices"
	"strings"
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

// adoptHeaders checks the additional headers of a draft. A header such as "Reply-To" becomes the draft's
// field of that meaning if the field is empty: clients of other services expect this, and no field may appear
// twice (RFC 5322 section 3.6). Headers that depend on the message's structure or recipients are refused.
func (f *faults) adoptHeaders(d *Draft) {
	others := make([]Header, 0, len(d.Headers))
	for _, header := range d.Headers {
		key := "headers." + header.Name
		if !f.headerName(key, header.Name) {
			continue
		}
		name := strings.ToLower(header.Name)
		switch {
		case isStructural(name):
			f.add(key, "is written by the message itself")
		case name == "from", name == "to", name == "cc", name == "bcc", name == "resent-bcc":
			f.add(key, "cannot be a header here: use the field %s", strings.TrimPrefix(name, "resent-"))
		case !f.adopt(d, key, name, header.Value):
			others = append(others, header)
		}
	}
	d.Headers = others
}

// isStructural reports whether a field (lower case) describes the structure or the transport of a message.
func isStructural(name string) bool {
	return name == "mime-version" || name == "return-path" || strings.HasPrefix(name, "content-")
}

// adopt stores a header in its field of the draft. It returns false if the draft has no such field.
func (f *faults) adopt(d *Draft, key, name, value string) bool {
	given := false
	switch name {
	case "subject":
		given = fill(&d.Subject, value)
	case "message-id":
		given = fill(&d.MessageID, value)
	case "in-reply-to":
		given = fill(&d.InReplyTo, value)
	case "references":
		if given = len(d.References) > 0; !given {
			d.References = strings.Fields(value)
		}
	case "reply-to":
		if given = len(d.ReplyTo) > 0; !given {
			d.ReplyTo = f.list(key, value)
		}
	case "sender":
		if given = d.Sender != (Address{}); !given {
			if list := f.list(key, value); len(list) == 1 {
				d.Sender = list[0]
			} else if len(list) > 1 {
				f.add(key, "must be one address")
			}
		}
	case "date":
		date, err := mail.ParseDate(value)
		if err != nil {
			f.add(key, "is not a date as RFC 5322 writes it")
			break
		}
		d.Date = date
	default:
		return false
	}
	if given {
		f.add(key, "is given twice: as a header and as a field of the request")
	}
	return true
}

// fill sets an empty field. It reports whether the field was given already.
func fill(field *string, value string) (given bool) {
	given = *field != ""
	*field = cmp.Or(*field, value)
	return given
}

func (f *faults) list(key, value string) []Address {
	if !f.line(key, value) {
		return nil
	}
	list, err := ParseAddressList(value)
	f.addError(key, err)
	return list
}
