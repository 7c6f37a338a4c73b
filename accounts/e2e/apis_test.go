package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
)

// providers are an account whose gateways are fakes of providers' APIs and relays.
type providers struct {
	*apptest.Postroom
	fakes map[string]*testapi.Server
}

// office starts a Postroom with an account shop, whose gateways are named by their types: http, postmark…,
// and smtp, the relay of the default account.
func office(t *testing.T, set map[string]string, kinds ...string) *providers {
	t.Helper()
	p := &providers{apptest.Start(t, set), map[string]*testapi.Server{}}
	var routes []api.Route
	for _, kind := range kinds {
		routes = append(routes, api.Route{Gateway: kind})
		if kind == "smtp" {
			p.add(t, api.Gateway{Gateway: kind, Host: p.Relay.Host(), Port: p.Relay.Port()})
			continue
		}
		p.fakes[kind] = testapi.Start(t, kind, testapi.Options{})
		p.add(t, gatewayOf(kind, p.fakes[kind].URL))
	}
	_, err := api.CreateAccount.Do(t.Context(), p.Client, api.Account{Account: "shop", Email: "shop@example.com",
		Gateways: routes})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gatewayOf returns the settings of an account that the fakes know.
func gatewayOf(kind, url string) api.Gateway {
	a := &api.GatewayAPI{Key: "key", URL: url}
	switch kind {
	case "http":
		a.Key, a.Secret, a.URL = "", testapi.DefaultSecret, url+"/mail"
	case "ses":
		a.Secret, a.Region = testapi.DefaultSecret, "eu-west-1"
	case "mailjet":
		a.Secret = testapi.DefaultSecret
	case "mailgun":
		a.Domain = "mg.example.com"
	}
	return api.Gateway{Gateway: kind, Type: api.GatewayType(kind), API: a}
}

func (p *providers) add(t *testing.T, g api.Gateway) {
	t.Helper()
	g.Name = g.Gateway
	if _, err := api.CreateGateway.Do(t.Context(), p.Client, g); err != nil {
		t.Fatal(err)
	}
}

// submit submits a message from the account shop.
func (p *providers) submit(t *testing.T, to ...string) string {
	t.Helper()
	req := api.SubmitRequest{Account: "shop", Subject: "Your order", Text: "Hello."}
	for _, address := range to {
		req.To = append(req.To, api.Address{Address: address})
	}
	return apptest.HandIn(t, p.Client, req).QueueID
}

// ended waits until a message has left the outbox.
func (p *providers) ended(t *testing.T, id string) (m api.LoggedMessage) {
	t.Helper()
	apptest.Eventually(t, id+" has left the outbox", func() bool {
		var err error
		m, err = api.GetLoggedMessage.Do(t.Context(), p.Client, id)
		return err == nil && m.Status != api.StatusQueued && m.Status != api.StatusSending
	})
	return m
}

// TestAMessageThroughAnAPI: the id of the provider is a field of the recipient, and each recipient has its
// own result.
func TestAMessageThroughAnAPI(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "http")
	gone := map[string]string{"gone@example.net": "unknown"}
	p.fakes["http"].Change(func(o *testapi.Options) { o.Inactive = gone })
	m := p.ended(t, p.submit(t, "ann@example.net", "gone@example.net"))
	got := p.fakes["http"].Delivered()
	if len(got) != 1 || got[0].To != "ann@example.net" || got[0].From != "shop@example.com" {
		t.Fatalf("delivered %+v", got)
	}
	ann, lost := m.Recipients[0], m.Recipients[1]
	if ann.Status != "sent" || ann.ProviderMessageID != got[0].ID || got[0].ID == "" {
		t.Errorf("%+v, want the id %s", ann, got[0].ID)
	}
	if lost.Status != "failed" || lost.ProviderMessageID != "" {
		t.Errorf("%+v", lost)
	}
	apptest.Eventually(t, "the dead address is suppressed", func() bool {
		page, err := api.ListSuppressions.Do(t.Context(), p.Client, api.SuppressionQuery{Account: "shop"})
		return err == nil && len(page.Suppressions) == 1 && page.Suppressions[0].Email == "gone@example.net"
	})
}

