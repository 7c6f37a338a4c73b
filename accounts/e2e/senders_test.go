package e2e_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// startAsking starts rivals whose instance sends mails to addresses, through the relay that is returned.
func startAsking(t *testing.T) (*rivals, *testsmtp.Server) {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	return startRivals(t, map[string]string{"smtp": relay.URL(), "from": "Mail <notices@mail.example>",
		"serviceUrl": "https://mail.example.com", "senders.mailAccount": "default"}), relay
}

// senderLink returns the token of the link in an email to an address.
func senderLink(t *testing.T, mail testsmtp.Message) string {
	t.Helper()
	text := strings.ReplaceAll(strings.ReplaceAll(string(mail.Data), "=\r\n", ""), "=3D", "=")
	_, token, _ := strings.Cut(text, "https://mail.example.com/sender?t=")
	token, _, _ = strings.Cut(token, "\r\n")
	if !slices.Equal(mail.To, []string{"ann@free.example"}) || token == "" ||
		!strings.Contains(text, "account a of") {
		t.Fatalf("%v %s", mail.To, text)
	}
	return token
}

// TestTheOwnerOfAnAddressVerifiesIt follows the mail to an address, its link and its button.
func TestTheOwnerOfAnAddressVerifiesIt(t *testing.T) {
	t.Parallel()
	r, relay := startAsking(t)
	ctx := t.Context()
	for range 2 {
		info, err := api.MailSender.Do(ctx, r.a, "a", "Ann@Free.example")
		if err != nil || info.Status != api.SenderPending || info.Mail == nil {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	if _, err := api.MailSender.Do(ctx, r.b, "a", "ann@free.example"); err == nil {
		t.Error("another account asked")
	}
	if _, err := api.VerifySender.Do(ctx, r.a, "a", "ann@free.example"); err == nil {
		t.Error("the DNS verified an address")
	}
	link := senderLink(t, relay.Wait(1)[0])
	page := "/sender?t=" + link
	for range 3 { // a scanner
		if status, body := apptest.AsRecipient(t, r.App, "GET", page, ""); status != 200 ||
			!strings.Contains(body, "ann@free.example") || !strings.Contains(body, `method="post" action="sender"`) {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, _ := apptest.AsRecipient(t, r.App, "POST", page, "action=look"); status != 400 {
		t.Errorf("a form without the button: %d", status)
	}
	if status, _ := apptest.AsRecipient(t, r.App, "GET", page[:len(page)-2], ""); status != 404 {
		t.Errorf("a link that was cut: %d", status)
	}
	as := mailFrom("ann@free.example", "bob@example.net")
	_, err := api.Submit.Do(ctx, r.a, as)
	refused(t, err, "SenderNotAllowed", "from")
	form := url.Values{"t": {link}, "action": {"confirm"}}.Encode()
	if status, body := apptest.AsRecipient(t, r.App, "POST", "/sender", form); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if _, err := api.Submit.Do(ctx, r.a, as); err != nil {
		t.Error(err)
	}
	r.relays["a"].Wait(1)
	list, err := api.ListSenders.Do(ctx, r.a, "a")
	if err != nil || !slices.ContainsFunc(list.Senders, func(s api.SenderInfo) bool {
		return s.Sender == "ann@free.example" && s.Status == api.SenderVerified && s.By == api.SenderByMail
	}) {
		t.Errorf("%+v, %v", list, err)
	}
	log, err := api.ListAudit.Do(ctx, r.admin, api.AuditQuery{})
	if err != nil || !slices.ContainsFunc(log.Entries, func(e api.AuditEntry) bool {
		return e.Action == "POST /sender" && e.Result == api.AuditDone && e.Object != nil && e.Object.ID == "a"
	}) {
		t.Errorf("not in the audit log: %+v, %v", log, err)
	}
	if relay.Count() != 1 {
		t.Errorf("%d mails", relay.Count())
	}
}

// TestAnAccountCannotReadTheMailToItsSender covers what a bound token could learn the link from.
func TestAnAccountCannotReadTheMailToItsSender(t *testing.T) {
	t.Parallel()
	r, relay := startAsking(t)
	if _, err := api.MailSender.Do(t.Context(), r.a, "a", "ann@free.example"); err != nil {
		t.Fatal(err)
	}
	relay.Wait(1)
	r.silent(t)
	mine, err := api.ListMessages.Do(t.Context(), r.a, api.LogQuery{})
	if err != nil || len(mine.Messages) != 0 {
		t.Errorf("account a sees %+v, %v", mine, err)
	}
	all, err := api.ListMessages.Do(t.Context(), r.admin, api.LogQuery{})
	if err != nil || len(all.Messages) != 1 || all.Messages[0].Account != "default" {
		t.Errorf("the operator sees %+v, %v", all, err)
	}
}
