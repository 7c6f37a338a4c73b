package outbox

import (
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
)

// TestCancelOfAMessageThatMovedOn: an attempt was made between the reading of a message and its cancel, and
// the message waits as before. The old reading must not be written: it would cancel a recipient that has the
// message.
func TestCancelOfAMessageThatMovedOn(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["ann@x.test"], b.sender.replies["bob@x.test"] = "451 4.7.1 later", "451 4.7.1 later"
	id := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}})
	b.deliver(t, id)
	seen, err := b.store.readRows(t.Context(), []entry{{id: id}})
	if err != nil || len(seen) != 1 || seen[0].state != stateDelayed {
		t.Fatalf("%+v, %v", seen, err)
	}
	b.sender.replies["ann@x.test"] = ""
	b.clock.Advance(time.Hour)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
	if r, err := b.Reader.read(t.Context(), id); err != nil || r.state != stateDelayed ||
		r.fence == seen[0].fence {
		t.Fatalf("%+v, %v", r, err)
	}
	args, err := b.Operations.cancelArgs(seen[0], ReasonAPI)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run(t.Context(), b.Operations.store, cancelScript, 0, id, args)
	if err != nil || answer.Word != "CHANGED" {
		t.Errorf("cancelled as it was seen: %v, %v", answer, err)
	}
	if answer, err := b.Operations.Cancel(t.Context(), id, ReasonAPI); err != nil || !answer.Deleted {
		t.Errorf("%+v, %v", answer, err)
	}
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || m.Recipients[0].Status != "sent" || m.Recipients[1].Status != "cancelled" {
		t.Errorf("%+v, %v", m.Recipients, err)
	}
}
