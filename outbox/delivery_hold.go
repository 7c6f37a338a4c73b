package outbox

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// A message whose account or relay can't be used now is held: it is delayed, spends no attempt, and waits in
// its own line. Each line has a name.
//
// If a relay refuses the login, token, certificate or sender of an account that is set to hold, the messages
// of the account are held. When a check is due, one message is tried. Once it is sent, the sweeper wakes the
// others.
//
// A message is held too, so that no worker waits for it, if a relay has no free connection for this process,
// or is silent while others try it. Each attempt that ends at the relay wakes messages: bulk mail last, a
// gateway's accounts in random order, each account's oldest message first. If several accounts wait, the next
// message of a woken account's backlog joins its line.

// gatewayAgain is the wait of a message that names its gateway, after that gateway refused the login of an
// account that is set to hold. The other messages of the account do not wait.
const gatewayAgain = 5 * time.Minute

// holdAtMost is when a held message is tried again even if nothing woke it.
const holdAtMost = time.Hour

// line is the line of the account's messages that wait for the relay that was tried last.
func (d *decision) line(c *claim) relayHold {
	if len(d.tried) == 0 {
		return relayHold{}
	}
	return relayHold{d.tried[len(d.tried)-1], c.lane, c.envelope.Account}
}

// hold makes a message wait in a line, at most until it would be too late to send it. Campaign messages
// aren't woken: the campaign looks again.
func (d *Delivery) hold(c *claim, line, reason string, again time.Time) decision {
	now := d.clock.Now()
	due := now.Add(holdAtMost)
	if c.unrecorded() {
		due = now.Add(max(again.Sub(now), time.Second))
	}
	if by := c.envelope.DeliverBy; by != nil && by.Before(due) {
		due = *by
	}
	return decision{outcome: held, at: now, due: due, hold: line, reason: reason}
}

// accountLine begins the names of lines for an account.
const accountLine = "account:"

func accountHold(account string) string { return accountLine + account }

// relayHold is a line for a relay: an account's messages of a lane.
type relayHold struct {
	scope   string // see routing.Scope
	lane    api.Lane
	account string
}

// String returns the name of the line. No part of it contains a space.
func (h relayHold) String() string { return h.scope + " " + string(h.lane) + " " + h.account }

func readRelayHold(name string) (relayHold, bool) {
	parts := strings.Split(name, " ")
	if len(parts) != 3 {
		return relayHold{}, false
	}
	return relayHold{parts[0], api.Lane(parts[1]), parts[2]}, true
}

// heldBack reports whether a message must wait for its account. If a check is due, one message may go.
func (d *Delivery) heldBack(ctx context.Context, c *claim, account accounts.Sender) (bool, error) {
	if account.Held == nil || c.urgent || c.gateway != "" {
		return false, nil
	}
	ok, err := d.Accounts.Trial(ctx, account.ID)
	return !ok, err
}

// heldReason is why a message waits for its account, from the error of an attempt or from its last reply.
func heldReason(why string) string {
	if phase, rest, ok := strings.Cut(why, ": "); ok && strings.HasPrefix(phase, "smtp ") {
		why = rest
	}
	return "the account is held: " + message.OneLine(why, gateways.MostErrorText)
}

// troubled reports whether a relay refused the account, so that message and recipients were not judged.
func troubled(se *smtpsend.Error) bool { return se != nil && se.Verdict == smtpsend.Auth }

// release wakes held messages, even those of a process that died: all messages of an account that is no
// longer held, one of an account whose check is due, and as many for each relay as it has room for.
func (s *sweeper) release(ctx context.Context, p int, now time.Time) error {
	names, err := s.d.DB.Client().SMembers(ctx, s.d.keys.held(p)).Result()
	if err != nil {
		return err
	}
	for _, scope := range s.d.lines.replace(p, names) {
		s.d.lines.wake(ctx, scope)
	}
	if err := s.follow(ctx, p, names, now); err != nil {
		return err
	}
	for _, name := range names {
		account, ok := strings.CutPrefix(name, accountLine)
		if !ok {
			continue
		}
		n, err := s.releasable(ctx, account, now)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		woken, err := s.d.unhold(ctx, p, name, n, false)
		if err != nil {
			return err
		}
		if woken > 1 {
			s.d.log.InfoContext(ctx, "held messages released", "account", account, "count", woken)
		}
	}
	return nil
}

// follow queues messages of the accounts that have a backlog and no line, as many as their windows have room
// for.
func (s *sweeper) follow(ctx context.Context, p int, lines []string, now time.Time) error {
	backlogs, err := s.d.DB.Client().SMembers(ctx, s.d.keys.backlogs(p)).Result()
	if err != nil {
		return err
	}
	for _, name := range backlogs {
		if slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, " "+name) }) {
			continue
		}
		lane, account, _ := strings.Cut(name, " ")
		woken, err := sweepRun(ctx, s.d.store, followScript, p, followArgs{Lane: api.Lane(lane), Account: account,
			Now: now, Window: s.d.window(ctx, account)})
		if err != nil {
			return err
		}
		s.d.enqueue(ctx, woken...)
	}
	return nil
}

// releasable returns how many held messages of an account may be sent now.
func (s *sweeper) releasable(ctx context.Context, account string, now time.Time) (int, error) {
	a, err := s.d.Accounts.Resolve(ctx, account)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && a.Held == nil: // messages without an account fail then
		return sweepBatch, nil
	case err != nil:
		return 0, err
	case now.Before(a.Held.Next):
		return 0, nil
	}
	return 1, nil
}

