package smtpsend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// written is a body of a size that is read from wherever a test likes, and how often it was opened and
// closed.
type written struct {
	size           int64
	open           func() (io.Reader, error)
	opened, closed atomic.Int32
}

func (w *written) Size() int64 { return w.size }

func (w *written) Open(context.Context) (io.ReadCloser, error) {
	r, err := w.open()
	if err != nil {
		return nil, err
	}
	w.opened.Add(1)
	return closing{r, &w.closed}, nil
}

type closing struct {
	io.Reader
	closed *atomic.Int32
}

func (c closing) Close() error { c.closed.Add(1); return nil }

// saying is a body that says to have a size and gives some text.
func saying(size int, text string) *written {
	return &written{size: int64(size), open: func() (io.Reader, error) { return strings.NewReader(text), nil }}
}

// TestUnreadableContentIsNotSent: whatever happens to a content while it leaves, the relay never sees the end
// of it.
func TestUnreadableContentIsNotSent(t *testing.T) {
	const whole = 200 << 10
	broken := errors.New("the disk is broken")
	away := fault.Wrap(errors.New("no answer"), fault.Unavailable, "", "the store is away")
	text := func(n int) string { return "Subject: x\r\n\r\n" + strings.Repeat("0123456789\r\n", n/12+1)[:n-14] }
	then := func(n int, err error) func() (io.Reader, error) {
		return func() (io.Reader, error) {
			return io.MultiReader(strings.NewReader(text(n)), iotest.ErrReader(err)), nil
		}
	}
	for _, row := range []struct {
		name    string
		body    *written
		verdict smtpsend.Verdict
		phase   smtpsend.Phase
		says    string
	}{
		{"large, not to be opened", &written{size: whole, open: func() (io.Reader, error) { return nil, broken }},
			smtpsend.Policy, smtpsend.PhaseBody, "the disk is broken"},
		{"large, unreadable from the start", &written{size: whole, open: then(14, broken)}, smtpsend.Policy,
			smtpsend.PhaseBody, "the disk is broken"},
		{"large, unreadable in the middle", &written{size: whole, open: then(whole/2, broken)}, smtpsend.Policy,
			smtpsend.PhaseBody, "the disk is broken"},
		{"large, unreadable at its very end", &written{size: whole, open: then(whole, broken)}, smtpsend.Policy,
			smtpsend.PhaseBody, "the disk is broken"},
		{"large, breaking off like a file", &written{size: whole, open: then(whole, io.ErrUnexpectedEOF)},
			smtpsend.Policy, smtpsend.PhaseBody, "unexpected EOF"},
		{"large, away for now", &written{size: whole, open: then(whole/2, away)}, smtpsend.Soft, smtpsend.PhaseBody,
			"the store is away"},
		{"large, ending early", saying(whole, text(whole-1)), smtpsend.Policy, smtpsend.PhaseBody,
			"it ends 1 octets early"},
		{"large, with more than it said", saying(whole, text(whole+1)), smtpsend.Policy, smtpsend.PhaseBody,
			"does not end where it should"},
		{"large, empty", saying(whole, ""), smtpsend.Policy, smtpsend.PhaseBody,
			fmt.Sprintf("it ends %d octets early", whole)},
		{"small, not to be opened", &written{size: 100, open: func() (io.Reader, error) { return nil, broken }},
			smtpsend.Policy, smtpsend.PhaseCheck, "the disk is broken"},
		{"small, unreadable in the middle", &written{size: 100, open: then(50, broken)}, smtpsend.Policy,
			smtpsend.PhaseCheck, "the disk is broken"},
		{"small, away for now", &written{size: 100, open: then(50, away)}, smtpsend.Soft, smtpsend.PhaseCheck,
			"the store is away"},
		{"small, ending early", saying(100, text(99)), smtpsend.Policy, smtpsend.PhaseCheck,
			"it ends 1 octets early"},
		{"small, with more than it said", saying(100, text(1000)), smtpsend.Policy, smtpsend.PhaseCheck,
			"does not end where it should"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			server := testsmtp.Start(t, testsmtp.Options{})
			sender := newSender(t, smtpsend.Options{})
			m := mail("b@example.org", "c@example.org")
			m.Body = row.body
			m.BeforeDot = func(context.Context, []string) error { t.Error("the dot was near"); return nil }
			result, err := sender.Send(t.Context(), relayTo(server), m)
			e := failure(t, err)
			if e.Verdict != row.verdict || e.Phase != row.phase || e.Scope != smtpsend.ScopeMessage || e.InDoubt ||
				e.Elsewhere() || e.Code != 0 {
				t.Errorf("%s at %s, about the %s, in doubt %v: %v", e.Verdict, e.Phase, e.Scope, e.InDoubt, e)
			}
			if !strings.Contains(e.Error(), "the content of the message can't be read") ||
				!strings.Contains(e.Error(), row.says) {
				t.Errorf("error: %v", e)
			}
			for _, r := range result.Recipients {
				if r.Err == nil {
					t.Errorf("%s is reported as delivered", r.Address)
				}
			}
			if opened, closed := row.body.opened.Load(), row.body.closed.Load(); opened != closed {
				t.Errorf("opened %d times, closed %d times", opened, closed)
			}
			if _, err := sender.Send(t.Context(), relayTo(server), mail("d@example.org")); err != nil {
				t.Errorf("the next message suffers: %v", err)
			}
			if got := server.Wait(1); len(got) != 1 || got[0].To[0] != "d@example.org" ||
				row.phase == smtpsend.PhaseBody && got[0].Connection != 2 {
				t.Errorf("arrived: %d messages, the first for %v over connection %d", len(got), got[0].To,
					got[0].Connection)
			}
		})
	}
}

