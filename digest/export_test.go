package digest

import (
	"context"
	"sync"
)

// Work does what is due now, once, in place of Run. It returns how much that was.
func (d *Digests) Work(ctx context.Context) (int, error) {
	found, err := d.works.look(ctx)
	var all sync.WaitGroup
	for _, h := range found {
		all.Go(func() { d.works.attend(ctx, h) })
	}
	all.Wait()
	return len(found), err
}
