package webhooks

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/message"
)

func TestErasedPersonLeavesTheDeliveries(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("thanks for b@example.net"))
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "shop")
	b.emit("E2", event.MessageSent, "shop")
	b.emit("E3", event.MessageSent, "other")
	b.append(`{"v":1,"eventId":"E4","event":"messageSent","account":"shop","date":"2030-01-02T03:04:05Z",` +
		`"data":{"queueId":"Q4","envelope":{"from":"a@example.com","to":["B@example.net","c@example.net"]}}}`)
	b.fanOutAll()
	for _, id := range []string{"E1", "E4"} {
		if v := b.run(ep.ID, id); v != "done" {
			t.Fatalf("%s: %s", id, v)
		}
	}
	traces, err := message.NewTraces("b@example.net")
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	if err := b.Personal(t.Context(), "shop", traces,
		func(api.Delivery) error { own++; return nil }); err != nil ||
		own != 3 {
		t.Errorf("%d deliveries name the person, %v", own, err)
	}
	found := 0
	tally := func(n int) error { found += n; return nil }
	if err := b.Erase(t.Context(), "shop", traces, tally); err != nil || found != 3 {
		t.Fatalf("%d, %v", found, err)
	}
	if ids, total := logIDs(t, b, ep.ID, 0, 10); total != 2 || len(ids) != 2 {
		t.Errorf("left: %v", ids)
	}
	if d := b.delivery(ep.ID, "E4"); !strings.Contains(string(d.Body), `["erased@erased.invalid","c@example.net"]`) ||
		strings.Contains(d.Response, "b@example") || d.Status != "delivered" {
		t.Errorf("of two: %+v %s", d, d.Body)
	}
	if d := b.delivery(ep.ID, "E3"); !strings.Contains(string(d.Body), "b@example.net") {
		t.Errorf("of another account: %s", d.Body)
	}
	sent := len(rc.got())
	if v := b.run(ep.ID, "E2"); v != "drop" || len(rc.got()) != sent {
		t.Errorf("a pending one: %s, %d requests", v, len(rc.got()))
	}
	if n := b.db.Client().ZCard(t.Context(), dueKey()).Val(); n != 1 { // the other account's
		t.Errorf("%d are due", n)
	}
}
