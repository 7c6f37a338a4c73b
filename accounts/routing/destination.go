package routing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
)

// destination is a group of recipients' domains at a gateway, as one message has it.
type destination struct {
	limits.Scope
	group       string
	connections int // messages under way; 0 means any number
}

// destinations returns the remaining recipients' destinations that are limited or slowed down. Usually that
// costs neither a command nor a look-up. If limits can't be asked, a.halt says so.
func (a *attempt) destinations(ctx context.Context, c candidate) ([]destination, bool) {
	if c.Gateway == "" {
		return nil, true
	}
	if c.Destinations == nil {
		if slow, err := a.Limits.SlowsDestinations(ctx, c.Gateway); err != nil || !slow {
			return nil, err == nil || a.unasked(ctx, c.scope, err)
		}
	}
	var all []destination
	for group, n := range a.groups(ctx, c) {
		limit := c.Destinations.Of(group)
		all = append(all, destination{limits.Scope{Name: limits.Destination(c.Gateway, group), Rate: limit.Rate,
			Bulk: a.d.Lane == api.Bulk, Recipients: n}, group, limit.Connections})
	}
	slices.SortFunc(all, func(x, y destination) int { return cmp.Compare(x.Name, y.Name) })
	return all, true
}

// groups counts the recipients left in each of their groups.
func (a *attempt) groups(ctx context.Context, c candidate) map[string]int {
	n := map[string]int{}
	for _, i := range a.results.left {
		n[a.group(ctx, c, a.results.original.To[i])]++
	}
	return n
}

// group returns the group of a recipient. At a gateway of type mx that is the one of its domain's servers,
// unless the settings name the domain itself.
func (a *attempt) group(ctx context.Context, c candidate, address string) string {
	domain := gateways.DomainOf(address)
	known := gateways.Group(c.Type, domain)
	if c.Type != api.GatewayMX || a.Group == nil || c.Destinations.Names(known) {
		return known
	}
	group, err := a.Group(ctx, domain)
	if err != nil {
		return known // the DNS does not answer
	}
	return group
}

// occupy takes a connection to each destination that limits them. Without one it notes that the message
// waits, although it has paid its share of the limits.
func (a *attempt) occupy(ctx context.Context, c candidate, all []destination) (release func(), ok bool) {
	var held []func()
	release = func() {
		for _, free := range held {
			free()
		}
	}
	for _, d := range all {
		if d.connections < 1 {
			continue
		}
		began := a.now()
		free, err := a.Limits.Connect(ctx, d.Name, d.connections)
		if err == nil {
			held = append(held, free, func() { a.turns.took(d.Name, a.now().Sub(began), a.now()) })
			continue
		}
		release()
		none, isFull := errors.AsType[*limits.Full](err)
		if !isFull {
			return nil, a.unasked(ctx, d.Name, err)
		}
		a.wait(full{
			candidate: c, name: d.Name, kept: reservation{scope: c.scope, paid: paidAll}, reserved: true,
			kind: "limit", until: a.turns.next(d, a.now(), none.RetryAfter()),
			reason: c.String() + ": all connections to " + d.group + " are taken",
		})
		return nil, false
	}
	return release, true
}

// turns spread the messages that wait for a connection to a destination over the time that those before them
// take. Otherwise all would ask again each second.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	next time.Time     // when the next message is due
	each time.Duration // what a message takes, on average; 0 if unknown
}

// of returns a destination's turn. The caller holds the lock.
func (t *turns) of(name string, now time.Time) *turn {
	k := t.all[name]
	if k != nil {
		return k
	}
	if len(t.all) >= limits.MostDestinations {
		maps.DeleteFunc(t.all, func(_ string, old *turn) bool { return old.next.Before(now) })
	}
	if t.all == nil {
		t.all = map[string]*turn{}
	}
	k = &turn{}
	t.all[name] = k
	return k
}

// next returns when a message that found no connection may ask again, at least a wait from now.
func (t *turns) next(d destination, now time.Time, wait time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of(d.Name, now)
	k.next = k.next.Add(cmp.Or(k.each, time.Second) / time.Duration(d.connections))
	if soonest := now.Add(wait); k.next.Before(soonest) {
		k.next = soonest
	}
	return k.next
}

// took notes how long a message had its connection.
func (t *turns) took(name string, d time.Duration, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.of(name, now)
	k.each = (7*cmp.Or(k.each, d) + d) / 8
}
