package suppression

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Question is a message that wants to go out.
type Question struct {
	Account   string   // that sends it; empty: only what holds for the whole instance, and for the list
	List      string   // id of the list it belongs to; empty: none
	Bulk      bool     // it is bulk mail, which no unsubscribe lets through
	Addresses []string // of its recipients
}

// Check says for each address what stops mail to it; nil: it may be mailed. Of several entries it tells the strongest reason, of these
// the one of the list before that of the account and of the instance, and the address before its domain. It reads with one round trip,
// and leaves out evidence: that is for [Store.Find]. When Redis is away the error is fault.Unavailable.
func (s *Store) Check(ctx context.Context, q Question) ([]*Entry, error) {
	if len(q.Addresses) == 0 {
		return nil, nil
	}
	look := newLook(q)
	if err := look.ask(ctx, s.db.Client()); err != nil {
		return nil, away(err, "check recipients")
	}
	now := s.now().Unix()
	found := make([]*Entry, len(q.Addresses))
	for i, subject := range look.subjects {
		found[i] = look.strongest(subject, domainOf(subject), now)
		s.metrics.checked(found[i])
	}
	return found, nil
}

// look is one Check under way.
type look struct {
	q        Question
	scopes   []string // narrowest first
	subjects []string // the addresses, folded
	answers  map[string]*redis.SliceCmd
}

func newLook(q Question) *look {
	l := &look{q: q, subjects: make([]string, len(q.Addresses)), answers: make(map[string]*redis.SliceCmd, 2*len(q.Addresses))}
	if q.List != "" {
		l.scopes = append(l.scopes, scopeOf("", lower(q.List)))
	}
	if q.Account != "" {
		l.scopes = append(l.scopes, scopeOf(q.Account, ""))
	}
	l.scopes = append(l.scopes, instance)
	for i, address := range q.Addresses {
		l.subjects[i] = foldAddress(address)
	}
	return l
}

// ask reads all scopes of all addresses and their domains.
func (l *look) ask(ctx context.Context, client redis.UniversalClient) error {
	pipe := client.Pipeline()
	l.each(func(subject string, fields []string) {
		l.answers[subject] = pipe.HMGet(ctx, placeOf(subject).key(), fields...)
	})
	_, err := pipe.Exec(ctx)
	return err
}

// each names the addresses and their domains, each once, and the fields that they have in all scopes.
func (l *look) each(do func(subject string, fields []string)) {
	seen := make(map[string]bool, 2*len(l.subjects))
	for _, address := range l.subjects {
		for _, subject := range [...]string{address, domainOf(address)} {
			if seen[subject] {
				continue
			}
			seen[subject] = true
			fields := make([]string, len(l.scopes))
			for i, scope := range l.scopes {
				fields[i], _ = fieldOf(fieldName(scope, subject))
			}
			do(subject, fields)
		}
	}
}

// strongest chooses among all that was found of an address.
func (l *look) strongest(address, domain string, now int64) *Entry {
	var best record
	var scope, subject string
	strength := -1
	for i := range l.scopes {
		for _, candidate := range [...]string{address, domain} {
			value, ok := l.answers[candidate].Val()[i].(string)
			if !ok {
				continue
			}
			for _, r := range records(value) {
				if r.reason.strength() > strength && r.inForce(now) && l.stops(r.reason, l.scopes[i]) {
					best, scope, subject, strength = r, l.scopes[i], candidate, r.reason.strength()
				}
			}
		}
	}
	if strength < 0 {
		return nil
	}
	e := best.entry(scope, subject)
	return &e
}

// stops is the lane rule: mail that is not bulk passes an unsubscribe, unless that is about its very list.
func (l *look) stops(r Reason, scope string) bool {
	if r != Unsubscribe || l.q.Bulk {
		return true
	}
	_, list := parseScope(scope)
	return list != ""
}
