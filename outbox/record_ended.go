package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
)

// ended is what stays of a message in the log once it is gone from the outbox: everything but its content.
type ended struct {
	Envelope  envelope `json:"envelope"`
	Status    status   `json:"status"`
	Result    string   `json:"result"`
	At        int64    `json:"at"` // Unix milliseconds, as the times below
	Created   int64    `json:"created"`
	Scheduled int64    `json:"scheduled"`
	Lane      api.Lane `json:"lane"`
	Gateway   string   `json:"gateway,omitempty"`
	Attempts  int      `json:"attempts"`
	Max       int      `json:"max"`
	Doubts    int      `json:"doubts,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// How a message can end.
const (
	resultSent       = "sent"
	resultFailed     = "failed"
	resultCancelled  = "cancelled"
	resultSuppressed = "suppressed"
)

// ending is a message as it will stand in the log. A message whose record is to be forgotten at once has
// none: the empty string.
func (s *store) ending(r row, st status, result, reason string, at time.Time) (string, error) {
	if s.opts.KeepEnded < 0 {
		return "", nil
	}
	return s.jsons.pack(r.id, ended{
		Envelope: r.envelope, Status: st, Result: result, At: millis(at), Created: r.created, Scheduled: r.planned,
		Lane:    r.lane,
		Gateway: r.gateway, Attempts: r.attempts, Max: r.max, Doubts: r.doubts, Reason: reason,
	})
}

// row is the ended message as the log reads it.
func (e ended) row(id string) row {
	return row{
		id: id, state: e.Result, ended: e.At, lane: e.Lane, created: e.Created, planned: e.Scheduled,
		attempts: e.Attempts, max: e.Max,
		gateway: e.Gateway, doubts: e.Doubts, reason: e.Reason, envelope: e.Envelope, status: e.Status,
	}
}

// trace reads what stays of an ended message; false when nothing does.
func (s *store) trace(ctx context.Context, p int, id string) (row, bool, error) {
	raw, err := s.DB.Client().Get(ctx, s.keys.ended(p, id)).Bytes()
	if errors.Is(err, redis.Nil) || err == nil && len(raw) == 0 {
		return row{}, false, nil
	}
	if err != nil {
		return row{}, false, away(err, "read what became of message "+id)
	}
	var e ended
	err = s.jsons.unpack(id, raw, &e)
	return e.row(id), err == nil, err
}
