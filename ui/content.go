package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // teaches go-message the charsets of raw messages
	"github.com/emersion/go-message/mail"

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
	Size int    // decoded, a text in UTF-8
	Text string // source, where it is a text; empty for an attachment
	Cut  bool   // there is more of the text
}

// preview reads a message's content. One that is not to be had any more is none.
func (u *UI) preview(ctx context.Context, id string) (*contentView, error) {
	raw, err := u.raw(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readContent(raw), nil
}

// codeFailed is what the outbox answers about a message of which it has a dead letter, or had one.
const codeFailed = "MessageFailed"

// raw is a message as it goes to the relay, or would again from its dead letter.
func (u *UI) raw(ctx context.Context, id string) ([]byte, error) {
	raw, err := u.Outbox.Content(ctx, id)
	if fault.CodeOf(err) != codeFailed {
		return raw, err
	}
	d, err := u.Outbox.DeadLetter(ctx, id)
	return d.Content, err
}

// content answers with the message as it goes to the relay: as a file to save, or as plain text to read.
func (u *UI) content(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	raw, err := u.raw(r.Context(), id)
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

// readContent takes a message apart, as far as that goes: a message that can't be taken apart is one part.
func readContent(raw []byte) *contentView {
	v := &contentView{Size: len(raw)}
	m, err := message.ReadWithOptions(bytes.NewReader(raw), &message.ReadOptions{
		MaxHeaderBytes: int64(len(raw)) + 1})
	if m == nil || err != nil && !readable(err) {
		v.Parts = []partView{textPart("text/plain", raw)}
		return v
	}
	v.Headers = headerLines(m.Header)
	// an error in a part ends the list of parts, not the page
	_ = m.Walk(func(path []int, part *message.Entity, err error) error {
		if err != nil && !readable(err) || len(v.Parts) == shownParts {
			return errEnough
		}
		if part.MultipartReader() == nil || len(path) == shownDepth {
			v.Parts = append(v.Parts, partOf(part))
		}
		return nil
	})
	return v
}

// errEnough ends a walk over a message.
var errEnough = errors.New("enough is shown")

// readable reports whether a part can be shown although go-message does not know its charset or its encoding.
func readable(err error) bool { return message.IsUnknownCharset(err) || message.IsUnknownEncoding(err) }

// headerLines lists the fields in their own order, unfolded and decoded.
func headerLines(h message.Header) []headerLine {
	var lines []headerLine
	for fields := h.Fields(); fields.Next(); {
		value, err := fields.Text()
		if err != nil {
			value = fields.Value()
		}
		lines = append(lines, headerLine{fields.Key(), strings.ToValidUTF8(clip(value, shownText), "\uFFFD")})
	}
	return lines
}

// partOf shows one part: its text, or no more than what it is.
func partOf(part *message.Entity) partView {
	kind, _, err := part.Header.ContentType()
	if err != nil || kind == "" {
		kind = "text/plain" // RFC 2045 section 5.2
	}
	raw, _ := io.ReadAll(part.Body) // what could be decoded of a broken part
	attached := mail.AttachmentHeader{Header: part.Header}
	name, _ := attached.Filename()
	if disposition, _, _ := part.Header.ContentDisposition(); strings.HasPrefix(kind, "text/") &&
		disposition != "attachment" {
		p := textPart(kind, raw)
		p.Name = name
		return p
	}
	return partView{Type: kind, Name: name, Size: len(raw)}
}

// textPart shows no more of a text than a page can bear.
func textPart(kind string, raw []byte) partView {
	end := min(len(raw), shownText)
	for end > 0 && end < len(raw) && !utf8.RuneStart(raw[end]) {
		end--
	}
	return partView{Type: kind, Size: len(raw), Text: strings.ToValidUTF8(string(raw[:end]), "\uFFFD"),
		Cut: end < len(raw)}
}
