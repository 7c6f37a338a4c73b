package server

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
)

type suppressionRoutes struct{ store *suppression.Store }

type addSuppressionsInput struct{ Body api.SuppressionRequest }

func (s suppressionRoutes) addSuppressions(ctx context.Context, in *addSuppressionsInput) (
	api.SuppressionsAdded, error) {
	list, err := in.list()
	if err != nil {
		return api.SuppressionsAdded{}, err
	}
	answer, err := s.store.Put(ctx, boundTo(ctx), list)
	return answer, in.named(err)
}

func (in *addSuppressionsInput) list() ([]api.NewSuppression, error) {
	if in.Body.Suppressions == nil {
		return []api.NewSuppression{in.Body.NewSuppression}, nil
	}
	if in.Body.NewSuppression != (api.NewSuppression{}) {
		return nil, invalid("suppressions", "can't be combined with other fields")
	}
	return in.Body.Suppressions, nil
}

// named gives the faulty fields of a single suppression the names that they have in the request.
func (in *addSuppressionsInput) named(err error) error {
	f, ok := err.(*fault.Error)
	if !ok || in.Body.Suppressions != nil {
		return err
	}
	for i := range f.Fields {
		f.Fields[i].Key = strings.TrimPrefix(f.Fields[i].Key, "suppressions[0].")
	}
	return f
}

// complete adds the errors that only the store can find. A value that could not be read keeps its one error.
func (in *addSuppressionsInput) complete(ctx context.Context, p *Parts, found *fault.Error) {
	known := map[string]bool{}
	for _, f := range found.Fields {
		known[f.Key] = true
	}
	if known[""] || known["suppressions"] {
		return // the body isn't an object, or its suppressions were not read
	}
	list, err := in.list()
	if err == nil {
		err = in.named(p.Suppressions.Faults(boundTo(ctx), list))
	}
	if e, ok := err.(*fault.Error); ok && e.Kind == fault.Invalid {
		for _, f := range e.Fields {
			of := f.Key[:strings.LastIndexByte(f.Key, '.')+1] // the entry of a list, with its dot
			unread := known[f.Key] || known[strings.TrimSuffix(of, ".")] || f.Key == of+"email" && known[of+"domain"]
			if !unread {
				found.Fields = append(found.Fields, f)
			}
		}
	}
}

func (s suppressionRoutes) checkSuppression(ctx context.Context, in *api.SuppressionCheck) (
	api.SuppressionFound, error) {
	if in.Email == "" {
		return api.SuppressionFound{}, invalid("email", "is required")
	}
	return s.store.Lookup(ctx, boundTo(ctx), in.Email)
}

type importSuppressionsInput struct {
	api.SuppressionImportOptions
	File io.Reader // the body
	Size int64     // the body's; less than 1 if unknown
}

func (s suppressionRoutes) importSuppressions(ctx context.Context, in *importSuppressionsInput) (
	api.SuppressionImport, error) {
	o := in.SuppressionImportOptions
	o.Size = in.Size
	return s.store.Import(ctx, boundTo(ctx), in.File, o)
}

type importInput struct {
	ID string `path:"id" maxLength:"64" doc:"ID of the import"`
}

func (in importInput) id() string { return in.ID }

func (s suppressionRoutes) exportSuppressions(ctx context.Context, in *api.SuppressionQuery) (download,
	error) {
	bound := boundTo(ctx)
	return download{Name: "suppressions.csv", ContentType: "text/csv; charset=utf-8",
		Write: func(w io.Writer) error { return s.store.Export(ctx, bound, *in, w) }}, nil
}

func (s suppressionRoutes) listBlocklists(ctx context.Context, in *api.PageQuery) (api.Blocklists, error) {
	return s.store.Lists(ctx, boundTo(ctx), in.Page, pageSize(*in))
}

type blocklistInput struct {
	ListID string `path:"listId" maxLength:"256" doc:"ID of the list"`
}

func (in blocklistInput) id() string { return in.ListID }

type getBlocklistInput struct {
	blocklistInput
	api.BlocklistQuery
}

