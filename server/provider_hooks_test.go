package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/outbox/suppression"
)

// eventOf is what each kind becomes on a timeline.
var eventOf = map[provider.Kind]string{
	provider.Delivered: "messageDelivered", provider.Deferred: "messageDeferred",
	provider.Bounced: "messageBounce", provider.Dropped: "messageBounce",
	provider.Complained: "messageComplaint", provider.Unsubscribed: "listUnsubscribe",
	provider.Opened: "trackOpen", provider.Clicked: "trackClick", provider.Accepted: "messageReported",
}

// barredBy are the reasons of the suppressions that fixtures make. The others make none.
var barredBy = map[string]suppression.Reason{
	"ses/bounce_event.json": "hard_bounce", "ses/complaint_event.json": "spam_report",
	"sendgrid/bounce_event.json": "hard_bounce", "sendgrid/dropped_invalid_event.json": "hard_bounce",
	"mailgun/dropped_bounce.json": "hard_bounce", "mailgun/failed_permanent_event.json": "hard_bounce",
	"mailgun/invalid_mailbox.json": "hard_bounce", "mailgun/unsubscribed_event.json": "unsubscribe",
	"postmark/bounce_event.json": "hard_bounce", "postmark/spam_event.json": "spam_report",
	"postmark/unsubscribe.json":  "unsubscribe",
	"mailjet/blocked_event.json": "hard_bounce", "mailjet/unsub_event.json": "unsubscribe",
	"sparkpost/bounce_event.json": "hard_bounce",
	"brevo/complaint.json":        "spam_report", "brevo/hard_bounce.json": "hard_bounce",
	"mandrill/hard_bounce_event.json": "hard_bounce",
	"brevo/spam.json":                 "spam_report", "resend/hard_bounced_event.json": "hard_bounce",
}

