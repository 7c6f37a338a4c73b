package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
)

// tell posts a webhook without a token of the API.
func (w *world) tell(t *testing.T, path string, header http.Header, body []byte) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
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

// TestProviderHookPassesBytesOn: a webhook is passed on with its bytes, query and header, whatever its
// Content-Type.
func TestProviderHookPassesBytesOn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	s, err := newSigner()
	if err != nil {
		t.Fatal(err)
	}
	signed := s.sign(t, provider.Resend, object{"type": "contact.created", "data": object{"a": "<>"}})
	for _, row := range []struct {
		path, body string
		header     http.Header
		ignored    int
	}{
		{"/webhooks/provider/postmark?token=" + url.QueryEscape(hookSecret), "{\"RecordType\" :  \"Inbound\"}\n",
			nil, 1},
		{"/webhooks/provider", "[]", http.Header{"X-Webhook-Token": {hookSecret}}, 0},
		{"/webhooks/provider/resend", string(signed.Body), signed.Header, 1},
	} {
		header := row.header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Content-Type", "text/plain; charset=UTF-8")
		answer, text := w.tell(t, row.path, header, []byte(row.body))
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" &&
			!strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json;") {
			t.Errorf("%s: %d %s %s", row.path, answer.StatusCode, answer.Header.Get("Content-Type"), text)
		}
		var receipt api.FeedbackReceipt
		if err := json.Unmarshal([]byte(text), &receipt); err != nil || receipt.Accepted != 0 ||
			receipt.Ignored != row.ignored {
			t.Errorf("%s: %s (%v)", row.path, text, err)
		}
	}
}

func TestProviderHookAnswersWhatProvidersUnderstand(t *testing.T) {
	t.Parallel()
	w := setup(t)
	event := `{"type":"delivered","recipient":"a@example.com","messageId":"<1@example.com>"}`
	events := "[" + strings.Repeat(event+",", provider.MaxEvents) + event + "]"
	brevo := `{"event":"delivered","email":"a@example.com","message-id":"<1@example.com>","ts_epoch":1763719200000}`
	for _, row := range []struct {
		name, path, secret, body string
		fail                     error
		status                   int
	}{
		{"not proven", "ses", hookSecret, "{}", nil, http.StatusUnauthorized},
		{"another secret", "generic", "no secret of ours", event, nil, http.StatusUnauthorized},
		{"no such provider", "pigeons", hookSecret, "{}", nil, http.StatusNotFound},
		{"not its body", "generic", hookSecret, "no JSON", nil, http.StatusBadRequest},
		{"too many events", "generic", hookSecret, events, nil, http.StatusRequestEntityTooLarge},
		{"Redis away", "generic", hookSecret, event, redis.ErrPoolExhausted, http.StatusServiceUnavailable},
		{"Redis away, for Brevo", "brevo", hookSecret, brevo, redis.ErrPoolExhausted, http.StatusTooManyRequests},
	} {
		w.parts.failWith(row.fail)
		answer, text := w.tell(t, "/webhooks/provider/"+row.path, http.Header{"X-Webhook-Token": {row.secret}},
			[]byte(row.body))
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
	header := http.Header{"X-Webhook-Token": {hookSecret}}
	largest := "[" + strings.Repeat(" ", provider.MaxBody-2) + "]"
	answer, text := w.tell(t, "/webhooks/provider", header, []byte(largest+" "))
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	answer, text = w.tell(t, "/webhooks/provider", header, []byte(largest))
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
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestMandrillFindsTheWebhook: Mandrill looks for the address before it says with which key it will sign.
func TestMandrillFindsTheWebhook(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answer, err := http.Head(w.URL() + "/webhooks/provider/mandrill")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("HEAD is answered %d", answer.StatusCode)
	}
}
