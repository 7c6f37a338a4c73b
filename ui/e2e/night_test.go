package e2e_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestGatewayDiesAtNight: from the alert to the cause in two clicks, and to flowing mail in four, without the
// command line. Nothing that waited is lost, and nobody is mailed twice.
func TestGatewayDiesAtNight(t *testing.T) {
	t.Parallel()
	dead, spare := testsmtp.Start(t, testsmtp.Options{}), testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "alerts.every": "1s",
		"alerts.relayAway": "1s"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "main", Host: dead.Host(),
		Port: dead.Port()})
	must(err)
	_, err = api.CreateAccount.Do(t.Context(), client, api.Account{Account: "shop", Email: "shop@example.com",
		Gateways: []api.Route{{Gateway: "main"}}})
	must(err)
	dead.Close()
	const mails = 20
	for i := range mails {
		_, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Account: "shop", Subject: "Receipt",
			Text: "Hi", To: api.Addresses{{Address: "ann" + strconv.Itoa(i) + "@example.net"}}})
		must(err)
	}

	v := visit(t, a.URL())
	v.enter(a.Token())
	v.open("/")
	v.sees("Gateway main hasn't responded",
		"Messages of account shop are stuck: no relay accepts them, and 20 messages wait.")
	v.seesNot("Messages were sent in the last 10 minutes")
	clicks := 0
	click := func(selector string) {
		t.Helper()
		v.click(selector)
		clicks++
	}
	click(`.alert a[href="/gateways/main"]`)
	v.sees("paused", "connection refused")
	if clicks > 2 {
		t.Errorf("the cause takes %d clicks", clicks)
	}
	v.fill("host", spare.Host())
	v.fill("port", strconv.Itoa(spare.Port()))
	click("#save")
	v.sees("Changed.")
	came := map[string]int{}
	for _, m := range spare.Wait(mails) {
		came[m.To[0]]++
	}
	if clicks > 4 || len(came) != mails {
		t.Errorf("after %d clicks mail came to %d people, want %d: %v", clicks, len(came), mails, came)
	}
	apptest.Eventually(t, "the alert is over", func() bool {
		got, err := api.GetOverview.Do(t.Context(), client, api.OverviewQuery{})
		must(err)
		return !slices.ContainsFunc(got.Alerts, func(a api.OverviewAlert) bool {
			return a.Alert.Alert == "relayAway"
		})
	})
	v.open("/")
	v.sees("Messages were sent in the last 10 minutes")
	v.seesNot("Gateway main hasn't responded")
}
