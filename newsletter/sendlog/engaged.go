package sendlog

import (
	"context"

	"github.com/postroom/postroom/internal/redisdb"
)

// Engaged are the people of a chunk who got the mail of some runs, and what they did with it. Programs that
// open and click are not in it.
type Engaged struct {
	Got     Set // sent, or known to have arrived
	Opened  Set
	Clicked Set
}

// Engaged returns what people of a chunk did with the mail of runs, all of them together, in one round trip.
func (l *Log) Engaged(ctx context.Context, runs []Run, chunk int) (Engaged, error) {
	if len(runs) == 0 {
		return Engaged{}, nil
	}
	const each = 4 // keys of a run
	keys := make([]string, 0, each*len(runs))
	for _, r := range runs {
		key := logKey(r, chunk)
		keys = append(keys, key, key+":"+string(Delivered), key+":"+string(Opened), key+":"+string(Clicked))
	}
	texts, err := l.texts(ctx, keys...)
	var sets [each][]byte // by key
	for i, text := range texts {
		set := []byte(text)
		if i%each == 0 {
			set = sent(text)
		}
		sets[i%each] = unite(sets[i%each], set)
	}
	e := Engaged{Opened: Set(sets[2]), Clicked: Set(sets[3])}
	e.Got = Set(unite(unite(unite(sets[0], sets[1]), sets[2]), sets[3]))
	return e, redisdb.Failed(err, "read who got %d runs", len(runs))
}

// sent returns who has the state Sent in the states of a chunk, as bits.
func sent(states string) []byte {
	set := make([]byte, (len(states)+3)/4)
	for offset, s := range unpacked(states) {
		if s == Sent {
			set[offset/8] |= 0x80 >> (offset % 8)
		}
	}
	return set
}

// unite adds the members of a set to another, and returns that.
func unite(set, more []byte) []byte {
	if len(set) < len(more) {
		set, more = append([]byte(nil), more...), set
	}
	for i, b := range more {
		set[i] |= b
	}
	return set
}
