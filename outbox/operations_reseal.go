package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// resealTries bounds the attempts at a content that others seal at the same time.
const resealTries = 5

// resealNamed is how many contents that can't be opened are named. A lost secret closes all of them.
const resealNamed = 10

// resealing is one run of Reseal.
type resealing struct {
	*Operations
	seen, done int
	failed     []error
	more       int // failed ones that are not named
	told       func(seen, done int)
}

// Reseal seals email contents again that are sealed under an older secret than the current one, and returns
// their number. It may run while other processes with the same secrets do, and again after a failure. A
// content that can't be opened stays as it is; the error names it after the others are done. told, if not
// nil, is called after some contents with the number examined and the number sealed.
func (d *Operations) Reseal(ctx context.Context, told func(seen, done int)) (int, error) {
	if d.codec.ring == nil {
		return 0, nil
	}
	r := &resealing{Operations: d, told: told}
	err := r.run(ctx)
	if r.more > 0 {
		r.failed = append(r.failed, fmt.Errorf("and %d more contents", r.more))
	}
	return r.done, errors.Join(append(r.failed, err)...)
}

func (r *resealing) run(ctx context.Context) error {
	for _, kind := range []string{"content", "shared"} {
		err := r.DB.Scan(ctx, r.keys.all(kind), func(keys []string) error { return r.values(ctx, keys) })
		if err != nil {
			return err
		}
	}
	for p := range r.DB.Partitions() {
		if err := r.fields(ctx, r.keys.texts(p), keptText, textName); err != nil {
			return err
		}
	}
	return r.DB.Scan(ctx, r.keys.all("dialogues"), func(keys []string) error {
		for _, key := range keys {
			_, name, _ := strings.Cut(key, "}:") // as dialogueName
			if err := r.fields(ctx, key, "", func(string) string { return name }); err != nil {
				return err
			}
		}
		return nil
	})
}

// values seals the values of keys again.
func (r *resealing) values(ctx context.Context, keys []string) error {
	heads, pipe := make([]*redis.StringCmd, len(keys)), r.DB.Client().Pipeline()
	for i, key := range keys {
		heads[i] = pipe.GetRange(ctx, key, 0, seal.BoxHead-1)
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "look for contents under an older secret")
	}
	for i, key := range keys {
		if !r.codec.ring.BoxNeedsRotation([]byte(heads[i].Val())) {
			continue
		}
		_, name, _ := strings.Cut(key, "}:") // as contentName or sharedName
		_, id, _ := strings.Cut(name, ":")
		if err := r.count(r.value(ctx, key, name, resealArgs{ID: id})); err != nil {
			return err
		}
	}
	r.tell(len(keys))
	return nil
}

// fields seals the fields of a hash again, which follow a letter. name returns the name of a field's box.
func (r *resealing) fields(ctx context.Context, key, letter string, name func(field string) string) error {
	for cursor := uint64(0); ; {
		found, next, err := r.DB.Client().HScan(ctx, key, cursor, "", 100).Result()
		if err != nil {
			return redisError(err, "read what is sealed")
		}
		for i := 0; i+1 < len(found); i += 2 {
			box, is := strings.CutPrefix(found[i+1], letter)
			if !is || !r.codec.ring.BoxNeedsRotation([]byte(box)) {
				continue
			}
			args := resealArgs{ID: found[i], Field: found[i], Letter: letter}
			if err := r.count(r.value(ctx, key, name(args.Field), args)); err != nil {
				return err
			}
		}
		r.tell(len(found) / 2)
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// value seals one value again, and reports whether it did. If the value changes in between, it is read again.
func (r *resealing) value(ctx context.Context, key, name string, args resealArgs) (bool, error) {
	for range resealTries {
		box, err := r.read(ctx, key, args)
		if err != nil || !r.codec.ring.BoxNeedsRotation(box) {
			return false, err
		}
		args.Former = append([]byte(nil), box[:seal.BoxHead]...)
		if args.Value, err = r.codec.ring.RenewBox(box, name); err != nil {
			return false, unopened(err, name)
		}
		if len(args.Value) > small && args.Field == "" {
			prefix, _, _ := strings.Cut(key, "}:")
			err := r.DB.Client().Set(ctx, prefix+"}:incoming:"+args.ID, args.Value, incomingFor).Err()
			if err != nil {
				return false, redisError(err, "store "+name)
			}
			args.Value = nil
		}
		done, err := resealScript.RunReplicated(ctx, r.DB, []string{key}, args)
		if err != nil || done {
			return done, redisError(err, "seal "+name+" again")
		}
	}
	return false, fmt.Errorf("seal %s again: it keeps changing", name)
}

// read returns a value; none if it is gone.
func (r *resealing) read(ctx context.Context, key string, args resealArgs) ([]byte, error) {
	found := r.DB.Client().Get(ctx, key)
	if args.Field != "" {
		found = r.DB.Client().HGet(ctx, key, args.Field)
	}
	value, err := found.Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisError(err, "read what is sealed")
	}
	if len(value) > 0 {
		value = value[len(args.Letter):]
	}
	return value, nil
}

// count notes the result for one value. It returns an error that ends the run.
func (r *resealing) count(done bool, err error) error {
	switch {
	case fault.Is(err, fault.Unavailable):
		return err
	case err != nil && len(r.failed) == resealNamed:
		r.more++
	case err != nil:
		r.failed = append(r.failed, err)
	case done:
		r.done++
	}
	return nil
}

func (r *resealing) tell(seen int) {
	if r.seen += seen; r.told != nil {
		r.told(r.seen, r.done)
	}
}
