package provider

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
)

const (
	maxFields = 500
	maxField  = 256 << 10
)

// parseForm reads a form, where the request says that it is one. A field that comes several times is a list.
func parseForm(r Request) (form object, isForm bool, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, false, nil
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		form, err = parseURLForm(string(r.Body))
		return form, true, err
	case "multipart/form-data":
		form, err = parseParts(r.Body, params["boundary"])
		return form, true, err
	}
	return nil, false, nil
}

func parseURLForm(body string) (object, error) {
	if strings.Count(body, "&") >= maxFields {
		return nil, errors.New("has too many fields")
	}
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, err
	}
	form := object{}
	for name, all := range values {
		for _, value := range all {
			form.put(name, value)
		}
	}
	return form, nil
}

func parseParts(body []byte, boundary string) (object, error) {
	form := object{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if err == io.EOF {
			return form, nil
		}
		if err != nil {
			return nil, err
		}
		if n == maxFields {
			return nil, errors.New("has too many fields")
		}
		if part.FileName() != "" || part.FormName() == "" { // the mail itself, attached
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, maxField))
		if err != nil {
			return nil, err
		}
		form.put(part.FormName(), string(value))
	}
}

// put adds a value to a form. The second value of a name makes a list, so that a signature written twice
// isn't text, and fits nothing.
func (o object) put(name, value string) {
	switch before := o[name].(type) {
	case nil:
		o[name] = value
	case []any:
		o[name] = append(before, value)
	default:
		o[name] = []any{before, value}
	}
}

// mailgunFormFact reads the form that Mailgun posts for domains with its first webhooks.
func mailgunFormFact(o object) (fact, error) {
	word := o.text("event")
	m, e := Mailgun.means("form:"+word), mailgunFormEvent(o)
	switch word {
	case "bounced":
		if e.SMTPCode >= 400 && e.SMTPCode < 500 || strings.HasPrefix(e.Enhanced, "4.") {
			m.bounce = Soft
		}
	case "dropped":
		m.reason = cmp.Or(mailgunCodes[e.SMTPCode], Mailgun.means("drop:"+o.text("reason")).reason, ReasonOther)
	case "":
		if o["body-plain"] != nil || o["stripped-text"] != nil || o["body-mime"] != nil {
			return ignore("inbound", "inbound")
		}
	}
	return m.fact(word, e)
}

func mailgunFormEvent(o object) Event {
	e := Event{
		EventID:           o.text("token"),
		ProviderMessageID: o.firstText("Message-Id", "message-id"),
		Recipient:         o.text("recipient"),
		Time:              when(o["timestamp"]),
		Diagnostic:        o.firstText("error", "notification", "description"),
		SMTPCode:          code(o["code"]),
		Enhanced:          o.text("code"), // sometimes it is an enhanced code
		URL:               o.text("url"),
		UserAgent:         o.text("user-agent"),
		IP:                o.text("ip"),
		Tags:              append(o.texts("X-Mailgun-Tag"), append(o.texts("tag"), o.texts("campaign-id")...)...),
	}
	variables := mailgunHeaders(&e, o.text("message-headers"))
	e.MessageID = e.ProviderMessageID
	e.attach(variables)
	if variables == nil {
		e.attach(metadata(o.without(mailgunOwn)))
	}
	return e
}

// mailgunOwn are Mailgun's fields. The sender's variables are mixed with them.
var mailgunOwn = strings.Fields("event recipient domain message-headers message-id timestamp token signature body-plain ip country region city user-agent device-type client-type client-name client-os campaign-id campaign-name tag mailing-list url code error notification description reason sender from subject severity attachment-* x-mailgun-* X-Mailgun-* Message-Id")

// mailgunHeaders reads the headers of the message, pairs of name and value in JSON: its id, its tags, and the
// sender's variables. Events without the headers have the variables among their own fields.
func mailgunHeaders(e *Event, s string) map[string]string {
	v, err := parseJSON([]byte(s))
	if err != nil {
		return nil
	}
	var variables map[string]string
	list, _ := v.([]any)
	for _, one := range list {
		pair, _ := one.([]any)
		if len(pair) != 2 {
			continue
		}
		value := asText(pair[1])
		switch strings.ToLower(asText(pair[0])) {
		case "message-id":
			e.ProviderMessageID = cmp.Or(e.ProviderMessageID, value)
		case "x-mailgun-tag":
			if len(e.Tags) < maxTags {
				e.Tags = append(e.Tags, value)
			}
		case "x-mailgun-variables":
			variables = attached("X-Mailgun-Variables", value)
		}
	}
	return variables
}
