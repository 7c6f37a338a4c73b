package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/smtpsend"
)

// fakeReturns reads nothing, and says what it was given.
type fakeReturns struct{ *parts }

func (p fakeReturns) Receive(_ context.Context, mail io.Reader, to string) (bounce.Report, feedback.Outcome,
	error) {
	text, err := io.ReadAll(mail)
	if err != nil {
		return bounce.Report{}, feedback.Outcome{}, err
	}
	report := bounce.Report{
		Kind: bounce.Complained, Form: "arf", Feedback: &bounce.Feedback{Type: "abuse"}, Original: bounce.Original{
			MessageID: fmt.Sprint(len(text), " ", to)},
		Recipients: []bounce.Recipient{{Address: "ann@receiver.example", Action: bounce.ActionFailed,
			Status: "5.1.1", Code: 550, Diagnostic: "no", Verdict: smtpsend.Hard, Suppress: true}},
	}
	return report, feedback.Outcome{Result: feedback.Taken, Proof: feedback.ByToken, MessageID: "Q1",
		Recipients: []string{"Ann@receiver.example"}}, p.asked("Returns.Returned")
}

func TestReturnMail(t *testing.T) {
	t.Parallel()
	w := setup(t)
	got, err := api.ReturnMail.Do(t.Context(), w.client, bytes.NewReader([]byte("Subject: x\r\n\r\n")),
		api.ReturnOptions{EnvelopeTo: "bounces+t@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	want := api.ReturnedMail{
		Kind: "complained", Form: "arf", Result: "taken", Proof: "token", QueueID: "Q1",
		MessageID: "14 bounces+t@example.com", FeedbackType: "abuse",
		Recipients: []api.ReturnedRecipient{{Address: "ann@receiver.example", Action: "failed", Status: "5.1.1",
			Code: 550, Diagnostic: "no", Verdict: "hard", Suppress: true}},
		About: []string{"Ann@receiver.example"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	large := bytes.Repeat([]byte("x"), 3<<20)
	if got, err := api.ReturnMail.Do(t.Context(), w.client, bytes.NewReader(large), api.ReturnOptions{
		EnvelopeTo: ""}); err != nil || got.MessageID != fmt.Sprint(len(large), " ") {
		t.Errorf("3 MB: %+v, %v", got, err)
	}
}

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
		req.Header.Set("Authorization", "Bearer "+row.token)
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
