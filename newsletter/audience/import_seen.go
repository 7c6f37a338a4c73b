package audience

import (
	"hash/maphash"
	"math/bits"
)

// seen is the set of the addresses of a file, as hashes of 64 bits: the chance that ten million addresses
// have two of one hash is one in 300,000. It takes at most 16 bytes an address. The seed is drawn, so nobody
// can make such addresses.
type seen struct {
	seed   maphash.Seed
	tables [256]seenTable // by the first byte; they grow one after the other, so few are there twice
}

// seenTable is a hash table with linear probing. It is at most 7/8 full, and after it grew 4/7.
type seenTable struct {
	slots []uint64 // 0: free
	used  int
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

// add adds a folded address, and reports whether it was not there.
func (s *seen) add(address string) bool {
	h := maphash.String(s.seed, address)
	return s.tables[h>>56].add(h<<8 | 1) // never 0; the first byte names the table
}

func (t *seenTable) add(h uint64) bool {
	if 8*(t.used+1) > 7*len(t.slots) {
		old := t.slots
		t.slots, t.used = make([]uint64, max(16, len(old)+len(old)/2)), 0
		for _, h := range old {
			if h != 0 {
				t.add(h)
			}
		}
	}
	n := uint64(len(t.slots))
	for i, _ := bits.Mul64(h, n); ; i = (i + 1) % n {
		switch t.slots[i] {
		case h:
			return false
		case 0:
			t.slots[i] = h
			t.used++
			return true
		}
	}
}
