package outbox

import (
	"bytes"
	"net/mail"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestCorrectedReplayNamesTheNewRecipient: To and Cc name it instead of the original one, and the message is
// signed again. A raw message stays as it was, and the answer says so.
func TestCorrectedReplayNamesTheNewRecipient(t *testing.T) {
	t.Parallel()
	raw := "From: app@example.com\r\nTo: rcpt-550@x.test\r\nDate: Wed, 2 Jan 2030 03:04:05 +0000\r\n" +
		"Message-ID: <1@example.com>\r\n\r\nHello\r\n"
	for name, c := range map[string]struct {
		req              api.SubmitRequest
		header, to, bare string
	}{
		"composed": {api.SubmitRequest{Text: "Hello", To: append(for1("ann@x.test"), for1("rcpt-550@X.TEST")...)},
			"corrected", "ann@x.test, new@x.test", "rcpt-550"},
		"in Cc": {api.SubmitRequest{Text: "Hello", To: for1("ann@x.test"), CC: for1("rcpt-550@x.test")},
			"corrected", "ann@x.test", "rcpt-550"},
		"in Bcc": {api.SubmitRequest{Text: "Hello", To: for1("ann@x.test"), BCC: for1("rcpt-550@x.test")},
			"corrected", "ann@x.test", "new@"},
		"from a template": {api.SubmitRequest{Template: "welcome", To: for1("rcpt-550@x.test")}, "corrected",
			"new@x.test", "rcpt-550"},
		"raw": {api.SubmitRequest{Raw: []byte(raw)}, "unchanged", "rcpt-550@x.test", "new@"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			relay := testsmtp.Start(t, testsmtp.Options{})
			b := routed(t, testredis.New(t), relay)
			a, err := b.Intake.Submit(t.Context(), c.req)
			must(t, err)
			b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, "1"), Type: TaskDeliver,
				Queue: queue.Submit})
			m, err := b.Operations.Replay(t.Context(), a.QueueID, api.Corrections{To: api.Emails{"new@x.test"}})
			if err != nil || m.Header != c.header {
				t.Fatalf("the replay answers %q, want %q, %v", m.Header, c.header, err)
			}
			shown, err := b.Reader.Content(t.Context(), a.QueueID)
			must(t, err)
			b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, "2"), Type: TaskDeliver,
				Queue: queue.Submit})
			all := relay.Messages()
			got := all[len(all)-1]
			if len(got.To) != 1 || got.To[0] != "new@x.test" || !bytes.Equal(got.Data, shown) {
				t.Errorf("to %v came\n%s\nand shown was\n%s", got.To, got.Data, shown)
			}
			parsed, err := mail.ReadMessage(bytes.NewReader(got.Data))
			must(t, err)
			var to []string
			list, err := parsed.Header.AddressList("To")
			must(t, err)
			for _, one := range list {
				to = append(to, one.Address)
			}
			head, _, _ := strings.Cut(string(got.Data), "\r\n\r\n")
			if strings.Join(to, ", ") != c.to || strings.Contains(strings.ToLower(head), c.bare) {
				t.Errorf("To is %v, want %s, without %s:\n%s", to, c.to, c.bare, head)
			}
			if n := len(parsed.Header["Dkim-Signature"]); n != 1 {
				t.Errorf("it has %d signatures", n)
			}
		})
	}
}
