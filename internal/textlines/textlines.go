// Package textlines reads the lines of files that people upload, for imports. It takes the character sets and
// line ends that spreadsheets write, and needs little memory for a file of any size. A line that can't be
// read is an error about this line, and the next one can be read.
package textlines

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The character sets of files.
const (
	UTF8    = "utf-8"
	UTF16LE = "utf-16le"
	UTF16BE = "utf-16be"
	Windows = "windows-1252"
)

// maxLine is the size limit of a line, in bytes.
const maxLine = 64 << 10

// The errors of lines that can't be read.
var (
	ErrLong    = errors.New("is longer than 65,536 bytes")
	ErrNUL     = errors.New("has a NUL: is it text?")
	ErrCharset = errors.New("is not in the character set of the file")
)

// ErrEmpty is the error of a file that has nothing but empty lines.
var ErrEmpty = errors.New("is empty: check how it was made, and its path")

// archives are the first bytes of files that aren't text.
var archives = [...]struct{ magic, what string }{
	{"PK\x03\x04", "is a zip archive, or a spreadsheet: unpack it, or save it as CSV"},
	{"\x1f\x8b", "is compressed with gzip: unpack it"},
	{"%PDF", "is a PDF"},
	{"\xd0\xcf\x11\xe0", "is a spreadsheet: save it as CSV"},
}

// Reader reads a file line by line, in UTF-8 whatever its character set.
type Reader struct {
	Number int       // the last line's, from 1
	Bytes  int64     // in all lines so far
	Hash   hash.Hash // the hash of these bytes, SHA-256
	End    string    // after the last line: "\n", "\r\n", "\r", or "" at the end of the file

	r       *bufio.Reader
	charset string // "": UTF-8 or Windows-1252; the first line that is not ASCII decides
	width   int    // bytes of a line end
	text    []byte // the last line's, if it had to be translated
}

// New looks at the beginning of a file. An empty charset is guessed. The error says what is wrong with the
// file.
func New(r io.Reader, charset string) (*Reader, error) {
	l := &Reader{r: bufio.NewReaderSize(r, maxLine+8), charset: charset, width: 1, Hash: sha256.New()}
	// A short file, or one that breaks off, is reported at its end.
	head, _ := l.r.Peek(4)
	for _, a := range archives {
		if bytes.HasPrefix(head, []byte(a.magic)) {
			return nil, errors.New(a.what)
		}
	}
	if charset == "" {
		l.charset = guess(head)
	}
	if l.charset == UTF16LE || l.charset == UTF16BE {
		l.width = 2
	}
	return l, nil
}

// guess returns the character set of a file's first bytes, or "" for the Reader's.
func guess(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return UTF8
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return UTF16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return UTF16BE
	case len(head) >= 2 && head[0] != 0 && head[1] == 0:
		return UTF16LE
	case len(head) >= 2 && head[0] == 0 && head[1] != 0:
		return UTF16BE
	}
	return ""
}

// Head returns the first line without its end, as far as it is in the first 4 KB, before Next is called. In
// character sets of one byte, only its ASCII is right.
func (l *Reader) Head() []byte {
	head, _ := l.r.Peek(4 << 10) // an error comes again
	if end := l.lineEnd(head, 0); end >= 0 {
		head = head[:end]
	}
	if l.width == 2 {
		head, _ = l.narrow(head) // Next reports a line that can't be read
	}
	return bytes.TrimPrefix(head, []byte("\uFEFF"))
}

// Separator returns the delimiter that a first line of Excel sets, such as sep=; and whether there is one.
func Separator(line []byte) (byte, bool) {
	line = bytes.Trim(line, `"`)
	if len(line) == 5 && bytes.EqualFold(line[:4], []byte("sep=")) {
		return line[4], true
	}
	return 0, false
}

// Next returns a line without its end, valid until the next call. A line that can't be read is consumed, and
// returned as ErrLong, ErrNUL or ErrCharset. At the end of the file Next returns io.EOF.
func (l *Reader) Next() ([]byte, error) {
	line, long, err := l.raw()
	if err != nil {
		return nil, err
	}
	l.Number++
	if long {
		return nil, ErrLong
	}
	text, err := l.decoded(line)
	if err != nil {
		return nil, err
	}
	if l.Number == 1 {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, ErrNUL
	}
	return text, nil
}

