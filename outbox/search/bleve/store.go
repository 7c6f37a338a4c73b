package bleve

import (
	"cmp"
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

// ErrOwned means that another process has the index.
var ErrOwned = errors.New("another process has the search index of this directory")

// Options are the settings of a Store. The zero value works.
type Options struct {
	Logger *slog.Logger // nil if nothing is logged
}

// Store is an index in a directory. It implements search.Store.
type Store struct {
	dir   string
	id    string
	lock  *flock.Flock
	fresh bool
	log   *slog.Logger

	reclaiming sync.Mutex // held by Reclaim

	writing sync.Mutex   // held by writers and by changes of the index in use
	using   sync.RWMutex // held by searches; also by writers that change inUse or closed
	inUse   *engine
	closed  bool
	beside  *engine // the index being built, for writers only; nil if none
}

// New returns the store of a directory. It does no I/O: [Store.Ready] opens the index.
func New(dir string, o Options) *Store {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Store{dir: dir, lock: flock.New(filepath.Join(dir, "lock")), log: o.Logger}
}

// Open is New and Ready.
func Open(dir string, o Options) (*Store, error) {
	s := New(dir, o)
	if _, err := s.Ready(context.Background()); err != nil { // it does not wait
		return nil, err
	}
	return s, nil
}

// Ready implements search.Store. It opens or creates the index. An unreadable index is set aside and replaced
// by a new one. If another process has the index, the error is [ErrOwned].
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

// open opens the index in use, or creates one.
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
		s.log.Error("search index unreadable: set aside, and rebuilt from the email log", "dir",
			s.dir, "error", err)
		s.setAside(strings.TrimSpace(string(name)))
	}
	s.fresh = true
	return s.begin()
}

// openExisting opens an existing index and reads from it.
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

// try reads one document of each segment.
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

// setAside renames an unreadable index for later inspection. It replaces the one set aside before.
func (s *Store) setAside(name string) {
	old, _ := filepath.Glob(filepath.Join(s.dir, "broken-*"))
	for _, path := range old {
		s.discard(path)
	}
	if name = filepath.Base(name); strings.HasPrefix(name, "index-") {
		to := "broken-" + strings.TrimPrefix(name, "index-")
		if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.dir, to)); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			s.log.Warn("the broken search index can't be set aside", "name", name, "error", err)
		}
	}
}

// begin creates an empty index and uses it.
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

// newEngine creates an empty index in a new subdirectory.
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

// use makes an index the one that the next start opens.
func (s *Store) use(e *engine) error {
	if err := renameio.WriteFile(filepath.Join(s.dir, "current"), []byte(filepath.Base(e.path)+"\n"),
		0o600); err != nil {
		return fmt.Errorf("say which search index is in use: %w", err)
	}
	return nil
}

// sweep deletes unused indexes, whose build ended when the process died.
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

// Fresh reports whether Ready created the index.
func (s *Store) Fresh() bool { return s.fresh }

// Close closes the index and releases it to other processes. A second call does nothing.
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
