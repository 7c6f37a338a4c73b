package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/smtp"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// quotaRefused fails the test unless a quota refused a call, with a text that names it.
func quotaRefused(t *testing.T, what string, err error, status int, words string) api.Failure {
	t.Helper()
	var f *api.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%s: %v, want %d", what, err, status)
	}
	if f.Problem.StatusCode != status || f.Problem.Code != "QuotaExceeded" ||
		!strings.Contains(f.Problem.Message, words) {
		t.Errorf("%s: %v (%s), want %d %s", what, err, f.Problem.Code, status, words)
	}
	return *f
}

// pausedRivals are rivals whose mail waits.
func pausedRivals(t *testing.T, set map[string]string) *rivals {
	t.Helper()
	r := startRivals(t, set)
	if _, err := api.PutQueue.Do(t.Context(), r.admin, api.QueuePatch{Paused: new(true)}, "submit"); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQuotasHoldEveryWayIn fills the quota of one of two accounts: over HTTP, SMTP and by mail merge it is
// refused with the same words, and the other account is not.
func TestQuotasHoldEveryWayIn(t *testing.T) {
	t.Parallel()
	r := pausedRivals(t, map[string]string{"quotas.messages": "2", "serviceUrl": "https://mail.example.com"})
	_, err := api.UpdateAccount.Do(t.Context(), r.admin,
		api.AccountPatch{Quota: new(&api.Quota{Messages: new(3)})}, "b")
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := net.SplitHostPort(r.Addrs().SMTP)
	overSMTP := func() error {
		return smtp.SendMail(r.Addrs().SMTP, smtp.PlainAuth("", "a", r.tokenA, host), "a@a.example",
			[]string{"ann@example.net"}, rawMail("From: a@a.example").Raw)
	}
	submit := func(client *api.Client) error {
		_, err := api.Submit.Do(t.Context(), client, mailFrom("", "ann@example.net"))
		return err
	}
	if err := errors.Join(submit(r.a), overSMTP()); err != nil {
		t.Fatal(err)
	}
	const words = `The quota of account "a" is 2 messages waiting (messages), and 2 are used: ` +
		"there is no room for 1 more until some of its mail has gone out"
	f := quotaRefused(t, "HTTP", submit(r.a), http.StatusTooManyRequests, words)
	if f.RetryAfter != 0 || fmt.Sprint(f.Problem.Details) !=
		"map[account:a limit:2 quota:messages used:2]" {
		t.Errorf("%+v", f)
	}
	var reply *textproto.Error
	if err := overSMTP(); !errors.As(err, &reply) || reply.Code != 451 || reply.Msg != "4.2.2 "+words {
		t.Errorf("SMTP: %v", err)
	}
	merge := api.SubmitRequest{Text: "Hello", MailMerge: []api.MailMergeEntry{
		{To: api.Address{Address: "ann@example.net"}}, {To: api.Address{Address: "ben@example.net"}}}}
	_, err = api.Submit.Do(t.Context(), r.a, merge)
	quotaRefused(t, "mail merge", err, http.StatusTooManyRequests, "there is no room for 2 more")

	for range 3 {
		if err := submit(r.b); err != nil {
			t.Errorf("the other account: %v", err)
		}
	}
	quotaRefused(t, "the other account", submit(r.b), http.StatusTooManyRequests, `account "b" is 3 messages`)
	usage, err := api.GetUsage.Do(t.Context(), r.a, "a")
	if err != nil || usage.Messages != (api.QuotaUse{Used: 2, Limit: 2}) || usage.Bytes.Used < 200 ||
		usage.PerDay.Used != 2 {
		t.Errorf("usage: %+v, %v", usage, err)
	}
	if _, err := api.GetUsage.Do(t.Context(), r.a, "b"); err == nil {
		t.Error("it sees the usage of another account")
	}
	if n := metric(t, r.App, `postroom_quota_refusals_total{of="account",quota="messages"}`); n != "4" {
		t.Errorf("%s refusals were counted", n)
	}
	_, err = api.PutQueue.Do(t.Context(), r.admin, api.QueuePatch{Paused: new(false)}, "submit")
	if err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "there is room again", func() bool { return submit(r.a) == nil })
	r.campaignLacksRoom(t)
}