// TestProvidersTellOfMessages posts every fixture of every provider with its signature. A tampered one is
// refused. A genuine one, posted twice, is once on the timeline of its message, and makes its suppressions.
func TestProvidersTellOfMessages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../internal/provider/testdata/fixtures/*/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	byProvider := map[provider.Name][]string{}
	for _, path := range files {
		name := provider.Name(filepath.Base(filepath.Dir(path)))
		byProvider[name] = append(byProvider[name], path)
	}
	for name, paths := range byProvider {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			o, s := openOffice(t)
			for _, path := range paths {
				t.Run(filepath.Base(path), func(t *testing.T) {
					checkFixture(t, o, s, name, string(name)+"/"+filepath.Base(path), loadPayload(t, path))
				})
			}
		})
	}
}

func loadPayload(t *testing.T, path string) any {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fixture struct {
		Payload any `json:"payload"`
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&fixture); err != nil {
		t.Fatal(err)
	}
	return fixture.Payload
}

// counted is how many facts of a provider were applied, and how many were known.
func (o *office) counted(t *testing.T, name provider.Name) (applied, duplicates int64) {
	t.Helper()
	status, err := api.GetFeedback.Do(t.Context(), o.client)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range status.Sources {
		if source.Source == string(name) {
			return source.Applied, source.Duplicates
		}
	}
	return 0, 0
}

func checkFixture(t *testing.T, o *office, s *signer, name provider.Name, row string, payload any) {
	first, err := provider.Read(name, s.sign(t, name, payload))
	if err != nil {
		t.Fatal(err)
	}
	to := []string{"ann@example.com"}
	var wanted []string
	for i, e := range first.Events {
		if i == 0 && e.Recipient != "" {
			to = nil
		}
		if e.Recipient != "" && !slices.Contains(to, e.Recipient) {
			to = append(to, e.Recipient)
		}
	}
	for _, e := range first.Events {
		who := e.Recipient
		if who == "" && len(e.Candidates) == 0 {
			who = strings.Join(to, " ")
		}
		wanted = append(wanted, eventOf[e.Kind]+" "+who)
	}
	id := o.send(t, "", to...)
	appliedBefore, duplicatesBefore := o.counted(t, name)
	request := s.sign(t, name, attach(t, name, payload, id))
	if status, _ := o.post(t, name, tampered(request, name)); status != http.StatusUnauthorized {
		t.Errorf("tampered: %d, want 401", status)
	}
	for range 2 {
		status, receipt := o.post(t, name, request)
		if status != http.StatusOK || receipt.Accepted != len(wanted) || receipt.Broken != 0 {
			t.Fatalf("%d %+v, want %d accepted", status, receipt, len(wanted))
		}
	}
	o.eventually(t, "all that was told twice is applied once", func() bool {
		applied, duplicates := o.counted(t, name)
		return applied == appliedBefore+int64(len(wanted)) && duplicates == duplicatesBefore+int64(len(wanted))
	})
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, o.learnt(t, id, string(name))); diff != "" {
		t.Error(diff)
	}
	for _, one := range to {
		if got := o.barredFor(t, one); got != barredBy[row] {
			t.Errorf("%s is barred for %q, want %q", one, got, barredBy[row])
		}
		for _, scope := range []string{"", accounts.DefaultID} { // the next one may be about the same address
			if _, err := o.barred.Remove(t.Context(), suppression.Entry{Address: one, Account: scope}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What the relay answered is what the provider's webhooks call the message by.
func TestProvidersTellByTheirOwnIDs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name        provider.Name
		host, reply string
		messageID   string // the message's; empty for one of ours
		payload     func(messageID string) any
	}{
		{provider.SES, "email-smtp.eu-west-1.amazonaws.com:587",
			"250 Ok 0102018c8e1b7f3a-6a3e5a5c-9b1d-4c4f-8a0e-2f1f6d7c8b9a-000000", "", func(string) any {
				return object{"Type": "Notification", "MessageId": "1", "Message": `{"eventType":"Complaint","mail":{"messageId":"0102018c8e1b7f3a-6a3e5a5c-9b1d-4c4f-8a0e-2f1f6d7c8b9a-000000"},
				"complaint":{"complainedRecipients":[{"emailAddress":"ann@example.com"}]}}`}
			}},
		{provider.SendGrid, "smtp.sendgrid.net:587", "250 Ok: queued as nhIMmON9SFOPcT0ii4nt2A",
			"<own@elsewhere.example>", func(string) any {
				return []any{object{"event": "spamreport", "email": "ann@example.com",
					"sg_message_id": "nhIMmON9SFOPcT0ii4nt2A.filter0077p1las1.1.2.0", "timestamp": 1461095250}}
			}},
		{provider.Mailjet, "in-v3.mailjet.com:587", "250 OK queued as a08b7f37-ed61-423a-ba75-38ed2fd4b54c", "",
			func(string) any {
				return object{"event": "spam", "email": "ann@example.com", "MessageID": 12,
					"Message_GUID": "a08b7f37-ed61-423a-ba75-38ed2fd4b54c", "time": 1498093527}
			}},
		{provider.Brevo, "smtp-relay.brevo.com:587",
			"250 2.0.0 OK: queued as <202611212130.1@smtp-relay.mailin.fr>", "", func(string) any {
				return object{"event": "spam", "email": "ann@example.com",
					"message-id": "<202611212130.1@smtp-relay.mailin.fr>", "ts_epoch": 1763719200000}
			}},
		{provider.Mailgun, "smtp.mailgun.org:587", "250 Great success", "<own@elsewhere.example>",
			func(id string) any {
				return object{"event-data": object{"event": "complained", "id": "x", "timestamp": 1763719200.5,
					"recipient": "ann@example.com", "message": object{
						"headers": object{"message-id": strings.Trim(id, "<>")}}}}
			}},
		{provider.Mailgun, "smtp.mailgun.org:587", "250 Great success", "", func(id string) any {
			return object{"event-data": object{"event": "complained", "id": "x", "timestamp": 1763719200.5,
				"recipient": "ann@example.com", "message": object{
					"headers": object{"message-id": strings.Trim(id, "<>")}}}}
		}},
	} {
		t.Run(string(row.name)+" "+row.reply, func(t *testing.T) {
			t.Parallel()
			o, s := openOffice(t)
			o.relay.host, o.relay.reply = row.host, row.reply
			id := o.send(t, row.messageID, "ann@example.com")
			m, err := api.GetLoggedMessage.Do(t.Context(), o.client, id)
			if err != nil {
				t.Fatal(err)
			}
			if status, receipt := o.post(t, row.name,
				s.sign(t, row.name, row.payload(m.MessageID))); status != http.StatusOK || receipt.Accepted != 1 {
				t.Fatalf("%d %+v", status, receipt)
			}
			o.eventually(t, "the complaint is on the timeline",
				func() bool { return len(o.learnt(t, id, string(row.name))) == 1 })
			o.eventually(t, "ann is barred",
				func() bool { return o.barredFor(t, "ann@example.com") == suppression.SpamReport })
		})
	}
}
