package outbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// dialoguesIn returns how many dialogues of a message Redis has.
func (b *bundle) dialoguesIn(t *testing.T, id string) int64 {
	t.Helper()
	return b.store.DB.Client().HLen(t.Context(), b.store.keys.dialogues(b.store.partition(id), id)).Val()
}

// said returns the dialogue of an attempt as one text.
func said(a api.Attempt) string {
	var words []string
	for _, l := range a.Dialogue {
		words = append(words, l.From+" "+l.Text)
	}
	return strings.Join(words, "; ")
}

// TestDialoguesOfAMessage: each attempt that failed has its own, wherever the message is shown; the attempt
// that delivers has none.
func TestDialoguesOfAMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	const ann = "ann@x.test"
	b.sender.replies[ann] = "451 4.3.0 later"
	id := b.submit(t, api.SubmitRequest{To: for1(ann)})
	b.deliver(t, id)
	b.clock.Advance(time.Hour)
	b.sender.replies[ann] = "452 4.2.2 full"
	b.deliver(t, id)
	want := []string{"client RCPT TO:<ann@x.test>; server 451 4.3.0 later",
		"client RCPT TO:<ann@x.test>; server 452 4.2.2 full"}
	check := func(where string, log []api.Attempt, err error) {
		t.Helper()
		var got []string
		for _, a := range log {
			got = append(got, said(a))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", where, got, err, want)
		}
	}
	live, err := b.Reader.Get(t.Context(), id)
	check("in the outbox", live.Log, err)
	b.clock.Advance(time.Hour)
	b.sender.replies[ann] = ""
	b.deliver(t, id)
	want = append(want, "")
	ended, err := b.Reader.Message(t.Context(), id)
	check("in the log", ended.Log, err)

	b.sender.replies[ann] = "550 5.1.1 nobody"
	dead := b.submit(t, api.SubmitRequest{To: for1(ann)})
	b.deliver(t, dead)
	want = []string{"client RCPT TO:<ann@x.test>; server 550 5.1.1 nobody"}
	letter, err := b.Reader.DeadLetter(t.Context(), dead)
	check("in a dead letter", letter.Log, err)

	b.sender.replies[ann] = ""
	sent := b.submit(t, api.SubmitRequest{To: for1(ann)})
	b.deliver(t, sent)
	if n := b.dialoguesIn(t, sent); n != 0 {
		t.Errorf("%d dialogues of a message that was sent", n)
	}
}

// TestDialoguesStayInside: no event, and so no webhook, has a part of a dialogue.
func TestDialoguesStayInside(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["ann@x.test"] = "550 5.1.1 nobody"
	b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test")}))
	for _, e := range b.store.DB.Client().XRange(t.Context(), b.store.keys.events(0), "-", "+").Val() {
		line, _ := e.Values["e"].(string)
		if strings.Contains(line, "RCPT TO:") || strings.Contains(line, "dialogue") {
			t.Errorf("event: %s", line)
		}
	}
	page, err := b.Reader.Messages(t.Context(), api.LogQuery{})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].Log != nil {
		t.Errorf("the list: %+v, %v", page, err)
	}
}

// TestDialoguesAreBounded: only the last ten attempts' are kept.
func TestDialoguesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	const ann = "ann@x.test"
	b.sender.replies[ann] = "451 4.3.0 later"
	const attempts = 14
	id := b.submit(t, api.SubmitRequest{To: for1(ann), DeliveryAttempts: attempts})
	for range attempts {
		b.deliver(t, id)
		b.clock.Advance(48 * time.Hour)
	}
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || len(m.Log) != attempts || b.dialoguesIn(t, id) != 10 {
		t.Fatalf("%d attempts, %d dialogues, %v", len(m.Log), b.dialoguesIn(t, id), err)
	}
	for i, a := range m.Log {
		if got := len(a.Dialogue) > 0; got != (i >= attempts-10) {
			t.Errorf("attempt %d has a dialogue: %t", a.Number, got)
		}
	}
}

// TestDialoguesGoWithTheLog: they are deleted with the log entry, or immediately if there is no log.
func TestDialoguesGoWithTheLog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		o     Options
		after int64 // dialogues while the message is kept
	}{
		{"with its entry", Options{KeepEnded: time.Hour, KeepDeadLetters: time.Hour}, 1},
		{"without a log", Options{KeepEnded: -1, KeepDeadLetters: -1}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, row.o)
			b.sender.replies["ann@x.test"] = "550 5.1.1 nobody"
			id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
			b.deliver(t, id)
			if n := b.dialoguesIn(t, id); n != row.after {
				t.Errorf("%d dialogues, want %d", n, row.after)
			}
			for range 2 {
				b.clock.Advance(2 * time.Hour)
				sweep(t, b)
			}
			if n := b.dialoguesIn(t, id); n != 0 {
				t.Errorf("%d dialogues are left", n)
			}
		})
	}
}

// TestErasureFindsDialoguesOfOthers: a relay that names a person in the dialogue of a message to another one.
func TestErasureFindsDialoguesOfOthers(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.sender.replies["bob@x.test"] = "451 4.3.0 later"
	one := b.submit(t, api.SubmitRequest{To: for1("bob@x.test")})
	other := b.submit(t, api.SubmitRequest{To: for1("bob@x.test")})
	b.deliver(t, one)
	b.deliver(t, other)
	packed, err := packDialogues(b.store, one, dialogues{1: {{Text: "250 forwards to <Ann.Quux@x.test>"}}})
	must(t, err)
	must(t, b.store.DB.Client().HSet(t.Context(), b.store.keys.dialogues(b.store.partition(one), one), "1",
		packed).Err())
	b.erase(t, "", "ann.quux@x.test")
	if left := b.naming(t, "quux"); len(left) > 0 || b.dialoguesIn(t, one) != 0 || b.dialoguesIn(t, other) != 1 {
		t.Errorf("left: %v; %d and %d dialogues", left, b.dialoguesIn(t, one), b.dialoguesIn(t, other))
	}
}

// TestSealedDialogues: none of them is readable in Redis, and without the secret the message is shown anyway.
func TestSealedDialogues(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.under(t, true, "a")
	b.sender.replies["ann@x.test"] = "550 5.1.1 quux"
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	for _, key := range b.naming(t, "rcpt to:") {
		t.Errorf("%s is readable", key)
	}
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || !strings.Contains(said(m.Log[0]), "RCPT TO:<ann@x.test>") {
		t.Errorf("%+v, %v", m.Log, err)
	}
	b.under(t, true, "b")
	m, err = b.Reader.Message(t.Context(), id)
	if err != nil || said(m.Log[0]) != "note The dialogue can't be read; the log says why." {
		t.Errorf("under another secret: %+v, %v", m.Log, err)
	}
	if _, err := b.Reader.MessageEvents(t.Context(), id); err != nil {
		t.Error(err)
	}
}
