package provider_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/provider"
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
		if len(batch.Events[1].Raw) > 0 {
			t.Errorf("keep %t: %d bytes are kept", keep, len(batch.Events[1].Raw))
		}
	}
}
