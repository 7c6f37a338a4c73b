package server

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// recipients is a server with a real suppression list behind its public pages, and a browser that follows no
// redirect.
type recipients struct {
	*world
	t     *testing.T
	store *suppression.Store
	ring  *signedtoken.Ring
	told  []outbox.Fact
	who   unsubscribe.Sender
	http  *http.Client
	away  error // the error of Redis
}

// Append keeps what is put into the inbox.
func (r *recipients) Append(_ context.Context, facts []outbox.Fact) error {
	r.told = append(r.told, facts...)
	return nil
}

// Get returns the sender of all mail.
func (r *recipients) Get(context.Context, string) (api.AccountInfo, error) {
	return api.AccountInfo{Account: api.Account{Name: r.who.Name, Email: r.who.Address, Locale: r.who.Locale}},
		nil
}

func setupRecipients(t *testing.T, change ...func(*Options)) *recipients {
	t.Helper()
	r := &recipients{t: t, who: unsubscribe.Sender{Name: "Example Shop", Address: "shop@example.com"}}
	var err error
	if r.ring, err = signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("0123456789abcdef0123456789abcdef"))}); err != nil {
		t.Fatal(err)
	}
	p := newParts(t)
	r.store = p.Suppressions
	p.db.Client().AddHook(failing{func() error { return r.away }})
	requests, err := unsubscribe.New(unsubscribe.Parts{Tokens: r.ring, Suppressions: r.store, Append: r.Append,
		Account: r.Get}, unsubscribe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Listen: "127.0.0.1:0"}
	for _, c := range change {
		c(&o)
	}
	p.Unsubscribe = requests
	r.world = p.serve(t, o)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return r
}

const mailID = "01JGJ3V8ZG0000000000000000"

func (r *recipients) token(list, address string) string {
	r.t.Helper()
	token, err := r.ring.Sign(signedtoken.Unsubscribe, signedtoken.Token{Account: "shop", MessageID: mailID,
		List: list, Address: address})
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

// seen is an answer to a recipient.
type seen struct {
	status int
	header http.Header
	body   string
}

func (r *recipients) send(method, path, media string, body io.Reader, headers ...string) seen {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL()+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(resp.Header["Set-Cookie"]) > 0 || resp.Header.Get("Location") != "" {
		r.t.Errorf("%s %s sets a cookie or leads elsewhere: %v", method, path, resp.Header)
	}
	return seen{resp.StatusCode, resp.Header, string(text)}
}

func (r *recipients) get(path string, headers ...string) seen {
	r.t.Helper()
	return r.send(http.MethodGet, path, "", nil, headers...)
}

func (r *recipients) post(path string, form url.Values) seen {
	r.t.Helper()
	return r.send(http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// press sends the form of a page whose button has an action, about what is left.
func (r *recipients) press(page seen, action string) seen {
	r.t.Helper()
	for _, form := range regexp.MustCompile(
		`(?s)<form method="post" action="(\w+)">.*?</form>`).FindAllStringSubmatch(page.body, -1) {
		if !strings.Contains(form[0], `value="`+action+`"`) {
			continue
		}
		values := url.Values{"action": {action}}
		for _, f := range regexp.MustCompile(
			`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(form[0], -1) {
			values.Set(f[1], f[2])
		}
		return r.post("/"+form[1], values)
	}
	r.t.Fatalf("no button says %s:\n%s", action, page.body)
	return seen{}
}

// stopped is whether the next look of a delivery finds mail to the address stopped.
func (r *recipients) stopped(list, address string) bool {
	r.t.Helper()
	found, err := r.store.Check(r.t.Context(), suppression.Question{Account: "shop", List: list, Bulk: true,
		Addresses: []string{address}})
	if err != nil {
		r.t.Fatal(err)
	}
	return found[0] != nil
}

const oneClickForm = "List-Unsubscribe=One-Click"
