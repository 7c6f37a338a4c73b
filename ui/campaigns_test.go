package ui

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/access"
)

// whole is a campaign with every field that the form has.
func whole() api.Campaign {
	end := time.Date(2030, 12, 24, 8, 30, 0, 0, time.UTC)
	return api.Campaign{Name: "Spring <i>", Lists: []string{"news", "shop"}, Segments: []string{"vip"},
		ExcludeLists: []string{"staff"}, ExcludeSegments: []string{"old"}, ExcludeCampaigns: []string{"winter"},
		Rate: 2.5, EndAt: &end, Events: "all", KeepLog: true, Archive: true,
		Window: &api.CampaignWindow{Days: []string{"mon", "fri"}, From: "08:00", Until: "20:00",
			Of: "recipient"},
		CampaignContent: api.CampaignContent{From: &api.Address{Name: "News", Address: "news@example.com"},
			ReplyTo: api.Addresses{{Name: `Jürgen "J" \ Co`, Address: "a@example.com"}, {Address: "b@example.com"}},
			Subject: "Hello {{subscriber.name}}", PreviewText: "It is here", HTML: "# Hi\n\n<b>you</b>",
			Text: "Hi", Gateway: "gw1", Locale: "de", TZ: "Europe/Vienna", Tags: []string{"a", "b"},
			Render:   &api.Render{Format: "markdown", Missing: "error", Params: []byte("{\n  \"a\": 1\n}")},
			Metadata: []byte("{\n  \"m\": 1\n}"), Fallbacks: []byte("{\n  \"firstName\": \"friend\"\n}"),
			TrackOpens: new(true), TrackClicks: new(false)},
		Variants: []api.CampaignVariant{{Variant: "a", Subject: "A", PreviewText: "p", Text: "t",
			HTML: "<p>", From: &api.Address{Name: "News", Address: "a@example.com"}}, {Variant: "b", Template: "t1"}},
		Test: &api.CampaignTrial{Share: 0.2, Metric: "opens", Wait: "6h", Minimum: 50}}
}

// TestTheFormOfACampaignLosesNothing: who opens it and saves it changes nothing.
func TestTheFormOfACampaignLosesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]api.Campaign{"everything": whole(), "a name": {Name: "N"}} {
		got, err := readCampaign(campaignValues(c))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestTheFormOfACampaignRemoves: what a field no longer has is removed.
func TestTheFormOfACampaignRemoves(t *testing.T) {
	t.Parallel()
	c, err := readCampaign(url.Values{"name": {"N"}, "html": {"a\r\nb"}})
	if err != nil {
		t.Fatal(err)
	}
	p := campaignPatch(c)
	if *p.HTML != "a\nb" || *p.Subject != "" || p.From.Address != "" || !p.EndAt.IsZero() ||
		p.Window.From != "" ||
		len(*p.Lists) != 0 || string(p.Metadata) != "{}" || *p.Rate != 0 || *p.KeepLog || *p.Archive ||
		*p.Events != "ends" ||
		*p.TrackOpens != nil || p.Version != nil || len(*p.Variants) != 0 || *p.Test != (api.CampaignTrial{}) {
		t.Errorf("%+v", p)
	}
}

// TestARefusedCampaignIsNotLost: the form comes again, with what was filled in and why it was refused.
func TestARefusedCampaignIsNotLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	p := b.post("/campaigns", url.Values{"name": {"<i>Spring"}, "html": {"<p>long work</p>"}, "rate": {"fast"},

		"render.params": {"[1]"}, "endAt": {"soon"}, "replyTo": {"nobody"}, "window.days": {"tue"},
		"keepLog": {"on"}, "archive": {"on"}})
	if p.status != http.StatusBadRequest {
		t.Errorf("%d", p.status)
	}
	p.isSafe(t, "/campaigns")
	p.eachFieldHasALabel(t, "/campaigns")
	p.has(t, "must be a number", "must be a JSON object", "must be a date and time", "must be email addresses",
		"<p>long work</p>", `value="fast"`, `value="tue" checked`, `name="keepLog" checked`,
		`name="archive" checked`,
		`value="<i>Spring"`)
	if strings.Contains(p.body, "<p>long work") {
		t.Error("the html of the mail is in the page")
	}
	if e := w.entries()[0]; e.Action != "POST /campaigns" || e.Result != api.AuditRefused {
		t.Errorf("the audit log: %+v", e)
	}
	p = b.post("/campaigns/spring", url.Values{"name": {"Spring"}, "html": {strings.Repeat("x", 1<<20)},
		"version": {"x"}})
	if p.status != http.StatusBadRequest {
		t.Errorf("%d", p.status)
	}
	p.has(t, "Edit Spring", "version must be a number", "xxx")
	viewer := w.person("vic", api.RoleViewer)
	viewer.get("/campaigns/new").lacks(t, "Save")
	for _, path := range []string{"/campaigns", "/campaigns/spring", "/campaigns/spring/send",
		"/campaigns/spring/delete"} {
		if p := viewer.post(path, url.Values{"name": {"x"}}); p.status != http.StatusForbidden {
			t.Errorf("POST %s of a viewer: %d", path, p.status)
		}
	}
	if p := w.browser().get("/campaigns"); p.status != http.StatusSeeOther {
		t.Errorf("the page is open to everybody: %d", p.status)
	}
}

