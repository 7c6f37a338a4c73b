package audience

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The character sets of files.
const (
	charsetUTF8    = "utf-8"
	charsetUTF16LE = "utf-16le"
	charsetUTF16BE = "utf-16be"
	charsetWindows = "windows-1252"
)

// maxLine bounds a line of a file, in bytes. The longest possible subscriber has about 10,000 characters.
const maxLine = 64 << 10

var (
	errLongLine = errors.New("is longer than 65,536 bytes")
	errNUL      = errors.New("has a NUL: is it text?")
	errCharset  = errors.New("is not in the character set of the file")
)

// archives are the first bytes of files that are no text.
var archives = [...]struct{ magic, what string }{
	{"PK\x03\x04", "is a zip archive, or a spreadsheet: unpack it, or save it as CSV"},
	{"\x1f\x8b", "is compressed with gzip: unpack it"},
	{"%PDF", "is a PDF"},
	{"\xd0\xcf\x11\xe0", "is a spreadsheet: save it as CSV"},
}

// textLines reads a file line by line, in UTF-8 whatever its character set. Its memory is bounded by maxLine.
type textLines struct {
	r       *bufio.Reader
	charset string    // "": UTF-8 or Windows-1252; the first line that is not ASCII decides
	number  int       // of the last line, from 1
	bytes   int64     // of all lines so far
	hash    hash.Hash // of these bytes
	text    []byte    // of the last line, if it had to be translated
	cr      bool      // the last line ended with CR and LF
}

// newTextLines looks at the beginning of a file. The error says what is wrong with it.
func newTextLines(r io.Reader, charset string) (*textLines, error) {
	l := &textLines{r: bufio.NewReaderSize(r, maxLine), charset: charset, hash: sha256.New()}
	// A short file, or one that breaks off, is told at its end.
	head, _ := l.r.Peek(4)
	for _, a := range archives {
		if bytes.HasPrefix(head, []byte(a.magic)) {
			return nil, errors.New(a.what)
		}
	}
	if charset == "" {
		l.charset = guessCharset(head)
	}
	return l, nil
}

// guessCharset returns the character set of the first bytes of a file; "" is that of textLines.
func guessCharset(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		return charsetUTF8
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return charsetUTF16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return charsetUTF16BE
	case len(head) >= 2 && head[0] != 0 && head[1] == 0:
		return charsetUTF16LE
	case len(head) >= 2 && head[0] == 0 && head[1] != 0:
		return charsetUTF16BE
	}
	return ""
}

// next returns a line without its break, valid until the next call. A line that can't be read is consumed,
// and returned as errLongLine, errNUL or errCharset. At the end it returns io.EOF.
func (l *textLines) next() ([]byte, error) {
	line, long, err := l.raw()
	if err != nil {
		return nil, err
	}
	l.number++
	if long {
		return nil, errLongLine
	}
	text, err := l.decoded(line)
	if err != nil {
		return nil, err
	}
	if l.number == 1 {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	}
	text, l.cr = bytes.CutSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errNUL
	}
	return text, nil
}

// raw returns the next line as it is in the file. Of one that is too long the rest is consumed.
func (l *textLines) raw() (line []byte, long bool, err error) {
	if l.charset == charsetUTF16LE || l.charset == charsetUTF16BE {
		line, long, err = l.rawWide()
	} else {
		line, err = l.r.ReadSlice('\n')
		l.took(line)
		long = errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = l.r.ReadSlice('\n')
			l.took(more)
		}
	}
	if err == io.EOF && (len(line) > 0 || long) {
		err = nil
	}
	return line, long, err
}

// rawWide is raw for UTF-16, where the byte of a line break is also a half of other characters.
func (l *textLines) rawWide() (line []byte, long bool, err error) {
	l.text = l.text[:0]
	for {
		var pair [2]byte
		n, err := io.ReadFull(l.r, pair[:])
		l.took(pair[:n])
		if err == io.ErrUnexpectedEOF { // half a character
			err = nil
			l.text = append(l.text, pair[0])
			return l.text, long, err
		}
		if err != nil {
			return l.text, long, err
		}
		if len(l.text) < maxLine {
			l.text = append(l.text, pair[0], pair[1])
		} else {
			long = true
		}
		if l.unit(pair[0], pair[1]) == '\n' {
			return l.text, long, nil
		}
	}
}

func (l *textLines) took(b []byte) {
	l.bytes += int64(len(b))
	l.hash.Write(b)
}

// unit returns a code unit of UTF-16.
func (l *textLines) unit(a, b byte) rune {
	if l.charset == charsetUTF16BE {
		a, b = b, a
	}
	return rune(a) | rune(b)<<8
}

// decoded returns a line in UTF-8.
func (l *textLines) decoded(line []byte) ([]byte, error) {
	if l.charset == charsetUTF16LE || l.charset == charsetUTF16BE {
		return l.narrow(line)
	}
	if isASCII(line) {
		return line, nil
	}
	if l.charset == "" {
		if l.charset = charsetWindows; utf8.Valid(line) {
			l.charset = charsetUTF8
		}
	}
	if l.charset == charsetUTF8 {
		if !utf8.Valid(line) {
			return nil, errCharset
		}
		return line, nil
	}
	l.text = l.text[:0]
	for _, b := range line {
		r := charmap.Windows1252.DecodeByte(b)
		if r == utf8.RuneError {
			return nil, errCharset
		}
		l.text = utf8.AppendRune(l.text, r)
	}
	return l.text, nil
}

// narrow returns a line of UTF-16 in UTF-8.
func (l *textLines) narrow(line []byte) ([]byte, error) {
	if len(line)%2 != 0 {
		return nil, errCharset
	}
	text := make([]byte, 0, len(line))
	for i := 0; i < len(line); i += 2 {
		r := l.unit(line[i], line[i+1])
		switch {
		case r >= 0xd800 && r < 0xdc00 && i+3 < len(line): // the first half of a pair
			low := l.unit(line[i+2], line[i+3])
			if low < 0xdc00 || low > 0xdfff {
				return nil, errCharset
			}
			r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
			i += 2
		case r >= 0xd800 && r <= 0xdfff:
			return nil, errCharset
		}
		text = utf8.AppendRune(text, r)
	}
	return text, nil
}

// name returns the character set of what was read.
func (l *textLines) name() string {
	if l.charset == "" {
		return charsetUTF8 // ASCII so far
	}
	return l.charset
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
