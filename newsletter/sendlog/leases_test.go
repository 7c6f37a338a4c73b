package sendlog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCloseGivesBackWhoHasNoResult(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 5, 6, 7, 8)
	b.mark(t, batch, 6, 8)
	b.settle(t, "1", Move{Offset: 6, To: Sent})
	do(t, b.Close(ctx, batch, map[string]int{"h:sent:2030-01-02T03": 1, "d:sent:example.com": 1}))
	b.states(t, map[int]State{6: Sent, 8: InDoubt})
	do(t, b.Close(ctx, batch, map[string]int{"d:sent:example.com": 1})) // its answer was lost
	c := b.chunk(t)
	if c.At != 5 || c.Batches != 0 || c.Done {
		t.Errorf("%+v, want it to be scanned from 5 on", c)
	}
	want := map[string]int{"h:sent:2030-01-02T03": 1, "d:sent:example.com": 1}
	if diff := cmp.Diff(want, c.Counts.Fields); diff != "" {
		t.Errorf("tallies (-want +got)\n%s", diff)
	}
	b.batch(t, 5, 7)
}

func TestAChunkIsNotDoneIfPeopleAreGivenBack(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 3)
	_, _, _, _, err := b.Claim(ctx, run5, chunk3, Claim{From: 4, To: 9, Last: true, Most: 1})
	do(t, err)
	if c := b.chunk(t); !c.Done || c.Over() || c.Batches != 1 {
		t.Errorf("%+v: done, and not over", c)
	}
	c := b.chunk(t)
	c.Batches = 0 // they were counted later, after the batch was closed
	if c.Over() {
		t.Error("over, and somebody was taken")
	}
	do(t, b.Close(ctx, batch, nil))
	if c := b.chunk(t); c.Done || c.Over() || c.At != 3 {
		t.Errorf("%+v: neither done nor over", c)
	}
	batch = b.batch(t, 3)
	b.settle(t, "1", Move{Offset: 3, To: Deferred})
	_, _, _, _, err = b.Claim(ctx, run5, chunk3, Claim{From: 4, To: 9, Last: true, Most: 1})
	do(t, err)
	do(t, b.Close(ctx, batch, nil))
	if c := b.chunk(t); !c.Done || c.Over() {
		t.Errorf("%+v: done, and somebody is deferred", c)
	}
	b.settle(t, "1", Move{Offset: 3, To: Sent})
	if c := b.chunk(t); !c.Over() {
		t.Errorf("%+v: over", c)
	}
}

func TestBatchesLapse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		resend       bool
		back, doubts int
		want         map[int]State
	}{
		{"with doubt", false, 1, 1, map[int]State{2: InDoubt, 3: Sent, 4: AtDot}},
		{"and are sent again", true, 2, 0, map[int]State{3: Sent, 4: AtDot}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, ctx := opened(t), t.Context()
			batch, other := b.batch(t, 1, 2, 3), b.batch(t, 4)
			b.mark(t, batch, 2, 3)
			b.mark(t, other, 4)
			b.settle(t, "1", Move{Offset: 3, To: Sent})
			if back, doubts, err := b.ExpireLeases(ctx, run5, chunk3, c.resend); err != nil || back+doubts > 0 {
				t.Errorf("before the lease ended: %d, %d, %v", back, doubts, err)
			}
			b.ends(t, batch)
			for _, want := range [][2]int{{c.back, c.doubts}, {}} { // the second one finds nothing
				back, doubts, err := b.ExpireLeases(ctx, run5, chunk3, c.resend)
				if err != nil || back != want[0] || doubts != want[1] {
					t.Errorf("%d wait again, %d are in doubt, want %v; %v", back, doubts, want, err)
				}
			}
			b.states(t, c.want)
			if c := b.chunk(t); c.Batches != 1 || c.At != 1 {
				t.Errorf("%+v", c)
			}
			do(t, b.Close(ctx, batch, map[string]int{"late": 1})) // its worker was only slow
			b.states(t, c.want)
			if c := b.chunk(t); len(c.Counts.Fields) > 0 {
				t.Errorf("%+v: tallies of a batch that had ended", c)
			}
		})
	}
}

func TestRenewedBatchesStay(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch, closed := b.batch(t, 1), b.batch(t, 2)
	do(t, b.Close(ctx, closed, nil))
	b.ends(t, batch)
	do(t, b.Renew(ctx, []*Batch{batch, closed}))
	if back, doubts, err := b.ExpireLeases(ctx, run5, chunk3, false); err != nil || back+doubts > 0 {
		t.Errorf("%d, %d, %v", back, doubts, err)
	}
	if c := b.chunk(t); c.Batches != 1 {
		t.Errorf("%d batches, want 1: one that has ended stays so", c.Batches)
	}
	b.mark(t, batch, 1)
	b.marked(t, Lost, closed, 2)
	do(t, b.Renew(ctx, nil))
}
