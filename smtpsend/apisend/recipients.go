package apisend

import "github.com/postroom/postroom/internal/message"

// recipients distributes the recipients of the envelope among requests with at most limit recipients each. A
// provider writes the To and Cc that people see from its request, so:
//   - Recipients that the header names stay together in To and Cc. If a request has none for To, the first of
//     Cc moves there.
//   - All others are Bcc in these requests as long as there is room. After that, and if the header names no
//     one, each gets its own request with itself in To, so that it learns of no one else.
//   - No request has two addresses that differ in case only: providers' answers are compared without case.
func (c content) recipients(to []string, limit int) []group {
	known := c.named()
	var requests []*pending
	var hidden []string
	for _, address := range to {
		n, ok := known.find(address)
		if !ok {
			hidden = append(hidden, address)
			continue
		}
		key := message.Comparable(address)
		r := withRoom(requests, key, limit)
		if r == nil {
			r = &pending{taken: map[string]bool{}}
			requests = append(requests, r)
		}
		r.taken[key] = true
		if n.inCc {
			r.cc = append(r.cc, message.Address{Name: n.name, Address: address})
		} else {
			r.to = append(r.to, message.Address{Name: n.name, Address: address})
		}
	}
	var alone []group
	for _, address := range hidden {
		key := message.Comparable(address)
		if r := withRoom(requests, key, limit); r != nil {
			r.taken[key] = true
			r.bcc = append(r.bcc, message.Address{Address: address})
			continue
		}
		alone = append(alone, group{to: []message.Address{{Address: address}}})
	}
	groups := make([]group, 0, len(requests)+len(alone))
	for _, r := range requests {
		if len(r.to) == 0 {
			r.to, r.cc = r.cc[:1:1], r.cc[1:]
		}
		groups = append(groups, r.group)
	}
	return append(groups, alone...)
}

// pending is a group in the making.
type pending struct {
	group
	taken map[string]bool // its addresses, as message.Comparable has them
}

// withRoom returns the first request that can take an address, or nil.
func withRoom(requests []*pending, key string, limit int) *pending {
	for _, r := range requests {
		if len(r.taken) < limit && !r.taken[key] {
			return r
		}
	}
	return nil
}

// named are the recipients of a header by address: in normal form, and without case.
type named struct{ exact, folded map[string]namedIn }

// namedIn is how a header names a recipient.
type namedIn struct {
	name string
	inCc bool
}

func (c content) named() named {
	n := named{exact: map[string]namedIn{}, folded: map[string]namedIn{}}
	add := func(list []message.Address, inCc bool) {
		for _, a := range list {
			if _, known := n.exact[a.Address]; !known {
				n.exact[a.Address] = namedIn{a.Name, inCc}
			}
			key := message.Comparable(a.Address)
			if _, known := n.folded[key]; !known {
				n.folded[key] = namedIn{a.Name, inCc}
			}
		}
	}
	add(c.to, false)
	add(c.cc, true)
	return n
}

// find returns how the header names an address. A spelling that differs in case counts only if the header
// doesn't have this one.
func (n named) find(address string) (found namedIn, ok bool) {
	if normal, err := message.NormalizeAddress(address); err == nil {
		if found, ok = n.exact[normal]; ok {
			return found, true
		}
	}
	found, ok = n.folded[message.Comparable(address)]
	return found, ok
}
