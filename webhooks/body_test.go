package webhooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
)

// recorded is a webhook request of EmailEngine.
type recorded struct {
	Headers map[string]string `json:"headers"`
	Body    struct {
		ServiceURL string          `json:"serviceUrl"`
		Account    string          `json:"account"`
		Date       time.Time       `json:"date"`
		Event      string          `json:"event"`
		Data       json.RawMessage `json:"data"`
	} `json:"body"`
	RawBody string `json:"raw_body"`
}

func readRecorded(t *testing.T, file string) recorded {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// For the same event we post what EmailEngine posts, byte for byte, and the event's id at the end.
func TestBodyIsEmailEngines(t *testing.T) {
	files, err := filepath.Glob("testdata/webhook-*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := readRecorded(t, file)
			var compact strings.Builder
			enc := json.NewEncoder(&compact)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r.Body.Data); err != nil {
				t.Fatal(err)
			}
			e := event.Event{ID: "E1", Type: event.Type(r.Body.Event), Account: r.Body.Account, Time: r.Body.Date,
				Data: json.RawMessage(compact.String())}
			got, err := writeBody(e, r.Body.ServiceURL)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.TrimSuffix(r.RawBody, "}") + `,"eventId":"E1"}`
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The data of our own events has every field that EmailEngine's has, of the same JSON type.
func TestDataHasEmailEnginesFields(t *testing.T) {
	message := event.Message{QueueID: "Q1", MessageID: "<m@example.com>", Envelope: event.Envelope{
		From: "a@example.com", To: []string{"b@example.net"}}}
	code, next := 451, time.Now()
	failure := event.Failure{Error: "no", ErrorCode: "EENVELOPE", SMTPResponse: "451 no",
		SMTPResponseCode: &code, SMTPCommand: "RCPT TO"}
	for file, data := range map[string]any{
		"webhook-messageSent.json": event.Sent{Message: message, Response: "250 ok", Accepted: []string{
			"b@example.net"}},
		"webhook-messageDeliveryError-451-attempt1.json": event.DeliveryError{
			Message: message, Failure: failure, Job: event.Job{ID: "Q1", AttemptsMade: 1, Attempts: 3,
				NextAttempt: &next},
		},
		"webhook-messageFailed-550.json": event.Failed{Message: message, Failure: failure,
			Job: event.Job{ID: "Q1", AttemptsMade: 3, Attempts: 3}},
	} {
		t.Run(file, func(t *testing.T) {
			e, err := event.New("E1", "messageSent", "snd", time.Now(), data)
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := shape(t, e.Data), shape(t, readRecorded(t, "testdata/"+file).Body.Data)
			for _, field := range theirs {
				if !slices.Contains(ours, field) {
					t.Errorf("no %s in %s", field, e.Data)
				}
			}
		})
	}
}

// shape lists the paths of a JSON object with their types.
func shape(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var paths []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for k, v := range m {
				walk(path+"."+k, v)
			}
			return
		}
		paths = append(paths, fmt.Sprintf("%s %T", path, v))
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	walk("data", v)
	return paths
}

func TestBodyWithoutAccountAndServiceURL(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.FixedZone("", 3600))
	got, err := writeBody(event.Event{ID: "E1", Type: event.WebhookDisabled, Time: at,
		Data: json.RawMessage(`{"a":"<&>"}`)}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"serviceUrl":null,"account":null,"date":"2026-11-21T09:00:00.000Z","event":"webhookDisabled","data":{"a":"<&>"},"eventId":"E1"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

// EmailEngine's headers are all there, whatever else is.
func TestHeadersAreEmailEngines(t *testing.T) {
	r := readRecorded(t, "testdata/webhook-messageSent.json")
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	for name := range r.Headers {
		switch name {
		case "host", "connection", "accept", "accept-language", "sec-fetch-mode", "accept-encoding":
			// its HTTP client's
			continue
		}
		if rc.got()[0].header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"ok", "\x1b[2J", "a\r\nb", "\xff\xfe", "\u2028", "<script>", "é", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := readHead(strings.NewReader(s))
		if len(got) > headSize {
			t.Fatalf("%d bytes kept", len(got))
		}
		for _, c := range got {
			if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 {
				t.Fatalf("control character %q kept", c)
			}
		}
		if got != strings.ToValidUTF8(got, "") {
			t.Fatal("not UTF-8")
		}
	})
}
