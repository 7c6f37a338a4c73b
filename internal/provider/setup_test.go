package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is one file of testdata/fixtures.
type fixture struct {
	Origin struct {
		Expected struct {
			Type        string         `json:"event_type"`
			MessageID   string         `json:"message_id"`
			EventID     string         `json:"event_id"`
			Recipient   string         `json:"recipient"`
			Reason      string         `json:"reject_reason"`
			Description string         `json:"description"`
			Reply       string         `json:"mta_response"`
			UserAgent   string         `json:"user_agent"`
			URL         string         `json:"click_url"`
			Tags        []string       `json:"tags"`
			Metadata    map[string]any `json:"metadata"`
		} `json:"expected_normalization_by_anymail"`
	} `json:"_origin"`
	Payload json.RawMessage `json:"payload"`
}

func loadJSON(t testing.TB, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// loadFixture gives a fixture and the request that its provider would make of it.
func loadFixture(t testing.TB, name Name, file string) (fixture, Request) {
	t.Helper()
	var f fixture
	loadJSON(t, filepath.Join("fixtures", string(name), file), &f)
	r := jsonRequest(string(f.Payload))
	if name == Mailgun && !bytes.Contains(f.Payload, []byte(`"event-data"`)) {
		r = formRequest(t, f.Payload)
	}
	if name == Mandrill {
		r = mandrillRequest(string(f.Payload))
	}
	if name == Resend {
		r.Header.Set("svix-id", "msg_2W2D3qXLS5fOaPja1GDg7rF2CwB")
	}
	return f, r
}

// request is what a provider makes of the JSON of its events.
func request(name Name, body string) Request {
	if name == Mandrill {
		return mandrillRequest(body)
	}
	return jsonRequest(body)
}

func mandrillRequest(events string) Request {
	return Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}},
		Body: []byte(url.Values{"mandrill_events": {events}}.Encode())}
}

func jsonRequest(body string) Request {
	return Request{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

// formRequest writes a JSON object as a form.
func formRequest(t testing.TB, payload []byte) Request {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(payload, &fields); err != nil {
		t.Fatal(err)
	}
	form := url.Values{}
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			form.Add(name, v)
		case []any:
			for _, one := range v {
				form.Add(name, one.(string))
			}
		default:
			t.Fatalf("field %s is %T", name, v)
		}
	}
	return Request{Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded; charset=utf-8"}},
		Body: []byte(form.Encode())}
}

// readOne reads a body with one event.
func readOne(t testing.TB, name Name, body string) Event {
	t.Helper()
	b, err := Read(name, request(name, body))
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if len(b.Events) != 1 || len(b.Ignored) != 0 || len(b.Broken) != 0 {
		t.Fatalf("read %d events, ignored %v, broken %v; want one event", len(b.Events), b.Ignored, b.Broken)
	}
	return b.Events[0]
}

// sns wraps an SES event in an envelope.
func sns(t testing.TB, message string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{
		"Type": "Notification", "MessageId": "sns-1", "TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": message,
		"Timestamp": "2026-01-02T03:04:05.000Z",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func join(list []string) string { return strings.Join(list, "|") }
