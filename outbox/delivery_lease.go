package outbox

import (
	"context"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

// leased is the right to send one message.
type leased struct {
	partition int
	id, fence string
}

// newLeases returns the leases of the messages that this process is sending. They are renewed with one call
// for each partition.
func newLeases(s *store) *lease.Set[leased] {
	return lease.NewSet(s.opts.Lease, s.log, func(ctx context.Context, held []leased) (lost []leased,
		failed error) {
		until := s.clock.Now().Add(s.opts.Lease)
		pairs := map[int][]string{} // of id and fence, by partition
		for _, h := range held {
			pairs[h.partition] = append(pairs[h.partition], h.id, h.fence)
		}
		for partition, held := range pairs {
			gone, err := extendScript.Run(ctx, s.DB.Client(), []string{s.keys.events(partition)},
				extendArgs{LeaseUntil: until, Held: held})
			if err != nil {
				failed = err
			}
			for pair := range slices.Chunk(gone, 2) {
				lost = append(lost, leased{partition, pair[0], pair[1]})
			}
		}
		return lost, failed
	})
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
