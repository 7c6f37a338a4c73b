package e2e_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// missing checks that there is no page, with the same text as for unknown pages.
func missing(t *testing.T, base string, paths ...string) {
	t.Helper()
	never := apptest.Stranger(t, base, "/archive/never/was")
	for _, path := range paths {
		got := apptest.Stranger(t, base, path)
		if got.Status != http.StatusNotFound || got.Body != never.Body {
			t.Errorf("%s: %d\n%s", path, got.Status, got.Body)
		}
	}
}

// openLists makes lists that are public, of single opt-in, each with somebody.
func openLists(t *testing.T, client *api.Client, lists ...string) {
	t.Helper()
	for _, id := range lists {
		_, err := api.CreateList.Do(t.Context(), client, api.List{ListID: id, Name: "List <" + id + ">",
			OptIn: "single", Public: true, Description: "Of " + id})
		if err != nil {
			t.Fatal(err)
		}
		apptest.People(t, client, id, "ann@example.net")
	}
}

const hostile = `<html><head><style>p{color:red}</style></head><body><script>steal()</script>` +
	`<p onclick="steal()">Hello {{subscriber.name}}{{subscriber.email}}{{subscriber.id}}{{rcpt.address}}, ` +
	`{{subscriber.attributes.plan}} {{subscriber.attributes.seats}}</p><img src="https://cdn.test/a.png">` +
	`<a href="https://shop.test/sale">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">leave</a> ` +
	`<a href="{{rcpt.preferencesUrl}}">choose</a> <a href="{{campaign.archiveUrl}}">see</a></body></html>`

