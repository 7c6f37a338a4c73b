package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/api/fault"
)

// wrap gives a list of elements as the provider would post them; those that post one at a time get none.
func element(name Name, inner string) string {
	switch name {
	case SendGrid:
		return `{"event":"delivered","email":"a@example.com",` + inner + `}`
	case SparkPost:
		return `{"msys":{"message_event":{"type":"delivery","rcpt_to":"a@example.com",` + inner + `}}}`
	case Postmark:
		return `{"RecordType":"Delivery","Recipient":"a@example.com",` + inner + `}`
	case Mailjet:
		return `{"event":"sent","email":"a@example.com",` + inner + `}`
	case Brevo:
		return `{"event":"delivered","email":"a@example.com",` + inner + `}`
	case Postal:
		return `{"event":"MessageSent","payload":{"message":{"to":"a@example.com"},` + inner + `}}`
	case Mandrill:
		return `{"event":"deferral","msg":{"email":"a@example.com",` + inner + `}}`
	case Resend:
		return `{"type":"email.delivered","data":{"to":["a@example.com"],` + inner + `}}`
	}
	return `{"type":"delivered","recipient":"a@example.com",` + inner + `}`
}

var batching = []Name{SendGrid, Postmark, Mailjet, SparkPost, Brevo, Resend, Postal, Mandrill, Generic}

