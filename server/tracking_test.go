package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// hits is a server whose links and pictures are real, with an inbox that a test can fail.
type hits struct {
	*world
	ring *signedtoken.Ring
	run  func() // passes on the noted hits
	mu   sync.Mutex
	got  []outbox.Fact
	err  error

	blocked []string
}

// block replaces what links must not lead to.
func (h *hits) block(list ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.blocked = list
}

func (h *hits) Append(_ context.Context, facts []outbox.Fact) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, facts...)
	return h.err
}

func setupHits(t *testing.T) *hits {
	t.Helper()
	h := &hits{}
	var err error
	if h.ring, err = signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("0123456789abcdef0123456789abcdef"))}); err != nil {
		t.Fatal(err)
	}
	real, err := tracking.New(h.ring, h.Append, tracking.Options{Blocked: func() []string {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.blocked
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.run = func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := real.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	p := newParts(t)
	p.Tracking = real
	h.world = p.serve(t, Options{Listen: "127.0.0.1:0"})
	return h
}

func (h *hits) token(t *testing.T, p signedtoken.Purpose, target string) string {
	t.Helper()
	id, err := ulid.New(ulid.Timestamp(time.Now().Add(-time.Hour)), ulid.DefaultEntropy())
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.ring.Sign(p, signedtoken.Token{Account: "shop", MessageID: id.String(), URL: target})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// visit asks as a browser does, which is then not sent on.
func (w *world) visit(t *testing.T, method, path string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.URL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0")
	resp, err := w.http.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestThePictureOfAMail(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	good := h.token(t, signedtoken.Open, "")
	for _, path := range []string{"/o/" + good, "/o/" + good + "x", "/o/forged", "/track/open?mid=" + good,
		"/track/open?mid=forged", "/track/open"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body := h.visit(t, method, path)
			header := resp.Header
			if resp.StatusCode != 200 || header.Get("Content-Type") != "image/gif" ||
				header.Get("Content-Length") != "43" ||
				header.Get("Cache-Control") != "no-store, no-cache, must-revalidate, private, max-age=0" ||
				header.Get("Pragma") != "no-cache" ||
				header.Get("Expires") != "0" || header.Get("X-Robots-Tag") != "noindex" ||
				header.Get("Set-Cookie") != "" {
				t.Errorf("%s %s: %d %v", method, path, resp.StatusCode, header)
			}
			if method == http.MethodGet && (len(body) != 43 || !strings.HasPrefix(body, "GIF89a")) {
				t.Errorf("%s: %q", path, body)
			}
		}
	}
	h.run()
	if len(h.got) < 1 || len(h.got) > 2 { // two, if the clock went on to another second
		t.Errorf("told: %+v", h.got)
	}
}

func TestALinkOfAMail(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	const target = "https://shop.test/a?b=c&d=%C3%BC#e"
	good := h.token(t, signedtoken.Click, target)
	for _, path := range []string{"/c/" + good, "/track/click?mid=" + good + "&url=" + url.QueryEscape(target)} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body := h.visit(t, method, path)
			header := resp.Header
			if resp.StatusCode != 302 || header.Get("Location") != target ||
				header.Get("Cache-Control") != "no-store" || header.Get("X-Robots-Tag") != "noindex" ||
				header.Get("Referrer-Policy") != "no-referrer-when-downgrade" || header.Get("Set-Cookie") != "" ||
				body != "" {
				t.Errorf("%s %s: %d %v %q", method, path, resp.StatusCode, header, body)
			}
		}
	}
	h.run()
	if len(h.got) < 1 || len(h.got) > 2 || h.got[0].Details.URL != target || h.got[0].Details.Bot ||
		h.got[0].Details.RemoteAddress != "127.0.0.0" {
		t.Errorf("told: %+v", h.got)
	}
}

// TestSomeLinksAreNotFollowed: links that an operator blocked, immediately, and preview links.
func TestSomeLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	const target = "https://shop.test/"
	click, preview := h.token(t, signedtoken.Click, target), h.token(t, signedtoken.Preview, "")
	h.block("shop.test")
	for _, token := range []string{click, preview} {
		status, text := http.StatusGone, "switched off"
		if token == preview {
			status, text = http.StatusForbidden, "preview"
		}
		long := "/track/click?mid=" + token + "&url=" + url.QueryEscape(target)
		for _, path := range []string{"/c/" + token, long} {
			resp, body := h.visit(t, http.MethodGet, path)
			if resp.StatusCode != status || resp.Header.Get("Location") != "" || !strings.Contains(body, text) ||
				strings.Contains(body, "shop.test") {
				t.Errorf("%s: %d %v %s", path, resp.StatusCode, resp.Header, body)
			}
		}
	}
	if resp, body := h.visit(t, http.MethodGet, "/o/"+preview); resp.StatusCode != 200 || len(body) != 43 {
		t.Errorf("the picture of a preview: %d", resp.StatusCode)
	}
	h.run()
	if len(h.got) > 0 {
		t.Errorf("told: %+v", h.got)
	}
	h.block()
	if resp, _ := h.visit(t, http.MethodGet, "/c/"+click); resp.StatusCode != http.StatusFound {
		t.Errorf("no longer blocked: %d", resp.StatusCode)
	}
}

