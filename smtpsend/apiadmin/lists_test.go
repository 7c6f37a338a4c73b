package apiadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// now is when everything in these tests happens.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// desk is a client, and a provider with an account.
type desk struct {
	*Client
	t      *testing.T
	fake   *testapi.Server
	target apisend.Target
	waits  []time.Duration
}

func setup(t *testing.T, name string) *desk {
	t.Helper()
	fake := testapi.Start(t, name, testapi.Options{Key: "secret-key", Now: func() time.Time { return now }})
	sender, err := apisend.New(apisend.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	d := &desk{Client: New(sender), t: t, fake: fake, target: apisend.Target{Type: api.GatewayType(name),
		ID: "main", URL: fake.URL, Key: "secret-key", Secret: testapi.DefaultSecret, Region: "eu-west-1",
		Domain: "mg.example.com"}}
	d.Wait = func(_ context.Context, wait time.Duration) error {
		d.waits = append(d.waits, wait)
		return nil
	}
	return d
}

// delivery is a message that the provider took.
func (d *desk) delivery(n int) testapi.Delivery {
	id := fmt.Sprint(576460752303423400 + n)
	if d.fake.Name == "mailgun" {
		id = "<" + id + "@mg.example.com>"
	}
	return testapi.Delivery{To: fmt.Sprintf("Ann%d@example.net", n), From: "shop@example.com", ID: id,
		Metadata: map[string]string{"postroom_id": fmt.Sprint("proof-", n)}}
}

// all reads every page.
func (d *desk) all(from, to time.Time) (EventPage, error) {
	d.t.Helper()
	var sum EventPage
	for cursor, n := "", 0; n < 100; n++ {
		page, err := d.Events(d.t.Context(), d.target, from, to, cursor)
		if err != nil {
			return sum, err
		}
		sum.Events = append(sum.Events, page.Events...)
		sum.Ignored, sum.Broken = sum.Ignored+page.Ignored, sum.Broken+page.Broken
		sum.Note += page.Note
		if cursor = page.Next; cursor == "" {
			return sum, nil
		}
	}
	d.t.Fatal("the list has no end")
	return sum, nil
}

// withEvents are the providers with an events API, and the kinds of events that it reports.
var withEvents = map[string][]provider.Kind{
	"mailgun": {provider.Delivered, provider.Bounced}, "sparkpost": {provider.Delivered, provider.Bounced},
	"postmark": {provider.Bounced}, "brevo": {provider.Delivered, provider.Bounced},
	"mailjet": {provider.Delivered, provider.Bounced}, "resend": {provider.Delivered, provider.Bounced},
	"mandrill": {provider.Bounced}, "sendgrid": {provider.Delivered, provider.Bounced},
}

// The same event has the same key, kind, message and recipient by webhook and by the events API: that is what
// absorbs one of them.
func TestEventsHaveTheKeysOfWebhooks(t *testing.T) {
	for name, kinds := range withEvents {
		t.Run(name, func(t *testing.T) {
			d := setup(t, name)
			hooks := []provider.Event{}
			hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				batch, err := provider.Read(provider.Name(name), provider.Request{Header: r.Header, Body: body})
				if err != nil || len(batch.Broken) > 0 {
					t.Errorf("%v %+v", err, batch)
				}
				hooks = append(hooks, batch.Events...)
			}))
			t.Cleanup(hook.Close)
			for i, what := range []testapi.Event{testapi.Delivered, testapi.Bounced} {
				if _, err := d.fake.Notify(t.Context(), hook.URL, what, d.delivery(i)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := d.all(now.Add(-time.Hour), now.Add(time.Minute))
			if err != nil || got.Broken > 0 {
				t.Fatalf("%v %+v", err, got)
			}
			var told []string
			for _, e := range hooks {
				if slices.Contains(kinds, e.Kind) {
					told = append(told, describe(e))
				}
			}
			var read []string
			for _, e := range got.Events {
				read = append(read, describe(e))
			}
			slices.Sort(told)
			slices.Sort(read)
			if diff := cmp.Diff(told, read); diff != "" {
				t.Errorf("by webhook, by the events API:\n%s", diff)
			}
			for _, e := range got.Events {
				if provider.Reference(e.Provider, e.ProviderMessageID) == "" && e.MessageID == "" && e.Echoed() == "" {
					t.Errorf("nothing leads to its message: %+v", e)
				}
			}
		})
	}
}

func describe(e provider.Event) string {
	return strings.Join([]string{e.Key, string(e.Kind), strings.ToLower(e.Recipient), e.ProviderMessageID}, " ")
}