// view renders a page from its data, as an operator sees it, or a viewer.
func (w *world) view(path, name string, data any, readOnly bool) page {
	w.t.Helper()
	r := httptest.NewRequestWithContext(context.WithValue(w.t.Context(), grantKey{}, &access.Grant{
		Scopes: []api.Scope{api.ScopeAPI}, ReadOnly: readOnly}), http.MethodGet, path, nil)
	r.AddCookie(&http.Cookie{Name: access.SessionCookie(false), Value: "x"})
	rec := httptest.NewRecorder()
	protect(rec.Header())
	w.must(w.ui.show(rec, r, http.StatusOK, name, "T", data))
	return page{rec.Code, rec.Result().Header, rec.Body.String()}
}

// TestACampaignOffersWhatItsStateAllows: also in the states that last a moment, or that nobody wants.
func TestACampaignOffersWhatItsStateAllows(t *testing.T) {
	t.Parallel()
	w := setup(t)
	now := time.Now()
	all := map[string]string{"Edit": "/edit\"", "Send": "/send\"", "Pause": "/pause\"", "Resume": "/resume\"",
		"Cancel": "/cancel\"", "Test": "/test\"", "Resend": "/resend\"", "Recount": "/recount\"",
		"Delete": "/delete\"", "Copy": "/copy\"", "Settle": "/settle\""}
	for state, offers := range map[string]string{
		"draft": "Edit Send Test Delete Copy", "scheduled": "Edit Send Cancel Test Delete Copy",
		"sending": "Pause Cancel Copy", "paused": "Resume Edit Cancel Test Copy",
		"held": "Resume Pause Edit Cancel Test Copy",
		"sent": "Resend Recount Delete Copy", "cancelled": "Resend Recount Delete Copy",
		"failed": "Delete Copy", "cancelled before it began": "Delete Copy",
	} {
		c := whole()
		c.Campaign, c.Account = "spring", "default"
		state, before := strings.CutSuffix(state, " before it began")
		v := campaignView{CampaignInfo: api.CampaignInfo{Campaign: c, State: state, Reason: "bounces",
			Detail: "8 % <came> back"}, Resend: resendChoices}
		if state != "draft" && state != "scheduled" && state != "failed" && !before {
			v.Run, v.Started = 2, &now
			v.Stats = api.CampaignStats{Campaign: "spring", State: state,
				CampaignNumbers: api.CampaignNumbers{Rate: 12.34,
					States: api.CampaignStates{Waiting: 1200, Sent: 3, Bounced: 2}, Opened: 2},
				Runs: []api.CampaignRunStats{{Run: 1}, {Run: 2, To: "failed",
					CampaignNumbers: api.CampaignNumbers{Started: &now, Audience: 4213}}},
				Links:   []api.CampaignLink{{URL: "https://x.example/<a>", Clicks: 7}},
				Hours:   []api.CampaignHour{{Hour: now, Sent: 5}},
				Domains: []api.CampaignDomain{{Domain: "example.net", Sent: 5, Opened: 4711, Clicked: 4712}}}
		}
		if state == "sent" {
			v.Stats.States.InDoubt, offers = 4, offers+" Settle"
		}
		p := w.view("/campaigns/spring", "campaign", v, false)
		p.isSafe(t, state)
		p.eachFieldHasALabel(t, state)
		p.has(t, "Spring <i>", state+"</span>", "8 % <came> back")
		if v.Run > 0 {
			p.has(t, "1\u202f200</strong> waiting", `recipients?state=bounced"`, "12.3 emails per second",
				"x.example/<a>", "example.net", "4\u202f711", "4\u202f712", "run 2")
		}
		for verb, mark := range all {
			if want := strings.Contains(offers, verb); want != strings.Contains(p.body, mark) {
				t.Errorf("%s: %s is offered: %v, want %v", state, verb, !want, want)
			}
		}
		if strings.Contains(p.body, "<came>") || strings.Contains(p.body, "Spring <i>") {
			t.Errorf("%s is not escaped", state)
		}
		if live := strings.Contains(p.body, "data-live"); live != (state != "draft") {
			t.Errorf("%s refreshes: %v", state, live)
		}
		part := w.view("/campaigns/spring?part=live", "campaign", v, false)
		part.lacks(t, "<html", "Details")
		w.view("/campaigns/spring", "campaign", v, true).lacks(t, `method="post" action="/campaigns`)
	}
}

