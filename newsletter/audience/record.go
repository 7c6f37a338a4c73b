package audience

import (
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// State is the state of a subscriber on a list.
type State byte

// The states. Their values are in Redis.
const (
	None       State = 0
	Pending    State = 1 // asked for, and not confirmed yet: gets the mail that asks, and nothing else
	Subscribed State = 2
	Left       State = 3 // unsubscribed, or taken off the list
)

var stateNames = [...]string{None: "", Pending: "pending", Subscribed: "subscribed", Left: "left"}

// String returns the state as it is in the API, "" for None.
func (s State) String() string { return stateNames[s] }

// stateNamed is the inverse of String. An unknown name is None.
func stateNamed(name string) State { return State(max(0, slices.Index(stateNames[:], name))) }

// subscription is the state of a subscriber on a list, with its proof.
type subscription struct {
	list    uint32 // number of the list
	state   State
	since   uint32 // Unix seconds
	source  uint32 // number of its word
	text    uint32 // number of the words that were agreed to; 0 if none
	given   uint32 // Unix seconds of the consent; 0 if it is since, or there is none
	network string // that the consent came from; empty if not known
}

// record is a subscriber as it is stored.
type record struct {
	version          uint32 // raised by each change; the first is 1
	created, updated uint32 // Unix seconds

	email, name, locale, tz string
	attributes              []byte // a JSON object; empty if none
	tags                    []string
	lists                   []subscription // at most one of a list
	past                    []subscription // earlier states, the oldest first, at most maxPast
}

// maxPast bounds the earlier states that are kept of a subscriber.
const maxPast = 20

var errRecord = errors.New("the record of a subscriber can't be read")

// on returns the state on a list, or nil.
func (r *record) on(list uint32) *subscription {
	for i := range r.lists {
		if r.lists[i].list == list {
			return &r.lists[i]
		}
	}
	return nil
}

func (r *record) stateOn(list uint32) State {
	if s := r.on(list); s != nil {
		return s.state
	}
	return None
}

// subscribedAt reports whether the subscriber was on a list at the end of a second, as far as earlier
// states are kept.
func (r *record) subscribedAt(list, at uint32) bool {
	was := false
	for _, states := range [...][]subscription{r.past, r.lists} {
		for _, s := range states {
			if s.list != list {
				continue
			}
			if s.since > at {
				return was
			}
			was = s.state == Subscribed
		}
	}
	return was
}

// set replaces the state on a list. The earlier one becomes past.
func (r *record) set(s subscription) {
	old := r.on(s.list)
	if old == nil {
		r.lists = append(r.lists, s)
		return
	}
	r.past = append(r.past, *old)
	r.past = r.past[max(0, len(r.past)-maxPast):]
	*old = s
}

// drop removes the state on a list, without a trace.
func (r *record) drop(list uint32) {
	r.lists = slices.DeleteFunc(r.lists, func(s subscription) bool { return s.list == list })
}

// clone returns a copy that shares no slices.
func (r *record) clone() *record {
	c := *r
	c.attributes, c.tags = slices.Clone(r.attributes), slices.Clone(r.tags)
	c.lists, c.past = slices.Clone(r.lists), slices.Clone(r.past)
	return &c
}

// encode writes a record. It begins with the version in four bytes, which lua/write.lua compares; numbers are
// varints, and texts have their length before them.
func (r *record) encode() []byte {
	b := make([]byte, 0, 64+len(r.email)+len(r.name)+len(r.attributes)+16*len(r.lists))
	b = binary.BigEndian.AppendUint32(b, r.version)
	b = binary.BigEndian.AppendUint32(b, r.created)
	b = binary.AppendUvarint(b, uint64(r.updated-r.created))
	for _, text := range [...]string{r.email, r.name, r.locale, r.tz} {
		b = appendText(b, text)
	}
	b = binary.AppendUvarint(b, uint64(len(r.attributes)))
	b = append(b, r.attributes...)
	b = binary.AppendUvarint(b, uint64(len(r.tags)))
	for _, tag := range r.tags {
		b = appendText(b, tag)
	}
	b = appendSubscriptions(b, r.lists)
	return appendSubscriptions(b, r.past)
}

func appendText(b []byte, text string) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

func appendSubscriptions(b []byte, list []subscription) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(s.list))
		b = append(b, byte(s.state))
		b = binary.BigEndian.AppendUint32(b, s.since)
		for _, n := range [...]uint32{s.source, s.text, s.given} {
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = appendText(b, s.network)
	}
	return b
}

