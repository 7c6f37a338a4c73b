package replies

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// corpus reads testdata/replies.tsv: entry, reply and origin of each.
func corpus(t testing.TB) (rows [][]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/replies.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		row := strings.Split(line, "\t")
		if len(row) != 3 {
			t.Fatalf("%d columns in %q", len(row), line)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestReplies(t *testing.T) {
	reached := map[string]bool{}
	for _, row := range corpus(t) {
		got := Explain(row[1])
		reached[row[0]] = true
		if got.Reason != row[0] {
			t.Errorf("%s: %q is explained by %s, want %s", row[2], row[1], got.Reason, row[0])
		}
	}
	for _, e := range table() {
		if !reached[e.Reason] {
			t.Errorf("no reply of testdata/replies.tsv reaches %s", e.Reason)
		}
	}
}

// An entry is complete, and its name is unique.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range table() {
		if seen[e.Reason] {
			t.Errorf("%s is there twice", e.Reason)
		}
		seen[e.Reason] = true
		if e.Title == "" || e.Cause == "" || e.Remedy == "" || !strings.HasPrefix(e.Source, "https://") {
			t.Errorf("%s is not complete: %+v", e.Reason, e.Explanation)
		}
	}
	for _, faulty := range []string{"words: a", "[a]\nwords: (", "[a]\ncolour: red"} {
		if _, err := parse(faulty); err == nil {
			t.Errorf("%q is taken", faulty)
		}
	}
}

// Values given apart from the text count before values found in it.
func TestParts(t *testing.T) {
	for name, row := range map[string]struct {
		reply Reply
		want  string
	}{
		"nothing":                        {Reply{}, "unknown"},
		"the code alone":                 {Reply{Code: 554}, "transactionFailed"},
		"the enhanced code before it":    {Reply{Code: 554, Enhanced: "5.2.2"}, "mailboxFull"},
		"the class of the code wins":     {Reply{Code: 450, Enhanced: "5.1.1"}, "mailboxBusy"},
		"an enhanced code alone":         {Reply{Enhanced: "5.1.1"}, "noSuchMailbox"},
		"of a class":                     {Reply{Enhanced: "4.9.9"}, "temporary"},
		"an address is no enhanced code": {Reply{Text: "550 5.2.2.1 is odd"}, "mailboxUnavailable"},
		"the name of an error":           {Reply{Error: "ETIMEDOUT"}, "timeout"},
		"unknown words, known code":      {Reply{Text: "550 5.2.2 zzz"}, "mailboxFull"},
		"unknown words, unknown code":    {Reply{Text: "550 5.9.9 zzz"}, "mailboxUnavailable"},
		"after the phase":                {Reply{Text: "smtp rcpt: 550 5.1.1 zzz"}, "noSuchMailbox"},
	} {
		if got := Of(row.reply).Reason; got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	for status, want := range map[int]string{0: "timeout", 404: "webhookNotFound", 599: "webhookFails",
		204: "unknown"} {
		if got := OfWebhook(status, "no answer within 5s").Reason; got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
	}
}

// FuzzExplain checks that each text has a complete explanation, the same each time.
func FuzzExplain(f *testing.F) {
	for _, row := range corpus(f) {
		f.Add(row[1], 0)
	}
	f.Add("550 \xff5.1.1", 250)
	f.Fuzz(func(t *testing.T, text string, code int) {
		got := Explain(text)
		if got.Title == "" || got != Explain(text) || !utf8.ValidString(got.Cause) {
			t.Errorf("%q: %+v", text, got)
		}
		if got := Of(Reply{Code: code, Text: text}); got.Remedy == "" {
			t.Errorf("%d %q: %+v", code, text, got)
		}
		if got := OfWebhook(code, text); got.Remedy == "" {
			t.Errorf("webhook, %d %q: %+v", code, text, got)
		}
	})
}

// TestWordsOfPatterns: a text without a pattern's words does not match it. They only save time.
func TestWordsOfPatterns(t *testing.T) {
	t.Parallel()
	known := 0
	for _, e := range table() {
		for _, p := range slices.Concat(e.words...) {
			if p.words != nil {
				known++
			}
			for _, reply := range corpus(t) {
				if text := strings.ToLower(reply[1]); p.re.MatchString(text) && !p.matches(text) {
					t.Errorf("%q matches %s, but has none of %q", text, p.re, p.words)
				}
			}
		}
	}
	if known < 100 {
		t.Errorf("words are known of %d patterns", known)
	}
	for text, want := range map[string][]string{"a(bc)?d|xyz+": {"a", "xy"}, "(?i)abc": nil, "ab|.*": nil,
		`\d{3} mailbox (is )?full`: {" mailbox "}, "(abc){2}d?": {"abc"}, "(abc)*": nil} {
		p, err := newPattern(text)
		if err != nil || !slices.Equal(p.words, want) {
			t.Errorf("the words of %s are %q, want %q; %v", text, p.words, want, err)
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	all := corpus(b)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Explain(all[i%len(all)][1])
	}
}