func TestTheListOfCampaigns(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.view("/campaigns", "campaigns", campaignsView{States: campaignStates}, false).has(t,
		"No campaigns yet", "Write a campaign")
	c := whole()
	c.Campaign = "spring"
	later := time.Now().Add(time.Hour)
	p := w.view("/campaigns", "campaigns", campaignsView{States: campaignStates, Part: "/campaigns?part=rows",
		Query: api.CampaignQuery{State: "sending"},
		Pager: pager{PageNumbers: api.PageNumbers{Total: 2, Pages: 1}, Size: 50},
		Campaigns: []api.CampaignInfo{{Campaign: c, State: "sending",
			States: api.CampaignStates{Waiting: 75, Sent: 25}}, {Campaign: c, State: "scheduled", At: &later}}},
		true)
	p.isSafe(t, "/campaigns")
	p.eachFieldHasALabel(t, "/campaigns")
	p.has(t, "2 campaigns", `value="25" max="100"`, "25 of 100", "starts <time", "Clear",
		`data-live="/campaigns?part=rows"`, `aria-current="page"`)
	p.lacks(t, "Write a campaign")
}

func TestThePreviewAndTheRecipientsOfACampaign(t *testing.T) {
	t.Parallel()
	w := setup(t)
	info := api.CampaignInfo{Campaign: whole()}
	info.Campaign.Campaign, info.Account = "spring", "default"
	p := w.view("/campaigns/spring/preview", "campaignpreview", campaignPreviewView{Campaign: info,
		Preview: &api.CampaignPreview{Subscriber: "s1", Subject: "Hello <b>", HTML: "<p>", Text: "Hi",
			Missing: []string{"subscriber.seats"}, Size: 2000}, Frame: "/campaigns/spring/preview/mail"}, false)
	p.isSafe(t, "preview")
	p.has(t, "Hello <b>", "subscriber.seats", `sandbox title`, `href="/audience/default/s1"`, "2.0 kB",
		`aria-current="page">Campaigns`)
	p = w.view("/campaigns/spring/preview", "campaignpreview", campaignPreviewView{Campaign: info,
		Trouble: "It can't be filled"}, false)
	p.has(t, "It can't be filled")
	p.lacks(t, "<iframe")

	now := time.Now()
	v := recipientsView{Campaign: info, States: recipientStates, Query: api.CampaignRecipientQuery{
		State: "inDoubt", CursorQuery: api.CursorQuery{Cursor: "c1"}}, Recipients: []api.CampaignRecipient{{
		Subscriber: "s1", Email: "ann@example.com", State: "inDoubt", QueueID: "Q1", Response: "<421>",
		Time: &now, Opened: true},
		{Subscriber: "s2", State: "sent"}}, Export: "/v1/campaigns/spring/recipients/export"}
	v.Top, v.Next = v.at(""), v.at("c2")
	p = w.view("/campaigns/spring/recipients", "campaignrecipients", v, false)
	p.isSafe(t, "recipients")
	p.eachFieldHasALabel(t, "recipients")
	p.has(t, "ann@example.com", "in doubt</span>", "<421>", "opened", "deleted", "Download as CSV",
		`href="/campaigns/spring/recipients?cursor=c2&state=inDoubt" rel="next"`, "More recipients")
}