// TestPublicArchive: everybody sees the mail of a campaign that was sent with archive to a public list, as it
// was then. It has nothing about a person, and is harmless.
func TestPublicArchive(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := runCampaigns(t, relay, nil)
	openLists(t, client, "weekly")
	_, err := api.CreateTemplate.Do(t.Context(), client, api.TemplateRequest{ID: "offer", Name: "Offer",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{
			Subject: "Sale & more for {{subscriber.name}}", HTML: hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	apptest.Draft(t, client, "sale", "weekly", func(c *api.Campaign) {
		c.CampaignContent = api.CampaignContent{Template: "offer", PreviewText: "Only today",
			Render: &api.Render{Missing: "error"}, Locale: "de",
			Fallbacks: json.RawMessage(`{"seats":3}`)}
		c.Archive = true
	})
	missing(t, base, "/archive/weekly/sale") // a draft
	apptest.SendNow(t, client, "sale")
	apptest.Reaches(t, client, "sale", api.CampaignSent)
	if m := string(relay.Wait(1)[0].Data); !strings.Contains(m, "/c/") || !strings.Contains(m, "/o/") ||
		!strings.Contains(m, "ann@example.net") {
		t.Errorf("the mail is not tracked, or not to Ann:\n%s", m)
	}
	_, err = api.UpdateTemplate.Do(t.Context(), client, api.TemplatePatch{
		Content: &api.TemplateContent{Subject: "Later", HTML: "<p>Later</p>"}}, "offer")
	if err != nil {
		t.Fatal(err)
	}
	p := apptest.Stranger(t, base, "/archive/weekly/sale")
	if p.Status != 200 {
		t.Fatalf("%d\n%s", p.Status, p.Body)
	}
	p.Has(t, "<title>Sale &amp; more for</title>", "Hello ,  3</p>", `href="https://shop.test/sale"`,
		`src="https://cdn.test/a.png"`, `href="https://mail.example.com/archive/weekly/sale"`,
		`"https://mail.example.com/subscribers?listId&#x3D;weekly">leave`)
	hasNot(t, p, "ann@example.net", "Ann", "s0", "pro", "/o/", "/c/", "unsubscribe?t", "preferences?t", "Later")
	isHarmless(t, p)
	again := apptest.Stranger(t, base, "/archive/weekly/sale", "If-None-Match", p.Header.Get("ETag"))
	if again.Status != http.StatusNotModified || again.Body != "" || p.Header.Get("ETag") == "" {
		t.Errorf("again: %d %q", again.Status, again.Body)
	}
	info, err := api.GetCampaign.Do(t.Context(), client, "sale")
	if err != nil || info.ArchiveURL != "https://mail.example.com/archive/weekly/sale" {
		t.Errorf("%+v, %v", info, err)
	}
	page := apptest.Stranger(t, base, "/archive/weekly", "Accept-Language", "de")
	page.Has(t, "Archiv: List &lt;weekly&gt;", `href="weekly/sale">Sale &amp; more for</a>`, "Only today",
		`"../subscribers?listId=weekly"`, "Of weekly", `type="application/atom+xml"`)
	hasNot(t, page, "noindex", "<script")
	checkFeed(t, base)
	pasted(t, client, base, apptest.Header(t, relay.Messages()[0], "List-Unsubscribe"))
	takeOut(t, client, base)
}

// pasted checks that a link of a person's mail that somebody pasted into another mail acts for no one.
func pasted(t *testing.T, client *api.Client, base, link string) {
	t.Helper()
	link = strings.Trim(link, "<>")
	if !strings.Contains(link, "/unsubscribe?t=") {
		t.Fatalf("no link: %q", link)
	}
	apptest.Draft(t, client, "pasted", "weekly", func(c *api.Campaign) {
		c.Archive, c.HTML = true, `<a href="`+link+`">x</a> {{rcpt.unsubscribeUrl}}`
	})
	apptest.SendNow(t, client, "pasted")
	apptest.Reaches(t, client, "pasted", api.CampaignSent)
	p := apptest.Stranger(t, base, "/archive/weekly/pasted")
	p.Has(t, `href="https://mail.example.com/unsubscribe?t=">`)
	hasNot(t, p, link)
}

// isHarmless checks the headers that keep somebody's html from doing anything.
func isHarmless(t *testing.T, p apptest.Visited) {
	t.Helper()
	policy := p.Header.Get("Content-Security-Policy")
	for _, directive := range []string{"sandbox allow-popups allow-popups-to-escape-sandbox;",
		"default-src 'none';", "img-src http: https: data:;", "form-action 'none'", "base-uri 'none'",
		"frame-ancestors 'none'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("no %s in %s", directive, policy)
		}
	}
	if strings.Contains(policy, "script") || strings.Contains(policy, "same-origin") {
		t.Errorf("too much: %s", policy)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer", "Cache-Control": "public, max-age=60", "Content-Language": "de",
		"Content-Type": "text/html; charset=UTF-8", "Set-Cookie": "", "X-Robots-Tag": ""} {
		if got := p.Header.Get(name); got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

// checkFeed reads the feed of the list weekly as a reader of feeds does.
func checkFeed(t *testing.T, base string) {
	t.Helper()
	got := apptest.Stranger(t, base, "/archive/weekly/atom.xml")
	var feed struct {
		XMLName xml.Name  `xml:"http://www.w3.org/2005/Atom feed"`
		ID      string    `xml:"id"`
		Title   string    `xml:"title"`
		Updated time.Time `xml:"updated"`
		Author  string    `xml:"author>name"`
		Links   []struct {
			Rel  string `xml:"rel,attr"`
			Href string `xml:"href,attr"`
		} `xml:"link"`
		Entries []struct {
			ID      string    `xml:"id"`
			Title   string    `xml:"title"`
			Updated time.Time `xml:"updated"`
			Summary string    `xml:"summary"`
			Link    struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(got.Body), &feed); err != nil || len(feed.Entries) != 1 ||
		len(feed.Links) != 2 {
		t.Fatalf("%v\n%s", err, got.Body)
	}
	entry := feed.Entries[0]
	tag := regexp.MustCompile(`^tag:mail\.example\.com,\d{4}-\d\d-\d\d:archive:weekly(:sale)?$`)
	if !tag.MatchString(feed.ID) || !tag.MatchString(entry.ID) || feed.ID == entry.ID ||
		feed.Title != "List <weekly>" || feed.Author == "" || entry.Title != "Sale & more for" ||
		entry.Summary != "Only today" || entry.Updated.IsZero() || !feed.Updated.Equal(entry.Updated) ||
		entry.Link.Href != "https://mail.example.com/archive/weekly/sale" ||
		feed.Links[0].Rel != "self" || feed.Links[0].Href != "https://mail.example.com/archive/weekly/atom.xml" ||
		feed.Links[1].Rel != "alternate" {
		t.Errorf("%+v", feed)
	}
	if media := got.Header.Get("Content-Type"); media != "application/atom+xml; charset=utf-8" {
		t.Errorf("it is %s", media)
	}
}

// takeOut takes the campaign sale out of the archive, puts it back, closes the list, and deletes it.
func takeOut(t *testing.T, client *api.Client, base string) {
	t.Helper()
	show := func(on bool) {
		t.Helper()
		got, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Archive: &on}, "sale")
		if err != nil || got.Archive != on || (got.ArchiveURL != "") != on {
			t.Fatalf("%v: %+v, %v", on, got, err)
		}
	}
	show(false)
	missing(t, base, "/archive/weekly/sale")
	hasNot(t, apptest.Stranger(t, base, "/archive/weekly"), "weekly/sale")
	show(true)
	apptest.Stranger(t, base, "/archive/weekly/sale").Has(t, "Hello ,")
	public := func(patch api.ListPatch) {
		t.Helper()
		if _, err := api.UpdateList.Do(t.Context(), client, patch, "weekly"); err != nil {
			t.Fatal(err)
		}
	}
	public(api.ListPatch{NoIndex: new(true)})
	for _, path := range []string{"/archive/weekly", "/archive/weekly/sale", "/archive/weekly/atom.xml"} {
		if got := apptest.Stranger(t, base, path).Header.Get("X-Robots-Tag"); got != "noindex, nofollow" {
			t.Errorf("%s: X-Robots-Tag %q", path, got)
		}
	}
	public(api.ListPatch{Public: new(false)})
	missing(t, base, "/archive/weekly", "/archive/weekly/sale", "/archive/weekly/atom.xml")
	public(api.ListPatch{Public: new(true)})
	if _, err := api.DeleteCampaign.Do(t.Context(), client, "sale"); err != nil {
		t.Fatal(err)
	}
	missing(t, base, "/archive/weekly/sale")
}

// TestPublicArchiveOfAccounts: each of two accounts has its archive, and mail is in no other. Mail that was
// sent without archive, or cancelled, has no page. A page beyond the last is missing.
func TestPublicArchiveOfAccounts(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	redis := testredis.URL(t)
	client, base := runCampaigns(t, relay, map[string]string{"redis.url": redis})
	openLists(t, client, "mine", "also")
	_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: "acme", Email: "news@acme.example",
		SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.CreateList.Do(t.Context(), client, api.List{ListID: "theirs", Name: "Theirs", Account: "acme",
		OptIn: "single", Public: true})
	if err != nil {
		t.Fatal(err)
	}
	plain := func(archive bool, lists ...string) func(*api.Campaign) {
		return func(c *api.Campaign) {
			c.Archive, c.Lists = archive, lists
			c.CampaignContent = api.CampaignContent{Subject: "Words of " + c.Campaign,
				Text: "Dear <b>{{subscriber.name}}</b>,\nhello.\n{{rcpt.unsubscribeUrl}}\n" +
					"{{#if campaign.archiveUrl}}{{campaign.archiveUrl}}{{/if}}"}
		}
	}
	apptest.Draft(t, client, "text", "mine", plain(true, "mine", "also"))
	apptest.Draft(t, client, "secret", "mine", plain(false, "mine"))
	for _, id := range []string{"text", "secret"} {
		apptest.SendNow(t, client, id)
		apptest.Reaches(t, client, id, api.CampaignSent)
	}
	apptest.Draft(t, client, "later", "mine", plain(true, "mine"))
	if _, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{
		At: time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}, "later"); err != nil {
		t.Fatal(err)
	}
	missing(t, base, "/archive/theirs/text", "/archive/theirs/secret", "/archive/mine/secret",
		"/archive/mine/later", "/archive/mine/none", "/archive/none", "/archive/none/atom.xml",
		"/archive/mine?page=2", "/archive/mine?page=0", "/archive/mine?page=x")
	if _, err := api.CancelCampaign.Do(t.Context(), client, "later"); err != nil {
		t.Fatal(err)
	}
	missing(t, base, "/archive/mine/later")
	apptest.Stranger(t, base, "/archive/theirs").Has(t, "There is nothing here yet.")
	for _, list := range []string{"mine", "also"} {
		apptest.Stranger(t, base, "/archive/"+list).Has(t, "Words of text")
		p := apptest.Stranger(t, base, "/archive/"+list+"/text")
		p.Has(t, "<h1>Words of text</h1>", "Dear &lt;b&gt;&lt;/b&gt;,\nhello.",
			"https://mail.example.com/subscribers?listId="+list, "https://mail.example.com/archive/mine/text",
			`href="../`+list+`"`, `href="../../subscribers?listId=`+list+`"`)
		if policy := p.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Error(policy)
		}
	}
	_, err = api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Archive: new(true),
		Subject: new("other")}, "secret")
	if apptest.Status(err) != http.StatusConflict {
		t.Errorf("a campaign that was sent was changed: %v", err)
	}
	keeps(t, apptest.Connect(t, redis), client)
}

