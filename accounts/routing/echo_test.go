package routing

import (
	"context"
	"io"
	"testing"

	"github.com/postroom/postroom/smtpsend"
)

// streamed is a content that is not in memory.
type streamed struct{ smtpsend.Bytes }

func TestEcho(t *testing.T) {
	const mail = "From: a@x.test\r\nX-Long: " + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" +
		"\r\n\r\nX-PM-Metadata-postroom_id: in the body\r\n"
	const id = "01J0000000000000000000000A"
	for name, c := range map[string]struct {
		host, id, mail, want string
	}{
		"nobody's host": {"relay.test", id, mail, mail},
		"a provider": {"smtp.postmarkapp.com", id, mail, "X-PM-Metadata-postroom_id: " + id + "\r\n" +
			mail},
		"one that needs none": {"smtp.resend.com", id, mail, mail},
		"no text":             {"smtp.postmarkapp.com", "", mail, mail},
		"a field of its own":  {"smtp.sendgrid.net", id, "x-smtpapi: {}\r\n" + mail, "x-smtpapi: {}\r\n" + mail},
	} {
		for kind, body := range map[string]smtpsend.Body{"in memory": smtpsend.Bytes(c.mail), "streamed": streamed{
			smtpsend.Bytes(c.mail)}} {
			var proof func() string
			if c.id != "" {
				proof = func() string { return c.id }
			}
			m := attach(t.Context(), smtpsend.Message{Body: body, Labels: smtpsend.Labels{Proof: proof}},
				c.host)
			r, err := m.Body.Open(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != c.want || m.Body.Size() != int64(len(c.want)) {
				t.Errorf("%s, %s: %q, size %d, %v", name, kind, got, m.Body.Size(), err)
			}
		}
	}
}
