package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/provider"
)

// fakeFeedback is feedback that takes everything of Postmark.
type fakeFeedback struct{ parts *parts }

func (f *fakeFeedback) Provider(_ context.Context, name provider.Name, r provider.Request, _ time.Time) (
	api.FeedbackReceipt, error) {
	if err := f.parts.asked("Feedback.Provider " + string(name) + " " + string(r.Body) + r.Query.Get("token") +
		r.Header.Get("X-Webhook-Token")); err != nil {
		return api.FeedbackReceipt{}, err
	}
	return api.FeedbackReceipt{Accepted: 2, Ignored: 1}, nil
}

func (f *fakeFeedback) Status(context.Context) (api.FeedbackStatus, error) {
	return api.FeedbackStatus{Sources: []api.FeedbackSource{{Source: "ses"}},
		Reconciliation: []api.FeedbackReconciliation{}}, f.parts.asked("Feedback.Status")
}

// tell posts a webhook as it stands, without a token.
func (w *world) tell(t *testing.T, path, contentType string, body []byte) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Webhook-Token", "|of the header")
	// a body that is refused unread is not sent, or the answer might be lost in the reset connection
	r.Header.Set("Expect", "100-continue")
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		ExpectContinueTimeout: time.Minute}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer, text.String()
}

// A webhook goes on as it came: its bytes, its query, its header, whatever it says it is.
func TestProviderHookPassesBytesOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for path, want := range map[string]string{
		"/webhooks/provider/postmark?token=s": "Feedback.Provider postmark {\"a\" :  1}\ns|of the header",
		"/webhooks/provider":                  "Feedback.Provider generic {\"a\" :  1}\n|of the header",
	} {
		answer, text := w.tell(t, path, "text/plain; charset=UTF-8", []byte("{\"a\" :  1}\n"))
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" &&
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json;") {
			t.Errorf("%s: %d %s %s", path, answer.StatusCode, answer.Header.Get("Content-Type"), text)
		}
		var receipt api.FeedbackReceipt
		if err := json.Unmarshal([]byte(text), &receipt); err != nil || receipt.Accepted != 2 ||
			receipt.Ignored != 1 {
			t.Errorf("%s: %s (%v)", path, text, err)
		}
		if last := w.parts.calls[len(w.parts.calls)-1]; last != want {
			t.Errorf("asked %q, want %q", last, want)
		}
	}
}

func TestProviderHookAnswersWhatProvidersUnderstand(t *testing.T) {
	t.Parallel()
	limited := fault.New(fault.Limited, "RedisAway", "away")
	limited.RetryAfter = time.Minute
	for _, row := range []struct {
		name   string
		err    error
		status int
	}{
		{"not proven", fault.New(fault.Unauthorized, "SignatureMismatch", "no"), http.StatusUnauthorized},
		{"no such provider", fault.New(fault.NotFound, "ProviderUnknown", "no"), http.StatusNotFound},
		{"not its body", fault.New(fault.Invalid, "ProviderBody", "no"), http.StatusBadRequest},
		{"too many events", fault.New(fault.TooLarge, "ProviderBody", "no"), http.StatusRequestEntityTooLarge},
		{"Redis away", fault.New(fault.Unavailable, "RedisAway", "no"), http.StatusServiceUnavailable},
		{"Redis away, for Brevo", limited, http.StatusTooManyRequests},
	} {
		w := setup(t)
		w.parts.failWith(row.err)
		answer, text := w.tell(t, "/webhooks/provider/ses", "application/json", []byte("{}"))
		if answer.StatusCode != row.status {
			t.Errorf("%s: %d %s, want %d", row.name, answer.StatusCode, text, row.status)
		}
		if again := answer.Header.Get("Retry-After"); (row.status == 429 || row.status == 503) == (again == "") {
			t.Errorf("%s: Retry-After %q", row.name, again)
		}
	}
}

func TestProviderHookIsBounded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answer, text := w.tell(t, "/webhooks/provider/ses", "application/json", make([]byte, provider.MaxBody+1))
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	answer, text = w.tell(t, "/webhooks/provider/ses", "application/json", make([]byte, provider.MaxBody))
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the largest body: %d %s", answer.StatusCode, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+"/webhooks/provider/ses", zeros{})
	if err != nil {
		t.Fatal(err)
	}
	endlessAnswer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err == nil {
		endlessAnswer.Body.Close()
		if endlessAnswer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("an endless body: %d", endlessAnswer.StatusCode)
		}
	}
	for _, call := range w.parts.calls {
		if len(call) > provider.MaxBody+1000 {
			t.Error("a body beyond the limit was handed on")
		}
	}
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
