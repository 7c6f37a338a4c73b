package message_test

import (
	"bytes"
	"testing"

	"github.com/postroom/postroom/internal/message"
)

func BenchmarkComposeSmall(b *testing.B) {
	d := message.Draft{
		From: ann, To: []message.Address{bob}, Date: noon, Subject: "Your order has been shipped",
		Text: "Hello Bob,\n\nyour order is on its way.\n",
		HTML: "<html><body><p>Hello Bob,</p><p>your order is on its way.</p></body></html>",
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := message.Compose(d, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkComposeMegabyte(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	d := message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "See attachment\n",
		Attachments: []message.Attachment{{Filename: "a.bin", Content: content}}}
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := message.Compose(d, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromRawMegabyte(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	raw := compose(b, message.Draft{From: ann, To: []message.Address{bob}, Date: noon,
		Attachments: []message.Attachment{{Content: content}}}).Raw
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := message.FromRaw(raw, override, nil); err != nil {
			b.Fatal(err)
		}
	}
}
