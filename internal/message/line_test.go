package message_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// TestNamesAreOneLine: no C0, DEL, C1 and separators; every script, emoji and joiners stay.
func TestNamesAreOneLine(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a\r\nBcc: x", "a\x00", "a\tb", "\a", "a\x7f", "a\u0085",
		"a\u2028b", "a\u2029b", "\xff"} {
		if message.IsLine(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
	for _, good := range []string{"", "Weekly news", "春のお知らせ", "نشرة", "👩\u200d👩\u200d👧",
		"می\u200cخواهم", "\u200fשלום"} {
		if !message.IsLine(good) {
			t.Errorf("%q is refused", good)
		}
	}
}

// TestNoNameTurnsAHeaderAround: overrides, and isolates without an end, are left out of subject and names.
func TestNoNameTurnsAHeaderAround(t *testing.T) {
	t.Parallel()
	d := message.Draft{From: message.Address{Name: "A\u202eB", Address: "a@example.com"},
		To: []message.Address{{Name: "C\u2067D", Address: "c@example.com"}}, Subject: "E\u202dF\u2066G", Text: "x",
		Date: time.Unix(0, 0)}
	c, err := message.Compose(d, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"From: AB <a@", "To: CD <c@", "Subject: EFG"} {
		if !strings.Contains(string(c.Raw), want) {
			t.Errorf("no %q in\n%s", want, c.Raw)
		}
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"550 5.1.1 no":                  "550 5.1.1 no",
		" two\r\n\tlines\x1b[31m\x00":   "two lines [31m",
		"a\u202eb\u2028c\u00a0d\u200be": "a b c d e",
		"bad \xff byte":                 "bad \uFFFD byte",
		strings.Repeat("ä", 100):        strings.Repeat("ä", 10),
		strings.Repeat(" ", 79) + "ä":   "",
	} {
		if got := message.OneLine(text, 20); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
