package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// campaignRivals are rivals with a list each: lista, listb and listc.
func campaignRivals(t *testing.T, set map[string]string) *rivals {
	t.Helper()
	set["serviceUrl"] = "https://mail.example.com"
	r := startRivals(t, set)
	for id, client := range map[string]*api.Client{"a": r.a, "b": r.b, "c": r.c} {
		apptest.People(t, client, "list"+id, "ann@"+id+".test")
	}
	return r
}

// asB makes a campaign name account b's sender or gateway.
func asB(c *api.Campaign) { c.From = &api.Address{Name: "CEO B", Address: "ceo@b.example"} }

// ofA is asB in a campaign that an unbound caller writes for account a.
func ofA(c *api.Campaign) {
	c.Account = "a"
	asB(c)
}

// asGuest makes a campaign of account c name its sender at b.example.
func asGuest(c *api.Campaign) { c.From = &api.Address{Address: "guest@b.example"} }

// foreignCampaigns are the ways in which a campaign names another account's objects.
var foreignCampaigns = map[string]struct {
	change      func(*api.Campaign)
	code, field string
}{
	"from":            {asB, "SenderNotAllowed", "from"},
	"gateway":         {func(c *api.Campaign) { c.Gateway = "gb" }, "GatewayNotAllowed", "gateway"},
	"unknown gateway": {func(c *api.Campaign) { c.Gateway = "gx" }, "GatewayNotAllowed", "gateway"},
	"variant": {func(c *api.Campaign) {
		c.Variants = []api.CampaignVariant{{Variant: "x"}, {Variant: "y", From: &api.Address{
			Address: "ceo@b.example"}}}
		c.Test = &api.CampaignTrial{Share: 1, Metric: "manual"}
	}, "SenderNotAllowed", "variants[1].from"},
}

// campaignsRefused fails the test unless account a gets no campaign, variant or test email of account b sent.
func (r *rivals) campaignsRefused(t *testing.T) {
	t.Helper()
	apptest.People(t, r.a, "lista", "ann@example.net")
	apptest.Draft(t, r.admin, "foreign", "lista", ofA)
	for _, name := range []string{"from", "variant"} {
		c := api.Campaign{Name: "News", Lists: []string{"lista"}}
		foreignCampaigns[name].change(&c)
		_, err := api.CreateCampaign.Do(t.Context(), r.a, c)
		t.Run("campaign, "+name, func(t *testing.T) {
			refused(t, err, foreignCampaigns[name].code, foreignCampaigns[name].field)
		})
	}
	_, err := api.TestCampaign.Do(t.Context(), r.a, api.CampaignTest{To: []string{"eve@evil.test"}}, "foreign")
	t.Run("test mail", func(t *testing.T) { refused(t, err, "SenderNotAllowed", "from") })
	post := r.operatorOfA(t)
	t.Run("page", func(t *testing.T) {
		post("/campaigns/foreign/send", nil)
		r.quiet(t, "foreign", api.CampaignDraft)
	})
}

// quiet fails the test unless an account has a campaign in a state alone, and no relay got a message.
func (r *rivals) quiet(t *testing.T, id, state string) {
	t.Helper()
	c, err := api.GetCampaign.Do(t.Context(), r.admin, id)
	if err != nil || c.State != state || c.Run != 0 {
		t.Errorf("%s: %+v, %v", id, c, err)
	}
	r.silent(t)
}

// lose takes the sender guest@b.example from account c.
func (r *rivals) lose(t *testing.T) {
	t.Helper()
	if _, err := api.RemoveSender.Do(t.Context(), r.admin, "c", "guest@b.example"); err != nil {
		t.Fatal(err)
	}
}

// regain gives it back.
func (r *rivals) regain(t *testing.T) {
	t.Helper()
	_, err := api.AddSender.Do(t.Context(), r.admin, api.NewSender{Sender: "guest@b.example"}, "c")
	if err != nil {
		t.Fatal(err)
	}
}

