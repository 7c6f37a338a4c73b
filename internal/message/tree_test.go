package message_test

import (
	"bytes"
	"encoding/base64"
	"net/mail"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/internal/message"
)

// structure writes the MIME tree of an email on one line.
func structure(t *testing.T, raw []byte) string {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	root := strings.SplitN(m.Header.Get("Content-Type"), ";", 2)[0]
	var leaves []string
	for _, p := range readParts(t, m.Header.Get("Content-Type"), m.Body) {
		leaf := strings.SplitN(p.header.Get("Content-Type"), ";", 2)[0]
		if cid := p.header.Get("Content-Id"); cid != "" {
			leaf += " " + cid
		}
		if disposition := p.header.Get("Content-Disposition"); disposition != "" {
			leaf += " " + strings.SplitN(disposition, ";", 2)[0]
		}
		leaves = append(leaves, leaf)
	}
	return root + "(" + strings.Join(leaves, ", ") + ")"
}

func TestWhereAttachmentsGo(t *testing.T) {
	file := func(change func(a *message.Attachment)) []message.Attachment {
		a := message.Attachment{Filename: "x.png", Content: gif, ContentType: "image/png"}
		change(&a)
		return []message.Attachment{a}
	}
	for _, row := range []struct {
		name, html  string
		attachments []message.Attachment
		want        string
	}{
		{"none", "", nil, "text/plain()"},
		{"a file", "", file(func(a *message.Attachment) {}), "multipart/mixed(text/plain, image/png attachment)"},
		{"shown inline", "", file(func(a *message.Attachment) { a.Disposition = "INLINE" }),
			"multipart/mixed(text/plain, image/png inline)"},
		{"linked", `<img src="cid:a@b">`, file(func(a *message.Attachment) { a.CID = "a@b" }),
			"multipart/alternative(text/plain, text/html, image/png <a@b> inline)"},
		{"linked in brackets", `<img src="cid:a@b">`, file(func(a *message.Attachment) { a.CID = "<a@b>" }),
			"multipart/alternative(text/plain, text/html, image/png <a@b> inline)"},
		{"linked in a style", `<td style="background:url( 'cid:a' )">`,
			file(func(a *message.Attachment) { a.CID = "a" }),
			"multipart/alternative(text/plain, text/html, image/png <a> inline)"},
		{"linked with escapes", `<img src=CID:a%2Bb&amp;c>`, file(func(a *message.Attachment) { a.CID = "a+b&c" }),
			"multipart/alternative(text/plain, text/html, image/png <a+b&c> inline)"},
		{"linked in other letters", `<img src="cid:A@B">`, file(func(a *message.Attachment) { a.CID = "a@b" }),
			"multipart/mixed(text/plain, text/html, image/png <a@b> attachment)"},
		{"linked, with a will of its own", `<img src="cid:a">`,
			file(func(a *message.Attachment) { a.CID, a.Disposition = "a", "attachment" }),
			"multipart/alternative(text/plain, text/html, image/png <a> attachment)"},
		{"linked by nothing", `<p>`, file(func(a *message.Attachment) { a.CID = "a" }),
			"multipart/mixed(text/plain, text/html, image/png <a> attachment)"},
		{"a type that is none", "", file(func(a *message.Attachment) { a.ContentType = "pdf" }),
			"multipart/mixed(text/plain, image/png attachment)"},
		{"a type with bad parameters", "",
			file(func(a *message.Attachment) { a.ContentType = "image/jpeg; name=my file" }),
			"multipart/mixed(text/plain, image/jpeg attachment)"},
		{"a multipart is bytes", "",
			file(func(a *message.Attachment) { a.ContentType = "multipart/mixed; boundary=x" }),
			"multipart/mixed(text/plain, application/octet-stream attachment)"},
		{"a message with NUL is bytes", "", []message.Attachment{
			{Filename: "m.eml", Content: []byte("a: b\n\n\x00")}},
			"multipart/mixed(text/plain, application/octet-stream attachment)"},
		{"a message with endless lines is bytes", "", []message.Attachment{
			{ContentType: "message/rfc822", Content: bytes.Repeat([]byte("x"), 999)}},
			"multipart/mixed(text/plain, application/octet-stream attachment)"},
		{"a calendar without method is a file", "", []message.Attachment{
			{Filename: "c.ics", Content: []byte("BEGIN:VCALENDAR")}},
			"multipart/mixed(text/plain, text/calendar attachment)"},
		{"an invitation", "", []message.Attachment{
			{Filename: "c.ics", ContentType: "text/calendar; charset=UTF-8; METHOD=REQUEST",
				Content: []byte("BEGIN:VCALENDAR")}},
			"multipart/mixed(text/plain, text/calendar, application/ics attachment)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "text",
				HTML: row.html, Attachments: row.attachments})
			if got := structure(t, c.Raw); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// TestAttachedMessageOfOurOwn attaches an email made with the same randomness: its boundaries are those the
// outer mail would take.
func TestAttachedMessageOfOurOwn(t *testing.T) {
	inner := compose(t, samples()[4].draft).Raw
	c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "see",
		Attachments: []message.Attachment{{Content: inner, ContentType: "message/rfc822"}}})
	m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
	if err != nil {
		t.Fatal(err)
	}
	parts := readParts(t, m.Header.Get("Content-Type"), m.Body)
	if len(parts) != 2 || !bytes.Equal(parts[1].body, inner) {
		t.Errorf("the attached mail came out otherwise:\n%s", c.Raw)
	}
}

