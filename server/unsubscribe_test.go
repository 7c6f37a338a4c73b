package server

import (
	"bytes"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/stamp"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/unsubscribe"
)

// nobodys knows no link.
type nobodys struct{ Unsubscribe }

func (nobodys) Read(string) (unsubscribe.Visit, error) {
	return unsubscribe.Visit{}, fault.New(fault.NotFound, "UnknownLink", "This link is not one of ours, or not whole")
}

// recipients is a server with a real suppression list behind its public pages, and a browser that follows no redirect.
type recipients struct {
	*world
	t     *testing.T
	store *suppression.Store
	ring  *stamp.Ring
	told  []outbox.Later
	who   unsubscribe.Sender
	http  *http.Client
	away  error // why the suppression list can't be asked
}

// list is the suppression list, as long as it is not away.
type list struct{ r *recipients }

func (l list) Add(ctx context.Context, entries ...suppression.Entry) (int, error) {
	if l.r.away != nil {
		return 0, l.r.away
	}
	return l.r.store.Add(ctx, entries...)
}

func (l list) Remove(ctx context.Context, e suppression.Entry) (bool, error) {
	if l.r.away != nil {
		return false, l.r.away
	}
	return l.r.store.Remove(ctx, e)
}

func (l list) Find(ctx context.Context, address string) ([]suppression.Entry, error) {
	if l.r.away != nil {
		return nil, l.r.away
	}
	return l.r.store.Find(ctx, address)
}

// Append implements unsubscribe.Inbox.
func (r *recipients) Append(_ context.Context, facts []outbox.Later) error {
	r.told = append(r.told, facts...)
	return nil
}

// Sender implements unsubscribe.Senders.
func (r *recipients) Sender(context.Context, string) (unsubscribe.Sender, error) { return r.who, nil }

func setupRecipients(t *testing.T, change ...func(*Options)) *recipients {
	t.Helper()
	r := &recipients{t: t, who: unsubscribe.Sender{Name: "Example Shop", Address: "shop@example.com"}}
	var err error
	if r.ring, err = stamp.New([]stamp.Key{stamp.KeyOf([]byte("0123456789abcdef0123456789abcdef"))}, stamp.Options{}); err != nil {
		t.Fatal(err)
	}
	if r.store, err = suppression.New(testredis.New(t), suppression.Options{}); err != nil {
		t.Fatal(err)
	}
	wishes, err := unsubscribe.New(unsubscribe.Parts{Tokens: r.ring, Suppressions: list{r}, Inbox: r, Senders: r}, unsubscribe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Listen: "127.0.0.1:0"}
	for _, c := range change {
		c(&o)
	}
	p := newParts()
	parts := p.parts()
	parts.Unsubscribe = wishes
	s, err := New(parts, o)
	if err != nil {
		t.Fatal(err)
	}
	r.world = newWorld(t, s)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r
}

const mailID = "01JGJ3V8ZG0000000000000000"

