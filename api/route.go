package api

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fetch is a route that takes nothing but what stands in its path: the method and the path, as OpenAPI writes them.
type Fetch[Out any] string

// Do makes the request. The ids fill the braces of the path, in order.
func (f Fetch[Out]) Do(ctx context.Context, c *Client, ids ...any) (Out, error) {
	return answer[Out](ctx, c, newRequest(string(f), ids))
}

// Call is a route that takes an In: as the query of a GET, a DELETE or a path that ends in "?", else as a JSON body.
type Call[In, Out any] string

// Do makes the request. The ids fill the braces of the path, in order.
func (r Call[In, Out]) Do(ctx context.Context, c *Client, in In, ids ...any) (out Out, err error) {
	req := newRequest(string(r), ids)
	path, asQuery := strings.CutSuffix(req.path, "?")
	if asQuery || req.method == http.MethodGet || req.method == http.MethodDelete {
		req.path, req.query = path, values(in)
	} else if req, err = req.jsonBody(in); err != nil {
		return out, err
	}
	if req.method == http.MethodDelete { // concerns all that match, whatever the page
		req.query.Del("page")
		req.query.Del("pageSize")
		req.query.Del("cursor")
	}
	return answer[Out](ctx, c, req)
}

// Upload is a route that takes a body which is not JSON, and options as its query. Its media type follows the path.
type Upload[Options, Out any] string

// Do sends the body as it is read, however long that takes: ctx is the only bound.
func (u Upload[Options, Out]) Do(ctx context.Context, c *Client, body io.Reader, o Options) (Out, error) {
	req := newRequest(string(u), nil)
	req.query, req.body = values(o), body
	return answer[Out](ctx, c.untimed(), req)
}

// Download is a route whose answer is not JSON and may be long.
type Download[Query any] string

// Do writes the answer to w while it arrives, however long that takes: ctx is the only bound. A download that was
// broken off is an error.
func (d Download[Query]) Do(ctx context.Context, c *Client, q Query, w io.Writer) error {
	req := newRequest(string(d), nil)
	req.query = values(q)
	resp, err := c.untimed().send(ctx, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	if _, err := io.Copy(w, resp.Body); err != nil {
		return req.failed(err)
	}
	return nil
}

// PageQuery asks for a page of a list.
type PageQuery struct {
	Page     int // from 0
	PageSize int // 0: 20
}

// Paged is a page of a list: its rows, and what leads to the next page: a cursor, or else the number of pages.
type Paged[Row any] interface {
	rows() (rows []Row, cursor string, pages int)
}

// Pages walks over the pages of a list, from the query's page on. It ends at the first error. A page may have no
// rows and not be the last one: a search looks at so many rows at a time.
func Pages[In any, Out Paged[Row], Row any](
	ctx context.Context, c *Client, r Call[In, Out], in In, ids ...any,
) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		req := newRequest(string(r), ids)
		req.query = values(in)
		number, _ := strconv.Atoi(req.query.Get("page"))
		for {
			page, err := answer[Out](ctx, c, req)
			if !yield(page, err) || err != nil {
				return
			}
			_, cursor, pages := page.rows()
			number++
			switch {
			case cursor != "":
				req.query.Del("page")
				req.query.Set("cursor", cursor)
			case number < pages:
				req.query.Set("page", strconv.Itoa(number))
			default:
				return
			}
		}
	}
}

// Rows returns the rows of a page, and the cursor of the next one, if there is one.
func Rows[Row any](page Paged[Row]) (rows []Row, cursor string) {
	rows, cursor, _ = page.rows()
	return rows, cursor
}

// All walks over the rows of a list, from the query's page on, fetching page after page. It ends at the first error.
func All[In any, Out Paged[Row], Row any](
	ctx context.Context, c *Client, r Call[In, Out], in In, ids ...any,
) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for page, err := range Pages(ctx, c, r, in, ids...) {
			if err != nil {
				yield(*new(Row), err)
				return
			}
			rows, _, _ := page.rows()
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// values writes a struct as a URL has it: a parameter for each field that is not zero, named as the field is but
// for a small first letter, or as its tag query says.
func values(in any) url.Values {
	q, v := url.Values{}, reflect.ValueOf(in)
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, value := field.Tag.Get("query"), v.FieldByIndex(field.Index)
		if field.Anonymous || name == "-" || value.IsZero() {
			continue
		}
		if name == "" {
			name = strings.ToLower(field.Name[:1]) + field.Name[1:]
		}
		if t, ok := value.Interface().(time.Time); ok {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
			continue
		}
		q.Set(name, fmt.Sprint(value.Interface()))
	}
	return q
}
