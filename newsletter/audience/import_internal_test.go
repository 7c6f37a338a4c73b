package audience

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/textlines"
)

// FuzzCSV: the CSV reader ends on any file, continues after faulty rows, and reads what encoding/csv reads.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "a;\"b\n\"\"c\"\r\n", "\xff\xfea\x00,\x00\n\x00", "\"",
		"a\"b,c\n\n\r\n", "\x00", "PK\x03\x04"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		lines, err := textlines.New(strings.NewReader(file), "")
		if err != nil {
			return
		}
		rows, plain := &csvRows{lines: lines, comma: ','}, true
		var all [][]string
		for range len(file) + 2 {
			cells, err := rows.next()
			if err == io.EOF {
				break
			}
			if err != nil && !faultOfRow(err) {
				t.Fatal(err)
			}
			plain = plain && err == nil
			if len(cells) > 0 {
				all = append(all, slices.Clone(cells))
			}
		}
		if _, err := rows.next(); err != io.EOF {
			t.Fatalf("the file does not end: %v", err)
		}
		if int(lines.Bytes) != len(file) {
			t.Errorf("%d of %d bytes are counted", lines.Bytes, len(file))
		}
		if lines.Charset() != textlines.UTF8 || !plain || strings.Contains(file, "\r") ||
			strings.HasPrefix(file, "\uFEFF") {
			return
		}
		other := csv.NewReader(strings.NewReader(file))
		other.FieldsPerRecord = -1
		want, err := other.ReadAll()
		if err == nil && !slices.EqualFunc(all, want, slices.Equal) {
			t.Errorf("%q, want %q", all, want)
		}
	})
}

// TestSeen: the set knows what was added, and takes at most 16 bytes an address.
func TestSeen(t *testing.T) {
	s := newSeen()
	const n = 300_000
	for i := range n {
		if !s.add(fmt.Sprint(i)) {
			t.Fatalf("%d was there", i)
		}
		if s.add(fmt.Sprint(i / 2)) {
			t.Fatalf("%d was not there", i/2)
		}
	}
	bytes := 0
	for i := range s.tables {
		bytes += 8 * len(s.tables[i].slots)
	}
	if bytes > 16*n {
		t.Errorf("%d bytes an address", bytes/n)
	}
}

// TestFaultOfRow: an error of the file itself is not a row's.
func TestFaultOfRow(t *testing.T) {
	if faultOfRow(io.ErrUnexpectedEOF) || !faultOfRow(fmt.Errorf("x: %w", textlines.ErrNUL)) ||
		faultOfRow(errors.New("x")) {
		t.Error("a fault of the file is one of a row")
	}
}
