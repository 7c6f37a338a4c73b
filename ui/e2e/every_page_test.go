package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/ui"
)

// everyPage are addresses of all pages that an operator has, with variables of the story.
var everyPage = strings.Fields(`/ /?days=7 /playbooks
	/outbox /outbox?state=failed /log /search?q=order /to/ann@example.net /to/rcpt-550@example.net
	/cancel?account=shop /replay /replay?account=shop /queues /status
	/messages/{sent} /messages/{dead} /messages/{letter} /messages/{letter}?view=html&width=phone
	/messages/{letter}?view=text /messages/{letter}?view=source /messages/{letter}?view=headers
	/messages/{letter}?view=attachments
	/templates /templates/new /templates/welcome /templates/welcome/edit
	/templates/welcome/compare?from=1&to=2
	/suppressions /suppressions?q=old@example.net /suppressions/imports/{suppressionImport} /rates
	/accounts /accounts/new /accounts/shop /accounts/shop/dns /accounts/shop/edit /accounts/default
	/gateways /gateways/new /gateways/main
	/webhooks /webhooks/new /webhooks/{endpoint} /webhooks/{endpoint}/edit
	/webhooks/{endpoint}/deliveries/{delivery}
	/lists /lists/weekly /lists/weekly/form /segments /segments/large
	/audience?account=shop /audience/shop/{subscriber} /imports?account=shop /imports/shop/{subscriberImport}
	/erasures/{erasure}
	/campaigns /campaigns/new /campaigns/summer /campaigns/autumn /campaigns/winter /campaigns/winter/edit
	/campaigns/autumn/preview /campaigns/autumn/recipients
	/digests /digests/categories /digests/categories/new /digests/categories/shop/comment /digests/runs
	/digests/runs/{run} /digests/runs/{failedRun} /digests/recipients?account=shop
	/digests/recipients/shop/u1 /digests/recipients/shop/u1/preview
	/settings /tokens /audit /people /people/ada /sessions /inbox /inbox/0
	/docs /docs/api/submit /docs/guide /docs/guide/configuration /docs/guide/dashboard`)

// ownPages are those of a person, ada.
var ownPages = []string{"/me"}

// publicPages are those that need no login. Variables are paths of links in mail. The mail of the archive is
// not among them: its sandbox lets axe-core not run.
var publicPages = strings.Fields(`/login {newLink} /docs /subscribers?listId=weekly {confirm} {leave} {choose}
	{digests} {sender} /archive/weekly`)

// otherRoutes answer GET with something else than a page of ours.
var otherRoutes = map[string]string{
	"GET /static/{name}": "files of the pages",
	"GET /login/oidc":    "leads to the login server", "GET /login/oidc/callback": "leads back from it",
	"GET /demo":                  "logs in by the link of a demo",
	"GET /messages/{id}/content": "a download", "GET /messages/{id}/parts/{part}": "a download",
	"GET /messages/{id}/html": "a mail in a frame", "GET /inbox/{id}/html": "a mail in a frame",
	"GET /templates/{id}/preview":                         "a mail in a frame",
	"GET /campaigns/{id}/preview/mail":                    "a mail in a frame",
	"GET /digests/recipients/{account}/{id}/preview/mail": "a mail in a frame",
	"GET /lists/{id}/form/preview":                        "a form in a frame",
	ui.DashboardPath:                                      "asynqmon",
	ui.DashboardPath + "/":                                "asynqmon",
}

// ending are the steps of the examples that delete, end or send what the pages are to show.
var ending = strings.Fields(`removeSender deleteEndpoint cancelMessage cancelMessages replayDeadLetter
	deleteDeadLetter replayDeadLetters deleteCampaign deleteSegment
	deleteDigestEvents deleteDigestRecipient deleteDigestKind deleteDomainKey rebuildDocuments deleteToken
	enrolTOTP confirmTOTP removeTOTP resetTOTP endSession signOutPerson deletePerson deleteSubscriber deleteList
	stopSubscriberImport deleteTemplate flushTemplates deleteAccount deleteGateway`)

// caught is the inbox of a demo with all that a relay got.
func caught(relay *testsmtp.Server) *ui.Demo {
	return &ui.Demo{Mails: func() (mails []ui.CaughtMail) {
		for i, m := range relay.Messages() {
			mails = append(mails, ui.CaughtMail{ID: fmt.Sprint(i), To: m.To, Subject: "Mail", Received: m.Time,
				Raw: m.Data})
		}
		slices.Reverse(mails)
		return mails
	}}
}

