package batch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/render"
)

// Letter is what messages have in common.
type Letter struct {
	Source  render.Source  `json:"source"`
	Options render.Options `json:"options"`
	Plain   bool           `json:"plain,omitempty"`  // the words go as they are
	Strict  bool           `json:"strict,omitempty"` // params that the words name and a slip lacks are an error

	Account    render.Person `json:"account"`              // who sends, as templates are told
	ServiceURL string        `json:"serviceUrl,omitempty"` // as templates are told
	Locale     string        `json:"locale,omitempty"`     // how numbers and dates are written; empty: en
	TZ         string        `json:"tz,omitempty"`         // time zone of dates; empty: UTC

	From        message.Address      `json:"from"`
	ReplyTo     []message.Address    `json:"replyTo,omitempty"`
	Headers     []message.Header     `json:"headers,omitempty"`
	Attachments []message.Attachment `json:"attachments,omitempty"`
}

// Pack gives the letter as it is stored, and the name of it: 22 characters. The files stand behind the rest as they are, for base64 of what is
// compressed already takes a third more.
func (l Letter) Pack() (name string, packed []byte, err error) {
	files := l.Attachments
	head := folded{Letter: l, Files: make([]int, len(files))}
	head.Attachments = slices.Clone(files)
	room := 0
	for i, f := range files {
		head.Files[i], head.Attachments[i].Content = len(f.Content), nil
		room += len(f.Content)
	}
	words, err := json.Marshal(head)
	if err != nil {
		return "", nil, fmt.Errorf("pack letter: %w", err)
	}
	packed = binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(words)+room), uint64(len(words)))
	packed = append(packed, words...)
	for _, f := range files {
		packed = append(packed, f.Content...)
	}
	sum := sha256.Sum256(packed)
	return base64.RawURLEncoding.EncodeToString(sum[:16]), packed, nil
}

// folded is a letter without the octets of its files.
type folded struct {
	Letter
	Files []int `json:"files,omitempty"` // how many octets each file has
}

// Unpack reads a letter that Pack wrote. Its files are parts of packed.
func Unpack(packed []byte) (Letter, error) {
	size, n := binary.Uvarint(packed)
	if n <= 0 || size > uint64(len(packed)-n) {
		return Letter{}, errors.New("unpack letter: it is cut off")
	}
	words, rest := packed[n:n+int(size)], packed[n+int(size):]
	var head folded
	if err := json.Unmarshal(words, &head); err != nil {
		return Letter{}, fmt.Errorf("unpack letter: %w", err)
	}
	if len(head.Files) != len(head.Attachments) {
		return Letter{}, errors.New("unpack letter: a file is missing")
	}
	for i, octets := range head.Files {
		if octets < 0 || octets > len(rest) {
			return Letter{}, errors.New("unpack letter: it is cut off")
		}
		head.Attachments[i].Content, rest = rest[:octets:octets], rest[octets:]
	}
	return head.Letter, nil
}

// Slip is what a message has of its own.
type Slip struct {
	To         []message.Address `json:"to,omitempty"`
	Cc         []message.Address `json:"cc,omitempty"`
	InReplyTo  string            `json:"inReplyTo,omitempty"`
	References []string          `json:"references,omitempty"`
	Params     json.RawMessage   `json:"params,omitempty"` // an object; empty: none
	Date       int64             `json:"date"`             // Unix milliseconds, of the Date header
}
