package limits

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// Answer is the result of [Limits.Reserve].
type Answer struct {
	// OK: go now. The fields below are empty then.
	OK bool
	// At is when to come back, by Redis' clock.
	At time.Time
	// Reservation must be kept while waiting, and shown then.
	Reservation Reservation
	// Reason is the limit that the message waits for, such as "account x: 30 a minute".
	Reason string
	// Scope is the name of the scope that is full.
	Scope string
}

// Reserve asks for n recipients (below 1: 1) in each scope, in order; destinations come first. had is the
// reservation of the last answer to the same message, empty at first. Scopes that the message has paid for
// are passed. A reservation for a scope that is not asked now is kept, so that a message may wait at several
// gateways. If Redis is unreachable the error is of kind fault.Unavailable; the message is then not admitted,
// though it may have been charged.
func (l *Limits) Reserve(ctx context.Context, scopes []Scope, n int, had Reservation) (Answer, error) {
	asked, err := l.asked(ctx, scopes)
	if err != nil {
		return Answer{}, err
	}
	if len(asked) == 0 {
		l.metrics.taken(scopes)
		return Answer{OK: true}, nil
	}
	entries := had.entries()
	reply, err := l.store.take(ctx, asked, max(n, 1), entries)
	if err != nil {
		return Answer{}, redisdb.Failed(err, "limits: take from "+asked[0].Name)
	}
	if reply.Word == "OK" {
		l.metrics.taken(scopes)
		return Answer{OK: true}, nil
	}
	full := asked[reply.Full-1]
	l.metrics.waited(full.Name)
	return Answer{
		At: time.UnixMicro(reply.At).UTC(), Reservation: makeReservation(entries, asked, reply),
		Reason: full.reason(reply.Reason), Scope: strings.TrimSuffix(full.Name, bulkSuffix),
	}, nil
}

// asked returns the scopes with bounds, and before each the scope for its bulk mail. The others cost nothing.
func (l *Limits) asked(ctx context.Context, scopes []Scope) ([]Scope, error) {
	asked := make([]Scope, 0, 2*len(scopes))
	for _, s := range scopes {
		if s.Name == "" || strings.Contains(s.Name, " ") {
			return nil, fmt.Errorf("limits: %q is not the name of a scope", s.Name)
		}
		if s.Rate = s.Rate.clean(); s.Rate == (Rate{}) {
			slow, err := l.mayBeThrottled(ctx, s.Name)
			if err != nil {
				return nil, err
			}
			if !slow {
				continue
			}
		}
		if s.Bulk && s.Rate != (Rate{}) {
			asked = append(asked, s.forBulk())
		}
		asked = append(asked, s)
	}
	return asked, nil
}
