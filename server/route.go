package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// route is one row of the table: what it is called by, who may call it, and what answers.
type route struct {
	method, path string // path as OpenAPI writes it: /v1/outbox/{queueId}
	right        right
	id, summary  string // for the OpenAPI document; no id: not in it
	limit        int64  // of the body, in bytes; 0: smallBody
	long         bool   // the work grows with the outbox: the answer has as long as it takes
	input        reflect.Type
	output       reflect.Type
	bind         func(s *Server, r route) echo.HandlerFunc
}

// right is what a caller needs to be let in.
type right struct {
	public bool      // anybody: no token is asked for
	scope  api.Scope // what the token must be allowed to do
	whole  bool      // it concerns the whole instance, so tokens bound to an account are refused
	// what a token bound to an account must be allowed instead, being unable to have scope; empty: scope
	bound api.Scope
}

// public routes need no token.
func public() right { return right{public: true} }

// own routes answer bound tokens too, within their account. The handler sees to that.
func own(scope api.Scope) right { return right{scope: scope} }

// partly routes concern the whole instance, and answer bound tokens with the part that is theirs. The handler
// sees to that.
func partly(scope, bound api.Scope) right { return right{scope: scope, bound: bound} }

// whole routes concern the whole instance.
func whole(scope api.Scope) right { return right{scope: scope, whole: true} }

// noInput is the input of a handler that needs nothing from the request.
type noInput struct{}

// file is an answer that is not JSON.
type file struct {
	ContentType string
	Name        string // for saving it
	Content     []byte
}

// completer is an input that can add to a refusal the faults that only the package below can find.
type completer interface {
	complete(ctx context.Context, p *Parts, found *fault.Error)
}

// statuser is an output that decides its own status.
type statuser interface{ status() int }

// handler parses nothing and writes nothing: it asks, and answers with a value or an error.
type handler[I, O any] func(ctx context.Context, in *I) (O, error)

func get[I, O any](path string, r right, h handler[I, O], id, summary string) route {
	return on(http.MethodGet, path, r, h, id, summary)
}

func post[I, O any](path string, r right, h handler[I, O], id, summary string) route {
	return on(http.MethodPost, path, r, h, id, summary)
}

func put[I, O any](path string, r right, h handler[I, O], id, summary string) route {
	return on(http.MethodPut, path, r, h, id, summary)
}

func patch[I, O any](path string, r right, h handler[I, O], id, summary string) route {
	return on(http.MethodPatch, path, r, h, id, summary)
}

func remove[I, O any](path string, r right, h handler[I, O], id, summary string) route {
	return on(http.MethodDelete, path, r, h, id, summary)
}

// plain is a route outside the OpenAPI document, which writes its own answer.
func plain(path string, r right, h echo.HandlerFunc) route {
	return route{method: http.MethodGet, path: path, right: r, bind: func(*Server, route) echo.HandlerFunc {
		return h
	}}
}

// large lets a route take bodies up to a limit of its own.
func large(limit int64, r route) route {
	r.limit = limit
	return r
}

// long lets a route take as long as its work does, which is about as many messages as there are.
func long(r route) route {
	r.long = true
	return r
}

// on joins a typed handler to HTTP.
func on[I, O any](method, path string, r right, h handler[I, O], id, summary string) route {
	return route{
		method: method, path: path, right: r, id: id, summary: summary, limit: smallBody,
		input: reflect.TypeFor[I](), output: reflect.TypeFor[O](),
		bind: func(s *Server, r route) echo.HandlerFunc {
			inputs := inputOf(r.input)
			return func(c echo.Context) error {
				memory, err := s.bodies.reserve(c, r.limit)
				if err != nil {
					return err
				}
				defer memory.release()
				in := new(I)
				ctx := c.Request().Context()
				if err := inputs.bind(c, memory, r.limit, reflect.ValueOf(in).Elem()); err != nil {
					return completed(ctx, s.parts, in, err)
				}
				if r.long {
					liftDeadline(c)
				}
				out, err := h(ctx, in)
				if err != nil {
					return err
				}
				return answer(c, out)
			}
		},
	}
}

// completed adds what else is wrong to a refusal that names fields.
func completed(ctx context.Context, p *Parts, in any, err error) error {
	rest, ok := in.(completer)
	if found, is := err.(*fault.Error); ok && is && len(found.Fields) > 0 {
		rest.complete(ctx, p, found)
	}
	return err
}

// answer writes what a handler returned.
func answer(c echo.Context, out any) error {
	switch out := out.(type) {
	case download:
		return out.send(c)
	case file:
		h := c.Response().Header()
		h.Set(echo.HeaderContentDisposition, `attachment; filename="`+out.Name+`"`)
		return c.Blob(http.StatusOK, out.ContentType, out.Content)
	case statuser:
		return writeJSON(c, out.status(), out)
	}
	return writeJSON(c, http.StatusOK, out)
}

// buffers hold answers while they are written, so that an answer has a length and a failure to encode is
// still an error.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptBuffer is the largest buffer worth keeping for the next answer.
const keptBuffer = 256 << 10

// writeJSON writes an answer. Angle brackets stay as they are: message ids are full of them, and nothing here
// is read as HTML.
func writeJSON(c echo.Context, status int, v any) error {
	b := buffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= keptBuffer {
			b.Reset()
			buffers.Put(b)
		}
	}()
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return c.Blob(status, "application/json; charset=utf-8", bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// mount adds all routes of a table, each behind its guard.
func (s *Server) mount(groups []group) {
	for _, g := range groups {
		for _, r := range g.routes {
			answer, guard := r.bind(s, r), s.guard(r.right)
			s.echo.Add(r.method, echoPath(r.path), answer, guard)
			if r.method == http.MethodGet {
				s.echo.HEAD(echoPath(r.path), answer, guard) // net/http leaves the body out
			}
			s.metrics.know(r)
		}
	}
}

// echoPath turns {param} into :param.
func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
