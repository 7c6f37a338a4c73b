package api

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fetch is a route whose only input is its path: the method and the path, as in OpenAPI.
type Fetch[Out any] string

// Do sends the request. The ids replace the braces of the path, in order.
func (f Fetch[Out]) Do(ctx context.Context, c *Client, ids ...any) (Out, error) {
	return answer[Out](ctx, c, newRequest(string(f), ids))
}

// Call is a route with an In: the query of a GET, a DELETE or a path that ends in "?", else a JSON body.
type Call[In, Out any] string

// Do sends the request. The ids replace the braces of the path, in order.
func (r Call[In, Out]) Do(ctx context.Context, c *Client, in In, ids ...any) (out Out, err error) {
	req := newRequest(string(r), ids)
	path, asQuery := strings.CutSuffix(req.path, "?")
	if asQuery || req.method == http.MethodGet || req.method == http.MethodDelete {
		req.path, req.query = path, values(in, req.method != http.MethodDelete)
	} else if req, err = req.jsonBody(in); err != nil {
		return out, err
	}
	return answer[Out](ctx, c, req)
}

// Upload is a route whose body is not JSON, with options as its query. Its media type follows the path.
type Upload[Options, Out any] string

// Do sends the body while it is read. There is no timeout except ctx's.
func (u Upload[Options, Out]) Do(ctx context.Context, c *Client, body io.Reader, o Options) (Out, error) {
	req := newRequest(string(u), nil)
	req.query, req.body = values(o, false), body
	return answer[Out](ctx, c.untimed(), req)
}

// Download is a route whose response is not JSON and may be long.
type Download[Query any] string

// Do writes the response to w while it arrives. The ids replace the braces of the path, in order. There is no
// timeout except ctx's. An interrupted download is an error.
func (d Download[Query]) Do(ctx context.Context, c *Client, q Query, w io.Writer, ids ...any) error {
	req := newRequest(string(d), ids)
	req.query = values(q, false)
	return c.untimed().copy(ctx, req, w)
}

// PageQuery asks for a page of a list.
type PageQuery struct {
	Page     int `query:"page" minimum:"0" doc:"Page number, starting at 0"`
	PageSize int `query:"pageSize" minimum:"1" maximum:"1000" doc:"Rows per page. Defaults to 20"`
}

// Size returns the number of rows of a page.
func (q PageQuery) Size() int { return min(cmp.Or(max(0, q.PageSize), 20), 1000) }

// Of returns the page's position in a list of total rows, and the start and end of its rows.
func (q PageQuery) Of(total int) (numbers PageNumbers, from, end int) {
	page, size := max(0, q.Page), q.Size()
	from = min(page*size, total)
	return PageNumbers{Total: total, Page: page, Pages: (total + size - 1) / size}, from, min(from+size, total)
}

// PageNumbers is the position of a page in a list.
type PageNumbers struct {
	Total int `json:"total"`
	Page  int `json:"page"`
	Pages int `json:"pages"`
}

// CursorQuery requests a page of rows after an earlier response.
type CursorQuery struct {
	PageSize int    `query:"pageSize" minimum:"1" maximum:"1000" default:"20" doc:"Maximum number of rows"`
	Cursor   string `query:"cursor" maxLength:"1024" doc:"Cursor from an earlier response, to continue after it. While responses have a cursor, there may be more rows, even after an empty page"`
}

// AccountQuery names the account of a request.
type AccountQuery struct {
	Account string `query:"account" maxLength:"256" doc:"Account. Defaults to the token's account, or to default"`
}

// Paging reports whether a parameter of a query chooses rows among those that match. Only lists have it.
func Paging(name string) bool {
	return slices.Contains([]string{"page", "pageSize", "cursor", "oldest"}, name)
}

// Paged is a page of a list: its rows, and a cursor of the next page or the number of pages.
type Paged[Row any] interface {
	rows() (rows []Row, cursor string, pages int)
}

// Pages iterates over the pages of a list, from the query's page on. It ends at the first error. A page
// without rows may not be the last: a search reads a limited number of rows per page.
func Pages[In any, Out Paged[Row], Row any](
	ctx context.Context, c *Client, r Call[In, Out], in In, ids ...any,
) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		req := newRequest(string(r), ids)
		req.query = values(in, true)
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

// Rows returns the rows of a page, and the cursor of the next page if there is one.
func Rows[Row any](page Paged[Row]) (rows []Row, cursor string) {
	rows, cursor, _ = page.rows()
	return rows, cursor
}

// All iterates over the rows of a list, from the query's page on, page by page. It ends at the first error.
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

// values returns a query as URL parameters, one for each field that has a name there and is not zero. What
// isn't a page of a list covers all matches.
func values(in any, paged bool) url.Values {
	q, v := url.Values{}, reflect.ValueOf(in)
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, value := field.Tag.Get("query"), v.FieldByIndex(field.Index)
		if name == "" || value.IsZero() || !paged && Paging(name) {
			continue
		}
		if t, ok := value.Interface().(time.Time); ok {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
			continue
		}
		if texts, ok := value.Interface().([]string); ok {
			q[name] = texts
			continue
		}
		q.Set(name, fmt.Sprint(value.Interface()))
	}
	return q
}
