package testapi

import (
	"fmt"
	"io"
	"strings"
	"testing"

	gomail "github.com/emersion/go-message/mail"
)

// TestRefusedFields changes one thing in a good request and expects the provider's own error.
func TestRefusedFields(t *testing.T) {
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	for _, c := range []struct {
		provider, old, new string
		status             int
		said               string
	}{
		{"http", `"version": 1`, `"version": 2`, 422, "version"},
		{"http", `"account"`, `"acount"`, 422, "json"},
		{"http", `"raw": "`, `"raw": "%`, 422, "raw"},
		{"postmark", `"Subject"`, `"Subjekt"`, 422, `"ErrorCode":403`},
		{"postmark", `"TrackOpens": false`, `"TrackOpens": "no"`, 422, `"ErrorCode":403`},
		{"postmark", `{`, `[`, 422, `"ErrorCode":402`},
		{"postmark", `"outbound"`, `"none"`, 422, `"ErrorCode":1235`},
		{"postmark", `"None"`, `"none"`, 422, `"ErrorCode":300`},
		{"postmark", `01JDXAMPLE0001"`, strings.Repeat("x", 81) + `"`, 422, `"ErrorCode":300`},
		{"postmark", `ann@example.net`, many(51, "a@example.net"), 422, `"ErrorCode":300`},
		{"postmark", `ann@example.net`, ``, 422, "Zero recipients"},
		{"postmark", `Shop <shop@example.com>`, `Shop <shop>`, 422, "Invalid 'From'"},
		{"postmark", `"Name": "List-Unsubscribe"`, `"Name": "Subject"`, 422, "not allowed"},
		{"postmark", `"Tag": "orders"`, `"Attachments": [{"Name": "a", "ContentType": "a/b", "Content": "?"}]`, 422,
			"attachment"},
		{"resend", `"text"`, `"txt"`, 200, `"id"`},
		{"resend", `Shop <shop@example.com>`, `Shop`, 422, "invalid_from_address"},
		{"resend", `"ann@example.net"`, many(51, `"a@example.net"`), 422, "validation_error"},
		{"resend", `"subject"`, `"title"`, 422, "missing_required_field"},
		{"resend", `"value": "01JDXAMPLE0001"`, `"value": "a b"`, 422, "Tags"},
		{"resend", `"tags"`, `"attachments": [{"filename": "a.pdf"}], "tags"`, 422, "invalid_attachment"},
		{"mailjet", `"Subject"`, `"Subjekt"`, 400, "mj-0002"},
		{"mailjet", `"To"`, `"Cc"`, 400, "mj-0003"},
		{"mailjet", `"List-Unsubscribe"`, `"Message-ID"`, 400, "send-0011"},
		{"mailjet", `"TextPart"`, `"EventPayload": "x", "CustomCampaign"`, 200, "success"},
		{"mailjet", `01JDXAMPLE0001`, strings.Repeat("x", 65), 400, "mj-0005"},
		{"sendgrid", `"subject"`, `"subjekt"`, 400, "Bad Request"},
		{"sendgrid", `"text/plain"`, `"text/x"`, 400, "text/plain must be first"},
		{"sendgrid", `"List-Unsubscribe"`, `"Reply-To"`, 400, "reserved"},
		{"sendgrid", `"01JDXAMPLE0001"`, `7`, 400, "Bad Request"},
		{"sendgrid", `"orders"`, `"orders", "orders"`, 400, "categories"},
		{"sendgrid", `"to": [`, `"cc": [{"email": "ANN@example.net"}], "to": [`, 400, "more than once"},
		{"brevo", `"htmlContent"`, `"html"`, 400, "missing_parameter"},
		{"brevo", `5b0cf2f8-`, ``, 400, "UUID"},
		{"brevo", `"sender"`, `"from"`, 400, "sender is missing"},
		{"brevo", `"tags"`, `"attachment": [{"name": "a.exe", "content": "YQ=="}], "tags"`, 400, "file format"},
		{"ses", `"Raw"`, `"Rau"`, 400, "Raw content"},
		{"ses", `"01JDXAMPLE0001"`, `"a b"`, 400, "Invalid tag"},
		{"ses", `"ann@example.net"`, many(51, `"a@example.net"`), 400, "Recipient count"},
		{"mailgun", `ann@example.net`, `Ann`, 400, "'to' parameter"},
		{"mailgun", `From: Shop <shop@example.com>`, `X: y`, 400, "'from' parameter"},
		{"mailgun", `(file message.mime) `, ``, 400, "'message' parameter"},
		{"mailgun", `orders`, strings.Repeat("x", 17<<10), 400, "16kB"},
		{"sparkpost", `"recipients"`, `"rcpts"`, 422, "1400"},
		{"sparkpost", `From: Shop <shop@example.com>`, `X: y`, 422, "1300"},
		{"sparkpost", `ann@example.net`, `ann`, 400, "5002"},
		{"sparkpost", `"postroom_id": "`, `"postroom_id": "` + strings.Repeat("x", 1001), 400, "1000 bytes"},
		{"mandrill", `ann@example.net"`, `ann"`, 200, `"invalid"`},
		{"mandrill", `"async": false`, `"async": true`, 200, `"queued"`},
		{"mandrill", `"shop@example.com"`, `"shop"`, 200, `"invalid-sender"`},
		{"mandrill", `"to": [`, `"to": 7, "x": [`, 500, `"ValidationError"`},
	} {
		t.Run(fmt.Sprintf("%s/%.40s", c.provider, c.new), func(t *testing.T) {
			t.Parallel()
			s := start(t, c.provider)
			res, body, err := exchange(t, s, func(b string) string { return strings.Replace(b, c.old, c.new, 1) })
			if err != nil || res.StatusCode != c.status || !strings.Contains(body, c.said) {
				t.Errorf("%v, status %d, want %d with %s: %s", err, res.StatusCode, c.status, c.said, body)
			}
			if len(s.Delivered()) > 0 && c.status >= 400 {
				t.Error("it was delivered")
			}
		})
	}
}