// TestContentIsReadForEachTransaction: large or small, in memory or not, the same arrives, as often as it is
// needed.
func TestContentIsReadForEachTransaction(t *testing.T) {
	for _, row := range []struct {
		name   string
		text   string
		opened int32
	}{
		{"small", "Subject: x\r\n\r\n.dot\r\nend\r\n", 1},
		{"large", "Subject: x\r\n\r\n" + strings.Repeat(".dot\r\n..dots\r\nnone\r\n", 9_000) + "end\r\n", 3},
		{"large, with bare line ends", "Subject: x\n\n" + strings.Repeat(".dot\r.\n\r\r\n", 9_000) + "end", 3},
	} {
		server := testsmtp.Start(t, testsmtp.Options{Record: true, MaxSize: 1 << 20})
		relay := relayTo(server)
		relay.RecipientsPerTransaction = 1
		body := saying(len(row.text), row.text)
		m := mail("b@example.org", "c@example.org", "d@example.org")
		m.Body = body
		if _, err := newSender(t, smtpsend.Options{}).Send(t.Context(), relay, m); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		mended := strings.NewReplacer("\r\n", "\r\n", "\r", "\r\n", "\n", "\r\n").Replace(
			strings.TrimSuffix(row.text, "\r\n") + "\r\n")
		for _, got := range server.Wait(3) {
			if !bytes.Equal(got.Data, []byte(mended)) {
				t.Errorf("%s: %d octets arrived, want %d", row.name, len(got.Data), len(mended))
			}
		}
		if opened, closed := body.opened.Load(), body.closed.Load(); opened != row.opened || closed != opened {
			t.Errorf("%s: opened %d times, closed %d times, want %d", row.name, opened, closed, row.opened)
		}
		if diff := cmp.Diff(fmt.Sprintf("MAIL FROM:<a@example.com> SIZE=%d", len(row.text)),
			server.Commands()[1]); diff != "" {
			t.Errorf("%s: %s", row.name, diff) // doubled dots don't count
		}
	}
}

// TestLargeContentTakesLittleMemory: a message of 20 MB is sent in the memory of a few blocks.
func TestLargeContentTakesLittleMemory(t *testing.T) {
	const size = 20 << 20
	relay, _ := sink(t)
	sender := newSender(t, smtpsend.Options{})
	line := []byte("0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345\r\n")
	m := mail("b@example.org")
	m.Body = &written{size: size, open: func() (io.Reader, error) {
		return io.LimitReader(endless{line}, size),
			nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := sender.Send(t.Context(), relay, m); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated for a message of %d", got, size)
	}
}

// endless gives a line again and again.
type endless struct{ line []byte }

func (e endless) Read(b []byte) (n int, _ error) {
	for n+len(e.line) <= len(b) {
		n += copy(b[n:], e.line)
	}
	if n == 0 {
		n = copy(b, e.line)
	}
	return n, nil
}
