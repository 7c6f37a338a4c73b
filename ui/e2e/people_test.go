package e2e_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
)

// TestAPersonAtThePages is the first day of a person with two accounts, in a real browser: the link, the app
// for codes, and the switch to the other account.
func TestAPersonAtThePages(t *testing.T) {
	t.Parallel()
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": "smtp://127.0.0.1:1",
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	at := time.Now().Add(24 * time.Hour)
	for _, account := range []string{"club", "store", "other"} {
		_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: account,
			Email: account + "@example.com", Webhooks: "https://hooks.example/" + account,
			SMTP: &api.SMTPServer{Host: "127.0.0.1", Port: 1}})
		if err == nil {
			_, err = api.Submit.Do(t.Context(), client, api.SubmitRequest{Account: account, SendAt: &at,
				To: api.Addresses{{Address: "ada@example.net"}}, Subject: "news of " + account})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := api.CreatePerson.Do(t.Context(), client, api.PersonRequest{Person: "bo", Role: api.RoleOperator,
		Accounts: []string{"club", "store"}})
	if err != nil {
		t.Fatal(err)
	}
	const password = "correct horse battery"
	v := visit(t, a.URL())
	enter := func(selector, text string) {
		t.Helper()
		v.do(chromedp.SendKeys(chromedp.CSS(selector), text))
	}
	login := func(code string) {
		t.Helper()
		enter("#name", "bo")
		enter("#password", password)
		enter("#code", code)
		v.click("#by-name button")
	}

	v.open(made.Link)
	v.sees("Set the password of bo")
	enter("#newPassword", password)
	enter("#newPassword2", password)
	v.click(".login button")
	v.sees("The password is set")
	login("")
	v.open("/outbox")
	v.sees("news of club")
	v.seesNot("news of store", "news of other", "Pause sending", "Gateways", "Status")

	v.open("/accounts")
	v.click(`a[href="/webhooks/account:club"]`)
	v.sees("account:club")

	v.click("#me")
	enter(`form[action="/me/totp"] input`, password)
	v.click("#enrol")
	v.sees("Scan this with your app")
	secret := regexp.MustCompile(`[A-Z2-7]{32}`).FindString(v.text())
	code := func(later time.Duration) string {
		t.Helper()
		code, err := totp.GenerateCode(secret, time.Now().Add(later))
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	enter("input[name=code]", code(0))
	v.click("#confirm-totp")
	v.sees("Your recovery codes")
	recovery := regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindString(v.text())

	v.click(".logout button")
	login(strings.ToUpper(recovery))
	v.open("/outbox")
	v.sees("news of club")
	v.open("/me") // the outbox refreshes itself, and would ask for the other account a last time
	v.do(chromedp.SetValue(chromedp.CSS(".choice select"), "store"))
	v.click(".choice button")
	v.sees("You act for the account store now")
	v.open("/outbox")
	v.sees("news of store")
	v.seesNot("news of club", "news of other")

	log, err := api.ListAudit.Do(t.Context(), client, api.AuditQuery{Who: "bo", PageSize: 100})
	if err != nil || len(log.Entries) < 5 {
		t.Fatalf("%+v, %v", log, err)
	}
	if who := log.Entries[0].Who; who.Kind != "person" || who.Session == "" {
		t.Errorf("%+v", who)
	}
}
