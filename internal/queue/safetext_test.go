package queue

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSafeText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "451 4.7.1 greylisted", "451 4.7.1 greylisted"},
		{"address", "550 5.1.1 <jane.doe+x@mail.example.com>: no such user",
			"550 5.1.1 <***@mail.example.com>: no such user"},
		{"two", "a@b.de and c@d.de", "***@b.de and ***@d.de"},
		{"two signs", "x@y@z.de", "***@z.de"},
		{"quoted", `"john smith"@example.com`, `"john smith"@example.com`},
		{"lines", "421 one\r\n421 two\x00", "421 one 421 two"},
		{"not UTF-8", "bad \xff byte", "bad \uFFFD byte"},
		{"long", strings.Repeat("ä", 400), strings.Repeat("ä", 250) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := safeText(tt.in); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// What relays answer ends up in these texts.
func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"", "550 <a@b.c> no", "@", "a@", "@b", "\xff@\xfe", strings.Repeat("x@y ", 300),
		"\"a b\"@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := safeText(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if len(got) > 3*maxErrorText+3 {
			t.Errorf("%d bytes", len(got))
		}
		if strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("%q has control characters", got)
		}
		for _, word := range strings.Fields(got) {
			if i := strings.LastIndexByte(word, '@'); i > 0 && i < len(word)-1 && isPlain(word[i-1]) &&
				isPlain(word[i+1]) && !strings.HasSuffix(word[:i], "***") {
				t.Errorf("%q shows an address", got)
			}
		}
	})
}

// isPlain says whether a byte is part of an address anywhere.
func isPlain(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