// shown plays the story of the examples with all that it makes.
func (s *story) shown(t *testing.T) {
	t.Helper()
	for _, step := range slices.Concat(s.steps(t), readSteps(t, "testdata/pages.json")) {
		only := s.operations[step.Operation].method == http.MethodGet && step.Keep == nil && step.Until == nil
		switch {
		case step.Login != "":
			s.login(t, step)
		case !only && !slices.Contains(ending, step.Operation):
			s.play(t, step)
		}
	}
	var mails strings.Builder
	for _, m := range s.relay.Messages() {
		mails.WriteString(strings.NewReplacer("=\r\n", "", "=3D", "=").Replace(string(m.Data)))
	}
	for name, path := range map[string]string{"confirm": "/subscribers/confirm", "leave": "/unsubscribe",
		"digests": "/preferences", "sender": "/sender"} {
		link := regexp.MustCompile(`https://mail\.example\.com(`+path+`\?t=[\w.-]+)`).
			FindAllStringSubmatch(mails.String(), -1)
		if link == nil {
			t.Fatalf("no mail has a link to %s", path)
		}
		s.vars[name] = link[len(link)-1][1] // those of tests of a campaign do not work
	}
	s.vars["choose"] = strings.Replace(fmt.Sprint(s.vars["leave"]), "/unsubscribe", "/preferences", 1)
	s.vars["newLink"] = strings.TrimPrefix(fmt.Sprint(s.vars["newLink"]), "https://mail.example.com")
}

// paths returns addresses with the variables of the story.
func (s *story) paths(of []string) []string {
	filled := make([]string, len(of))
	for i, path := range of {
		filled[i] = strings.TrimPrefix(s.filled(" "+path), " ")
	}
	return filled
}

