package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
)

// setupCampaigns is a server that sends the accounts acme's and other's campaigns to a relay. Each account
// has a token with the scope campaigns: acme-campaigns and other-campaigns.
func setupCampaigns(t *testing.T, relay *testsmtp.Server) *world {
	t.Helper()
	p, public := newParts(t), func() string { return "https://mail.example.com" }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bounds, err := limits.New(p.db, limits.Options{})
	must(err)
	sender, err := smtpsend.New(smtpsend.Options{})
	must(err)
	t.Cleanup(func() { _ = sender.Close() })
	router, err := routing.New(routing.Parts{Transports: routing.NewTransports(sender, nil, nil), Limits: bounds,
		Token:    p.OAuth.Access,
		Gateways: p.Gateways}, routing.Options{})
	must(err)
	p.Outbox, err = outbox.New(outbox.Parts{DB: p.db, Queue: queue.NewClient(p.db.Client(), queue.Options{}),
		Control: queue.NewControl(p.db.Client()), Router: router, Accounts: p.Accounts, Gateways: p.Gateways,
		Templates: p.Templates, Tokens: p.signed}, outbox.Options{ServiceURL: public})
	must(err)
	p.Campaigns, err = newsletter.New(newsletter.Parts{DB: p.db,
		Audience: p.Audience,
		Log:      sendlog.New(p.db, 0, p.Suppressions.VersionKey()),
		Outbox:   p.Outbox, Limits: bounds, Suppressions: p.Suppressions, Relays: router.Relays,
		Resting: func(context.Context) (bool, error) { return false, nil }},
		newsletter.Options{Workers: 1, ServiceURL: public})
	must(err)
	for _, account := range []string{"acme", "other"} {
		_, err := p.Accounts.Create(t.Context(), api.Account{Account: account, Email: account + "@example.com",
			SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}})
		must(err)
		p.token(t, account+"-campaigns", api.TokenRequest{Account: account,
			Scopes: []api.Scope{api.ScopeCampaigns}})
	}
	w := p.serve(t, Options{Listen: "127.0.0.1:0"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Campaigns.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("campaigns: %v", err)
		}
	})
	return w
}

// spring is a campaign to the list news.
func spring() api.Campaign {
	return api.Campaign{Name: "Spring sale!", Lists: []string{"news"}, CampaignContent: api.CampaignContent{
		Subject: "Hello {{subscriber.email}}", Text: leaveText}}
}

// reaches waits for a state of a campaign.
func (w *world) reaches(t *testing.T, c *api.Client, id, state string) api.CampaignStats {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		stats, err := api.GetCampaignStats.Do(ctx, c, api.CampaignStatsQuery{}, id)
		if err != nil || stats.State != state && !redisdb.Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("%+v, %v; not %s", stats, err, state)
		}
		if stats.State == state {
			return stats
		}
	}
}

// TestCampaignsOverTheAPI goes from a draft to mail at a relay, with a token that is bound to the account.
func TestCampaignsOverTheAPI(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	w, ctx := setupCampaigns(t, relay), t.Context()
	w.parts.list(t, "acme", "news")
	for _, email := range []string{"ann@example.net", "=1+2@example.net", "rcpt-550@example.net"} {
		w.parts.subscriber(t, "acme", email, "news")
	}
	acme := w.as("acme-campaigns")
	made, err := api.CreateCampaign.Do(ctx, acme, spring())
	if err != nil || made.Campaign.Campaign != "spring-sale" || made.Account != "acme" || made.State != "draft" {
		t.Fatalf("%+v, %v", made, err)
	}
	check, err := api.CheckCampaign.Do(ctx, acme, "spring-sale")
	if err != nil || !check.OK || check.Audience != 3 || len(check.Faults) > 0 {
		t.Errorf("the check: %+v, %v", check, err)
	}
	seen, err := api.PreviewCampaign.Do(ctx, acme, api.CampaignSample{Subscriber: "ann@example.net"},
		"spring-sale")
	if err != nil || seen.Subject != "Hello ann@example.net" || !strings.Contains(seen.Text, "/unsubscribe?t=") {
		t.Errorf("the preview: %+v, %v", seen, err)
	}
	run, err := api.SendCampaign.Do(ctx, acme, api.CampaignStart{}, "spring-sale")
	if err != nil || run.State != api.CampaignSending || run.Run != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	stats := w.reaches(t, acme, "spring-sale", api.CampaignSent)
	if stats.States != (api.CampaignStates{Sent: 2, Bounced: 1}) || stats.Audience != 3 || relay.Count() != 2 {
		t.Errorf("%+v; the relay has %d", stats, relay.Count())
	}
	page, err := api.ListCampaignRecipients.Do(ctx, acme, api.CampaignRecipientQuery{State: "bounced"},
		"spring-sale")
	if err != nil || len(page.Recipients) != 1 || !strings.HasPrefix(page.Recipients[0].Response, "550") {
		t.Errorf("%+v, %v", page, err)
	}
	var file bytes.Buffer
	err = api.ExportCampaignRecipients.Do(ctx, acme, api.CampaignRecipientQuery{}, &file, "spring-sale")
	if err != nil || strings.Count(file.String(), "\n") != 4 || !strings.Contains(file.String(), ",'=1+2@") ||
		strings.Contains(file.String(), ",=") {
		t.Errorf("%v, %s", err, file.String())
	}
	if again, err := api.SendCampaign.Do(ctx, acme, api.CampaignStart{}, "spring-sale"); err != nil ||
		again.State != api.CampaignSent || again.Run != 1 {
		t.Errorf("sent twice: %+v, %v", again, err)
	}
}

