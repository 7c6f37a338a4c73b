package suppression

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// row is an entry with its place.
type row struct {
	record
	shard, bucket  int
	field          string
	scope, subject string
}

// order is the sort key of a row in its group. Cursors contain it.
func (r *row) order() string { return r.subject + " " + r.scope + " " + r.reason.letter() }

// readAhead bounds the groups read with one round trip.
const readAhead = 16

// walk visits the groups that have entries of a filter, in order.
type walk struct {
	s      *Store
	f      Filter
	marked [shards][]byte // a bit for each group, the highest of a byte first, as SETBIT writes them
	at     position       // where to continue
	ahead  int            // groups to read at once
	looked int            // groups read
}

// walk returns a walk over the groups that the indexes of a filter mark.
func (s *Store) walk(ctx context.Context, f Filter, at position) (*walk, error) {
	w := &walk{s: s, f: f, at: at, ahead: 1}
	scopes, err := s.scopes(ctx, f)
	if err != nil {
		return nil, err
	}
	pipe := s.db.Client().Pipeline()
	var answers [shards][]*redis.StringCmd
	for shard := range shards {
		for _, r := range f.reasons() {
			for _, scope := range scopes {
				answers[shard] = append(answers[shard], pipe.Get(ctx, indexKey(shard, r, scope)))
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read indexes")
	}
	for shard := range shards {
		w.marked[shard] = make([]byte, groups/8)
		for _, answer := range answers[shard] {
			for i, b := range []byte(answer.Val()) {
				if i < len(w.marked[shard]) {
					w.marked[shard][i] |= b
				}
			}
		}
	}
	return w, nil
}

// seek moves to the next marked group, at or after the current one. It returns false if there is none.
func (w *walk) seek() bool {
	for ; w.at.shard < shards; w.at = (position{shard: w.at.shard + 1}) {
		for w.at.group < groups {
			b := w.marked[w.at.shard][w.at.group/8] << (w.at.group % 8)
			if b&0x80 != 0 {
				return true
			}
			step := min(bits.LeadingZeros8(b), 8-w.at.group%8)
			w.at = position{shard: w.at.shard, group: w.at.group + step}
		}
	}
	return false
}

// next reads some groups and returns their matching rows, which may be none. It returns nil after the last
// group.
func (w *walk) next(ctx context.Context) ([]row, error) {
	var first position
	var read []bucketRead
	pipe := w.s.db.Client().Pipeline()
	for n := 0; n < w.ahead && w.seek(); n++ {
		if n == 0 {
			first = w.at
		}
		for b := w.at.group * groupSize; b < (w.at.group+1)*groupSize; b++ {
			read = append(read, bucketRead{w.at.shard, b, pipe.HGetAll(ctx, bucketKey(w.at.shard, b))})
		}
		w.looked++
		w.at = position{shard: w.at.shard, group: w.at.group + 1}
	}
	if len(read) == 0 {
		return nil, nil
	}
	w.ahead = min(2*w.ahead, readAhead)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "suppression: read entries")
	}
	rows, err := w.s.rows(ctx, read)
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(rows, func(r row) bool {
		passed := r.shard == first.shard && r.bucket/groupSize == first.group && r.order() <= first.after
		return passed || !w.f.matches(&r)
	})
	slices.SortFunc(matching, func(a, b row) int {
		return cmp.Or(a.shard-b.shard, a.bucket/groupSize-b.bucket/groupSize, cmp.Compare(a.order(), b.order()))
	})
	if matching == nil {
		matching = []row{}
	}
	return matching, nil
}

// bucketRead is a bucket and its content in Redis.
type bucketRead struct {
	shard, bucket int
	fields        *redis.MapStringStringCmd
}

// rowsOf reads all entries of some subjects.
func (s *Store) rowsOf(ctx context.Context, subjects ...string) ([]row, error) {
	var forms []string
	for _, subject := range subjects {
		forms = append(forms, message.AddressForms(subject)...)
	}
	subjects = forms
	pipe := s.db.Client().Pipeline()
	var read []bucketRead
	for _, subject := range subjects {
		p := bucketOf(subject)
		read = append(read, bucketRead{p.shard, p.number, pipe.HGetAll(ctx, p.key())})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "suppression: read entries")
	}
	all, err := s.rows(ctx, read)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, subject := range subjects {
		for _, r := range all {
			if r.subject == subject && !slices.ContainsFunc(rows, func(o row) bool { return o.order() == r.order() }) {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// rows returns the entries of buckets. It looks up the names that are stored as digests.
func (s *Store) rows(ctx context.Context, read []bucketRead) ([]row, error) {
	var rows []row
	var names []*redis.StringCmd
	var named []int // rows that names belong to
	pipe := s.db.Client().Pipeline()
	for _, b := range read {
		for field, value := range b.fields.Val() {
			for _, rec := range records(value) {
				r := row{record: rec, shard: b.shard, bucket: b.bucket, field: field}
				r.scope, r.subject = parseName(field)
				if isDigest(field) {
					names = append(names, pipe.HGet(ctx, evidenceKey(b.shard, b.bucket), field))
					named = append(named, len(rows))
				}
				rows = append(rows, r)
			}
		}
	}
	if len(names) == 0 {
		return rows, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read names")
	}
	for i, at := range named {
		rows[at].scope, rows[at].subject = parseName(names[i].Val())
	}
	// removed meanwhile
	return slices.DeleteFunc(rows, func(r row) bool { return isDigest(r.subject) || r.subject == "" }), nil
}

// entries returns rows as entries, with their evidence.
func (s *Store) entries(ctx context.Context, rows []row) ([]Entry, error) {
	entries := make([]Entry, len(rows))
	evidence := map[int]*redis.StringCmd{}
	pipe := s.db.Client().Pipeline()
	for i, r := range rows {
		entries[i] = r.entry(r.scope, r.subject)
		if r.evidence {
			evidence[i] = pipe.HGet(ctx, evidenceKey(r.shard, r.bucket), r.reason.letter()+r.field)
		}
	}
	if len(evidence) == 0 {
		return entries, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read evidence")
	}
	for i, text := range evidence {
		entries[i].setEvidence(text.Val())
	}
	return entries, nil
}
