package documents_test

import (
	"context"
	"errors"
	"testing"

	"github.com/postroom/postroom/documents"
	"github.com/postroom/postroom/event"
	mail "github.com/postroom/postroom/message"
)

// dying is a store whose process dies before it rewrites its files.
type dying struct {
	documents.Store
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

// TestIndexIsRewrittenAfterACrashOfAnErasure: who goes on finds no documents any more, and files still have
// their bytes.
func TestIndexIsRewrittenAfterACrashOfAnErasure(t *testing.T) {
	t.Parallel()
	d := &dying{dead: true}
	w := setup(t, func(p *documents.Parts, _ *documents.Options) { d.Store = p.Store; p.Store = d })
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
