package message_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/postroom/postroom/internal/message"
)

// TestLargeMailsAreWrittenOnce checks doc.go's promise about memory: one buffer of the size of the result, in
// addition to the input.
func TestLargeMailsAreWrittenOnce(t *testing.T) {
	file := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	d := message.Draft{From: ann, To: []message.Address{bob}, Date: noon, Text: "t",
		Attachments: []message.Attachment{{Content: file[:len(file)/2]}, {Content: file[len(file)/2:]}}}
	raw := compose(t, d).Raw
	for _, row := range []struct {
		name string
		do   func() error
	}{
		{"Compose", func() error { _, err := message.Compose(d, nil); return err }},
		{"FromRaw", func() error { _, _, err := message.FromRaw(raw, override, nil); return err }},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := row.do()
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(len(raw)+len(raw)/20); got > most {
			t.Errorf("%s allocates %d bytes for a mail of %d", row.name, got, len(raw))
		}
	}
}
