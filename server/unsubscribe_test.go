package server

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

// TestOneClick is RFC 8058 section 3.2, with both encodings. The answer is the same to the first request and
// to all later ones, and when it has come the next look of a delivery stops the mail.
func TestOneClick(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	form := new(bytes.Buffer)
	w := multipart.NewWriter(form)
	if err := w.WriteField("List-Unsubscribe", "One-Click"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ media, body string }{
		"urlencoded": {"application/x-www-form-urlencoded", oneClickForm}, "multipart": {w.FormDataContentType(),
			form.String()},
		"with a charset": {"application/x-www-form-urlencoded; charset=UTF-8", oneClickForm + "\r\n"},
	} {
		address := strings.ReplaceAll(name, " ", "") + "@example.net"
		path := "/unsubscribe?t=" + r.token("news.example.com", address)
		if r.stopped("news.example.com", address) {
			t.Fatalf("%s: stopped from the start", name)
		}
		for range 3 {
			got := r.send("POST", path, c.media, strings.NewReader(c.body))
			if got.status != 200 || got.body != "Unsubscribed\n" ||
				got.header.Get("Content-Type") != "text/plain; charset=UTF-8" {
				t.Fatalf("%s: %d %q %v", name, got.status, got.body, got.header)
			}
			if !r.stopped("news.example.com", address) || r.stopped("", address) {
				t.Errorf("%s: answered, and yet not stopped, or everything is", name)
			}
		}
	}
	keys := map[string]event.Type{}
	for _, f := range r.told {
		keys[f.Key] = f.Type
		if f.Details.RemoteAddress != "127.0.0.0" || !strings.HasPrefix(f.Details.UserAgent, "Go-http-client") {
			t.Errorf("who asked: %+v", f.Details)
		}
		if f.Details.Reason != "one-click" || f.MessageID != mailID || f.Details.ListID != "news.example.com" {
			t.Errorf("told %+v", f)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d facts for three people: %v", len(keys), r.told)
	}
}

func TestOneClickIsRefused(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	good := "/unsubscribe?t=" + r.token("", "ann@example.net")
	const form = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		path, media, body string
		status            int
	}{
		"a bad token":         {"/unsubscribe?t=abc", form, oneClickForm, 404},
		"no token":            {"/unsubscribe", form, oneClickForm, 404},
		"a token cut off":     {good[:len(good)-1], form, oneClickForm, 404},
		"no body":             {good, form, "", 400},
		"another form":        {good, form, "a=b", 400},
		"json":                {good, "application/json", `{"List-Unsubscribe":"One-Click"}`, 400},
		"a broken multipart":  {good, "multipart/form-data; boundary=x", "--y\r\n", 400},
		"no boundary":         {good, "multipart/form-data", oneClickForm, 400},
		"more than a few KB":  {good, form, oneClickForm + "&x=" + strings.Repeat("x", requestBody), 413},
		"the form's own body": {"/unsubscribe", form, "t=forged&action=unsubscribe", 404},
	} {
		if got := r.send("POST", c.path, c.media, strings.NewReader(c.body)); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
		}
	}
	if r.stopped("", "ann@example.net") || len(r.told) > 0 {
		t.Error("one of them unsubscribed somebody")
	}
}

// TestScannersUnsubscribeNobody: gateways, previews and prefetching browsers follow every link of an email,
// some of them also every link of what they find there, with GET and HEAD.
func TestScannersUnsubscribeNobody(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	token := r.token("news.example.com", "ann@example.net")
	links, seen := []string{"/unsubscribe?t=" + token, "/preferences?t=" + token}, map[string]bool{}
	for len(links) > 0 {
		link := links[0]
		if links = links[1:]; seen[link] {
			continue
		}
		seen[link] = true
		for range 3 {
			if got := r.send("HEAD", link, "", nil); got.status != 200 {
				t.Errorf("HEAD %s: %d", link, got.status)
			}
			page := r.get(link, "User-Agent", "Mozilla/5.0 (compatible; SafeLinks)", "Purpose", "prefetch")
			if page.status != 200 {
				t.Errorf("GET %s: %d", link, page.status)
			}
			for _, found := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page.body,
				-1) {
				next := "/" + found[1]
				if !strings.Contains(next, "?") {
					next += "?t=" + token // a form whose fields became a query
				}
				links = append(links, next, next+"&action=unsubscribe&from=all&List-Unsubscribe=One-Click")
			}
		}
	}
	if len(seen) < 3 || r.stopped("news.example.com", "ann@example.net") || len(r.told) > 0 {
		t.Errorf("after %d links: told %v", len(seen), r.told)
	}
}

