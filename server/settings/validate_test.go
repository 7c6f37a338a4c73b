package settings

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

func TestWrongSettings(t *testing.T) {
	long := strings.Repeat("x", 2049)
	headers := func(h ...api.CustomHeader) api.Settings { return api.Settings{WebhooksCustomHeaders: &h} }
	tests := []struct {
		name string
		req  api.Settings
		want []string
	}{
		{"a URL without scheme", api.Settings{Webhooks: ptr("example.com/x"), ServiceURL: ptr("example.com")},
			[]string{"webhooks", "serviceUrl"}},
		{"another scheme", api.Settings{Webhooks: ptr("ftp://example.com")}, []string{"webhooks"}},
		{"no host", api.Settings{Webhooks: ptr("http:///x")}, []string{"webhooks"}},
		{"a control character", api.Settings{Webhooks: ptr("http://example.com/\r\n")}, []string{"webhooks"}},
		{"a password in the URL", api.Settings{Webhooks: ptr("https://u:p@example.com")}, []string{"webhooks"}},
		{"a long URL", api.Settings{Webhooks: ptr("https://" + long)}, []string{"webhooks"}},
		{"a public address with a query", api.Settings{ServiceURL: ptr("https://example.com/?a")},
			[]string{"serviceUrl"}},
		{"unknown events", api.Settings{WebhookEvents: &[]string{"messageSent", "messageSend", "", "*"}},
			[]string{"webhookEvents[1]", "webhookEvents[2]"}},
		{"no attempt", api.Settings{DeliveryAttempts: ptr(0)}, []string{"deliveryAttempts"}},
		{"too many attempts", api.Settings{DeliveryAttempts: ptr(101)}, []string{"deliveryAttempts"}},
		{"keeping less than nothing", api.Settings{QueueKeep: ptr(-1)}, []string{"queueKeep"}},
		{"keeping too much", api.Settings{QueueKeep: ptr(100_001)}, []string{"queueKeep"}},
		{"links that are no hosts", api.Settings{BlockedLinks: &[]string{"shop.example", "https://shop.example/",
			"01JGJ3V8ZG0000000000000000", "192.0.2.1", "com", "a b.example", "", "*.shop.example"}},
			[]string{"blockedLinks[1]", "blockedLinks[4]", "blockedLinks[5]", "blockedLinks[6]", "blockedLinks[7]"}},
		{"no header name", headers(api.CustomHeader{Value: "x"}), []string{"webhooksCustomHeaders[0].key"}},
		{"a header name with a colon", headers(api.CustomHeader{Key: "a", Value: "b"}, api.CustomHeader{Key: "a:"}),
			[]string{"webhooksCustomHeaders[1].key"}},
		{"our signature", headers(api.CustomHeader{Key: "Webhook-Signature", Value: "v1,x"}),
			[]string{"webhooksCustomHeaders[0].key"}},
		{"a second request", headers(api.CustomHeader{Key: "a", Value: "b\r\n\r\nGET /"}),
			[]string{"webhooksCustomHeaders[0].value"}},
		{"a long value", headers(api.CustomHeader{Key: "a", Value: long}),
			[]string{"webhooksCustomHeaders[0].value"}},
		{"too many headers", headers(make([]api.CustomHeader, 21)...), append([]string{"webhooksCustomHeaders"},
			keys(21)...)},
		{"everything at once", api.Settings{Webhooks: ptr("x"), ServiceURL: ptr("x"), DeliveryAttempts: ptr(-1),
			QueueKeep: ptr(-1)},
			[]string{"webhooks", "serviceUrl", "deliveryAttempts", "queueKeep"}},
	}
	b := setup(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.WebhooksEnabled = ptr(false)
			_, err := b.Update(t.Context(), tt.req)
			if diff := cmp.Diff(tt.want, wrongFields(t, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got, err := b.Get(t.Context()); err != nil || !*got.WebhooksEnabled {
		t.Errorf("a refused request changed something: %+v, %v", got, err)
	}
}

// keys names the first n headers.
func keys(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("webhooksCustomHeaders[%d].key", i))
	}
	return out
}

func TestWants(t *testing.T) {
	on := Webhooks{URL: "https://example.com", Enabled: true}
	tests := []struct {
		name   string
		events []string
		change func(w *Webhooks)
		want   bool
	}{
		{name: "all", events: []string{"*"}, want: true},
		{name: "this one", events: []string{"messageFailed", "messageSent"}, want: true},
		{name: "another", events: []string{"messageFailed"}},
		{name: "none"},
		{name: "switched off", events: []string{"*"}, change: func(w *Webhooks) { w.Enabled = false }},
		{name: "without address", events: []string{"*"}, change: func(w *Webhooks) { w.URL = "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := on
			w.Events = tt.events
			if tt.change != nil {
				tt.change(&w)
			}
			if got := w.Wants("messageSent"); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzCustomHeader(f *testing.F) {
	f.Add("X-Key", "value")
	f.Add("X-Key", "a\r\nb: c")
	f.Add("a b", "\x00")
	f.Fuzz(func(t *testing.T, key, value string) {
		req := api.Settings{WebhooksCustomHeaders: &[]api.CustomHeader{{Key: key, Value: value}}}
		if Check(req) != nil {
			return
		}
		h := http.Header{}
		h.Set(key, value)
		var wire strings.Builder
		if err := h.Write(&wire); err != nil {
			t.Fatal(err)
		}
		if strings.Count(wire.String(), "\n") != 1 || !strings.Contains(wire.String(), ":") {
			t.Errorf("%q: %q became %q", key, value, wire.String())
		}
	})
}
