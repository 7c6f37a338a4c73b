package bounce

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// FuzzRead feeds anything to the reader: it ends, does not panic, keeps to its limits, and answers the same
// twice.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.eml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, mail []byte) {
		o := Options{MaxRecipients: 10}
		r, err := Read(bytes.NewReader(mail), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Recipients) > 10 || r.Kind == "" || (r.Kind == Complained) != (r.Feedback != nil) {
			t.Fatalf("%+v", r)
		}
		for _, rcpt := range r.Recipients {
			failed := rcpt.Action == ActionFailed || rcpt.Action == ActionDelayed
			switch {
			case len(rcpt.Diagnostic) > maxDiagnostic || !utf8.ValidString(rcpt.Diagnostic) ||
				!utf8.ValidString(rcpt.Address):
				t.Fatalf("not fit to be shown: %+v", rcpt)
			case failed != (rcpt.Verdict != "") || rcpt.Suppress && rcpt.Action != ActionFailed:
				t.Fatalf("badly judged: %+v", rcpt)
			case rcpt.Action != "" && !statusPattern.MatchString(rcpt.Status):
				t.Fatalf("no status: %+v", rcpt)
			}
		}
	})
}
