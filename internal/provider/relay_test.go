package provider

import (
	"encoding/json"
	"testing"
)

func TestOfRelay(t *testing.T) {
	for host, want := range map[string]Name{
		"email-smtp.eu-west-1.amazonaws.com":      SES,
		"email-smtp-fips.us-east-1.amazonaws.com": SES,
		"Email-SMTP.eu-west-1.amazonaws.com.":     SES,
		"ec2-1-2-3-4.compute-1.amazonaws.com":     "",
		"smtp.sendgrid.net":                       SendGrid,
		"smtp.eu.sendgrid.net":                    SendGrid,
		"smtp.mailgun.org":                        Mailgun,
		"smtp.eu.mailgun.org":                     Mailgun,
		"smtp.postmarkapp.com":                    Postmark,
		"smtp-broadcasts.postmarkapp.com":         Postmark,
		"in-v3.mailjet.com":                       Mailjet,
		"smtp.sparkpostmail.com":                  SparkPost,
		"smtp.eu.sparkpostmail.com":               SparkPost,
		"smtp-relay.brevo.com":                    Brevo,
		"smtp-relay.sendinblue.com":               Brevo,
		"smtp.resend.com":                         Resend,
		"smtp.mandrillapp.com":                    Mandrill,
		"smtp.example.com":                        "",
		"evilsendgrid.net":                        "",
		"smtp.sendgrid.net.example.com":           "",
		"127.0.0.1":                               "",
		"":                                        "",
	} {
		got, ok := OfRelay(host)
		if got != want || ok != (want != "") {
			t.Errorf("OfRelay(%q) = %q, %v; want %q", host, got, ok, want)
		}
	}
}

func TestAnsweredID(t *testing.T) {
	const ses = "0102018c8e1b7f3a-6a3e5a5c-9b1d-4c4f-8a0e-2f1f6d7c8b9a-000000"
	for _, row := range []struct {
		name  string
		of    Name
		reply string
		want  string
	}{
		{"SES", SES, "250 Ok " + ses, ses},
		{"SES, the text alone", SES, "Ok " + ses, ses},
		{"SES, something else", SES, "250 Ok thank you", ""},
		{"SendGrid", SendGrid, "250 Ok: queued as nhIMmON9SFOPcT0ii4nt2A", "nhIMmON9SFOPcT0ii4nt2A"},
		{"SendGrid, no id", SendGrid, "250 Ok", ""},
		{"SendGrid, refused", SendGrid, "550 queued as nothing", ""},
		{"Mailgun", Mailgun, "250 Great success", ""},
		{"Mailjet", Mailjet, "250 OK queued as A08B7F37-ed61-423a-ba75-38ed2fd4b54c",
			"a08b7f37-ed61-423a-ba75-38ed2fd4b54c"},
		{"Mailjet, a queue id", Mailjet, "250 OK queued as 2D3F", ""},
		{"Brevo", Brevo, "250 2.0.0 OK: queued as <202611212130.4711@smtp-relay.mailin.fr>",
			"202611212130.4711@smtp-relay.mailin.fr"},
		{"Postmark, its front", Postmark, "250 2.0.0 Ok: queued as 6A59", ""},
		{"Postmark, its own id", Postmark, "250 2.0.0 Ok: b7bc2f4a-e38e-4336-af7d-e6c392c2f817",
			"b7bc2f4a-e38e-4336-af7d-e6c392c2f817"},
		{"Resend", Resend, "250 56761188-7520-42d8-8898-ff6fc54ce618", "56761188-7520-42d8-8898-ff6fc54ce618"},
		{"SparkPost", SparkPost, "250 2.0.0 OK 000443ee14578172be22", "000443ee14578172be22"},
		{"SparkPost, its front", SparkPost, "250 2.0.0 OK 67/1B-33150-CC6E6455", ""},
		{"generic, Postfix", Generic, "250 2.0.0 Ok: queued as 4XdR2s1Q", "4XdR2s1Q"},
		{"nobody", "nobody", "250 2.0.0 Ok: queued as 4XdR2s1Q", ""},
	} {
		if got := AnsweredID(row.of, row.reply); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestReference(t *testing.T) {
	for _, row := range []struct {
		of       Name
		id, want string
	}{
		{SES, "0102", "ses:0102"},
		{Brevo, " <a@b> ", "brevo:a@b"},
		{Mailjet, "A08B7F37-ed61-423a-ba75-38ed2fd4b54c", "mailjet:a08b7f37-ed61-423a-ba75-38ed2fd4b54c"},
		{SendGrid, "nhIMmON9SFOPcT0ii4nt2A", "sendgrid:nhIMmON9SFOPcT0ii4nt2A"},
		{SES, "", ""},
		{SES, "<>", ""},
	} {
		if got := Reference(row.of, row.id); got != row.want {
			t.Errorf("Reference(%s, %q) = %q, want %q", row.of, row.id, got, row.want)
		}
	}
}

// What Echo attaches comes back in the provider's own form, and is found.
func TestEchoComesBack(t *testing.T) {
	const id = "01ARZ3NDEKTSV4RRFFQ69G5F00"
	told := map[Name]string{
		SES: sns(t, `{"eventType":"Delivery","mail":{"messageId":"m","tags":{"postroom_id":["`+id+
			`"]}},"delivery":{"recipients":["a@b.example"]}}`),
		SendGrid: `[{"event":"delivered","email":"a@b.example","sg_event_id":"1","sg_message_id":"2.3","timestamp":1700000000,"postroom_id":"` + id + `"}]`,
		Mailgun:  `{"signature":{},"event-data":{"event":"delivered","id":"1","timestamp":1700000000,"recipient":"a@b.example","user-variables":{"postroom_id":"` + id + `"}}}`,
		Postmark: `{"RecordType":"Delivery","MessageID":"m","Recipient":"a@b.example","DeliveredAt":"2026-01-02T03:04:05Z","Metadata":{"postroom_id":"` + id + `"}}`,
		Mailjet: `{"event":"sent","time":1700000000,"MessageID":12,"email":"a@b.example","CustomID":"` + id +
			`"}`,
		SparkPost: `[{"msys":{"message_event":{"type":"delivery","event_id":"1","rcpt_to":"a@b.example","rcpt_meta":{"postroom_id":"` + id + `"}}}}]`,
		Mandrill:  `[{"event":"open","ts":1700000000,"msg":{"_id":"1","email":"a@b.example","metadata":{"postroom_id":"` + id + `"}}}]`,
		Brevo:     `{"event":"delivered","email":"a@b.example","ts_epoch":1700000000000,"X-Mailin-custom":"{\"postroom_id\": \"` + id + `\"}"}`,
	}
	for _, name := range Names() {
		header, value, ok := Echo(name, id)
		body, expected := told[name]
		if ok != expected {
			t.Errorf("%s: a header %v", name, ok)
			continue
		}
		if !ok {
			continue
		}
		if header == "" || value == "" {
			t.Errorf("%s: header %q, value %q", name, header, value)
		}
		if value[0] == '{' && !json.Valid([]byte(value)) {
			t.Errorf("%s: %s is not JSON", name, value)
		}
		if e := readOne(t, name, body); e.Echoed() != id {
			t.Errorf("%s: told back %q of %+v", name, e.Echoed(), e.Metadata)
		}
	}
	if e := (&Event{Provider: Resend}); e.Echoed() != "" {
		t.Error("nothing was told back")
	}
}