func (s suppressionRoutes) getBlocklist(ctx context.Context, in *getBlocklistInput) (api.BlocklistPage,
	error) {
	return s.store.Blocklist(ctx, boundTo(ctx), in.Account, in.ListID, in.Page, pageSize(in.PageQuery))
}

type addToBlocklistInput struct {
	blocklistInput
	body[api.BlocklistRequest]
}

type removeFromBlocklistInput struct {
	blocklistInput
	api.BlocklistRemoval
}

func (s suppressionRoutes) removeFromBlocklist(ctx context.Context, in *removeFromBlocklistInput) (
	api.SuppressionRemoved, error) {
	return s.store.Unblock(ctx, boundTo(ctx), in.Account, in.ListID, in.Recipient)
}

// uploadWait is the timeout for the next bytes of a file.
const uploadWait = time.Minute

// mediaJSONL is the media type of files with one JSON object a line.
const mediaJSONL = "application/x-ndjson"

// upload is a route whose body is a file of any size, read while it arrives. It is the field File of the
// input. If that has a field Media, the file may also be JSONL.
func upload[R ~string, I, O any](to R, r right, a audited, h handler[I, O]) route {
	row := on(to, r, a, h)
	row.bind = func(s *Server, row route) echo.HandlerFunc {
		inputs := inputOf(row.input, false)
		return func(c echo.Context) error {
			in := new(I)
			value := reflect.ValueOf(in).Elem()
			if err := checkMedia(c, value.FieldByName("Media")); err != nil {
				return err
			}
			if err := inputs.bind(c, nil, 0, value); err != nil {
				return err
			}
			liftDeadline(c)
			value.FieldByName("Size").SetInt(c.Request().ContentLength)
			value.FieldByName("File").Set(
				reflect.ValueOf(&steady{r: c.Request().Body, control: http.NewResponseController(c.Response())}))
			out, err := recorded(s, c, row, in, h)
			if err != nil {
				return err
			}
			fillLists(reflect.ValueOf(&out).Elem())
			return answer(c, out)
		}
	}
	return row
}

// checkMedia checks the media type of a file, and sets the field, if the input has one.
func checkMedia(c echo.Context, field reflect.Value) error {
	media, _, _ := strings.Cut(c.Request().Header.Get(echo.HeaderContentType), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "" || media == "text/csv" || media == "text/plain":
	case field.IsValid() && media == mediaJSONL:
	case field.IsValid():
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "The body must be text/csv or "+mediaJSONL)
	default:
		return echo.NewHTTPError(http.StatusUnsupportedMediaType, "The body must be text/csv")
	}
	if field.IsValid() {
		field.SetString(media)
	}
	return nil
}

// steady is a body that may take any time, if bytes keep arriving.
type steady struct {
	r       io.Reader
	control *http.ResponseController
	until   time.Time
}

// Read implements io.Reader.
func (s *steady) Read(p []byte) (int, error) {
	if now := time.Now(); s.until.Sub(now) < uploadWait/2 {
		s.until = now.Add(uploadWait)
		_ = s.control.SetReadDeadline(s.until) // fails for recorders of tests only
	}
	return s.r.Read(p)
}

// download is an answer that is a file of any size, written while it is made.
type download struct {
	Name        string // proposed when saving it
	ContentType string
	Write       func(w io.Writer) error
}

// send writes the file. An error before the first byte is answered. After it, the connection is cut, so that
// the client notices that the file is not complete.
func (d download) send(c echo.Context) error {
	out := &begun{c: c, d: d}
	err := d.Write(out)
	if err == nil && !out.yes {
		_, err = out.Write(nil)
	}
	if err != nil && out.yes {
		panic(http.ErrAbortHandler)
	}
	return err
}

// begun writes the headers of a download before its first byte.
type begun struct {
	c   echo.Context
	d   download
	yes bool
}

// Write implements io.Writer.
func (b *begun) Write(p []byte) (int, error) {
	if !b.yes {
		b.yes = true
		h := b.c.Response().Header()
		h.Set(echo.HeaderContentType, b.d.ContentType)
		h.Set(echo.HeaderContentDisposition, `attachment; filename="`+b.d.Name+`"`)
		b.c.Response().WriteHeader(http.StatusOK)
	}
	return b.c.Response().Write(p)
}
