package newsletter

import (
	"testing"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// TestProgramsAreNotCountedByDomain, and cost no reading of the subscriber; nor do facts that are not counted
// so.
func TestProgramsAreNotCountedByDomain(t *testing.T) {
	t.Parallel()
	var nobody Campaigns // to read a subscriber would panic
	for _, fact := range []outbox.Fact{
		{Type: event.TrackOpen, Details: event.Later{Bot: true}},
		{Type: event.TrackClick, Details: event.Later{Bot: true}},
		{Type: event.MessageDelivered}, {Type: event.MessageBounce},
	} {
		counters, err := nobody.countersOf(t.Context(), nil, fact)
		if err != nil || len(counters) > 0 {
			t.Errorf("%+v: %v, %v", fact, counters, err)
		}
	}
}

// TestAPersonHasOneCounterOfTheDomain, whatever the case of the address is.
func TestAPersonHasOneCounterOfTheDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind event.Type
		bit  sendlog.Bit
		want string
	}{
		{event.TrackOpen, sendlog.Opened, "d:opened:example.net"},
		{event.TrackClick, sendlog.Clicked, "d:clicked:example.net"},
		{event.MessageDelivered, sendlog.Delivered, ""},
	} {
		notes, _ := notesOf(7, outbox.Fact{Type: c.kind}, domainCounters("Ann@Example.NET"))
		for _, n := range notes {
			if n.Bit != c.bit || n.Once != c.want {
				t.Errorf("%s: %+v", c.kind, n)
			}
		}
		if len(notes) == 0 {
			t.Errorf("%s notes nothing", c.kind)
		}
	}
}
