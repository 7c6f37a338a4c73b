package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestRatesOfTheProgram sends mail of two accounts, has a provider report about it, and asks for the rates by
// tag: as the operator, and with a token of one account.
func TestRatesOfTheProgram(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"smtp": "smtp://" + relay.Addr(), "from": "Shop <shop@example.com>",
		"messages.retention": "0s", "feedback.providers.generic": "a secret of some length"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: "news", Email: "news@example.com",
		SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}})
	if err != nil {
		t.Fatal(err)
	}
	for i, account := range []string{"default", "news", "news"} {
		sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
			Account: account, Tags: []string{"spring"}, To: api.Addresses{{Address: "ann@example.net"}},
			Subject: "Hello", Text: "Hello"})
		if err != nil {
			t.Fatal(err)
		}
		relay.Wait(i + 1)
		if i < 2 {
			continue
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			a.URL()+"/webhooks/provider/generic", strings.NewReader(`{"type":"bounced","bounce":"hard","recipient":"ann@example.net","messageId":"`+
				sent.MessageID+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Webhook-Token", "a secret of some length")
		answer, err := http.DefaultClient.Do(request)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	made, err := api.CreateToken.Do(t.Context(), client, api.TokenRequest{Description: "news",
		Scopes: []api.Scope{api.ScopeOutbox}, Account: "news"})
	if err != nil {
		t.Fatal(err)
	}
	bound := api.NewClient(a.URL(), made.Token, nil)
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all, err := api.GetRates.Do(t.Context(), client, api.RatesQuery{By: "tag"})
		if err != nil {
			t.Fatal(err)
		}
		if len(all.Rates) == 1 && all.Rates[0].Sent == 3 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("%+v", all.Rates)
		}
	}
	mine, err := api.GetRates.Do(t.Context(), bound, api.RatesQuery{By: "domain", Step: "hour"})
	if err != nil || len(mine.Rates) != 1 || mine.Rates[0].Sent != 2 {
		t.Fatalf("%+v, %v", mine, err)
	}
	_, err = api.GetRates.Do(t.Context(), bound, api.RatesQuery{Account: "default"})
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("another account: %v", err)
	}
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got, err := api.GetRates.Do(t.Context(), client, api.RatesQuery{Account: "news"})
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal([]api.Rate{{Sent: 2, Accepted: 2, Hard: 1, BounceRate: .5}}, got.Rates) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%+v", got.Rates)
		}
	}
}
