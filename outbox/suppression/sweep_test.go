package suppression

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testredis"
)

// marks are the groups of buckets that an index names, by its key.
type marks map[string][]int

// marks are those that the indexes should have.
func (m model) marks() marks {
	all := marks{}
	for _, e := range m {
		p := bucketOf(e.subject())
		keys := []string{indexKey(p.shard, e.Reason, scopeOf(e.Account, e.List)),
			indexKey(p.shard, e.Reason, anyScope)}
		if !e.Expires.IsZero() {
			keys = append(keys, expiringKey(p.shard))
		}
		for _, key := range keys {
			all[key] = append(all[key], p.number/groupSize)
		}
	}
	for key, groups := range all {
		slices.Sort(groups)
		all[key] = slices.Compact(groups)
	}
	return all
}

// marksIn are those that they have.
func marksIn(t *testing.T, s *Store) marks {
	t.Helper()
	all := marks{}
	for _, pattern := range []string{"*:suppression:index:*", "*:suppression:expiring"} {
		keys, err := s.db.Client().Keys(t.Context(), pattern).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			bits, err := s.db.Client().Get(t.Context(), key).Bytes()
			if err != nil {
				t.Fatal(err)
			}
			for group := range 8 * len(bits) {
				if bits[group/8]<<(group%8)&0x80 != 0 {
					all[key] = append(all[key], group)
				}
			}
		}
	}
	return all
}

// compareMarks wants a mark where there is such an entry, and nowhere else. Only where something expired, or
// was to, a mark may stay until the next sweep.
func (m model) compareMarks(t *testing.T, s *Store, swept bool) {
	t.Helper()
	want, got := m.marks(), marksIn(t, s)
	if !swept {
		for key, groups := range got {
			if strings.HasSuffix(key, ":expiring") {
				got[key] = slices.DeleteFunc(groups, func(group int) bool { return !slices.Contains(want[key], group) })
				if len(got[key]) == 0 {
					delete(got, key)
				}
			}
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("groups in the indexes (-want +got)\n%s", diff)
	}
}

// elsewhere is an address of the same shard as another, in the same group of buckets or in a later one.
func elsewhere(address string, sameGroup bool) string {
	at := bucketOf(address)
	for i := 0; ; i++ {
		found := fmt.Sprintf("b%d@example.com", i)
		p := bucketOf(found)
		if p.shard == at.shard && p.number/groupSize != at.number/groupSize != sameGroup &&
			(sameGroup || p.number > at.number) {
			return found
		}
	}
}

// TestWhatChangesWhileItIsSweptAway changes something at the moment between the look at which groups have
// entries that expire and the sweep of the one that has. What is still to come must be found by a later
// sweep, and what is not must not be looked for again.
func TestWhatChangesWhileItIsSweptAway(t *testing.T) {
	t.Parallel()
	begin := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	end, later := begin.Add(time.Hour), begin.Add(2*time.Hour)
	ann := Entry{Address: "ann@example.com", Reason: HardBounce, Source: "test", Created: begin, Expires: end}
	with := func(change func(*Entry)) Entry {
		e := ann
		change(&e)
		return e
	}
	forLonger, forEver := with(func(e *Entry) { e.Expires = later }), with(func(e *Entry) {
		e.Expires = time.Time{}
	})
	complaint := with(func(e *Entry) { e.Reason, e.Expires = SpamReport, later })
	neighbour := with(func(e *Entry) { e.Address, e.Expires = elsewhere(ann.Address, true), later })
	stranger := with(func(e *Entry) { e.Address, e.Expires = elsewhere(ann.Address, false), later })
	for _, c := range []struct {
		name      string
		early     bool // the sweep begins a second before the entry ends
		add       []Entry
		remove    bool
		gone      int     // by this sweep
		left      []Entry // after it
		goneLater int
	}{
		{name: "nothing", gone: 1},
		{name: "it ends", early: true, gone: 1},
		{name: "it is prolonged", early: true, add: []Entry{forLonger}, left: []Entry{forLonger}, goneLater: 1},
		{name: "it is prolonged for ever", early: true, add: []Entry{forEver}, left: []Entry{forEver}},
		{name: "it is added again", add: []Entry{forLonger}, left: []Entry{forLonger}, goneLater: 1},
		{name: "it is added again for ever", add: []Entry{forEver}, left: []Entry{forEver}},
		{name: "it is removed", remove: true},
		{name: "another reason is added", add: []Entry{complaint}, gone: 1, left: []Entry{complaint}, goneLater: 1},
		{name: "a neighbour is added", add: []Entry{neighbour}, gone: 1, left: []Entry{neighbour}, goneLater: 1},
		{name: "one of another group is added", add: []Entry{stranger}, gone: 1, left: []Entry{stranger},
			goneLater: 1},
		{name: "it is removed, a neighbour is added", remove: true, add: []Entry{neighbour},
			left: []Entry{neighbour}, goneLater: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			now, meanwhile := begin, func() {}
			s, err := New(testredis.New(t), Options{Now: func() time.Time {
				change := meanwhile
				meanwhile = func() {}
				change()
				return now
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Add(t.Context(), ann); err != nil {
				t.Fatal(err)
			}
			now = end
			if c.early {
				now = end.Add(-time.Second)
			}
			meanwhile = func() {
				if c.remove {
					if _, err := s.Remove(t.Context(), ann); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.Add(t.Context(), c.add...); err != nil {
					t.Error(err)
				}
				now = end
			}
			sweep := func(want int) {
				t.Helper()
				if n, err := s.Sweep(t.Context()); err != nil || n != want {
					t.Errorf("%d swept away, %v; want %d", n, err, want)
				}
			}
			sweep(c.gone)
			m := model{}
			for _, e := range c.left {
				m.add(e, begin)
			}
			m.compare(t, s, 0, now)
			m.compareMarks(t, s, true)
			now = later
			sweep(c.goneLater)
			for key, e := range m {
				if !e.Expires.IsZero() {
					delete(m, key)
				}
			}
			m.compareMarks(t, s, true)
		})
	}
}
