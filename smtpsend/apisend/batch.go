package apisend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// Lists of messages. Messages for one target that come at the same time leave in one request. The first one
// waits for others only while the target has a request under way, at most listWait, and then for its turn.
// Callers see single messages: each has its own marks, patience, context and result.
const (
	listWait  = 20 * time.Millisecond
	listBytes = 10 << 20 // all messages together; a larger one goes alone
)

// batches are the lists that take further messages.
type batches struct {
	mu   sync.Mutex // also of all members
	open map[batchKey]*batch
}

// batchKey is what the messages of a list have in common.
type batchKey struct {
	target Target
	author string // a provider that refuses one refuses the list
	bulk   bool
}

// batch is a list in the making, and under way.
type batch struct {
	batchKey
	s       *Sender
	ctx     context.Context //nolint:containedctx // ends when no caller waits any more
	stop    context.CancelFunc
	full    chan struct{} // closed when there is no room for a further message
	members []*member
	size    int
	waiting int // callers
}

// member is a message in a list.
type member struct {
	ctx   context.Context //nolint:containedctx // of its caller
	m     smtpsend.Message
	q     request // for the message alone
	group group
	begun time.Time

	done chan struct{} // closed when out is known
	out  sent

	marked bool  // BeforeDot has succeeded; only of the list
	failed error // why its marks failed, in the request under way

	turn    bool          // it waits no longer for a connection
	marking chan struct{} // closed when its marks have been called; nil if they are not being called
	left    bool          // the last byte of its request
	gone    bool          // its caller does not wait any more
}