func TestOneBrokenElementKeepsTheOthers(t *testing.T) {
	for _, name := range batching {
		for what, bad := range map[string]string{
			"a number":       `7`,
			"null":           `null`,
			"a string":       `"delivered"`,
			"a list":         `[[]]`,
			"nothing in it":  `{}`,
			"a key twice":    element(name, `"x":1,"x":2`),
			"nested deeply":  element(name, `"x":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)),
			"twice, further": element(name, `"x":[{"y":{"z":1,"z":1}}]`),
		} {
			body := "[" + element(name, `"n":1`) + "," + bad + "," + element(name, `"n":2`) + "]"
			b, err := Read(name, request(name, body))
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			if len(b.Events) != 2 || len(b.Broken) != 1 || b.Broken[0].Index != 1 {
				t.Errorf("%s, %s: %d events, broken %v", name, what, len(b.Events), b.Broken)
			}
		}
	}
}

func TestWrongBodies(t *testing.T) {
	for _, name := range Names() {
		for _, body := range []string{"", " ", "null", "7", `"x"`, "{", "[", "[{}", "{}}", "[]]", "{}{}", "[][]",
			"{} x", "[{},]", "<xml/>", "\xff\xfe", "{\"a\":1e}", "event=delivered"} {
			b, err := Read(name, jsonRequest(body))
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("%s %q: %+v, %v; want invalid", name, body, b, err)
			}
		}
		if _, err := Read(name, Request{Body: make([]byte, MaxBody+1)}); !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s, a huge body: %v; want too large", name, err)
		}
	}
	if _, err := Read("nobody", jsonRequest("{}")); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown provider: %v", err)
	}
	v := newVerifier(t, Postmark, Options{Secrets: []string{"a-secret-of-good-length"}})
	if err := v.Verify(t.Context(), Request{Body: make([]byte, MaxBody+1)}, time.Now()); !fault.Is(err,
		fault.TooLarge) {
		t.Errorf("verify a huge body: %v; want too large", err)
	}
}

func TestTooManyElements(t *testing.T) {
	for _, name := range batching {
		list := func(n int) Request { return request(name, "["+strings.Repeat("{},", n-1)+"{}]") }
		if _, err := Read(name, list(MaxEvents)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Read(name, list(MaxEvents+1)); !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v; want too large", name, err)
		}
	}
	many := strings.Repeat(`"a@example.com",`, MaxEvents) + `"a@example.com"`
	if _, err := Read(SES, jsonRequest(sns(t, `{"eventType":"Send","mail":{"destination":[`+many+
		`]}}`))); !fault.Is(err, fault.TooLarge) {
		t.Errorf("SES, one element with too many recipients: %v; want too large", err)
	}
	if _, err := Read(Mailgun,
		Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
			Body: []byte(strings.Repeat("a=b&", 600))}); !fault.Is(err, fault.Invalid) {
		t.Errorf("Mailgun, a form of 600 fields: %v; want invalid", err)
	}
}

func TestTooManyParts(t *testing.T) {
	part := "--x\r\nContent-Disposition: form-data; name=\"event\"\r\n\r\nbounced\r\n"
	r := Request{Header: http.Header{"Content-Type": {"multipart/form-data; boundary=x"}},
		Body: []byte(strings.Repeat(part, maxFields+1) + "--x--\r\n")}
	if _, err := Read(Mailgun, r); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v; want invalid", err)
	}
}

// Wherever something else than expected stands, the event is read without it.
func TestWrongTypes(t *testing.T) {
	values := []string{`null`, `true`, `-1`, `1e999999`, `123456789012345678901234567890`, `"x"`, `""`, `[]`,
		`[1]`, `[[]]`, `{}`, `{"a":{"b":[1]}}`, `"\u0000\ud800"`}
	fields := map[Name][]string{
		SendGrid: {"timestamp", "smtp-id", "sg_event_id", "sg_message_id", "category", "ip", "response", "attempt",
			"useragent"},
		Postmark: {"ID", "MessageID", "DeliveredAt", "Details", "Geo", "Tag", "Metadata", "UserAgent"},
		Mailjet: {"time", "MessageID", "Message_GUID", "smtp_reply", "customcampaign", "Payload", "CustomID",
			"ip", "agent"},
		SparkPost: {"timestamp", "event_id", "message_id", "transmission_id", "error_code", "rcpt_meta",
			"rcpt_tags", "campaign_id", "ip_address"},
		Brevo:    {"ts_epoch", "ts", "message-id", "tags", "tag", "X-Mailin-custom", "reason", "ip"},
		Resend:   {"email_id", "message_id", "headers", "tags", "cc", "created_at"},
		Postal:   {"output", "details", "timestamp", "url", "user_agent", "ip_address", "status"},
		Mandrill: {"_id", "diag", "bounce_description", "tags", "metadata", "ts"},
		Generic: {"id", "time", "messageId", "providerMessageId", "diagnostic", "smtpCode", "enhanced", "ip",
			"machine", "tags", "metadata"},
	}
	for name, keys := range fields {
		for _, key := range keys {
			for _, value := range values {
				body := element(name, fmt.Sprintf("%q:%s", key, value))
				b, err := Read(name, request(name, body))
				if err != nil || len(b.Events) != 1 {
					t.Errorf("%s %s: %+v, %v", name, body, b, err)
					continue
				}
				checkBounds(t, b)
				if e := b.Events[0]; e.Recipient != "a@example.com" && len(e.Candidates) == 0 {
					t.Errorf("%s %s: recipient %q", name, body, e.Recipient)
				}
			}
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	meta := strings.Repeat(`"k%d":"v",`, 1)
	var all strings.Builder
	for i := range 500 {
		fmt.Fprintf(&all, meta, i)
	}
	body := fmt.Sprintf(`{"type":"clicked","recipient":"%[1]s@x","id":"%[1]s","diagnostic":"%[1]s","url":"%[1]s","userAgent":"%[1]s","messageId":"%[1]s",
		"tags":["%[1]s"%[2]s],"metadata":{%[3]s"%[1]s":"%[1]s"}}`, long, strings.Repeat(`,"t"`, 500), all.String())
	b, err := Read(Generic, jsonRequest(body))
	if err != nil || len(b.Events) != 1 {
		t.Fatalf("%d events, %v, %v", len(b.Events), b.Broken, err)
	}
	checkBounds(t, b)
}

// ignoredNames are the names under which elements are ignored.
var ignoredNames = strings.Fields("ab_test_event account address_change autoresponded contact inbound ingest_event " +
	"list not_spam ping received relay_event resubscribed scheduled sms stored subaccount_event topic_validated " +
	"typofix unknown unsubscribe_confirmation")

// checkBounds holds for whatever was read from whatever body.
func checkBounds(t testing.TB, b Batch) {
	t.Helper()
	if len(b.Events) > MaxEvents || len(b.Ignored)+len(b.Broken) > MaxEvents {
		t.Errorf("%d events, %d ignored, %d broken", len(b.Events), len(b.Ignored), len(b.Broken))
	}
	for _, i := range b.Ignored {
		if !slices.Contains(ignoredNames, i.Name) || len(i.Word) > 64 {
			t.Errorf("ignored %+v", i)
		}
	}
	for _, e := range b.Events {
		text := []struct {
			s     string
			limit int
		}{{e.Word, 64}, {e.Recipient, 320}, {e.EventID, maxID}, {e.Key, maxID + 8}, {e.ProviderMessageID, maxID},
			{e.ProviderAlias, maxID}, {e.MessageID, 1000},
			{e.Diagnostic, 2000}, {e.Enhanced, 9}, {e.URL, 4096}, {e.UserAgent, 512}, {e.IP, 45}}
		for _, c := range e.Candidates {
			text = append(text, struct {
				s     string
				limit int
			}{c, 320})
		}
		for k, v := range e.Metadata {
			text = append(text, struct {
				s     string
				limit int
			}{k, maxTag}, struct {
				s     string
				limit int
			}{v, maxValue})
		}
		for _, x := range text {
			if len(x.s) > x.limit || !utf8.ValidString(x.s) ||
				strings.ContainsFunc(x.s, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }) {
				t.Errorf("text of %d bytes (limit %d): %.80q", len(x.s), x.limit, x.s)
			}
		}
		if e.Key == "" || e.Word == "" || e.Provider == "" || e.Kind == "" || len(e.Tags) > maxTags ||
			len(e.Metadata) > maxMetadata || len(e.Candidates) > 100 {
			t.Errorf("event %+v", e)
		}
		if (e.Bounce != "") != (e.Kind == Bounced) || e.SMTPCode != 0 && (e.SMTPCode < 200 || e.SMTPCode > 599) ||
			e.Kind == Dropped && e.Reason == "" && e.Provider != Generic && e.Provider != Mailjet {
			t.Errorf("event %+v", e)
		}
		if !e.Time.IsZero() && (e.Time.Year() < 2000 || e.Time.Year() >= 2100 || e.Time.Location() != time.UTC) {
			t.Errorf("time %v", e.Time)
		}
	}
}
