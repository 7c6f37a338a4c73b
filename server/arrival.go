package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/server/peers"
)

// Memory is reserved in steps, and not at all for the first bytes: most bodies are short.
const (
	freeBytes  = 8 << 10
	memoryStep = 64 << 10
)

// arrival reads a body. It takes memory as bytes arrive, and ends if they arrive too slowly.
type arrival struct {
	body    io.Reader
	memory  *capacity
	c       echo.Context
	control *http.ResponseController
	window  peers.Window
	got     int64
	paid    int64 // bytes for which there is memory, as for a buffer that grows like grow
	most    int64 // bytes of the body, as declared
}

// arrive returns a reader of a request's body.
func (m *capacity) arrive(c echo.Context, body io.Reader, limit int64) io.Reader {
	a := &arrival{body: body, memory: m, c: c, control: http.NewResponseController(c.Response()),
		paid: freeBytes, most: c.Request().ContentLength, window: m.of.pace.Window()}
	if a.most < 0 {
		a.most = limit
	}
	if a.most > freeBytes {
		a.extend() // a short body has the deadline of its headers
	}
	return a
}

// extend gives the client the time of a new window, and the answer its time afterwards. Neither can fail on a
// connection of our own server; a recorder in a test has no deadlines to set.
func (a *arrival) extend() {
	until := time.Now().Add(a.memory.of.pace.Every)
	_ = a.control.SetReadDeadline(until)
	_ = a.control.SetWriteDeadline(until.Add(writeTimeout))
}

// Read implements io.Reader.
func (a *arrival) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if a.got += int64(n); a.got > a.paid {
		if failed := a.take(max(memoryStep, min(4*a.got, a.most)-a.paid)); failed != nil {
			return n, failed
		}
	}
	if a.window.Got(n) {
		a.extend()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		a.memory.of.refused.WithLabelValues("slow").Inc()
	}
	return n, err
}

// take takes memory. The time for which it waits is not the client's.
func (a *arrival) take(bytes int64) error {
	ctx, cancel := context.WithTimeout(a.c.Request().Context(), memoryWait)
	defer cancel()
	waited, err := a.memory.memory.Take(ctx, bytes)
	if err != nil {
		return a.memory.of.busy(a.c, err)
	}
	a.paid += bytes
	if waited {
		a.extend()
	}
	return nil
}
