package search_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/api/event"
	mail "github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/search"
)

// dying is a store whose process dies before it rewrites its files.
type dying struct {
	search.Store
	dead      bool
	reclaimed int
}

func (d *dying) Reclaim(ctx context.Context) error {
	if d.dead {
		return errors.New("killed")
	}
	d.reclaimed++
	return d.Store.Reclaim(ctx)
}

// eraseAnn erases the recipient of message 1, and returns how many documents were counted.
func (w *world) eraseAnn() (counted int, err error) {
	w.t.Helper()
	traces, err := mail.NewTraces("ann1@example.com")
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.Erase(w.t.Context(), "", traces, func(n int) error { counted += n; return nil })
	return counted, err
}

// TestIndexIsRewrittenAfterACrashOfAnErasure: the process that continues finds no documents any more, and
// files still have their bytes.
func TestIndexIsRewrittenAfterACrashOfAnErasure(t *testing.T) {
	t.Parallel()
	d := &dying{dead: true}
	w := setup(t, func(p *search.Parts, _ *search.Options) { d.Store = p.Store; p.Store = d })
	w.tell(event.MessageQueued, message(1))
	w.tell(event.MessageQueued, message(2))
	w.finds("", 2)
	w.mail.forget(id(1)) // erased there first, or what indexes it again brings it back
	if n, err := w.eraseAnn(); err == nil || n != 1 {
		t.Fatalf("counted %d, %v", n, err)
	}
	w.finds("", 1)
	d.dead = false
	for range 2 { // the second time there is nothing to do
		if n, err := w.eraseAnn(); err != nil || n != 0 || d.reclaimed != 1 {
			t.Errorf("again: counted %d, rewritten %d times, %v", n, d.reclaimed, err)
		}
	}
}

// TestErasedPersonStaysInNoTextOfOthers: a message to two was indexed again after the outbox had erased one
// of them. The index keeps a text that the outbox has no more, and the person is not its recipient.
func TestErasedPersonStaysInNoTextOfOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := message(1)
	m.Envelope.To, m.Text = append(m.Envelope.To, "bob@example.com"), "Dear ann1@example.com and Bob"
	w.tell(event.MessageQueued, m)
	w.finds("to:ann1@example.com", 1)
	m.Envelope.To, m.Text, m.TextKnown = []string{mail.Erased, "bob@example.com"}, "", false
	w.tell(event.MessageSent, m)
	w.finds("to:ann1@example.com", 0)
	w.finds("ann1", 1)
	if n, err := w.eraseAnn(); err != nil || n != 1 {
		t.Fatalf("counted %d, %v", n, err)
	}
	w.finds("ann1", 0)
	w.finds("to:bob@example.com", 1)
}

// walked is a store that reports when a rebuild has read all documents, and has copied none.
type walked struct {
	search.Store
	read func()
}

func (w *walked) Walk(ctx context.Context, fn func([]search.Document) error) error {
	var all []search.Document
	if err := w.Store.Walk(ctx, func(some []search.Document) error {
		all = append(all, some...)
		return nil
	}); err != nil {
		return err
	}
	w.read()
	return fn(all)
}

// TestARebuildBringsNobodyBack: a person is erased after a rebuild has read their documents, and before it
// has copied them.
func TestARebuildBringsNobodyBack(t *testing.T) {
	t.Parallel()
	s, dir := &walked{}, t.TempDir()
	w := runOn(t, testredis.Open(t, redisdb.Options{Partitions: 2}), newMailbox(), dir,
		func(p *search.Parts, _ *search.Options) { s.Store = p.Store; p.Store = s })
	w.tell(event.MessageQueued, message(1))
	w.tell(event.MessageQueued, message(2))
	w.finds("", 2)
	s.read = func() {
		w.mail.forget(id(1))
		w.mail.forget(id(2)) // else the log writes it again, and the segment of both is empty
		if n, err := w.eraseAnn(); err != nil || n != 1 {
			t.Errorf("counted %d, %v", n, err)
		}
	}
	if _, err := w.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "the rebuild is done", func() bool {
		state, err := w.State(t.Context())
		return err == nil && state.Rebuild != nil && state.Rebuild.Status == "done"
	})
	w.finds("", 1)
	w.stop()
	if left := naming(t, dir, id(1)); len(left) > 0 {
		t.Errorf("the document is in %v", left)
	}
}

// naming returns the files of a directory that have a text.
func naming(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}
