package letter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/postroom/postroom/mailtemplate"
	"github.com/postroom/postroom/message"
)

// Letter is what messages have in common.
type Letter struct {
	Source  mailtemplate.Source  `json:"source"`
	Options mailtemplate.Options `json:"options"`
	Plain   bool                 `json:"plain,omitempty"`  // the words go as they are
	Strict  bool                 `json:"strict,omitempty"` // params that the words name and a slip lacks are an error

	Account    mailtemplate.Person `json:"account"`              // who sends, as templates are told
	ServiceURL string              `json:"serviceUrl,omitempty"` // as templates are told
	Locale     string              `json:"locale,omitempty"`     // how numbers and dates are written; empty: en
	TZ         string              `json:"tz,omitempty"`         // time zone of dates; empty: UTC

	From        message.Address      `json:"from"`
	ReplyTo     []message.Address    `json:"replyTo,omitempty"`
	Headers     []message.Header     `json:"headers,omitempty"`
	Attachments []message.Attachment `json:"attachments,omitempty"`
}

// Pack gives the letter as it is stored, and the name of it: 22 characters.
func (l Letter) Pack() (name string, packed []byte, err error) {
	packed, err = json.Marshal(l)
	if err != nil {
		return "", nil, fmt.Errorf("pack letter: %w", err)
	}
	sum := sha256.Sum256(packed)
	return base64.RawURLEncoding.EncodeToString(sum[:16]), packed, nil
}

// Unpack reads a letter that Pack wrote.
func Unpack(packed []byte) (Letter, error) {
	var l Letter
	if err := json.Unmarshal(packed, &l); err != nil {
		return l, fmt.Errorf("unpack letter: %w", err)
	}
	return l, nil
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
