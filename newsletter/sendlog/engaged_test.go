package sendlog

import "testing"

// TestWhoGotSomeRuns: whose mail was taken by a relay, or is known to have arrived, in any of the runs.
func TestWhoGotSomeRuns(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 0, 1, 2, 3, 4, 5, 6)
	b.mark(t, batch, 0, 1, 5, 6)
	b.settle(t, "111111", Move{Offset: 0, To: Sent}, Move{Offset: 1, To: Sent}, Move{Offset: 2, To: Suppressed},
		Move{Offset: 3, To: Deferred}, Move{Offset: 4, To: Failed}, Move{Offset: 5, To: InDoubt})
	b.note(t, "111111", Note{Offset: 1, Bit: Opened}, Note{Offset: 2, Bit: OpenedBots},
		Note{Offset: 4, Bit: Delivered}, Note{Offset: 1, Bit: Clicked}, Note{Offset: 0, Bit: ClickedBots},
		Note{Offset: ChunkSize - 1, Bit: Clicked})
	again := Run{Campaign: run5.Campaign, Number: 2}
	_, err := b.Note(ctx, again, chunk3, Note{Offset: 20, Bit: Opened}, Note{Offset: 1, Bit: Opened})
	do(t, err)
	e, err := b.Engaged(ctx, []Run{run5, again, {Campaign: 9, Number: 1}}, chunk3)
	do(t, err)
	for name, c := range map[string]struct {
		set  Set
		want []int
	}{
		"got": {e.Got, []int{0, 1, 4, 20, ChunkSize - 1}}, "opened": {e.Opened, []int{1, 20}},
		"clicked": {e.Clicked, []int{1, ChunkSize - 1}},
	} {
		want := map[int]bool{}
		for _, o := range c.want {
			want[o] = true
		}
		for o := range ChunkSize {
			if c.set.Has(o) != want[o] {
				t.Errorf("%s: %d is in the set: %v", name, o, c.set.Has(o))
			}
		}
	}
	if e, err := b.Engaged(ctx, nil, chunk3); err != nil || e.Got.Has(0) {
		t.Errorf("of no run: %+v, %v", e, err)
	}
}

// BenchmarkEngaged reads a chunk of a run that everybody got and opened.
func BenchmarkEngaged(b *testing.B) {
	log := setup(b)
	c, key := log.db.Client(), logKey(run5, chunk3)
	states, all := make([]byte, ChunkSize/2), make([]byte, ChunkSize/8)
	for i := range states {
		states[i] = byte(Sent<<4 | Sent)
	}
	for i := range all {
		all[i] = 0xff
	}
	do(b, c.Set(b.Context(), key, states, 0).Err())
	for _, bit := range []Bit{Delivered, Opened, Clicked} {
		do(b, c.Set(b.Context(), key+":"+string(bit), all, 0).Err())
	}
	for b.Loop() {
		_, err := log.Engaged(b.Context(), []Run{run5}, chunk3)
		do(b, err)
	}
}
