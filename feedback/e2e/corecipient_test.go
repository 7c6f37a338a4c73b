package e2e_test

import (
	"fmt"
	"net/smtp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// forged is an email to the bounce listener: what a recipient can write that has the message.
func forged(about, kind, messageID string) string {
	fields := "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; " +
		about + "\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 no such user\n"
	report := "delivery-status"
	if kind != "" {
		report = "feedback-report"
		fields = "Content-Type: message/feedback-report\n\nFeedback-Type: " + kind +
			"\nUser-Agent: x/1\nVersion: 1\nOriginal-Rcpt-To: " + about + "\n"
	}
	return strings.ReplaceAll("From: MAILER-DAEMON@mx.example\nSubject: Undelivered\n"+
		"Content-Type: multipart/report; report-type="+report+"; boundary=b\n\n--b\n"+fields+"\n--b\nContent-Type: message/rfc822\n\nMessage-ID: "+
		messageID+"\nTo: "+about+"\n\nx\n--b--\n", "\n", "\r\n")
}

// A recipient of a message to two forges bounces and complaints of the other one, in each way and for two
// messages. That suppresses nobody but the recipient itself, and only for the account that sent.
func TestNobodySpeaksForACoRecipient(t *testing.T) {
	t.Parallel()
	const mallory, victim, returns = "mallory@example.net", "victim@example.net", "returns@example.com"
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{
		"smtp": "smtp://" + relay.Addr(), "from": "Shop <shop@example.com>", "bounce.domain": "bounce.example.com",
		"bounce.address": returns, "bounce.listen": "127.0.0.1:0",
	})
	client := api.NewClient(a.URL(), a.Token(), nil)
	bring := func(to, mail string) {
		t.Helper()
		if err := smtp.SendMail(a.Addrs().Bounce, nil, "", []string{to}, []byte(mail)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := api.CreateAccount.Do(t.Context(), client, api.Account{
		Account: "rival", Email: "rival@example.org",
		SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()},
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := relay.Count()
		sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Subject: "Hello", Text: "Hello",
			To: api.Addresses{{Address: mallory}, {Address: victim}}})
		if err != nil {
			t.Fatal(err)
		}
		from := map[string]string{}
		for seen := len(from); len(from) < 2; seen++ {
			m := relay.Wait(before + seen + 1)[before+seen]
			if len(m.To) != 1 {
				t.Errorf("%v share a return path", m.To)
			}
			for _, to := range m.To {
				from[to] = m.From
			}
		}
		for _, kind := range []string{"", "abuse", "opt-out"} {
			bring(from[mallory], forged(victim, kind, sent.MessageID))
			bring(returns, forged(victim, kind, sent.MessageID))
		}
		bring(from[mallory], forged(mallory, "", sent.MessageID))
	}
	awaitHard(t, client, mallory) // the last fact: all others were applied before
	page, err := api.ListSuppressions.Do(t.Context(), client, api.SuppressionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range page.Suppressions {
		if s.Email != mallory || s.Account != "default" {
			t.Errorf("suppressed: %+v", s)
		}
	}
	sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		Account: "rival", Subject: "Hello", Text: "Hello",
		To: api.Addresses{{Address: mallory}},
	})
	if err != nil || sent.Skipped != nil {
		t.Errorf("the other account may not mail: %+v, %v", sent, err)
	}
}

func awaitHard(t *testing.T, client *api.Client, address string) {
	t.Helper()
	var seen string
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
		page, err := api.ListSuppressions.Do(t.Context(), client, api.SuppressionQuery{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		seen = fmt.Sprintf("%+v", page.Suppressions)
		for _, s := range page.Suppressions {
			if s.Reason == "hard_bounce" {
				return
			}
		}
	}
	t.Fatalf("%s is not suppressed: %s", address, seen)
}
