package webhooks

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api/event"
)

func TestCheckURL(t *testing.T) {
	for _, row := range []struct{ name, url, want string }{
		{"https", "https://example.com/hook?a=b", ""},
		{"http on an odd port", "http://example.com:8123", ""},
		{"an address", "http://[::1]:80/", ""},
		{"empty", "", "must begin"},
		{"no scheme", "example.com/hook", "must begin"},
		{"another scheme", "gopher://example.com", "must begin"},
		{"a file", "file:///etc/passwd", "must begin"},
		{"no host", "https:///hook", "name a host"},
		{"only a port", "https://:443/", "name a host"},
		{"user", "https://user@example.com/", "user or password"},
		{"password", "https://user:pass@example.com/", "user or password"},
		{"fragment", "https://example.com/#x", "fragment"},
		{"line break", "https://example.com/\r\nX: y", "not a URL"},
		{"space in the host", "https://exa mple.com/", "not a URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := CheckURL(row.url)
			if row.want == "" && err != nil || row.want != "" &&
				(err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestRequestsHaveAValidTarget expects the query as RFC 3986, 3.4, allows it, in visible ASCII (RFC 9112, 3).
func TestRequestsHaveAValidTarget(t *testing.T) {
	t.Parallel()
	targets := make(chan string, 1)
	rc := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { targets <- r.RequestURI })
	b := setup(t)
	ep := b.endpoint(rc.URL + "/a b?q=x y&z=ü%zz%2F%&w={[\"<>\\^`|]}'?/:@")
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Fatalf("verdict %s\n%s", v, b.log)
	}
	const want = "/a%20b?q=x%20y&z=%C3%BC%25zz%2F%25&w=%7B%5B%22%3C%3E%5C%5E%60%7C%5D%7D'?/:@"
	if got := <-targets; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
