package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
)

// specVersion is the version of the OpenAPI document (semver.org). Every change of the document raises it.
const specVersion = "2.61.1"

const schemaPrefix = "#/components/schemas/"

// spec is the OpenAPI document. older is version 3.0, as JSON, for programs without support for 3.1.
type spec struct{ json, yaml, older []byte }

const about = `Postroom accepts a message, stores it, responds, and then delivers it.

The API for sending is compatible with EmailEngine's and extends it. Postroom refuses unknown keys in bodies and queries. An error response lists all invalid fields. A successful submit means that the message is stored.`

// writeSpec writes the OpenAPI document from the table of routes, the types in package api, and the examples
// of operations by their ids.
func writeSpec(groups []group, examples map[string]example) (out spec, err error) {
	doc := newOpenAPI()
	for _, g := range groups {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: g.name, Description: g.about})
		for _, r := range g.routes {
			if r.id != "" {
				op := operation(doc.Components.Schemas, doc.Components.Responses, g, r)
				if e, ok := examples[r.id]; ok {
					illustrate(doc, op, e)
				}
				doc.AddOperation(op)
			}
		}
	}
	asked := requestSchemas(doc)
	for name, schema := range doc.Components.Schemas.Map() {
		tidy(schema)
		allowNull(schema, doc.Components.Schemas.TypeFromRef(schemaPrefix+name))
		if schema.AdditionalProperties == false && !asked[name] {
			// so that responses can get new fields without breaking generated clients
			schema.AdditionalProperties = nil
		}
	}
	if out.json, err = json.Marshal(doc); err != nil {
		return spec{}, err
	}
	if out.yaml, err = doc.YAML(); err != nil {
		return spec{}, err
	}
	out.older, err = downgrade(doc)
	return out, err
}

// downgrade returns a document for OpenAPI 3.0, as JSON. A value with several types has no type there,
// because client generators without support for 3.1 would refer to types that don't exist.
func downgrade(doc *huma.OpenAPI) ([]byte, error) {
	text, err := doc.Downgrade()
	if err != nil {
		return nil, err
	}
	var older any
	if err := json.Unmarshal(text, &older); err != nil {
		return nil, err
	}
	simplify(older)
	return json.Marshal(older)
}

// simplify deletes the keys that downgrade leaves out from a JSON value.
func simplify(in any) {
	switch in := in.(type) {
	case map[string]any:
		delete(in, "oneOf")
		delete(in, "contentMediaType") // which Downgrade keeps; 3.0 has `format: binary` instead
		for _, value := range in {
			simplify(value)
		}
	case []any:
		for _, value := range in {
			simplify(value)
		}
	}
}

func newOpenAPI() *huma.OpenAPI {
	schemas := huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[api.TimeOrFalse](), reflect.TypeFor[timeOrFalse]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.OrNull](), reflect.TypeFor[textOrNull]())
	schemas.RegisterTypeAlias(reflect.TypeFor[json.RawMessage](), reflect.TypeFor[freeObject]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.Addresses](), reflect.TypeFor[listOf[api.Address]]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.Emails](), reflect.TypeFor[listOf[email]]())
	schemas.RegisterTypeAlias(valuesType, reflect.TypeFor[listOf[string]]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.Render](), reflect.TypeFor[renderOrFalse]())
	schemas.RegisterTypeAlias(reflect.TypeFor[eventRow](), reflect.TypeFor[api.DigestEvent]())
	schemas.RegisterTypeAlias(reflect.TypeFor[api.DigestEventsAnswer](), reflect.TypeFor[rowOrRows]())
	schemas.RegisterTypeAlias(reflect.TypeFor[readyAnswer](), reflect.TypeFor[api.Ready]())
	schemas.RegisterTypeAlias(reflect.TypeFor[providerImportStarted](), reflect.TypeFor[api.ProviderImport]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Postroom", Version: specVersion, Description: about,
			Contact: &huma.Contact{Name: "The operator of this Postroom"}},
		Servers: []*huma.Server{{URL: "/", Description: "The Postroom that served this document"}},
		Components: &huma.Components{
			Schemas:   schemas,
			Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer",
					Description: "An access token. Each operation names the scope that it requires."},
				"query": {Type: "apiKey", In: "query", Name: "access_token",
					Description: "The same token, for reading only, if your client can't set a header."},
			},
		},
	}
}

