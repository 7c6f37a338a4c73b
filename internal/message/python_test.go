package message_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/internal/message"
)

// pythonMail is what testdata/read_mail.py found in an email.
type pythonMail struct {
	Subject, MessageID, Date string
	From, To, Cc             [][]string
	Headers                  [][]string
	Parts                    []pythonPart
	Structure                []string
	Defects, HeaderDefects   []string
}

type pythonPart struct{ Type, Disposition, Filename, CID, Encoding, Payload string }

func (p pythonPart) payload(t *testing.T) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(p.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// TestPythonReadsTheSame has Python's email package, strict and written by others, read every sample back.
func TestPythonReadsTheSame(t *testing.T) {
	all := samples()
	mails := readWithPython(t, all)
	for i, s := range all {
		t.Run(s.name, func(t *testing.T) {
			got, d := mails[i], s.draft
			if len(got.Defects) > 0 {
				t.Errorf("defects: %v", got.Defects)
			}
			for _, defect := range got.HeaderDefects {
				if !knownHeaderDefect(s.name, defect) {
					t.Errorf("defect in a header: %s", defect)
				}
			}
			if got.Subject != d.Subject {
				t.Errorf("subject is %q, want %q", got.Subject, d.Subject)
			}
			for _, h := range d.Headers {
				if !slices.ContainsFunc(got.Headers, func(read []string) bool {
					return read[0] == h.Name &&
						strings.TrimSpace(read[1]) == h.Value
				}) {
					t.Errorf("no header %s: %q in %q", h.Name, h.Value, got.Headers)
				}
			}
			if want := d.Date.Format("2006-01-02T15:04:05-07:00"); got.Date != want {
				t.Errorf("date is %s, want %s", got.Date, want)
			}
			if s.name != "smtputf8" { // Python reads no UTF-8 in addresses from bytes
				sameAddresses(t, "To", got.To, d.To)
				sameAddresses(t, "Cc", got.Cc, d.Cc)
				sameAddresses(t, "From", got.From, []message.Address{d.From})
			}
			samePayloads(t, got, d)
		})
	}
}

// knownHeaderDefect recognises what we do on purpose for programs without support for RFC 2231: an ASCII
// likeness of a file name next to the true name, and encoded words in the name parameter.
func knownHeaderDefect(sample, defect string) bool {
	switch sample {
	case "filenames":
		return strings.Contains(defect, "encoded word inside quoted string") ||
			strings.Contains(defect, "missing trailing whitespace after encoded-word") ||
			strings.Contains(defect, "duplicate parameter name; duplicate ignored")
	case "smtputf8":
		return strings.HasPrefix(defect, "To: ")
	}
	return false
}

func readWithPython(t *testing.T, all []sample) []pythonMail {
	t.Helper()
	raws := make([][]byte, len(all))
	for i, s := range all {
		raws[i] = compose(t, s.draft).Raw
	}
	return readRawWithPython(t, raws)
}

func readRawWithPython(t *testing.T, raws [][]byte) []pythonMail {
	t.Helper()
	dir := t.TempDir()
	var files strings.Builder
	for i, raw := range raws {
		file := filepath.Join(dir, strconv.Itoa(i)+".eml")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		files.WriteString(file + "\n")
	}
	python := exec.Command("python3", filepath.Join("testdata", "read_mail.py"))
	python.Stdin = strings.NewReader(files.String())
	var stderr bytes.Buffer
	python.Stderr = &stderr
	out, err := python.Output()
	if err != nil {
		t.Fatalf("python3, which this test needs: %v\n%s", err, stderr.String())
	}
	var mails []pythonMail
	for line := range strings.Lines(string(out)) {
		var m pythonMail
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		mails = append(mails, m)
	}
	if len(mails) != len(raws) {
		t.Fatalf("Python read %d mails of %d", len(mails), len(raws))
	}
	return mails
}

func sameAddresses(t *testing.T, header string, got [][]string, want []message.Address) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d addresses, want %d: %v", header, len(got), len(want), got)
		return
	}
	for i, a := range want {
		normal, err := message.NormalizeAddress(a.Address)
		if err != nil {
			t.Fatal(err)
		}
		name, wantName := got[i][0], strings.TrimSpace(a.Name)
		if len(wantName) > 45 { // Python puts blanks between encoded words in a phrase
			name, wantName = strings.ReplaceAll(name, " ", ""), strings.ReplaceAll(wantName, " ", "")
		}
		if name != wantName || got[i][1] != normal {
			t.Errorf("%s[%d] is %q, want %q <%s>", header, i, got[i], wantName, normal)
		}
	}
}

// samePayloads compares what was given with the parts found: text, html and every attachment's bytes and
// name.
func samePayloads(t *testing.T, got pythonMail, d message.Draft) {
	t.Helper()
	payloads := make(map[string]string) // by file name, or by type
	for _, p := range got.Parts {
		key := p.Filename
		if key == "" {
			key = p.Type
		}
		payloads[key] = p.payload(t)
	}
	if d.Text != "" {
		if diff := cmp.Diff(strings.TrimRight(lineEnds(d.Text), "\n"), strings.TrimRight(payloads["text/plain"],
			"\n")); diff != "" {
			t.Errorf("text (-given +read):\n%s", diff)
		}
	}
	if d.HTML != "" && d.PreviewText == "" && !strings.Contains(d.HTML, "data:") &&
		payloads["text/html"] != d.HTML {
		t.Errorf("html is %q, want %q", payloads["text/html"], d.HTML)
	}
	for _, a := range d.Attachments {
		if a.Filename == "" {
			continue
		}
		name := a.Filename[strings.LastIndexAny(a.Filename, `/\`)+1:]
		payload, found := payloads[name]
		if !found {
			t.Errorf("no part is named %q; there are %q", name, got.Parts)
		} else if want := strings.ReplaceAll(string(a.Content), "\r\n", "\n"); strings.TrimRight(
			payload, "\n") != strings.TrimRight(want, "\n") && !strings.HasSuffix(name, ".eml") {
			t.Errorf("%s has %q, want %q", name, payload, want)
		}
	}
}

// lineEnds turns all line ends into LF.
func lineEnds(s string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}
