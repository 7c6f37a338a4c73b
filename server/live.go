package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	// liveEvery is the time between two events.
	liveEvery = time.Second
	// liveTime is how long an answer with events lasts. Browsers automatically ask again, and the token is
	// checked again.
	liveTime = 10 * time.Minute
)

// mediaEvents is the media type of server-sent events.
const mediaEvents = "text/event-stream"

// live is an answer of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html),
// one each second until there are no more or the client leaves. Each has one line of data, which is JSON.
type live struct {
	// next returns a pointer to what the next event says, and whether there are more
	next func(ctx context.Context) (value any, more bool, err error)
}

// send writes the events. An error before the first event is answered.
func (l live) send(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), liveTime)
	defer cancel()
	control := http.NewResponseController(c.Response())
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read; it would end the context
	for {
		value, more, err := l.next(ctx)
		if ctx.Err() != nil && c.Response().Committed {
			return nil
		}
		if err != nil {
			return err
		}
		fillLists(reflect.ValueOf(value).Elem())
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		gone := writeEvent(c, control, text) != nil
		if gone || !more || c.Request().Method == http.MethodHead || !redisdb.Pause(ctx, liveEvery) {
			return nil
		}
	}
}

// writeEvent writes an event immediately. A client that does not read it in time is cut off.
func writeEvent(c echo.Context, control *http.ResponseController, data []byte) error {
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // cannot fail, see arrival.extend
	if h := c.Response().Header(); h.Get(echo.HeaderContentType) == "" {
		h.Set(echo.HeaderContentType, mediaEvents)
		h.Set("X-Accel-Buffering", "no") // proxies would hold it back
	}
	if _, err := fmt.Fprintf(c.Response(), "data: %s\n\n", data); err != nil {
		return err
	}
	return control.Flush()
}