// keeps checks that the content of the campaign text is kept for the archive, and the content of the campaign
// secret is released: then it can't be shown.
func keeps(t *testing.T, db *redisdb.DB, client *api.Client) {
	t.Helper()
	ctx, rdb := t.Context(), db.Client()
	mailings := redisdb.Key(0, "mailings")
	held := func(n int) {
		t.Helper()
		apptest.Eventually(t, fmt.Sprintf("%d contents are kept", n), func() bool {
			return rdb.HLen(ctx, mailings).Val() == int64(n)
		})
	}
	held(1)
	show := func(id string, on bool) error {
		_, err := api.UpdateCampaign.Do(ctx, client, api.CampaignPatch{Archive: &on}, id)
		return err
	}
	if err := show("secret", true); err != nil { // it is still there for some minutes
		t.Error(err)
	}
	held(2)
	for _, id := range []string{"secret", "text"} {
		if err := show(id, false); err != nil {
			t.Error(err)
		}
	}
	held(0)
	for _, key := range rdb.Keys(ctx, redisdb.Key(0, "shared", "*")).Val() {
		rdb.Del(ctx, key) // as Redis does later
	}
	if err := show("text", true); apptest.Status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), "is no longer stored") {
		t.Errorf("without its content: %v", err)
	}
}

func hasNot(t *testing.T, v apptest.Visited, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(v.Body, part) {
			t.Errorf("%q in\n%s", part, v.Body)
		}
	}
}
