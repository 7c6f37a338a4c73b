package audit

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
)

const (
	// MaxFolded is the number of entries of refusals and logins over SMTP that a process writes in an hour.
	MaxFolded = 20
	foldAgain = time.Hour // until the next entry about the same
	maxFolds  = 1000      // kinds of refusals that are distinguished
)

// folds are the refusals and logins that are not written yet.
type folds struct {
	mu      sync.Mutex
	by      map[foldKey]*folded
	others  folded // beyond the bounds
	hour    time.Time
	written int // in this hour
}

// foldKey is the same for refusals that are folded together.
type foldKey struct {
	who            api.AuditActor // in any session, with the network as the address
	action, reason string
	result         api.AuditResult
}

// folded is a number of refusals of one kind.
type folded struct {
	entry   api.AuditEntry
	count   int
	since   time.Time
	written time.Time // the last entry about it; zero if there is none yet
}

func (f *folded) add(now time.Time) {
	if f.count++; f.count == 1 {
		f.since = now
	}
}

// Note counts a refusal, or a login that happens often. It is written within a minute, or with its like
// within an hour. All refused changes of a caller are alike: their entry describes the first one that it
// counts.
func (l *Log) Note(e api.AuditEntry) {
	now := l.opts.Now()
	e.Reason = clip(e.Reason)
	key := foldKey{e.Who, e.Action, e.Reason, e.Result}
	key.who.Session, key.who.Address = "", network(e.Who.Address)
	if e.Object != nil {
		key.action, key.reason = "", ""
	}
	l.folds.mu.Lock()
	defer l.folds.mu.Unlock()
	f := l.folds.by[key]
	switch {
	case f != nil:
	case len(l.folds.by) >= maxFolds:
		f = &l.folds.others
	default:
		if l.folds.by == nil {
			l.folds.by = map[foldKey]*folded{}
		}
		f = &folded{}
		l.folds.by[key] = f
	}
	if f.count == 0 {
		f.entry = e
	}
	f.add(now)
}

// network returns what tells unauthenticated clients apart: an IPv4 address, or the /64 of an IPv6 address.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || a.Unmap().Is4() {
		return address
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return p.String()
}

// Flush writes due notes. Notes that can't be written stay for the next time.
func (l *Log) Flush(ctx context.Context) {
	for _, e := range l.due(l.opts.Now()) {
		if _, err := l.Append(ctx, e); err != nil {
			l.log.WarnContext(ctx, "refusals not written to the audit log", "action", e.Action, "count", e.Count,
				"error", err)
		}
	}
}

// due returns the entries to write now, and forgets kinds that were quiet for an hour.
func (l *Log) due(now time.Time) []api.AuditEntry {
	f := &l.folds
	f.mu.Lock()
	defer f.mu.Unlock()
	newHour := now.Sub(f.hour).Abs() >= time.Hour
	if newHour {
		f.hour, f.written = now, 0
	}
	var all []api.AuditEntry
	for key, one := range f.by {
		switch {
		case one.count == 0 && now.Sub(one.written) >= foldAgain:
			delete(f.by, key)
		case one.count == 0 || !one.written.IsZero() && now.Sub(one.written) < foldAgain:
		case f.written >= MaxFolded:
			f.others.count += one.count
			if f.others.since.IsZero() || one.since.Before(f.others.since) {
				f.others.since = one.since
			}
			delete(f.by, key)
		default:
			f.written++
			e := one.entry
			e.Count, e.Since = one.count, new(one.since.UTC())
			all = append(all, e)
			one.count, one.written = 0, now
		}
	}
	if newHour && f.others.count > 0 {
		all = append(all, api.AuditEntry{Result: api.AuditRefused, Action: "refusals",
			Who:   api.AuditActor{Kind: Anonymous},
			Count: f.others.count, Since: new(f.others.since.UTC()),
			Reason: fmt.Sprintf("beyond the %d that are listed separately in an hour", MaxFolded)})
		f.others = folded{}
	}
	return all
}
