package routing

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/postroom/postroom/provider"
	"github.com/postroom/postroom/smtpsend"
)

// echoing is a content with a header field in front by which a mail provider tells our id of the message with
// each of its events. It stands before the signed part of the header, and the provider takes it off. It
// implements smtpsend.Body.
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

// attach gives a message the field that the provider behind a host wants, if it is one that wants any. A
// message that has such a field of its own keeps it as the only one: two would be one too many for some of
// them.
func attach(ctx context.Context, m smtpsend.Message, host, id string) smtpsend.Message {
	n, known := provider.OfRelay(host)
	if !known || id == "" || m.Body == nil {
		return m
	}
	name, value, wanted := provider.Echo(n, id)
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

// maxHeader is more than relays take.
const maxHeader = 512 << 10

// hasField says whether the header of a content has a field. One that can't be read is said to: sending it
// will tell why.
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
