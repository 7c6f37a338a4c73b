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
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/server/peers"
)

// smallBody is the size limit of bodies, except of routes made by large.
const smallBody = 1 << 20

const (
	memoryWait  = time.Minute     // timeout of waiting for the memory of a body
	memoryRetry = 5 * time.Second // Retry-After of such a timeout
)

// paceTime is the time over which the speed of a sender is measured, and its longest pause.
const paceTime = 30 * time.Second

// Bounds of provider webhook bodies. A provider has few requests under way together.
const (
	publicBodies   = 256 // at once
	publicOfSender = 16  // at once of one address
)

// bodyMemory bounds the memory and the work of bodies.
type bodyMemory struct {
	submits *peers.Pool         // Options.BodyMemory bytes, for clients with a token
	public  *peers.Pool         // Options.PublicBodyMemory bytes, for all others
	slots   *semaphore.Weighted // one for each processor
	pace    peers.Pace
	refused *prometheus.CounterVec
}

func newBodyMemory(o Options, refused *prometheus.CounterVec) *bodyMemory {
	return &bodyMemory{
		submits: peers.NewPool(peers.Shares{Size: o.BodyMemory, First: o.maxSubmit()}),
		public: peers.NewPool(peers.Shares{Size: o.PublicBodyMemory, First: provider.MaxBody,
			Bodies: publicBodies, PerOwner: publicOfSender}),
		slots: semaphore.NewWeighted(int64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))),
		pace:  peers.PaceOf(o.MinRate, paceTime), refused: refused,
	}
}

// capacity is the memory of a body, held until its request is answered.
type capacity struct {
	of     *bodyMemory
	memory *peers.Body
	large  bool // its work needs a slot
	slot   bool // one of bodyMemory.slots is held
}

// begin begins the body of a client with a token. Accounts share its memory: a bound token counts as its
// account, any other token on its own.
func (b *bodyMemory) begin(c echo.Context, limit int64) (*capacity, error) {
	g := grantOf(c.Request().Context())
	owner := "token " + g.TokenID + g.Person
	if g.Account != "" {
		owner = "account " + g.Account
	}
	return b.from(b.submits, owner, c, limit)
}

// beginPublic begins the body of a client without a token. Its memory is shared by address.
func (b *bodyMemory) beginPublic(c echo.Context, limit int64) (*capacity, error) {
	return b.from(b.public, peers.Network(peers.Of(c.Request()).Addr).String(), c, limit)
}

func (b *bodyMemory) from(pool *peers.Pool, owner string, c echo.Context, limit int64) (*capacity,
	error) {
	memory, err := pool.Begin(owner)
	if err != nil {
		return nil, b.busy(c, err)
	}
	size := c.Request().ContentLength
	return &capacity{of: b, memory: memory, large: size < 0 && limit > smallBody || size > smallBody}, nil
}

// busy refuses a body for which there is no memory. The rest of it is not read.
func (b *bodyMemory) busy(c echo.Context, err error) error {
	b.refused.WithLabelValues("memory").Inc()
	c.Response().Header().Set(echo.HeaderConnection, "close")
	busy := fault.Wrap(err, fault.Unavailable, "Busy", "Too many large requests at the same time. Try "+
		"again shortly")
	busy.RetryAfter = memoryRetry
	return busy
}

// acquire waits until a slot is free; each processor has one. The work on a body takes memory of up to two
// and a half times its size (files decoded, the message composed and compressed). More bodies than processors
// would all be slower.
func (m *capacity) acquire(ctx context.Context) error {
	if m == nil || !m.large || m.slot {
		return nil
	}
	if err := m.of.slots.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for other large bodies: %w", err) // the client is gone
	}
	m.slot = true
	return nil
}

// release gives back the memory and the slot.
func (m *capacity) release() {
	if m == nil {
		return
	}
	if m.slot {
		m.of.slots.Release(1)
	}
	m.memory.Release()
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
	body := m.arrive(c, http.MaxBytesReader(c.Response(), r.Body, limit), limit)
	if r.ContentLength >= 0 && r.ContentLength <= smallBody {
		text, err := readAll(body, make([]byte, 0, max(512, min(r.ContentLength+1, window))), r.ContentLength)
		if err != nil {
			return document{}, readFault(err, limit)
		}
		return newDocument(text), nil
	}
	return newStream(body, r.ContentLength, longValue, func() error { return m.acquire(r.Context()) }), nil
}

// closeBody ends the reading of a body and takes a slot. Its error is why the body is no JSON text.
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
	return m.acquire(c.Request().Context())
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

// grow quadruples a full slice, but not beyond the declared length. So a slice never has more than four times
// the bytes that arrived, and a large body is copied few times. An arrival takes as much memory.
func grow(text []byte, promised int64) []byte {
	size := 4 * cap(text)
	if promised >= int64(len(text)) && promised < int64(size) {
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

func liftDeadline(c echo.Context) {
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) // as above
}

func readFault(err error, limit int64) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err // there was no memory
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(limit)
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return echo.NewHTTPError(http.StatusRequestTimeout, "The body took too long to arrive")
	}
	return fault.Wrap(err, fault.Invalid, "", "The body ended too early")
}

func tooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "", "Payload content length greater than maximum allowed: %d", limit)
}
