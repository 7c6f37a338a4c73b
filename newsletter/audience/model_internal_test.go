package audience

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func newAudience(t testing.TB) *Subscribers {
	t.Helper()
	db := testredis.New(t)
	suppressions, err := suppression.New(db, suppression.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Parts{DB: db, Suppressions: suppressions,
		Account: func(context.Context, string) error { return nil }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newList(t testing.TB, s *Subscribers, id string) *List {
	t.Helper()
	if _, err := s.Lists.Create(t.Context(), "", api.List{ListID: id, Name: id, OptIn: "single"}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Lists.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// agree compares the states and counts of a list with the records.
func agree(t *testing.T, s *Subscribers, list *List) {
	t.Helper()
	want, counted := map[uint32]State{}, api.ListCounts{}
	_, _, err := s.walk(t.Context(), list.Account, members{}, 0, 0, func(ordinal uint32, r *record) (bool,
		error) {
		if state := r.stateOn(list.Number); state != None {
			want[ordinal] = state
			addCount(&counted, state, 1)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint32]State{}
	text, _ := s.db.Client().Get(t.Context(), statesKey(list.Number, 0)).Result()
	states, err := readStates(text)
	if err != nil {
		t.Fatal(err)
	}
	for offset := range chunkSize {
		if state := states.of(offset); state != None {
			got[uint32(offset)] = state
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("states of", list.ListID, diff)
	}
	info, err := s.Lists.Get(t.Context(), "", list.ListID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(counted, info.Counts); diff != "" {
		t.Error("counts of", list.ListID, diff)
	}
	pending, err := s.db.Client().ZCard(t.Context(), pendingKey(list.Number, 0)).Result()
	if err != nil || int(pending) != counted.Pending {
		t.Errorf("%d are indexed as pending, %d are: %v", pending, counted.Pending, err)
	}
}

// TestStatesOfListsAgreeWithRecords changes subscribers at random, and compares the lists with them.
func TestStatesOfListsAgreeWithRecords(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newAudience(t)
	lists := []*List{newList(t, s, "a"), newList(t, s, "b")}
	for step := range 800 {
		name := fmt.Sprintf("p%d@example.net", random.IntN(60))
		id := lists[random.IntN(2)].ListID
		var err error
		switch random.IntN(5) {
		case 0:
			_, err = s.Delete(t.Context(), "", api.SubscriberAccount{}, name)
		case 1:
			_, err = s.Leave(t.Context(), "", api.SubscriberAccount{}, name, id, SourceAPI)
		default:
			state := []string{"pending", "subscribed"}[random.IntN(2)]
			_, _, err = s.Create(t.Context(), "", api.SubscriberRequest{Email: name, Upsert: true,
				Lists:   []api.SubscriptionRequest{{ListID: id, State: state}},
				Consent: &api.Consent{Source: "x"}, Resubscribe: random.IntN(2) == 0})
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(step, err)
		}
	}
	for _, list := range lists {
		agree(t, s, list)
	}
}

// TestSparseStatesBecomeDense fills a list beyond what sparse states hold.
func TestSparseStatesBecomeDense(t *testing.T) {
	t.Parallel()
	s := newAudience(t)
	list := newList(t, s, "a")
	const people = 5000
	if _, err := s.nextOrdinals(t.Context(), DefaultAccount, people); err != nil {
		t.Fatal(err)
	}
	order := rand.Perm(people)
	records := make([]*record, people)
	for part := range slices.Chunk(order, 500) {
		pipe := s.db.Pipeline()
		for _, i := range part {
			r := &record{version: 1, created: 1, updated: 1, email: fmt.Sprintf("p%d@example.net", i)}
			state := State(1 + i%3)
			r.set(subscription{list: list.Number, state: state, since: uint32(i)})
			records[i] = r
			s.addWrite(pipe, DefaultAccount, []*change{{ordinal: uint32(i), new: r,
				lists: []listChange{{list: list.Number, state: state, since: uint32(i)}}}})
		}
		if err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	agree(t, s, list)
	for i := 0; i < people; i += 7 { // and back to none, in dense states
		c := &change{ordinal: uint32(i), old: records[i], lists: []listChange{{list: list.Number}}}
		if done, err := s.write(t.Context(), DefaultAccount, c); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	agree(t, s, list)
	seen := 0
	_, _, err := s.walk(t.Context(), DefaultAccount, members{list: list, state: Left}, 0, 0,
		func(_ uint32, r *record) (bool, error) {
			seen++
			if r.stateOn(list.Number) != Left {
				t.Error("walked over", r.email)
			}
			return true, nil
		})
	want := 0
	for i := range people {
		if i%7 != 0 && i%3 == 2 {
			want++
		}
	}
	if err != nil || seen != want {
		t.Errorf("walked over %d, want %d: %v", seen, want, err)
	}
}

// TestAWriteThatRunsTwiceCountsOnce, and is reported once: the answer of a script may be lost, and the client
// repeats it. A refused write reports nothing.
func TestAWriteThatRunsTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	s := newAudience(t)
	list := newList(t, s, "a")
	r := &record{version: 1, email: "ann@example.net"}
	r.set(subscription{list: list.Number, state: Subscribed})
	c := &change{ordinal: 5, new: r, lists: []listChange{{list: list.Number, state: Subscribed,
		tell: &telling{event.SubscriberLeft, "a", SourceAPI}}}}
	if err := c.fillEvents(DefaultAccount, time.Now()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if done, err := s.write(t.Context(), DefaultAccount, c); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	if n, err := s.Count(t.Context(), DefaultAccount); n != 1 || err != nil {
		t.Error("counted", n, err)
	}
	other := r.clone()
	other.name = "Bo"
	again := &change{ordinal: 5, new: other, events: c.events}
	if done, err := s.write(t.Context(), DefaultAccount, again); done || err != nil {
		t.Error("a record was overwritten by a new one:", done, err)
	}
	if told := leavings(t, s); len(told) != 1 {
		t.Error("told:", told)
	}
}

// TestACreationThatBrokeOffIsContinued: the index has the address, and there is no record.
func TestACreationThatBrokeOffIsContinued(t *testing.T) {
	t.Parallel()
	s := newAudience(t)
	if _, err := s.claim(t.Context(), DefaultAccount, "ann@example.net", "", "7"); err != nil {
		t.Fatal(err)
	}
	sub, created, err := s.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net"})
	if err != nil || !created || sub.ID != "s7" {
		t.Error(sub.ID, created, err)
	}
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	r := &record{version: 3, created: 100, updated: 105, email: "ann@example.net", name: "Ann", locale: "de",
		tz: "UTC", attributes: []byte(`{"a":1}`), tags: []string{"x", ""},
		lists: []subscription{{list: 300, state: Left, since: 7, source: 1, text: 2, given: 9, network: "::/48"}},
		past:  []subscription{{list: 300, state: Subscribed, since: 6}}}
	got, err := decode(r.encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got, cmp.AllowUnexported(record{}, subscription{})); diff != "" {
		t.Error(diff)
	}
	for cut := range r.encode() {
		if _, err := decode(r.encode()[:cut]); err == nil {
			t.Errorf("a record of %d bytes was read", cut)
		}
	}
}

// FuzzDecode: whatever is in Redis, decode neither panics nor invents a record that it would write otherwise.
func FuzzDecode(f *testing.F) {
	f.Add((&record{version: 1, email: "a@b.c", tags: []string{"x"}}).encode())
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := decode(body); err == nil {
			if again, err := decode(r.encode()); err != nil || again.email != r.email {
				t.Errorf("%q is read as %+v, and then as %+v: %v", body, r, again, err)
			}
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	s := newAudience(b)
	newList(b, s, "a")
	at := time.Now().UnixNano()
	for i := 0; b.Loop(); i++ {
		_, _, err := s.Create(b.Context(), "", api.SubscriberRequest{
			Email: fmt.Sprintf("p%d-%d@example.net", at, i),
			Lists: []api.SubscriptionRequest{{ListID: "a"}}})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// of returns the state of the subscriber at an offset.
func (c chunkStates) of(offset int) State {
	if c.dense != nil {
		return State(c.dense[offset/4] >> (2 * (offset % 4)) & 3)
	}
	n := len(c.sparse) / 3
	at := sort.Search(n, func(i int) bool { return c.offset(i) >= offset })
	if at < n && c.offset(at) == offset {
		return State(c.sparse[3*at+2])
	}
	return None
}
