package outbox

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
)

// TestKeptJobsAreListed: completed jobs that the queue still shows, and failed ones without dead letters, are
// in the list and in the counts of their lane.
func TestKeptJobsAreListed(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepDeadLetters: -1})
	b.store.Queue = queue.NewClient(b.store.DB.Client(), queue.Options{Keep: func(string) int { return 5 }})
	b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
	stop := b.work(t)
	var sent, failed []string
	for _, lane := range []api.Lane{api.Transactional, api.Bulk, api.Bulk} {
		sent = append(sent, b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Lane: lane, Tags: []string{"a"}}))
		failed = append(failed, b.submit(t, api.SubmitRequest{To: for1("dead@x.test"), Lane: lane}))
	}
	jobs := func(name string) api.Jobs {
		s, err := b.Queues.QueueStatus(t.Context(), name)
		must(t, err)
		return s.Jobs
	}
	for began := time.Now(); jobs("submit").Completed < 3 || jobs("submit").Failed < 3; {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("not all are done: %+v", jobs("submit"))
		}
	}
	stop()
	if j := jobs("submit"); j.Completed != 3 || j.Failed != 3 {
		t.Errorf("both lanes have %+v", j)
	}
	if j := jobs("bulk"); j.Completed != 2 || j.Failed != 2 {
		t.Errorf("the bulk lane has %+v", j)
	}
	list := func(q api.OutboxQuery) (ids []string) {
		page, err := b.Reader.List(t.Context(), q)
		must(t, err)
		for _, m := range page.Messages {
			if m.State != q.State || m.NextAttempt.Time != nil {
				t.Errorf("listed as %s: %+v", q.State, m)
			}
			ids = append(ids, m.QueueID)
		}
		if len(ids) != page.Total {
			t.Errorf("%d of %d listed", len(ids), page.Total)
		}
		return ids
	}
	slices.Sort(sent)
	slices.Sort(failed)
	for name, c := range map[string]struct {
		q    api.OutboxQuery
		want []string
	}{
		"completed":      {api.OutboxQuery{State: api.Completed}, sent},
		"failed":         {api.OutboxQuery{State: api.Failed}, failed},
		"with a tag":     {api.OutboxQuery{State: api.Completed, Tag: "a"}, sent},
		"of an account":  {api.OutboxQuery{State: api.Completed, Account: "other"}, nil},
		"of a recipient": {api.OutboxQuery{State: api.Failed, Search: "DEAD@"}, failed},
	} {
		if got := list(c.q); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("%s: listed %v, want %v", name, got, c.want)
		}
	}
	if got := list(api.OutboxQuery{State: api.Completed, Lane: api.Bulk}); len(got) != 2 {
		t.Errorf("of the bulk lane: %v", got)
	}
	at := b.clock.Now().Add(time.Hour)
	live := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), SendAt: &at, Tags: []string{"live"}})
	for name, c := range map[string]struct {
		q    api.OutboxQuery
		want []string
	}{
		"all":            {api.OutboxQuery{}, append(slices.Clone(failed), live)},
		"of a tag":       {api.OutboxQuery{Tag: "live"}, []string{live}},
		"of a recipient": {api.OutboxQuery{Search: "dead@"}, failed},
		"of a lane":      {api.OutboxQuery{Lane: api.Bulk}, failed[1:]},
		"a page":         {api.OutboxQuery{Page: 1, PageSize: 3}, []string{live}},
	} {
		page, err := b.Reader.List(t.Context(), c.q)
		must(t, err)
		var got []string
		for _, m := range page.Messages {
			got = append(got, m.QueueID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("without a state, %s: listed %v, want %v", name, got, c.want)
		}
	}
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{State: api.Completed, PageSize: 2})
	must(t, err)
	next, err := b.Reader.List(t.Context(), api.OutboxQuery{State: api.Completed, PageSize: 2,
		Cursor: page.Cursor})
	if err != nil || len(page.Messages) != 2 || len(next.Messages) != 1 || next.Cursor != "" {
		t.Errorf("by cursor: %+v, then %+v, %v", page, next, err)
	}
	if p := page.Messages[0].Progress; p.Status != "submitted" || p.Response != "250 2.0.0 queued" {
		t.Errorf("its progress is %+v", p)
	}
	if letters, err := b.Reader.DeadLetters(t.Context(), api.OutboxQuery{}); err != nil || letters.Total != 0 {
		t.Errorf("dead letters: %+v, %v", letters, err)
	}
	if n, err := b.Operations.CancelAll(t.Context(), api.OutboxQuery{State: api.Completed},
		ReasonAPI); err != nil ||
		n.Deleted != 0 {
		t.Errorf("cancelled %+v, %v", n, err)
	}
}

// work runs workers of both lanes, and returns a function that stops them.
func (b *bundle) work(t *testing.T) (stop func()) {
	t.Helper()
	queues := map[string]int{}
	for p := range b.store.DB.Partitions() {
		queues[laneQueue(api.Transactional, p)], queues[laneQueue(api.Bulk, p)] = 1, 1
	}
	s, err := queue.NewServer(b.store.DB.Client(), map[string]queue.Handler{TaskDeliver: b.Delivery.Deliver},
		queue.ServerOptions{Pools: []queue.Pool{{Name: "all", Queues: queues}}, KeepBuried: true,
			Keep: func(string) int { return 5 }})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		must(t, <-ended)
	}
}
