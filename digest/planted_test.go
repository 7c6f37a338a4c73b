package digest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
)

// late is an outbox that answers before it has the message, and loses some: as if runs were closed before
// they are submitted.
func (h *house) late(parts *digest.Parts) {
	parts.Submit = func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
		answer, err := h.mails.submit(ctx, req)
		if err != nil {
			answer, err = api.SubmitAnswer{QueueID: "mail-lost"}, nil
		}
		return answer, err
	}
}

// keyless takes the idempotency key from each message.
func (h *house) keyless(parts *digest.Parts) {
	parts.Submit = func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
		req.IdempotencyKey = "" // the outbox of these tests knows none that is empty
		return h.mails.submit(ctx, req)
	}
}

// TestPlantedFaultsAreFound: the histories of TestEachEventIsMailedOnceWhateverIsLost find the faults that
// digests of other programs have. Each is found by what it does to a reader, within some histories.
//
// It is not parallel, because a fault of a script is one for all tests.
func TestPlantedFaultsAreFound(t *testing.T) {
	const histories = 400
	for _, c := range []struct {
		name, found string
		from        uint64                      // the first history to play: those before it don't find the fault
		parts       func(*house, *digest.Parts) // of both processes' parts
		plant       func(*digest.Digests)
		scripts     func() (restore func())
	}{
		{name: "close before submit", found: "is in no mail", parts: (*house).late},
		{name: "message without its idempotency key", found: "is in 2 mails", parts: (*house).keyless},
		{name: "snapshot by time", found: "is in no mail", scripts: digest.SnapshotByTime},
		{name: "period by instant", found: "two mails of one day", from: 12,
			plant: (*digest.Digests).PeriodByInstant},
		{name: "run named by instant", found: "two mails of one day", from: 22,
			plant: (*digest.Digests).RunByInstant},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.scripts != nil {
				defer c.scripts()()
			}
			for seed := c.from; seed < c.from+histories; seed++ {
				found := false
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					h := build(t, seed, c.parts)
					if c.plant != nil {
						c.plant(h.Digests)
						c.plant(h.other.Digests)
					}
					for _, odd := range h.play(t, seed) {
						t.Log(odd)
						found = found || strings.Contains(odd, c.found)
					}
				})
				if found {
					t.Logf("found in history %d", seed)
					return
				}
			}
			t.Errorf("%d histories don't find it: nothing %s", histories, c.found)
		})
	}
}
