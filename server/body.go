package server

import (
	"context"
	"errors"
	"fmt"
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

// How long a large body waits for others to be done with, and when one that waited in vain may come again.
const (
	roomWait  = 60 * time.Second
	roomAgain = 5 * time.Second
)

// room is the memory of a large body, until its request is answered. Nil is that of a small one, for which none is reserved: their number is
// bounded by that of the connections.
type room struct {
	s    *Server
	size int64
	turn bool // it is being worked on
}

// room reserves memory for a body that is large.
func (s *Server) room(c echo.Context, limit int64) (*room, error) {
	size := c.Request().ContentLength
	if size < 0 {
		size = limit
	}
	if size <= smallBody || size > limit {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), roomWait)
	defer cancel()
	if err := s.bodies.Acquire(ctx, size); err != nil {
		busy := fault.Wrap(err, fault.Unavailable, "Busy", "Too many large messages at once")
		busy.RetryAfter = roomAgain
		return nil, busy
	}
	return &room{s: s, size: size}, nil
}

// takeTurn waits until a body that was read can be worked on, if that has not happened yet. That takes up to two and a half times its memory more (files decoded, the message
// composed and compressed) and a processor all the while, so to work on more of them than there are processors would get none done sooner.
func (r *room) takeTurn(ctx context.Context) error {
	if r == nil || r.turn {
		return nil
	}
	if err := r.s.turns.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for other large bodies: %w", err) // the client is gone
	}
	r.turn = true
	return nil
}

// leave gives back what the body took.
func (r *room) leave() {
	if r == nil {
		return
	}
	if r.turn {
		r.s.turns.Release(1)
	}
	r.s.bodies.Release(r.size)
}

// openBody begins to read the JSON body of a request: a small one whole, of a large one a window. A body that says it is beyond the limit is
// refused unread, and one that turns out to be is cut off there; either way the connection is closed, since what is left on it is of no use.
func openBody(c echo.Context, room *room, limit int64) (document, error) {
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
	return newStream(body, r.ContentLength, longValue, func() error { return room.takeTurn(r.Context()) }), nil
}

// closeBody ends the reading of a body, and waits until what was read can be worked on. Its error is why there is no JSON text.
func closeBody(c echo.Context, room *room, limit int64, d *document) error {
	ended := d.end()
	if err := d.broken(); err != nil {
		return readFault(err, limit)
	}
	switch {
	case d.cut:
		if d.feed != nil {
			c.Response().Header().Set(echo.HeaderConnection, "close") // as much as the client likes is left on it
		}
		return nil
	case !ended:
		return fault.New(fault.Invalid, "", "Invalid request payload JSON format")
	}
	return room.takeTurn(c.Request().Context())
}

// readAll reads a body to its end, into a slice that may hold its beginning. The slice grows with what arrives rather than with what was promised.
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
