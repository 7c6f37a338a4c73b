package server

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestUnsubscribePage(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	page := r.get("/unsubscribe?t=" + r.token("news.example.com", "ann@example.net"))
	for _, want := range []string{`<html lang="en">`, "Unsubscribe from this list?", "a…@example.net",
		"news.example.com", "Example Shop (shop@example.com)", `name="viewport"`, "noindex"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page.body, "<button"); n != 1 || strings.Contains(page.body, "ann@") ||
		strings.Contains(page.body, "<script") {
		t.Errorf("%d buttons, or the address, or a script:\n%s", n, page.body)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow",
		"X-Frame-Options": "DENY", "Content-Type": "text/html; charset=UTF-8",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp,
		"default-src 'none'; style-src 'sha256-") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %s", csp)
	}
	left := r.press(page, actionUnsubscribe)
	if left.status != 200 || !strings.Contains(left.body, "You are unsubscribed") ||
		!r.stopped("news.example.com", "ann@example.net") || r.stopped("", "ann@example.net") {
		t.Errorf("left: %d\n%s", left.status, left.body)
	}
	if again := r.get("/unsubscribe?t=" + r.token("news.example.com", "ann@example.net")); !strings.Contains(
		again.body, "You are unsubscribed") {
		t.Errorf("coming again:\n%s", again.body)
	}
	back := r.press(left, actionResubscribe)
	if back.status != 200 || !strings.Contains(back.body, "You are subscribed again") ||
		r.stopped("news.example.com", "ann@example.net") {
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
	t.Parallel()
	r := setupRecipients(t)
	if _, err := r.store.Add(t.Context(), suppression.Entry{Address: "ann@example.net",
		Reason: suppression.HardBounce, Response: "550 secret evidence"}); err != nil {
		t.Fatal(err)
	}
	path := "/preferences?t=" + r.token("news.example.com", "ann@example.net")
	page := r.get(path)
	if strings.Count(page.body, "<button") != 2 || strings.Count(page.body, "You get this.") != 2 ||
		strings.Contains(page.body, "evidence") {
		t.Errorf("at first:\n%s", page.body)
	}
	values := func(action, from string) url.Values {
		return url.Values{"t": {r.token("news.example.com", "ann@example.net")}, "action": {action}, "from": {from}}
	}
	page = r.post("/preferences", values(actionUnsubscribe, "all"))
	if strings.Count(page.body, "<button") != 1 ||
		!strings.Contains(page.body, "from everything, and so from this") ||
		!strings.Contains(page.body, `role="status"`) {
		t.Errorf("without everything:\n%s", page.body)
	}
	r.post("/preferences", values(actionResubscribe, "all"))
	page = r.post("/preferences", values(actionUnsubscribe, "list"))
	if strings.Count(page.body, "You are unsubscribed.") != 1 || strings.Count(page.body, "You get this.") != 1 {
		t.Errorf("without the list:\n%s", page.body)
	}
	r.post("/preferences", values(actionResubscribe, "list"))
	left, err := r.store.Find(t.Context(), "ann@example.net")
	if err != nil || len(left) != 1 || left[0].Reason != suppression.HardBounce {
		t.Errorf("left: %+v, %v", left, err)
	}
	if got := r.get("/preferences?t=forged"); got.status != 404 ||
		!strings.Contains(got.body, "This link does not work") {
		t.Errorf("a forged link: %d", got.status)
	}
}

