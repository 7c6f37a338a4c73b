package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// Content is the part that messages share.
type Content struct {
	Source  Source  `json:"source"`
	Options Options `json:"options"`
	Plain   bool    `json:"plain,omitempty"`  // the texts are not a template: they are sent unchanged
	Strict  bool    `json:"strict,omitempty"` // a missing param is an error

	Account    Person `json:"account"`              // the sender, as templates see it
	ServiceURL string `json:"serviceUrl,omitempty"` // the public address, as templates see it
	Locale     string `json:"locale,omitempty"`     // for numbers and dates; defaults to en
	TZ         string `json:"tz,omitempty"`         // time zone of dates; defaults to UTC

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
	Params     json.RawMessage   `json:"params,omitempty"` // an object, or empty
	// the decoded Params, with numbers as json.Number; decoded if nil
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

// params returns the params; all digits of their numbers are kept.
func (p Personalization) params() (any, error) {
	switch {
	case p.Decoded != nil:
		return p.Decoded, nil
	case len(p.Params) == 0:
		return nil, nil
	}
	params, err := decode(p.Params)
	if err != nil {
		return nil, fault.InvalidField("params", "must be an object: %s", err)
	}
	return params, nil
}

// decoders are idle decoders. They accept what encoding/json accepts.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// decode reads an object as encoding/json with UseNumber does, in two thirds of the time. Each message of a
// batch has params, which are read when it is accepted and whenever it is sent.
func decode(raw []byte) (map[string]any, error) {
	d, _ := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := valueOf(d)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, errors.New("it is another value")
	}
	return object, nil
}

// valueOf reads a value. Its depth is bounded by the decoder.
func valueOf(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if object[key], err = valueOf(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return object, err
	case '[':
		array := []any{}
		for d.PeekKind() != ']' {
			one, err := valueOf(d)
			if err != nil {
				return nil, err
			}
			array = append(array, one)
		}
		_, err = d.ReadToken()
		return array, err
	}
	return nil, nil
}

// Person is the sender or the recipient.
type Person struct {
	Name    string
	Address string // their mailbox
}

// Context is the template data that Postroom adds to the caller's.
type Context struct {
	Account    Person // the sender
	Recipient  Person // the recipient of this email
	ServiceURL string // public URL of this Postroom; empty if none

	UnsubscribeURL string // the recipient's own page; empty if none
	PreferencesURL string // likewise

	account, service map[string]any // as Data has them; made if nil
}

// lifted are the params of digests and of mails to subscribers, which templates name without "params." too.
var lifted = [...]string{"campaign", "confirmUrl", "digest", "list", "subscriber"}

// Data returns a template's data: the caller's as params (nil means an empty object), account {email, name},
// service {url} and rcpt {name, address, unsubscribeUrl, preferencesUrl}. Most names are EmailEngine's.
// Unknown values are "", so only the caller's variables can be missing. Params are not copied. Lifted params
// are also outside of params.
func (c Context) Data(params any) map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	if c.account == nil {
		c = c.shared()
	}
	data := map[string]any{
		"params": params, "account": c.account, "service": c.service,
		"rcpt": map[string]any{"name": c.Recipient.Name, "address": c.Recipient.Address,
			"unsubscribeUrl": c.UnsubscribeURL, "preferencesUrl": c.PreferencesURL},
	}
	if own, ok := params.(map[string]any); ok {
		for _, name := range lifted {
			if value, ok := own[name]; ok {
				data[name] = value
			}
		}
	}
	return data
}

// shared is the context of many messages with the same sender.
func (c Context) shared() Context {
	c.account = map[string]any{"email": c.Account.Address, "name": c.Account.Name}
	c.service = map[string]any{"url": c.ServiceURL}
	return c
}

// Choose returns the variant for a locale: the same locale, its language ("de" for "de-AT"), another region
// of the language in the given order, or "".
func Choose(locale string, variants []string) string {
	if len(locale) > 64 { // longer than any valid tag
		return ""
	}
	normal := func(tag string) string { return strings.ToLower(strings.ReplaceAll(tag, "_", "-")) }
	language := func(tag string) string { l, _, _ := strings.Cut(normal(tag), "-"); return l }
	for tag := normal(locale); tag != ""; tag = tag[:max(0, strings.LastIndexByte(tag, '-'))] {
		for _, v := range variants {
			if normal(v) == tag {
				return v
			}
		}
	}
	for _, v := range variants {
		if locale != "" && language(v) == language(locale) {
			return v
		}
	}
	return ""
}
