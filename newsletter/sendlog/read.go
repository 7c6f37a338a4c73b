package sendlog

import (
	"context"
	mathbits "math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Chunk is the stored data of a run's chunk.
type Chunk struct {
	At      int       // how far it was scanned
	Done    bool      // it was scanned to its end, and no one was left out
	Again   time.Time // when to scan it again; zero means never
	Batches int       // that are not closed
	Counts  Counts
}

// Over reports whether no one of the chunk remains to be sent to, is being sent to, or is deferred. The
// number of batches alone doesn't show it: it is read after the counters, and their people may have been
// given back in between.
func (c Chunk) Over() bool {
	return c.Done && c.Batches == 0 && c.Counts.Sending() == 0 && c.Counts.States[Deferred] == 0
}

// Chunks reads a run's chunks up to an ordinal, in one round trip.
func (l *Log) Chunks(ctx context.Context, r Run, end uint32) ([]Chunk, error) {
	pipe := l.db.Client().Pipeline()
	n := Chunks(end)
	hashes, batches := make([]*redis.MapStringStringCmd, n), make([]*redis.IntCmd, n)
	for i := range n {
		hashes[i] = pipe.HGetAll(ctx, logKey(r, i)+":counts")
		batches[i] = pipe.ZCard(ctx, logKey(r, i)+":batches")
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "read the counters of run %s", r)
	}
	all := make([]Chunk, n)
	for i := range all {
		all[i] = chunkOf(hashes[i].Val(), int(batches[i].Val()))
	}
	return all, nil
}

func chunkOf(hash map[string]string, batches int) Chunk {
	c := Chunk{Batches: batches, Counts: newCounts()}
	for field, text := range hash {
		n, _ := strconv.Atoi(text) // written by scripts
		switch field {
		case "at":
			c.At = n
		case "done":
			c.Done = true
		case "again":
			c.Again = redisdb.Time(int64(n))
		case "batch", "later":
		default:
			c.Counts.put(field, n)
		}
	}
	return c
}

// Counts are counters of a chunk or of several.
type Counts struct {
	States map[State]int
	Taken  int            // people with any state but Waiting
	Fields map[string]int // all other counters: bits, totals and tallies

	Groups map[Group]Counts // each group's states and bits; nil if people have no groups
}

func newCounts() Counts { return Counts{States: map[State]int{}, Fields: map[string]int{}} }

// put notes a counter as it is named in the hash.
func (c *Counts) put(field string, n int) {
	if state, err := strconv.Atoi(field); err == nil {
		c.States[State(state)] += n
		return
	}
	if field == "taken" {
		c.Taken += n
		return
	}
	name, rest, _ := strings.Cut(field, ":")
	if g, err := strconv.Atoi(strings.TrimPrefix(name, "g")); err == nil && name[0] == 'g' {
		c.change(Group(g), func(of *Counts) { of.put(rest, n) })
		return
	}
	c.Fields[field] += n
}

// change changes the counters of a group.
func (c *Counts) change(g Group, by func(*Counts)) {
	if c.Groups == nil {
		c.Groups = map[Group]Counts{}
	}
	of, ok := c.Groups[g]
	if !ok {
		of = newCounts()
	}
	by(&of)
	c.Groups[g] = of
}

// Sending returns how many people are taken or at the dot.
func (c Counts) Sending() int {
	n := c.Taken
	for _, of := range c.States {
		n -= of
	}
	return n
}

// Add adds the counters of another.
func (c *Counts) Add(other Counts) {
	c.Taken += other.Taken
	for s, n := range other.States {
		c.States[s] += n
	}
	for f, n := range other.Fields {
		c.Fields[f] += n
	}
	for g, of := range other.Groups {
		c.change(g, func(sum *Counts) { sum.Add(of) })
	}
}

// Sum adds up the counters of chunks.
func Sum(chunks []Chunk) Counts {
	sum := newCounts()
	for _, c := range chunks {
		sum.Add(c.Counts)
	}
	return sum
}

