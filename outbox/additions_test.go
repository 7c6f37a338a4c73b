package outbox

import (
	"bytes"
	"context"
	"errors"
	stdhtml "html"
	"io"
	"net/mail"
	"regexp"
	"strings"
	"testing"

	gomail "github.com/emersion/go-message/mail"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/smtpsend"
)

func testStamps(t testing.TB) *signedtoken.Ring {
	t.Helper()
	ring, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf(bytes.Repeat([]byte{7}, 32))})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func setupMarked(t *testing.T, o Options) *bundle {
	t.Helper()
	if o.ServiceURL == nil {
		o.ServiceURL = func() string { return "https://p.test/base/" }
	}
	b := setupOn(t, spread(t), o)
	b.store.Tokens = testStamps(t)
	return b
}

// readMail takes a message apart.
func readMail(t *testing.T, raw []byte) (header mail.Header, html, text string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gomail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return m.Header, html, text
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(p.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			html = string(body)
		} else {
			text = string(body)
		}
	}
}

var href = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

func TestTrackedMail(t *testing.T) {
	t.Parallel()
	b := setupMarked(t, Options{})
	yes := true
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{
		To: for1("ann@x.test"), HTML: `<html><body><a href="https://shop.test/?a=1&amp;b=2">Shop</a> <a href="mailto:x@x.test">Write</a></body></html>`,
		TrackOpens: &yes, TrackClicks: &yes,
	})
	if err != nil {
		t.Fatal(err)
	}
	shown, sent := mustContent(t, b, a.QueueID), b.sent(t, a.QueueID)
	onlyPreviews(t, b, shown)
	_, html, text := readMail(t, sent)
	if !strings.Contains(text, "https://shop.test/?a=1&b=2") || strings.Contains(text, "//p.test") {
		t.Errorf("the text leads over Postroom: %s", text)
	}
	urls := href.FindAllStringSubmatch(html, -1)
	if len(urls) != 3 {
		t.Fatalf("html: %s", html)
	}
	click, err := b.store.Tokens.Read(signedtoken.Click, strings.TrimPrefix(urls[0][1],
		"https://p.test/base/c/"))
	if want := (signedtoken.Token{Account: "default", MessageID: a.QueueID,
		URL: "https://shop.test/?a=1&b=2"}); err != nil || click != want {
		t.Errorf("the link stands for %+v, %v", click, err)
	}
	if urls[1][1] != "mailto:x@x.test" {
		t.Errorf("the address became %s", urls[1][1])
	}
	open, err := b.store.Tokens.Read(signedtoken.Open, strings.TrimPrefix(urls[2][1], "https://p.test/base/o/"))
	if want := (signedtoken.Token{Account: "default", MessageID: a.QueueID}); err != nil || open != want {
		t.Errorf("the picture stands for %+v, %v", open, err)
	}
}

// sent delivers a message, and returns what the relay got.
func (b *bundle) sent(t *testing.T, id string) (raw []byte) {
	t.Helper()
	b.sender.got = func(m smtpsend.Message) {
		r, err := m.Body.Open(t.Context())
		if err == nil {
			raw, err = io.ReadAll(r)
		}
		if err != nil || int64(len(raw)) != m.Body.Size() {
			t.Errorf("%d octets, %v", len(raw), err)
		}
	}
	b.deliver(t, id)
	return raw
}

// onlyPreviews wants a message to have links of Postroom, and each to be of a preview.
func onlyPreviews(t *testing.T, b *bundle, raw []byte) {
	t.Helper()
	header, html, _ := readMail(t, raw)
	found := regexp.MustCompile(`/base/(?:o/|c/|unsubscribe\?t=|preferences\?t=)([\w-]+)`).FindAllStringSubmatch(
		header.Get("List-Unsubscribe")+stdhtml.UnescapeString(html), -1)
	if len(found) == 0 {
		t.Errorf("there is no link: %s", raw)
	}
	for _, link := range found {
		for _, p := range []signedtoken.Purpose{signedtoken.Open, signedtoken.Click, signedtoken.Unsubscribe} {
			if s, err := b.store.Tokens.Read(p, link[1]); !errors.Is(err, signedtoken.ErrPreview) {
				t.Errorf("%s stands for %+v, %v", link[0], s, err)
			}
		}
	}
}

// TestADryRunProvesNothing: neither its links nor its Message-ID, whatever it is made of.
func TestADryRunProvesNothing(t *testing.T) {
	t.Parallel()
	yes := true
	for name, req := range map[string]api.SubmitRequest{
		"html":     {To: for1("ann@x.test"), HTML: `<a href="https://shop.test/">Shop</a>`},
		"raw":      {Raw: []byte(rawHTML)},
		"template": {To: for1("ann@x.test"), Template: "foot"},
		"merge": {Template: "foot",
			MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "ann@x.test"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupMarked(t, Options{})
			b.store.Templates = listTemplates{}
			req.DryRun, req.ListID, req.TrackOpens, req.TrackClicks = true, "news", &yes, &yes
			a, err := b.Intake.Submit(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			shown := a.Preview
			if len(a.MailMerge) > 0 {
				shown, a.MessageID = a.MailMerge[0].Preview, a.MailMerge[0].MessageID
			}
			onlyPreviews(t, b, shown)
			if s, err := b.store.Tokens.ReadProof(strings.TrimPrefix(a.MessageID, "<")); err == nil {
				t.Errorf("its Message-ID %s proves %+v", a.MessageID, s)
			}
		})
	}
}

