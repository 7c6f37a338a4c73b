package apptest

import (
	"bytes"
	"io"
	"net/http"
	"net/mail"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/internal/testsmtp"
)

// RecipientsOf returns to whom relays took mail.
func RecipientsOf(relays []*testsmtp.Server) (to []string) {
	for _, relay := range relays {
		for _, m := range relay.Messages() {
			to = append(to, m.To...)
		}
	}
	return to
}

// DKIMKey returns a DKIM private key.
func DKIMKey(t *testing.T) string {
	t.Helper()
	key, err := dkim.Generate(dkim.Ed25519, 0)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Visited is what somebody without a token gets.
type Visited struct {
	Status int
	Header http.Header
	Body   string
}

// Stranger asks for a page of the public archive, with headers as pairs.
func Stranger(t *testing.T, base, path string, headers ...string) Visited {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Visited{res.StatusCode, res.Header, string(body)}
}

func (v Visited) Has(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(v.Body, part) {
			t.Errorf("no %q in\n%s", part, v.Body)
		}
	}
}

func (v Visited) HasNot(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(v.Body, part) {
			t.Errorf("%q in\n%s", part, v.Body)
		}
	}
}

// SendSMTP submits a message over SMTP without TLS.
func SendSMTP(a *app.App, content []byte) error {
	c, err := smtp.Dial(a.Addrs().SMTP)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, step := range []func() error{
		func() error { return c.Auth(smtp.PlainAuth("", "default", a.Token(), "127.0.0.1")) },
		func() error { return c.Mail("shop@example.com") },
		func() error { return c.Rcpt("ann@example.net") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

// News returns a mail of a list.
func News(sendAt *time.Time) api.SubmitRequest {
	return api.SubmitRequest{
		ListID: "news", Lane: api.Bulk, SendAt: sendAt, Subject: "News",
		HTML:   `<p>News. <a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>`,
		Render: &api.Render{}, To: api.Addresses{{Address: "ann@example.net"}},
	}
}

// Header returns a field of a mail.
func Header(t *testing.T, m testsmtp.Message, name string) string {
	t.Helper()
	letter, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		t.Fatal(err)
	}
	return letter.Header.Get(name)
}

// AsRecipient sends a request as a recipient's programs do, and returns status and body.
func AsRecipient(t *testing.T, a *app.App, method, link, form string) (int, string) {
	t.Helper()
	path := strings.TrimPrefix(link, "https://mail.example.com")
	req, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func To(name string) api.Addresses { return api.Addresses{{Address: name + "@example.net"}} }