// TestFailoverBetweenAPIAndSMTP: a message goes from an API to SMTP and back, and no one gets it twice.
func TestFailoverBetweenAPIAndSMTP(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		order []string
		fault testapi.Fault
	}{
		"a revoked key":     {[]string{"http", "smtp"}, testapi.Fault{Status: 401}},
		"too many requests": {[]string{"http", "smtp"}, testapi.Fault{Say: testapi.Throttled}},
		"out of order":      {[]string{"http", "smtp"}, testapi.Fault{Status: 503}},
		"from SMTP":         {[]string{"smtp", "http"}, testapi.Fault{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := office(t, nil, row.order...)
			p.fakes["http"].FailAlways(row.fault)
			if row.order[0] == "smtp" {
				p.Relay.Close()
			}
			m := p.ended(t, p.submit(t, "ann@example.net"))
			if m.Status != api.StatusSent || p.fakes["http"].Count("")+p.Relay.Count() != 1 {
				t.Errorf("%s, %d at the API, %d at the relay", m.Status, p.fakes["http"].Count(""), p.Relay.Count())
			}
		})
	}
}

// TestADoubtStaysWithTheGatewayThatRemembersIt: the message waits for the gateway that can tell, although it
// is out of order and another one would take the message.
func TestADoubtStaysWithTheGatewayThatRemembersIt(t *testing.T) {
	t.Parallel()
	for _, doubt := range []string{"resend", "hold"} {
		t.Run(doubt, func(t *testing.T) {
			t.Parallel()
			p := office(t, map[string]string{"delivery.retry.base": "100ms", "delivery.inDoubt": doubt}, "http",
				"smtp")
			fake := p.fakes["http"]
			fake.Fail(testapi.Fault{At: testapi.Read, Taken: true}) // then the repeats fail
			fake.Fail(testapi.Fault{Status: 503}, testapi.Fault{Status: 502, Body: "<html>"},
				testapi.Fault{Status: 401})
			fake.Fail(testapi.Fault{Status: 503}) // and the next attempt
			m := p.ended(t, p.submit(t, "ann@example.net"))
			if m.Status != api.StatusSent || fake.Count("") != 1 || p.Relay.Count() != 0 {
				t.Errorf("%s, %d at the API, %d at the relay", m.Status, fake.Count(""), p.Relay.Count())
			}
			if m.Recipients[0].ProviderMessageID != fake.Delivered()[0].ID {
				t.Errorf("%+v, want the id %s", m.Recipients[0], fake.Delivered()[0].ID)
			}
		})
	}
}

// TestAReportEndsADoubt: a recipient with a report has the message and doesn't get it again. Without a report
// the message is repeated or set aside, as the setting says, but not before a report had time to come.
func TestAReportEndsADoubt(t *testing.T) {
	t.Parallel()
	for _, doubt := range []string{"resend", "hold"} {
		t.Run(doubt, func(t *testing.T) {
			t.Parallel()
			p := office(t, map[string]string{"delivery.inDoubt": doubt, "delivery.reportWait": "1h",
				"feedback.providers.postmark": "a secret of the webhook"}, "postmark")
			fake := p.fakes["postmark"]
			again := func(id string) {
				t.Helper()
				m, err := api.GetMessage.Do(t.Context(), p.Client, id)
				if err != nil || time.Until(*m.NextAttempt.Time) < 50*time.Minute {
					t.Errorf("%v, the next attempt is at %v, want in an hour", err, m.NextAttempt.Time)
				}
				if _, err := api.RetryMessage.Do(t.Context(), p.Client, id); err != nil {
					t.Fatal(err)
				}
			}
			doubtful := func(to ...string) string {
				t.Helper()
				fake.Fail(testapi.Fault{At: testapi.Read, Taken: true})
				id := p.submit(t, to...)
				apptest.Eventually(t, id+" is in doubt", func() bool {
					m, err := api.GetMessage.Do(t.Context(), p.Client, id)
					return err == nil && m.InDoubt == 1 && m.NextAttempt.Time != nil
				})
				return id
			}
			reported := func(id, to string) {
				t.Helper()
				all := fake.Delivered()
				which := slices.IndexFunc(all, func(d testapi.Delivery) bool { return d.To == to })
				hook := p.URL + "/webhooks/provider/postmark?token=a+secret+of+the+webhook"
				if status, err := fake.Notify(t.Context(), hook, testapi.Delivered, all[which]); status != 200 {
					t.Fatal(status, err)
				}
				apptest.Eventually(t, "the report is recorded", func() bool {
					got, err := api.ListMessageEvents.Do(t.Context(), p.Client, id)
					return err == nil && strings.Contains(fmt.Sprint(got), "messageDelivered")
				})
			}
			after, copies := api.StatusSent, 2 // without a report
			if doubt == "hold" {
				after, copies = api.StatusDead, 1
			}
			for _, row := range []struct {
				to       []string
				reported bool // on the first recipient
				status   api.MessageStatus
				copies   []int
			}{
				{[]string{"ann@example.net"}, true, api.StatusSent, []int{1}},
				{[]string{"bob@example.net"}, false, after, []int{copies}},
				{[]string{"carl@example.net", "dora@example.net"}, true, after, []int{1, copies}},
			} {
				id := doubtful(row.to...)
				if row.reported {
					reported(id, row.to[0])
				}
				again(id)
				if m := p.ended(t, id); m.Status != row.status || m.InDoubt != 1 {
					t.Errorf("%v: %s, %d in doubt, want %s", row.to, m.Status, m.InDoubt, row.status)
				}
				for i, to := range row.to {
					if n := fake.Count(to); n != row.copies[i] {
						t.Errorf("%s got %d copies, want %d", to, n, row.copies[i])
					}
				}
			}
		})
	}
}

