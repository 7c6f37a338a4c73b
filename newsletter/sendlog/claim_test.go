package sendlog

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestWorkersGetDifferentPeople: two workers scan a chunk at the same time.
func TestWorkersGetDifferentPeople(t *testing.T) {
	t.Parallel()
	b := opened(t)
	const people = 500
	var mu sync.Mutex
	got := map[int]int{}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for at := 0; at < people; {
				c := Claim{From: at, To: people, Last: true, Most: 7}
				for o := at; o < people; o++ {
					c.Offsets = append(c.Offsets, o)
				}
				s, next, _, _, err := b.Claim(t.Context(), run5, chunk3, c)
				if err != nil {
					t.Error(err)
					return
				}
				if at = next; s == nil {
					continue
				}
				mu.Lock()
				for _, o := range s.Offsets {
					got[o]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for o := range people {
		if got[o] != 1 {
			t.Errorf("%d was claimed %d times", o, got[o])
		}
	}
	if c := b.chunk(t); c.Counts.Taken != people || c.Counts.Sending() != people {
		t.Errorf("%+v", c)
	}
	b.exact(t)
}

func TestClaimTakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	s, at, moved, denied, err := b.Claim(ctx, run5, chunk3, Claim{To: 40, Offsets: []int{3, 4, 17, 39},
		Most: 3})
	do(t, err)
	if !slices.Equal(s.Offsets, []int{3, 4, 17}) || at != 39 || moved || denied {
		t.Errorf("%v up to %d, moved %v, denied %v", s, at, moved, denied)
	}
	b.states(t, map[int]State{3: Taken, 4: Taken, 17: Taken})
	do(t, b.Close(ctx, s, nil)) // they wait again, and the scan is at 3
	s, _, _, _, err = b.Claim(ctx, run5, chunk3, Claim{From: 3, To: 5, Offsets: []int{4}, Most: 3})
	do(t, err)
	b.mark(t, s, 4)
	b.settle(t, "1", Move{Offset: 4, To: Sent})
	do(t, b.ScanAgain(ctx, run5, chunk3))
	s, at, _, _, err = b.Claim(ctx, run5, chunk3, Claim{To: 40, Offsets: []int{3, 4, 17, 39}, Most: 9})
	do(t, err)
	if !slices.Equal(s.Offsets, []int{3, 17, 39}) || at != 40 {
		t.Errorf("%v up to %d", s, at)
	}
	s, at, _, _, err = b.Claim(ctx, run5, chunk3, Claim{From: 40, To: 90, Most: 9})
	if err != nil || s != nil || at != 90 {
		t.Errorf("%v up to %d, %v", s, at, err)
	}
}

func TestClaimFromAnotherPlaceTakesNobody(t *testing.T) {
	t.Parallel()
	b := opened(t)
	b.batch(t, 1, 2)
	s, at, moved, denied, err := b.Claim(t.Context(), run5, chunk3, Claim{To: 9, Offsets: []int{5}, Most: 9})
	if err != nil || s != nil || at != 3 || !moved || denied {
		t.Errorf("%v at %d, moved %v, denied %v, %v", s, at, moved, denied, err)
	}
	b.states(t, map[int]State{1: Taken, 2: Taken})
}

func TestNobodyIsClaimedWhilePermissionIsDenied(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), t.Context()
	expect := func(denied bool) {
		t.Helper()
		_, _, _, got, err := b.Claim(ctx, run5, chunk3, Claim{To: 0, Most: 1})
		if err != nil || got != denied {
			t.Errorf("denied %v, want %v; %v", got, denied, err)
		}
	}
	expect(true) // it was never opened
	do(t, b.Allow(ctx, run5, 3))
	expect(false)
	do(t, b.Deny(ctx, run5, 2)) // came late
	expect(false)
	do(t, b.Deny(ctx, run5, 4))
	expect(true)
	do(t, b.Allow(ctx, run5, 3)) // likewise
	expect(true)
	s, at, _, _, err := b.Claim(ctx, run5, chunk3, Claim{To: 9, Offsets: []int{1}, Most: 1})
	if err != nil || s != nil || at != 0 {
		t.Errorf("%v at %d, %v", s, at, err)
	}
}

// TestAChunkIsDoneWhenNobodyWasLeftOut: whoever scanned the part with those who were.
func TestAChunkIsDoneWhenNobodyWasLeftOut(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	scan := func(from, to int, last bool, again int64) {
		t.Helper()
		c := Claim{From: from, To: to, Last: last, Most: 1}
		if again > 0 {
			c.Again = time.UnixMilli(again)
		}
		_, at, moved, _, err := b.Claim(ctx, run5, chunk3, c)
		if err != nil || moved || at != to {
			t.Fatalf("at %d, moved %v, %v", at, moved, err)
		}
	}
	expect := func(done bool, again int64) {
		t.Helper()
		c := b.chunk(t)
		want := time.Time{}
		if again > 0 {
			want = time.UnixMilli(again)
		}
		if c.Done != done || !c.Again.Equal(want) {
			t.Errorf("done %v, again %v, want %v, %v", c.Done, c.Again, done, want)
		}
	}
	scan(0, 5, false, 9000)
	scan(5, 6, false, 8000)
	scan(6, 7, false, 10000)
	expect(false, 0) // it is still scanned
	scan(7, 9, true, 0)
	expect(false, 8000)
	scan(9, 9, true, 0) // its process finds no one else
	expect(false, 8000)
	do(t, b.ScanAgain(ctx, run5, chunk3))
	expect(false, 0)
	scan(0, 9, true, 0)
	expect(true, 0)
}

// TestWhoWasLeftOutIsNotForgottenWhenPeopleAreGivenBack: the scan continues after them, to the end.
func TestWhoWasLeftOutIsNotForgottenWhenPeopleAreGivenBack(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	s, _, _, _, err := b.Claim(ctx, run5, chunk3, Claim{To: 9, Offsets: []int{5}, Last: true, Most: 1,
		Again: time.UnixMilli(9000)})
	do(t, err)
	do(t, b.Close(ctx, s, nil))
	if c := b.chunk(t); c.At != 5 || c.Done || !c.Again.IsZero() {
		t.Errorf("%+v, want it to be scanned from 5 on", c)
	}
	_, _, _, _, err = b.Claim(ctx, run5, chunk3, Claim{From: 5, To: 9, Last: true, Most: 1})
	do(t, err)
	if c := b.chunk(t); c.Done || c.Again.UnixMilli() != 9000 {
		t.Errorf("%+v, want it to be scanned again", c)
	}
}