// raw returns the next line as it is in the file, without its end. If it is too long, the rest is consumed.
func (l *Reader) raw() (line []byte, long bool, err error) {
	for n := 0; ; {
		_, err := l.r.Peek(n + l.width) // waits for more
		text, _ := l.r.Peek(l.r.Buffered())
		at := l.lineEnd(text, n)
		switch {
		case at > maxLine || at < 0 && len(text) == l.r.Size():
			if at < 0 {
				at = len(text)
			}
			l.take(text[:at])
			long, n = true, 0
		case at >= 0:
			return l.ended(at), long, nil
		case err == io.EOF && (len(text) > 0 || long):
			l.take(text)
			l.End = ""
			return text, long || len(text) > maxLine, nil
		case err != nil:
			return nil, false, err
		default:
			n = len(text) / l.width * l.width
		}
	}
}

// lineEnd returns where the first CR or LF is from a place on; -1: there is none.
func (l *Reader) lineEnd(text []byte, from int) int {
	if l.width == 1 {
		end := bytes.IndexByte(text[from:], '\n')
		if end < 0 {
			end = len(text) - from
		}
		if cr := bytes.IndexByte(text[from:from+end], '\r'); cr >= 0 {
			end = cr
		}
		if from += end; from < len(text) {
			return from
		}
		return -1
	}
	for ; from+1 < len(text); from += 2 {
		if u := l.unit(text[from], text[from+1]); u == '\n' || u == '\r' {
			return from
		}
	}
	return -1
}

// ended takes a line with its end, which begins at a place.
func (l *Reader) ended(at int) []byte {
	text, _ := l.r.Peek(at + 2*l.width) // at the end of the file it has less
	l.End = "\n"
	if l.isUnit(text[at:], '\r') {
		if l.End = "\r"; l.isUnit(text[at+l.width:], '\n') {
			l.End = "\r\n"
		}
	}
	l.take(text[:at+len(l.End)*l.width])
	return text[:at]
}

// take consumes bytes at the beginning of the buffer. They stay valid until the next read.
func (l *Reader) take(b []byte) {
	l.Bytes += int64(len(b))
	l.Hash.Write(b)
	_, _ = l.r.Discard(len(b)) // they are there
}

func (l *Reader) isUnit(text []byte, c byte) bool {
	switch {
	case len(text) < l.width:
		return false
	case l.width == 1:
		return text[0] == c
	}
	return l.unit(text[0], text[1]) == rune(c)
}

// unit returns a code unit of UTF-16.
func (l *Reader) unit(a, b byte) rune {
	if l.charset == UTF16BE {
		a, b = b, a
	}
	return rune(a) | rune(b)<<8
}

func (l *Reader) decoded(line []byte) ([]byte, error) {
	if l.width == 2 {
		return l.narrow(line)
	}
	if isASCII(line) {
		return line, nil
	}
	if l.charset == "" {
		if l.charset = Windows; utf8.Valid(line) {
			l.charset = UTF8
		}
	}
	if l.charset == UTF8 {
		if !utf8.Valid(line) {
			return nil, ErrCharset
		}
		return line, nil
	}
	l.text = l.text[:0]
	for _, b := range line {
		r := charmap.Windows1252.DecodeByte(b)
		if r == utf8.RuneError {
			return nil, ErrCharset
		}
		l.text = utf8.AppendRune(l.text, r)
	}
	return l.text, nil
}

// narrow returns a line of UTF-16 in UTF-8.
func (l *Reader) narrow(line []byte) ([]byte, error) {
	if len(line)%2 != 0 {
		return nil, ErrCharset
	}
	text := make([]byte, 0, len(line))
	for i := 0; i < len(line); i += 2 {
		r := l.unit(line[i], line[i+1])
		if utf16.IsSurrogate(r) {
			if i += 2; i < len(line) {
				r = utf16.DecodeRune(r, l.unit(line[i], line[i+1]))
			}
			if r <= 0xffff { // no pair
				return nil, ErrCharset
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text, nil
}

// Charset returns the character set of the read text.
func (l *Reader) Charset() string { return cmp.Or(l.charset, UTF8) } // UTF8: ASCII so far

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
