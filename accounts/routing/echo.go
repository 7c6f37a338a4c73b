package routing

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
)

// echoing is a content with a header field in front that has our proof of the message. The mail provider
// removes the field and returns the proof with each of its events. The field is before the signed part of
// the header. echoing implements smtpsend.Body.
type echoing struct {
	smtpsend.Body
	field string
}

// Size implements smtpsend.Body.
func (e echoing) Size() int64 { return int64(len(e.field)) + e.Body.Size() }

// Open implements smtpsend.Body.
func (e echoing) Open(ctx context.Context) (io.ReadCloser, error) {
	content, err := e.Body.Open(ctx)
	if err != nil {
		return nil, err
	}
	return prefixed{io.MultiReader(strings.NewReader(e.field), content), content}, nil
}

// prefixed reads more than it closes.
type prefixed struct {
	io.Reader
	io.Closer
}

// attach adds the field of the provider behind a host, if it has one. A message that has such a field is not
// changed: some providers accept only one.
func attach(ctx context.Context, m smtpsend.Message, host string) smtpsend.Message {
	proof := m.Labels.Proof
	n, known := provider.OfRelay(host)
	if !known || proof == nil || m.Body == nil {
		return m
	}
	name, value, wanted := provider.Echo(n, proof())
	if !wanted || hasField(ctx, m.Body, name) {
		return m
	}
	field := name + ": " + value + "\r\n"
	if whole, inMemory := m.Body.(smtpsend.Bytes); inMemory {
		m.Body = append(append(make(smtpsend.Bytes, 0, len(field)+len(whole)), field...), whole...)
		return m
	}
	m.Body = echoing{m.Body, field}
	return m
}

// maxHeader is more than relays accept.
const maxHeader = 512 << 10

// hasField reports whether the header of a content has a field. It returns true for a content that can't be
// read: sending it will return the error.
func hasField(ctx context.Context, b smtpsend.Body, name string) bool {
	content, err := b.Open(ctx)
	if err != nil {
		return true
	}
	defer content.Close() //nolint:errcheck // it was read
	lines := bufio.NewReader(io.LimitReader(content, maxHeader))
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull { //nolint:errorlint // the very sentinel
			return false
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return false
		}
		if len(line) > len(name) && line[len(name)] == ':' && strings.EqualFold(string(line[:len(name)]), name) {
			return true
		}
	}
}