// TestAGatewayThatCannotCarryAMessage gives it to the next one, and is not blamed.
func TestAGatewayThatCannotCarryAMessage(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "http", "smtp")
	for range 7 { // more than it takes to pause a gateway
		req := api.SubmitRequest{Account: "shop", To: api.Addresses{{Address: "ann@example.net"}}, Subject: "s",
			Text:       "t",
			RequireTLS: true}
		p.ended(t, apptest.HandIn(t, p.Client, req).QueueID)
	}
	info, err := api.GetGateway.Do(t.Context(), p.Client, "http")
	if err != nil || info.State != "unset" || info.LastError != nil {
		t.Errorf("%+v, %v", info, err)
	}
	if n := p.fakes["http"].Count(""); n != 0 {
		t.Errorf("%d went through a gateway that promises no TLS", n)
	}
	if m := p.ended(t, p.submit(t, "bob@example.net")); m.Status != api.StatusSent ||
		p.fakes["http"].Count("") != 1 {
		t.Errorf("%+v", m)
	}
}

// TestNothingIsLostBetweenProviders: three APIs and a relay fail in every way. Each message arrives, and
// twice only if an attempt was in doubt.
func TestNothingIsLostBetweenProviders(t *testing.T) {
	t.Parallel()
	p := office(t, map[string]string{"delivery.retry.base": "100ms", "delivery.retry.max": "1s",
		"delivery.attempts": "30"}, "http", "smtp")
	random := rand.New(rand.NewPCG(1, 2))
	faults := []testapi.Fault{{}, {}, {}, {At: testapi.Accept}, {At: testapi.Headers}, {At: testapi.Body},
		{At: testapi.Read, Taken: true}, {At: testapi.Read}, {At: testapi.Answer, Taken: true}, {Status: 502,
			Body: "<html>"},
		{Status: 503}, {Say: testapi.Down}, {Lie: testapi.Null, Taken: true}}
	for range 300 {
		for _, fake := range p.fakes {
			fake.Fail(faults[random.IntN(len(faults))])
		}
	}
	var ids []string
	for i := range 120 {
		ids = append(ids, p.submit(t, fmt.Sprintf("p%03d@example.net", i)))
	}
	copies := map[string]int{}
	for _, id := range ids {
		p.ended(t, id)
	}
	for _, fake := range p.fakes {
		for _, d := range fake.Delivered() {
			copies[strings.ToLower(d.To)]++
		}
	}
	for to, n := range apptest.Copies(p.Relay) {
		copies[to] += n
	}
	for i, id := range ids {
		m := p.ended(t, id)
		to := fmt.Sprintf("p%03d@example.net", i)
		if m.Status != api.StatusSent || copies[to] == 0 || copies[to] > 1+m.InDoubt {
			t.Errorf("%s: %s, %d copies, %d attempts in doubt", to, m.Status, copies[to], m.InDoubt)
		}
	}
}

