package message_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"path/filepath"
	"strings"
	"testing"

	gomessage "github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/google/go-cmp/cmp"
)

// TestTwoReadersAgree has a second independent reader, go-message, read every sample: it has to find what
// Python finds.
func TestTwoReadersAgree(t *testing.T) {
	all := samples()
	mails := readWithPython(t, all)
	for i, s := range all {
		t.Run(s.name, func(t *testing.T) {
			got, want := readWithGoMessage(t, compose(t, s.draft).Raw), mails[i]
			// compared by TestPythonReadsTheSame
			want.Headers, want.Structure, want.Defects, want.HeaderDefects = nil, nil, nil, nil
			// Python reads no UTF-8 in addresses from bytes
			if s.name == "smtputf8" {
				got.From, got.To, got.Cc, want.From, want.To, want.Cc = nil, nil, nil, nil, nil, nil
			}
			for _, m := range []*pythonMail{&got, &want} {
				m.normalize(t)
			}
			for i, p := range want.Parts {
				// go-message reads it as an encoded word, which it isn't by RFC 2231
				if strings.HasPrefix(p.Filename, "=?") && i < len(got.Parts) {
					got.Parts[i].Filename = p.Filename
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-Python +go-message)\n%s", diff)
			}
		})
	}
}

// normalize takes out what readers write differently and mean the same by.
func (m *pythonMail) normalize(t *testing.T) {
	t.Helper()
	for _, list := range [][][]string{m.From, m.To, m.Cc} {
		for _, a := range list {
			a[0] = strings.ReplaceAll(a[0], " ", "") // Python puts blanks between encoded words in a phrase
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Encoding = strings.ToLower(p.Encoding)
		if p.Type == "message/rfc822" {
			p.Payload = "" // Python gives it as it would write it
			continue
		}
		p.Payload = strings.TrimRight(p.payload(t), "\n")
	}
}

// readWithGoMessage reads an email as read_mail.py does.
func readWithGoMessage(t *testing.T, raw []byte) pythonMail {
	t.Helper()
	e, err := gomessage.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	h := mail.Header{Header: e.Header}
	m := pythonMail{MessageID: h.Get("Message-Id"), From: peopleIn(t, h, "From"), To: peopleIn(t, h, "To"),
		Cc: peopleIn(t, h, "Cc")}
	if m.Subject, err = h.Subject(); err != nil {
		t.Error(err)
	}
	date, err := h.Date()
	if err != nil {
		t.Error(err)
	}
	m.Date = date.Format("2006-01-02T15:04:05-07:00")
	if err := e.Walk(func(_ []int, part *gomessage.Entity, err error) error {
		if err == nil && part.MultipartReader() == nil {
			m.Parts = append(m.Parts, partWithGoMessage(t, part))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return m
}

func peopleIn(t *testing.T, h mail.Header, name string) [][]string {
	t.Helper()
	people := [][]string{}
	if h.Get(name) == "undisclosed-recipients:;" {
		return people
	}
	list, err := h.AddressList(name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, a := range list {
		people = append(people, []string{a.Name, a.Address})
	}
	return people
}

func partWithGoMessage(t *testing.T, part *gomessage.Entity) pythonPart {
	t.Helper()
	body, err := io.ReadAll(part.Body)
	if err != nil {
		t.Error(err)
	}
	p := pythonPart{CID: part.Header.Get("Content-Id"), Encoding: part.Header.Get("Content-Transfer-Encoding"),
		Payload: base64.StdEncoding.EncodeToString(body)}
	kind, params, err := part.Header.ContentType()
	if err != nil {
		t.Error(err)
	}
	p.Type = kind
	disposition, names, err := part.Header.ContentDisposition()
	if err == nil {
		p.Disposition = disposition
	}
	p.Filename = names["filename"]
	if p.Filename == "" {
		decoded, err := new(mime.WordDecoder).DecodeHeader(params["name"])
		if err != nil {
			t.Error(err)
		}
		p.Filename = filepath.Base(decoded)
		if decoded == "" {
			p.Filename = ""
		}
	}
	return p
}
