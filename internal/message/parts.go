package message

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // teaches go-message the charsets of raw messages
	"github.com/emersion/go-message/mail"
)

// Limits on how much of an email is read.
const (
	MostParts    = 50       // parts
	DeepestPart  = 8        // nested multiparts
	MostPartText = 64 << 10 // bytes of a text

	mostFields = 300
	fieldMost  = 8 << 10 // bytes of a header field
)

// Parsed is an email split into its parts.
type Parsed struct {
	Size    int // in bytes
	Headers []HeaderField
	Parts   []Part // in their order, without multiparts
	Partial bool   // there is more of it than the bounds allow, or the rest can't be read
}

// HeaderField is a field of the header.
type HeaderField struct {
	Name  string
	Value string // unfolded and decoded
	Raw   string // as it is in the mail
}

// Part is a part that isn't a multipart.
type Part struct {
	Number  int    // from 1
	Type    string // media type, in lower case
	Name    string // file name; empty if it has none
	CID     string // Content-ID without brackets; empty if it has none
	File    bool   // it is an attachment, or no text
	Size    int    // in bytes, decoded
	Text    string // the beginning of a part that isn't a file, at most MostPartText bytes
	Cut     bool   // Text is only the beginning
	Content []byte // all of it; only from Open. A text is in UTF-8, unless its charset is unknown
}

// Parse takes an email apart. Without a header it is one text.
func Parse(raw []byte) Parsed {
	m := Parsed{Size: len(raw)}
	var whole bool
	m.Headers, whole = walk(raw, func(p Part, body io.Reader) error {
		if p.File {
			n, _ := io.Copy(io.Discard, body) // after an error: the bytes before it
			p.Size = int(n)
		} else {
			p.read(body)
		}
		m.Parts = append(m.Parts, p)
		return nil
	})
	m.Partial = !whole
	return m
}

// OpenPart returns a part with its content. ok is false if there is no part of this number.
func OpenPart(raw []byte, number int) (found Part, ok bool) {
	_, _ = walk(raw, func(p Part, body io.Reader) error {
		if p.Number != number {
			return nil
		}
		p.Content, _ = io.ReadAll(body)
		p.Size = len(p.Content)
		found, ok = p, true
		return errEnough
	})
	return found, ok
}

// Text returns the first part of a media type that is no file; nil if there is none.
func (m Parsed) Text(kind string) *Part {
	for i := range m.Parts {
		if p := &m.Parts[i]; !p.File && p.Type == kind {
			return p
		}
	}
	return nil
}

// Files returns the attachments and everything else that isn't text.
func (m Parsed) Files() []Part {
	var files []Part
	for _, p := range m.Parts {
		if p.File {
			files = append(files, p)
		}
	}
	return files
}

// Disposition returns the Content-Disposition of a download of the part (RFC 6266).
func (p Part) Disposition() string {
	name := cmp.Or(p.Name, fmt.Sprintf("part-%d", p.Number))
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

func (p *Part) read(body io.Reader) {
	text, _ := io.ReadAll(body) // after an error: the bytes before it
	p.Size = len(text)
	begun := Clip(string(text), MostPartText)
	p.Text = Clip(strings.ToValidUTF8(begun, "\uFFFD"), MostPartText)
	p.Cut = len(text) > MostPartText
}

// errEnough ends the reading of an email.
var errEnough = errors.New("enough is read")

// walk calls do with each part of an email, whose Size and Text are not set. It returns the header, and
// whether it came to the end of the mail.
func walk(raw []byte, do func(p Part, body io.Reader) error) (fields []HeaderField, whole bool) {
	m, err := gomessage.ReadWithOptions(bytes.NewReader(raw),
		&gomessage.ReadOptions{MaxHeaderBytes: int64(len(raw)) + 1})
	if m == nil || !readable(err) {
		_ = do(Part{Number: 1, Type: "text/plain"}, bytes.NewReader(raw))
		return nil, true
	}
	n := 0
	fields = fieldsOf(m.Header)
	err = m.Walk(func(path []int, part *gomessage.Entity, err error) error {
		if part == nil || !readable(err) || n == MostParts || len(path) > DeepestPart {
			return errEnough
		}
		if part.MultipartReader() != nil {
			return nil
		}
		n++
		p := partOf(part.Header)
		p.Number = n
		return do(p, part.Body)
	})
	return fields, err == nil
}

// readable reports whether a part can be read although go-message does not know its charset or its encoding.
func readable(err error) bool {
	return err == nil || gomessage.IsUnknownCharset(err) || gomessage.IsUnknownEncoding(err)
}

func fieldsOf(h gomessage.Header) []HeaderField {
	var all []HeaderField
	for fields := h.Fields(); fields.Next() && len(all) < mostFields; {
		value, err := fields.Text()
		if err != nil {
			value = fields.Value()
		}
		raw, _ := fields.Raw()
		all = append(all, HeaderField{fields.Key(), clipped(value),
			clipped(strings.TrimRight(string(raw), "\r\n"))})
	}
	return all
}

func clipped(value string) string {
	return Clip(strings.ToValidUTF8(value, "\uFFFD"), fieldMost)
}

// partOf describes a part by its header.
func partOf(h gomessage.Header) Part {
	p := Part{CID: strings.Trim(strings.TrimSpace(h.Get("Content-Id")), "<>")}
	kind, _, err := h.ContentType()
	if p.Type = strings.ToLower(kind); err != nil || kind == "" {
		p.Type = "text/plain" // RFC 2045 section 5.2
	}
	attached := mail.AttachmentHeader{Header: h}
	name, _ := attached.Filename()
	p.Name = clipped(name)
	disposition, _, _ := h.ContentDisposition()
	p.File = !strings.HasPrefix(p.Type, "text/") || strings.EqualFold(disposition, "attachment")
	return p
}
