package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/access"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("message/rfc822", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	os.Exit(testredis.Main(m))
}

// world is a server and what it answers from.
type world struct {
	*Server
	parts  *parts
	client *api.Client // with the admin token
	http   *http.Client
	fake   *testapi.Server // gateway gw1's; nil if it is not needed yet
}

// Tokens of the world, by what they may do.
const (
	adminToken = "admin-token"
	boundToken = "bound-token" // api, of account acme
)

func setup(t *testing.T, change ...func(*Options)) *world {
	t.Helper()
	o := Options{Listen: "127.0.0.1:0", Version: "1.2.3"}
	for _, c := range change {
		c(&o)
	}
	return newParts(t).serve(t, o)
}

// serve runs a server for the time of a test.
func (p *parts) serve(t *testing.T, o Options) *world {
	t.Helper()
	s, err := New(p.Parts, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: s, parts: p, http: &http.Client{
		Transport:     newChecked(t, s),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	w.client = api.NewClient(s.URL(), adminToken, w.http)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		w.http.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return w
}

// as is a client with another token.
func (w *world) as(token string) *api.Client {
	return api.NewClient(w.URL(), w.parts.secret(token), w.http)
}

// reply is a raw answer.
type reply struct {
	status  int
	header  http.Header
	body    string
	problem api.Problem // a refusal's
}

// do makes a request as no client of ours would. The token "" presents none; a body is JSON.
func (w *world) do(t *testing.T, method, path, token, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if cookie := w.parts.cookies[token]; cookie != "" {
		req.Header.Set("Cookie", access.SessionCookie(false)+"="+cookie)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	} else if token != "" {
		req.Header.Set("Authorization", "Bearer "+w.parts.secret(token))
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{status: resp.StatusCode, header: resp.Header, body: string(text)}
	// net/http itself writes it
	if r.status >= 400 && r.status != http.StatusRequestHeaderFieldsTooLarge && !forPeople(path) {
		if err := json.Unmarshal(text, &r.problem); err != nil {
			t.Errorf("%s %s: a refusal that is no problem: %d %s", method, path, r.status, text)
		}
	}
	return r
}

// forPeople reports whether a path is a page's, whose refusals are pages too.
func forPeople(path string) bool {
	return strings.HasPrefix(path, "/unsubscribe") || strings.HasPrefix(path, "/preferences") ||
		path == "/sender" || strings.HasPrefix(path, "/sender?") || strings.HasPrefix(path, "/subscribers") ||
		strings.HasPrefix(path, "/archive")
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
