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
	"github.com/postroom/postroom/api/fault"
)

// route is one row of the table: the request, the right it needs, and the handler.
type route struct {
	method, path string // path as OpenAPI writes it: /v1/outbox/{queueId}
	right        right
	audited      audited
	id, summary  string // for the OpenAPI document; empty id: not in it
	limit        int64  // bytes of the body; 0 means smallBody
	grows        bool   // it stores more than was there, and is refused while Redis has no memory for it
	paged        bool   // the query may choose a page
	long         bool   // the work grows with the outbox, so the answer has no deadline
	input        reflect.Type
	output       reflect.Type
	bind         func(s *Server, r route) echo.HandlerFunc
}

// right is what a route demands from its caller.
type right struct {
	public bool      // no token is needed
	scope  api.Scope // what the token must be allowed to do
	or     api.Scope // another scope that is as good; empty if none
	whole  bool      // tokens bound to an account are refused: it is about the whole instance
	// the scope that a token bound to an account needs instead, because it cannot have scope; defaults to scope
	bound api.Scope
	// every person may, in their own session, whatever their role; others need scope, if it is set
	self bool
}

// public routes need no token.
func public() right { return right{public: true} }

// own routes answer bound tokens too. Their handlers restrict those to their account.
func own(scope api.Scope) right { return right{scope: scope} }

// readsLists routes read lists and segments: who makes campaigns of them may, too.
func readsLists() right { return right{scope: api.ScopeLists, or: api.ScopeCampaigns} }

// takesEvents routes accept events that are sent later: tokens that may send may use them, too.
func takesEvents() right { return right{scope: api.ScopeDigests, or: api.ScopeSend} }

// partly routes concern the whole instance. Their handlers answer bound tokens with the part of their
// account.
func partly(scope, bound api.Scope) right { return right{scope: scope, bound: bound} }

// whole routes concern the whole instance.
func whole(scope api.Scope) right { return right{scope: scope, whole: true} }

// self routes concern the person of the session. Their handlers restrict it to that person.
func self() right { return right{self: true} }

// selfOr routes are self routes that also admit a scope for the whole instance.
func selfOr(scope api.Scope) right { return right{self: true, scope: scope, whole: true} }

// noInput is the input of a handler that reads nothing from the request.
type noInput struct{}

// file is an answer that is not JSON.
type file struct {
	ContentType string
	Name        string // proposed when saving it
	Content     []byte
}

// completer is an input that adds errors to a refusal that only a package below can find.
type completer interface {
	complete(ctx context.Context, p *Parts, found *fault.Error)
}

// statuser is an output with its own status.
type statuser interface{ status() int }

// handler handles a parsed request. It returns the answer or an error.
type handler[I, O any] func(ctx context.Context, in *I) (O, error)

// get is a route that changes nothing.
func get[R ~string, I, O any](to R, r right, h handler[I, O]) route {
	return on(to, r, unlogged("reads"), h)
}

// plain is a route outside the OpenAPI document that writes its own answer.
func plain(path string, r right, h echo.HandlerFunc) route {
	return route{method: http.MethodGet, path: path, right: r, audited: unlogged("reads"), bind: func(*Server,
		route) echo.HandlerFunc {
		return h
	}}
}

func large(limit int64, r route) route {
	r.limit = limit
	return r
}

// grows marks a route that stores more than was there. It doesn't mark routes that make room, stop mail or
// are an operator's remedy.
func grows(r route) route {
	r.grows = true
	return r
}

// long removes the deadline of a route whose work grows with the outbox.
func long(r route) route {
	r.long = true
	return r
}

// operations are the operations of the API, by their methods and paths.
var operations = sync.OnceValue(func() map[string]api.Operation {
	all := map[string]api.Operation{}
	for _, o := range api.Operations() {
		all[o.Method+" "+o.Path] = o
	}
	return all
})

// on makes an API route from a typed handler. A route that isn't one of its operations is a programmer's
// error: it panics when the routes are made.
func on[R ~string, I, O any](to R, r right, a audited, h handler[I, O]) route {
	asked := strings.Fields(strings.TrimSuffix(string(to), "?")) // the third is a media type
	o, ok := operations()[asked[0]+" "+asked[1]]
	if !ok {
		panic("server: api.Operations has no " + string(to))
	}
	return route{
		method: o.Method, path: o.Path, right: r, audited: a, id: o.ID, summary: o.Summary,
		limit: smallBody, paged: o.Paged,
		input: reflect.TypeFor[I](), output: reflect.TypeFor[O](),
		bind: func(s *Server, r route) echo.HandlerFunc {
			inputs := inputOf(r.input, r.paged)
			return func(c echo.Context) error {
				memory, err := s.bodies.begin(c, r.limit)
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
				out, err := recorded(s, c, r, in, h)
				if err != nil {
					return err
				}
				fillLists(reflect.ValueOf(&out).Elem())
				return answer(c, out)
			}
		},
	}
}

// completed adds an input's other errors to a refusal that names fields.
func completed(ctx context.Context, p *Parts, in any, err error) error {
	rest, ok := in.(completer)
	if found, is := err.(*fault.Error); ok && is && len(found.Fields) > 0 {
		rest.complete(ctx, p, found)
	}
	return err
}

// fillLists makes the nil lists of an answer empty: no list of the API is null.
func fillLists(answer reflect.Value) {
	for field, v := range answer.Fields() {
		switch {
		case !field.IsExported() || strings.Contains(field.Tag.Get("json"), ",omitempty"):
		case v.Kind() == reflect.Struct:
			fillLists(v)
		case v.Kind() == reflect.Slice && v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	}
}

// answer writes what a handler returned.
func answer(c echo.Context, out any) error {
	switch out := out.(type) {
	case download:
		return out.send(c)
	case lines:
		return out.send(c)
	case live:
		return out.send(c)
	case part:
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

// buffers hold answers while they are encoded, so that an answer has a length and a failure to encode is an
// error.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptBuffer is the capacity of the largest buffer that is reused.
const keptBuffer = 256 << 10

// writeJSON writes an answer. Angle brackets are not escaped: message ids contain them, and no answer is read
// as HTML.
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

// mount adds the routes of a table, each behind its guard.
func (s *Server) mount(groups []group) {
	for _, g := range groups {
		for _, r := range g.routes {
			answer, guard := r.bind(s, r), s.guard(r)
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