// springForm is the form of a campaign to the list news.
func springForm(more url.Values) url.Values {
	f := url.Values{"name": {"Spring"}, "lists": {"news"}, "subject": {"Hello {{subscriber.email}}"},
		"html":   {`<p>Hi</p><a href="{{rcpt.unsubscribeUrl}}">leave</a>`},
		"events": {"ends"}, "render.format": {"html"}}
	for name, values := range more {
		f[name] = values
	}
	return f
}

// campaign returns a campaign as it is stored.
func (w *world) campaign(id string) api.CampaignInfo {
	w.t.Helper()
	c, err := w.campaigns.Get(w.t.Context(), "", id)
	w.must(err)
	return c
}

// sends runs what sends campaigns until the test ends.
func (w *world) sends() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.campaigns.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("campaigns: %v", err)
		}
	})
}

// TestACampaignThroughItsForms goes from nothing to mail that was sent, and to a copy.
func TestACampaignThroughItsForms(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	w.subscriber("default", "ann@example.net", "news")
	b := w.operator()
	b.submitForm("/campaigns", springForm(url.Values{"trackOpens": {"yes"}, "metadata": {`{"a":1}`},
		"from.address": {"news@example.com"}, "render.params": {`{"b":2}`}, "fallbacks": {`{"c":3}`}})).has(t,
		"Campaign Spring saved as a draft", "Send…")
	if p := b.post("/campaigns",
		springForm(url.Values{"campaign": {"new"}})); p.status != http.StatusBadRequest {
		t.Errorf("the id of the form: %d", p.status)
	}
	b.get("/campaigns/spring/edit").has(t, `name="version" value="1"`, `value="news@example.com"`)
	b.submitForm("/campaigns/spring", springForm(url.Values{"version": {"1"}})).has(t, "Campaign saved.")
	if c := w.campaign("spring"); c.TrackOpens != nil || c.Metadata != nil || c.Fallbacks != nil ||
		c.From != nil ||
		c.Render == nil || c.Render.Format != "html" || c.Render.Params != nil || c.Version != 2 {
		t.Errorf("what the form has not is still there: %+v", c)
	}
	stale := b.post("/campaigns/spring", springForm(url.Values{"version": {"1"}, "subject": {"Other"}}))
	stale.has(t, "is now at version 2", `value="Other"`)
	if stale.status != http.StatusConflict {
		t.Errorf("of a stale form: %d", stale.status)
	}
	b.get("/campaigns/spring?check=1").has(t, "Ready to send to about 1 person")
	b.submitForm("/campaigns/spring/test", url.Values{"to": {"me@example.com"}}).has(t, "1 test email sent")
	b.submitForm("/campaigns/spring/send", nil).has(t, "The campaign is now sending.", "Pause")
	b.submitForm("/campaigns/spring/pause", nil).has(t, "The campaign is now paused.", "Resume")
	b.submitForm("/campaigns/spring", springForm(url.Values{"version": {"4"}, "subject": {"Changed"}})).has(t,
		"Campaign saved.")
	if p := b.post("/campaigns/spring", springForm(url.Values{"version": {"6"}, "lists": {""}})); p.status !=
		http.StatusConflict {
		t.Errorf("the lists of a campaign that was begun: %d", p.status)
	}
	b.submitForm("/campaigns/spring/resume", nil).has(t, "The campaign is now sending.")
	w.sends()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for w.campaign("spring").State != api.CampaignSent {
		if !redisdb.Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("%+v", w.campaign("spring"))
		}
	}
	b.get("/campaigns/spring").has(t, "<dt>sent</dt><dd><strong>1</strong> 100.0 %", "example.net", "Send again")
	b.get("/campaigns/spring/recipients?state=sent").has(t, "ann@example.net")
	b.get("/campaigns/spring").has(t, "Create public page")
	b.submitForm("/campaigns/spring/archive", url.Values{"archive": {"on"}}).has(t,
		"none of its lists is public</span></dd>", "Remove public page")
	_, err := w.audience.Lists.Update(t.Context(), "", "news", api.ListPatch{Public: new(true)})
	w.must(err)
	b.get("/campaigns/spring").has(t,
		`<a href="/archive/news/spring">https://mail.example.com/archive/news/spring</a>`)
	b.submitForm("/campaigns/spring/archive", nil).lacks(t, "/archive/news/spring</a>")
	b.submitForm("/campaigns/spring/copy", nil).has(t, "Copy created.", "Copy of Spring", "draft</span>")
	offered := offeredSegments("spring")[2]
	p := b.get("/campaigns/spring")
	p.isSafe(t, "/campaigns/spring")
	p.has(t, "Create a segment of subscribers who",
		`<a href="/segments?account=default&name=Did%20not%20open%20spring&rule=%7b%22and`)
	b.submitForm("/segments", url.Values{"name": {offered.Name}, "segment": {"idle"},
		"rule": {offered.Rule}}).has(t, "got campaign spring, and not (opened campaign spring)")
	b.submitForm("/campaigns/spring/delete", nil).has(t, `class="flash bad"`, "is used by the segment idle")
	b.submitForm("/segments/idle/delete", nil).has(t, "Segment idle deleted")
	b.submitForm("/campaigns/spring/delete", nil).has(t, "Campaign spring deleted", "1 campaign")
}

