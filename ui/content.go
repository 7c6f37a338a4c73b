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

// Bounds of the preview of a message. All of it can be downloaded.
const (
	shownText  = 64 << 10 // bytes of a text
	shownParts = 50
	shownDepth = 8 // nested multiparts
)

// contentView is the preview of a message, as text only.
type contentView struct {
	Size    int
	Headers []headerLine
	Parts   []partView
}

type headerLine struct{ Name, Value string }

// partView is a part of a message that is no multipart.
type partView struct {
	Type string
	Name string // file name of an attachment
	Size int    // in bytes, decoded
	Text string // of a text, its source; empty for an attachment
	Cut  bool   // Text is only the beginning
}

// preview returns the preview of a message, or nil if its content is no longer stored.
func (u *UI) preview(ctx context.Context, id string) (*contentView, error) {
	raw, err := u.raw(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return readContent(raw), nil
}

// codeFailed is the code of the outbox's fault about a message that failed.
const codeFailed = "MessageFailed"

// raw returns a message as it is sent to the relay, or as its dead letter has it.
func (u *UI) raw(ctx context.Context, id string) ([]byte, error) {
	raw, err := u.Outbox.Content(ctx, id)
	if fault.CodeOf(err) != codeFailed {
		return raw, err
	}
	d, err := u.Outbox.DeadLetter(ctx, id)
	return d.Content, err
}

// content answers with the message as it is sent to the relay: as a file, or as plain text.
func (u *UI) content(w http.ResponseWriter, r *http.Request, id string) error {
	raw, err := u.raw(r.Context(), id)
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "", "The content of this message is no longer stored")
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

// readContent parses a message. If that fails, the message is shown as one part.
func readContent(raw []byte) *contentView {
	v := &contentView{Size: len(raw)}
	m, err := message.ReadWithOptions(bytes.NewReader(raw), &message.ReadOptions{
		MaxHeaderBytes: int64(len(raw)) + 1})
	if m == nil || err != nil && !readable(err) {
		v.Parts = []partView{textPart("text/plain", raw)}
		return v
	}
	v.Headers = headerLines(m.Header)
	// an error in a part ends the list of parts
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

// headerLines returns the fields in their order, unfolded and decoded.
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

// partOf returns the view of a part. Only texts have content.
func partOf(part *message.Entity) partView {
	kind, _, err := part.Header.ContentType()
	if err != nil || kind == "" {
		kind = "text/plain" // RFC 2045 section 5.2
	}
	raw, _ := io.ReadAll(part.Body) // after an error: the bytes before it
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

// textPart returns the view of a text, with at most shownText bytes.
func textPart(kind string, raw []byte) partView {
	end := min(len(raw), shownText)
	for end > 0 && end < len(raw) && !utf8.RuneStart(raw[end]) {
		end--
	}
	return partView{Type: kind, Size: len(raw), Text: strings.ToValidUTF8(string(raw[:end]), "\uFFFD"),
		Cut: end < len(raw)}
}
