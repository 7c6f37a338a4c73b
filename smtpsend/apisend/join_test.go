package apisend

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/emersion/go-message/textproto"

	"github.com/postroom/postroom/internal/message"
)

// join writes the message that a provider makes of a content.
func join(t testing.TB, c content) []byte {
	t.Helper()
	var alternatives, parts []joined
	if c.hasText {
		alternatives = append(alternatives, leaf("text/plain; charset=utf-8", crlf(c.text)))
	}
	if c.hasHTML {
		related := []joined{leaf("text/html; charset=utf-8", crlf(c.html))}
		for _, f := range c.inline {
			related = append(related, fileLeaf(f, "inline"))
		}
		alternatives = append(alternatives, several(t, "related", related))
	}
	for _, a := range c.alternatives {
		alternatives = append(alternatives, leaf(a.kind+"; charset=utf-8", crlf(a.text)))
	}
	if len(alternatives) > 0 {
		parts = append(parts, several(t, "alternative", alternatives))
	}
	for _, f := range c.files {
		parts = append(parts, fileLeaf(f, "attachment"))
	}
	if len(parts) == 0 { // Open wants a part; one without text is a file of nothing
		t.Fatalf("a content of nothing: %+v", c)
	}
	body := several(t, "mixed", parts)
	var fields []string
	for name, list := range map[string][]message.Address{"From": {c.from}, "To": c.to, "Cc": c.cc,
		"Reply-To": c.replyTo} {
		if len(list) > 0 {
			fields = append(fields, name+": "+addressList(list))
		}
	}
	if c.sender.Address != "" {
		fields = append(fields, "Sender: "+addressList([]message.Address{c.sender}))
	}
	if c.subject != "" {
		fields = append(fields, textField("Subject", c.subject))
	}
	for _, f := range c.header {
		fields = append(fields, textField(f.name, f.value))
	}
	var out bytes.Buffer
	out.WriteString(strings.Join(fields, "\r\n") + "\r\n")
	if err := textproto.WriteHeader(&out, body.header); err != nil {
		t.Fatal(err)
	}
	out.Write(body.body)
	return out.Bytes()
}

// joined is a part of a joined message.
type joined struct {
	header textproto.Header
	body   []byte
}

func leaf(kind, content string) joined {
	var j joined
	j.header.AddRaw([]byte("Content-Type: " + kind + "\r\n"))
	j.header.Add("Content-Transfer-Encoding", "base64")
	j.body = []byte(base64.StdEncoding.EncodeToString([]byte(content)))
	return j
}

func fileLeaf(f file, disposition string) joined {
	j := leaf(f.kind, string(f.content))
	if f.name != "" {
		disposition += "; filename*=utf-8''" + strings.ReplaceAll(url.QueryEscape(f.name), "+", "%20")
	}
	j.header.AddRaw([]byte("Content-Disposition: " + disposition + "\r\n"))
	if f.cid != "" {
		j.header.AddRaw([]byte("Content-ID: <" + f.cid + ">\r\n"))
	}
	return j
}

func several(t testing.TB, kind string, parts []joined) joined {
	t.Helper()
	var j joined
	var body bytes.Buffer
	w := textproto.NewMultipartWriter(&body)
	for _, p := range parts {
		part, err := w.CreatePart(p.header)
		if err == nil {
			_, err = part.Write(p.body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j.header.Add("Content-Type", "multipart/"+kind+"; boundary="+w.Boundary())
	j.body = body.Bytes()
	return j
}

// textField writes a field as it is if it is read as it is, else in encoded words.
func textField(name, value string) string {
	line := name + ": " + value
	header, _, err := message.Open([]byte(line + "\r\n\r\n"))
	if err == nil && len(header) == 1 && header[0].Value == value {
		return line
	}
	return name + ": " + encoded(value)
}

func addressList(list []message.Address) string {
	var all []string
	for _, a := range list {
		name := ""
		if a.Name != "" {
			name = encoded(a.Name) + " "
		}
		all = append(all, name+"<"+a.Address+">")
	}
	return strings.Join(all, ",\r\n ")
}

// encoded writes a text as encoded words of single characters.
func encoded(text string) string {
	var words []string
	for text != "" {
		n := min(30, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(text[:n]))+"?=")
		text = text[n:]
	}
	return strings.Join(words, "\r\n ")
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
