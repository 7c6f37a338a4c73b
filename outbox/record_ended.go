package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// ended is a message in the log: all of it but its content, which Options.KeepContent keeps beside it.
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
	Shared    string   `json:"shared,omitempty"` // name of the shared content, if the content is kept
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
	e := ended{
		Envelope: r.envelope, Status: st, Result: result, At: redisdb.Millis(at), Created: r.created,
		Scheduled: r.planned, Lane: r.lane, Gateway: r.gateway, Attempts: r.attempts, Max: r.max, Doubts: r.doubts,
		Reason: reason,
	}
	if s.opts.keeps(r, result) {
		e.Shared = r.shared
	}
	return s.jsons.pack(r.id, e)
}

// keeps reports whether the content of a message that ends is kept. It must have been sent and have an entry
// in the log, by which it is found and which retention deletes. A content that names an erased person is not
// kept.
func (o Options) keeps(r row, result string) bool {
	return o.KeepContent > 0 && result == resultSent && !r.envelope.Campaign.unlogged() &&
		!slices.Contains(r.envelope.To, message.Erased)
}

func (e ended) row(id string, partition int) row {
	return row{
		id: id, partition: partition, state: e.Result, ended: e.At, lane: e.Lane, created: e.Created,
		planned: e.Scheduled, attempts: e.Attempts, max: e.Max, gateway: e.Gateway, doubts: e.Doubts,
		reason: e.Reason, shared: e.Shared, envelope: e.Envelope, status: e.Status,
	}
}