// unhold wakes messages of a line and returns how many.
func (s *store) unhold(ctx context.Context, p int, line string, most int, contended bool) (int, error) {
	now := s.clock.Now()
	woken, err := sweepRun(ctx, s, unholdScript, p,
		unholdArgs{Hold: line, Now: now, Due: now.Add(holdAtMost), Most: most, Contended: contended})
	if err != nil {
		return 0, err
	}
	s.enqueue(ctx, woken...)
	former := make([]task, len(woken))
	for i, w := range woken {
		former[i] = w.former(p)
	}
	s.forget(ctx, former...)
	return len(woken), nil
}

// lines are the lines of messages for relays that this process knows: lines that it made longer, and lines
// that the sweeper found.
type lines struct {
	store *store
	mu    sync.Mutex
	known map[string][]line // by the scope of the relay
}

// line is a line for a relay in a partition.
type line struct {
	relayHold
	partition int
}

func newLines(s *store) *lines { return &lines{store: s, known: map[string][]line{}} }

// contended reports whether messages of other accounts wait for the relay of a line.
func (l *lines) contended(own relayHold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.known[own.scope], func(k line) bool { return k.account != own.account })
}

// ahead reports whether messages wait in a line for a relay that go before another one.
func (l *lines) ahead(c *claim, scope string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !c.passes && slices.ContainsFunc(l.known[scope], func(k line) bool {
		return k.lane == c.lane || c.lane == api.Bulk
	})
}

// note remembers that a message stands in a line; "": in none.
func (l *lines) note(p int, name string) {
	hold, ok := readRelayHold(name)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := (line{hold, p}); !slices.Contains(l.known[hold.scope], at) {
		l.known[hold.scope] = append(l.known[hold.scope], at)
	}
}

// forget removes a line.
func (l *lines) forget(w line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[w.scope] = slices.DeleteFunc(l.known[w.scope], func(k line) bool { return k == w })
}

// replace sets the lines of a partition. It returns the relays that have any.
func (l *lines) replace(p int, names []string) []string {
	l.mu.Lock()
	for scope, known := range l.known {
		l.known[scope] = slices.DeleteFunc(known, func(k line) bool { return k.partition == p })
		if len(l.known[scope]) == 0 {
			delete(l.known, scope)
		}
	}
	l.mu.Unlock()
	var scopes []string
	for _, name := range names {
		l.note(p, name)
		if hold, ok := readRelayHold(name); ok && !slices.Contains(scopes, hold.scope) {
			scopes = append(scopes, hold.scope)
		}
	}
	return scopes
}

// bulkShare is how often bulk mail comes first although other mail waits, so that it never stands still.
const bulkShare = 0.2

// wake wakes as many of the messages that wait for a relay as it has room for. Messages with another way do
// not wait for a relay that does not answer.
func (l *lines) wake(ctx context.Context, scope string) {
	if !l.store.Router.Answers(scope) {
		l.divert(ctx, scope)
	}
	l.serve(ctx, scope)
}

// divert moves the messages that wait for a relay to the lines for the relays that serve instead of it.
func (l *lines) divert(ctx context.Context, scope string) {
	var served []string
	for _, w := range l.order(scope) {
		account, err := l.store.Accounts.Resolve(ctx, w.account)
		if err != nil {
			continue // its messages find that out when they are woken
		}
		to := l.store.Router.Instead(account, w.lane, scope)
		if to == "" {
			continue
		}
		instead := relayHold{to, w.lane, w.account}.String()
		args := shiftArgs{Hold: w.String(), To: instead, Most: sweepBatch,
			Reason: relayName(scope) + " does not answer; " + relayName(to) + " takes its mail"}
		for moved := sweepBatch; moved == sweepBatch; {
			if moved, err = sweepRun(ctx, l.store, shiftScript, w.partition, args); err != nil {
				l.store.log.WarnContext(ctx, "messages not moved to another relay", "relay", scope, "error", err)
				return
			}
			if moved > 0 {
				l.note(w.partition, instead)
				served = append(served, to)
			}
		}
	}
	slices.Sort(served)
	for _, to := range slices.Compact(served) {
		l.serve(ctx, to)
	}
}

// relayName is the name of a relay for operators.
func relayName(scope string) string { return strings.Replace(scope, ":", " ", 1) }

func (l *lines) serve(ctx context.Context, scope string) {
	waiting := l.order(scope)
	if len(waiting) == 0 {
		return
	}
	room, bulkRoom := l.store.Router.Slots(scope, api.Transactional), l.store.Router.Slots(scope, api.Bulk)
	woken := 0
	for i, w := range waiting {
		lines := len(waiting) - i
		n := (room - woken + lines - 1) / lines
		if w.lane == api.Bulk {
			n = min(n, bulkRoom-woken)
		}
		if n < 1 {
			continue
		}
		got, err := l.store.unhold(ctx, w.partition, w.String(), n, l.contended(w.relayHold))
		if err != nil {
			l.store.log.WarnContext(ctx, "messages not woken", "relay", scope, "error", err)
			return
		}
		if got < n {
			l.forget(w) // it is empty
		}
		woken += got
		l.store.Router.ExpectWaiting(scope, got)
	}
}

// order returns the lines of a relay in the order in which they are served now.
func (l *lines) order(scope string) []line {
	l.mu.Lock()
	waiting := slices.Clone(l.known[scope])
	l.mu.Unlock()
	rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	sign := -1
	if rand.Float64() < bulkShare {
		sign = 1
	}
	slices.SortStableFunc(waiting, func(a, b line) int { // "bulk" is less than "transactional"
		return sign * cmp.Compare(a.lane, b.lane)
	})
	return waiting
}

// wakeups are the tasks of the messages that follow.
func (f finished) wakeups(lane api.Lane) (all []wakeup) {
	for pair := range slices.Chunk(strings.Fields(f.Followers), 2) {
		all = append(all, wakeup{ID: pair[0], Lane: lane, Epoch: pair[1]})
	}
	return all
}
