package webhooks

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
)

// TestDeliveriesAboutEvents are found by the ids of the events, at every endpoint; whoever is bound to an
// account sees its own endpoint.
func TestDeliveriesAboutEvents(t *testing.T) {
	t.Parallel()
	hook := answering(t, 200)
	b := setup(t, func(o *Options) {
		o.Implicit = func(_ context.Context, account string) ([]Target, error) {
			return []Target{{ID: "account:" + account, URL: hook.URL}, {ID: "settings", URL: hook.URL}}, nil
		}
	})
	ep := b.endpoint(hook.URL)
	for _, id := range []string{"E1", "E2", "E3"} {
		b.emit(id, event.MessageSent, "snd")
	}
	b.fanOutAll()
	about := func(bound bool, events ...string) []string {
		t.Helper()
		got, err := b.DeliveriesAbout(t.Context(), "snd", bound, events)
		if err != nil || got.Partial {
			t.Fatalf("%v, partial %t", err, got.Partial)
		}
		var out []string
		for _, d := range got.Deliveries {
			out = append(out, d.EventID+" to "+d.Endpoint+", "+d.Status)
		}
		return out
	}
	all := map[string]bool{}
	for _, one := range about(false, "E1", "E3", "E9") {
		all[one] = true
	}
	want := map[string]bool{}
	for _, e := range []string{"E1", "E3"} {
		for _, at := range []string{"account:snd", "settings", ep.ID} {
			want[e+" to "+at+", pending"] = true
		}
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"E2 to account:snd, pending"}, about(true, "E2")); diff != "" {
		t.Errorf("of who is bound (-want +got):\n%s", diff)
	}
	if got := about(false); got != nil {
		t.Errorf("of no event: %v", got)
	}
	var many []string
	for range soughtMost {
		many = append(many, "E1")
	}
	if got, err := b.DeliveriesAbout(t.Context(), "snd", false, many); err != nil || !got.Partial {
		t.Errorf("too many: partial %t, %v", got.Partial, err)
	}
}

// TestDeliveriesThatWereSentAgain are found too: the last one by which an event was sent again.
func TestDeliveriesThatWereSentAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	want := []string{"E1 delivered", ""}
	for range 2 {
		b.advance(time.Second)
		again, err := b.Redeliver(t.Context(), ep.ID, "E1")
		if err != nil {
			t.Fatal(err)
		}
		want[1] = again.ID + " pending"
	}
	got, err := b.DeliveriesAbout(t.Context(), "snd", false, []string{"E1"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range got.Deliveries {
		all = append(all, d.ID+" "+d.Status)
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