// TestTexts: a recipient's mail has the texts of the request, even in a merge.
func TestTexts(t *testing.T) {
	for name, want := range map[string][]string{
		"postmark/accepted": {"Your order 1042", "Hello Ann, your order 1042 is on its way."},
		"resend/accepted":   {"Your order 1042", "Hello Ann, your order 1042 is on its way."},
		"mailjet/accepted":  {"Your order 1042", "Hello Ann, your order 1042 is on its way."},
		"sendgrid/accepted": {"Your order 1042", "Hello Ann, your order 1042 is on its way."},
		"brevo/accepted":    {"Your order 1042", "Hello Ann, your order 1042 is on its way."},
		"ses/accepted":      {"Your order 1042", "Hello Ann, your order 1042 is on its way.\r\n"},
		"mailgun/accepted":  {"Your order 1042", "Hello Ann, your order 1042 is on its way.\r\n"},

		"sendgrid/batch-accepted": {"Your order 1043", "Hello bob"},
		"mailgun/batch-accepted":  {"Your order 1043", "Hello bob"},
		"brevo/versions-accepted": {"Your order 1043", "Hello Ann, your order 1042 is on its way."},
		"ses/bulk-partial":        {"Your order 1043", "Hello bob"},
	} {
		t.Run(name, func(t *testing.T) {
			provider, _, _ := strings.Cut(name, "/")
			s := start(t, provider)
			if res, body := send(t, load(t, name).request(t, s, account(provider))); res.StatusCode > 202 {
				t.Fatal(body)
			}
			all := s.Delivered()
			got := all[min(1, len(all)-1)]
			r, err := gomail.CreateReader(strings.NewReader(string(got.MIME)))
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.NextPart()
			if err != nil {
				t.Fatal(err)
			}
			subject, _ := r.Header.Subject()
			if text, _ := io.ReadAll(p.Body); subject != want[0] || string(text) != want[1] {
				t.Errorf("%q, %q", subject, text)
			}
			if got.Header.Get("List-Unsubscribe") != "<https://mail.example.com/unsubscribe?t=abc>" {
				t.Errorf("header %v", got.Header)
			}
			if len(all) == 2 && got.To != "bob@example.org" || got.From != "shop@example.com" {
				t.Errorf("from %s to %s", got.From, got.To)
			}
		})
	}
}
