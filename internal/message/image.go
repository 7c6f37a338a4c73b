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

// takeDataImages moves data: URL images of html into parts: most mail programs show only parts. A repeated
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
		if len(raw) > 4 && strings.EqualFold(raw[:4], "<img") && strings.IndexByte(" \t\r\n\f/>", raw[4]) >= 0 {
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
	src, _ := FindAttribute(tag, "src")
	value := strings.TrimSpace(html.UnescapeString(tag[src.ValueStart:src.ValueEnd]))
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
	if !src.Quoted {
		link = `"` + link + `"`
	}
	return tag[:src.ValueStart] + link + tag[src.ValueEnd:]
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
	data, err := url.PathUnescape(data)
	if err != nil || !strings.HasSuffix(strings.ToLower(strings.ReplaceAll(head, " ", "")), ";base64") {
		return kind, []byte(data), err == nil
	}
	data = strings.TrimRight(strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "").Replace(data), "=")
	content, err = base64.RawStdEncoding.DecodeString(data)
	return kind, content, err == nil && len(content) > 0
}
