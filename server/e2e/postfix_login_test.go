package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestPostfixWithLoginAndReports sends through a real Postfix that requires TLS and a password, and requests
// a delivery report.
func TestPostfixWithLoginAndReports(t *testing.T) {
	t.Parallel()
	postfix := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Login: map[string]string{"shop": "open sesame"}})
	a := apptest.Run(t, map[string]string{})
	ctx, client := t.Context(), api.NewClient(a.URL(), a.Token(), nil)
	shop := api.Account{Account: "shop", Email: "shop@example.net", AccountTrouble: "hold",
		SMTP: &api.SMTPServer{
			Host: "127.0.0.1", Port: postfix.Port, Auth: &api.SMTPAuth{User: "shop", Pass: "open says me"},
			TLS: &api.SMTPTLS{CA: postfix.CA},
		}}
	if _, err := api.CreateAccount.Do(ctx, client, shop); err != nil {
		t.Fatal(err)
	}
	answer, err := api.Submit.Do(ctx, client, api.SubmitRequest{
		Account: "shop", To: api.Addresses{{Address: "ann@example.net"}}, Subject: "Reported", Text: "Hello",
		DSN: &api.DSN{ID: "env-4711", Return: "headers", Notify: []string{"success"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	// The password is wrong: the account is held, and the message waits without using up an attempt.
	apptest.Eventually(t, "the account is held", func() bool {
		info, err := api.GetAccount.Do(ctx, client, "shop")
		return err == nil && info.State == "held" && strings.Contains(info.LastError, "535")
	})
	apptest.Eventually(t, "the message waits for it", func() bool {
		m, err := api.GetMessage.Do(ctx, client, answer.QueueID)
		return err == nil && m.State == api.Delayed && m.AttemptsMade == 0 && strings.Contains(m.Reason, "held")
	})

	// With the right password it is sent. Postfix reports the recipient of the delivery and the envelope id.
	shop.SMTP.Auth.Pass = "open sesame"
	if _, err := api.UpdateAccount.Do(ctx, client, api.AccountPatch{SMTP: new(shop.SMTP)}, "shop"); err != nil {
		t.Fatal(err)
	}
	var mail, report string
	for _, file := range postfix.Wait(t, 2) {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of the test's own Postfix
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "multipart/report") {
			report = string(raw)
		} else {
			mail = string(raw)
		}
	}
	for _, want := range []string{"Original-Envelope-Id: env-4711", "Original-Recipient: rfc822;ann@example.net",
		"Action: delivered"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if !strings.Contains(mail, "ESMTPSA") || !strings.Contains(mail, "TLSv1.3") {
		t.Errorf("the mail did not come by TLS 1.3 and login:\n%s", mail)
	}
}
