package outbox

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// leases are the leases of the messages that this process is sending. They are renewed together.
type leases struct {
	store *store
	mu    sync.Mutex
	held  map[string]lease
}

// lease is the right to send one message.
type lease struct {
	partition int
	fence     string
	lost      context.CancelCauseFunc // cancels the attempt
}

func newLeases(s *store) *leases { return &leases{store: s, held: map[string]lease{}} }

// hold keeps a lease renewed until the returned function is called. The context ends when the lease is lost.
func (l *leases) hold(ctx context.Context, partition int, id, fence string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	l.held[id] = lease{partition: partition, fence: fence, lost: cancel}
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		if l.held[id].fence == fence {
			delete(l.held, id)
		}
		l.mu.Unlock()
		cancel(nil)
	}
}

func (l *leases) run(ctx context.Context) {
	// Attempts may end after ctx. Their leases are renewed until then.
	tick := time.NewTicker(l.store.opts.Lease / 4)
	defer tick.Stop()
	done := ctx.Done()
	for {
		select {
		case <-tick.C:
			l.extend(context.WithoutCancel(ctx))
		case <-done:
			done = nil
		}
		if done == nil && l.count() == 0 {
			return
		}
	}
}

// extend renews all leases, with one call for each partition.
func (l *leases) extend(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, l.store.opts.Lease/2)
	defer cancel()
	until := l.store.clock.Now().Add(l.store.opts.Lease)
	l.mu.Lock()
	pairs := map[int][]string{} // of id and fence, by partition
	for id, held := range l.held {
		pairs[held.partition] = append(pairs[held.partition], id, held.fence)
	}
	l.mu.Unlock()
	for partition, held := range pairs {
		lost, err := extendScript.Run(ctx, l.store.DB.Client(), []string{l.store.keys.events(partition)},
			extendArgs{LeaseUntil: until, Held: held})
		if err != nil {
			l.store.log.WarnContext(ctx, "leases not renewed", "count", len(held)/2, "error", err)
			continue
		}
		for _, id := range lost {
			l.drop(ctx, id)
		}
	}
}

func (l *leases) drop(ctx context.Context, id string) {
	l.mu.Lock()
	held, ok := l.held[id]
	delete(l.held, id)
	l.mu.Unlock()
	if ok {
		l.store.log.WarnContext(ctx, "lease lost", "message_id", id)
		held.lost(errLeaseLost)
	}
}

func (l *leases) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// lapsedAttempts are the log's lines about the attempts before whose worker died.
func lapsedAttempts(c *claim) (lines []api.Attempt) {
	for n, lapse := range strings.Fields(c.lapsed) {
		how, began, _ := strings.Cut(lapse, "@")
		lines = append(lines, api.Attempt{
			Number: len(c.status.Log) + n + 1, Start: redisdb.ParseTime(began), Gateway: c.gateway,
			InDoubt: how == "doubt", Error: "EINTERNAL", Line: "the worker died during this attempt",
		})
	}
	return lines
}
