package apptest

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

const TellSecret = "a shared secret of the tests"

// eventsAPI is a Mailgun events API without events.
func eventsAPI(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, key, _ := r.BasicAuth(); user != "api" || key != "key" ||
			r.URL.Path != "/v3/mg.example.com/events" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"items":[],"paging":{"next":"x"}}`))
	}))
	t.Cleanup(s.Close)
	return s
}

// FeedbackSettings configure two providers with webhooks, and one that is polled.
func FeedbackSettings(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"feedback.providers.generic": TellSecret, "feedback.providers.mailgun": TellSecret,
		"feedback.reconcile.mailgun.apiKey": "key", "feedback.reconcile.mailgun.domain": "mg.example.com",
		"feedback.reconcile.mailgun.baseUrl": eventsAPI(t).URL,
	}
}

// Tell posts a provider's webhook and checks that it is accepted.
func Tell(t *testing.T, url, name, body string) {
	t.Helper()
	answer := answered(t, http.DefaultClient, http.MethodPost, url+"/webhooks/provider/"+name, body,
		"X-Webhook-Token", TellSecret)
	if answer.Status != http.StatusOK {
		t.Fatalf("%s: %d", name, answer.Status)
	}
}
