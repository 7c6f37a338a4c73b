package bounce

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/postroom/postroom/internal/message"
)

// content returns a part's body without its transfer encoding (RFC 2045 section 6). If the encoding is
// damaged, it returns the readable parts.
func (p *part) content() []byte {
	switch strings.ToLower(strings.TrimSpace(p.header.get("content-transfer-encoding"))) {
	case "quoted-printable":
		decoded, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(p.body)))
		if err != nil {
			return p.body
		}
		return decoded
	case "base64":
		return decodeBase64(p.body)
	}
	return p.body
}

// text returns a part's content as UTF-8, and html as the text in it.
func (p *part) text() string {
	s := toUTF8(p.content(), p.params["charset"])
	if p.media == "text/html" {
		return message.TextFromHTML(s)
	}
	return s
}

// decodeBase64 decodes the characters of the alphabet and skips the rest.
func decodeBase64(b []byte) []byte {
	clean := bytes.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '+', r == '/':
			return r
		}
		return -1
	}, b)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, _ := base64.RawStdEncoding.Decode(out, clean)
	return out[:n]
}

// toUTF8 decodes bytes in a charset. An unknown charset is read as UTF-8, or else as Windows-1252.
func toUTF8(b []byte, charset string) string {
	charset = strings.ToLower(strings.TrimSpace(charset))
	if (charset == "" || charset == "us-ascii") && bytes.Contains(b, []byte("\x1b$")) {
		charset = "iso-2022-jp" // Japanese servers that name no charset, or the default of their software
	}
	if charset != "" && charset != "utf-8" && charset != "us-ascii" {
		if enc, err := htmlindex.Get(charset); err == nil {
			if decoded, err := enc.NewDecoder().Bytes(b); err == nil {
				return strings.ToValidUTF8(string(decoded), "�")
			}
		}
	}
	return message.ValidText(string(b))
}

// words returns a header value with its encoded words decoded (RFC 2047).
func words(value string) string {
	decoder := mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(input)
		if err != nil {
			return nil, err
		}
		return strings.NewReader(toUTF8(b, charset)), nil
	}}
	decoded, err := decoder.DecodeHeader(value)
	if err != nil {
		return toUTF8([]byte(value), "")
	}
	return toUTF8([]byte(decoded), "")
}
