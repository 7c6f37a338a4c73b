package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/fault"
)

// smallBody is the size limit of bodies, except of routes made by large.
const smallBody = 1 << 20

// slowest is the rate in bytes a second that a client must reach. A slower one blocks a connection.
const slowest = 32 << 10

const (
	memoryWait  = time.Minute     // timeout of waiting for the memory of a large body
	memoryRetry = 5 * time.Second // Retry-After of such a timeout
)

// bodyMemory bounds the memory and the work of large bodies.
type bodyMemory struct {
	memory *semaphore.Weighted // Options.BodyMemory bytes
	turns  *semaphore.Weighted // one for each processor
}

func newBodyMemory(size int64) *bodyMemory {
	return &bodyMemory{
		memory: semaphore.NewWeighted(size),
		turns:  semaphore.NewWeighted(int64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))),
	}
}

// capacity is the memory of a large body, held until its request is answered. It is nil for a small body:
// the number of connections bounds those.
type capacity struct {
	of   *bodyMemory
	size int64
	turn bool // one of bodyMemory.turns is held
}

// reserve waits for the memory of a body. For a small one it returns nil.
func (b *bodyMemory) reserve(c echo.Context, limit int64) (*capacity, error) {
	size := c.Request().ContentLength
	if size < 0 {
		size = limit
	}
	if size <= smallBody || size > limit {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), memoryWait)
	defer cancel()
	if err := b.memory.Acquire(ctx, size); err != nil {
		busy := fault.Wrap(err, fault.Unavailable, "Busy", "Too many large messages at once")
		busy.RetryAfter = memoryRetry
		return nil, busy
	}
	return &capacity{of: b, size: size}, nil
}

// takeTurn waits until one of the turns is free, of which each processor has one. The work on a body takes
// memory of up to two and a half times its size (files decoded, the message composed and compressed). More
// bodies than processors would all be slower.
func (m *capacity) takeTurn(ctx context.Context) error {
	if m == nil || m.turn {
		return nil
	}
	if err := m.of.turns.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for other large bodies: %w", err) // the client is gone
	}
	m.turn = true
	return nil
}

// release gives back the memory and the turn.
func (m *capacity) release() {
	if m == nil {
		return
	}
	if m.turn {
		m.of.turns.Release(1)
	}
	m.of.memory.Release(m.size)
}

// openBody begins to read the JSON body of a request: all of a small one, a window of a large one. If its
// declared length is beyond the limit, it is refused unread; else it is read up to the limit. In both cases
// the connection is closed, because the rest of the body is still on it.
func openBody(c echo.Context, m *capacity, limit int64) (document, error) {
	r := c.Request()
	if err := checkContentType(r.Header.Get(echo.HeaderContentType)); err != nil {
		return document{}, err
	}
	if r.ContentLength > limit {
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return document{}, tooLarge(limit)
	}
	extendDeadlines(c, r.ContentLength, limit)
	body := http.MaxBytesReader(c.Response(), r.Body, limit)
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		text, err := readAll(body, make([]byte, 0, max(512, min(r.ContentLength+1, window))), r.ContentLength)
		if err != nil {
			return document{}, readFault(err, limit)
		}
		return newDocument(text), nil
	}
	return newStream(body, r.ContentLength, longValue, func() error { return m.takeTurn(r.Context()) }), nil
}

// closeBody ends the reading of a body and takes a turn. Its error is why the body is no JSON text.
func closeBody(c echo.Context, m *capacity, limit int64, d *document) error {
	ended := d.end()
	if err := d.broken(); err != nil {
		return readFault(err, limit)
	}
	switch {
	case d.cut:
		if d.feed != nil {
			c.Response().Header().Set(echo.HeaderConnection, "close") // the rest is unbounded
		}
		return nil
	case !ended:
		return fault.New(fault.Invalid, "", "Invalid request payload JSON format")
	}
	return m.takeTurn(c.Request().Context())
}

// readAll appends a body to text, which may hold its beginning. The slice grows with the bytes that arrive,
// not with the declared length.
func readAll(body io.Reader, text []byte, promised int64) ([]byte, error) {
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			text = grow(text, promised)
		}
	}
}

// grow quadruples a full slice, or sets it to the declared length once a sixteenth of that has arrived. So a
// large body is copied few times, and its slice has the right size.
func grow(text []byte, promised int64) []byte {
	size := 4 * cap(text)
	if promised >= int64(len(text)) && int64(4*size) > promised {
		size = int(promised) + 1
	}
	return append(make([]byte, 0, size), text...)
}

func checkContentType(value string) error {
	if value == "" || value == "application/json" {
		return nil
	}
	media, _, err := mime.ParseMediaType(value)
	if err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") &&
		strings.HasSuffix(media, "+json")) {
		return nil
	}
	return echo.NewHTTPError(http.StatusUnsupportedMediaType, "The body must be application/json")
}

// extendDeadlines extends the server's deadlines, which are for small bodies, by the time that a client at
// the rate slowest needs.
func extendDeadlines(c echo.Context, size, limit int64) {
	if size < 0 {
		size = limit
	}
	if size <= smallBody {
		return
	}
	until := time.Now().Add(readTimeout + time.Duration(size/slowest)*time.Second)
	control := http.NewResponseController(c.Response())
	// Neither can fail on a connection of our own server; a recorder in a test has no deadlines to set.
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until.Add(writeTimeout))
}

// liftDeadline removes the deadline of an answer.
func liftDeadline(c echo.Context) {
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) // as above
}

func readFault(err error, limit int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(limit)
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return echo.NewHTTPError(http.StatusRequestTimeout, "The body took too long to arrive")
	}
	return fault.Wrap(err, fault.Invalid, "", "The body ended before its time")
}

func tooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "", "Payload content length greater than maximum allowed: %d", limit)
}