func TestEnclosing8BitPartsSaySo(t *testing.T) {
	c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "see",
		Attachments: []message.Attachment{{ContentType: "message/rfc822", Content: []byte("DKIM-Signature: v=1; b=x\nSubject: ü\n\nx")}}})
	if !strings.Contains(header(c.Raw), "\r\nContent-Transfer-Encoding: 8bit\r\n") || !c.EightBit || c.SMTPUTF8 {
		t.Errorf("EightBit %v, SMTPUTF8 %v\n%s", c.EightBit, c.SMTPUTF8, c.Raw)
	}
}

func TestDataImages(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString(gif)
	const cid = "hniaoyywcqj75ir27mz5nazhtkvaumn2."
	for _, row := range []struct {
		name, html, want string
		images           int
	}{
		{"double quotes", `<IMG alt=x SRC="data:image/gif;base64,` + encoded + `" width=1>`,
			`<IMG alt=x SRC="cid:` + cid + `1@example.com" width=1>`, 1},
		{"no quotes", `<img src=data:image/gif;base64,` + encoded + `>`, `<img src="cid:` + cid + `1@example.com">`,
			1},
		{"folded", `<img src = 'data:image/gif;base64,` + encoded[:9] + "\r\n " + encoded[9:] + `'/>`,
			`<img src = 'cid:` + cid + `1@example.com'/>`, 1},
		{"not base64", `<img src="data:image/svg+xml,%3Csvg%3E">`, `<img src="cid:` + cid + `1@example.com">`, 1},
		{"the same twice", strings.Repeat(`<img src="data:image/gif;base64,`+encoded+`">`, 2),
			strings.Repeat(`<img src="cid:`+cid+`1@example.com">`, 2), 1},
		{"two", `<img src="data:image/gif;base64,` + encoded + `"><img src="data:image/png;base64,AAAA">`,
			`<img src="cid:` + cid + `1@example.com"><img src="cid:` + cid + `2@example.com">`, 2},
		{"attribute that only ends in src", `<img data-src="data:image/gif;base64,` + encoded + `">`, "", 0},
		{"no image", `<img src="data:text/html,x">`, "", 0},
		{"no base64", `<img src="data:image/png;base64,***">`, "", 0},
		{"nothing in it", `<img src="data:image/png;base64,">`, "", 0},
		{"injected type", `<img src="data:image/png&#13;&#10;X-Evil: 1;base64,AAAA">`, "", 0},
		{"in a link", `<a href="data:image/png;base64,AAAA">x</a>`, "", 0},
		{"in a comment", `<!-- <img src="data:image/png;base64,AAAA"> -->`, "", 0},
		{"another tag", `<imgx src="data:image/png;base64,AAAA">`, "", 0},
		{"a tag cut short", `<p>x</p><img src="data:image/png;base64,AAAA`, "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "t",
				HTML: row.html})
			m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
			if err != nil {
				t.Fatal(err)
			}
			parts := readParts(t, m.Header.Get("Content-Type"), m.Body)
			want := row.want
			if want == "" {
				want = row.html
			}
			if diff := cmp.Diff(want, string(parts[1].body)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(parts) != 2+row.images {
				t.Errorf("%d images, want %d", len(parts)-2, row.images)
			}
		})
	}
}

func TestPreviewText(t *testing.T) {
	for _, row := range []struct{ name, html, before, after string }{
		{"body", `<html><BODY style="x">a`, `<html><BODY style="x">`, "a"},
		{"body in a comment and a script", `<!-- <body> --><script>"<body>"</script><body>a`,
			`<!-- <body> --><script>"<body>"</script><body>`, "a"},
		{"no body", `<html><head><title>t</title></head><p>a`, `<html><head><title>t</title></head>`, "<p>a"},
		{"only a doctype", `<!doctype html><p>a`, `<!doctype html>`, "<p>a"},
		{"a fragment", `<p>a`, "", "<p>a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, HTML: row.html,
				PreviewText: "1 < 2\r\n & \"so\""})
			m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
			if err != nil {
				t.Fatal(err)
			}
			parts := readParts(t, m.Header.Get("Content-Type"), m.Body)
			if text := string(parts[0].body); strings.Contains(text, "1 <") {
				t.Errorf("the preview is in the text: %q", text)
			}
			got := string(parts[1].body)
			if !strings.HasPrefix(got, row.before+`<div style="display:none;`) ||
				!strings.HasSuffix(got, "</div>"+row.after) ||
				!strings.Contains(got, `>1 &lt; 2 &amp; &#34;so&#34;&#847;&zwnj;`) {
				t.Errorf("html is %q", got)
			}
		})
	}
}

// TestTheMethodOfAnInvitationIsThatOfItsFile: RFC 5545 section 8.1 asks for the same one in both places.
func TestTheMethodOfAnInvitationIsThatOfItsFile(t *testing.T) {
	for file, want := range map[string]string{
		"BEGIN:VCALENDAR\r\nMETHOD:CANCEL\r\nEND:VCALENDAR\r\n":        "method=CANCEL",
		"BEGIN:VCALENDAR\nmethod;x=y: reply \nEND:VCALENDAR\n":         "method=REPLY",
		"BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n":       "method=REQUEST",
		"BEGIN:VCALENDAR\r\nSUMMARY:a\r\n METHOD:X\r\nEND:VCALENDAR\n": "method=REQUEST",
	} {
		c := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "see",
			Attachments: []message.Attachment{{Content: []byte(file), ContentType: "text/calendar; method=REQUEST"}}})
		if !strings.Contains(string(c.Raw), "Content-Type: text/calendar; "+want+"; charset=utf-8") {
			t.Errorf("%q is sent without %s:\n%s", file, want, c.Raw)
		}
	}
}