// operation describes a route. problems describes the error responses once for all routes.
func operation(schemas huma.Registry, problems map[string]*huma.Response, g group, r route) *huma.Operation {
	op := &huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Summary: r.summary, Tags: []string{g.name},
		Responses: map[string]*huma.Response{"200": success(schemas, r)},
	}
	for _, f := range reflect.VisibleFields(r.input) {
		if f.Type == reflect.TypeFor[mailBody]() {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				"message/rfc822": {Schema: &huma.Schema{Type: "string"}}}}
			continue
		}
		if f.Name == "Body" {
			op.RequestBody = &huma.RequestBody{
				Required: f.Type.Kind() != reflect.Pointer, Content: jsonOf(schemas.Schema(f.Type, true, r.id+"Request")),
			}
			continue
		}
		if f.Type == reflect.TypeFor[io.Reader]() {
			op.RequestBody = &huma.RequestBody{Required: true, Content: filesOf(r.input, "Media")}
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if name := f.Tag.Get(where); name != "" && (r.paged || !api.Paging(name)) {
				if f.Type.Kind() == reflect.Bool && f.Tag.Get("enum") != "" {
					f.Type = reflect.TypeFor[string]() // in a URL it is a text
				}
				// huma describes times in headers in another format
				f.Tag = reflect.StructTag(strings.Replace(string(f.Tag), "header:", "x:", 1))
				schema := huma.SchemaFromField(schemas, f, "")
				schema.Nullable = false // a parameter that may be there several times
				p := &huma.Param{Name: name, In: where, Required: where == "path",
					Description: sentence(schema.Description),
					Schema:      schema}
				schema.Description = ""
				op.Parameters = append(op.Parameters, p)
			}
		}
	}
	for _, status := range refusals(r, op.RequestBody != nil) {
		name := strings.ReplaceAll(http.StatusText(status), " ", "")
		problems[name] = &huma.Response{
			Description: http.StatusText(status), Content: jsonOf(schemas.Schema(reflect.TypeFor[api.Problem](), true,
				"")),
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + name}
	}
	if r.output == reflect.TypeFor[providerImportStarted]() {
		op.Responses["202"] = op.Responses["200"]
		delete(op.Responses, "200")
	}
	if r.output == reflect.TypeFor[readyAnswer]() {
		op.Responses["503"] = &huma.Response{Description: "Not ready", Content: op.Responses["200"].Content}
	}
	if r.right.public {
		op.Description, op.Security = "This operation requires no token.", []map[string][]string{}
	} else {
		describeRight(op, r)
	}
	return op
}

// sentence returns the text of a doc tag with a period at its end. The command line adds its own.
func sentence(doc string) string {
	if doc == "" {
		return ""
	}
	return strings.TrimSuffix(doc, ".") + "."
}

func describeRight(op *huma.Operation, r route) {
	op.Security = []map[string][]string{{"bearer": {}}}
	if r.method == http.MethodGet {
		op.Security = append(op.Security, map[string][]string{"query": {}})
	}
	op.Description = "Scope: `" + string(r.right.scope) + "`."
	if r.right.or != "" {
		op.Description = "Scope: `" + string(r.right.scope) + "` or `" + string(r.right.or) + "`."
	}
	if r.right.whole {
		op.Description += " Tokens bound to an account can't use it."
	}
	if r.right.bound != "" {
		op.Description += " Tokens bound to an account require `" + string(r.right.bound) +
			"` and see only that account's data."
	}
}

