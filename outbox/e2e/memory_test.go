package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestWhatGrowsIsRefusedWhileRedisHasNoMemoryLeft: beyond redis.maxMemoryShare, by the API, the pages and
// public forms. What makes room or stops mail is not. In a Redis that is full, answers say so.
func TestWhatGrowsIsRefusedWhileRedisHasNoMemoryLeft(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")
	relay := testsmtp.Start(t, testsmtp.Options{Discard: true})
	a := apptest.Run(t, map[string]string{"redis.url": server.URL(), "smtp": relay.URL(),
		"from":       "shop@example.com",
		"serviceUrl": "http://mail.example.com"})
	call := func(method, path, media, body string) (int, http.Header, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, a.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+a.Token())
		r.Header.Set("Content-Type", media)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = got.Body.Close() }()
		text, _ := io.ReadAll(got.Body)
		return got.StatusCode, got.Header, string(text)
	}
	const json, form = "application/json", "application/x-www-form-urlencoded"
	growing := []struct{ method, path, media, body string }{
		{"POST", "/v1/lists", json, `{"listId":"news","name":"News"}`},
		{"PUT", "/v1/lists/news", json, `{"name":"News of today"}`},
		{"POST", "/v1/subscribers", json, `{"email":"ann@example.net"}`},
		{"POST", "/v1/subscribers/import", "text/csv", "email\nben@example.net\n"},
		{"POST", "/v1/segments", json, `{"segment":"all","name":"All","rule":{"attribute":"plan","is":"pro"}}`},
		{"POST", "/v1/campaigns", json, `{"campaign":"c","name":"C","lists":["news"],"subject":"S",` +
			`"text":"t {{rcpt.unsubscribeUrl}}"}`},
		{"POST", "/v1/digests/events", json, `{"recipient":"ann","category":"likes","title":"T"}`},
		{"POST", "/v1/digests/kinds", json, `{"category":"likes"}`},
		{"PUT", "/v1/digests/recipients/ben", json, `{"email":"ben@example.net"}`},
		{"POST", "/v1/templates/template", json, `{"name":"T","content":{"text":"t"}}`},
		{"POST", "/v1/webhook-endpoints", json, `{"url":"https://hooks.example.com/x"}`},
		{"POST", "/v1/suppressions/import", "text/csv", "email\ncat@example.net\n"},
		{"POST", "/subscribers", json, `{"listId":"news","email":"dan@example.net"}`},
		{"POST", "/lists", form, "id=more&name=More"},
		{"POST", "/segments", form, "id=more&name=More"},
		{"POST", "/webhooks", form, "url=https%3A%2F%2Fhooks.example.com%2Fy"},
	}
	db := apptest.Connect(t, server.URL())
	for _, c := range growing[:3] {
		if status, _, text := call(c.method, c.path, c.media, c.body); status != http.StatusOK {
			t.Errorf("%s %s with memory left: %d %s", c.method, c.path, status, text)
		}
	}
	chunk := bytes.Repeat([]byte("x"), 100<<10)
	apptest.Eventually(t, "writes are refused",
		func() bool { // what Redis has not written to its file yet counts, too
			for {
				db.AskMemory()
				if now, err := db.MemoryShare(t.Context()); err == nil && now >= 0.8 {
					break
				}
				if err := db.Client().RPush(t.Context(), "filler", chunk).Err(); err != nil {
					t.Fatal(err)
				}
			}
			status, _, _ := call("POST", "/v1/lists", json, `{"listId":"x","name":"X"}`)
			return status == http.StatusServiceUnavailable
		})
	for _, c := range growing {
		status, header, text := call(c.method, c.path, c.media, c.body)
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" ||
			!strings.Contains(text, "redis.maxMemoryShare") {
			t.Errorf("%s %s beyond the share: %d %s", c.method, c.path, status, text)
		}
	}
	for _, c := range []struct{ method, path, media, body string }{
		{"POST", "/v1/suppressions", json, `{"email":"eve@example.net"}`},
		{"POST", "/v1/blocklist/news", json, `{"account":"default","recipient":"eve@example.net"}`},
		{"PUT", "/v1/settings/queue/submit", json, `{"paused":true}`},
		{"PUT", "/v1/settings/queue/submit", json, `{"paused":false}`},
		{"DELETE", "/v1/outbox?account=default", json, ""},
		{"DELETE", "/v1/lists/news", json, ""},
		{"POST", "/login", form, url.Values{"token": {a.Token()}}.Encode()},
	} {
		if status, _, text := call(c.method, c.path, c.media, c.body); status != http.StatusOK {
			t.Errorf("%s %s beyond the share: %d %s", c.method, c.path, status, text)
		}
	}
	if err := db.Client().ConfigSet(t.Context(), "maxmemory", "32mb").Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, media, body string }{
		{"/login", form, url.Values{"token": {a.Token()}}.Encode()},
		{"/v1/suppressions", json, `{"email":"fay@example.net"}`},
	} {
		status, _, text := call("POST", c.path, c.media, c.body)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "Redis is full") {
			t.Errorf("POST %s with a full Redis: %d %s", c.path, status, text)
		}
	}
}