func (r *recipients) token(list, address string) string {
	r.t.Helper()
	token, err := r.ring.Token(stamp.Unsubscribe, stamp.Stamp{Account: "shop", MessageID: mailID, List: list, Address: address})
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
	for _, form := range regexp.MustCompile(`(?s)<form method="post" action="(\w+)">.*?</form>`).FindAllStringSubmatch(page.body, -1) {
		if !strings.Contains(form[0], `value="`+action+`"`) {
			continue
		}
		values := url.Values{"action": {action}}
		for _, f := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(form[0], -1) {
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
	found, err := r.store.Check(r.t.Context(), suppression.Question{Account: "shop", List: list, Bulk: true, Addresses: []string{address}})
	if err != nil {
		r.t.Fatal(err)
	}
	return found[0] != nil
}

const oneClickForm = "List-Unsubscribe=One-Click"

// TestOneClick is RFC 8058 section 3.2, with both encodings. The answer is the same to the first request and to every further one, and
// when it has come the next look of a delivery stops the mail.
func TestOneClick(t *testing.T) {
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
		"urlencoded": {"application/x-www-form-urlencoded", oneClickForm}, "multipart": {w.FormDataContentType(), form.String()},
		"with a charset": {"application/x-www-form-urlencoded; charset=UTF-8", oneClickForm + "\r\n"},
	} {
		address := strings.ReplaceAll(name, " ", "") + "@example.net"
		path := "/unsubscribe?t=" + r.token("news.example.com", address)
		if r.stopped("news.example.com", address) {
			t.Fatalf("%s: stopped from the start", name)
		}
		for range 3 {
			got := r.send("POST", path, c.media, strings.NewReader(c.body))
			if got.status != 200 || got.body != "Unsubscribed\n" || got.header.Get("Content-Type") != "text/plain; charset=UTF-8" {
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
		if f.Told.Reason != "one-click" || f.MessageID != mailID || f.Told.ListID != "news.example.com" {
			t.Errorf("told %+v", f)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d facts for three people: %v", len(keys), r.told)
	}
}

func TestOneClickIsRefused(t *testing.T) {
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
		"more than a few KB":  {good, form, oneClickForm + "&x=" + strings.Repeat("x", wishBody), 413},
		"the form's own body": {"/unsubscribe", form, "t=forged&action=leave", 404},
	} {
		if got := r.send("POST", c.path, c.media, strings.NewReader(c.body)); got.status != c.status {
			t.Errorf("%s: %d %s, want %d", name, got.status, got.body, c.status)
		}
	}
	if r.stopped("", "ann@example.net") || len(r.told) > 0 {
		t.Error("one of them unsubscribed somebody")
	}
}

// TestScannersUnsubscribeNobody: gateways, previews and prefetching browsers follow every link of a mail, some of them also every link of what
// they find there, with GET and HEAD.
func TestScannersUnsubscribeNobody(t *testing.T) {
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
			for _, found := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
				next := "/" + found[1]
				if !strings.Contains(next, "?") {
					next += "?t=" + token // a form whose fields became a query
				}
				links = append(links, next, next+"&action=leave&from=all&List-Unsubscribe=One-Click")
			}
		}
	}
	if len(seen) < 3 || r.stopped("news.example.com", "ann@example.net") || len(r.told) > 0 {
		t.Errorf("after %d links: told %v", len(seen), r.told)
	}
}

func TestSettingLetsLinksUnsubscribe(t *testing.T) {
	r := setupRecipients(t, func(o *Options) { o.GetUnsubscribes = true })
	link := "/unsubscribe?t=" + r.token("", "ann@example.net")
	if got := r.send("HEAD", link, "", nil); got.status != 200 || r.stopped("", "ann@example.net") {
		t.Errorf("HEAD: %d, or it unsubscribes", got.status)
	}
	page := r.get(link)
	if !strings.Contains(page.body, "You are unsubscribed") || !r.stopped("", "ann@example.net") || r.told[0].Told.Reason != "link" {
		t.Errorf("told %v, page:\n%s", r.told, page.body)
	}
	if r.press(page, "return"); r.stopped("", "ann@example.net") {
		t.Error("it can't be undone")
	}
}

