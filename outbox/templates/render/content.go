package render

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/postroom/postroom/internal/message"
)

// Content is the part that messages share.
type Content struct {
	Source  Source  `json:"source"`
	Options Options `json:"options"`
	Plain   bool    `json:"plain,omitempty"`  // the words are not a template: they are sent unchanged
	Strict  bool    `json:"strict,omitempty"` // a missing param is an error

	Account    Person `json:"account"`              // the sender, as templates see it
	ServiceURL string `json:"serviceUrl,omitempty"` // the public address, as templates see it
	Locale     string `json:"locale,omitempty"`     // of numbers and dates; empty: en
	TZ         string `json:"tz,omitempty"`         // time zone of dates; empty: UTC

	From        message.Address      `json:"from"`
	ReplyTo     []message.Address    `json:"replyTo,omitempty"`
	Headers     []message.Header     `json:"headers,omitempty"`
	Attachments []message.Attachment `json:"attachments,omitempty"`
}

// Personalization is the part of one message.
type Personalization struct {
	To         []message.Address `json:"to,omitempty"`
	Cc         []message.Address `json:"cc,omitempty"`
	InReplyTo  string            `json:"inReplyTo,omitempty"`
	References []string          `json:"references,omitempty"`
	Params     json.RawMessage   `json:"params,omitempty"` // an object; empty: none
	// what Params decode to, with numbers as json.Number; nil: they are decoded
	Decoded map[string]any `json:"-"`
	Date    int64          `json:"date"` // Unix milliseconds, of the Date header
}

// Pack returns the content as it is stored, and its name: 22 characters made of its hash. Files are appended
// as raw bytes, because base64 takes a third more even after compression.
func (c Content) Pack() (name string, packed []byte, err error) {
	files := c.Attachments
	head := packedHead{Content: c, Files: make([]int, len(files))}
	head.Attachments = slices.Clone(files)
	size := 0
	for i, f := range files {
		head.Files[i], head.Attachments[i].Content = len(f.Content), nil
		size += len(f.Content)
	}
	words, err := json.Marshal(head)
	if err != nil {
		return "", nil, fmt.Errorf("pack shared content: %w", err)
	}
	packed = binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(words)+size), uint64(len(words)))
	packed = append(packed, words...)
	for _, f := range files {
		packed = append(packed, f.Content...)
	}
	sum := sha256.Sum256(packed)
	return base64.RawURLEncoding.EncodeToString(sum[:16]), packed, nil
}

// packedHead is a content without the bytes of its files.
type packedHead struct {
	Content
	Files []int `json:"files,omitempty"` // size of each file
}

// Unpack reads a content that Pack wrote. Its files are slices of packed.
func Unpack(packed []byte) (Content, error) {
	size, n := binary.Uvarint(packed)
	if n <= 0 || size > uint64(len(packed)-n) {
		return Content{}, errors.New("unpack shared content: it is cut off")
	}
	words, rest := packed[n:n+int(size)], packed[n+int(size):]
	var head packedHead
	if err := json.Unmarshal(words, &head); err != nil {
		return Content{}, fmt.Errorf("unpack shared content: %w", err)
	}
	if len(head.Files) != len(head.Attachments) {
		return Content{}, errors.New("unpack shared content: a file is missing")
	}
	for i, octets := range head.Files {
		if octets < 0 || octets > len(rest) {
			return Content{}, errors.New("unpack shared content: it is cut off")
		}
		head.Attachments[i].Content, rest = rest[:octets:octets], rest[octets:]
	}
	return head.Content, nil
}