// TestTheEditorOfACampaign offers what the account has, shows the email before it is saved, and inserts an
// unsubscribe link. A fault is next to its field.
func TestTheEditorOfACampaign(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("shop")
	w.list("default", "news")
	w.list("shop", "sale")
	w.subscriber("default", "ann@example.net", "news")
	b := w.operator()
	p := b.get("/campaigns/new?list=news")
	p.isSafe(t, "/campaigns/new")
	p.eachFieldHasALabel(t, "/campaigns/new")
	p.has(t, `name="lists" value="news" checked> The news <small>news · 1 subscriber</small>`,
		`<option value="shop">`)
	p.lacks(t, "The sale")
	f := springForm(url.Values{"account": {"shop"}, "html": {"<body><p>Hi</p></body>"}, "text": {"Hi"}})
	p = b.post("/campaigns/new/form", f)
	p.has(t, "The sale", `value="sender@example.com"`, `value="news"`, "<p>Hi</p>")
	f.Set("insert", "unsubscribe")
	b.post("/campaigns/new/form", f).has(t, `{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>
</body>`, "Unsubscribe: {{rcpt.unsubscribeUrl}}")
	b.post("/campaigns", springForm(url.Values{"lists": {"news", "Autumn"}, "window.days": {"mon"},
		"from.address": {"nobody"}})).has(t, `id="lists-wrong">there is no list "Autumn" in account default`,
		`id="window.from-wrong"`, `id="window.until-wrong"`, `id="from.address-wrong"`, `value="Autumn"`,
		"Nothing was saved: 4 fields are wrong.")

	frame := b.post("/campaigns/new/try", springForm(nil))
	frame.has(t, "Hello ann@example.net", "srcdoc=")
	if got := frame.header.Get("Content-Security-Policy"); got != trialPolicy {
		t.Errorf("the policy of the preview: %s", got)
	}
	b.post("/campaigns/new/try", springForm(url.Values{"subject": {"{{subscriber.attributes.seats}}"},
		"render.missing": {"error"}})).has(t, "Missing for this subscriber", "Set a fallback")
	b.post("/campaigns/new/try", springForm(url.Values{"html": {"{{#if"}})).has(t, `class="flash bad"`)
	if p := w.person("vic", api.RoleViewer).post("/campaigns/new/form", f); p.status != http.StatusForbidden {
		t.Errorf("the editor of a viewer: %d", p.status)
	}
}

