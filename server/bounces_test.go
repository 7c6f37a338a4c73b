package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/signedtoken"
)

func TestReturnMail(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.parts.sent(t, "acme")
	path, err := w.parts.signed.ReturnPath(signedtoken.Token{MessageID: id, Account: "acme",
		Address: "rcpt@example.net"}, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	give := func(mail string, to string) api.ReturnedMail {
		t.Helper()
		got, err := api.ReturnMail.Do(t.Context(), w.client,
			strings.NewReader(strings.ReplaceAll(mail, "\n", "\r\n")), api.ReturnOptions{EnvelopeTo: to})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := api.ReturnedMail{
		Kind: "bounced", Form: "dsn", Result: "taken", Proof: "token", QueueID: id, MessageID: "1@example.com",
		ReportingMTA: "mx.receiver.example",
		Recipients: []api.ReturnedRecipient{{Address: "rcpt@example.net", Action: "failed", Status: "5.1.1",
			Code: 550, Diagnostic: "550 5.1.1 no", MTA: "mx.receiver.example", Verdict: "hard", Suppress: true}},
		About: []string{"rcpt@example.net"},
	}
	if diff := cmp.Diff(want, give(bounceMail, path)); diff != "" {
		t.Error(diff)
	}
	if got := give(bounceMail, ""); got.Result != "unproven" || got.QueueID != "" {
		t.Errorf("without the address that it came to: %+v", got)
	}
	if got := give(complaintMail, path); got.Kind != "complained" || got.FeedbackType != "abuse" {
		t.Errorf("a complaint: %+v", got)
	}
	if got := give(bounceMail+strings.Repeat("x", 3<<20), path); got.QueueID != id {
		t.Errorf("3 MB: %+v", got)
	}
}

const bounceMail = `From: MAILER-DAEMON@mx.receiver.example
To: sender@example.com
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.receiver.example

Final-Recipient: rfc822; rcpt@example.net
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx.receiver.example
Diagnostic-Code: smtp; 550 5.1.1 no

--b
Content-Type: text/rfc822-headers

Message-ID: <1@example.com>

--b--
`

const complaintMail = `From: fbl@mx.receiver.example
Content-Type: multipart/report; report-type=feedback-report; boundary=b

--b
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: FBL/1.0
Version: 1

--b
Content-Type: text/rfc822-headers

Message-ID: <1@example.com>

--b--
`

func TestReturnMailRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, row := range []struct {
		name, kind, body, token string
		want                    int
	}{
		{"nothing", "message/rfc822", "", adminToken, http.StatusBadRequest},
		{"JSON", "application/json", "{}", adminToken, http.StatusUnsupportedMediaType},
		{"a token bound to an account", "message/rfc822", "Subject: x\r\n\r\n", boundToken, http.StatusForbidden},
		{"no token", "message/rfc822", "Subject: x\r\n\r\n", "none", http.StatusUnauthorized},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+"/v1/bounces",
			strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", row.kind)
		req.Header.Set("Authorization", "Bearer "+w.parts.secret(row.token))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != row.want {
			t.Errorf("%s: %d, want %d", row.name, resp.StatusCode, row.want)
		}
	}
}
