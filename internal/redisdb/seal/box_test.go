package seal_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/redisdb/seal"
)

// boxed returns the box of a value.
func boxed(r *seal.Ring, value []byte, aad string) []byte {
	return r.SealBox(append(make([]byte, seal.BoxHead), value...), aad)
}

func random(t testing.TB, size int) []byte {
	t.Helper()
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}

// read reads a box of Redis as a stream.
func read(r *seal.Ring, box []byte, aad string) ([]byte, error) {
	reader, err := r.BoxReader(bytes.NewReader(box), aad)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// edges are sizes at which the number of chunks changes, and others.
var edges = []int{0, 1, 1000, seal.BoxChunk - 1, seal.BoxChunk, seal.BoxChunk + 1, 2 * seal.BoxChunk,
	3*seal.BoxChunk + 7}

func TestABoxHoldsItsValue(t *testing.T) {
	t.Parallel()
	r := ring(t, secret(1))
	for _, size := range edges {
		value := random(t, size)
		box := boxed(r, value, "content:1")
		if len(box) != seal.BoxSize(size) || !seal.IsBox(box) || r.BoxNeedsRotation(box) {
			t.Errorf("%d bytes: a box of %d, want %d", size, len(box), seal.BoxSize(size))
		}
		if size > 100 && bytes.Contains(box, value[:50]) {
			t.Errorf("%d bytes are readable", size)
		}
		for name, aad := range map[string]string{"its own": "content:1", "another": "content:2"} {
			streamed, wrong := read(r, box, aad)
			opened, err := r.OpenBox(bytes.Clone(box), aad)
			if aad == "content:1" && (err != nil || wrong != nil || !bytes.Equal(opened, value) ||
				!bytes.Equal(streamed, value)) {
				t.Errorf("%d bytes: opened %d, %v; read %d, %v", size, len(opened), err, len(streamed), wrong)
			}
			if aad != "content:1" && (!errors.Is(err, seal.ErrDamaged) || !errors.Is(wrong, seal.ErrDamaged)) {
				t.Errorf("%d bytes for %s record: %v, %v", size, name, err, wrong)
			}
		}
	}
	if bytes.Equal(boxed(r, nil, "a"), boxed(r, nil, "a")) {
		t.Error("two boxes are equal")
	}
}

// TestAChangedBoxDoesNotOpen: chunks can't be cut off, swapped, repeated, or moved to another box.
func TestAChangedBoxDoesNotOpen(t *testing.T) {
	t.Parallel()
	r := ring(t, secret(1))
	value := random(t, 2*seal.BoxChunk+100)
	const chunk = seal.BoxChunk + 16
	first, second := seal.BoxHead+chunk, seal.BoxHead+2*chunk // ends of chunks
	other := boxed(r, value, "a")
	for name, change := range map[string]func([]byte) []byte{
		"without its end":        func(b []byte) []byte { return b[:len(b)-1] },
		"without its last chunk": func(b []byte) []byte { return b[:second] },
		"only a head":            func(b []byte) []byte { return b[:seal.BoxHead] },
		"half a head":            func(b []byte) []byte { return b[:seal.BoxHead/2] },
		"nothing":                func([]byte) []byte { return nil },
		"more behind":            func(b []byte) []byte { return append(b, 0) },
		"a bit of the head":      func(b []byte) []byte { b[10] ^= 1; return b },
		"a bit of the middle":    func(b []byte) []byte { b[first+20] ^= 1; return b },
		"chunks swapped": func(b []byte) []byte {
			return bytes.Join([][]byte{b[:seal.BoxHead], b[first:second], b[seal.BoxHead:first], b[second:]}, nil)
		},
		"a chunk of another box": func(b []byte) []byte { copy(b[first:second], other[first:second]); return b },
	} {
		changed := change(boxed(r, value, "a"))
		if _, err := read(r, changed, "a"); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%s: read with %v", name, err)
		}
		if _, err := r.OpenBox(changed, "a"); !errors.Is(err, seal.ErrDamaged) {
			t.Errorf("%s: opened with %v", name, err)
		}
		if got := strings.Join(r.Refused(), ","); got != "a" {
			t.Errorf("%s: refused %q", name, got)
		}
	}
}

