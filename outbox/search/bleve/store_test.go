package bleve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/bleve"
	"github.com/postroom/postroom/outbox/search/query"
	"github.com/postroom/postroom/outbox/search/searchtest"
)

// count says how many documents there are.
func count(t *testing.T, s *bleve.Store) int {
	t.Helper()
	found, err := s.Search(t.Context(), search.Query{Where: query.All{}, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	return found.Total
}

func fill(t *testing.T, s search.Writer) {
	t.Helper()
	if err := s.Put(t.Context(), searchtest.Mail()); err != nil {
		t.Fatal(err)
	}
}

func TestComesBackAfterClose(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	name, err := s.Ready(t.Context())
	if !s.Fresh() || name == "" || err != nil {
		t.Errorf("a new index: fresh %v, name %q, %v", s.Fresh(), name, err)
	}
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Search(t.Context(), search.Query{}); err == nil {
		t.Error("a closed index answers")
	}
	again := open(t, dir)
	if same, err := again.Ready(t.Context()); again.Fresh() || same != name || err != nil ||
		count(t, again) != 5 {
		t.Errorf("fresh %v, name %q and before %q, %v, %d documents", again.Fresh(), same, name, err,
			count(t, again))
	}
}

func TestOneProcessOwnsIt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := bleve.Open(dir, bleve.Options{}); !errors.Is(err, bleve.ErrOwned) {
		t.Errorf("opened twice: %v", err)
	}
	waiting := bleve.New(dir, bleve.Options{})
	if _, err := waiting.Ready(t.Context()); !errors.Is(err, bleve.ErrOwned) {
		t.Errorf("ready while another one has it: %v", err)
	}
	if err := waiting.Put(t.Context(), searchtest.Mail()); err == nil {
		t.Error("what is not open takes documents")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := waiting.Ready(t.Context()); err != nil { // the other process has ended in the meantime
		t.Error(err)
	}
	fill(t, waiting)
	if err := waiting.Close(); err != nil {
		t.Error(err)
	}
	if err := bleve.New(t.TempDir(), bleve.Options{}).Close(); err != nil {
		t.Errorf("close what was never open: %v", err)
	}
}

// inUse is the subdirectory in use.
func inUse(t *testing.T, dir string) string {
	t.Helper()
	name, err := os.ReadFile(filepath.Join(dir, "current"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, strings.TrimSpace(string(name)))
}

// TestBrokenIsSetAside breaks an index in several ways. The next start goes well, with an empty one.
func TestBrokenIsSetAside(t *testing.T) {
	for name, breakIt := range map[string]func(t *testing.T, dir string) error{
		"deleted":        func(t *testing.T, dir string) error { return os.RemoveAll(inUse(t, dir)) },
		"wholly deleted": func(_ *testing.T, dir string) error { return os.RemoveAll(dir) },
		"no id":          func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "id")) },
		"points nowhere": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "current"), []byte("../.."), 0o600)
		},
		"points at all": func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "current"),
				nil, 0o600)
		},
		"no segments": func(t *testing.T, dir string) error { return eachSegment(t, dir, os.Remove) },
		"empty segments": func(t *testing.T, dir string) error {
			return eachSegment(t, dir, func(p string) error { return os.Truncate(p, 0) })
		},
		"cut segments": func(t *testing.T, dir string) error {
			return eachSegment(t, dir, func(p string) error { return os.Truncate(p, 100) })
		},
		"garbage": func(t *testing.T, dir string) error {
			return eachSegment(t, dir, func(p string) error { return os.WriteFile(p, make([]byte, 9000), 0o600) })
		},
		"broken register": func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(inUse(t, dir), "root.bolt"), []byte("x"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "documents")
			s := open(t, dir)
			fill(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := breakIt(t, dir); err != nil {
				t.Fatal(err)
			}
			again := open(t, dir)
			if !again.Fresh() || count(t, again) != 0 {
				t.Fatalf("fresh %v, %d documents", again.Fresh(), count(t, again))
			}
			fill(t, again)
			if count(t, again) != 5 {
				t.Errorf("%d documents", count(t, again))
			}
		})
	}
}

