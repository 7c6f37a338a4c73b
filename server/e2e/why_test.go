package e2e_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// inquiry is a Postroom whose mail fails in every way, and what asks why.
type inquiry struct {
	*app.App
	t      *testing.T
	client *api.Client
	log    *apptest.Log
}

// inquire starts it. The account locked is refused by its relay and held, slow may send one email a day, and
// a webhook endpoint of the account deaf fails. The queue bulk is paused.
func inquire(t *testing.T) *inquiry {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	wants := testsmtp.Start(t, testsmtp.Options{Username: "user", Password: "right"})
	deaf := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(deaf.Close)
	i := &inquiry{t: t, log: &apptest.Log{}}
	i.App = apptest.RunLogging(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "shop@example.com", "webhooks.allowPrivate": "true", "webhooks.attempts": "1",
		"feedback.providers.generic": apptest.TellSecret, "delivery.retry.base": "1h",
		"relays.allowPrivate": "true",
		"serviceUrl":          "https://mail.example.com"}, slog.New(slog.NewTextHandler(i.log, nil)))
	i.client = api.NewClient(i.URL(), i.Token(), nil)
	account := func(id string, change func(*api.Account)) {
		a := api.Account{Account: id, Email: id + "@example.com",
			SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}}
		change(&a)
		_, err := api.CreateAccount.Do(t.Context(), i.client, a)
		i.must(err)
	}
	account("deaf", func(*api.Account) {})
	account("slow", func(a *api.Account) { a.Limits = &api.Limits{PerDay: 1} })
	account("locked", func(a *api.Account) {
		a.AccountTrouble = "hold"
		a.SMTP = &api.SMTPServer{Host: wants.Host(), Port: wants.Port(),
			Auth: &api.SMTPAuth{User: "user", Pass: "wrong"}}
	})
	_, err := api.CreateEndpoint.Do(t.Context(), i.client, api.EndpointRequest{URL: deaf.URL,
		Accounts: []string{"deaf"}})
	i.must(err)
	_, err = api.PutQueue.Do(t.Context(), i.client, api.QueuePatch{Paused: new(true)}, "bulk")
	i.must(err)
	return i
}

func (i *inquiry) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

// submit submits a message and returns its id.
func (i *inquiry) submit(to string, change ...func(*api.SubmitRequest)) string {
	i.t.Helper()
	req := api.SubmitRequest{To: api.Addresses{{Address: to}}, Subject: "Receipt", Text: "Hello"}
	for _, c := range change {
		c(&req)
	}
	answer, err := api.Submit.Do(i.t.Context(), i.client, req)
	i.must(err)
	return answer.QueueID
}

// as has an account send.
func as(account string) func(*api.SubmitRequest) {
	return func(r *api.SubmitRequest) { r.Account = account }
}

// reported is what a provider reports about a message that was sent.
func (i *inquiry) reported(id, fact string) {
	i.t.Helper()
	i.reaches(id, api.StatusSent)
	apptest.Tell(i.t, i.URL(), "generic", `{`+fact+`,"metadata":{"postroom_id":"`+id+`"}}`)
}

func (i *inquiry) reaches(id string, status api.MessageStatus) {
	i.t.Helper()
	apptest.Eventually(i.t, string(status), func() bool {
		m, err := api.GetLoggedMessage.Do(i.t.Context(), i.client, id)
		return err == nil && m.Status == status
	})
}

// because waits until the answer begins with a finding, and returns the answer.
func (i *inquiry) because(address, kind, arrived string, words ...string) (found api.Why) {
	i.t.Helper()
	var err error
	apptest.Eventually(i.t, address+": "+kind, func() bool {
		found, err = api.WhyTo.Do(i.t.Context(), i.client, api.WhyQuery{}, address)
		i.must(err)
		return found.Findings[0].Kind == kind && len(found.Unasked) == 0 // the search index may still start
	})
	if found.Arrived != arrived || len(found.Unasked) > 0 || found.Sentence != found.Findings[0].Text {
		i.t.Errorf("arrived %s, unasked %v: %s", found.Arrived, found.Unasked, found.Sentence)
	}
	for _, w := range words {
		if !strings.Contains(found.Sentence, w) {
			i.t.Errorf("%q is not in: %s", w, found.Sentence)
		}
	}
	return found
}