func TestSettingLetsLinksUnsubscribe(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t, func(o *Options) { o.GetUnsubscribes = true })
	link := "/unsubscribe?t=" + r.token("", "ann@example.net")
	if got := r.send("HEAD", link, "", nil); got.status != 200 || r.stopped("", "ann@example.net") {
		t.Errorf("HEAD: %d, or it unsubscribes", got.status)
	}
	page := r.get(link)
	if !strings.Contains(page.body, "You are unsubscribed") || !r.stopped("", "ann@example.net") ||
		r.told[0].Details.Reason != "link" {
		t.Errorf("told %v, page:\n%s", r.told, page.body)
	}
	if r.press(page, actionResubscribe); r.stopped("", "ann@example.net") {
		t.Error("it can't be undone")
	}
}

// TestNoSuccessWithoutTheWrite: while Redis is away, the answer to programs and people is that nothing was
// done, and to come again.
func TestNoSuccessWithoutTheWrite(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	token := r.token("", "ann@example.net")
	page := r.get("/unsubscribe?t=" + token)
	r.away = fault.New(fault.Unavailable, "RedisAway", "Redis is away")
	if got := r.send("POST", "/unsubscribe?t="+token, "application/x-www-form-urlencoded",
		strings.NewReader(oneClickForm)); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("one click: %d %s", got.status, got.body)
	}
	failed := r.press(page, actionUnsubscribe)
	if failed.status != 503 || !strings.Contains(failed.body, "That did not work") ||
		!strings.Contains(failed.body, "Try again") {
		t.Errorf("the page: %d\n%s", failed.status, failed.body)
	}
	if asked := r.get("/unsubscribe?t=" + token); asked.status != 200 ||
		!strings.Contains(asked.body, "<button") {
		t.Errorf("the page with the button: %d", asked.status)
	}
	if got := r.get("/preferences?t=" + token); got.status != 503 {
		t.Errorf("preferences: %d", got.status)
	}
}

// TestTokensStayOutOfLogs: a token lets anybody unsubscribe its owner.
func TestTokensStayOutOfLogs(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{"t=secret": "t=%2A%2A%2A", "t=secret&u=1": "t=%2A%2A%2A&u=1",
		"access_token=secret": "access_token=%2A%2A%2A", "page=1": "page=1"} {
		if got := maskQuery(raw); got != want {
			t.Errorf("%s is logged as %s, want %s", raw, got, want)
		}
	}
}

// FuzzUnsubscribeRequest: every form is answered, and without a token no one is unsubscribed.
func FuzzUnsubscribeRequest(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", oneClickForm)
	f.Add("multipart/form-data; boundary=x",
		"--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n")
	f.Add("multipart/form-data; boundary=x",
		"--x\r\nContent-Disposition: form-data; name=\"t\"; filename=\"f\"\r\n\r\n%%%\r\n--x--")
	f.Add("text/plain", "%zz=;&&=")
	p := newParts(f)
	s, err := New(p.Parts, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, media, body string) {
		for _, path := range []string{"/unsubscribe?t=x", "/preferences"} {
			req, err := http.NewRequest("POST", path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header["Content-Type"] = []string{media}
			w := &answered{header: http.Header{}}
			s.echo.ServeHTTP(w, req)
			if w.status < 400 || w.status > 499 {
				t.Fatalf("%s: %d %s", path, w.status, w.body.String())
			}
		}
	})
}

// answered keeps an answer.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answered) Header() http.Header { return a.header }
func (a *answered) WriteHeader(s int)   { a.status = s }
func (a *answered) Write(b []byte) (int, error) {
	return a.body.Write(b)
}