// TestCampaignsOfAnotherAccount are not there, and can be no part of a campaign.
func TestCampaignsOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w, ctx := setupCampaigns(t, testsmtp.Start(t, testsmtp.Options{})), t.Context()
	w.parts.list(t, "acme", "news")
	_, err := w.parts.Audience.Segments.Create(ctx, "", api.Segment{Segment: "vip", Account: "acme", Name: "VIP",
		Rule: json.RawMessage(`{"tag":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	acme, other := w.as("acme-campaigns"), w.as("other-campaigns")
	if _, err := api.CreateCampaign.Do(ctx, acme, spring()); err != nil {
		t.Fatal(err)
	}
	if _, err := api.GetCampaign.Do(ctx, other, "spring-sale"); codeOf(err) != "CampaignNotFound" {
		t.Errorf("seen: %v", err)
	}
	if _, err := api.SendCampaign.Do(ctx, other, api.CampaignStart{}, "spring-sale"); !refused(err, 404) {
		t.Errorf("sent: %v", err)
	}
	if page, err := api.ListCampaigns.Do(ctx, other, api.CampaignQuery{}); err != nil || page.Total != 0 {
		t.Errorf("listed: %+v, %v", page, err)
	}
	for field, c := range map[string]api.Campaign{
		"lists[0]": {Lists: []string{"news"}}, "excludeLists[0]": {ExcludeLists: []string{"news"}},
		"segments[0]": {Segments: []string{"vip"}}, "excludeSegments[0]": {ExcludeSegments: []string{"vip"}},
		"excludeCampaigns[0]": {ExcludeCampaigns: []string{"spring-sale"}}, "campaign": {Campaign: "new"},
		"render.params": {CampaignContent: api.CampaignContent{Render: &api.Render{Params: []byte("[1]")}}},
	} {
		c.Name = "Theirs"
		if _, err := api.CreateCampaign.Do(ctx, other, c); faultOf(err) != field {
			t.Errorf("%s of another account: %v", field, err)
		}
	}
	mine, err := api.CreateCampaign.Do(ctx, other, api.Campaign{Name: "Mine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.UpdateCampaign.Do(ctx, other, api.CampaignPatch{ExcludeCampaigns: &[]string{"spring-sale"}},
		mine.Campaign.Campaign); faultOf(err) != "excludeCampaigns[0]" {
		t.Errorf("changed: %v", err)
	}
}

// TestCampaignStatsLive: events come while the mail of a campaign waits at a relay, and end with it.
func TestCampaignStatsLive(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" {
			<-goOn
		}
		return testsmtp.Action{}
	}})
	release := func() {
		select {
		case <-goOn:
		default:
			close(goOn)
		}
	}
	t.Cleanup(release)
	w, ctx := setupCampaigns(t, relay), t.Context()
	w.parts.list(t, "acme", "news")
	w.parts.subscriber(t, "acme", "ann@example.net", "news")
	acme := w.as("acme-campaigns")
	if _, err := api.CreateCampaign.Do(ctx, acme, spring()); err != nil {
		t.Fatal(err)
	}
	if _, err := api.SendCampaign.Do(ctx, acme, api.CampaignStart{}, "spring-sale"); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		w.URL()+"/v1/campaigns/spring-sale/stats/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.parts.secret("acme-campaigns"))
	resp, err := w.http.Transport.(*checked).inner.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seen []api.CampaignStats
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var stats api.CampaignStats
		if err := json.Unmarshal([]byte(data), &stats); err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, stats); stats.States.Sending == 1 {
			release()
		}
	}
	last := seen[len(seen)-1]
	if resp.Header.Get("Content-Type") != "text/event-stream" || len(seen) < 2 ||
		seen[0].State != api.CampaignSending || seen[0].States.Sent != 0 || last.State != api.CampaignSent ||
		last.States.Sent != 1 {
		t.Errorf("%s: %+v", resp.Header.Get("Content-Type"), seen)
	}
}

// TestTheAuditLogHasNoRecipients: for tests and settled people it has the campaign, and no address.
func TestTheAuditLogHasNoRecipients(t *testing.T) {
	t.Parallel()
	w, ctx := setupCampaigns(t, testsmtp.Start(t, testsmtp.Options{})), t.Context()
	w.parts.list(t, "acme", "news")
	w.parts.subscriber(t, "acme", "ann@example.net", "news")
	acme := w.as("acme-campaigns")
	if _, err := api.CreateCampaign.Do(ctx, acme, spring()); err != nil {
		t.Fatal(err)
	}
	tested, err := api.TestCampaign.Do(ctx, acme, api.CampaignTest{To: []string{"tester@example.net"},
		Subscriber: "ann@example.net"}, "spring-sale")
	if err != nil || len(tested.Sent) != 1 || tested.Sent[0].QueueID == "" {
		t.Fatalf("%+v, %v", tested, err)
	}
	if _, err := api.SendCampaign.Do(ctx, acme, api.CampaignStart{}, "spring-sale"); err != nil {
		t.Fatal(err)
	}
	w.reaches(t, acme, "spring-sale", api.CampaignSent)
	if _, err := api.SettleCampaign.Do(ctx, acme, api.CampaignSettle{Subscribers: []string{"ann@example.net"}},
		"spring-sale"); err != nil {
		t.Fatal(err)
	}
	entries := w.entries(t, api.AuditQuery{Kind: "campaign"})
	actions := ""
	for _, e := range entries {
		if e.Result == api.AuditDone {
			actions += strings.TrimPrefix(e.Action, "POST /v1/campaigns") + " "
		}
		if text := marshal(t, e); strings.Contains(text, "example.net") || e.Object.ID != "spring-sale" &&
			e.Result == api.AuditDone {
			t.Errorf("an entry: %s", text)
		}
	}
	if actions != "/{campaign}/settle /{campaign}/send /{campaign}/test  " {
		t.Errorf("the entries are of %q", actions)
	}
}