const rawHTML = "From: a@x.test\r\nTo: b@x.test\r\nContent-Type: text/html\r\n\r\n<a href=\"https://shop.test/\">Shop</a>"

// TestRawMailOfAList shows that a raw message is sent with what its list adds, whether or not it is large.
func TestRawMailOfAList(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 400 << 10} {
		b := setupMarked(t, Options{})
		yes := true
		a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{
			Raw: append([]byte(rawHTML), strings.Repeat("<p>x</p>\r\n", size/10)...), ListID: "news",
			TrackClicks: &yes})
		if err != nil {
			t.Fatal(err)
		}
		onlyPreviews(t, b, mustContent(t, b, a.QueueID))
		header, html, _ := readMail(t, b.sent(t, a.QueueID))
		if header.Get("List-ID") != "<news.x.test>" || header.Get("List-Unsubscribe") == "" ||
			!strings.Contains(html, "https://p.test/base/c/") {
			t.Errorf("sent as %v, %.300s", header, html)
		}
	}
}

func TestWhatIsTrackedByDefault(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for name, c := range map[string]struct {
		track   func() (bool, bool)
		base    string
		req     api.SubmitRequest
		opens   bool
		clicks  bool
		refused string
	}{
		"nothing says so": {},
		"the settings": {track: func() (bool, bool) { return true, true }, opens: true,
			clicks: true},
		"the message knows better": {track: func() (bool, bool) { return true, true }, req: api.SubmitRequest{
			TrackClicks: &no}, opens: true},
		"the account of the message": {req: api.SubmitRequest{Account: "tracked"}, opens: true},
		"both at once":               {req: api.SubmitRequest{TrackingEnabled: &yes}, opens: true, clicks: true},
		"one of them goes first": {req: api.SubmitRequest{TrackingEnabled: &yes, TrackOpens: &no},
			clicks: true},
		"settings, and no address": {track: func() (bool, bool) { return true, true }, base: "-"},
		"a message, and no address": {req: api.SubmitRequest{TrackOpens: &yes}, base: "-",
			refused: "trackOpens"},
		"a message with its own": {req: api.SubmitRequest{TrackOpens: &yes, BaseURL: "http://other.test"},
			base: "-", opens: true},
		"an address that is none": {req: api.SubmitRequest{BaseURL: "ftp://other.test"}, refused: "baseUrl"},
		"an address with a query": {req: api.SubmitRequest{BaseURL: "https://other.test/?x"},
			refused: "baseUrl"},
		"raw": {track: func() (bool, bool) { return true, true }, req: api.SubmitRequest{
			Raw: []byte(rawHTML)}, opens: true, clicks: true},
		"raw, by its header": {
			req: api.SubmitRequest{Raw: []byte("X-EE-Tracking-Enabled: yes\r\n" + rawHTML)}, opens: true,
			clicks: true},
		"raw, and no address": {track: func() (bool, bool) { return true, true }, base: "-",
			req: api.SubmitRequest{Raw: []byte(rawHTML)}},
		"text has nothing to track in": {req: api.SubmitRequest{TrackOpens: &yes, Text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Track: c.track}
			if c.base == "-" {
				o.ServiceURL = func() string { return "" }
			}
			b := setupMarked(t, o)
			if len(c.req.Raw) == 0 {
				c.req.To = for1("ann@x.test")
				if c.req.Text == "" {
					c.req.HTML = `<a href="https://shop.test/">Shop</a>`
				}
			}
			a, err := b.Intake.Submit(t.Context(), c.req)
			if c.refused != "" {
				f, _ := err.(*fault.Error)
				if f == nil || len(f.Fields) != 1 || f.Fields[0].Key != c.refused {
					t.Errorf("%v, want a fault of %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, html, _ := readMail(t, mustContent(t, b, a.QueueID))
			if opens, clicks := strings.Contains(html, "/o/"), strings.Contains(html, "/c/"); opens != c.opens ||
				clicks != c.clicks {
				t.Errorf("opens %t, clicks %t: %s", opens, clicks, html)
			}
		})
	}
}

func TestMailOfAList(t *testing.T) {
	t.Parallel()
	b := setupMarked(t, Options{})
	b.store.Templates = listTemplates{}
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{ListID: "news", Template: "list",
		MailMerge: []api.MailMergeEntry{
			{To: api.Address{Address: "ann@x.test"}}, {To: api.Address{Address: "bob@x.test"}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, who := range []string{"ann@x.test", "bob@x.test"} {
		header, html, _ := readMail(t, b.sent(t, a.MailMerge[i].QueueID))
		if id := header.Get("List-ID"); id != "<news.example.com>" {
			t.Errorf("List-ID %q", id)
		}
		if post := header.Get("List-Unsubscribe-Post"); post != "List-Unsubscribe=One-Click" {
			t.Errorf("List-Unsubscribe-Post %q", post)
		}
		link := strings.Trim(header.Get("List-Unsubscribe"), "<>")
		s, err := b.store.Tokens.Read(signedtoken.Unsubscribe,
			strings.TrimPrefix(link, "https://p.test/base/unsubscribe?t="))
		if want := (signedtoken.Token{Account: "default", MessageID: a.MailMerge[i].QueueID, List: "news",
			Address: who}); err != nil || s != want {
			t.Errorf("the link %s stands for %+v, %v", link, s, err)
		}
		if strings.Contains(link, "ann") || seen[link] {
			t.Errorf("the link %s tells whose it is, or is another's", link)
		}
		seen[link] = true
		html = stdhtml.UnescapeString(html)
		if !strings.Contains(html, `href="`+link+`"`) ||
			!strings.Contains(html, "https://p.test/base/preferences?t=") {
			t.Errorf("the template does not lead there: %s", html)
		}
	}
}

// listTemplates has a template with the links of a newsletter's foot.
type listTemplates struct{ scriptedTemplates }

func (listTemplates) Template(ctx context.Context, account, id, locale string) (templates.Template, error) {
	t, err := scriptedTemplates{}.Template(ctx, account, "welcome", locale)
	t.Source.HTML = `<a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a> <a href="{{rcpt.preferencesUrl}}">Preferences</a>`
	return t, err
}

func TestListsThatCannotBe(t *testing.T) {
	t.Parallel()
	b, lost := setupMarked(t, Options{}), setupMarked(t, Options{ServiceURL: func() string { return "" }})
	both := api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}
	for name, c := range map[string]struct {
		b    *bundle
		req  api.SubmitRequest
		keys string
	}{
		"no name":           {b, api.SubmitRequest{To: for1("ann@x.test"), ListID: "the news"}, "listId"},
		"two recipients":    {b, api.SubmitRequest{To: both, ListID: "news"}, "listId"},
		"no public address": {lost, api.SubmitRequest{To: for1("ann@x.test"), ListID: "news"}, "listId"},
		"its own header too": {b, api.SubmitRequest{To: for1("ann@x.test"), ListID: "news",
			Headers: api.Headers{"list-unsubscribe": {"<https://x.test>"}}}, "headers.list-unsubscribe"},
		"raw to two": {b, api.SubmitRequest{
			Raw: []byte("From: a@x.test\r\nTo: b@x.test, c@x.test\r\n\r\nx"), ListID: "news"}, "listId"},
	} {
		if len(c.req.Raw) == 0 {
			c.req.Text = "x"
		}
		_, err := c.b.Intake.Submit(t.Context(), c.req)
		f, _ := err.(*fault.Error)
		if f == nil || f.Kind != fault.Invalid || len(f.Fields) != 1 || f.Fields[0].Key != c.keys {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReturnPaths(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  api.SubmitRequest
		want string // "": one of ours, for one recipient; "whole": for the message
	}{
		"the account's own address": {req: api.SubmitRequest{To: for1("ann@x.test"), Text: "x"}},
		"two recipients": {req: api.SubmitRequest{
			To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}, Text: "x"}},
		"too many recipients": {
			api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"},
				{Address: "eve@x.test"}}, Text: "x"},
			"whole"},
		"another author": {req: api.SubmitRequest{From: &api.Address{Address: "Boss@example.com"},
			To: for1("ann@x.test"), Text: "x"}},
		"one that was asked for": {api.SubmitRequest{To: for1("ann@x.test"), Envelope: &api.Envelope{
			From: "returns@x.test"}, Text: "x"}, "returns@x.test"},
		"none": {api.SubmitRequest{To: for1("ann@x.test"), Envelope: &api.Envelope{},
			Text: "x"}, "<>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupMarked(t, Options{BounceDomain: "bounce.test", OwnReturnPaths: 2})
			from := "?"
			b.sender.got = func(m smtpsend.Message) {
				if from = m.From; m.ReturnPath != nil {
					from = m.ReturnPath("ann@x.test")
				}
			}
			a, err := b.Intake.Submit(t.Context(), c.req)
			if err != nil {
				t.Fatal(err)
			}
			b.deliver(t, a.QueueID)
			s, err := b.store.Tokens.ReadReturnPath(from)
			switch c.want {
			case "", "whole":
				if err != nil || s.MessageID != a.QueueID || !s.Of("default") || s.Whole != (c.want != "") ||
					s.To("ann@x.test") == s.Whole || !strings.HasSuffix(from, "@bounce.test") {
					t.Errorf("%s stands for %+v, %v", from, s, err)
				}
			default:
				if "<"+from+">" != c.want && from != c.want {
					t.Errorf("sent from %q", from)
				}
			}
		})
	}
}
