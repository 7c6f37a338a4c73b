package message

import (
	"encoding/base64"
	"html"
	"io"
	"net/url"
	"regexp"
	"strings"
)

// imagesMost is the most bytes of images that a Frame has in its html. More images are missing.
const imagesMost = 4 << 20

// shownImages are the types of images that a Frame has. SVG, which is a document, isn't one of them.
var shownImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true,
	"image/webp": true, "image/bmp": true, "image/avif": true}

var (
	// where html or a style refers to a part of the mail (RFC 2392)
	cidReference = regexp.MustCompile(`(?i)(["'(=]\s*)cid:([^"'()<>\s]+)`)
	// where html or a style loads something from another host
	remoteReference = regexp.MustCompile(
		`(?i)\b(?:src|srcset|background|poster)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?\s*(?:https?:)?//`)
)

// Frame returns an email's html for a frame of a page: all of it, with the email's own images as data: URLs.
// It returns "" if the email has no html.
func Frame(raw []byte) string {
	page, images := "", map[string]string{}
	room := imagesMost
	_, _ = walk(raw, func(p Part, body io.Reader) error {
		switch {
		case p.Type == "text/html" && !p.File && page == "":
			text, _ := io.ReadAll(body)
			page = strings.ToValidUTF8(string(text), "\uFFFD")
		case p.CID != "" && shownImages[p.Type]:
			content, _ := io.ReadAll(io.LimitReader(body, int64(room)+1))
			if len(content) > room {
				break
			}
			room -= len(content)
			images[p.CID] = "data:" + p.Type + ";base64," + base64.StdEncoding.EncodeToString(content)
		}
		return nil
	})
	if len(images) == 0 {
		return page
	}
	grown := 0
	return cidReference.ReplaceAllStringFunc(page, func(found string) string {
		at := cidReference.FindStringSubmatchIndex(found)
		id := html.UnescapeString(found[at[4]:at[5]])
		if plain, err := url.PathUnescape(id); err == nil {
			id = plain
		}
		data := images[id]
		grown += len(data)
		if data == "" || grown > 2*imagesMost { // html may refer to an image any number of times
			return found
		}
		return found[:at[3]] + data
	})
}

// LoadsRemote reports whether html seems to load images or styles from other hosts.
func LoadsRemote(page string) bool { return remoteReference.MatchString(page) }