// campaignLacksRoom fails the test unless a campaign of account a waits while two messages of it wait.
func (r *rivals) campaignLacksRoom(t *testing.T) {
	t.Helper()
	later := mailFrom("", "ann@example.net")
	later.SendAt = new(time.Now().Add(time.Hour))
	var id string
	for range 2 {
		apptest.Eventually(t, "there is room for a message of later", func() bool {
			answer, err := api.Submit.Do(t.Context(), r.a, later)
			id = answer.QueueID
			return err == nil
		})
	}
	r.relays["a"].Wait(3)
	apptest.People(t, r.a, "lista", "ann@example.net")
	apptest.Draft(t, r.a, "c", "lista", nil)
	apptest.SendNow(t, r.a, "c")
	lacksRoom(t, r.a, "c", `account "a" is 2 messages waiting (messages), and 2 are used`)
	if n := r.relays["a"].Count(); n != 3 {
		t.Errorf("%d mails went out", n)
	}
	if _, err := api.CancelMessage.Do(t.Context(), r.a, id); err != nil {
		t.Fatal(err)
	}
	apptest.Reaches(t, r.a, "c", api.CampaignSent)
}

// metric returns the value of a metric.
func metric(t *testing.T, a *app.App, name string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all bytes.Buffer
	if _, err := all.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestQuotaOfATokenHolds: a token that may submit one message a day, over HTTP and SMTP together.
func TestQuotaOfATokenHolds(t *testing.T) {
	t.Parallel()
	r := pausedRivals(t, map[string]string{})
	made, err := api.CreateToken.Do(t.Context(), r.admin, api.TokenRequest{Account: "a", Description: "small",
		Restrictions: &api.Restrictions{Quota: &api.TokenQuota{PerDay: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(r.URL(), made.Token, nil)
	if _, err := api.Submit.Do(t.Context(), client, mailFrom("", "ann@example.net")); err != nil {
		t.Fatal(err)
	}
	host, _, _ := net.SplitHostPort(r.Addrs().SMTP)
	err = smtp.SendMail(r.Addrs().SMTP, smtp.PlainAuth("", "a", made.Token, host), "a@a.example",
		[]string{"ann@example.net"}, rawMail("From: a@a.example").Raw)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.Submit.Do(t.Context(), client, mailFrom("", "ann@example.net"))
	f := quotaRefused(t, "the third", err, http.StatusTooManyRequests,
		"The quota of this token is 2 messages accepted today (perDay), and 2 are used")
	if f.RetryAfter <= 0 || f.RetryAfter > 24*time.Hour || f.Problem.Details["token"] != made.ID ||
		!strings.HasSuffix(fmt.Sprint(f.Problem.Details["until"]), "T00:00:00Z") {
		t.Errorf("%+v", f)
	}
	if _, err := api.Submit.Do(t.Context(), r.a, mailFrom("", "ann@example.net")); err != nil {
		t.Errorf("with another token of the account: %v", err)
	}
	usage, err := api.GetTokenUsage.Do(t.Context(), r.admin, made.ID)
	if err != nil || usage.Token != made.ID || usage.PerDay.Used != 2 || usage.PerDay.Limit != 2 ||
		usage.Messages.Used != 2 || usage.Templates != nil {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestQuotasOfWhatAnAccountKeeps: templates, suppressions, and the size of an import.
func TestQuotasOfWhatAnAccountKeeps(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{"quotas.templates": "1", "quotas.suppressions": "3",
		"quotas.importSize": "200"})
	template := func(client *api.Client) error {
		_, err := api.CreateTemplate.Do(t.Context(), client, api.TemplateRequest{Name: "T",
			TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Subject: "S", Text: "x"}}})
		return err
	}
	if err := errors.Join(template(r.a), template(r.b), template(r.admin), template(r.admin)); err != nil {
		t.Error(err)
	}
	quotaRefused(t, "template", template(r.a), http.StatusForbidden,
		`The quota of account "a" is 1 templates (templates), and it has 1`)

	add := func(client *api.Client, addresses ...string) error {
		var req api.SuppressionRequest
		for _, address := range addresses {
			req.Suppressions = append(req.Suppressions, api.NewSuppression{Email: address})
		}
		_, err := api.AddSuppressions.Do(t.Context(), client, req)
		return err
	}
	if err := errors.Join(add(r.a, "1@x.test", "2@x.test"), add(r.b, "1@x.test"),
		add(r.a, "1@x.test", "2@x.test", "3@x.test"), add(r.a, "1@x.test", "2@x.test", "3@x.test")); err != nil {
		t.Error(err)
	}
	quotaRefused(t, "suppression", add(r.a, "1@x.test", "4@x.test"), http.StatusForbidden,
		`The quota of account "a" is 3 suppressions (suppressions), and it has 3: there is no room for 1 more`)
	_, err := api.AddToBlocklist.Do(t.Context(), r.a, api.BlocklistRequest{Recipient: "4@x.test"}, "news")
	quotaRefused(t, "an address on a list", err, http.StatusForbidden, "suppressions")
	load := func(client *api.Client, file string) error {
		_, err := api.ImportSuppressions.Do(t.Context(), client, strings.NewReader(file),
			api.SuppressionImportOptions{})
		return err
	}
	quotaRefused(t, "import", load(r.a, "1@x.test\n5@x.test\n"), http.StatusForbidden, "no room for 1 more")
	large := strings.Repeat("1@x.test\n", 30)
	quotaRefused(t, "large import", load(r.b, large), http.StatusRequestEntityTooLarge,
		`The quota of account "b" is 200 bytes in one import (importSize)`)
	_, err = api.ImportSuppressions.Do(t.Context(), r.b, struct{ *strings.Reader }{strings.NewReader(large)},
		api.SuppressionImportOptions{})
	quotaRefused(t, "large import of unknown size", err, http.StatusRequestEntityTooLarge, "importSize")
	if err := load(r.admin, large); err != nil {
		t.Errorf("an import of nobody's: %v", err)
	}

	usage, err := api.GetUsage.Do(t.Context(), r.a, "a")
	if err != nil || *usage.Templates != (api.QuotaUse{Used: 1, Limit: 1}) ||
		*usage.Suppressions != (api.QuotaUse{Used: 3, Limit: 3}) || usage.ImportSize.Limit != 200 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestUsageOfTheDefaultAccount: it comes from the settings, and has the quotas of the settings.
func TestUsageOfTheDefaultAccount(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "shop@example.com", "quotas.bytes": "1MB"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	later := time.Now().Add(time.Hour)
	req := mailFrom("", "ann@example.net")
	req.SendAt = &later
	if _, err := api.Submit.Do(t.Context(), client, req); err != nil {
		t.Fatal(err)
	}
	usage, err := api.GetUsage.Do(t.Context(), client, "default")
	if err != nil || usage.Account != "default" || usage.Messages != (api.QuotaUse{Used: 1}) ||
		usage.Bytes.Limit != 1_000_000 || usage.Bytes.Used == 0 {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestQuotasOfWhatIsNoMail: subscribers, events that wait for digests, and requests with a bound token.
func TestQuotasOfWhatIsNoMail(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{"quotas.subscribers": "3", "quotas.events": "4"})
	list := func(client *api.Client, id string) {
		t.Helper()
		if _, err := api.CreateList.Do(t.Context(), client, api.List{Name: id, ListID: id,
			OptIn: "single"}); err != nil {
			t.Fatal(err)
		}
	}
	list(r.a, "of-a")
	list(r.b, "of-b")
	subscribe := func(client *api.Client, address string) error {
		_, err := api.CreateSubscriber.Do(t.Context(), client, api.SubscriberRequest{Email: address})
		return err
	}
	change := func(client *api.Client, address string) error {
		_, err := api.UpdateSubscriber.Do(t.Context(), client, api.SubscriberPatch{Name: new("C")}, address)
		return err
	}
	load := func(client *api.Client, list, file string) error {
		_, err := api.ImportSubscribers.Do(t.Context(), client, strings.NewReader("email\n"+file),
			api.SubscriberImportOptions{ListID: []string{list}, State: "subscribed", Consent: "x"})
		return err
	}
	if err := errors.Join(subscribe(r.a, "1@x.test"), load(r.a, "of-a", "1@x.test\n2@x.test\n3@x.test\n"),
		subscribe(r.b, "1@x.test")); err != nil {
		t.Fatal(err)
	}
	full := `The quota of account "a" is 3 subscribers (subscribers), and it has 3: there is no room for 1 more`
	quotaRefused(t, "subscriber", subscribe(r.a, "4@x.test"), http.StatusForbidden, full)
	quotaRefused(t, "import", load(r.a, "of-a", "3@x.test\n4@x.test\n"), http.StatusForbidden, full)
	if err := errors.Join(change(r.a, "3@x.test"), load(r.a, "of-a", "1@x.test\n")); err != nil {
		t.Errorf("those who are there already can't be changed: %v", err)
	}

	event := func(client *api.Client, recipient, key string) error {
		_, err := api.TakeDigestEvents.Do(t.Context(), client, api.DigestEventsRequest{DigestEvent: api.DigestEvent{
			Recipient: recipient, Email: recipient + "@x.test", Category: "like", EntityType: "post", EntityID: "1",
			IdempotencyKey: key}})
		return err
	}
	for _, key := range []string{"1", "2", "3", "4"} {
		if err := errors.Join(event(r.a, "u"+key, key), event(r.b, "u"+key, key)); err != nil {
			t.Fatal(err)
		}
	}
	quotaRefused(t, "event", event(r.a, "u1", "5"), http.StatusTooManyRequests,
		`The quota of account "a" is 4 events of digests waiting (events), and 4 are used`)
	first := api.DigestEventRemoval{Recipients: []string{"u1"}, Key: "1"}
	_, err := api.DeleteDigestEvents.Do(t.Context(), r.a, first)
	if err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "an event finds the room of the one that was taken back", func() bool {
		return event(r.a, "u1", "6") == nil
	})

	usage, err := api.GetUsage.Do(t.Context(), r.a, "a")
	if err != nil || *usage.Subscribers != (api.QuotaUse{Used: 3, Limit: 3}) ||
		*usage.Events != (api.QuotaUse{Used: 4, Limit: 4}) {
		t.Errorf("%+v, %v", usage, err)
	}
}

// TestRequestsOfBoundTokensHaveALimit: the account's limit holds for a token without its own.
func TestRequestsOfBoundTokensHaveALimit(t *testing.T) {
	t.Parallel()
	r := startRivals(t, map[string]string{"quotas.requests": "1000000"})
	few := 3
	patch := api.AccountPatch{Quota: new(&api.Quota{Requests: &few})}
	if _, err := api.UpdateAccount.Do(t.Context(), r.admin, patch, "a"); err != nil {
		t.Fatal(err)
	}
	refused := func(client *api.Client) error {
		for range 10 {
			if _, err := api.GetUsage.Do(t.Context(), client, "a"); err != nil {
				return err
			}
		}
		return nil
	}
	err := refused(r.a)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the fourth request in a minute: %v, want 429", err)
	}
	if err := refused(r.admin); err != nil {
		t.Errorf("a token that is not bound: %v", err)
	}
}