// TestDidNotArrive asks why for every way in which mail does not arrive.
func TestDidNotArrive(t *testing.T) {
	t.Parallel()
	i := inquire(t)
	hold := func(t *testing.T, found api.Why, command string) {
		t.Helper()
		for _, f := range found.Findings {
			if slices.ContainsFunc(f.Do, func(s api.WhyStep) bool { return s.Command == command }) {
				return
			}
		}
		t.Errorf("nobody is told to run %s: %+v", command, found.Findings)
	}
	cases := []struct {
		name string
		ask  func(t *testing.T, i *inquiry)
	}{
		{"refused", func(t *testing.T, i *inquiry) {
			id := i.submit("rcpt-554@example.net")
			found := i.because("rcpt-554@example.net", "refused", api.ArrivedNo, "the relay", "554",
				"failed permanently on")
			hold(t, found, "postroom dead-letter replay "+id)
		}},
		{"suppressed", func(t *testing.T, i *inquiry) {
			_, err := api.AddSuppressions.Do(t.Context(), i.client, api.SuppressionRequest{
				NewSuppression: api.NewSuppression{Email: "barred@example.net", Response: "asked by phone"}})
			i.must(err)
			i.submit("barred@example.net")
			found := i.because("barred@example.net", "suppressed", api.ArrivedNo, "is suppressed")
			hold(t, found, "postroom suppressions delete barred@example.net")
		}},
		{"held", func(t *testing.T, i *inquiry) {
			i.submit("held@example.net", as("locked"))
			found := i.because("held@example.net", "held", api.ArrivedNotYet, "locked is held")
			hold(t, found, "postroom account verify locked")
		}},
		{"paced", func(t *testing.T, i *inquiry) {
			i.submit("first@example.net", as("slow"))
			i.because("first@example.net", "sent", api.ArrivedUnknown)
			i.submit("paced@example.net", as("slow"))
			found := i.because("paced@example.net", "paced", api.ArrivedNotYet, "limit", "next attempt is on")
			if found.Messages[0].Next == nil {
				t.Errorf("%+v", found.Messages[0])
			}
		}},
		{"paused", func(t *testing.T, i *inquiry) {
			i.submit("paused@example.net", func(r *api.SubmitRequest) { r.Lane = api.Bulk })
			found := i.because("paused@example.net", "paused", api.ArrivedNotYet, "the queue bulk is paused")
			hold(t, found, "postroom queue resume bulk")
		}},
		{"bounced later", func(t *testing.T, i *inquiry) {
			id := i.submit("bounced@example.net")
			i.reported(id, `"type":"bounced","bounce":"hard","diagnostic":"550 5.1.1 no such user",`+
				`"recipient":"bounced@example.net"`)
			found := i.because("bounced@example.net", "bounced", api.ArrivedNo, "and bounced on",
				"550 5.1.1 no such user")
			hold(t, found, "postroom log show "+id)
		}},
		{"complained", func(t *testing.T, i *inquiry) {
			i.reported(i.submit("angry@example.net"), `"type":"complained","recipient":"angry@example.net"`)
			i.because("angry@example.net", "complained", api.ArrivedYes, "reported it as spam")
		}},
		{"in doubt", func(t *testing.T, i *inquiry) {
			id := i.submit("dot-close@example.net")
			found := i.because("dot-close@example.net", "inDoubt", api.ArrivedUnknown, "It is unknown whether",
				"it will be sent again")
			hold(t, found, "postroom outbox cancel "+id)
		}},
		{"webhook lost", func(t *testing.T, i *inquiry) {
			i.submit("unheard@example.net", as("deaf"))
			found := i.because("unheard@example.net", "webhookLost", api.ArrivedUnknown,
				"The application wasn't notified", "1 attempt")
			if !slices.ContainsFunc(found.Findings, func(f api.WhyFinding) bool { return f.Kind == "sent" }) {
				t.Errorf("nothing says that it was sent: %+v", found.Findings)
			}
		}},
		{"never submitted", func(_ *testing.T, i *inquiry) {
			i.because("nobody@example.net", "neverSubmitted", api.ArrivedNo, "Postroom has no message to", "7 days")
		}},
		{"erased", func(_ *testing.T, i *inquiry) {
			id := i.submit("gone@example.net")
			_, err := api.ErasePerson.Do(i.t.Context(), i.client, api.ErasureRequest{Email: "gone@example.net"})
			i.must(err)
			i.because("gone@example.net", "erased", api.ArrivedNo, "gone@example.net was erased on", "all mail")
			apptest.Eventually(i.t, "asked about the message, the answer begins with the erasure, too", func() bool {
				found, err := api.WhyTo.Do(i.t.Context(), i.client, api.WhyQuery{Message: id}, "gone@example.net")
				i.must(err)
				return found.Findings[0].Kind == "erased"
			})
		}},
		{"scheduled", func(t *testing.T, i *inquiry) {
			at := time.Now().Add(48 * time.Hour)
			id := i.submit("later@example.net", func(r *api.SubmitRequest) { r.SendAt = &at })
			found := i.because("later@example.net", "scheduled", api.ArrivedNotYet,
				at.UTC().Format("2 January 2006 15:04:05 UTC"))
			hold(t, found, "postroom outbox retry "+id)
		}},
		{"delayed", func(t *testing.T, i *inquiry) {
			i.submit("rcpt-451@example.net")
			i.because("rcpt-451@example.net", "delayed", api.ArrivedNotYet, "attempt 1 of 10 failed", "451",
				"the next attempt is on")
		}},
		{"cancelled", func(t *testing.T, i *inquiry) {
			at := time.Now().Add(48 * time.Hour)
			id := i.submit("cancelled@example.net", func(r *api.SubmitRequest) { r.SendAt = &at })
			_, err := api.CancelMessage.Do(t.Context(), i.client, id)
			i.must(err)
			i.because("cancelled@example.net", "cancelled", api.ArrivedNo, "was cancelled before it was sent")
		}},
		{"unsubscribed from the list", func(t *testing.T, i *inquiry) {
			apptest.People(t, i.client, "news", "left@example.net")
			_, err := api.LeaveList.Do(t.Context(), i.client, api.SubscriberAccount{}, "left@example.net", "news")
			i.must(err)
			i.because("left@example.net", "unsubscribed", api.ArrivedNo, "news")
		}},
		{"digest waits", func(t *testing.T, i *inquiry) {
			i.digest("reader", "reader@example.net", "daily")
			found := i.because("reader@example.net", "digestWaiting", api.ArrivedNotYet, "1 notification waits",
				"until the next digest")
			hold(t, found, "postroom api sendDigest reader --account default")
		}},
		{"digest off", func(_ *testing.T, i *inquiry) {
			i.digest("silent", "silent@example.net", "off")
			i.because("silent@example.net", "digestOff", api.ArrivedNo, "are off")
		}},
		{"opened", func(_ *testing.T, i *inquiry) {
			i.reported(i.submit("reads@example.net"), `"type":"opened","recipient":"reads@example.net"`)
			i.because("reads@example.net", "opened", api.ArrivedYes, "opened it")
		}},
		{"suppressed since the last mail", func(t *testing.T, i *inquiry) {
			i.reaches(i.submit("since@example.net"), api.StatusSent)
			_, err := api.AddSuppressions.Do(t.Context(), i.client, api.SuppressionRequest{
				NewSuppression: api.NewSuppression{Email: "since@example.net"}})
			i.must(err)
			i.because("since@example.net", "suppressed", api.ArrivedNo, "someone added it manually")
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.ask(t, &inquiry{App: i.App, t: t, client: i.client, log: i.log})
		})
	}
	i.onThePage("rcpt-554@example.net", "failed permanently on")
	i.bound()
	if bytes.Contains([]byte(i.log.String()), []byte("rcpt-554@example.net")) {
		t.Error("the log has an address")
	}
}

