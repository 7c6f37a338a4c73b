package server

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/api"
)

// Most handlers only pass parts of the request to a function that answers it. The functions below return such
// handlers. bound is the account that the token is bound to; if empty, the token reaches all accounts.

// named is an input whose path has the id of an object.
type named interface{ id() string }

// namedInAccount is an input whose path has the id of an object, and whose query has its account.
type namedInAccount interface {
	key() (of api.AccountQuery, id string)
}

// body is an input with a JSON body.
type body[B any] struct{ Body B }

func (b body[B]) content() B { return b.Body }

// optionalBody is an input whose JSON body may be absent. That means the same as an empty object.
type optionalBody[B any] struct{ Body *B }

func (b optionalBody[B]) content() B { return orZero(b.Body) }

// orZero returns what a pointer of a body that may be absent points to.
func orZero[T any](body *T) T { return *cmp.Or(body, new(T)) }

// newBody is an input that creates an object in the account of its query or its body.
type newBody[B any] struct {
	api.AccountQuery
	body[B]
}

// of returns a handler that needs nothing from the request.
func of[O any](ask func(context.Context) (O, error)) handler[noInput, O] {
	return func(ctx context.Context, _ *noInput) (O, error) { return ask(ctx) }
}

// byQuery returns a handler that passes the query to ask.
func byQuery[Q, O any](ask func(ctx context.Context, bound string, q Q) (O, error)) handler[Q, O] {
	return func(ctx context.Context, in *Q) (O, error) { return ask(ctx, boundTo(ctx), *in) }
}

// byPage returns a handler that passes the page to ask.
func byPage[O any](ask func(ctx context.Context, page, size int) (O, error)) handler[api.PageQuery, O] {
	return func(ctx context.Context, in *api.PageQuery) (O, error) { return ask(ctx, in.Page, pageSize(*in)) }
}

// byID returns a handler that passes the id of the path to ask.
func byID[I named, O any](ask func(ctx context.Context, bound, id string) (O, error)) handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) { return ask(ctx, boundTo(ctx), (*in).id()) }
}

// byKey returns a handler that passes the account of the query and the id of the path to ask.
func byKey[I namedInAccount, O any](
	ask func(ctx context.Context, bound string, of api.AccountQuery, id string) (O, error),
) handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) {
		of, id := (*in).key()
		return ask(ctx, boundTo(ctx), of, id)
	}
}

// byBody returns a handler that passes the body to ask.
func byBody[I interface{ content() B }, B, O any](
	ask func(ctx context.Context, bound string, content B) (O, error),
) handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) { return ask(ctx, boundTo(ctx), (*in).content()) }
}

// byIDAndBody returns a handler that passes the id of the path and the body to ask.
func byIDAndBody[I interface {
	named
	content() B
}, B, O any](ask func(ctx context.Context, bound, id string, content B) (O, error)) handler[I, O] {
	return func(ctx context.Context, in *I) (O, error) {
		return ask(ctx, boundTo(ctx), (*in).id(), (*in).content())
	}
}

// deletes returns a handler that passes the id of the path to del, and answers whether the object existed.
func deletes[I named](del func(ctx context.Context, bound, id string) (bool, error)) handler[I, api.Deleted] {
	return byID[I](func(ctx context.Context, bound, id string) (api.Deleted, error) {
		deleted, err := del(ctx, bound, id)
		return api.Deleted{Deleted: deleted}, err
	})
}

// unbound returns ask for routes that refuse bound tokens.
func unbound[T, O any](ask func(context.Context, T) (O, error)) func(context.Context, string, T) (O, error) {
	return func(ctx context.Context, _ string, what T) (O, error) { return ask(ctx, what) }
}

// unboundChange is unbound for a function that also gets a body.
func unboundChange[B, O any](
	ask func(ctx context.Context, id string, content B) (O, error),
) func(ctx context.Context, _, id string, content B) (O, error) {
	return func(ctx context.Context, _, id string, content B) (O, error) { return ask(ctx, id, content) }
}