// TestADraftSaysHowManyPeopleGetIt: each once, without those who are excluded, and what keeps it from being
// sent.
func TestADraftSaysHowManyPeopleGetIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, id := range []string{"news", "more", "staff"} {
		w.list("default", id)
	}
	w.subscriber("default", "ann@example.net", "news", "more")
	w.subscriber("default", "ben@example.net", "more")
	w.subscriber("default", "cy@example.net", "more", "staff")
	b := w.operator()
	b.submitForm("/campaigns", springForm(url.Values{"lists": {"news", "more"}, "excludeLists": {"staff"},
		"rate": {"0.5"}})).has(t, "Ready to send to about 2 people", "Send Spring to about <strong>2 people</strong>",
		"at most 0.5 emails per second", `data-load="/campaigns/spring?part=check"`)
	part := b.get("/campaigns/spring?part=check")
	part.has(t, "Ready to send to about 2 people")
	part.lacks(t, "<html", "Check DNS and links too")
	b.submitForm("/campaigns", springForm(url.Values{"campaign": {"bare"}, "html": {"<p>Hi</p>"}})).has(t,
		"You can’t send this campaign yet.", "Fix these problems first", "NoUnsubscribeLink")
}

// TestThePreviewOfACampaignRunsNothing: its html is in a frame that may load and run nothing.
func TestThePreviewOfACampaignRunsNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	b := w.operator()
	b.submitForm("/campaigns",
		springForm(url.Values{"html": {"<script>alert(1)</script><p>Hi {{subscriber.email}}"}}))
	p := b.get("/campaigns/spring/preview")
	p.isSafe(t, "/campaigns/spring/preview")
	p.has(t, "made-up reader", `src="/campaigns/spring/preview/mail" sandbox`, "Hello reader@example.com")
	if got := p.header.Get("Content-Security-Policy"); got != policy+"; frame-src 'self'" ||
		strings.Contains(p.body, "<script>alert") {
		t.Errorf("the policy of the page: %s", got)
	}
	frame := b.get("/campaigns/spring/preview/mail")
	frame.has(t, "Hi reader@example.com")
	if frame.header.Get("Content-Security-Policy") != framePolicy ||
		frame.header.Get("X-Frame-Options") != "SAMEORIGIN" {
		t.Errorf("the frame: %v", frame.header)
	}
}

// TestPagesOfACampaignOfAnotherAccount: they are not there.
func TestPagesOfACampaignOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	w.account("other")
	w.operator().submitForm("/campaigns", springForm(nil))
	b := w.person("olga", api.RoleOperator, "other")
	b.get("/campaigns").lacks(t, "Spring")
	for _, path := range []string{"", "/edit", "/preview", "/preview/mail", "/recipients"} {
		if p := b.get("/campaigns/spring" + path); p.status != http.StatusNotFound {
			t.Errorf("GET %s: %d", path, p.status)
		}
	}
	for _, verb := range []string{"send", "pause", "cancel", "copy", "test", "resend", "settle", "recount",
		"delete"} {
		b.submitForm("/campaigns/spring/"+verb, url.Values{"to": {"a@example.com"}})
	}
	if p := b.post("/campaigns/spring", springForm(url.Values{"version": {"1"}})); p.status !=
		http.StatusNotFound {
		t.Errorf("changed: %d", p.status)
	}
	page, err := w.campaigns.Page(t.Context(), "", api.CampaignQuery{})
	if c := w.campaign("spring"); err != nil || page.Total != 1 || c.State != api.CampaignDraft ||
		c.Version != 1 {
		t.Errorf("%+v, %+v, %v", page, c, err)
	}
	if p := b.post("/campaigns", springForm(nil)); p.status != http.StatusBadRequest {
		t.Errorf("with a list of another account: %d", p.status)
	}
}