// Pages follow each other, at the pace that the provider permits, and no event is lost between them.
func TestEventsInPages(t *testing.T) {
	for name, kinds := range withEvents {
		t.Run(name, func(t *testing.T) {
			d := setup(t, name)
			d.fake.Change(func(o *testapi.Options) { o.PageSize = 3 })
			n := 10
			switch name {
			case "mandrill", "sendgrid": // they have no pages
				d.fake.Change(func(o *testapi.Options) { o.PageSize = 0 })
			}
			for i := range n {
				d.fake.Happen(testapi.Bounced, d.delivery(i), now.Add(-time.Duration(i)*time.Minute))
			}
			if slices.Contains(kinds, provider.Delivered) {
				d.fake.Happen(testapi.Delivered, d.delivery(n), now.Add(-time.Hour))
				n++
			}
			d.fake.Happen(testapi.Bounced, d.delivery(99), now.Add(-80*time.Hour)) // too long ago
			got, err := d.all(now.Add(-2*time.Hour), now)
			if err != nil || got.Note != "" {
				t.Fatal(err, got.Note)
			}
			keys := map[string]bool{}
			for _, e := range got.Events {
				keys[e.Key] = true
			}
			if len(keys) != n {
				t.Errorf("%d events in %d requests, want %d", len(keys), len(d.fake.Requests()), n)
			}
			if asked := len(d.fake.Requests()); len(d.waits) != asked-1 {
				t.Errorf("waited %d times for %d requests", len(d.waits), asked)
			}
			for _, w := range d.waits {
				if w <= 0 || w > 11*time.Minute {
					t.Errorf("waited %s", w)
				}
			}
		})
	}
}

// More than SendGrid lists at once are read by time.
func TestSendGridReadsByTime(t *testing.T) {
	d := setup(t, "sendgrid")
	for i := range 1500 {
		d.fake.Happen(testapi.Delivered, d.delivery(i), now.Add(-time.Duration(i)*time.Second))
	}
	got, err := d.all(now.Add(-time.Hour), now)
	keys := map[string]bool{}
	for _, e := range got.Events {
		keys[e.Key] = true
	}
	if err != nil || len(keys) != 1500 || got.Note != "" {
		t.Errorf("%d events, %q, %v", len(keys), got.Note, err)
	}
}

// An add-on that wasn't bought isn't a failure.
func TestSendGridWithoutItsEventsAPI(t *testing.T) {
	d := setup(t, "sendgrid")
	d.fake.Change(func(o *testapi.Options) { o.Restricted = true })
	got, err := d.all(now.Add(-time.Hour), now)
	if err != nil || !strings.Contains(got.Note, "add-on") {
		t.Errorf("%+v, %v", got, err)
	}
}

// reads reads the first page of both lists of a provider.
func (d *desk) reads() map[string]error {
	errs := map[string]error{}
	if HasEvents(d.target.Type) {
		_, errs["events"] = d.Events(d.t.Context(), d.target, now.Add(-time.Hour), now, "")
	}
	if HasSuppressions(d.target.Type) {
		_, errs["suppressions"] = d.Suppressions(d.t.Context(), d.target, "")
	}
	return errs
}

var allProviders = []string{"ses", "sendgrid", "mailgun", "postmark", "sparkpost", "brevo", "resend",
	"mandrill", "mailjet"}

func TestListsThatFail(t *testing.T) {
	for _, name := range allProviders {
		t.Run(name, func(t *testing.T) {
			d := setup(t, name)
			check := func(what string, ok func(e *smtpsend.Error) bool) {
				t.Helper()
				for list, err := range d.reads() {
					e, is := errors.AsType[*smtpsend.Error](err)
					if !is || !ok(e) {
						t.Errorf("%s, %s: %v", what, list, err)
					}
					if err != nil && strings.Contains(err.Error(), "secret-key") {
						t.Errorf("%s shows the key: %v", what, err)
					}
				}
			}
			d.fake.FailAlways(testapi.Fault{Status: 200, Header: map[string]string{"Content-Type": "text/html"},
				Body: "<html>"})
			check("HTML", func(e *smtpsend.Error) bool { return e.Verdict == smtpsend.Soft })
			d.fake.FailAlways(testapi.Fault{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: "{}"})
			check("429", func(e *smtpsend.Error) bool {
				return e.Verdict == smtpsend.Throttle && e.RetryAfter == 7*time.Second
			})
			d.fake.FailAlways(testapi.Fault{Status: 302, Header: map[string]string{"Location": "/elsewhere"}})
			check("a redirect", func(e *smtpsend.Error) bool { return e.Verdict == smtpsend.Auth })
			d.fake.FailAlways(testapi.Fault{Status: 200, Body: "[", Length: 9 << 20})
			check("too long", func(e *smtpsend.Error) bool { return e.Verdict == smtpsend.Soft })
			d.fake.FailAlways(testapi.Fault{})
			d.target.Key = "another"
			check("a wrong key", func(e *smtpsend.Error) bool { return e.Verdict == smtpsend.Auth })
		})
	}
}

