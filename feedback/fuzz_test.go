package feedback

import (
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/provider"
)

// FuzzEventsAPI reads what an events API may answer: nothing of it may bring the reader down, and what is
// read fits into the inbox.
func FuzzEventsAPI(f *testing.F) {
	for _, seed := range []string{
		`{"event":"failed","severity":"permanent","id":"x","timestamp":1447255764.46,"recipient":"a@b.example","delivery-status":{"code":550,"message":"no such user"}}`,
		`{"event":"complained","timestamp":-1e300,"recipient":17}`,
		`{"event":"opened","user-variables":{"postroom_id":"01ARZ3NDEKTSV4RRFFQ69G5F00"}}`, `17`, `null`, `"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		batch, err := provider.Read(provider.Mailgun, provider.Request{Body: fmt.Appendf(nil,
			`{"event-data":%s,"signature":{}}`, raw)})
		if err != nil {
			return
		}
		for _, e := range batch.Events {
			checkTold(t, e)
		}
	})
}

// FuzzGeneric goes from the body of a webhook to the inbox and back.
func FuzzGeneric(f *testing.F) {
	f.Add([]byte(`[{"type":"bounced","bounce":"hard","recipient":"a@b.example","diagnostic":"550 5.1.1 no","id":"k","metadata":{"postroom_id":"x"}}]`))
	f.Add([]byte(`{"type":"clicked","recipient":"a","url":"javascript:","ip":"::1","time":4102444799000,"messageId":"<<>>"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		batch, err := provider.Read(provider.Generic, provider.Request{Body: raw})
		if err != nil {
			return
		}
		for _, e := range batch.Events {
			checkTold(t, e)
		}
	})
}

// checkTold holds an entry to its bounds.
func checkTold(t *testing.T, e provider.Event) {
	t.Helper()
	entry, ok := providerEntry(e, "masked", startOfTime)
	if !ok {
		return
	}
	line, err := entry.line()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parseEntry(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if len(back.Key) > maxKey || len(back.Details.Diagnostic) > 500 || len(line) > 32<<10 ||
		back.At.After(startOfTime.Add(5*time.Minute)) {
		t.Errorf("out of bounds: %s", line)
	}
	back.echoedID()
	back.references()
}