func TestUnsubscribePage(t *testing.T) {
	r := setupRecipients(t)
	page := r.get("/unsubscribe?t=" + r.token("news.example.com", "ann@example.net"))
	for _, want := range []string{`<html lang="en">`, "Unsubscribe from this list?", "a…@example.net", "news.example.com", "Example Shop (shop@example.com)", `name="viewport"`, "noindex"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page.body, "<button"); n != 1 || strings.Contains(page.body, "ann@") || strings.Contains(page.body, "<script") {
		t.Errorf("%d buttons, or the address, or a script:\n%s", n, page.body)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow", "X-Frame-Options": "DENY", "Content-Type": "text/html; charset=UTF-8",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'; style-src 'sha256-") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %s", csp)
	}
	left := r.press(page, "leave")
	if left.status != 200 || !strings.Contains(left.body, "You are unsubscribed") || !r.stopped("news.example.com", "ann@example.net") || r.stopped("", "ann@example.net") {
		t.Errorf("left: %d\n%s", left.status, left.body)
	}
	if again := r.get("/unsubscribe?t=" + r.token("news.example.com", "ann@example.net")); !strings.Contains(again.body, "You are unsubscribed") {
		t.Errorf("coming again:\n%s", again.body)
	}
	back := r.press(left, "return")
	if back.status != 200 || !strings.Contains(back.body, "You are subscribed again") || r.stopped("news.example.com", "ann@example.net") {
		t.Errorf("back: %d\n%s", back.status, back.body)
	}
	var types []event.Type
	for _, f := range r.told {
		types = append(types, f.Type)
	}
	if diff := cmp.Diff([]event.Type{event.ListUnsubscribe, event.ListSubscribe}, types); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestPreferences(t *testing.T) {
	r := setupRecipients(t)
	if _, err := r.store.Add(t.Context(), suppression.Entry{Address: "ann@example.net", Reason: suppression.HardBounce, Response: "550 secret evidence"}); err != nil {
		t.Fatal(err)
	}
	path := "/preferences?t=" + r.token("news.example.com", "ann@example.net")
	page := r.get(path)
	if strings.Count(page.body, "<button") != 2 || strings.Count(page.body, "You get this.") != 2 || strings.Contains(page.body, "evidence") {
		t.Errorf("at first:\n%s", page.body)
	}
	values := func(action, from string) url.Values {
		return url.Values{"t": {r.token("news.example.com", "ann@example.net")}, "action": {action}, "from": {from}}
	}
	page = r.post("/preferences", values("leave", "all"))
	if strings.Count(page.body, "<button") != 1 || !strings.Contains(page.body, "from everything, and so from this") || !strings.Contains(page.body, `role="status"`) {
		t.Errorf("without everything:\n%s", page.body)
	}
	r.post("/preferences", values("return", "all"))
	page = r.post("/preferences", values("leave", "list"))
	if strings.Count(page.body, "You are unsubscribed.") != 1 || strings.Count(page.body, "You get this.") != 1 {
		t.Errorf("without the list:\n%s", page.body)
	}
	r.post("/preferences", values("return", "list"))
	left, err := r.store.Find(t.Context(), "ann@example.net")
	if err != nil || len(left) != 1 || left[0].Reason != suppression.HardBounce {
		t.Errorf("left: %+v, %v", left, err)
	}
	if got := r.get("/preferences?t=forged"); got.status != 404 || !strings.Contains(got.body, "This link does not work") {
		t.Errorf("a forged link: %d", got.status)
	}
}