// digest submits a notification for a reader with a preference.
func (i *inquiry) digest(reader, address, mode string) {
	i.t.Helper()
	_, err := api.PutDigestRecipient.Do(i.t.Context(), i.client, api.DigestRecipientRequest{Email: &address,
		Preferences: map[string]*api.DigestPreference{"*": {Mode: mode}}}, reader)
	i.must(err)
	_, err = api.TakeDigestEvents.Do(i.t.Context(), i.client, api.DigestEventsRequest{Events: []api.DigestEvent{{
		Recipient: reader, Category: "comment", EntityType: "post", EntityID: "1", Title: "A post"}}})
	i.must(err)
}

// onThePage asks at the pages: the search for an address leads to its page.
func (i *inquiry) onThePage(address, words string) {
	i.t.Helper()
	jar, err := cookiejar.New(nil)
	i.must(err)
	browser := &http.Client{Jar: jar}
	in, err := browser.PostForm(i.URL()+"/login", url.Values{"token": {i.Token()}})
	i.must(err)
	i.must(in.Body.Close())
	page, err := browser.Get(i.URL() + "/search?q=" + url.QueryEscape(address))
	i.must(err)
	defer page.Body.Close()
	body, err := io.ReadAll(page.Body)
	i.must(err)
	if page.Request.URL.Path != "/to/"+address || !bytes.Contains(body, []byte(words)) ||
		!bytes.Contains(body, []byte("postroom dead-letter replay")) {
		i.t.Errorf("%s: %s", page.Request.URL, body)
	}
}

// bound asks with another account's token, which gets no answer.
func (i *inquiry) bound() {
	i.t.Helper()
	made, err := api.CreateToken.Do(i.t.Context(), i.client, api.TokenRequest{Account: "slow", Description: "x"})
	i.must(err)
	client := api.NewClient(i.URL(), made.Token, nil)
	for address, kind := range map[string]string{"rcpt-554@example.net": "neverSubmitted",
		"barred@example.net": "neverSubmitted", "reader@example.net": "neverSubmitted",
		"paced@example.net": "paced"} {
		found, err := api.WhyTo.Do(i.t.Context(), client, api.WhyQuery{}, address)
		i.must(err)
		if found.Findings[0].Kind != kind || len(found.Suppressions)+len(found.Digests) > 0 {
			i.t.Errorf("%s: %+v", address, found)
		}
	}
	if _, err := api.WhyTo.Do(i.t.Context(), client, api.WhyQuery{Account: "deaf"},
		"paced@example.net"); apptest.Status(err) != http.StatusForbidden {
		i.t.Errorf("another account: %v", err)
	}
}