// Together returns the counters of several runs of a campaign, in which each person counts once. It counts as
// sent if a run reached the person, otherwise with the state of the person's last run, and with the bits of
// all runs. All other counters are added up. end is the end of the longest run.
func (l *Log) Together(ctx context.Context, end uint32, runs ...Run) (Counts, error) {
	all := newCounts()
	for _, r := range runs {
		chunks, err := l.Chunks(ctx, r, end)
		if err != nil {
			return all, err
		}
		all.Add(Counts{Fields: Sum(chunks).Fields})
	}
	for _, b := range bits {
		all.Fields[string(b)] = 0
	}
	for chunk := range Chunks(end) {
		var has [ChunkSize]State
		sets := map[Bit][]byte{}
		for _, r := range runs {
			states, theirs, err := l.everybody(ctx, r, chunk)
			if err != nil {
				return all, err
			}
			for o, s := range states {
				if s != Waiting && has[o] != Sent {
					has[o] = s
				}
			}
			for b, set := range theirs {
				sets[b] = unite(sets[b], []byte(set))
			}
		}
		for _, s := range has {
			if s != Waiting {
				all.Taken++
			}
			if s > AtDot {
				all.States[s]++
			}
		}
		for b, set := range sets {
			for _, eight := range set {
				all.Fields[string(b)] += mathbits.OnesCount8(eight)
			}
		}
	}
	return all, nil
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

// Person is the stored data of a run's person.
type Person struct {
	Ordinal  uint32
	State    State
	Bits     map[Bit]bool
	Why      string    // the last reply, if it did not end well; empty if none is kept
	Attempts int       // made
	At       time.Time // time of the last attempt; zero if there was none
}

// People returns the data of people in a chunk, in the order of the offsets.
func (l *Log) People(ctx context.Context, r Run, chunk int, offsets []int) ([]Person, error) {
	if len(offsets) == 0 {
		return nil, nil
	}
	states, sets, err := l.everybody(ctx, r, chunk)
	if err != nil {
		return nil, err
	}
	fields, gets := make([]string, len(offsets)), make([]any, 0, 3*len(offsets))
	for i, o := range offsets {
		fields[i] = strconv.Itoa(o)
		gets = append(gets, "GET", "u40", "#"+fields[i])
	}
	pipe := l.db.Client().Pipeline()
	whys := pipe.HMGet(ctx, logKey(r, chunk)+":why", fields...)
	tried := pipe.BitField(ctx, logKey(r, chunk)+":tried", gets...)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "read replies and attempts of run %s", r)
	}
	people := make([]Person, len(offsets))
	for i, o := range offsets {
		last := tried.Val()[i]
		p := Person{Ordinal: uint32(chunk*ChunkSize + o), Bits: map[Bit]bool{}, Attempts: int(last & 0xff),
			At: redisdb.Time(last >> 8 * 1000)}
		if o < len(states) {
			p.State = states[o]
		}
		for b, set := range sets {
			p.Bits[b] = set.Has(o)
		}
		p.Why, _ = whys.Val()[i].(string)
		people[i] = p
	}
	return people, nil
}

// everybody returns a chunk's states by offset, and the people with each bit, in one round trip.
func (l *Log) everybody(ctx context.Context, r Run, chunk int) ([]State, map[Bit]Set, error) {
	keys := []string{logKey(r, chunk)}
	for _, b := range bits {
		keys = append(keys, logKey(r, chunk)+":"+string(b))
	}
	texts, err := l.texts(ctx, keys...)
	sets := make(map[Bit]Set, len(bits))
	for i, b := range bits {
		sets[b] = Set(texts[i+1])
	}
	return unpacked(texts[0]), sets, redisdb.Failed(err, "read the people of run %s", r)
}

// texts reads keys. Missing keys are empty.
func (l *Log) texts(ctx context.Context, keys ...string) ([]string, error) {
	texts := make([]string, len(keys))
	values, err := l.db.Client().MGet(ctx, keys...).Result()
	for i, value := range values {
		texts[i], _ = value.(string)
	}
	return texts, err
}

func unpacked(text string) []State {
	states := make([]State, 2*len(text))
	for i := range len(text) {
		states[2*i], states[2*i+1] = State(text[i]>>4), State(text[i]&15)
	}
	return states
}

// States returns the states of a chunk by offset.
func (l *Log) States(ctx context.Context, r Run, chunk int) ([]State, error) {
	texts, err := l.texts(ctx, logKey(r, chunk))
	return unpacked(texts[0]), redisdb.Failed(err, "read the states of run %s", r)
}

// StatesOf returns the states of a person in some runs.
func (l *Log) StatesOf(ctx context.Context, ordinal uint32, runs ...Run) ([]State, error) {
	chunk, offset := ChunkOf(ordinal)
	pipe := l.db.Client().Pipeline()
	for _, r := range runs {
		pipe.BitField(ctx, logKey(r, chunk), "GET", "u4", "#"+strconv.Itoa(offset))
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return nil, redisdb.Failed(err, "read the states of a person")
	}
	states := make([]State, len(runs))
	for i, answer := range answers {
		states[i] = State(answer.(*redis.IntSliceCmd).Val()[0])
	}
	return states, nil
}

// Set is a set of offsets.
type Set string

// Has reports whether an offset is in the set.
func (s Set) Has(offset int) bool {
	return offset/8 < len(s) && s[offset/8]&(0x80>>(offset%8)) != 0
}

// Bits returns the offsets of a chunk that have a bit, as 8 in each byte, the highest first.
func (l *Log) Bits(ctx context.Context, r Run, chunk int, b Bit) (Set, error) {
	texts, err := l.texts(ctx, logKey(r, chunk)+":"+string(b))
	return Set(texts[0]), redisdb.Failed(err, "read who has %s in run %s", b, r)
}

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

// sent returns the people in a chunk's states that have the state Sent, as bits.
func sent(states string) []byte {
	set := make([]byte, (len(states)+3)/4)
	for offset, s := range unpacked(states) {
		if s == Sent {
			set[offset/8] |= 0x80 >> (offset % 8)
		}
	}
	return set
}