// decode reads what encode wrote.
func decode(b []byte) (*record, error) {
	d := decoder{rest: b}
	r := &record{version: d.fixed(), created: d.fixed()}
	r.updated = r.created + uint32(d.number())
	// Records of earlier versions may have letters that are not composed, as files of a Mac.
	r.email, r.name, r.locale, r.tz = norm.NFC.String(d.text()), norm.NFC.String(d.text()), d.text(), d.text()
	r.attributes = []byte(norm.NFC.String(d.text()))
	for n := d.count(); n > 0; n-- {
		r.tags = append(r.tags, norm.NFC.String(d.text()))
	}
	r.lists, r.past = d.subscriptions(), d.subscriptions()
	if d.failed || len(d.rest) > 0 {
		return nil, errRecord
	}
	return r, nil
}

// decoder reads the parts of a record. After a failure all parts are zero.
type decoder struct {
	rest   []byte
	failed bool
}

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) fixed() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count is number, of parts that have at least a byte each.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return 0
	}
	return n
}

func (d *decoder) text() string { return string(d.take(d.number())) }

func (d *decoder) subscriptions() []subscription {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]subscription, n)
	for i := range list {
		s := &list[i]
		s.list = uint32(d.number())
		if b := d.take(1); b != nil {
			s.state = State(b[0]) & 3
		}
		s.since = d.fixed()
		s.source, s.text, s.given = uint32(d.number()), uint32(d.number()), uint32(d.number())
		s.network = d.text()
	}
	return list
}

// split returns the bodies of a page's records, with nil for missing records.
func split(page string) ([pageSize][]byte, error) {
	var bodies [pageSize][]byte
	rest := []byte(page)
	for i := 0; len(rest) > 0; i++ {
		if len(rest) < 2 || i == pageSize {
			return bodies, errRecord
		}
		n := int(binary.BigEndian.Uint16(rest))
		if len(rest) < 2+n {
			return bodies, errRecord
		}
		if n > 0 {
			bodies[i] = rest[2 : 2+n]
		}
		rest = rest[2+n:]
	}
	return bodies, nil
}

// chunkStates are the states of a list in a chunk, as lua/write.lua stores them.
type chunkStates struct {
	sparse []byte // an offset of two bytes and a state, in order
	dense  []byte // two bits of each subscriber; nil if they are sparse
}

// readStates reads what lua/write.lua wrote. An empty text has no states.
func readStates(text string) (chunkStates, error) {
	switch {
	case text == "":
		return chunkStates{}, nil
	case text[0] == 'd' && len(text) == 1+chunkSize/4:
		return chunkStates{dense: []byte(text[1:])}, nil
	case text[0] == 's' && len(text)%3 == 1:
		return chunkStates{sparse: []byte(text[1:])}, nil
	}
	return chunkStates{}, errRecord
}

// offset returns the offset of a sparse member.
func (c chunkStates) offset(i int) int { return int(binary.BigEndian.Uint16(c.sparse[3*i:])) }

// pages returns the chunk's pages that have a subscriber of a state, or of any state if it is None.
func (c chunkStates) pages(state State) []int {
	var pages []int
	add := func(page int) {
		if n := len(pages); n == 0 || pages[n-1] != page {
			pages = append(pages, page)
		}
	}
	for i := range len(c.sparse) / 3 {
		if state == None || State(c.sparse[3*i+2]) == state {
			add(c.offset(i) / pageSize)
		}
	}
	for i, b := range c.dense {
		for ; b != 0; b >>= 2 {
			if has := State(b & 3); has != None && (state == None || has == state) {
				add(i * 4 / pageSize)
				break
			}
		}
	}
	return pages
}
