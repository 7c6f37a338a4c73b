package outbox

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// TestEveryEventHasTagsAndMetadata: {} and [] if the submit gave none, so that a reader needs no case for
// their absence.
func TestEveryEventHasTagsAndMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["later@x.test"] = "451 4.3.0 later"
	b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
	for _, to := range []string{"ann@x.test", "later@x.test", "dead@x.test"} {
		id := b.submit(t, api.SubmitRequest{To: for1(to)})
		b.deliver(t, id)
		if to == "later@x.test" {
			if _, err := b.Operations.Cancel(t.Context(), id, ReasonAPI); err != nil {
				t.Fatal(err)
			}
		}
		opened := Fact{Key: to, Type: event.TrackOpen, MessageID: id}
		if _, err := b.Facts.RecordFacts(t.Context(), []Fact{opened}); err != nil {
			t.Fatal(err)
		}
	}
	unknown := Fact{Key: "unknown", Type: event.MessageBounce, Account: "default", MessageID: "gone"}
	if _, err := b.Facts.RecordFacts(t.Context(), []Fact{unknown}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, entry := range b.store.DB.Client().XRange(t.Context(), redisdb.Key(0, "events"), "-", "+").Val() {
		line := entry.Values["e"].(string)
		e, err := event.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		kinds[string(e.Type)] = true
		if !strings.Contains(line, `"metadata":{}`) || !strings.Contains(line, `"tags":[]`) {
			t.Error(line)
		}
	}
	if len(kinds) < 6 {
		t.Errorf("only %v", kinds)
	}
}
