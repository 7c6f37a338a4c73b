package apisend

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/postroom/postroom/smtpsend"
)

// Call is a request to a provider's API that sends no message: one about webhooks, domains or lists.
type Call struct {
	Method string // defaults to GET, or POST if there is a body
	Path   string // with its query, after the base of the API
	Body   any    // url.Values make a form, everything else JSON; nil if there is none
	Header http.Header
}

// Answer is the answer to a [Call]. Its status is 2xx.
type Answer struct {
	Header http.Header
	Body   []byte // at most 8 MiB
}

// Call makes a request with the credentials of a target, and once only. The error is an *smtpsend.Error, with
// the HTTP status if there was an answer.
func (s *Sender) Call(ctx context.Context, t Target, c Call) (Answer, error) {
	a := adapters[t.Type]
	if a == nil {
		return Answer{}, smtpsend.Refused(fmt.Errorf("unknown type %q", t.Type))
	}
	q, err := c.request(t, a)
	if err != nil {
		return Answer{}, smtpsend.Refused(err)
	}
	out := s.try(ctx, t, q, group{}, nil)
	if out.err != nil {
		return Answer{}, out.err
	}
	if !out.x.ok() {
		return Answer{}, out.x.failure(*out.x.against())
	}
	return Answer{Header: out.x.header, Body: out.x.body}, nil
}

// request makes a call's request. Its header has the credentials, as in the check of a key.
func (c Call) request(t Target, a *adapter) (request, error) {
	q := request{method: c.Method, path: c.Path, header: a.check(t).header.Clone(), list: true}
	q.header.Set("Accept", "application/json")
	q.header.Del("Content-Type")
	for name, values := range c.Header {
		q.header[name] = values
	}
	switch body := c.Body.(type) {
	case nil:
	case url.Values:
		q.body = []byte(body.Encode())
		q.header.Set("Content-Type", "application/x-www-form-urlencoded")
	default:
		raw, err := encode(body)
		if err != nil {
			return request{}, err
		}
		q.body = raw
		q.header.Set("Content-Type", "application/json")
	}
	if q.method == "" && q.body == nil {
		q.method = http.MethodGet
	}
	return q, nil
}
