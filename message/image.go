package message

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"strings"

	xhtml "golang.org/x/net/html"
)

// maxDataImages is the number of images that are extracted from one html. Further images stay in the html.
const maxDataImages = 200

// takeDataImages moves data: URL images of html into parts: most mail programs show only those. A repeated
// image is sent once. Images that cannot be decoded and all other bytes of the html stay as they are.
func takeDataImages(source, token, domain string) (string, []*part) {
	if indexFold(source, "data:") < 0 {
		return source, nil
	}
	t := imageTaker{token: token, domain: domain, seen: make(map[string]string)}
	var out strings.Builder
	out.Grow(len(source))
	z := xhtml.NewTokenizer(strings.NewReader(source))
	done := 0
	for z.Next() != xhtml.ErrorToken {
		raw := source[done : done+len(z.Raw())]
		done += len(raw)
		if len(raw) > 4 && strings.EqualFold(raw[:4], "<img") && !isNameByte(raw[4]) {
			raw = t.rewrite(raw)
		}
		out.WriteString(raw)
	}
	out.WriteString(source[done:]) // a truncated tag at the end
	return out.String(), t.parts
}

type imageTaker struct {
	token, domain string
	seen          map[string]string // data: URL to content id
	parts         []*part
}

// rewrite replaces the src of an img tag.
func (t *imageTaker) rewrite(tag string) string {
	from, to := attributeValue(tag, "src")
	value := strings.TrimSpace(html.UnescapeString(tag[from:to]))
	if len(value) < 5 || !strings.EqualFold(value[:5], "data:") {
		return tag
	}
	cid, known := t.seen[value]
	if !known {
		kind, content, ok := decodeDataURL(value)
		if !ok || len(t.parts) == maxDataImages {
			return tag
		}
		n := len(t.parts) + 1
		cid = fmt.Sprintf("%s.%d@%s", t.token, n, t.domain)
		t.seen[value] = cid
		t.parts = append(t.parts, &part{
			kind: kind, disposition: "inline", filename: fmt.Sprintf("image-%d%s", n, extensionOf(kind)),
			cid: "<" + cid + ">", encoding: base64Encoding, body: content,
		})
	}
	link := "cid:" + cid
	if from > 0 && tag[from-1] != '"' && tag[from-1] != '\'' {
		link = `"` + link + `"`
	}
	return tag[:from] + link + tag[to:]
}

// decodeDataURL reads an image from a data: URL (RFC 2397).
func decodeDataURL(value string) (kind string, content []byte, ok bool) {
	head, data, found := strings.Cut(value[len("data:"):], ",")
	if !found {
		return "", nil, false
	}
	kind, _, _ = strings.Cut(head, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	subtype, isImage := strings.CutPrefix(kind, "image/")
	if !isImage || subtype == "" || len(subtype) > 60 ||
		strings.Trim(subtype, "abcdefghijklmnopqrstuvwxyz0123456789.+-") != "" {
		return "", nil, false
	}
	if !strings.HasSuffix(strings.ToLower(strings.ReplaceAll(head, " ", "")), ";base64") {
		plain, err := url.PathUnescape(data)
		return kind, []byte(plain), err == nil
	}
	if strings.Contains(data, "%") {
		unescaped, err := url.PathUnescape(data)
		if err != nil {
			return "", nil, false
		}
		data = unescaped
	}
	data = strings.TrimRight(strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(data), "=")
	content, err := base64.RawStdEncoding.DecodeString(data)
	return kind, content, err == nil && len(content) > 0
}

// attributeValue returns the bounds of an attribute's value in a start tag, without quotes. Without the
// attribute, from equals to.
func attributeValue(tag, wanted string) (from, to int) {
	i := 1
	for i < len(tag) && isNameByte(tag[i]) {
		i++
	}
	for i < len(tag) {
		for i < len(tag) && !isNameByte(tag[i]) {
			i++
		}
		start := i
		for i < len(tag) && isNameByte(tag[i]) {
			i++
		}
		name := tag[start:i]
		j := skipBlanks(tag, i)
		if j >= len(tag) || tag[j] != '=' {
			continue
		}
		from, to, i = valueAt(tag, skipBlanks(tag, j+1))
		if strings.EqualFold(name, wanted) {
			return from, to
		}
	}
	return 0, 0
}

// valueAt returns the bounds of the attribute value at i, and the offset after it.
func valueAt(tag string, i int) (from, to, next int) {
	if i < len(tag) && (tag[i] == '"' || tag[i] == '\'') {
		end := strings.IndexByte(tag[i+1:], tag[i])
		if end < 0 {
			return len(tag), len(tag), len(tag)
		}
		return i + 1, i + 1 + end, i + 2 + end
	}
	end := strings.IndexAny(tag[i:], " \t\r\n\f>")
	if end < 0 {
		end = len(tag) - i
	}
	return i, i + end, i + end
}

func skipBlanks(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n\f", s[i]) >= 0 {
		i++
	}
	return i
}

func isNameByte(c byte) bool { return strings.IndexByte(" \t\r\n\f/>=\"'", c) < 0 }
