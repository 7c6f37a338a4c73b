package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
)

func TestLineComesBack(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.FixedZone("", 3600))
	sent := event.Sent{
		Message: event.Message{QueueID: "q", MessageID: "<m@example.com>", Envelope: event.Envelope{
			To: []string{"ann@example.net"}}},
		Response: "250 OK", Accepted: []string{"ann@example.net"},
	}
	e, err := event.New("id", event.MessageSent, "default", at, sent)
	if err != nil {
		t.Fatal(err)
	}
	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	back, err := event.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	for _, want := range []string{`"messageId":"<m@example.com>"`, `"date":"2030-01-02T02:04:05.678Z"`,
		`"networkRouting":null`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":         `{"v":1`,
		"a later version": `{"v":99,"eventId":"x","event":"messageSent"}`,
	} {
		if _, err := event.Parse([]byte(line)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestNewRefusesWhatIsNoJSON(t *testing.T) {
	if _, err := event.New("id", event.MessageSent, "a", time.Now(), func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
}