// The key goes with each request, so the next page may not be at another host. A page that leads to itself is
// an endless list.
func TestPagesStayAtTheProvider(t *testing.T) {
	for name, body := range map[string]string{
		"mailgun":   `{"items":[{"event":"delivered","address":"a@example.net"}],"paging":{"next":"%s"}}`,
		"sparkpost": `{"results":[],"links":[{"rel":"next","href":"%s"}]}`,
	} {
		d := setup(t, name)
		for _, address := range []string{"https://api.example.org/v3/x", "//api.example.org/v3/x",
			strings.Replace(d.fake.URL, "http://", "http://x@", 1) + "/v3/x"} {
			d.fake.FailAlways(testapi.Fault{Status: 200, Body: fmt.Sprintf(body, address)})
			for list, err := range d.reads() {
				if err == nil || !strings.Contains(err.Error(), "another host") {
					t.Errorf("%s, %s, %s: %v", name, list, address, err)
				}
			}
		}
		d.fake.FailAlways(testapi.Fault{Status: 200, Body: fmt.Sprintf(body, "/v3/again")})
		page, err := d.Events(t.Context(), d.target, now.Add(-time.Hour), now, "")
		if err == nil {
			_, err = d.Events(t.Context(), d.target, now.Add(-time.Hour), now, page.Next)
		}
		if err == nil || !strings.Contains(err.Error(), "no end") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// listWords are providers' names for a hard bounce, a complaint, an unsubscribe and another reason.
var listWords = map[string][4]string{
	"ses": {"BOUNCE", "COMPLAINT", "", ""}, "sendgrid": {"bounces", "spam_reports", "unsubscribes", ""},
	"mailgun":   {"bounces", "complaints", "unsubscribes", ""},
	"postmark":  {"HardBounce", "SpamComplaint", "ManualSuppression", ""},
	"sparkpost": {"Bounce Rule", "Spam Complaint", "List Unsubscribe", "Manually Added"},
	"brevo":     {"hardBounce", "contactFlaggedAsSpam", "unsubscribedViaEmail", "adminBlocked"},
	"resend":    {"bounce", "complaint", "", "manual"}, "mandrill": {"hard-bounce", "spam", "unsub", "custom"},
}

func TestSuppressionsInPages(t *testing.T) {
	reasons := [4]provider.Reason{provider.ReasonBounced, provider.ReasonSpam, provider.ReasonUnsubscribed,
		provider.ReasonOther}
	for name, spoken := range listWords {
		t.Run(name, func(t *testing.T) {
			d := setup(t, name)
			want := map[string]provider.Reason{}
			d.fake.Change(func(o *testapi.Options) {
				o.PageSize, o.Inactive = 2, map[string]string{}
				if name == "mandrill" || name == "postmark" { // their lists are whole
					o.PageSize = 0
				}
				for i, word := range spoken {
					for n := range 5 {
						if word != "" {
							address := fmt.Sprintf("dead%d.%d@example.net", i, n)
							o.Inactive[address], want[address] = word, reasons[i]
						}
					}
				}
				if name == "mailgun" {
					o.Inactive["tagged@example.net"] = "tag"
				}
			})
			got, skipped := map[string]provider.Reason{}, 0
			for cursor, n := "", 0; n < 50; n++ {
				page, err := d.Suppressions(t.Context(), d.target, cursor)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Entries {
					got[e.Address] = e.Reason
					if !e.Since.Truncate(time.Second).Equal(now) {
						t.Errorf("%s is there since %s", e.Address, e.Since)
					}
				}
				skipped += page.Skipped
				if cursor = page.Next; cursor == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if (skipped == 1) != (name == "mailgun") {
				t.Errorf("%d were skipped", skipped)
			}
		})
	}
}

func TestMailjetHasNoListToRead(t *testing.T) {
	d := setup(t, "mailjet")
	if _, err := d.Suppressions(t.Context(), d.target, ""); !errors.Is(err, ErrLacking) {
		t.Error(err)
	}
	d.target.Type = api.GatewaySES
	if _, err := d.Events(t.Context(), d.target, now, now, ""); !errors.Is(err, ErrLacking) {
		t.Error(err)
	}
}