// TestNoOpenRedirect: with another target than the email's, the answer is a page without Location.
func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	const target = "https://shop.test/"
	good := h.token(t, signedtoken.Click, target)
	paths := []string{
		"/c/", "/c/" + good + "x", "/c/" + good[:20], "/c/" + h.token(t, signedtoken.Open, ""),
		"/c/" + url.PathEscape("https://evil.test/"), "/c//evil.test/",
		"/c/" + h.token(t, signedtoken.Click, "javascript:alert(1)"), "/c/" + h.token(t, signedtoken.Click,
			"//evil.test"), "/c/" + h.token(t, signedtoken.Click, "https://a@evil.test"),
		"/c/" + h.token(t, signedtoken.Click, "https://x.test/\r\nSet-Cookie: a=b"), "/c/x?token=" + good,
		"/c/x?mid=" + good, "/track/click", "/track/click?mid=" + good,
		"/track/click?url=https://evil.test/", "/track/click?mid=&url=https://evil.test/",
	}
	for _, other := range []string{
		"https://evil.test/", "https://shop.test", "https://shop.test/x", "https://shop.test//",
		"HTTPS://shop.test/", "https://shop.test/ ", " https://shop.test/",
		"https://shop.test@evil.test/", "//evil.test/", `\\evil.test/`, "/evil", "javascript:alert(1)",
		"https://shop.test/\r\nSet-Cookie: a=b", "https%3A%2F%2Fshop.test%2F",
	} {
		paths = append(paths, "/track/click?mid="+good+"&url="+url.QueryEscape(other))
	}
	paths = append(paths, "/track/click?mid="+good+"&url=https://evil.test/&url="+url.QueryEscape(target))
	for _, path := range paths {
		resp, body := h.visit(t, http.MethodGet, path)
		if resp.StatusCode != 404 || resp.Header.Get("Location") != "" || resp.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
		if strings.Contains(body, "evil") || strings.Contains(body, "javascript") {
			t.Errorf("%s: the page repeats what was asked: %s", path, body)
		}
	}
	h.run()
	if len(h.got) != 0 {
		t.Errorf("told: %+v", h.got)
	}
}

// TestLinksWorkWhileNothingElseDoes: not the parts, and not the inbox.
func TestLinksWorkWhileNothingElseDoes(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	h.err = errors.New("away")
	if resp, _ := h.visit(t, http.MethodGet, "/c/"+h.token(t, signedtoken.Click,
		"https://shop.test/")); resp.StatusCode != 302 {
		t.Errorf("%d", resp.StatusCode)
	}
	if resp, _ := h.visit(t, http.MethodGet, "/o/"+h.token(t, signedtoken.Open, "")); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
}

func TestHitsNeedNoToken(t *testing.T) {
	t.Parallel()
	h := setupHits(t)
	const target = "https://x.test/"
	click := h.token(t, signedtoken.Click, target)
	for path, want := range map[string]int{
		"/o/" + h.token(t, signedtoken.Open, "") + "?access_token=nonsense": http.StatusOK,
		"/track/click?mid=" + click + "&url=" + url.QueryEscape(target):     http.StatusFound,
		"/c/" + click: http.StatusFound,
	} {
		if resp, _ := h.visit(t, http.MethodGet, path); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		if resp, _ := h.visit(t, method, "/c/"+click); resp.StatusCode != 405 {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
	h.run()
	if len(h.got) < 2 || len(h.got) > 3 { // three, if the clock went on to another second between the clicks
		t.Errorf("told: %+v", h.got)
	}
}
