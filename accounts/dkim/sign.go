package dkim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// Signature is the key and the tags of a signature.
type Signature struct {
	Domain   string    // d=, as returned by CheckDomain
	Selector string    // s=
	Key      *Key      // whose record is published at selector._domainkey.domain
	Time     time.Time // t=, time of signing; zero means no tag

	account string // the only one whose mail it signs; if empty, see Owner
}

// overSigned are the fields that are signed once more than they occur: fields that readers see or mail
// programs act upon, and the fields for one-click unsubscribing (RFC 8058 section 4). Changing one, or adding
// another, breaks the signature.
var overSigned = []string{
	"From", "To", "Cc", "Subject", "Date", "Message-ID", "Reply-To", "In-Reply-To", "References",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding",
	"List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Help", "List-Subscribe", "List-Post",
	"List-Owner", "List-Archive",
}

// signed are the fields that are signed as often as they occur: a relay may add one. Large receivers count
// complaints by Feedback-ID only if it is signed.
var signed = []string{"Sender", "Feedback-ID", "Auto-Submitted"}

// maxInstances bounds the signed fields of one name to the last ones in the header: h= lists each of them,
// and headers may come from anyone.
const maxInstances = 10

// maxColumn is the longest line of the signature.
const maxColumn = 76

// Sign returns the message with a DKIM-Signature in front (RFC 6376), in new memory. It fails if the message
// has a line end other than CRLF, an invalid line in its header, or no From.
func Sign(content []byte, s Signature) ([]byte, error) {
	head, body, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("sign with DKIM for %s: %w", s.Domain, err)
	}
	bodyHash := hashBody(body)
	h := sha256.New()
	var buf []byte
	var names []string
	collect := func(list []string, more int) {
		for _, name := range list {
			found := head.last(name, maxInstances)
			for _, f := range found {
				buf = appendRelaxed(buf[:0], f)
				h.Write(buf)
				names = append(names, name)
			}
			if len(found) < maxInstances && more > 0 {
				names = append(names, name)
			}
		}
	}
	collect(overSigned, 1)
	collect(signed, 0)

	field := s.field(names, bodyHash)
	buf = appendRelaxed(buf[:0], headerField(field))
	h.Write(buf[:len(buf)-2]) // without its CRLF, section 3.7
	signature, err := s.Key.sign(h.Sum(nil))
	if err != nil {
		return nil, fmt.Errorf("sign with DKIM for %s: %w", s.Domain, err)
	}
	out := make([]byte, 0, len(field)+2*len(signature)+len(content))
	out = append(out, field[:len(field)-2]...)
	out = appendFolded(out, base64.StdEncoding.AppendEncode(nil, signature))
	return append(out, content...), nil
}

// field returns the header field with an empty b= at its end. Its white space is signed as single blanks, so
// it can't be folded again later.
func (s Signature) field(names []string, bodyHash []byte) []byte {
	w := tagWriter{buf: make([]byte, 0, 1024)}
	w.buf = append(w.buf, "DKIM-Signature: v=1;"...)
	w.column = len(w.buf)
	w.tag("a=" + s.Key.Kind() + "-sha256;")
	w.tag("c=relaxed/relaxed;")
	w.tag("d=" + s.Domain + ";")
	w.tag("s=" + s.Selector + ";")
	if !s.Time.IsZero() {
		w.tag("t=" + strconv.FormatInt(s.Time.Unix(), 10) + ";")
	}
	for i, name := range names {
		end := ":"
		if i == len(names)-1 {
			end = ";"
		}
		if i == 0 {
			w.tag("h=" + name + end)
		} else {
			w.more(name + end)
		}
	}
	w.tag("bh=" + base64.StdEncoding.EncodeToString(bodyHash) + ";")
	w.newLine()
	w.buf = append(w.buf, "b=\r\n"...)
	return w.buf
}

// tagWriter writes and folds the tags of a signature.
type tagWriter struct {
	buf    []byte
	column int
}

// tag writes a tag after a blank or a fold.
func (w *tagWriter) tag(text string) {
	if w.column+1+len(text) > maxColumn {
		w.newLine()
	} else {
		w.buf = append(w.buf, ' ')
		w.column++
	}
	w.buf = append(w.buf, text...)
	w.column += len(text)
}

// more continues the list of a tag, in which only a fold needs white space.
func (w *tagWriter) more(text string) {
	if w.column+len(text) > maxColumn {
		w.newLine()
	}
	w.buf = append(w.buf, text...)
	w.column += len(text)
}

func (w *tagWriter) newLine() {
	w.buf = append(w.buf, "\r\n\t"...)
	w.column = 1
}

// appendFolded appends the value of b=, whose white space verifiers ignore, and ends the field.
func appendFolded(dst, text []byte) []byte {
	for width := maxColumn - len("\tb="); len(text) > width; width = maxColumn - 1 {
		dst = append(dst, text[:width]...)
		dst = append(dst, "\r\n\t"...)
		text = text[width:]
	}
	dst = append(dst, text...)
	return append(dst, "\r\n"...)
}

// headerField is a field with its folded lines and its last CRLF.
type headerField []byte

func (f headerField) name() []byte {
	name, _, _ := bytes.Cut(f, []byte(":"))
	return name
}

type header []headerField

// last returns the fields of a name, the last one first: the order in which they are signed (RFC 6376 section
// 5.4.2).
func (h header) last(name string, most int) []headerField {
	var found []headerField
	for i := len(h) - 1; i >= 0 && len(found) < most; i-- {
		if bytes.EqualFold(h[i].name(), []byte(name)) {
			found = append(found, h[i])
		}
	}
	return found
}

// parse cuts a message into the fields of its header and its body.
func parse(content []byte) (header, []byte, error) {
	if message.HasBareLineEnd(content) {
		return nil, nil, errors.New("the message has a line end that is not CRLF")
	}
	var h header
	for rest := content; len(rest) > 0; {
		i := bytes.Index(rest, []byte("\r\n"))
		switch {
		case i < 0:
			return nil, nil, errors.New("the last line of the header has no end")
		case i == 0:
			return h, rest[2:], h.check()
		case rest[0] == ' ' || rest[0] == '\t':
			if len(h) == 0 {
				return nil, nil, errors.New("the header begins with a blank")
			}
			last := len(h) - 1
			h[last] = h[last][:len(h[last])+i+2]
		default:
			colon := bytes.IndexByte(rest[:i], ':')
			if colon <= 0 || bytes.ContainsFunc(rest[:colon], notInName) {
				return nil, nil, errors.New("the header has a line that isn't a field")
			}
			h = append(h, headerField(rest[:i+2]))
		}
		rest = rest[i+2:]
	}
	return h, nil, h.check()
}

// check returns an error without From, which must be signed (RFC 6376 section 5.4).
func (h header) check() error {
	if len(h.last("From", 1)) == 0 {
		return errors.New("the message has no From")
	}
	return nil
}

func notInName(r rune) bool { return r <= ' ' || r >= 0x7f }