// gather sends a message together with others.
func (s *Sender) gather(t Target, m *member, author string) sent {
	m.begun, m.done = time.Now(), make(chan struct{})
	l := s.join(batchKey{t, author, m.m.Bulk}, m)
	var patience <-chan time.Time
	if m.m.Patience > 0 {
		timer := time.NewTimer(m.m.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	for {
		select {
		case <-m.done:
			return m.out
		case <-patience:
			if l.giveUp(m) {
				return sent{wait: time.Since(m.begun), unsent: noTurn(errAllBusy, 0)}
			}
			patience = nil
		case <-m.ctx.Done():
			out, marking := l.quit(m)
			if marking == nil {
				return out
			}
			<-marking // what m wants to know of its marks is decided then
		}
	}
}

// join adds a message to the open list, or begins one.
func (s *Sender) join(k batchKey, m *member) *batch {
	s.batches.mu.Lock()
	defer s.batches.mu.Unlock()
	l := s.batches.open[k]
	if l != nil && l.size+len(m.q.item) > listBytes {
		l.shut()
		l = nil
	}
	if l == nil {
		l = &batch{batchKey: k, s: s, full: make(chan struct{})}
		l.ctx, l.stop = context.WithCancel(context.WithoutCancel(m.ctx))
		s.batches.open[k] = l
		go l.run()
	}
	l.members, l.size, l.waiting = append(l.members, m), l.size+len(m.q.item), l.waiting+1
	if len(l.members) == k.target.list() {
		l.shut()
	}
	return l
}

// shut ends the gathering. The caller holds the lock.
func (l *batch) shut() {
	if l.s.batches.open[l.batchKey] == l {
		delete(l.s.batches.open, l.batchKey)
		close(l.full)
	}
}

// run sends the list when it is full, or others have been waited for.
func (l *batch) run() {
	defer l.stop()
	late := time.NewTimer(listWait)
	defer late.Stop()
	select {
	case <-l.full:
	case <-l.s.slots.idle(l.target):
	case <-late.C:
	case <-l.ctx.Done():
	}
	leave, failure := l.s.enter(l.ctx, l.target, smtpsend.Message{Bulk: l.bulk})
	members := l.take(failure == nil)
	if failure != nil {
		for _, m := range members {
			l.settle(m, sent{unsent: new(*failure)})
		}
		return
	}
	defer leave()
	l.send(members)
}

// take ends the gathering, and returns the messages whose callers still wait.
func (l *batch) take(turn bool) []*member {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	l.shut()
	members := slices.DeleteFunc(l.members, func(m *member) bool { return m.gone })
	for _, m := range members {
		m.turn = turn
		m.out.wait = time.Since(m.begun)
	}
	return members
}

// settle gives a message its result.
func (l *batch) settle(m *member, out sent) {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	if !m.gone {
		out.wait = m.out.wait
		m.out = out
		l.drop(m)
		close(m.done)
	}
}

// drop notes that no one waits for a message any more. The caller holds the lock.
func (l *batch) drop(m *member) {
	m.gone = true
	if l.waiting--; l.waiting == 0 {
		l.shut()
		l.stop()
	}
}

// giveUp ends the wait of a message that has no turn yet. It reports false if it has one.
func (l *batch) giveUp(m *member) bool {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	if m.turn || m.gone {
		return false
	}
	l.drop(m)
	return true
}

// quit takes a message out whose caller has left. It is in doubt if the last byte has. While its marks are
// being called, quit returns a channel that is closed afterwards.
func (l *batch) quit(m *member) (out sent, marking <-chan struct{}) {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	cause := context.Cause(m.ctx)
	switch {
	case m.marking != nil:
		return sent{}, m.marking
	case m.gone: // it was settled just now
		return m.out, nil
	case m.left:
		out.err = (&exchange{method: "POST"}).doubt(cause)
	case m.turn:
		out.err = l.s.unreached(m.ctx, sent{}, cause)
	default:
		out.unsent = l.s.unreached(m.ctx, sent{}, cause)
	}
	out.wait = m.out.wait
	l.drop(m)
	return out, nil
}

// send sends messages in one request. If marks fail, it leaves those messages out and starts the request
// again. If messages are refused together, it sends them in halves.
func (l *batch) send(members []*member) {
	for len(members) > 0 {
		out := l.deliver(members)
		var rest []*member
		if out.err != nil && errors.Is(out.err, errUnmarked) && !out.err.InDoubt {
			for _, m := range members {
				if m.failed == nil {
					rest = append(rest, m)
				} else {
					l.settle(m, sent{err: abortedError(m.failed)})
				}
			}
			members = rest
			continue
		}
		if n := len(members); n > 1 && out.err == nil && l.refusesOne(out.x) {
			l.send(members[:n/2])
			l.send(members[n/2:])
			return
		}
		l.answer(members, out)
		return
	}
}

// deliver sends one request.
func (l *batch) deliver(members []*member) sent {
	q, g := members[0].q, members[0].group
	if len(members) > 1 {
		var items [][]byte
		key, ids := "", sha256.New()
		for _, m := range members {
			items = append(items, m.q.item)
			ids.Write([]byte(m.q.key + "\n"))
		}
		if !slices.ContainsFunc(members, func(m *member) bool { return m.q.key == "" }) {
			key = "list-" + hex.EncodeToString(ids.Sum(nil)[:16])
		}
		var err error
		if q, err = adapters[l.target.Type].list.request(l.target, key, items); err != nil {
			return sent{err: (&Lack{Gateway: l.target.ID, Why: "makes no request: " + err.Error()}).uncarried()}
		}
		q.list, g = true, group{}
	}
	return l.s.deliver(l.ctx, l.target, q, g, func(repeated bool) func(context.Context) error {
		return func(ctx context.Context) error { return l.mark(ctx, members, repeated) }
	})
}

// errUnmarked is why a request was given up because a message could not be marked.
var errUnmarked = errors.New("a message of the list was not marked")

// mark calls the marks of all messages side by side before the last byte leaves.
func (l *batch) mark(ctx context.Context, members []*member, repeated bool) error {
	l.begin(members)
	defer l.end(members)
	var group sync.WaitGroup
	for _, m := range members {
		if m.failed == nil && (repeated || !m.marked) {
			group.Go(func() { m.failed = m.before(ctx) })
		}
	}
	group.Wait()
	for _, m := range members {
		if m.failed == nil {
			m.failed = m.still()
		}
	}
	if slices.ContainsFunc(members, func(m *member) bool { return m.failed != nil }) {
		return errUnmarked
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	for _, m := range members {
		m.left = true
	}
	return nil
}

func (l *batch) begin(members []*member) {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	marking := make(chan struct{})
	for _, m := range members {
		m.failed = nil
		if m.gone {
			m.failed = context.Cause(m.ctx)
		} else {
			m.marking = marking
		}
	}
}

func (l *batch) end(members []*member) {
	l.s.batches.mu.Lock()
	defer l.s.batches.mu.Unlock()
	var marking chan struct{}
	for _, m := range members {
		if m.marking != nil {
			marking, m.marking = m.marking, nil
		}
	}
	if marking != nil {
		close(marking)
	}
}

// before calls BeforeDot, until the exchange or the caller's context ends.
func (m *member) before(exchange context.Context) error {
	if m.m.BeforeDot == nil {
		return nil
	}
	ctx, stop := context.WithCancelCause(m.ctx)
	defer stop(nil)
	defer context.AfterFunc(exchange, func() { stop(context.Cause(exchange)) })()
	err := m.m.BeforeDot(ctx, m.group.all())
	m.marked = err == nil
	return err
}

// still asks a last time whether the message may leave.
func (m *member) still() error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	if m.m.AtDot != nil {
		return m.m.AtDot()
	}
	return nil
}

// refusesOne reports whether an answer refuses a list for a reason that one of its messages may have.
func (l *batch) refusesOne(x *exchange) bool {
	if _, list := x.adapter.list.split(x); list || x.ok() {
		return false
	}
	scope := smtpsend.ScopeAccount
	if a := x.adapter.read(x); a.refusal != nil {
		scope = a.refusal.scope
	} else if m, known := byStatus(x.status, false); a.unreadable && known {
		scope = m.scope
	}
	return scope == smtpsend.ScopeMessage || scope == smtpsend.ScopeRecipient
}

// answer gives each message its part of an answer.
func (l *batch) answer(members []*member, out sent) {
	var parts []*exchange
	whole := len(members) == 1 || out.err != nil
	if !whole {
		var list bool
		if parts, list = out.x.adapter.list.split(out.x); !list && out.x.ok() {
			l.s.o.Logger.Warn("the answer to a list is not the API's", "gateway", l.target.ID, "status", out.x.status,
				"bytes", len(out.x.body))
		} else if !list {
			whole = true
		}
		if len(parts) != len(members) {
			parts = make([]*exchange, len(members)) // its count contradicts: whose answers are these?
		}
	}
	for i, m := range members {
		one := out
		switch {
		case whole && out.err != nil:
			one.err = new(*out.err)
		case whole:
			one.x = out.x.part(out.x.status, out.x.body)
		case parts[i] != nil:
			one.x = parts[i]
		default:
			one.x, one.err = nil, out.x.doubt(errUnnamed)
		}
		if one.x != nil {
			one.x.to, one.x.group = m.group.all(), m.group
		}
		l.settle(m, one)
	}
}

// part is an exchange with one message of a list.
func (x *exchange) part(status int, body []byte) *exchange {
	one := *x
	one.status, one.body = status, body
	return &one
}