func success(schemas huma.Registry, r route) *huma.Response {
	if r.output == reflect.TypeFor[file]() {
		return &huma.Response{Description: "The message", Content: map[string]*huma.MediaType{
			"message/rfc822": {Schema: &huma.Schema{Type: "string"}}}}
	}
	if r.output == reflect.TypeFor[part]() {
		return &huma.Response{Description: "The part", Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	}
	if r.output == reflect.TypeFor[lines]() {
		return &huma.Response{Description: "The entries", Content: map[string]*huma.MediaType{
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	if r.output == reflect.TypeFor[live]() {
		return &huma.Response{Description: "The numbers, every second", Content: map[string]*huma.MediaType{
			mediaEvents: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	}
	if r.output == reflect.TypeFor[download]() {
		return &huma.Response{Description: "The file", Content: filesOf(r.input, "Format")}
	}
	return &huma.Response{Description: "OK", Content: jsonOf(schemas.Schema(r.output, true, ""))}
}

// filesOf returns the media types of the files of a route: CSV, and JSONL if its input has this field.
func filesOf(input reflect.Type, field string) map[string]*huma.MediaType {
	files := map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}
	if _, ok := input.FieldByName(field); ok {
		files[mediaJSONL] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return files
}

func jsonOf(schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

// refusals returns the error statuses of a route.
func refusals(r route, body bool) []int {
	all := []int{http.StatusBadRequest, http.StatusInternalServerError}
	if !r.right.public {
		all = append(all, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
			http.StatusServiceUnavailable)
	}
	if body {
		all = append(all, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	if strings.Contains(r.path, "{") || strings.HasSuffix(r.path, "/submit") ||
		strings.HasSuffix(r.path, "/replay") ||
		strings.HasPrefix(r.path, "/v1/templates/") || r.right.scope == api.ScopeLists ||
		r.right.scope == api.ScopeCampaigns || r.right.scope == api.ScopeDigests {
		all = append(all, http.StatusNotFound, http.StatusConflict)
	}
	if strings.HasSuffix(r.path, "/submit") || body && strings.HasPrefix(r.path, "/v1/templates/") ||
		r.method == http.MethodPost && strings.HasPrefix(r.path, "/v1/campaigns/") ||
		r.path == "/v1/digests/events" {
		all = append(all, http.StatusUnprocessableEntity)
	}
	return all
}

func requestSchemas(doc *huma.OpenAPI) map[string]bool {
	names := map[string]bool{}
	var note func(s *huma.Schema)
	note = func(s *huma.Schema) {
		if s == nil {
			return
		}
		if name := strings.TrimPrefix(s.Ref, schemaPrefix); name != "" && !names[name] {
			names[name] = true
			note(doc.Components.Schemas.SchemaFromRef(s.Ref))
		}
		note(s.Items)
		for _, child := range s.OneOf {
			note(child)
		}
		for _, child := range s.Properties {
			note(child)
		}
	}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Post, path.Put, path.Patch} {
			if op != nil && op.RequestBody != nil {
				if in := op.RequestBody.Content["application/json"]; in != nil {
					note(in.Schema)
				}
			}
		}
	}
	return names
}

// tidy ends descriptions with a period, and removes null from the types of lists and objects: no answer has
// it, see fillLists.
func tidy(s *huma.Schema) {
	if s == nil {
		return
	}
	s.Description = sentence(s.Description)
	if s.Type == huma.TypeArray || s.Type == huma.TypeObject {
		s.Nullable = false
	}
	for _, property := range s.Properties {
		tidy(property)
	}
	tidy(s.Items)
	if more, ok := s.AdditionalProperties.(*huma.Schema); ok {
		tidy(more)
	}
}

// allowNull adds null to the types of objects that may be null: takenByNull's, pointers without omitempty,
// and values of maps of pointers.
func allowNull(s *huma.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		always := f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omitempty")
		property := s.Properties[name]
		if f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Pointer && property != nil {
			if each, ok := property.AdditionalProperties.(*huma.Schema); ok {
				property.AdditionalProperties = &huma.Schema{OneOf: []*huma.Schema{each, {Type: "null"}}}
			}
		}
		if property != nil && property.Ref != "" &&
			(always || takenByNull(f.Type)) {
			s.Properties[name] = &huma.Schema{OneOf: []*huma.Schema{property, {Type: "null"}}}
		}
	}
}

type timeOrFalse struct{}

func (timeOrFalse) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString, Format: "date-time"},
		{Type: huma.TypeBoolean, Enum: []any{false}}}}
}

type textOrNull struct{}

func (textOrNull) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

// freeObject describes a json.RawMessage. All of this API are objects.
type freeObject struct{}

func (freeObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// listOf describes api.OneOrMany.
type listOf[T any] struct{}

// Schema is a list, or its only element.
func (listOf[T]) Schema(r huma.Registry) *huma.Schema {
	one := r.Schema(reflect.TypeFor[T](), true, "")
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeArray, Items: one}, one}}
}

// email describes an address without a name.
type email struct{}

func (email) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "email"}
}

type renderOrFalse struct{}

type renderObject api.Render

func (renderOrFalse) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[renderObject](), true, ""),
		{Type: huma.TypeBoolean, Enum: []any{false}}}}
}

// rowOrRows describes api.DigestEventsAnswer.
type rowOrRows struct{}

// eventRows is the answer to several events.
type eventRows struct {
	Events []api.DigestEventResult `json:"events" doc:"Results, in the order of the request"`
}

// Schema is the answer to a single event, or those to several.
func (rowOrRows) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[api.DigestEventResult](), true, ""),
		r.Schema(reflect.TypeFor[eventRows](), true, "")}}
}

// OpenAPI returns the OpenAPI document of the server, as JSON.
func (s *Server) OpenAPI() ([]byte, error) {
	out, err := s.spec()
	return out.json, err
}

// serveSpec returns the handler that serves the OpenAPI document in one form.
func (i instanceRoutes) serveSpec(form string, text func(spec) []byte) echo.HandlerFunc {
	return func(c echo.Context) error {
		out, err := i.spec()
		if err != nil {
			return fmt.Errorf("write the OpenAPI document: %w", err)
		}
		c.Response().Header().Set(echo.HeaderCacheControl, "max-age="+strconv.Itoa(int(time.Minute.Seconds())))
		return c.Blob(http.StatusOK, "application/openapi+"+form, text(out))
	}
}
