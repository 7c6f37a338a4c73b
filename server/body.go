package server

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/fault"
)

// Bodies of every route but submit are small; the message limit says how large a submit may be.
const smallBody = 1 << 20

// slowest is how many bytes a second a client must send: less is a connection held open for its own sake.
const slowest = 32 << 10

// roomWait is how long a large body waits for others to be done with.
const roomWait = 5 * time.Second

// room reserves memory for a large body until the request is answered. Small ones need none reserved: their number is bounded by that of
// the connections.
func (s *Server) room(c echo.Context, limit int64) (release func(), err error) {
	size := c.Request().ContentLength
	if size < 0 {
		size = limit
	}
	if size <= smallBody || size > limit {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), roomWait)
	defer cancel()
	if err := s.bodies.Acquire(ctx, size); err != nil {
		busy := fault.Wrap(err, fault.Unavailable, "Busy", "Too many large messages at once")
		busy.RetryAfter = roomWait
		return nil, busy
	}
	return func() { s.bodies.Release(size) }, nil
}

// readBody reads the JSON body of a request. A body that says it is beyond the limit is refused unread, and one that turns out to be is
// cut off there; either way the connection is closed, since what is left on it is of no use.
func readBody(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if err := checkContentType(r.Header.Get(echo.HeaderContentType)); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return nil, tooLarge(limit)
	}
	extendDeadlines(c, r.ContentLength, limit)
	text, err := readAll(http.MaxBytesReader(c.Response(), r.Body, limit), r.ContentLength)
	if err != nil {
		return nil, readFault(err, limit)
	}
	return text, nil
}

// readAll reads a body into one slice, which grows with what arrives rather than with what was promised: a thousand clients that
// announce 30 MB and send nothing must not cost 30 GB.
func readAll(body io.Reader, promised int64) ([]byte, error) {
	text := make([]byte, 0, max(512, min(promised+1, 64<<10)))
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

// grow quadruples a full slice, or takes it to the promised length once a sixteenth of that has come, so that a large body is copied few
// times and ends without slack.
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
	if err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return nil
	}
	return echo.NewHTTPError(http.StatusUnsupportedMediaType, "The body must be application/json")
}

// extendDeadlines gives a large body the time that a slow but honest client needs. The server's own deadlines suit small ones.
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

// liftDeadline lets an answer take as long as it takes.
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
