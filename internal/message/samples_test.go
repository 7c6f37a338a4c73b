package message_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// noon is when all sample emails are written.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))

// steady is a source of randomness that always gives the same.
func steady() io.Reader { return rand.NewChaCha8([32]byte{1, 2, 3}) }

var (
	ann = message.Address{Name: "Ann Example", Address: "ann@example.com"}
	bob = message.Address{Address: "bob@example.net"}
)

// gif is the smallest picture there is.
var gif = []byte("GIF89a\x01\x00\x01\x00\x00\xff\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;")

type sample struct {
	name  string
	draft message.Draft
}

// samples are drafts for every corner of composing. The golden files, the Python check and the round trip all
// read this table.
func samples() []sample {
	draft := func(change func(d *message.Draft)) message.Draft {
		d := message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Subject: "Hello", Text: "Hello Bob\n"}
		change(&d)
		return d
	}
	return []sample{
		{"text", draft(func(d *message.Draft) {})},
		{"empty", draft(func(d *message.Draft) { d.Text, d.Subject = "", "" })},
		{"html-only", draft(func(d *message.Draft) {
			d.Text = ""
			d.HTML = `<html><head><title>T</title><style>p{}</style></head><body><h1>News</h1><p class="x">One &amp; two</p><p>See <a href="https://example.com/a">this page</a>.</p><ul><li>first</li><li>second</li></ul></body></html>`
		})},
		{"alternative", draft(func(d *message.Draft) { d.HTML = "<p>Hello <b>Bob</b></p>" })},
		{"full-tree", draft(func(d *message.Draft) {
			d.HTML = `<p>Hello <img src="cid:logo%40x"> <img src='data:image/gif;base64,R0lGODlhAQABAAD/ACwAAAAAAQABAAACADs='></p>`
			d.Attachments = []message.Attachment{
				{Filename: "logo.gif", Content: gif, CID: "logo@x"},
				{Filename: "invite.ics", Content: []byte("BEGIN:VCALENDAR\nMETHOD:REQUEST\nEND:VCALENDAR\n"),
					ContentType: "text/calendar; method=REQUEST"},
				{Filename: "report.pdf", Content: []byte("%PDF-1.7 not really")},
			}
		})},
		{"preview", draft(func(d *message.Draft) {
			d.HTML = "<!doctype html><html><head></head><body bgcolor=\"white\">\n<p>Hello</p></body></html>"
			d.PreviewText = "50% off <today> & \"tomorrow\"\nonly"
		})},
		{"only-bcc", draft(func(d *message.Draft) { d.To, d.Bcc = nil, []message.Address{bob} })},
		{"only-attachment", draft(func(d *message.Draft) {
			d.Text = ""
			d.Attachments = []message.Attachment{{Filename: "a.bin", Content: []byte{0, 1, 2, 255}}}
		})},
		{"empty-attachment", draft(func(d *message.Draft) {
			d.Attachments = []message.Attachment{
				{Filename: "nothing.txt"}}
		})},
		{"unnamed-attachments", draft(func(d *message.Draft) {
			d.Attachments = []message.Attachment{{Content: []byte("x"), ContentType: "image/png"},
				{Content: []byte("y")}}
		})},
		{"message-attachment", draft(func(d *message.Draft) {
			d.Attachments = []message.Attachment{
				{Content: []byte("From: a@example.com\nSubject: inner\n\nInner text\n"), ContentType: "message/rfc822"}}
		})},
		{"message-attachment-8bit", draft(func(d *message.Draft) {
			d.Attachments = []message.Attachment{
				{Filename: "b.eml", Content: []byte(
					"Subject: inner\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n")}}
		})},
		{"message-attachment-signed", draft(func(d *message.Draft) {
			d.Attachments = []message.Attachment{
				{Filename: "c.eml", Content: []byte(
					"DKIM-Signature: v=1; d=example.net; b=x\r\nSubject: inner\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n")}}
		})},
		{"subject-japanese", draft(func(d *message.Draft) { d.Subject = strings.Repeat("日本語の件名", 20) })},
		{"subject-umlaut", draft(func(d *message.Draft) {
			d.Subject = "Grüße aus Köln, with a long plain tail that has to be folded somewhere near the end"
		})},
		{"subject-long-ascii", draft(func(d *message.Draft) { d.Subject = strings.Repeat("word ", 60) + "end" })},
		{"subject-one-long-word", draft(func(d *message.Draft) { d.Subject = strings.Repeat("x", 10240) })},
		{"subject-literal-encoded-word",
			draft(func(d *message.Draft) { d.Subject = "What does =?utf-8?q?x?= mean" })},
		{"subject-blanks", draft(func(d *message.Draft) {
			d.Subject = "  two before,  two  between, tab\there, two after  "
		})},
		{"subject-emoji", draft(func(d *message.Draft) { d.Subject = strings.Repeat("👩‍👩‍👧‍👦🇩🇪é", 12) })},
		{"names", draft(func(d *message.Draft) {
			d.To = []message.Address{
				{Name: `Doe, John "Jo\" Q.`, Address: "john@example.com"},
				{Name: "Jürgen Müller", Address: "j.mueller@example.com"},
				{Name: "=?utf-8?q?x?=", Address: "literal@example.com"}, {Name: strings.Repeat("Very Long Name ", 12),
					Address: "long@example.com"},
				{Name: strings.Repeat("長", 80), Address: "naga@example.com"},
				{Name: "a@b.example", Address: "at@example.com"},
				{Name: "(comment)", Address: "comment@example.com"}, {Name: "Two  Blanks", Address: "two@example.com"},
			}
		})},
		{"many-recipients", draft(func(d *message.Draft) {
			for i := range 100 {
				d.Cc = append(d.Cc, message.Address{Name: fmt.Sprint("Number ", i),
					Address: fmt.Sprintf("number%d@example.org", i)})
			}
		})},
		{"international-domain", draft(func(d *message.Draft) {
			d.From = message.Address{Name: "Jörg", Address: "joerg@bücher.example"}
			d.To = []message.Address{{Address: "x@例え.テスト"}}
		})},
		{"smtputf8", draft(func(d *message.Draft) {
			d.To = []message.Address{{Name: "用户", Address: "用户@例え.テスト"}}
		})},
		{"filenames", draft(func(d *message.Draft) {
			for _, name := range []string{
				"плановый отчёт.pdf", strings.Repeat("очень длинное имя ", 12) + ".docx",
				strings.Repeat("long ascii name ", 9) + "end.txt",
				`C:\Users\ann\naïve "quoted".txt`, "../../etc/passwd", "emoji 👩‍👩‍👧.png", "semi;colon,comma.txt",
				"=?utf-8?q?x?=.txt",
				"per%20cent.txt", "don't.txt",
			} {
				d.Attachments = append(d.Attachments, message.Attachment{Filename: name, Content: []byte(name)})
			}
		})},
		{"text-german", draft(func(d *message.Draft) {
			d.Text = "Grüße aus Köln = schön \t \n.\nFrom here on\n..\n" + strings.Repeat("lang ", 400) +
				"\nEnde ohne Zeilenende"
		})},
		{"text-japanese", draft(func(d *message.Draft) { d.Text = strings.Repeat("こんにちは、世界。\n", 30) })},
		{"text-dots", draft(func(d *message.Draft) { d.Text = ".\nFrom me\n.hidden\n" })},
		{"text-long-line", draft(func(d *message.Draft) {
			d.Text = strings.Repeat("y", 5000) + "\nFrom " +
				strings.Repeat(".", 300)
		})},
		{"text-control", draft(func(d *message.Draft) { d.Text = "a\x00b\x07c\rd\r\ne\n\rf" })},
		{"thread", draft(func(d *message.Draft) {
			d.MessageID, d.InReplyTo = "own-id@example.com", "<last@example.org>"
			for i := range 30 {
				d.References = append(d.References, fmt.Sprintf("<reference-%d@example.org>", i))
			}
			d.ReplyTo = []message.Address{{Name: "Support", Address: "support@example.com"}}
			d.Sender = message.Address{Address: "robot@example.com"}
		})},
		{"headers", draft(func(d *message.Draft) {
			d.Headers = []message.Header{
				{Name: "List-Unsubscribe", Value: "<https://example.com/u/" + strings.Repeat("t", 120) +
					">, <mailto:u@example.com?subject=unsubscribe>"},
				{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
				{Name: "X-Note", Value: "Grüße"}, {Name: "X-Empty", Value: ""},
				{Name: "X-A-Header-Name-Of-58-Characters-Which-Is-Near-The-Longest", Value: "Ä" + strings.Repeat("ö",
					60)},
				{Name: "Feedback-ID", Value: "campaign:customer:mail:sender"},
				{Name: "Auto-Submitted", Value: "auto-generated"},
			}
		})},
	}
}

func compose(t testing.TB, d message.Draft) *message.Composed {
	t.Helper()
	c, err := message.Compose(d, steady())
	if err != nil {
		t.Fatalf("Compose: %v", err)
	}
	return c
}

// header gives the bytes before the first empty line.
func header(raw []byte) string {
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	return string(head) + "\r\n"
}
