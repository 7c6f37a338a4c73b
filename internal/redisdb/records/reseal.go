package records

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/postroom/postroom/api/fault"
)

// Reseal seals secrets again, under the current secret of the instance, that are sealed under an older one.
// It returns the number of records that changed. Changes at the same time are safe, and it may be run again.
// Records that don't open stay as they are. The error names them, after all others are done. A record counts
// as unchanged: its times and its state stay.
func (s *Store[V]) Reseal(ctx context.Context) (int, error) {
	n := 0
	var failed []error
	err := s.each(ctx, func(r *Record[V]) error {
		done, err := s.resealOne(ctx, r)
		switch {
		case fault.Is(err, fault.Unavailable):
			return err
		case err != nil:
			failed = append(failed, err)
		case done:
			n++
		}
		return nil
	})
	return n, errors.Join(append(failed, err)...)
}

// resealOne seals one record again if needed, and reports whether it did. If the record changes in between,
// it is read again.
func (s *Store[V]) resealOne(ctx context.Context, r *Record[V]) (bool, error) {
	id := r.ID
	for range tries {
		next := *r
		next.revision = rand.Text()
		needed, err := reseal(s.kind.Secrets(&next.Value), s.ring, s.place(id))
		if err != nil || !needed {
			return false, err
		}
		done, err := s.write(ctx, &next, r, true)
		if err != nil || done {
			return done, err
		}
		if r, err = s.loadOne(ctx, id, false); err != nil || r == nil {
			return false, err
		}
	}
	return false, s.contended(id)
}
