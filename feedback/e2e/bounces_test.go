package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestPostfixSendsMailBack sends a message to a valid and an invalid address through a real Postfix. Postfix
// accepts it and then bounces it to the return path. The invalid address is suppressed, and the message's
// timeline shows it.
func TestPostfixSendsMailBack(t *testing.T) {
	t.Parallel()
	port, socket := testkit.FreePort(t), filepath.Join("/tmp", fmt.Sprintf("postroom-lmtp-%d.sock",
		testkit.FreePort(t)))
	for name, way := range map[string]struct{ setting, value, transport string }{
		"over SMTP": {"bounce.listen", fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("smtp:[127.0.0.1]:%d", port)},
		"over LMTP": {"bounce.lmtp", socket, "lmtp:unix:" + socket},
	} {
		t.Run(name, func(t *testing.T) {
			postfix := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Users: []string{"ann"},
				Transports: map[string]string{
					"bounce.example.com": way.transport}})
			a := apptest.Run(t, map[string]string{
				"smtp": fmt.Sprintf("smtp://127.0.0.1:%d", postfix.Port), "from": "Shop <shop@example.com>",
				"bounce.domain": "bounce.example.com", way.setting: way.value,
			})
			client := api.NewClient(a.URL(), a.Token(), nil)
			for _, kind := range []string{"soft", "hard"} { // the second confirms the first
				sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
					To: api.Addresses{{Address: "ann@example.net"}, {Address: "nobody@example.net"}}, Subject: "Hello",
					Text: "Hello",
				})
				if err != nil {
					t.Fatal(err)
				}
				bounced := awaitEvent(t, client, sent.QueueID, "messageBounce", postfix.Log)
				if !slices.Equal(bounced.Recipients, []string{"nobody@example.net"}) || bounced.Details == nil ||
					bounced.Details.BounceType != kind || bounced.Details.Status != "5.1.1" ||
					bounced.Details.Source != "bounce" {
					t.Errorf("the bounce reads %+v, %+v", bounced, bounced.Details)
				}
			}
			awaitSuppressed(t, client, "nobody@example.net")
			again, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
				To: api.Addresses{{Address: "nobody@example.net"}}, Subject: "Again", Text: "Again"})
			if err != nil || again.Skipped == nil {
				t.Errorf("the dead address is mailed again: %+v, %v", again, err)
			}
			refuseStrangers(t, a)
		})
	}
}

// awaitEvent waits until a message has an event.
func awaitEvent(t *testing.T, client *api.Client, id, name string, log func() string) api.MessageEvent {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		story, err := api.ListMessageEvents.Do(t.Context(), client, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range story.Events {
			if e.Event == name {
				return e
			}
		}
		if time.Now().After(late) {
			t.Fatalf("no %s in %+v\n%s", name, story.Events, log())
		}
	}
}

func awaitSuppressed(t *testing.T, client *api.Client, address string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		page, err := api.ListSuppressions.Do(t.Context(), client, api.SuppressionQuery{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Suppressions) > 0 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s is not suppressed", address)
		}
	}
}

// refuseStrangers checks that the bounce listener refuses mail for other recipients.
func refuseStrangers(t *testing.T, a *app.App) {
	t.Helper()
	network, address, hello := "tcp", a.Addrs().Bounce, "EHLO x\r\n"
	if address == "" {
		network, address, hello = "unix", a.Addrs().BounceLMTP, "LHLO x\r\n"
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	said := hello + "MAIL FROM:<>\r\nRCPT TO:<ann@victim.example>\r\nRCPT TO:<bounces+caazg@bounce.example.com>\r\nQUIT\r\n"
	if _, err := conn.Write([]byte(said)); err != nil {
		t.Fatal(err)
	}
	told, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(told), "550 5.7.1 ") || !strings.Contains(string(told), "550 5.1.1 ") {
		t.Errorf("strangers are told %q", string(told))
	}
}

// TestFactsOutliveTheLog: with no email log at all, facts still suppress the recipients, and no one else.
// They are bounces of messages to two by one's return path, and a provider's webhook.
func TestFactsOutliveTheLog(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{
		"smtp": "smtp://" + relay.Addr(), "from": "Shop <shop@example.com>", "bounce.domain": "bounce.example.com",
		"messages.retention": "0s", "feedback.providers.generic": "a secret of some length",
	})
	client := api.NewClient(a.URL(), a.Token(), nil)
	sends := 0
	send := func(to ...string) (froms map[string]string, messageID string) {
		var all api.Addresses
		for _, address := range to {
			all = append(all, api.Address{Address: address})
		}
		sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{To: all, Subject: "Hello", Text: "Hello"})
		if err != nil {
			t.Fatal(err)
		}
		sends += len(to)
		froms = map[string]string{}
		for _, m := range relay.Wait(sends)[sends-len(to):] {
			froms[m.To[0]] = m.From
		}
		for err == nil { // until its end is recorded, and nothing is known of it
			_, err = api.ListMessageEvents.Do(t.Context(), client, sent.QueueID)
		}
		return froms, sent.MessageID
	}
	bounce := func(from, address string) {
		mail := "From: <>\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n" +
			"--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx\r\n\r\n" +
			"Final-Recipient: rfc822; " + address + "\r\nAction: failed\r\nStatus: 5.1.1\r\n" +
			"Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n--b--\r\n"
		got, err := api.ReturnMail.Do(t.Context(), client, strings.NewReader(mail),
			api.ReturnOptions{EnvelopeTo: from})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(got.Result, got.About)
	}
	for range 2 {
		from, _ := send("ann@example.net", "bob@example.net")
		bounce(from["ann@example.net"], "bob@example.net")
		bounce(from["bob@example.net"], "victim@example.net")
		bounce(from["bob@example.net"], "bob@example.net")
	}
	awaitSuppressed(t, client, "bob@example.net")

	from, messageID := send("eve@example.net")
	bounce(from["eve@example.net"], "victim@example.net")
	body := fmt.Sprintf(`[{"id":"1","type":"complained","recipient":"victim@example.net","messageId":%[1]q},
		{"id":"2","type":"complained","recipient":"eve@example.net","messageId":%[1]q}]`, messageID)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		a.URL()+"/webhooks/provider/generic", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Webhook-Token", "a secret of some length")
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	awaitSuppressed(t, client, "eve@example.net")
	page, err := api.ListSuppressions.Do(t.Context(), client, api.SuppressionQuery{})
	if err != nil || len(page.Suppressions) != 2 {
		t.Errorf("suppressed: %+v, %v", page.Suppressions, err)
	}
}
