package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/webhooks"
)

// attempt makes an attempt of a delivery.
func (w *world) attempt(endpoint, delivery string) {
	w.webhooks.Deliver(w.t.Context(), queue.Task{Type: webhooks.TaskType,
		Payload: []byte(`{"endpoint":"` + endpoint + `","delivery":"` + delivery + `"}`)})
}

func TestEndpointIsMadeAndChangedByItsForm(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	p := b.get("/webhooks/new")
	p.isSafe(t, "/webhooks/new")
	p.eachFieldHasALabel(t, "/webhooks/new")
	p = b.post("/webhooks", url.Values{"url": {"ftp://x"}, "headers": {"no colon"}})
	if p.status != http.StatusBadRequest {
		t.Errorf("a wrong form answers %d", p.status)
	}
	p.has(t, "headers", "no colon")
	p = b.post("/webhooks", url.Values{"url": {"https://hooks.example/in"}, "description": {evilText},
		"events": {"messageSent", "messageFailed"}, "accounts": {"shop, press"}, "headers": {"X-Key: s3cret"},
		"rateLimit": {"5"}})
	if p.status != http.StatusOK {
		t.Fatalf("made: %d %s", p.status, p.body)
	}
	p.has(t, "whsec_", "doesn’t show it again")
	p.isSafe(t, "a new endpoint")
	page, err := w.webhooks.Endpoints(t.Context(), 0, 10)
	w.must(err)
	if len(page.Endpoints) != 1 {
		t.Fatalf("%+v", page)
	}
	e := page.Endpoints[0]
	at := "/webhooks/" + e.ID
	p = b.get(at + "/edit")
	p.has(t, "https://hooks.example/in", "X-Key: ******", "press, shop")
	p.lacks(t, "s3cret")
	p.isSafe(t, at+"/edit")
	form := url.Values{"url": {e.URL}, "description": {"crm"}, "headers": {"X-Key: ******"}}
	b.submitForm(at, form).has(t, "Changed.", "crm")
	got, err := w.webhooks.Endpoint(t.Context(), e.ID)
	w.must(err)
	if len(got.Accounts) != 0 || got.Events[0] != "*" || got.RateLimit != 0 || got.Headers["X-Key"] == "" {
		t.Errorf("changed: %+v", got)
	}
	form.Set("url", "https://elsewhere.example/")
	if p := b.post(at, form); p.status != http.StatusBadRequest || !strings.Contains(p.text(), "secret") {
		t.Errorf("another URL: %d %s", p.status, p.body)
	}
	b.submitForm(at+"/off", nil).has(t, "The endpoint is off", "Switch on")
	b.submitForm(at+"/on", nil).has(t, "The endpoint is on", "Switch off")
	p = b.post(at+"/secret", url.Values{"overlap": {"3600"}})
	p.has(t, "whsec_", "requests also carry a signature with an earlier secret until")
	b.submitForm(at+"/secret", url.Values{"overlap": {"long"}}).has(t, `class="flash bad"`, "overlap")
	b.submitForm(at+"/test", url.Values{"event": {"mail"}}).has(t, `class="flash bad"`, "event")
	b.submitForm(at+"/replay", url.Values{"since": {"soon"}}).has(t, `class="flash bad"`, "since")
	b.submitForm(at+"/replay", url.Values{"since": {time.Now().UTC().Format("2006-01-02T15:04")}}).has(t,
		"are being sent again", "running")
	b.submitForm(at+"/delete", nil).has(t, "The endpoint was deleted")
	viewer := w.person("vic", api.RoleViewer)
	made := viewer.post("/webhooks", url.Values{"url": {"https://x.example"}})
	if made.status != http.StatusForbidden {
		t.Errorf("a viewer made an endpoint: %d", p.status)
	}
}

func TestEndpointTellsItsNumbersAndItsRest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, evilText, http.StatusInternalServerError)
	}))
	t.Cleanup(hooks.Close)
	e, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: hooks.URL})
	w.must(err)
	w.deliveries(e.ID, 7)
	page, err := w.webhooks.Deliveries(t.Context(), e.ID, 0, 7)
	w.must(err)
	for _, d := range page.Deliveries[:5] {
		w.attempt(e.ID, d.ID)
	}
	b, at := w.operator(), "/webhooks/"+e.ID
	p := b.get(at)
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, "Paused until", "after 5 failures: answered 500 Internal Server Error", "Try again now",
		"0.0 %", "Requests by result", "Mean time of an answer")
	b.get("/webhooks").has(t, "paused</span>")
	p.has(t, `data-label="Next attempt">waits for the endpoint, until `)
	page, err = w.webhooks.Deliveries(t.Context(), e.ID, 0, 7)
	w.must(err)
	for _, d := range page.Deliveries {
		if one := b.get(at + "/deliveries/" + d.ID); d.Attempts == 0 {
			one.has(t, "waits for the endpoint, until ", "No attempts yet. It waits for ")
		}
	}
	for _, hours := range []string{"168", "720"} {
		b.get(at+"?hours="+hours).has(t, "0.0 %")
	}
	p = b.get(at + "?status=pending&event=messageQueued")
	p.has(t, "7 deliveries found")
	b.get(at+"?status=failed").has(t, "No deliveries match")
	p = b.get(at + "?status=done")
	if p.status != http.StatusBadRequest || !strings.Contains(p.text(), "status") {
		t.Errorf("a wrong status: %d %s", p.status, p.body)
	}
	one := at + "/deliveries/" + page.Deliveries[0].ID
	p = b.get(one)
	p.isSafe(t, one)
	p.has(t, "Attempt 1", "500", evilText, `"queueId"`, `href="/messages/`+page.Deliveries[0].QueueID+`"`)
	if p := b.get(at + "/deliveries/none"); p.status != http.StatusNotFound {
		t.Errorf("an unknown delivery: %d", p.status)
	}
	b.submitForm(at+"/wake", nil).has(t, "Postroom tries the endpoint again")
	if p := b.get(at); regexp.MustCompile(`Paused until`).MatchString(p.text()) {
		t.Error("it is still paused")
	}
}

// TestAccountsSeeTheirOwnEndpointAlone though they know the ids of others.
func TestAccountsSeeTheirOwnEndpointAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, account := range []string{"mine", "theirs"} {
		_, err := w.accounts.Create(t.Context(), api.Account{Account: account, Email: account + "@example.com",
			SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
		w.must(err)
	}
	e, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: "https://hooks.example/in",
		Accounts: []string{"mine"}})
	w.must(err)
	b := w.person("ann", api.RoleOperator, "mine")
	for path, want := range map[string]int{"/webhooks/" + e.ID: 404, "/webhooks/account:theirs": 404,
		"/webhooks/account:theirs/deliveries/x": 404, "/webhooks/new": 403, "/webhooks/" + e.ID + "/edit": 403} {
		if p := b.get(path); p.status != want {
			t.Errorf("GET %s: %d, want %d", path, p.status, want)
		}
	}
	for what, want := range map[string]int{"": 403, "/delete": 403, "/secret": 403, "/off": 403, "/on": 404,
		"/wake": 404, "/replay": 404, "/test": 404} {
		for _, id := range []string{e.ID, "account:theirs"} {
			if p := b.post("/webhooks/"+id+what, url.Values{"since": {"2026-11-24T00:00"}}); p.status != want {
				t.Errorf("POST %s%s: %d, want %d", id, what, p.status, want)
			}
		}
	}
}