// heldForItsSender waits until a campaign is held because account c has lost guest@b.example.
func (r *rivals) heldForItsSender(t *testing.T, id string) {
	t.Helper()
	apptest.Reaches(t, r.admin, id, api.CampaignHeld)
	c, err := api.GetCampaign.Do(t.Context(), r.admin, id)
	if err != nil || c.Reason != "sender" || !strings.Contains(c.Detail, "b.example") ||
		!strings.Contains(c.Detail, "account/c/senders") {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestABoundTokenWritesNoCampaignAsAnother covers what a campaign, and a change of one, may name.
func TestABoundTokenWritesNoCampaignAsAnother(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	apptest.Draft(t, r.a, "clean", "lista", nil)
	for name, row := range foreignCampaigns {
		c := api.Campaign{Campaign: "foreign", Name: "News", Lists: []string{"lista"},
			CampaignContent: api.CampaignContent{Subject: "News", HTML: apptest.LetterHTML}}
		row.change(&c)
		_, created := api.CreateCampaign.Do(t.Context(), r.a, c)
		_, changed := api.UpdateCampaign.Do(t.Context(), r.a, api.CampaignPatch{From: c.From, Gateway: &c.Gateway,
			Variants: &c.Variants, Test: c.Test}, "clean")
		t.Run(name, func(t *testing.T) {
			refused(t, created, row.code, row.field)
			refused(t, changed, row.code, row.field)
		})
	}
	page, err := api.ListCampaigns.Do(t.Context(), r.a, api.CampaignQuery{})
	if err != nil || page.Total != 1 || page.Campaigns[0].Version != 1 || page.Campaigns[0].From != nil ||
		page.Campaigns[0].Gateway != "" || page.Campaigns[0].Variants != nil {
		t.Errorf("%+v, %v", page, err)
	}
	for _, own := range []api.CampaignPatch{{From: &api.Address{Address: "News@A.example"}},
		{Gateway: new("ga")}} {
		if _, err := api.UpdateCampaign.Do(t.Context(), r.a, own, "clean"); err != nil {
			t.Errorf("as itself: %v", err)
		}
	}
	apptest.SendNow(t, r.a, "clean")
	apptest.Reaches(t, r.a, "clean", api.CampaignSent)
	if got := r.relays["a"].Messages(); len(got) != 1 || got[0].From != "News@a.example" {
		t.Errorf("%+v", got)
	}
}

// TestABoundTokenSendsNoCampaignAsAnother covers every way to send what an unbound caller wrote.
func TestABoundTokenSendsNoCampaignAsAnother(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	ctx := t.Context()
	for name, row := range foreignCampaigns {
		id := strings.ReplaceAll(name, " ", "-")
		apptest.Draft(t, r.admin, id, "lista", func(c *api.Campaign) {
			c.Account = "a"
			row.change(c)
		})
		field, variant := row.field, ""
		if name == "variant" {
			field, variant = "from", "y"
		}
		t.Run(name, func(t *testing.T) {
			_, err := api.SendCampaign.Do(ctx, r.a, api.CampaignStart{}, id)
			refused(t, err, row.code, row.field)
			later := api.CampaignStart{At: time.Now().Add(time.Hour).Format(time.RFC3339)}
			_, err = api.SendCampaign.Do(ctx, r.a, later, id)
			refused(t, err, row.code, row.field)
			_, err = api.CopyCampaign.Do(ctx, r.a, api.CampaignCopy{}, id)
			refused(t, err, row.code, row.field)
			test := api.CampaignTest{To: []string{"eve@evil.test"}, Variant: variant}
			_, err = api.TestCampaign.Do(ctx, r.a, test, id)
			refused(t, err, row.code, field)
			_, err = api.UpdateCampaign.Do(ctx, r.a, api.CampaignPatch{Subject: new("Spoofed")}, id)
			refused(t, err, row.code, row.field)
			check, err := api.CheckCampaign.Do(ctx, r.a, id)
			if err != nil || check.OK || len(check.Faults) != 1 || check.Faults[0].Code != row.code {
				t.Errorf("check: %+v, %v", check, err)
			}
			r.quiet(t, id, api.CampaignDraft)
		})
	}
	words := func(id string) string {
		check, err := api.CheckCampaign.Do(ctx, r.a, id)
		return fmt.Sprint(check, err)
	}
	if one, other := words("gateway"), words("unknown-gateway"); one != other {
		t.Errorf("a check tells which gateways exist:\n%s\n%s", one, other)
	}
	apptest.SendNow(t, r.admin, "from") // a caller who isn't bound may name any sender
	apptest.Reaches(t, r.admin, "from", api.CampaignSent)
	if got := r.relays["a"].Messages(); len(got) != 1 || got[0].From != "ceo@b.example" ||
		!strings.Contains(string(got[0].Data), "d=b.example") {
		t.Errorf("%+v", got)
	}
	_, err := api.ResendCampaign.Do(ctx, r.a, api.CampaignResend{To: "newcomers"}, "from")
	refused(t, err, "SenderNotAllowed", "from")
}

// TestABoundTokenResumesNoCampaignAsAnother: the mail that is left goes out as no one else either.
func TestABoundTokenResumesNoCampaignAsAnother(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	apptest.People(t, r.a, "lista", apptest.Many(200)...)
	apptest.Draft(t, r.admin, "slow", "lista", func(c *api.Campaign) {
		ofA(c)
		c.Rate = 2
	})
	apptest.SendNow(t, r.admin, "slow")
	if _, err := api.PauseCampaign.Do(t.Context(), r.a, "slow"); err != nil {
		t.Fatal(err)
	}
	_, err := api.ResumeCampaign.Do(t.Context(), r.a, "slow")
	refused(t, err, "SenderNotAllowed", "from")
	if _, err := api.ResumeCampaign.Do(t.Context(), r.admin, "slow"); err != nil {
		t.Error(err)
	}
}

// TestACampaignIsSignedAsItsAccount: with the key of a domain that the account owns, and with no other.
func TestACampaignIsSignedAsItsAccount(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	apptest.Draft(t, r.b, "own", "listb", nil)
	apptest.Draft(t, r.c, "guest", "listc", asGuest)
	for id, client := range map[string]*api.Client{"own": r.b, "guest": r.c} {
		apptest.SendNow(t, client, id)
		apptest.Reaches(t, client, id, api.CampaignSent)
	}
	for account, signed := range map[string]bool{"b": true, "c": false} {
		got := r.relays[account].Messages()
		if len(got) != 1 || strings.Contains(string(got[0].Data), "d=b.example") != signed {
			t.Errorf("%s: %+v", account, got)
		}
	}
}

// TestALostSenderStartsNoCampaign: an account that has lost the sender can't send, test or resend a campaign,
// whoever asks.
func TestALostSenderStartsNoCampaign(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	ctx := t.Context()
	for _, id := range []string{"draft", "sent"} {
		apptest.Draft(t, r.c, id, "listc", asGuest)
	}
	apptest.SendNow(t, r.c, "sent")
	apptest.Reaches(t, r.c, "sent", api.CampaignSent)
	apptest.People(t, r.c, "listc", "new@c.test")
	r.lose(t)
	for name, client := range map[string]*api.Client{"its token": r.c, "an unbound token": r.admin} {
		t.Run(name, func(t *testing.T) {
			_, err := api.SendCampaign.Do(ctx, client, api.CampaignStart{}, "draft")
			refused(t, err, "SenderNotAllowed", "from")
			_, err = api.TestCampaign.Do(ctx, client, api.CampaignTest{To: []string{"eve@evil.test"}}, "draft")
			refused(t, err, "SenderNotAllowed", "from")
			_, err = api.ResendCampaign.Do(ctx, client, api.CampaignResend{To: "newcomers"}, "sent")
			refused(t, err, "SenderNotAllowed", "from")
		})
	}
	if n := r.relays["c"].Count(); n != 1 {
		t.Errorf("%d mails", n)
	}
	again := api.CampaignPatch{From: &api.Address{Address: "guest@b.example"}}
	_, err := api.UpdateCampaign.Do(ctx, r.admin, again, "draft")
	if err != nil {
		t.Fatal(err)
	}
	apptest.SendNow(t, r.admin, "draft") // whoever named the sender again is not bound, and answers for it
	apptest.Reaches(t, r.admin, "draft", api.CampaignSent)
}

// TestAScheduledCampaignOfALostSenderIsHeld until the account has the sender again.
func TestAScheduledCampaignOfALostSenderIsHeld(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	id := ""
	for wait := 2 * time.Second; ; wait *= 2 { // a machine that is too slow for the first gets more time
		id = "in-" + wait.String()
		apptest.Draft(t, r.c, id, "listc", asGuest)
		at := time.Now().Add(wait)
		_, err := api.SendCampaign.Do(t.Context(), r.c, api.CampaignStart{At: at.Format(time.RFC3339Nano)}, id)
		if err != nil {
			t.Fatal(err)
		}
		if r.lose(t); time.Now().Before(at) {
			break
		}
		r.regain(t)
		t.Logf("%s was too short", wait)
	}
	r.heldForItsSender(t, id)
	if _, err := api.ResumeCampaign.Do(t.Context(), r.c, id); err == nil {
		t.Error("it goes on without its sender")
	}
	r.regain(t)
	if _, err := api.ResumeCampaign.Do(t.Context(), r.c, id); err != nil {
		t.Error(err)
	}
	apptest.Reaches(t, r.c, id, api.CampaignSent)
}

// TestARunningCampaignOfALostSenderIsHeld: it sends to no one else, and continues when the sender is back.
func TestARunningCampaignOfALostSenderIsHeld(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	ctx := t.Context()
	apptest.People(t, r.c, "listc", apptest.Many(200)...)
	apptest.Draft(t, r.c, "slow", "listc", func(c *api.Campaign) {
		asGuest(c)
		c.Rate = 2
	})
	apptest.SendNow(t, r.c, "slow")
	r.relays["c"].Wait(1)
	r.lose(t)
	r.heldForItsSender(t, "slow")
	if n := r.relays["c"].Count(); n > 150 {
		t.Errorf("%d mails went out", n)
	}
	_, err := api.ResumeCampaign.Do(ctx, r.c, "slow")
	refused(t, err, "SenderNotAllowed", "from")
	r.regain(t)
	if _, err := api.UpdateCampaign.Do(ctx, r.c, api.CampaignPatch{Rate: new(0.0)}, "slow"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ResumeCampaign.Do(ctx, r.c, "slow"); err != nil {
		t.Fatal(err)
	}
	st := apptest.Reaches(t, r.c, "slow", api.CampaignSent)
	if st.States.Sent != 201 || len(apptest.Copies(r.relays["c"])) != 201 {
		t.Errorf("%+v, %d people got mail", st.States, len(apptest.Copies(r.relays["c"])))
	}
}

// TestADeferredMailOfALostSenderFails: it waits in the outbox, and no relay is asked again.
func TestADeferredMailOfALostSenderFails(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{"delivery.retry.base": "1h"})
	ctx := t.Context()
	apptest.People(t, r.c, "listc", "rcpt-451-1@c.test")
	apptest.Draft(t, r.c, "deferred", "listc", asGuest)
	apptest.SendNow(t, r.c, "deferred")
	row := api.CampaignRecipient{}
	apptest.Eventually(t, "the mail waits in the outbox", func() bool {
		deferred := api.CampaignRecipientQuery{State: "deferred"}
		page, err := api.ListCampaignRecipients.Do(ctx, r.c, deferred, "deferred")
		if err != nil || len(page.Recipients) == 0 {
			return false
		}
		row = page.Recipients[0]
		_, err = api.GetMessage.Do(ctx, r.c, row.QueueID)
		return err == nil
	})
	r.lose(t)
	if _, err := api.RetryMessage.Do(ctx, r.admin, row.QueueID); err != nil {
		t.Fatal(err)
	}
	if e := r.dead(t, row.QueueID).Progress.Error; e == nil || e.Code != "ENOSENDER" ||
		!strings.Contains(e.Message, "guest@b.example") {
		t.Errorf("%+v", e)
	}
	if got := apptest.Copies(r.relays["c"]); got["rcpt-451-1@c.test"] != 0 {
		t.Errorf("%v", got)
	}
}

// TestCampaignsAreCheckedAsSet covers the setting senders.enforce.
func TestCampaignsAreCheckedAsSet(t *testing.T) {
	t.Parallel()
	all := campaignRivals(t, map[string]string{"senders.enforce": "all"})
	for name, row := range foreignCampaigns {
		c := api.Campaign{Campaign: "foreign", Account: "a", Name: "News", Lists: []string{"lista"},
			CampaignContent: api.CampaignContent{Subject: "News", HTML: apptest.LetterHTML}}
		row.change(&c)
		_, err := api.CreateCampaign.Do(t.Context(), all.admin, c)
		t.Run(name, func(t *testing.T) { refused(t, err, row.code, row.field) })
	}
	apptest.Draft(t, all.admin, "guest", "listc", func(c *api.Campaign) {
		asGuest(c)
		c.Account = "c"
	})
	all.lose(t)
	_, err := api.SendCampaign.Do(t.Context(), all.admin, api.CampaignStart{}, "guest")
	refused(t, err, "SenderNotAllowed", "from")
	all.silent(t)

	off := campaignRivals(t, map[string]string{"senders.enforce": "off"})
	apptest.Draft(t, off.a, "foreign", "lista", asB)
	apptest.SendNow(t, off.a, "foreign")
	apptest.Reaches(t, off.a, "foreign", api.CampaignSent)
}

// TestAnOperatorOfAnAccountSendsNoCampaignAsAnother does on the pages what a bound token may not do.
func TestAnOperatorOfAnAccountSendsNoCampaignAsAnother(t *testing.T) {
	t.Parallel()
	r := campaignRivals(t, map[string]string{})
	apptest.Draft(t, r.admin, "foreign", "lista", ofA)
	apptest.Draft(t, r.a, "clean", "lista", nil)
	post := r.operatorOfA(t)
	form := url.Values{"name": {"Spoofed"}, "lists": {"lista"}, "subject": {"News"},
		"html":         {apptest.LetterHTML},
		"from.address": {"ceo@b.example"}, "version": {"1"}, "events": {"ends"}}
	variants := maps.Clone(form)
	maps.Copy(variants, url.Values{"from.address": {""}, "variants[0].variant": {"x"},
		"variants[1].variant": {"y"}, "variants[1].from.address": {"ceo@b.example"}})
	for _, form := range []url.Values{form, variants} {
		for _, path := range []string{"/campaigns", "/campaigns/clean", "/campaigns/foreign"} {
			if status := post(path, form); status != http.StatusForbidden {
				t.Errorf("%s: %d", path, status)
			}
		}
	}
	for path, form := range map[string]url.Values{"send": {}, "copy": {"name": {"Spoofed"}},
		"test": {"to": {"eve@evil.test"}}} {
		if status := post("/campaigns/foreign/"+path, form); status != http.StatusSeeOther {
			t.Errorf("%s: %d", path, status)
		}
	}
	r.quiet(t, "foreign", api.CampaignDraft)
	r.quiet(t, "clean", api.CampaignDraft)
	page, err := api.ListCampaigns.Do(t.Context(), r.admin, api.CampaignQuery{Search: "spoofed"})
	if err != nil || page.Total != 0 {
		t.Errorf("%+v, %v", page, err)
	}
	post("/campaigns/clean/send", nil)
	apptest.Reaches(t, r.a, "clean", api.CampaignSent)
}

// operatorOfA returns a function that posts a form as an operator of account a, and returns the status.
func (r *rivals) operatorOfA(t *testing.T) func(path string, form url.Values) int {
	t.Helper()
	made, err := api.CreatePerson.Do(t.Context(), r.admin, api.PersonRequest{Person: "ada",
		Role: api.RoleOperator, Accounts: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil) // without options it has no error
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	post := func(path string, form url.Values) int {
		t.Helper()
		res, err := browser.PostForm(r.URL()+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	link, err := url.Parse(made.Link)
	if err != nil {
		t.Fatal(err)
	}
	const password = "correct horse battery"
	post("/link", url.Values{"t": link.Query()["t"], "newPassword": {password}, "newPassword2": {password}})
	status := post("/login", url.Values{"name": {"ada"}, "password": {password}})
	if status != http.StatusSeeOther {
		t.Fatalf("login: %d", status)
	}
	return post
}
