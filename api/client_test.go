package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		{"a problem", 503, map[string]string{"Retry-After": "5"},
			`{"statusCode":503,"error":"Service Unavailable","message":"Redis is away","code":"RedisAway","requestId":"r1"}`,
			api.Failure{Problem: api.Problem{StatusCode: 503, Error: "Service Unavailable", Message: "Redis is away",
				Code: "RedisAway", RequestID: "r1"}, RetryAfter: 5 * time.Second}},
		{"a proxy", 502, map[string]string{"X-Request-Id": "p1"}, `<html>Bad Gateway</html>`,
			api.Failure{Problem: api.Problem{StatusCode: 502, Error: "Bad Gateway",
				Message: "the answer is not one of Postroom's", RequestID: "p1"}}},
		{"nothing", 404, nil, ``,
			api.Failure{Problem: api.Problem{StatusCode: 404, Error: "Not Found",
				Message: "the answer is not one of Postroom's"}}},
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
			_, err := api.GetStats.Do(t.Context(), api.NewClient(server.URL+"/", "t", server.Client()),
				api.CounterQuery{})
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
		for m, err := range api.All(t.Context(), client, api.ListOutbox, api.OutboxQuery{State: api.Delayed,
			PageSize: 2}) {
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

// TestAllMessagesGoesOnAfterAnEmptyPage: a search that found nothing among those looked at has more to look
// at all the same.
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
	for m, err := range api.All(t.Context(), api.NewClient(server.URL, "t", server.Client()), api.ListMessages,
		api.LogQuery{Search: "a b", Status: api.StatusSent}) {
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
	for text, want := range map[string]api.Emails{`"a@x.example"`: {"a@x.example"},
		`["a@x.example","b@x.example"]`: {"a@x.example", "b@x.example"}, `[]`: {}, `null`: nil} {
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
	if err == nil || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "GET /v1/stats") {
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

// TestRequestsAreWrittenAsTheServerReadsThem: ids go into the path, queries and bodies where the method has
// them.
func TestRequestsAreWrittenAsTheServerReadsThem(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = strings.TrimSpace(strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("Content-Type"),
			string(body)}, " "))
		fmt.Fprint(w, `{}`)
	}))
	defer server.Close()
	ctx, c := t.Context(), api.NewClient(server.URL, "t", server.Client())
	at := time.Date(2030, 12, 24, 8, 0, 0, 0, time.FixedZone("", 3600))
	for want, call := range map[string]func() error{
		"GET /v1/account/a%2Fb": func() error { _, err := api.GetAccount.Do(ctx, c, "a/b"); return err },
		"GET /v1/templates/template/t/versions/3": func() error {
			_, err := api.GetTemplateVersion.Do(ctx, c, "t", 3)
			return err
		},
		"GET /v1/outbox?account=acme&createdAfter=2030-12-24T07%3A00%3A00Z&pageSize=7&state=delayed": func() error {
			_, err := api.ListOutbox.Do(ctx, c, api.OutboxQuery{State: api.Delayed, Account: "acme", CreatedAfter: at,
				PageSize: 7})
			return err
		},
		"DELETE /v1/outbox?account=acme": func() error {
			_, err := api.CancelMessages.Do(ctx, c, api.OutboxQuery{Account: "acme", Page: 2, PageSize: 7,
				Cursor: "c"})
			return err
		},
		`PUT /v1/settings/queue/bulk application/json {"paused":true}`: func() error {
			_, err := api.PutQueue.Do(ctx, c, api.QueuePatch{Paused: new(true)}, "bulk")
			return err
		},
		"POST /v1/webhook-endpoints/e/replay?since=2030-12-24T07%3A00%3A00Z": func() error {
			_, err := api.ReplayEndpoint.Do(ctx, c, api.EndpointReplay{Since: at}, "e")
			return err
		},
		"POST /v1/suppressions/import?id=import-1&list=news&source=crm text/csv a@example.com": func() error {
			o := api.SuppressionImportOptions{ID: "import-1", Source: "crm", List: "news"}
			_, err := api.ImportSuppressions.Do(ctx, c, strings.NewReader("a@example.com"), o)
			return err
		},
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
}
