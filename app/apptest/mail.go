package apptest

import (
	"bytes"
	"io"
	"net/http"
	"net/mail"
	"net/smtp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/internal/testsmtp"
)

// DKIMKey returns a DKIM private key.
func DKIMKey(t *testing.T) string {
	t.Helper()
	key, err := dkim.Generate(dkim.Ed25519, 0)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Visited is what a client without a token gets.
type Visited struct {
	Status int
	Header http.Header
	Body   string
}

// ask sends a request with a body and with headers as pairs.
func ask(t *testing.T, client *http.Client, method, url, body string, headers ...string) (Visited, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := client.Do(req)
	if err != nil {
		return Visited{}, err
	}
	defer res.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(res.Body)
	return Visited{res.StatusCode, res.Header, string(text)}, err
}

// answered is ask for requests that must have an answer.
func answered(t *testing.T, client *http.Client, method, url, body string, headers ...string) Visited {
	t.Helper()
	v, err := ask(t, client, method, url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Stranger requests a page of the public archive, with headers as pairs.
func Stranger(t *testing.T, base, path string, headers ...string) Visited {
	t.Helper()
	return answered(t, http.DefaultClient, http.MethodGet, base+path, "", headers...)
}

func (v Visited) Has(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(v.Body, part) {
			t.Errorf("no %q in\n%s", part, v.Body)
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

// News returns an email of a list.
func News(sendAt *time.Time) api.SubmitRequest {
	return api.SubmitRequest{
		ListID: "news", Lane: api.Bulk, SendAt: sendAt, Subject: "News",
		HTML:   `<p>News. <a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>`,
		Render: &api.Render{}, To: api.Addresses{{Address: "ann@example.net"}},
	}
}

// Header returns a field of an email.
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
	var headers []string
	if form != "" {
		headers = []string{"Content-Type", "application/x-www-form-urlencoded"}
	}
	v := answered(t, http.DefaultClient, method, a.URL()+strings.TrimPrefix(link, "https://mail.example.com"),
		form, headers...)
	return v.Status, v.Body
}

func To(name string) api.Addresses { return api.Addresses{{Address: name + "@example.net"}} }
