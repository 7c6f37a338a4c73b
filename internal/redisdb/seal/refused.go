package seal

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxRefused bounds the names that are remembered.
const maxRefused = 100

// refused remembers the records that did not open or verify, until they are reported.
type refused struct {
	mu    sync.Mutex
	names map[string]bool
}

// note remembers a record. Its name ends at the first space; what follows is the place of its secret.
func (r *refused) note(aad string) {
	name, _, _ := strings.Cut(aad, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) < maxRefused {
		if r.names == nil {
			r.names = map[string]bool{}
		}
		r.names[name] = true
	}
}

// Refused returns the names of the records that did not open or verify since it was last called, in order.
func (r *Ring) Refused() []string {
	r.refused.mu.Lock()
	defer r.refused.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.refused.names))
	r.refused.names = nil
	return names
}