// TestVariantsOnThePageOfACampaign: their numbers are shown, and one is made the winner.
func TestVariantsOnThePageOfACampaign(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	w.subscriber("default", "ann@example.net", "news")
	b := w.operator()
	b.submitForm("/campaigns", springForm(url.Values{"variants[0].variant": {"a"},
		"variants[0].subject": {"<A>"},
		"variants[1].variant": {"b"}, "variants[1].previewText": {"p"}, "test.metric": {"manual"},
		"test.share": {"0.5"}}))
	edit := b.get("/campaigns/spring/edit")
	edit.isSafe(t, "/campaigns/spring/edit")
	edit.eachFieldHasALabel(t, "/campaigns/spring/edit")
	edit.has(t, `value="<A>"`, "Variant 4", `value="0.5"`)
	edit.lacks(t, "Variant 5")
	b.get("/campaigns/spring/preview?variant=a").has(t, "<dd><A></dd>", `<option selected>a</option>`)
	b.submitForm("/campaigns/spring/send", nil).has(t, "Choose as winner", "Everyone else waits for the winner.")
	p := b.submitForm("/campaigns/spring/winner", url.Values{"variant": {"b"}})
	p.has(t, "The winner is <strong>b</strong>")
	p.lacks(t, "Choose as winner")
	b.get("/campaigns/spring/recipients?variant=b").has(t, "No recipient matches.")
	if p := b.get("/campaigns/spring/recipients?variant=x"); p.status != http.StatusBadRequest {
		t.Errorf("of no variant: %d", p.status)
	}
}

// TestTheResultsOfALargeCampaign: with links, domains and hours in any number the page is drawn, and small
// enough to be asked for again and again.
func TestTheResultsOfALargeCampaign(t *testing.T) {
	t.Parallel()
	w := setup(t)
	v := campaignView{CampaignInfo: api.CampaignInfo{Campaign: whole(), State: api.CampaignSent, Run: 1},
		Resend: resendChoices}
	v.Campaign.Campaign = "spring"
	v.Stats = api.CampaignStats{Campaign: "spring", CampaignNumbers: api.CampaignNumbers{
		States: api.CampaignStates{Sent: 10_000_000}, ClickedTotal: 5e6}}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 24 * 60 {
		v.Stats.Hours = append(v.Stats.Hours, api.CampaignHour{Hour: began.Add(time.Duration(i) * time.Hour),
			Sent: 1_234_567, Opens: 123_456, Clicks: 12_345})
	}
	for i := range 100 {
		name := strings.Repeat("<x>", 90) + strings.Repeat("y", i%10)
		v.Stats.Links = append(v.Stats.Links, api.CampaignLink{URL: "https://example.com/" + name, Clicks: 100_000})
		v.Stats.Domains = append(v.Stats.Domains, api.CampaignDomain{
			Domain: strings.Repeat("mail.", 5) + "example.net", Sent: 1_000_000, Bounced: 100_000, Failed: 100_000})
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		v.Stats.Variants = append(v.Stats.Variants, api.CampaignOutcome{Variant: strings.Repeat(name, 32),
			States: api.CampaignStates{Sent: 1_000_000}, Opened: 200_000, Clicked: 50_000})
	}
	for _, path := range []string{"/campaigns/spring", "/campaigns/spring?part=live"} {
		p := w.view(path, "campaign", v, false)
		if len(p.body) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(p.body))
		}
		p.has(t, `aria-labelledby="hours-title hours-text"`, `aria-labelledby="links-title links-text"`,
			`aria-labelledby="domains-title domains-text"`, `aria-labelledby="outcomes-title outcomes-text"`,
			"The first 10 of 100 are drawn, and the first 30 are in the figures")
		if strings.Contains(p.body, "<x>") || strings.Contains(p.body, "style=") {
			t.Errorf("%s is not safe", path)
		}
	}
	w.view("/campaigns/spring", "campaign", v, false).isSafe(t, "/campaigns/spring")
}
