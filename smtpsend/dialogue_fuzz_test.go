package smtpsend

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzDialogue: whatever is said, its excerpt keeps its bounds, the first and the last line and their order,
// has only printable lines, no password, and no part of an address.
func FuzzDialogue(f *testing.F) {
	const password, address = "s3cret pass", "zq-long-name@example.org"
	relay := &Relay{Host: "mx.test", Username: "shop", Password: password}
	long := strings.Repeat("x", 190)
	for _, seed := range []string{"", "220 hello", "a\tb\tc", "535 \x01\t535 you said \x01 to \x02",
		long + "\x02\t" + long + "\x01", strings.Repeat("250 \x02\t", 30), strings.Repeat(long+"\x02\t", 8),
		"\xff\x1b[31m\u2028\u202e\t\n\n", strings.Repeat("é", 101), strings.Repeat(long+long+"\t", 25)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var r recorder
		r.begin()
		lines := strings.Split(strings.NewReplacer("\x01", password, "\x02", " <"+address+"> ").Replace(said), "\t")
		for n, line := range lines {
			switch n % 3 {
			case 0:
				r.heard(reply{code: 250, text: line})
			case 1:
				r.said("RCPT TO:", line)
			default:
				r.note("TLS: ", line)
			}
		}
		// Commands and notes are ours: a password is never passed to them.
		got, total, then := r.excerpt(relay), 0, time.Duration(0)
		if most := dialogueFirst + dialogueLast + 1; len(got) == 0 || len(got) > min(most, len(lines)+1) {
			t.Fatalf("%d lines of %d", len(got), len(lines))
		}
		for _, line := range got {
			total += len(line.Text)
			if !utf8.ValidString(line.Text) || strings.ContainsFunc(line.Text, unicode.IsControl) {
				t.Errorf("not printable: %q", line.Text)
			}
			if line.From == FromServer && !strings.Contains(said, "s3cret") && strings.Contains(line.Text, password) {
				t.Errorf("a password: %q", line.Text)
			}
			if !strings.Contains(said, "zq") && strings.Contains(strings.ReplaceAll(line.Text, address, ""), "zq") {
				t.Errorf("a part of an address: %q", line.Text)
			}
			if line.At < then {
				t.Errorf("%q at %s comes after %s", line.Text, line.At, then)
			}
			then = line.At
		}
		if most := dialogueBytes + 40; total > most {
			t.Errorf("%d bytes, at most %d", total, most)
		}
		whole := func(i int) string { return cutLine(printableText(r.entry(i).text(relay.secrets()))) }
		if first, last := whole(0), whole(len(lines)-1); got[0].Text != first || got[len(got)-1].Text != last {
			t.Errorf("from %q to %q, want from %q to %q", got[0].Text, got[len(got)-1].Text, first, last)
		}
	})
}
