package outbox

import (
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// pauseReason is the reason of a wait for the end of a pause.
const pauseReason = "the queue is paused"

// readyUntil returns the times in which a message was due and no attempt had begun, also those that the next
// attempt would add to its record; and the message with the end of its last wait.
func (r row) readyUntil(now time.Time) (row, []span) {
	switch due := redisdb.Time(r.due); {
	case r.ended != 0 || r.state == stateFailed:
	case r.state == stateActive:
		r.status.begins(due, redisdb.Time(r.taken))
	case !due.After(now):
		r.status.begins(due, due)
		return r, append(r.status.Ready, span{r.due, forever})
	}
	return r, r.status.Ready
}

// pausedWaits returns the waits of a message for the end of a pause: times in which it was ready, and its
// queue was paused, for a second or more.
func (r row) pausedWaits(ready, pauses []span) []api.MessageEvent {
	var waits []api.MessageEvent
	for _, free := range ready {
		for _, pause := range pauses {
			both := free.overlap(pause)
			if both[1]-both[0] < shortestWait.Milliseconds() {
				continue
			}
			e := api.MessageEvent{EventID: fmt.Sprintf("%s-%d", r.id, both[0]), Event: string(waited),
				Date: redisdb.Time(both[0]), Recipients: r.envelope.To, Reason: pauseReason}
			if both[1] != forever {
				e.Until = new(redisdb.Time(both[1]))
			}
			waits = append(waits, e)
		}
	}
	return waits
}
