package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/provider"
)

func TestRawIsKeptOnDemand(t *testing.T) {
	body := `[{"email":"ann@example.com","event":"open","sg_event_id":"1","sg_message_id":"m.1","timestamp":1700000000,"odd":{"b":12345678901234567890,"a":"<x>"}},` +
		`{"email":"ann@example.com","event":"open","sg_event_id":"2","sg_message_id":"m.1","timestamp":1700000000,"odd":"` + strings.Repeat("x", provider.MaxRaw) + `"}]`
	for _, keep := range []bool{false, true} {
		batch, err := provider.Read(provider.SendGrid, provider.Request{Body: []byte(body), KeepRaw: keep})
		if err != nil || len(batch.Events) != 2 {
			t.Fatalf("%+v, %v", batch, err)
		}
		want := ""
		if keep {
			want = `{"email":"ann@example.com","event":"open","odd":{"a":"\u003cx\u003e","b":12345678901234567890},"sg_event_id":"1","sg_message_id":"m.1","timestamp":1700000000}`
		}
		if got := string(batch.Events[0].Raw); got != want {
			t.Errorf("keep %t: %s, want %s", keep, got, want)
		}
		long := string(batch.Events[1].Raw)
		if len(long) > provider.MaxRaw || keep != strings.Contains(long, `"sg_event_id":"2"`) ||
			keep != strings.Contains(long, `"odd":"xxx`) {
			t.Errorf("keep %t: %d bytes are kept of a long one: %.200s", keep, len(long), long)
		}
	}
}

// TestRawOfManyFieldsIsCut: what has more fields than fit is kept as the text it begins with.
func TestRawOfManyFieldsIsCut(t *testing.T) {
	many := strings.Repeat(`"<ü>",`, provider.MaxRaw/4)
	body := `[{"email":"ann@example.com","event":"open","sg_event_id":"1","a":[` + many + `1]}]`
	batch, err := provider.Read(provider.SendGrid, provider.Request{Body: []byte(body), KeepRaw: true})
	if err != nil || len(batch.Events) != 1 {
		t.Fatalf("%+v, %v", batch, err)
	}
	var text string
	if err := json.Unmarshal(batch.Events[0].Raw, &text); err != nil || !strings.HasPrefix(text, `{"a":["`) ||
		len(batch.Events[0].Raw) > provider.MaxRaw {
		t.Errorf("%d bytes, %.50s, %v", len(batch.Events[0].Raw), text, err)
	}
}