func eachSegment(t *testing.T, dir string, do func(string) error) error {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(inUse(t, dir), "*.zap"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d segments, %v", len(files), err)
	}
	for _, f := range files {
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// TestBuildDiesWithTheProcess leaves an index behind that was being built.
func TestBuildDiesWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s)
	if _, err := s.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(dir, "index-20290101-000000.000000000")
	if err := os.Mkdir(leftover, 0o700); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	all, _ := filepath.Glob(filepath.Join(dir, "index-*"))
	if again.Fresh() || count(t, again) != 5 || len(all) != 1 {
		t.Errorf("fresh %v, %d documents, directories %v", again.Fresh(), count(t, again), all)
	}
}

func TestSwapIsForGood(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s)
	w, err := s.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Put(t.Context(), searchtest.Mail()[:1]); err != nil {
		t.Fatal(err)
	}
	if err := s.Swap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, open(t, dir)); n != 1 {
		t.Errorf("%d documents, want the one of the new index", n)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := s.Search(ctx, search.Query{Where: query.All{}, Size: 1}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a search that has no time left: %v", err)
	}
	if err := s.Put(ctx, searchtest.Mail()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that has no time left: %v", err)
	}
}

// TestSearchWhileEverythingChanges: concurrent searches, writes, rebuilds and scans. The race detector
// watches.
func TestSearchWhileEverythingChanges(t *testing.T) {
	s := open(t, t.TempDir())
	fill(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	searched := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			_, err = s.Search(context.WithoutCancel(ctx), search.Query{
				Where: query.Term{Field: query.Text, Value: "invoice"}, Size: 5, Facets: true})
		}
		searched <- err
	}()
	for range 5 {
		w, err := s.Build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Walk(t.Context(), func(docs []search.Document) error {
			return w.Put(t.Context(), docs)
		}); err != nil {
			t.Fatal(err)
		}
		fill(t, s)
		if err := s.Swap(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-searched; err != nil {
		t.Error(err)
	}
	if n := count(t, s); n != 5 {
		t.Errorf("%d documents", n)
	}
}

// hasFiles reports whether a file of a directory has a text. Ids are in the files uncompressed.
func hasFiles(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // files may go at any time
		}
		raw, _ := os.ReadFile(path)
		found = found || strings.Contains(string(raw), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestReclaimLeavesNoBytes looks for the id of a deleted document in the files.
func TestReclaimLeavesNoBytes(t *testing.T) {
	mail := searchtest.Mail()
	gone := mail[0].QueueID
	for name, test := range map[string]struct {
		batches int // the same documents, so many times: each is a segment, and the others are replaced
		delete  []search.Document
	}{
		"one segment":        {1, mail[:1]},
		"the whole index":    {1, mail},
		"twenty-five merged": {25, mail[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			for i := range test.batches {
				for j := range mail {
					mail[j].Revision = int64(i + 1)
				}
				if err := s.Put(t.Context(), mail); err != nil {
					t.Fatal(err)
				}
			}
			if !hasFiles(t, dir, gone) {
				t.Fatal("the id of a document can't be found in the files")
			}
			var ids []string
			for _, d := range test.delete {
				ids = append(ids, d.QueueID)
			}
			if err := errors.Join(s.Delete(t.Context(), ids), s.Reclaim(t.Context())); err != nil {
				t.Fatal(err)
			}
			if hasFiles(t, dir, gone) {
				t.Error("the files still have a deleted document")
			}
			if n := count(t, s); n != len(mail)-len(ids) {
				t.Errorf("%d documents are left", n)
			}
		})
	}
}

// TestReclaimBesideASearch: a search may keep the files that it reads. Nothing is written after it, and what
// it kept goes nevertheless.
func TestReclaimBesideASearch(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fill(t, s)
	gone := searchtest.ID(1)
	if !hasFiles(t, dir, gone) {
		t.Fatal("the id of a document can't be found in the files")
	}
	reclaimed := make(chan error, 1)
	if err := s.Walk(t.Context(), func([]search.Document) error {
		if err := s.Delete(t.Context(), []string{gone}); err != nil {
			return err
		}
		go func() { reclaimed <- s.Reclaim(t.Context()) }()
		select { // the files are merged, and may be kept
		case err := <-reclaimed:
			reclaimed <- err
		case <-time.After(300 * time.Millisecond):
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-reclaimed; err != nil {
		t.Fatal(err)
	}
	if hasFiles(t, dir, gone) {
		t.Error("the files still have a deleted document")
	}
}
