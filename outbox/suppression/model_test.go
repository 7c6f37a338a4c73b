package suppression

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testredis"
)

// model is what a store should hold, kept the simple way.
type model map[string]Entry // by subject, scope and reason

func keyOf(e Entry) string {
	return e.subject() + " " + scopeOf(e.Account, e.List) + " " + string(e.Reason)
}

func (m model) add(e Entry, now time.Time) int {
	old, there := m[keyOf(e)]
	holds := there && (old.Expires.IsZero() || old.Expires.After(now))
	switch {
	case !holds:
		m[keyOf(e)] = e
		return 1
	case !old.Expires.IsZero() && (e.Expires.IsZero() || e.Expires.After(old.Expires)):
		if e.evidence() == "" {
			e.MessageID, e.Response = old.MessageID, old.Response
		}
		e.Created = old.Created
		m[keyOf(e)] = e
	}
	return 0
}

func (m model) entries(f func(Entry) bool) []Entry {
	var all []Entry
	for _, e := range m {
		if f(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, byKey)
	return all
}

func byKey(a, b Entry) int { return cmp.Compare(keyOf(a), keyOf(b)) }

// crowd finds addresses and domains that share two groups of buckets, where one entry's coming and going
// could hurt the index of another.
func crowd(n int) []Entry {
	wanted := bucketOf("ann@example.com")
	var all []Entry
	for i := 0; len(all) < n; i++ {
		e := Entry{Address: fmt.Sprintf("a%d@example.com", i)}
		switch i % 5 {
		case 3:
			e = Entry{Domain: fmt.Sprintf("d%d.example", i)}
		case 4:
			e = Entry{Address: fmt.Sprintf("%060d@example.com", i)} // filed under a digest, in a scope or without
		}
		p := bucketOf(e.subject())
		if p.shard == wanted.shard && p.number/groupSize/2 == wanted.number/groupSize/2 {
			all = append(all, e)
		}
	}
	return all
}

// TestStoreDoesWhatTheModelDoes makes changes at random and compares everything that can be asked: look-ups,
// lists of each scope and reason, counts, and what is left in Redis when all is gone.
func TestStoreDoesWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	people := crowd(12)
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
			db := testredis.New(t)
			s, err := New(db, Options{Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			m := model{}
			scopes := []Entry{{}, {Account: "shop"}, {Account: "blog"}, {Account: "shop", List: "news"},
				{Account: "shop", List: "offers"}, {Account: "blog", List: "news"}}
			pick := func() Entry {
				e, scope := people[r.IntN(len(people))], scopes[r.IntN(len(scopes))]
				e.Account, e.List, e.Reason = scope.Account, scope.List, Reasons[r.IntN(len(Reasons))]
				return e
			}
			for step := range 120 {
				swept := false
				switch r.IntN(6) {
				case 0:
					now = now.Add(time.Duration(r.IntN(60)) * time.Minute)
				case 1:
					swept = true
					removed, err := s.Sweep(t.Context())
					gone := m.entries(func(e Entry) bool { return !e.Expires.IsZero() && !e.Expires.After(now) })
					for _, e := range gone {
						delete(m, keyOf(e))
					}
					if err != nil || removed != len(gone) {
						t.Fatalf("step %d: %d swept away, %v; want %d", step, removed, err, len(gone))
					}
				case 2:
					e := pick()
					if r.IntN(2) == 0 {
						e.Reason = ""
					}
					held := false
					for _, old := range m.entries(func(o Entry) bool {
						return o.subject() == e.subject() && o.Account == e.Account && o.List == e.List &&
							(e.Reason == "" || o.Reason == e.Reason)
					}) {
						held = held || old.Expires.IsZero() || old.Expires.After(now)
						delete(m, keyOf(old))
					}
					if removed, err := s.Remove(t.Context(), e); err != nil || removed != held {
						t.Fatalf("step %d: removed %v, %v; want %v", step, removed, err, held)
					}
				default:
					want, batch := 0, make([]Entry, r.IntN(4)+1)
					for i := range batch {
						e := pick()
						e.Source, e.Created = "test", now
						if r.IntN(2) == 0 {
							e.Expires = now.Add(time.Duration(r.IntN(90)+1) * time.Minute)
						}
						if r.IntN(3) == 0 {
							e.MessageID, e.Response = fmt.Sprint("m", step), fmt.Sprint("550 words of step ", step)
						}
						want += m.add(e, now)
						batch[i] = e
					}
					if added, err := s.Add(t.Context(), batch...); err != nil || added != want {
						t.Fatalf("step %d: %d added, %v; want %d", step, added, err, want)
					}
				}
				m.compare(t, s, step, now)
				m.compareMarks(t, s, swept)
			}
			for _, e := range m {
				if _, err := s.Remove(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := db.Client().Keys(t.Context(), "*").Result()
			if err != nil || len(keys) > 2 {
				t.Errorf("%v, %v: only which groups had entries that expire may be left, and the version", keys, err)
			}
		})
	}
}

// compare asks the store for everything.
func (m model) compare(t *testing.T, s *Store, step int, now time.Time) {
	t.Helper()
	for _, f := range []Filter{{}, {Instance: true}, {Account: "shop"}, {List: "news"},
		{Account: "blog", List: "news"}, {Reason: HardBounce},
		{List: "offers", Reason: Manual}} {
		want := m.entries(func(e Entry) bool {
			scoped := f.Account == "" || e.Account == f.Account
			scoped = scoped && (f.List == "" || e.List == f.List) && (!f.Instance || e.Account == "")
			return scoped && (f.Reason == "" || f.Reason == e.Reason)
		})
		var got []Entry
		if err := s.Walk(t.Context(), f, func(e Entry) error { got = append(got, e); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, byKey)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, %+v (-want +got)\n%s", step, f, diff)
		}
		if n, err := s.CountOf(t.Context(), f); err != nil || int(n) != len(want) {
			t.Fatalf("step %d, %+v: %d are counted, %v; want %d", step, f, n, err, len(want))
		}
	}
	q := Question{Account: "shop", List: "news", Bulk: step%2 == 0, Addresses: []string{"ann@example.com",
		"x@example.com"}}
	for _, e := range m {
		q.Addresses = append(q.Addresses, cmp.Or(e.Address, "somebody@"+e.Domain))
	}
	found, err := s.Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for i, address := range q.Addresses {
		got := -1
		if found[i] != nil {
			got = found[i].Reason.strength()
		}
		if want := m.strongest(q, address, now); got != want {
			t.Fatalf("step %d: %s is stopped by %d, want %d", step, address, got, want)
		}
	}
}

// strongest is the reason that stops an address; -1: none.
func (m model) strongest(q Question, address string, now time.Time) int {
	best := -1
	for _, e := range m {
		about := e.Address == address || e.Domain != "" && "@"+e.Domain == domainOf(address)
		concerns := e.Account == "" && e.List == "" || e.Account == q.Account && (e.List == "" || e.List == q.List)
		holds := e.Expires.IsZero() || e.Expires.After(now)
		passes := e.Reason == Unsubscribe && !q.Bulk && q.List == ""
		if about && concerns && holds && !passes {
			best = max(best, e.Reason.strength())
		}
	}
	return best
}