// TestAnAPIBeingSetUp: what is wrong is named by field, keys are masked, and a type stays.
func TestAnAPIBeingSetUp(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "http")
	for name, row := range map[string]struct {
		gateway api.Gateway
		field   string
	}{
		"an unknown type": {api.Gateway{Type: "pigeon", API: &api.GatewayAPI{Key: "k"}}, "type"},
		"no URL":          {api.Gateway{Type: "http", API: &api.GatewayAPI{}}, "api.url"},
		"a URL in clear": {api.Gateway{Type: "http", API: &api.GatewayAPI{URL: "http://mail.example.com/"}},
			"api.url"},
		"a login in a URL": {api.Gateway{Type: "http",
			API: &api.GatewayAPI{URL: "https://u:p@mail.example.com/"}}, "api.url"},
		"a short secret": {api.Gateway{Type: "http", API: &api.GatewayAPI{URL: "https://mail.example.com/",
			Secret: "x"}}, "api.secret"},
		"a line break": {api.Gateway{Type: "http", API: &api.GatewayAPI{URL: "https://mail.example.com/",
			Secret: "whsec_\r\nX: y"}}, "api.secret"},
		"a host": {api.Gateway{Type: "http", Host: "h",
			API: &api.GatewayAPI{URL: "https://mail.example.com/"}}, "host"},
		"a stream": {api.Gateway{Type: "http", API: &api.GatewayAPI{URL: "https://mail.example.com/",
			Stream: "s"}}, "api.stream"},
		"an API without one": {api.Gateway{Host: "h", Port: 25, API: &api.GatewayAPI{Key: "k"}}, "api"},
	} {
		row.gateway.Gateway, row.gateway.Name = "g", "g"
		_, err := api.CreateGateway.Do(t.Context(), p.Client, row.gateway)
		if err == nil || !strings.Contains(err.Error(), row.field) || strings.Contains(err.Error(), "X: y") {
			t.Errorf("%s: %v, want the field %s", name, err, row.field)
		}
	}
	made, err := api.CreateGateway.Do(t.Context(), p.Client, api.Gateway{Gateway: "own", Name: "own",
		Type: "http",
		API:  &api.GatewayAPI{URL: "https://mail.example.com/send"}})
	if err != nil || !strings.HasPrefix(made.Secret, "whsec_") {
		t.Fatalf("%+v, %v", made, err)
	}
	info, err := api.GetGateway.Do(t.Context(), p.Client, "own")
	if err != nil || info.API.Secret != "******" || info.Type != "http" {
		t.Errorf("%+v, %v", info, err)
	}
	moved := &api.GatewayAPI{URL: "https://other.example.com/send", Secret: "******"}
	if _, err := api.UpdateGateway.Do(t.Context(), p.Client, api.GatewayPatch{API: &moved}, "own"); err == nil {
		t.Error("the stored secret would sign for another host")
	}
	if _, err := api.UpdateGateway.Do(t.Context(), p.Client, api.GatewayPatch{Type: new(api.GatewaySMTP)},
		"own"); err == nil {
		t.Error("the type was changed")
	}
}

// TestAnAPIIsVerified before it is stored, and afterwards.
func TestAnAPIIsVerified(t *testing.T) {
	t.Parallel()
	p := office(t, nil, "http")
	for name, row := range map[string]struct {
		req  api.VerifyRequest
		want bool
	}{
		"stored":    {api.VerifyRequest{Gateway: "http"}, true},
		"described": {api.VerifyRequest{Type: "http", API: gatewayOf("http", p.fakes["http"].URL).API}, true},
		"wrong secret": {api.VerifyRequest{Type: "http", API: &api.GatewayAPI{URL: p.fakes["http"].URL + "/mail",
			Secret: "whsec_d3JvbmcgYnV0IGxvbmcgZW5vdWdoIGZvciBhIGtleQ=="}}, false},
	} {
		answer, err := api.VerifyAccount.Do(t.Context(), p.Client, row.req)
		if err != nil || answer.SMTP.Success != row.want {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	if n := len(p.fakes["http"].Delivered()); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}
