package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/batch"
	"github.com/postroom/postroom/templates/render"
)

// letters keeps what messages are written from: in Redis once for each partition that has such messages, and in this process those that
// were used last.
type letters struct {
	outbox *Outbox
	cache  *batch.Cache

	mu     sync.Mutex
	shared map[sharedLetter]time.Time
}

// sharedLetter is a letter in a partition.
type sharedLetter struct {
	partition int
	name      string
}

// sharedFor is how long this process relies on a letter being in Redis without messages that need it, and shares at most so many without
// forgetting. Relying on it wrongly costs a round trip.
const (
	sharedFor  = 5 * time.Minute
	sharedMost = 10_000
)

// maxWords is more than the words of a letter can take beside its files (render's limits).
const maxWords = 8 << 20

// errNoLetter ends a message whose letter somebody took out of Redis.
var errNoLetter = errors.New("the letter it is written from is gone from Redis")

func newLetters(b *Outbox) *letters {
	return &letters{outbox: b, cache: batch.NewCache(0), shared: make(map[sharedLetter]time.Time)}
}

// source is what a message is written from.
type source struct {
	name   string
	packed []byte
	writer *batch.Renderer
}

// source makes a letter ready to be written from and to be shared.
func (l *letters) source(ctx context.Context, from batch.Content) (*source, error) {
	name, packed, err := from.Pack()
	if err != nil {
		return nil, err
	}
	w, err := l.cache.Get(ctx, name, func(context.Context) ([]byte, error) { return packed, nil })
	return &source{name: name, packed: packed, writer: w}, err
}

// share puts a letter where messages of a partition find it, for a while.
func (l *letters) share(ctx context.Context, p int, s *source) error {
	b := l.outbox
	packed := b.codec.pack(s.packed)
	b.heed(len(packed))
	if len(packed) > small {
		if err := b.lay(ctx, p, s.name, packed); err != nil {
			return err
		}
		packed = nil
	}
	err := b.DB.RunReplicated(ctx, shareScript, []string{b.store.letter(p, s.name)}, s.name, packed).Err()
	if err != nil {
		return away(err, "share letter "+s.name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shared) >= sharedMost {
		clear(l.shared)
	}
	l.shared[sharedLetter{p, s.name}] = b.clock.Now()
	return nil
}

// relies says whether this process shared the letter not long ago.
func (l *letters) relies(p int, s *source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.shared[sharedLetter{p, s.name}]
	return ok && l.outbox.clock.Now().Sub(at) < sharedFor
}

// forget notes that a letter is not where it was put.
func (l *letters) forget(p int, s *source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shared, sharedLetter{p, s.name})
}

// writer finds what the messages of a partition are written from.
func (l *letters) writer(ctx context.Context, p int, name string) (*batch.Renderer, error) {
	b := l.outbox
	return l.cache.Get(ctx, name, func(ctx context.Context) ([]byte, error) {
		packed, err := b.DB.Client().Get(ctx, b.store.letter(p, name)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, errNoLetter
		}
		if err != nil {
			return nil, away(err, "read letter "+name)
		}
		return b.codec.unpackAll(packed, b.opts.MaxSize+maxWords)
	})
}

// write writes a message from its letter, signed, as it is for each of its attempts.
func (b *Outbox) write(ctx context.Context, p int, name, id string, e envelope, s batch.Personalization) (*message.Composed, render.Mail, error) {
	w, err := b.letters.writer(ctx, p, name)
	if err != nil {
		return nil, render.Mail{}, err
	}
	called, err := b.nameIn(id, e, w.Content())
	if err != nil {
		return nil, render.Mail{}, err
	}
	c, words, err := w.Render(ctx, s, called)
	if err != nil {
		return nil, words, err
	}
	if c.Raw, err = b.sign(ctx, e.Account, c); err != nil {
		return nil, words, err
	}
	if c.Size() > b.opts.MaxSize {
		return nil, words, b.tooLarge(c.Size())
	}
	return c, words, nil
}

// rewrite writes a message as write does, from what it keeps of its own.
func (b *Outbox) rewrite(ctx context.Context, p int, r row, packed []byte) (*message.Composed, render.Mail, error) {
	var s batch.Personalization
	if err := b.jsons.unpack(r.id, packed, &s); err != nil {
		return nil, render.Mail{}, err
	}
	return b.write(ctx, p, r.letter, r.id, r.envelope, s)
}
