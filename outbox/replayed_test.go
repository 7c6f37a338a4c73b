package outbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestAReplayedMessageIsOneMessage: the failures of the hour and the day, which the alert mailFails judges,
// and the overview's failures count messages. A message that failed twice counts as one. A message that was
// sent, cancelled or is under way again after its failure doesn't count.
func TestAReplayedMessageIsOneMessage(t *testing.T) {
	t.Parallel()
	replay := func(to ...string) func(*testing.T, *bundle, string) {
		return func(t *testing.T, b *bundle, id string) {
			c := api.Corrections{To: api.Emails(to)}
			if len(to) > 0 {
				c.Account = "shop"
			}
			if _, err := b.Operations.Replay(t.Context(), id, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait := func(d time.Duration) func(*testing.T, *bundle, string) {
		return func(_ *testing.T, b *bundle, _ string) { b.clock.Advance(d) }
	}
	works := func(_ *testing.T, b *bundle, _ string) { delete(b.sender.replies, "ann@x.test") }
	deliver := func(t *testing.T, b *bundle, id string) { b.deliver(t, id) }
	count := func(t *testing.T, b *bundle, _ string) { b.countAll(t) }
	expire := func(t *testing.T, b *bundle, _ string) {
		for _, key := range b.store.DB.Client().Keys(t.Context(), "*:stats:*").Val() {
			b.store.DB.Client().Del(t.Context(), key)
		}
	}
	cancel := func(t *testing.T, b *bundle, id string) {
		if a, err := b.Operations.Cancel(t.Context(), id, ReasonAPI); err != nil || !a.Deleted {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	type numbers struct {
		Hour, Day      int // messages that failed
		Failed, Sent   int // recipients, in the rates
		Domain, Former int // failed, of the domain, and of the account that it failed in first
	}
	type steps []func(*testing.T, *bundle, string)
	for name, row := range map[string]struct {
		to   api.Addresses // in addition to ann
		do   steps
		want numbers
	}{
		"fails": {nil, nil, numbers{1, 1, 1, 0, 1, 1}},
		"fails, counted at once, and again": {nil, steps{count, replay(), count, deliver},
			numbers{1, 1, 1, 0, 1, 1}},
		"fails again":        {nil, steps{wait(time.Minute), replay(), deliver}, numbers{1, 1, 1, 0, 1, 1}},
		"fails three times":  {nil, steps{replay(), deliver, replay(), deliver}, numbers{1, 1, 1, 0, 1, 1}},
		"is under way":       {nil, steps{replay()}, numbers{}},
		"is sent":            {nil, steps{works, replay(), deliver}, numbers{Sent: 1}},
		"is sent after two":  {nil, steps{replay(), deliver, works, replay(), deliver}, numbers{Sent: 1}},
		"is cancelled":       {nil, steps{replay(), cancel}, numbers{}},
		"its letter deleted": {nil, steps{cancel}, numbers{1, 1, 1, 0, 1, 1}},
		"to several": {for1("bob@y.test"), steps{replay(), deliver},
			numbers{1, 1, 1, 1, 1, 1}},
		"to others of another account": {nil, steps{replay("zoe@z.test"), deliver}, numbers{Sent: 1}},
		"fails hours later": {nil, steps{wait(3 * time.Hour), replay(), deliver},
			numbers{1, 1, 1, 0, 1, 1}},
		"fails days later, when its minute isn't kept": {nil, steps{expire, wait(50 * time.Hour), replay(), deliver},
			numbers{1, 1, 1, 0, 1, 1}},
		"failed hours ago": {nil, steps{wait(3 * time.Hour)}, numbers{0, 1, 1, 0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{})
			b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
			id := b.submit(t, api.SubmitRequest{To: append(for1("ann@x.test"), row.to...)})
			b.deliver(t, id)
			for _, do := range row.do {
				do(t, b, id)
			}
			b.countAll(t)
			counters, err := b.Queues.Counters(t.Context(), api.CounterQuery{})
			if err != nil {
				t.Fatal(err)
			}
			got := numbers{Hour: counters.FailedHour, Day: counters.FailedDay}
			from := storyBegin.Add(-time.Hour)
			for _, r := range b.rates(t, api.RatesQuery{From: from}) {
				got.Failed, got.Sent = got.Failed+r.Failed, got.Sent+r.Sent
			}
			for _, r := range b.rates(t, api.RatesQuery{From: from, By: "domain", Name: "x.test"}) {
				got.Domain += r.Failed
			}
			for _, r := range b.rates(t, api.RatesQuery{From: from, Account: "default"}) {
				got.Former += r.Failed
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
