package bleve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	index "github.com/blevesearch/bleve_index_api"
	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
)

// ErrOwned says that another process has the index.
var ErrOwned = errors.New("another process has the search index of this directory")

// Options are the settings of a Store. The zero value works.
type Options struct {
	Logger *slog.Logger // nil: nothing is logged
}

// Store is an index in a directory. It implements documents.Store.
type Store struct {
	dir   string
	id    string
	lock  *flock.Flock
	fresh bool
	log   *slog.Logger

	writing sync.Mutex   // held by whoever changes documents, or which index is in use
	using   sync.RWMutex // held by searches, and, beside writing, while inUse or closed changes
	inUse   *engine
	closed  bool
	beside  *engine // being built, and known to writers only; nil: none
}

// New prepares the index of a directory. It does no I/O: [Store.Ready] opens it.
func New(dir string, o Options) *Store {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, lock: flock.New(filepath.Join(dir, "lock")), log: o.Logger}
}

// Open is New and Ready.
func Open(dir string, o Options) (*Store, error) {
	s := New(dir, o)
	if _, err := s.Ready(context.Background()); err != nil { // nothing in it waits
		return nil, err
	}
	return s, nil
}

// Ready implements documents.Store. It opens the index, and makes what is missing; one that can't be read is set aside, and a new one
// begun. While another process has it, the error is [ErrOwned].
func (s *Store) Ready(context.Context) (string, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed {
		return "", errClosed
	}
	if s.inUse != nil {
		return s.id, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of the search index: %w", err)
	}
	got, err := s.lock.TryLock()
	if err != nil {
		return "", fmt.Errorf("lock the search index %s: %w", s.dir, err)
	}
	if !got {
		return "", fmt.Errorf("%w (%s)", ErrOwned, s.dir)
	}
	s.using.Lock()
	defer s.using.Unlock()
	if err := s.open(); err != nil {
		s.inUse = nil
		return "", errors.Join(err, s.lock.Unlock())
	}
	return s.id, nil
}

// open finds the index in use, or begins one.
func (s *Store) open() error {
	name, err := os.ReadFile(filepath.Join(s.dir, "current"))
	if err == nil {
		var id []byte
		if id, err = os.ReadFile(filepath.Join(s.dir, "id")); err == nil {
			s.inUse, err = openExisting(filepath.Join(s.dir, filepath.Base(strings.TrimSpace(string(name)))))
		}
		if err == nil {
			s.id = strings.TrimSpace(string(id))
			s.sweep()
			return nil
		}
		s.log.Error("the search index can't be read: it is set aside, and made anew from the email log", "dir", s.dir, "error", err)
		s.setAside(strings.TrimSpace(string(name)))
	}
	s.fresh = true
	return s.begin()
}

// openExisting opens an index that should be there, and reads from it.
func openExisting(path string) (*engine, error) {
	last, err := lastBatch(path)
	if err != nil {
		return nil, err
	}
	e, err := openEngine(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.resume(last), e.try()); err != nil {
		return nil, errors.Join(fmt.Errorf("read search index %s: %w", path, err), e.close())
	}
	return e, nil
}

// try reads a document of each segment.
func (e *engine) try() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the engine panicked: %v", x)
		}
	}()
	snapshot, err := e.snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close() //nolint:errcheck // nothing was written
	for _, segment := range snapshot.Segments() {
		if live := segment.DocNumbersLive(); !live.IsEmpty() {
			if _, err := source(segment, uint64(live.Maximum())); err != nil {
				return err
			}
		}
	}
	return nil
}

// setAside keeps what can't be read for whoever wants to look at it, in the place of what was set aside before.
func (s *Store) setAside(name string) {
	old, _ := filepath.Glob(filepath.Join(s.dir, "broken-*"))
	for _, path := range old {
		s.discard(path)
	}
	if name = filepath.Base(name); strings.HasPrefix(name, "index-") {
		to := "broken-" + strings.TrimPrefix(name, "index-")
		if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, to)); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("the broken search index can't be set aside", "name", name, "error", err)
		}
	}
}

// begin makes an empty index and uses it.
func (s *Store) begin() error {
	e, err := s.newEngine()
	if err != nil {
		return err
	}
	s.id = rand.Text()
	if err := renameio.WriteFile(filepath.Join(s.dir, "id"), []byte(s.id+"\n"), 0o600); err != nil {
		return errors.Join(fmt.Errorf("name the search index: %w", err), e.close())
	}
	if err := s.use(e); err != nil {
		return errors.Join(err, e.close())
	}
	s.inUse = e
	s.sweep()
	return nil
}

// newEngine makes an empty index in a subdirectory of its own.
func (s *Store) newEngine() (*engine, error) {
	e, err := openEngine(filepath.Join(s.dir, "index-"+time.Now().UTC().Format("20060102-150405.000000000")))
	if err != nil {
		return nil, err
	}
	if err := e.write(index.NewBatch()); err != nil {
		return nil, errors.Join(fmt.Errorf("begin search index %s: %w", e.path, err), e.close())
	}
	return e, nil
}

// use makes an index the one to be opened at the next start.
func (s *Store) use(e *engine) error {
	if err := renameio.WriteFile(filepath.Join(s.dir, "current"), []byte(filepath.Base(e.path)+"\n"), 0o600); err != nil {
		return fmt.Errorf("say which search index is in use: %w", err)
	}
	return nil
}

// sweep deletes indexes that nobody uses: those that were being built when the process died.
func (s *Store) sweep() {
	all, _ := filepath.Glob(filepath.Join(s.dir, "index-*"))
	for _, path := range all {
		if path != s.inUse.path {
			s.discard(path)
		}
	}
}

func (s *Store) discard(path string) {
	if err := os.RemoveAll(path); err != nil {
		s.log.Warn("an old search index can't be deleted", "path", path, "error", err)
	}
}

// Fresh says that Ready began the index.
func (s *Store) Fresh() bool { return s.fresh }

// Close closes the index, and lets another process have it. Closing again does nothing.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.using.Lock()
	defer s.using.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.inUse == nil {
		return nil
	}
	err := s.inUse.close()
	if s.beside != nil {
		err = errors.Join(err, s.beside.close())
		s.discard(s.beside.path)
	}
	return errors.Join(err, s.lock.Close())
}
