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
	values, err := l.db.Client().MGet(ctx, keys...).Result()
	if err != nil {
		return Engaged{}, redisdb.Failed(err, "read who got %d runs", len(runs))
	}
	var got, opened, clicked []byte
	for i, value := range values {
		text, _ := value.(string)
		switch i % each {
		case 0:
			got = unite(got, sent(text))
		case 1:
			got = unite(got, []byte(text))
		case 2:
			opened = unite(opened, []byte(text))
		case 3:
			clicked = unite(clicked, []byte(text))
		}
	}
	got = unite(unite(got, opened), clicked)
	return Engaged{Got: Set(got), Opened: Set(opened), Clicked: Set(clicked)}, nil
}

// sent returns who has the state Sent in the states of a chunk, as bits.
func sent(states string) []byte {
	set := make([]byte, (len(states)+3)/4)
	for i := range len(states) {
		for half, s := range [...]byte{states[i] >> 4, states[i] & 15} {
			if offset := 2*i + half; State(s) == Sent {
				set[offset/8] |= 0x80 >> (offset % 8)
			}
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