func TestPublicPagesSpeakTheLanguageOfTheirVisitor(t *testing.T) {
	r := setupRecipients(t)
	path := "/unsubscribe?t=" + r.token("", "ann@example.net")
	for name, c := range map[string]struct{ header, ofMail, want string }{
		"German":               {"de-CH, de;q=0.9, en;q=0.5", "", "Von diesem Absender abmelden?"},
		"French":               {"fr", "en", "Se désabonner de cet expéditeur ?"},
		"none of ours":         {"tlh", "", "Unsubscribe from this sender?"},
		"none, a German mail":  {"", "de_AT", "Von diesem Absender abmelden?"},
		"nonsense":             {strings.Repeat("de-;q=,", 3000), "", "Unsubscribe from this sender?"},
		"English before other": {"en-GB, de;q=0.9", "de", "Unsubscribe from this sender?"},
	} {
		r.who.Locale = c.ofMail
		if got := r.get(path, "Accept-Language", c.header); !strings.Contains(got.body, c.want) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

// TestWordsAreWhole: every language has every text, and no text is left that no page uses.
func TestWordsAreWhole(t *testing.T) {
	p, err := newPublicPages()
	if err != nil {
		t.Fatal(err)
	}
	for tag, words := range p.words {
		for key := range p.words["en"] {
			if words[key] == "" {
				t.Errorf("%s lacks %s", tag, key)
			}
		}
		if len(words) != len(p.words["en"]) {
			t.Errorf("%s has %d texts, en %d", tag, len(words), len(p.words["en"]))
		}
	}
	used := ""
	for _, name := range []string{"unsubscribe_pages.go", "tracking.go", "public/unsubscribe.html"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used += string(text)
	}
	for key := range p.words["en"] {
		if !strings.Contains(used, `"`+key+`"`) && !strings.Contains(used, ".W."+key) && key != "leave" && key != "return" {
			t.Errorf("no page says %s", key)
		}
	}
	if p.tags[0] != "en" {
		t.Errorf("the languages are %v", p.tags)
	}
}

// TestNoSuccessWithoutTheWrite: while Redis is away, programs and people are told that nothing was done, and to come again.
func TestNoSuccessWithoutTheWrite(t *testing.T) {
	r := setupRecipients(t)
	token := r.token("", "ann@example.net")
	page := r.get("/unsubscribe?t=" + token)
	r.away = fault.New(fault.Unavailable, "RedisAway", "Redis is away")
	if got := r.send("POST", "/unsubscribe?t="+token, "application/x-www-form-urlencoded", strings.NewReader(oneClickForm)); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("one click: %d %s", got.status, got.body)
	}
	failed := r.press(page, "leave")
	if failed.status != 503 || !strings.Contains(failed.body, "That did not work") || !strings.Contains(failed.body, "Try again") {
		t.Errorf("the page: %d\n%s", failed.status, failed.body)
	}
	if asked := r.get("/unsubscribe?t=" + token); asked.status != 200 || !strings.Contains(asked.body, "<button") {
		t.Errorf("the page with the button: %d", asked.status)
	}
	if got := r.get("/preferences?t=" + token); got.status != 503 {
		t.Errorf("preferences: %d", got.status)
	}
}

// TestPublicPagesShowNothingAsMarkup: names and ids are what senders made of them.
func TestPublicPagesShowNothingAsMarkup(t *testing.T) {
	r := setupRecipients(t)
	const evil = `"><script>alert(1)</script>`
	r.who = unsubscribe.Sender{Name: evil, Address: evil}
	for _, path := range []string{"/unsubscribe?t=", "/preferences?t="} {
		if page := r.get(path + r.token(evil, evil+"@example.net")); strings.Contains(page.body, "<script") {
			t.Errorf("%s:\n%s", path, page.body)
		}
		if page := r.get(path + url.QueryEscape(evil)); page.status != 404 || strings.Contains(page.body, "<script") {
			t.Errorf("%s: %d\n%s", path, page.status, page.body)
		}
	}
}

// TestTokensStayOutOfLogs: a token lets anybody unsubscribe its owner.
func TestTokensStayOutOfLogs(t *testing.T) {
	for raw, want := range map[string]string{"t=secret": "t=%2A%2A%2A", "t=secret&u=1": "t=%2A%2A%2A&u=1", "access_token=secret": "access_token=%2A%2A%2A", "page=1": "page=1"} {
		if got := maskQuery(raw); got != want {
			t.Errorf("%s is logged as %s, want %s", raw, got, want)
		}
	}
}

// FuzzWish: whatever comes as a wish, it is answered in order, and nobody without a token is unsubscribed.
func FuzzWish(f *testing.F) {
	f.Add("application/x-www-form-urlencoded", oneClickForm)
	f.Add("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n")
	f.Add("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"t\"; filename=\"f\"\r\n\r\n%%%\r\n--x--")
	f.Add("text/plain", "%zz=;&&=")
	p := newParts()
	s, err := New(p.parts(), Options{Listen: "127.0.0.1:0"})
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
