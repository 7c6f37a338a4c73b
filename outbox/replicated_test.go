package outbox

import (
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestAcceptWaitsForReplicas stops the replica: a submit that it does not have is not accepted, neither at
// first nor when it is repeated.
func TestAcceptWaitsForReplicas(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	b := setupOn(t, testredis.Connect(t, redisdb.Options{URL: g.URL(), WaitReplicas: 1,
		WaitTimeout: 100 * time.Millisecond}), Options{})
	submit := func(key string) (api.SubmitAnswer, error) {
		return b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@x.test"), Text: "x",
			IdempotencyKey: key})
	}
	for _, key := range []string{"", "key"} {
		first, err := submit(key)
		for range 100 { // a busy machine may take longer than 100 ms
			if err == nil {
				break
			}
			first, err = submit(key)
		}
		if err != nil {
			t.Fatalf("with a replica in step, key %q: %v", key, err)
		}
		g.Replicas[0].Stop()
		if _, err := submit(key); fault.CodeOf(err) != "NotReplicated" || !fault.Is(err, fault.Unavailable) {
			t.Errorf("with a frozen replica, key %q: %v", key, err)
		}
		g.Replicas[0].Cont()
		if key == "" {
			continue
		}
		again, err := submit(key)
		for range 100 {
			if err == nil {
				break
			}
			again, err = submit(key)
		}
		if err != nil || again.QueueID != first.QueueID || !again.SendAt.Equal(*first.SendAt) ||
			again.MessageID != first.MessageID {
			t.Errorf("repeated, when the replica has it: %+v, %v; first it was %+v", again, err, first)
		}
	}
}
