package message_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/internal/message"
)

var update = flag.Bool("update", false, "write the golden mails anew")

func TestGoldenMails(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			got := compose(t, s.draft).Raw
			file := filepath.Join("testdata", "golden", s.name+".eml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("mail changed (-golden +composed; -update if meant):\n%s", diff)
			}
		})
	}
}

// TestEveryRelayCanCarryIt checks what RFC 5321 and 5322 ask of any message, on every sample.
func TestEveryRelayCanCarryIt(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			c := compose(t, s.draft)
			checkCarriable(t, c)
			if c.EightBit != (s.name == "message-attachment-signed") {
				t.Errorf("EightBit is %v", c.EightBit)
			}
			if c.SMTPUTF8 != (s.name == "smtputf8") {
				t.Errorf("SMTPUTF8 is %v", c.SMTPUTF8)
			}
			for line := range strings.SplitSeq(header(c.Raw), "\r\n") {
				if len(line) > 76 && strings.Contains(strings.TrimLeft(line, " "), " ") &&
					!strings.HasPrefix(line, " <") && !strings.HasPrefix(line, "List-Unsubscribe:") {
					t.Errorf("header line of %d columns: %q", len(line), line)
				}
			}
		})
	}
}

func checkCarriable(t *testing.T, c *message.Composed) {
	t.Helper()
	if !bytes.HasSuffix(c.Raw, []byte("\r\n")) {
		t.Error("the last line has no CRLF")
	}
	rest := bytes.ReplaceAll(c.Raw, []byte("\r\n"), nil)
	if i := bytes.IndexAny(rest, "\r\n\x00"); i >= 0 {
		t.Errorf("bare %q in the message", rest[i])
	}
	eightBit := false
	for line := range bytes.SplitSeq(c.Raw, []byte("\r\n")) {
		if len(line) > 998 {
			t.Errorf("line of %d octets: %.40q…", len(line), line)
		}
		for _, b := range line {
			eightBit = eightBit || b >= 0x80
		}
		if !c.EightBit && (string(line) == "." || bytes.HasPrefix(line, []byte("From "))) {
			t.Errorf("line that relays change: %q", line)
		}
	}
	if eightBit && !c.EightBit && !c.SMTPUTF8 || c.EightBit && !eightBit {
		t.Errorf("octets above 127: %v, but EightBit %v and SMTPUTF8 %v", eightBit, c.EightBit, c.SMTPUTF8)
	}
}

func TestComposeIsDeterministic(t *testing.T) {
	for _, s := range samples() {
		first, second := compose(t, s.draft), compose(t, s.draft)
		if !bytes.Equal(first.Raw, second.Raw) {
			t.Errorf("%s: two mails from the same draft and randomness differ", s.name)
		}
	}
}

func TestThread(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("<%d@x>", n) }
	var thirty []string
	for n := range 30 {
		thirty = append(thirty, id(n))
	}
	for _, row := range []struct {
		name, inReplyTo string
		references      []string
		want            string
	}{
		{"nothing", "", nil, ""},
		{"an answer refers to what it answers", "a@x", nil, "<a@x>"},
		{"after what came before", "<a@x>", []string{"<b@x>"}, "<b@x> <a@x>"},
		{"not twice", "<a@x>", []string{"<b@x>", "a@x"}, "<b@x> <a@x>"},
		{"the first and the latest of many", "", thirty, id(0) + " " + strings.Join(thirty[11:], " ")},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, InReplyTo: row.inReplyTo,
				References: row.references})
			m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Header.Get("References"); got != row.want {
				t.Errorf("References: %s, want %s", got, row.want)
			}
		})
	}
}
