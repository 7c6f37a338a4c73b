package outbox

import (
	"sync"

	"github.com/postroom/postroom/api"
)

// backlogs are the accounts whose last message went to a backlog, as far as this process knows. The task of
// their next message is probably not wanted. A wrong guess costs a round trip, or a task that a worker drops.
type backlogs struct {
	mu    sync.Mutex
	known map[string]bool // by lane and account
}

// maxBacklogs bounds the memory of a process. Beyond it all are forgotten.
const maxBacklogs = 10_000

func (b *backlogs) has(m *newMessage) bool {
	if m.envelope.Priority == api.High {
		return false // there is more room for it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[string(m.lane)+" "+m.envelope.Account]
}

func (b *backlogs) note(m *newMessage) {
	if m.envelope.Priority == api.High {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	name := string(m.lane) + " " + m.envelope.Account
	switch {
	case !m.backlogged:
		delete(b.known, name)
		return
	case b.known == nil || len(b.known) >= maxBacklogs:
		b.known = map[string]bool{}
	}
	b.known[name] = true
}
