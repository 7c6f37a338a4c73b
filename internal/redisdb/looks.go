package redisdb

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Looks looks into Redis for loops that have nothing to do. Each names keys, one of which exists whenever
// there is work for it. One command at a time asks for all of them, so it doesn't matter how many loops a
// process has. It is safe for concurrent use.
type Looks struct {
	client   redis.UniversalClient
	together bool // one command may name keys of several slots
	began    time.Time
	kick     chan struct{} // tells run that waiting has changed

	mu      sync.Mutex
	waiting []*Work
	running bool
}

// Work is what one loop waits for. Only that loop may use it, apart from Wake.
type Work struct {
	looks *Looks
	keys  []string

	// guarded by looks.mu
	every time.Duration
	due   time.Time     // when to look next
	some  bool          // one of the keys existed at the last look
	soon  bool          // the next pause ends at once
	woken chan struct{} // closed when the loop continues
}

const (
	lookTogether = 10 * time.Millisecond // looks that are due this soon are made together
	lookPatience = 5 * time.Second
)

// NewLooks returns Looks that use a connection. together says whether one command may name keys of several
// slots; see [DB.Together].
func NewLooks(c redis.UniversalClient, together bool) *Looks {
	return &Looks{client: c, together: together, began: time.Now(), kick: make(chan struct{}, 1)}
}

// Looks returns what the loops of this process share.
func (db *DB) Looks() *Looks { return db.looks }

// For returns the work that there is while any of the keys exists.
func (l *Looks) For(keys ...string) *Work { return &Work{looks: l, keys: keys} }

// Pause waits for about d, and longer while none of the keys exists. It returns once more after they are
// gone, and after any error of Redis, which the loop then sees for itself. It reports false as soon as ctx
// ends. All pauses of one length end at the same time.
func (w *Work) Pause(ctx context.Context, d time.Duration) bool {
	l := w.looks
	l.mu.Lock()
	if soon := w.soon; soon || ctx.Err() != nil {
		w.soon = false
		l.mu.Unlock()
		return ctx.Err() == nil
	}
	since := time.Since(l.began)
	w.every, w.due, w.woken = d, l.began.Add((since+d/2).Truncate(d)+d), make(chan struct{})
	l.waiting = append(l.waiting, w)
	if !l.running {
		l.running = true
		go l.run()
	}
	l.mu.Unlock()
	l.changed()
	select {
	case <-w.woken:
		return true
	case <-ctx.Done():
		l.mu.Lock()
		l.waiting = slices.DeleteFunc(l.waiting, func(other *Work) bool { return other == w })
		l.mu.Unlock()
		l.changed()
		return false
	}
}

// Wake ends the pause, or the next one. Any goroutine may call it.
func (w *Work) Wake() {
	w.looks.mu.Lock()
	defer w.looks.mu.Unlock()
	at := slices.Index(w.looks.waiting, w)
	if at < 0 {
		w.soon = true
		return
	}
	w.looks.waiting = slices.Delete(w.looks.waiting, at, at+1)
	close(w.woken)
}

func (l *Looks) changed() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run makes due looks until none is waiting.
func (l *Looks) run() {
	for {
		due, wait, any := l.next(time.Now())
		switch {
		case !any:
			return
		case len(due) > 0:
			l.look(due)
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-l.kick:
			}
			timer.Stop()
		}
	}
}

// next returns the work to look for now, or how long it is until then.
func (l *Looks) next(now time.Time) (due []*Work, wait time.Duration, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.running = false
		return nil, 0, false
	}
	wait = time.Hour
	for _, w := range l.waiting {
		left := w.due.Sub(now)
		if left <= lookTogether {
			due = append(due, w)
		}
		wait = min(wait, left)
	}
	return due, wait, true
}

// look looks for work, and wakes the loops that have some, or had some at the last look. First it asks for
// all keys together that did not exist then.
func (l *Looks) look(due []*Work) {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	var absent []string
	var ask []*Work
	for _, w := range due {
		if w.some { // only run writes it
			ask = append(ask, w)
		} else {
			absent = append(absent, w.keys...)
		}
	}
	slices.Sort(absent)
	found, err := l.exist(ctx, slices.Compact(absent))
	if found[0] || err != nil {
		ask = due
	}
	keys := make([][]string, len(ask))
	for i, w := range ask {
		keys[i] = w.keys
	}
	if err == nil {
		found, err = l.exist(ctx, keys...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	some := make(map[*Work]bool, len(ask))
	for i, w := range ask {
		some[w] = err != nil || found[i]
	}
	now := time.Now()
	l.waiting = slices.DeleteFunc(l.waiting, func(w *Work) bool {
		if !slices.Contains(due, w) {
			return false
		}
		wake := some[w] || w.some
		w.some, w.due = some[w], w.due.Add(max(w.every, now.Sub(w.due).Truncate(w.every)))
		if wake {
			close(w.woken)
		}
		return wake
	})
}

// Any reports whether any of the keys exists, with one command, or with one for each slot of a Cluster.
func (l *Looks) Any(ctx context.Context, keys ...string) (bool, error) {
	found, err := l.exist(ctx, keys)
	return found[0], err
}

// exist reports of each list whether any of its keys exists, in one round trip.
func (l *Looks) exist(ctx context.Context, lists ...[]string) ([]bool, error) {
	found, asked := make([]bool, len(lists)), make([][]*redis.IntCmd, len(lists))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, keys := range lists {
			for _, some := range l.slots(keys) {
				asked[i] = append(asked[i], p.Exists(ctx, some...))
			}
		}
		return nil
	})
	for i, cmds := range asked {
		found[i] = slices.ContainsFunc(cmds, func(cmd *redis.IntCmd) bool { return cmd.Val() > 0 })
	}
	return found, err
}

// slots returns the keys that one command may name.
func (l *Looks) slots(keys []string) [][]string {
	if len(keys) == 0 {
		return nil
	}
	if l.together {
		return [][]string{keys}
	}
	bySlot := map[string][]string{}
	for _, key := range keys {
		tag := slotTag(key)
		bySlot[tag] = append(bySlot[tag], key)
	}
	all := make([][]string, 0, len(bySlot))
	for _, some := range bySlot {
		all = append(all, some)
	}
	return all
}

// slotTag returns the part of a key that chooses its slot in a Cluster.
func slotTag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
