package outbox

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/templates/render"
)

// sharedContents are the contents that several messages are rendered from. Redis has each once in every
// partition that has such messages; this process caches those used last.
type sharedContents struct {
	store *store
	cache *render.Cache

	mu     sync.Mutex
	stored map[storedContent]time.Time // when this process stored a content
	recent [8]*recentContent           // prepared last, those without files
	oldest int                         // the oldest, which the next one replaces
}

// recentContent is a content with its prepared form.
type recentContent struct {
	of       render.Content
	prepared *sharedContent
}

// storedContent is a shared content in a partition.
type storedContent struct {
	partition int
	name      string
}

// storedFor is how long this process relies on a shared content being in Redis after it stored it. storedMost
// is the most contents that it remembers. If a content is gone after all, that costs a round trip.
const (
	storedFor  = 5 * time.Minute
	storedMost = 10_000
)

// maxWords is more than the maximum text of a content, without files, in bytes (see package render).
const maxWords = 8 << 20

// errNoSharedContent ends a message whose shared content was deleted from Redis, but not by Postroom.
var errNoSharedContent = errors.New("its shared content is gone from Redis")

func newSharedContents(s *store) *sharedContents {
	return &sharedContents{store: s, cache: render.NewCache(0), stored: make(map[storedContent]time.Time)}
}

// sharedContent is a content that messages are rendered from.
type sharedContent struct {
	name     string
	packed   []byte
	renderer *render.Renderer
}

// prepare makes a content ready to be rendered and to be stored. Many messages have the content of one
// before, which costs less to compare than to write and to hash.
func (s *sharedContents) prepare(ctx context.Context, c render.Content) (*sharedContent, error) {
	if len(c.Attachments) == 0 {
		if known := s.prepared(c); known != nil {
			return known, nil
		}
	}
	name, packed, err := c.Pack()
	if err != nil {
		return nil, err
	}
	name = s.store.codec.hidden(name)
	r, err := s.cache.Get(ctx, name, func(context.Context) ([]byte, error) { return packed, nil })
	if err != nil {
		return nil, err
	}
	made := &sharedContent{name: name, packed: packed, renderer: r}
	if len(c.Attachments) == 0 && len(packed) <= recentMost {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.recent[s.oldest] = &recentContent{c, made}
		s.oldest = (s.oldest + 1) % len(s.recent)
	}
	return made, nil
}

// recentMost bounds a content in recent, in bytes.
const recentMost = 64 << 10

// prepared returns the prepared form of the same content, or nil if that was long ago.
func (s *sharedContents) prepared(c render.Content) *sharedContent {
	s.mu.Lock()
	recent := s.recent
	s.mu.Unlock()
	for _, one := range recent {
		if one != nil && reflect.DeepEqual(one.of, c) {
			return one.prepared
		}
	}
	return nil
}

// put stores a content for the messages of a partition. Without messages it expires.
func (s *sharedContents) put(ctx context.Context, p int, c *sharedContent) error {
	st := s.store
	packed := st.codec.pack(c.packed, sharedName(c.name), false)
	st.countBytes(len(packed))
	if len(packed) > small {
		if err := st.putIncoming(ctx, p, c.name, packed); err != nil {
			return err
		}
		packed = nil
	}
	_, err := shareScript.RunReplicated(ctx, st.DB, []string{st.keys.shared(p, c.name)},
		shareArgs{Name: c.name, Content: packed})
	if err != nil {
		return redisError(err, "store shared content "+c.name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stored) >= storedMost {
		clear(s.stored)
	}
	s.stored[storedContent{p, c.name}] = st.clock.Now()
	return nil
}

// has reports whether this process stored the content in the partition less than storedFor ago.
func (s *sharedContents) has(p int, c *sharedContent) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.stored[storedContent{p, c.name}]
	return ok && s.store.clock.Now().Sub(at) < storedFor
}

// forget notes that a content is no longer in Redis.
func (s *sharedContents) forget(p int, c *sharedContent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stored, storedContent{p, c.name})
}

// renderer is the renderer of a content in a partition.
func (s *sharedContents) renderer(ctx context.Context, p int, name string) (*render.Renderer, error) {
	st := s.store
	return s.cache.Get(ctx, name, func(ctx context.Context) ([]byte, error) {
		packed, err := st.DB.Client().Get(ctx, st.keys.shared(p, name)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, errNoSharedContent
		}
		if err != nil {
			return nil, redisError(err, "read shared content "+name)
		}
		return st.codec.unpackAll(packed, sharedName(name), st.opts.MaxSize+maxWords)
	})
}

// render renders a message from the shared content name, with additions and unsigned. Each attempt gives the
// same bytes.
func (s *store) render(
	ctx context.Context, p int, name, id string, e envelope, personal render.Personalization,
) (*message.Composed, render.Mail, error) {
	r, err := s.shared.renderer(ctx, p, name)
	if err != nil {
		return nil, render.Mail{}, err
	}
	identity, err := s.sharedIdentity(id, e, r.Content())
	if err != nil {
		return nil, render.Mail{}, err
	}
	return r.Render(ctx, personal, identity, true)
}

// renderSigned is render with a DKIM signature of the message's date.
func (s *store) renderSigned(
	ctx context.Context, p int, name, id string, e envelope, personal render.Personalization, owner dkim.Owner,
) (*message.Composed, render.Mail, error) {
	c, mail, err := s.render(ctx, p, name, id, e, personal)
	if err != nil {
		return nil, mail, err
	}
	at := redisdb.Time(personal.Date)
	if c.Raw, err = s.Signer.Sign(ctx, owner, domainOf(c.From.Address), at, c.Raw); err != nil {
		return nil, mail, err
	}
	if c.Size() > s.opts.MaxSize {
		return nil, mail, s.tooLarge(c.Size())
	}
	return c, mail, nil
}

// incomingFor is how long Redis keeps a large content for the script that renames its key.
const incomingFor = 5 * time.Minute

// putIncoming stores a large content in Redis, for a script that finds it by its name.
func (s *store) putIncoming(ctx context.Context, partition int, name string, content []byte) error {
	err := s.DB.Client().Set(ctx, s.keys.incoming(partition, name), content, incomingFor).Err()
	return redisError(err, "store the content of "+name)
}

func (s *store) tooLarge(size int) error {
	return fault.New(fault.TooLarge, "MessageTooLarge",
		"The message has %d bytes; the limit is %d (message.maxSize)", size, s.opts.MaxSize)
}
