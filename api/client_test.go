package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func ExampleSubmit() {
	postroom := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"response":"Queued for delivery","messageId":"<1@example.com>","queueId":"01M7YSTJ618Z2FWCWVH27N5000"}`)
	}))
	defer postroom.Close()

	client := api.NewClient(postroom.URL, "the access token", nil)
	answer, err := api.Submit.Do(context.Background(), client, api.SubmitRequest{
		To:             api.Addresses{{Name: "Ann", Address: "ann@example.net"}},
		Subject:        "Reset your password",
		Text:           "Use this link: …",
		IdempotencyKey: "reset-ann-4711", // repeating the call sends nothing twice
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Response, answer.QueueID)
	// Output: Queued for delivery 01M7YSTJ618Z2FWCWVH27N5000
}

func TestClientReadsWhateverAnswers(t *testing.T) {
	cases := []struct {
		name    string
		status  int
		headers map[string]string
		body    string
		want    api.Failure
	}{
		{"a problem", 503, map[string]string{"Retry-After": "5"}, `{"statusCode":503,"error":"Service Unavailable","message":"Redis is away","code":"RedisAway","requestId":"r1"}`,
			api.Failure{Problem: api.Problem{StatusCode: 503, Error: "Service Unavailable", Message: "Redis is away", Code: "RedisAway", RequestID: "r1"}, RetryAfter: 5 * time.Second}},
		{"a proxy", 502, map[string]string{"X-Request-Id": "p1"}, `<html>Bad Gateway</html>`,
			api.Failure{Problem: api.Problem{StatusCode: 502, Error: "Bad Gateway", Message: "the answer is not one of Postroom's", RequestID: "p1"}}},
		{"nothing", 404, nil, ``,
			api.Failure{Problem: api.Problem{StatusCode: 404, Error: "Not Found", Message: "the answer is not one of Postroom's"}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for name, value := range tc.headers {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			_, err := api.GetStats.Do(t.Context(), api.NewClient(server.URL+"/", "t", server.Client()), api.CounterQuery{})
			f, ok := errors.AsType[*api.Failure](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, *f); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAllOutboxFollowsTheCursor ends at the page without one, and at the first error.
func TestAllOutboxFollowsTheCursor(t *testing.T) {
	pages := map[string]string{
		"":   `{"total":3,"page":0,"pages":2,"cursor":"c1","messages":[{"queueId":"1","nextAttempt":false},{"queueId":"2"}]}`,
		"c1": `{"total":3,"page":0,"pages":2,"messages":[{"queueId":"3","nextAttempt":"2026-11-21T06:47:40.942Z"}]}`,
	}
	fail := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cursor := r.URL.Query().Get("cursor")
		if fail && cursor != "" || r.URL.Query().Get("state") != "delayed" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, pages[cursor])
	}))
	defer server.Close()
	client := api.NewClient(server.URL, "t", server.Client())

	walk := func() (ids []string, failed error) {
		for m, err := range api.All(t.Context(), client, api.ListOutbox, api.OutboxQuery{State: api.Delayed, PageSize: 2}) {
			if err != nil {
				failed = err
				continue
			}
			ids = append(ids, m.QueueID)
		}
		return ids, failed
	}
	ids, err := walk()
	if diff := cmp.Diff([]string{"1", "2", "3"}, ids); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	fail = true
	if ids, err := walk(); len(ids) != 2 || err == nil {
		t.Errorf("%v, %v", ids, err)
	}
}

// TestAllMessagesGoesOnAfterAnEmptyPage: a search that found nothing among those looked at has more to look at all the same.
func TestAllMessagesGoesOnAfterAnEmptyPage(t *testing.T) {
	pages := map[string]string{
		"":   `{"total":0,"page":0,"pages":0,"cursor":"c1","messages":[]}`,
		"c1": `{"total":1,"page":0,"pages":1,"cursor":"c2","messages":[{"queueId":"1","nextAttempt":false}]}`,
		"c2": `{"total":1,"page":0,"pages":1,"messages":[{"queueId":"2","nextAttempt":false}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query(); got.Get("search") != "a b" || got.Get("status") != "sent" || got.Has("page") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, pages[r.URL.Query().Get("cursor")])
	}))
	defer server.Close()
	var ids []string
	for m, err := range api.All(t.Context(), api.NewClient(server.URL, "t", server.Client()), api.ListMessages, api.LogQuery{Search: "a b", Status: api.StatusSent}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.QueueID)
	}
	if diff := cmp.Diff([]string{"1", "2"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestEmails(t *testing.T) {
	for text, want := range map[string]api.Emails{`"a@x.example"`: {"a@x.example"}, `["a@x.example","b@x.example"]`: {"a@x.example", "b@x.example"}, `[]`: {}, `null`: nil} {
		var got api.Emails
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	var got api.Emails
	if err := json.Unmarshal([]byte(`{"address":"a@x.example"}`), &got); err == nil {
		t.Errorf("an object reads as %v", got)
	}
}

func TestErrorsDoNotHoldTheToken(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	_, err := api.GetStats.Do(t.Context(), api.NewClient(server.URL, "hunter2", nil), api.CounterQuery{})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "GET /v1/stats") {
		t.Errorf("got %v", err)
	}
}

func TestTimeOrFalse(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 47, 40, 942_000_000, time.UTC)
	for text, want := range map[string]api.TimeOrFalse{`false`: {}, `"2026-11-21T06:47:40.942Z"`: {Time: &at}} {
		var got api.TimeOrFalse
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if raw, err := json.Marshal(got); err != nil || string(raw) != text {
			t.Errorf("%s comes back as %s, %v", text, raw, err)
		}
	}
}
