package ui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/postroom/postroom/fault"
)

// How much of a message its page shows. The whole of it can be downloaded.
const (
	shownText  = 64 << 10 // bytes of a text
	shownParts = 50
	shownDepth = 8 // multiparts inside each other
)

// contentView is a message as its page previews it: nothing in it is ever active.
type contentView struct {
	Size    int
	Headers []headerLine
	Parts   []partView
}

type headerLine struct{ Name, Value string }

// partView is one part of a message that is no multipart.
type partView struct {
	Type string
	Name string // of an attachment
	Size int    // decoded
	Text string // source, where it is a text; empty for an attachment
	Cut  bool   // there is more of the text
}

// preview reads a message's content. One that is not to be had any more is none.
func (u *UI) preview(ctx context.Context, id string) (*contentView, error) {
	raw, err := u.Outbox.Content(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readContent(raw), nil
}

// content answers with the message as it goes to the relay: as a file to save, or as plain text to read.
func (u *UI) content(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	raw, err := u.Outbox.Content(r.Context(), id)
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "", "The content of this message is not to be had any more")
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	if r.URL.Query().Get("view") == "text" {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	} else {
		h.Set("Content-Type", "message/rfc822")
		h.Set("Content-Disposition", `attachment; filename="`+id+`.eml"`)
	}
	_, _ = w.Write(raw)
	return nil
}

// readContent takes a message apart, as far as that goes: what is broken is shown as it is.
func readContent(raw []byte) *contentView {
	v := &contentView{Size: len(raw)}
	head, body := cutHeader(raw)
	v.Headers = headerLines(head)
	v.walk(mimeHeader(head), bytes.NewReader(body), 0)
	return v
}

// cutHeader parts the header from the body at the first empty line (RFC 5322 section 2.1).
func cutHeader(raw []byte) (head, body []byte) {
	for _, end := range []string{"\r\n\r\n", "\n\n"} {
		if i := bytes.Index(raw, []byte(end)); i >= 0 {
			return raw[:i+len(end)], raw[i+len(end):]
		}
	}
	return raw, nil
}

// mimeHeader reads the fields that say what a body is. A header it stumbles over gives those before.
func mimeHeader(head []byte) textproto.MIMEHeader {
	h, _ := textproto.NewReader(bufio.NewReader(bytes.NewReader(head))).ReadMIMEHeader()
	return h
}

// headerLines lists the fields in their own order, unfolded and readable.
func headerLines(head []byte) []headerLine {
	var lines []headerLine
	for line := range strings.Lines(clip(string(head), shownText)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if n := len(lines); n > 0 {
				lines[n-1].Value += " " + strings.TrimSpace(line)
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok {
			lines = append(lines, headerLine{name, strings.TrimSpace(value)})
		}
	}
	words := mime.WordDecoder{CharsetReader: fromCharset}
	for i, l := range lines {
		if decoded, err := words.DecodeHeader(l.Value); err == nil {
			lines[i].Value = decoded
		}
		lines[i].Value = strings.ToValidUTF8(lines[i].Value, "\uFFFD")
	}
	return lines
}

// walk lists the parts of a body.
func (v *contentView) walk(h textproto.MIMEHeader, body io.Reader, depth int) {
	if len(v.Parts) >= shownParts {
		return
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind == "" {
		kind = "text/plain" // RFC 2045 section 5.2
	}
	if !strings.HasPrefix(kind, "multipart/") || depth == shownDepth || params["boundary"] == "" {
		v.leaf(h, kind, params, body)
		return
	}
	parts := multipart.NewReader(body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err != nil {
			return
		}
		v.walk(p.Header, p, depth+1)
	}
}

// leaf adds one part: its text, or no more than what it is.
func (v *contentView) leaf(h textproto.MIMEHeader, kind string, params map[string]string, body io.Reader) {
	raw, _ := io.ReadAll(decoded(h.Get("Content-Transfer-Encoding"), body)) // what could be decoded of a broken part
	p := partView{Type: kind, Size: len(raw)}
	disposition, more, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	if p.Name = more["filename"]; p.Name == "" {
		p.Name = params["name"]
	}
	if strings.HasPrefix(kind, "text/") && disposition != "attachment" {
		p.Text, p.Cut = text(raw, params["charset"])
	}
	v.Parts = append(v.Parts, p)
}

func decoded(encoding string, body io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		return quotedprintable.NewReader(body)
	}
	return body
}

// text makes UTF-8 of a part, and no more of it than a page can bear.
func text(raw []byte, charset string) (string, bool) {
	if charset != "" && !strings.EqualFold(charset, "utf-8") {
		if r, err := fromCharset(charset, bytes.NewReader(raw)); err == nil {
			if converted, err := io.ReadAll(r); err == nil {
				raw = converted
			}
		}
	}
	end := min(len(raw), shownText)
	for end > 0 && end < len(raw) && !utf8.RuneStart(raw[end]) {
		end--
	}
	return strings.ToValidUTF8(string(raw[:end]), "\uFFFD"), end < len(raw)
}

// fromCharset reads a charset that browsers know.
func fromCharset(charset string, r io.Reader) (io.Reader, error) {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return nil, err
	}
	return e.NewDecoder().Reader(r), nil
}