// routesOf returns the patterns of the pages' table that answer GET.
func routesOf(t *testing.T) (patterns []string) {
	t.Helper()
	names := strings.NewReplacer(`"+guidePath+"`, "/docs/guide", `"+guidePath`, `/docs/guide"`,
		`(DashboardPath+"/"`, `("`+ui.DashboardPath+`/"`, `(DashboardPath`, `("`+ui.DashboardPath+`"`)
	for _, file := range []string{"routes.go", "inbox.go"} {
		text, err := os.ReadFile(filepath.Join("../../ui", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\b(?:open|closed|shared|own|shows)\("((?:GET )?/[^"]+)"`).
			FindAllStringSubmatch(names.Replace(string(text)), -1) {
			patterns = append(patterns, found[1])
		}
	}
	if len(patterns) < 80 {
		t.Fatalf("only %d routes were found in ui/routes.go: %q", len(patterns), patterns)
	}
	return patterns
}

// TestEveryRouteIsAmongThePages fails if a route of the pages is in none of the lists above.
func TestEveryRouteIsAmongThePages(t *testing.T) {
	t.Parallel()
	mux, opened := http.NewServeMux(), map[string]bool{}
	for _, pattern := range routesOf(t) {
		mux.Handle(pattern, http.NotFoundHandler())
		opened[pattern] = otherRoutes[pattern] != ""
	}
	for _, path := range slices.Concat(everyPage, ownPages, publicPages, []string{"/link"}) {
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x")
		if !strings.HasPrefix(path, "/") {
			continue // a link in mail
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(req)
		opened[pattern] = true
	}
	for pattern, ok := range opened {
		if !ok {
			t.Errorf("no page of %s is opened in the browser: add one to everyPage", pattern)
		}
	}
}

// widest returns the first elements that stand out of the window; "": there are none.
const widest = `document.documentElement.scrollWidth <= innerWidth ? "" :
	[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
		.slice(0, 9).map((e) => e.outerHTML.slice(0, 160)).join("\n")`

// violations are what axe-core finds wrong with a page, each with its first elements. The rule about the size
// of targets is of WCAG 2.2; axe-core does not apply it by default.
const violations = `axe.run(document, { resultTypes: ["violations"], iframes: false,
	rules: { "target-size": { enabled: true } } }).then((found) =>
	found.violations.map((rule) => rule.id + ": " + rule.help + rule.nodes.slice(0, 4).map((node) =>
		"\n    " + node.html.slice(0, 240) + "\n      " + node.failureSummary).join(""))
		.join("\n"))`

// rawMarkdown returns the words of a page that are Markdown which nobody rendered; "": there are none. Code
// and what people type may be Markdown.
const rawMarkdown = `(() => {
	const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (n) =>
		n.parentElement.closest("pre, code, textarea, script, style") || !n.data.match(/\*\*\w|\]\(|\x60/) ?
			NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
	const found = [];
	while (words.nextNode()) found.push(words.currentNode.data.trim());
	return found.join("\n");
})()`

// opening is what the browser knows of the answer to its request.
type opening struct {
	Path   string
	Status int
	Bytes  int
}

const opened = `(([entry]) => ({ Path: location.pathname + location.search, Status: entry.responseStatus,
	Bytes: entry.decodedBodySize }))(performance.getEntriesByType("navigation"))`

// look lets the browser show a page as on a screen of a width, in light or dark, without transitions.
func (v *visitor) look(theme string, width int64) {
	v.t.Helper()
	if _, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
		v.t.Fatal(err)
	}
	v.do(chromedp.EmulateViewport(width, 844))
}

// examine opens a page, and complains of what is wrong with it on a desktop in light, and on a phone in dark.
func (v *visitor) examine(path string) {
	v.t.Helper()
	v.look("light", 1300)
	v.open(path)
	got := asked[opening](v, opened)
	if got.Status != http.StatusOK || got.Path != path || got.Bytes > pageLimit {
		v.t.Errorf("%s: status %d of %s with %d bytes; at most %d are allowed", path, got.Status, got.Path,
			got.Bytes, pageLimit)
	}
	if raw := asked[string](v, rawMarkdown); raw != "" {
		v.t.Errorf("%s shows raw Markdown: %s", path, raw)
	}
	for _, at := range []struct {
		theme string
		width int64
	}{{"light", 1300}, {"dark", 390}} {
		v.look(at.theme, at.width)
		if wide := asked[string](v, widest); wide != "" {
			v.t.Errorf("%s is wider than %d pixels: %s", path, at.width, wide)
		}
		if found := run(v, chromedp.Evaluate[string](violations, chromedp.EvalAwaitPromise)); found != "" {
			v.t.Errorf("%s, %s, %d pixels:\n%s", path, at.theme, at.width, found)
		}
	}
}

// examining is visitor.tab with axe-core in each page.
func (v *visitor) examining(t *testing.T, options ...chromedp.ContextOption) *visitor {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(npm(t), "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	one := v.tab(t, options...)
	if _, err := chromedp.Call(one.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: string(axe)}); err != nil {
		t.Fatal(err)
	}
	return one
}

// TestEveryPage opens every page in chromium, filled by the story of the examples. axe-core finds nothing, no
// page is wider than the screen, light at a desk and dark on a phone, none is large, and the console stays
// empty, of violations of the content security policy too.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	s := newStory(t, testredis.URL(t), caught)
	s.shown(t)
	v := visit(t, s.url)
	v.enter(s.token)
	waiting := make(chan string, len(everyPage))
	for _, path := range s.paths(everyPage) {
		waiting <- path
	}
	close(waiting)
	for i := range 3 {
		t.Run(fmt.Sprintf("operator %d", i), func(t *testing.T) {
			t.Parallel()
			one := v.examining(t)
			for path := range waiting {
				one.examine(path)
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		t.Parallel()
		one := v.examining(t, chromedp.WithNewBrowserContext())
		one.open("/login") // what never complains proves nothing
		one.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("main").append(document.createElement("img"))`),
			chromedp.Evaluate[chromedp.Void](`document.querySelector("main img").width = 4000`))
		found := run(one, chromedp.Evaluate[string](violations, chromedp.EvalAwaitPromise))
		if !strings.Contains(found, "image-alt") || asked[string](one, widest) == "" {
			t.Errorf("a wide image without a text is not found: %s", found)
		}
		for _, path := range s.paths(publicPages) {
			one.examine(path)
		}
		one.open("/login")
		one.do(chromedp.SendKeys(chromedp.CSS("#name"), "ada"),
			chromedp.SendKeys(chromedp.CSS("#password"), fmt.Sprint(s.vars["newPassword"])))
		one.click("#by-name button")
		for _, path := range ownPages {
			one.examine(path)
		}
	})
}
