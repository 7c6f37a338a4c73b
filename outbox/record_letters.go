package outbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/batch"
	"github.com/postroom/postroom/templates/render"
)

// letters keeps what messages are written from: in Redis once for each partition that has such messages, and in this process those that
// were used last.
type letters struct {
	store *store
	cache *batch.Cache

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

func newLetters(s *store) *letters {
	return &letters{store: s, cache: batch.NewCache(0), shared: make(map[sharedLetter]time.Time)}
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
	st := l.store
	packed := st.codec.pack(s.packed)
	st.heed(len(packed))
	if len(packed) > small {
		if err := st.lay(ctx, p, s.name, packed); err != nil {
			return err
		}
		packed = nil
	}
	err := st.DB.RunReplicated(ctx, shareScript, []string{st.keys.letter(p, s.name)}, s.name, packed).Err()
	if err != nil {
		return away(err, "share letter "+s.name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shared) >= sharedMost {
		clear(l.shared)
	}
	l.shared[sharedLetter{p, s.name}] = st.clock.Now()
	return nil
}

// relies says whether this process shared the letter not long ago.
func (l *letters) relies(p int, s *source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.shared[sharedLetter{p, s.name}]
	return ok && l.store.clock.Now().Sub(at) < sharedFor
}

// forget notes that a letter is not where it was put.
func (l *letters) forget(p int, s *source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shared, sharedLetter{p, s.name})
}

// writer finds what the messages of a partition are written from.
func (l *letters) writer(ctx context.Context, p int, name string) (*batch.Renderer, error) {
	st := l.store
	return l.cache.Get(ctx, name, func(ctx context.Context) ([]byte, error) {
		packed, err := st.DB.Client().Get(ctx, st.keys.letter(p, name)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, errNoLetter
		}
		if err != nil {
			return nil, away(err, "read letter "+name)
		}
		return st.codec.unpackAll(packed, st.opts.MaxSize+maxWords)
	})
}

// render writes a message from its letter, unsigned. Each of its attempts gets the same.
func (s *store) render(ctx context.Context, p int, name, id string, e envelope, slip batch.Personalization) (*message.Composed, render.Mail, error) {
	w, err := s.letters.writer(ctx, p, name)
	if err != nil {
		return nil, render.Mail{}, err
	}
	called, err := s.nameIn(id, e, w.Content())
	if err != nil {
		return nil, render.Mail{}, err
	}
	return w.Render(ctx, slip, called)
}

// write is render with the signature of an account, or of the author's domain.
func (s *store) write(ctx context.Context, p int, name, id string, e envelope, slip batch.Personalization, key *api.DKIM) (*message.Composed, render.Mail, error) {
	c, words, err := s.render(ctx, p, name, id, e, slip)
	if err != nil {
		return nil, words, err
	}
	if c.Raw, err = s.sign(ctx, key, c); err != nil {
		return nil, words, err
	}
	if c.Size() > s.opts.MaxSize {
		return nil, words, s.tooLarge(c.Size())
	}
	return c, words, nil
}

// incomingFor is how long a content lies in wait for the script that accepts its message.
const incomingFor = 5 * time.Minute

// lay puts a large content where the script that is to take it on finds it by its name.
func (s *store) lay(ctx context.Context, partition int, name string, content []byte) error {
	if err := s.DB.Client().Set(ctx, s.keys.incoming(partition, name), content, incomingFor).Err(); err != nil {
		return away(err, "bring in "+name)
	}
	return nil
}

func (s *store) tooLarge(size int) error {
	return fault.New(fault.TooLarge, "MessageTooLarge", "The message has %d bytes; the limit is %d (message.maxSize)", size, s.opts.MaxSize)
}

// rewrite is write for a message that is not being sent.
func (s *store) rewrite(ctx context.Context, p int, r row, packed []byte) (*message.Composed, error) {
	var slip batch.Personalization
	if err := s.jsons.unpack(r.id, packed, &slip); err != nil {
		return nil, err
	}
	key, err := s.signingKey(ctx, r.envelope.Account)
	if err != nil {
		return nil, err
	}
	c, _, err := s.write(ctx, p, r.letter, r.id, r.envelope, slip, key)
	return c, err
}

// signingKey is the DKIM key of an account; nil: it has none, or nothing is signed.
func (s *store) signingKey(ctx context.Context, account string) (*api.DKIM, error) {
	if s.Signer == nil {
		return nil, nil
	}
	sender, err := s.Accounts.Resolve(ctx, account)
	return sender.DKIM, err
}

// sign signs a composed message with the key of its account or of its author's domain, if there is one.
func (s *store) sign(ctx context.Context, key *api.DKIM, c *message.Composed) ([]byte, error) {
	if s.Signer == nil {
		return c.Raw, nil
	}
	return s.Signer.Sign(ctx, key, domainOf(c.From.Address), c.Raw)
}
