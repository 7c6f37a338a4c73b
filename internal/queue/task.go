package queue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The queues of Postroom.
const (
	Submit    = "submit"    // transactional messages
	Bulk      = "bulk"      // messages of campaigns and digests
	Digests   = "digests"   // has no tasks: while it is paused, no digest is made
	Notify    = "notify"    // webhooks
	Documents = "documents" // the search index
)

// Names lists the queues of Postroom in the order in which pages show them.
func Names() []string { return []string{Submit, Bulk, Notify, Documents, Digests} }

// Lane returns the queue of a partition: "submit" for partition 0, "submit-1" for partition 1, and so on. A
// queue is in one slot of a Redis Cluster, so the outbox needs one for each partition to spread its load.
func Lane(name string, partition int) string {
	if partition == 0 {
		return name
	}
	return name + "-" + strconv.Itoa(partition)
}

// Whole returns the queue that a queue of a partition is a part of: "submit" for "submit-1" and for "submit".
func Whole(name string) string {
	whole, _, _ := strings.Cut(name, "-")
	return whole
}

// PartOf returns the partition of a queue that Lane made.
func PartOf(name string) int {
	_, part, _ := strings.Cut(name, "-")
	p, _ := strconv.Atoi(part)
	return p
}

// Task is one wake-up.
type Task struct {
	Queue   string    // where it waits
	Type    string    // which handler gets it
	ID      string    // unique in its queue; letters, digits and "_.:-" only
	Payload []byte    // for the handler; keep it to an id, it is shown in the dashboard
	At      time.Time // not before; zero or past: now. Rounded up to a whole second, the resolution of the queue
}

// check refuses what asynq or the dashboard cannot handle. For example, a "/" in an id makes a task that
// cannot be opened or deleted.
func (t Task) check() error {
	if t.Queue == "" || t.Type == "" {
		return fmt.Errorf("task %q: queue %q and type %q must both be named", t.ID, t.Queue, t.Type)
	}
	if t.ID == "" {
		return fmt.Errorf("task of type %s in %s has no id", t.Type, t.Queue)
	}
	if t.ID == "." || t.ID == ".." {
		return fmt.Errorf("task id %q is a step in a path", t.ID)
	}
	for i := 0; i < len(t.ID); i++ {
		if !idByte(t.ID[i]) {
			return fmt.Errorf("task id %q: only letters, digits and _.:- are allowed", t.ID)
		}
	}
	return nil
}

func idByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '_' || c == '.' || c == ':' || c == '-'
}

// roundUp returns the first whole second that is not before t. asynq cuts times down to whole seconds, and an
// email sent before its time cannot be withdrawn.
func roundUp(t time.Time) time.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		return whole.Add(time.Second)
	}
	return whole
}