func TestABoxUnderAnOlderSecret(t *testing.T) {
	t.Parallel()
	value := random(t, seal.BoxChunk+1)
	box := boxed(ring(t, secret(1)), value, "a")
	during, after := ring(t, secret(2), secret(1)), ring(t, secret(2))
	if got, err := read(during, box, "a"); err != nil || !bytes.Equal(got, value) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if !during.BoxNeedsRotation(box[:seal.BoxHead]) || during.BoxNeedsRotation(nil) ||
		during.BoxNeedsRotation([]byte("not sealed, and longer than a head")) {
		t.Error("what is sealed under the older secret is not recognized")
	}
	if _, err := after.OpenBox(bytes.Clone(box), "a"); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("without the older secret: %v", err)
	}
	if _, err := after.BoxReader(bytes.NewReader(box), "a"); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("read without the older secret: %v", err)
	}
}

// exchanged is a value in Redis that is sealed again after some reads.
type exchanged struct {
	before, after []byte
	reads         int
}

func (e *exchanged) ReadAt(into []byte, at int64) (int, error) {
	if e.reads--; e.reads < 0 {
		return bytes.NewReader(e.after).ReadAt(into, at)
	}
	return bytes.NewReader(e.before).ReadAt(into, at)
}

// TestABoxIsSealedAnewWhileItIsRead: the reader continues in the new one.
func TestABoxIsSealedAnewWhileItIsRead(t *testing.T) {
	t.Parallel()
	value := random(t, 4*seal.BoxChunk)
	during := ring(t, secret(2), secret(1))
	for reads := range 6 {
		box := &exchanged{boxed(ring(t, secret(1)), value, "a"), boxed(during, value, "a"), reads}
		r, err := during.BoxReader(box, "a")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, value) {
			t.Errorf("after %d reads: %d bytes, %v", reads, len(got), err)
		}
	}
	if got := during.Refused(); len(got) > 0 {
		t.Errorf("refused %v", got)
	}
}

// TestBoxesTakeNoSecondRoom: a box is made and opened where it is, and a reader holds one chunk.
func TestBoxesTakeNoSecondRoom(t *testing.T) {
	r := ring(t, secret(1))
	const size = 16 << 20
	box := make([]byte, seal.BoxHead+size, seal.BoxSize(size))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	box = r.SealBox(box, "a")
	reader, err := r.BoxReader(bytes.NewReader(box), "a")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, reader); n != size || err != nil {
		t.Fatal(n, err)
	}
	if _, err := r.OpenBox(box, "a"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}

// FuzzOpenBox: nothing opens that was not sealed, and both ways of opening agree.
func FuzzOpenBox(f *testing.F) {
	r := ring(f, secret(1), secret(2))
	genuine := boxed(r, []byte("Dear Ann"), "a")
	for _, b := range [][]byte{genuine, nil, genuine[:seal.BoxHead], genuine[:30],
		append(bytes.Clone(genuine), 0), boxed(ring(f, secret(2)), nil, "a")} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, box []byte) {
		streamed, wrong := read(r, box, "a")
		opened, err := r.OpenBox(bytes.Clone(box), "a")
		if (err == nil) != (wrong == nil) || err == nil && !bytes.Equal(streamed, opened) {
			t.Fatalf("opened %q, %v; read %q, %v", opened, err, streamed, wrong)
		}
		// each fuzzing process has its own genuine ones
		if err == nil && string(opened) != "Dear Ann" && len(opened) > 0 {
			t.Errorf("opened %q", opened)
		}
	})
}

func BenchmarkBox(b *testing.B) {
	r := ring(b, secret(1))
	const size = 1 << 20
	b.SetBytes(size)
	box := make([]byte, seal.BoxHead+size, seal.BoxSize(size))
	for b.Loop() {
		if _, err := r.OpenBox(r.SealBox(box, "content:1"), "content:1"); err != nil {
			b.Fatal(err)
		}
	}
}
