package textlines_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/postroom/postroom/internal/textlines"
)

// TestALineIsAsLongAsItMayBe, with each line end and with ends at the edge of what is buffered.
func TestALineIsAsLongAsItMayBe(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		for length := 65_536 - 12; length < 65_536+24; length++ {
			file := strings.Repeat("x", length) + end + "next" + end
			l, err := textlines.New(iotest.HalfReader(strings.NewReader(file)), "")
			if err != nil {
				t.Fatal(err)
			}
			first, err := l.Next()
			if length <= 65_536 && (err != nil || len(first) != length || l.End != end) ||
				length > 65_536 && err != textlines.ErrLong {
				t.Fatalf("%d bytes and %q: %d, %v", length, end, len(first), err)
			}
			if second, err := l.Next(); err != nil || string(second) != "next" || l.Number != 2 {
				t.Fatalf("behind %d bytes and %q: %q, %v", length, end, second, err)
			}
			if _, err := l.Next(); err != io.EOF || l.Bytes != int64(len(file)) {
				t.Fatalf("at the end: %v, %d of %d bytes", err, l.Bytes, len(file))
			}
		}
	}
}

func TestTable(t *testing.T) {
	got := textlines.Table("# a comment\nhard\t5\t\"no\" such|user said \"x\"\t-\n\nsoft\t*\t  a,b # c\t\n", 4)
	want := [][]string{{"hard", "5", `"no" such|user said "x"`, "-"}, {"soft", "*", "  a,b # c", ""}}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q, want %q", got, want)
	}
}