// TestAPreviewOpensNoPage: its links are refused at every door, and change nothing.
func TestAPreviewOpensNoPage(t *testing.T) {
	t.Parallel()
	for _, gets := range []bool{false, true} {
		r := setupRecipients(t, func(o *Options) { o.GetUnsubscribes = gets })
		token, err := r.ring.Sign(signedtoken.Preview, signedtoken.Token{MessageID: mailID})
		if err != nil {
			t.Fatal(err)
		}
		entry := suppression.Entry{Address: "ann@example.net", Reason: suppression.Unsubscribe, Account: "shop"}
		if _, err := r.store.Add(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
		back := url.Values{"t": {token}, "action": {actionResubscribe}, "from": {"all"}}
		for name, got := range map[string]seen{
			"page": r.get("/unsubscribe?t=" + token), "preferences": r.get("/preferences?t=" + token),
			"one click": r.post("/unsubscribe?t="+token, url.Values{"List-Unsubscribe": {"One-Click"}}),
			"return":    r.post("/unsubscribe", back), "preference": r.post("/preferences", back),
		} {
			if got.status != 403 || !strings.Contains(got.body, "preview") || strings.Contains(got.body, "<button") {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if left, err := r.store.Find(t.Context(), "ann@example.net"); err != nil || len(left) != 1 {
			t.Errorf("left: %+v, %v", left, err)
		}
	}
}

// TestAReturnIsOfItsLinkAlone: the link of one account's mail takes nothing back from another's list, nor of
// another recipient.
func TestAReturnIsOfItsLinkAlone(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	var others []suppression.Entry
	for _, e := range []suppression.Entry{{Account: "rival", List: "news", Address: "ann@example.net"},
		{Account: "rival", Address: "ann@example.net"}, {Account: "shop", List: "news", Address: "bob@example.net"},
		{Account: "shop", List: "offers", Address: "ann@example.net"}} {
		e.Reason = suppression.Unsubscribe
		others = append(others, e)
	}
	if _, err := r.store.Add(t.Context(), others...); err != nil {
		t.Fatal(err)
	}
	token := r.token("news", "ann@example.net")
	for _, from := range []string{"list", "all"} {
		got := r.post("/preferences", url.Values{"t": {token}, "action": {actionResubscribe}, "from": {from},
			"account": {"rival"}, "list": {"offers"}, "address": {"bob@example.net"}})
		if got.status != 200 || strings.Count(got.body, "You get this.") != 2 {
			t.Errorf("%s: %d %s", from, got.status, got.body)
		}
	}
	counts, err := r.store.CountOf(t.Context(), suppression.Filter{})
	if err != nil || int(counts) != len(others) {
		t.Errorf("%d entries are left, want %d, %v", counts, len(others), err)
	}
}

func TestPublicPagesSpeakTheLanguageOfTheirVisitor(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	for _, name := range []string{"unsubscribe_pages.go", "tracking.go", "sender_page.go",
		"public/unsubscribe.html", "subscribe_public.go", "subscribe_pages.go", "public/subscribe.html",
		"archive.go", "public/archive.html", "digest_form.go", "digest_page.go", "public/digests.html"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used += string(text)
	}
	for key := range p.words["en"] {
		if !strings.Contains(used, `"`+key+`"`) && !strings.Contains(used, ".W."+key) && key != actionUnsubscribe &&
			key != actionResubscribe {
			t.Errorf("no page says %s", key)
		}
	}
	if asked := slices.Sorted(slices.Values(audience.AskLanguages())); !slices.Equal(asked,
		slices.Sorted(slices.Values(p.tags))) {
		t.Errorf("mails ask in %v, pages are in %v", asked, p.tags)
	}
	if p.tags[0] != "en" {
		t.Errorf("the languages are %v", p.tags)
	}
}

// TestPublicPagesShowNothingAsMarkup: names and ids are what senders made of them.
func TestPublicPagesShowNothingAsMarkup(t *testing.T) {
	t.Parallel()
	r := setupRecipients(t)
	const evil = `"><script>alert(1)</script>`
	r.who = unsubscribe.Sender{Name: evil, Address: evil}
	for _, path := range []string{"/unsubscribe?t=", "/preferences?t="} {
		if page := r.get(path + r.token(evil, evil+"@example.net")); strings.Contains(page.body, "<script") {
			t.Errorf("%s:\n%s", path, page.body)
		}
		if page := r.get(path + url.QueryEscape(evil)); page.status != 404 ||
			strings.Contains(page.body, "<script") {
			t.Errorf("%s: %d\n%s", path, page.status, page.body)
		}
	}
}
