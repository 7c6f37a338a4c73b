package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestWatchKeepsWhatEnded: the lines of ended messages go up into the scrollback, and the table is written
// over.
func TestWatchKeepsWhatEnded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(api.Problem{StatusCode: 409, Code: "MessageSent", Message: "sent",
			Details: map[string]any{"response": "250 OK"}})
	}))
	defer server.Close()
	ann := api.OutboxMessage{QueueID: "01", State: api.Waiting, Subject: "Hello",
		Envelope: api.Envelope{To: []string{"ann@example.com"}}}
	ben := api.OutboxMessage{QueueID: "02", State: api.Delayed, Subject: "Bye",
		Envelope: api.Envelope{To: []string{"ben@example.com"}}}
	for name, want := range map[string]struct{ lines []string }{
		"lines": {[]string{"01  waiting    ann@example.com  Hello", "02  delayed    ben@example.com  Bye",
			"01  sent       ann@example.com  Hello  250 OK"}},
		"live": {[]string{"01  sent       ann@example.com  Hello  250 OK"}},
	} {
		var out bytes.Buffer
		con := &console{out: &out, outTTY: name == "live", size: func() (int, int) { return 80, 24 }}
		w := watcher{session: &session{Context: t.Context(), console: con,
			client: api.NewClient(server.URL, "x", server.Client())}, said: map[string]string{},
			live: name == "live"}
		for _, at := range []watched{{Total: 2, Messages: []api.OutboxMessage{ann, ben}},
			{Total: 1, Messages: []api.OutboxMessage{ben}}, {Total: 1, Messages: []api.OutboxMessage{ben}}} {
			if err := w.show(at); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			line = strings.TrimRight(regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\r").ReplaceAllString(line, ""), "\n")
			if regexp.MustCompile(`^\d\d `).MatchString(line) {
				got = append(got, line)
			}
		}
		if diff := cmp.Diff(want.lines, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%q", name, diff, out.String())
		}
		if ups := strings.Count(out.String(), "A\r"); name == "live" && ups != 2 {
			t.Errorf("the table was written over %d times, want 2: %q", ups, out.String())
		}
	}
}
