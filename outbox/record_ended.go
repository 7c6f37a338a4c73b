package outbox

import (
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

// ended is a message in the log: all of it but its content.
type ended struct {
	Envelope  envelope `json:"envelope"`
	Status    status   `json:"status"`
	Result    string   `json:"result"`
	At        int64    `json:"at"` // of its end, in Unix milliseconds as the times below
	Created   int64    `json:"created"`
	Scheduled int64    `json:"scheduled"`
	Lane      api.Lane `json:"lane"`
	Gateway   string   `json:"gateway,omitempty"`
	Attempts  int      `json:"attempts"`
	Max       int      `json:"max"`
	Doubts    int      `json:"doubts,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// The results of a message.
const (
	resultSent       = "sent"
	resultFailed     = "failed"
	resultCancelled  = "cancelled"
	resultSuppressed = "suppressed"
)

// unlogged is the log entry of a message that has none.
const unlogged = "0"

// ending returns the log entry of a message that ends, packed; "" if there is no log (Options.KeepEnded),
// unlogged if its campaign keeps it out.
func (s *store) ending(r row, st status, result, reason string, at time.Time) (string, error) {
	if r.envelope.Campaign.unlogged() {
		return unlogged, nil
	}
	if s.opts.KeepEnded < 0 {
		return "", nil
	}
	return s.jsons.pack(r.id, ended{
		Envelope: r.envelope, Status: st, Result: result, At: redisdb.Millis(at), Created: r.created,
		Scheduled: r.planned, Lane: r.lane, Gateway: r.gateway, Attempts: r.attempts, Max: r.max, Doubts: r.doubts,
		Reason: reason,
	})
}

func (e ended) row(id string, partition int) row {
	return row{
		id: id, partition: partition, state: e.Result, ended: e.At, lane: e.Lane, created: e.Created,
		planned: e.Scheduled, attempts: e.Attempts, max: e.Max, gateway: e.Gateway, doubts: e.Doubts,
		reason: e.Reason, envelope: e.Envelope, status: e.Status,
	}
}
