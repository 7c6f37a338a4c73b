package suppression

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

// Question is a message to be checked.
type Question struct {
	Account   string   // its account; empty: only entries of the instance count
	List      string   // id of the list of the account that it belongs to; empty: none
	Bulk      bool     // every unsubscribe stops bulk mail, and mail of a list
	Addresses []string // of its recipients
}

// Check returns for each address the entry that stops mail to it, or nil. Of several entries it returns the
// strongest reason. Among equal reasons, the list precedes the account and the instance, and the address
// precedes its domain. It costs one round trip. The entries have no evidence, see [Store.Find]. If Redis is
// unreachable the error is fault.Unavailable.
func (s *Store) Check(ctx context.Context, q Question) ([]*Entry, error) {
	if len(q.Addresses) == 0 {
		return nil, nil
	}
	look := newLook(q)
	if err := look.ask(ctx, s.db.Client()); err != nil {
		return nil, redisdb.Failed(err, "suppression: check recipients")
	}
	now := s.now().Unix()
	found := make([]*Entry, len(q.Addresses))
	for i, subject := range look.subjects {
		found[i] = look.strongest(subject, domainOf(subject), now)
		s.metrics.checked(found[i])
	}
	return found, nil
}

// look is the state of one Check.
type look struct {
	q        Question
	scopes   []string // narrowest first
	subjects []string // the addresses, folded
	answers  map[string]*redis.SliceCmd
}

func newLook(q Question) *look {
	l := &look{q: q, subjects: make([]string, len(q.Addresses)), answers: make(map[string]*redis.SliceCmd,
		2*len(q.Addresses))}
	if q.Account != "" && q.List != "" {
		l.scopes = append(l.scopes, scopeOf(q.Account, strings.ToLower(q.List)))
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

// each calls do once for every address and domain, with their fields in all scopes.
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

// strongest returns the strongest entry of an address and its domain.
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
				if r.reason.strength() > strength && r.inForce(now) && l.stops(r.reason) {
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

// stops implements the lane rule: an unsubscribe stops bulk mail, and mail of a list. Whoever unsubscribed
// from all of an account has unsubscribed from each of its lists.
func (l *look) stops(r Reason) bool { return r != Unsubscribe || l.q.Bulk || l.q.List != "" }
