package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/api/fault"
)

// The OpenAPI document, as far as the pages show it.
type (
	apiDocument struct {
		Info       struct{ Version, Description string }
		Tags       []struct{ Name, Description string }
		Paths      map[string]map[string]*apiOperation
		Components struct {
			Schemas   map[string]*apiSchema
			Responses map[string]*apiAnswer
		}
	}
	apiOperation struct {
		OperationID, Summary, Description string
		Tags                              []string
		Parameters                        []apiParam
		RequestBody                       *struct {
			Required bool
			Content  map[string]apiMedia
		}
		Responses map[string]*apiAnswer

		method, path string
	}
	apiParam struct {
		Name, In, Description string
		Required              bool
		Schema                *apiSchema
		Example               any
	}
	apiAnswer struct {
		Ref         string `json:"$ref"`
		Description string
		Content     map[string]apiMedia
	}
	apiMedia struct {
		Schema  *apiSchema
		Example json.RawMessage
	}
	apiSchema struct {
		Ref         string `json:"$ref"`
		Type        any    // a name, or a list of names
		Format      string
		Description string
		Enum        []any
		Items       *apiSchema
		OneOf       []*apiSchema
		Properties  map[string]*apiSchema
		Required    []string
	}
)

// reference is the OpenAPI document in the order of its chapters.
type reference struct {
	Version, About string
	Chapters       []apiChapter
	byID           map[string]*apiOperation
	schemas        map[string]*apiSchema
}

type apiChapter struct {
	Name, About string
	Operations  []apiEntry
}

// apiEntry is an operation in the list.
type apiEntry struct{ ID, Method, Path, Summary string }

// readReference reads an OpenAPI document.
func readReference(text []byte) (*reference, error) {
	var doc apiDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	ref := &reference{Version: doc.Info.Version, About: doc.Info.Description, byID: map[string]*apiOperation{},
		schemas: doc.Components.Schemas}
	chapters := map[string][]apiEntry{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			op := doc.Paths[path][method]
			if op == nil || len(op.Tags) == 0 {
				continue
			}
			op.method, op.path = strings.ToUpper(method), path
			ref.byID[op.OperationID] = op
			chapters[op.Tags[0]] = append(chapters[op.Tags[0]],
				apiEntry{op.OperationID, op.method, path, op.Summary})
		}
	}
	for _, tag := range doc.Tags {
		if len(chapters[tag.Name]) > 0 {
			ref.Chapters = append(ref.Chapters, apiChapter{tag.Name, tag.Description, chapters[tag.Name]})
		}
	}
	return ref, nil
}

type referencePages struct {
	*UI
	read func() (*reference, error)
}

func newReferencePages(u *UI) referencePages {
	return referencePages{u, sync.OnceValues(func() (*reference, error) {
		text, err := u.OpenAPI()
		if err != nil {
			return nil, err
		}
		return readReference(text)
	})}
}

func (p referencePages) list(w http.ResponseWriter, r *http.Request) error {
	ref, err := p.read()
	if err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "reference", "API", ref)
}

type operationView struct {
	ID, Method, Path, Summary, About string
	Params, Body, Answer             []apiField
	BodyType                         string // media type; empty: no body
	Example, Curl                    string // body and command
	AnswerStatus, AnswerExample      string
	Refusals                         []apiRefusal
	Try                              bool // somebody is logged in, whose session may make the request
}

// apiField is a field of a body, or a parameter. Its name has those of the objects around it.
type apiField struct {
	Name, In, Type, About string
	Required              bool
	Example               string
}

type apiRefusal struct{ Status, About string }

// operation shows an operation: its fields, an example, and with a session a form that makes the request.
func (p referencePages) operation(w http.ResponseWriter, r *http.Request) error {
	ref, err := p.read()
	if err != nil {
		return err
	}
	op := ref.byID[r.PathValue("operation")]
	if op == nil {
		return fault.New(fault.NotFound, "OperationNotFound", "There is no operation %q; /docs lists all",
			r.PathValue("operation"))
	}
	v := ref.view(op, baseOf(r))
	v.Try = grantOf(r).Session != ""
	return p.show(w, r, http.StatusOK, "operation", op.Summary, v)
}

func (ref *reference) view(op *apiOperation, base string) operationView {
	v := operationView{ID: op.OperationID, Method: op.method, Path: op.path, Summary: op.Summary,
		About: strings.ReplaceAll(op.Description, "`", "")}
	for _, param := range op.Parameters {
		field := apiField{Name: param.Name, In: param.In, Type: ref.typeOf(param.Schema), About: param.Description,
			Required: param.Required}
		if many, ok := param.Example.([]any); ok && len(many) > 0 {
			param.Example = many[0]
		}
		if param.Example != nil {
			field.Example = fmt.Sprint(param.Example)
		}
		v.Params = append(v.Params, field)
	}
	if op.RequestBody != nil {
		for _, name := range slices.Sorted(maps.Keys(op.RequestBody.Content)) {
			if media := op.RequestBody.Content[name]; v.BodyType == "" || len(media.Example) > 0 {
				v.BodyType, v.Example = name, readableExample(media.Example)
				v.Body = ref.fields(media.Schema, "", nil)
			}
		}
	}
	v.Curl = curlOf(op, v, base)
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		answer := op.Responses[status]
		for _, media := range answer.Content {
			if status == "200" {
				v.Answer = ref.fields(media.Schema, "", nil)
			}
			if len(media.Example) > 0 {
				v.AnswerStatus, v.AnswerExample = status, readableExample(media.Example)
			}
		}
		if status != "200" {
			about := strings.TrimPrefix(answer.Ref, "#/components/responses/")
			v.Refusals = append(v.Refusals, apiRefusal{status, cmp.Or(about, answer.Description)})
		}
	}
	return v
}

// readableExample returns an example as it is read: text as it is, JSON indented.
func readableExample(example json.RawMessage) string {
	var text string
	if json.Unmarshal(example, &text) == nil {
		return text
	}
	var out bytes.Buffer
	if json.Indent(&out, example, "", "  ") != nil {
		return ""
	}
	return unescaped.Replace(out.String())
}

// unescaped writes the characters that JSON within HTML would escape.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// curlOf returns the command that makes the request of the example, with the token in TOKEN.
func curlOf(op *apiOperation, v operationView, base string) string {
	path, query := op.path, url.Values{}
	for _, param := range v.Params {
		switch {
		case param.Example == "":
		case param.In == "path":
			path = strings.ReplaceAll(path, "{"+param.Name+"}", url.PathEscape(param.Example))
		case param.In == "query":
			query.Set(param.Name, param.Example)
		}
	}
	target := base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	command := "curl "
	if op.method != http.MethodGet && (op.method != http.MethodPost || v.Example == "") {
		command += "-X " + op.method + " "
	}
	command += quoted(target)
	if strings.HasPrefix(op.path, "/v1/") {
		command += " \\\n  -H \"Authorization: Bearer $TOKEN\""
	}
	if v.Example != "" {
		command += " \\\n  -H 'Content-Type: " + v.BodyType + "' --data-binary " + quoted(v.Example)
	}
	return command
}

// Bounds of the list of fields: deeper and further ones are in the OpenAPI document.
const (
	maxFieldDepth = 3
	maxFields     = 120
)

// fields returns the fields of a schema, with those of objects in it. within are the schemas around it.
func (ref *reference) fields(s *apiSchema, prefix string, within []string) (all []apiField) {
	name := ""
	if s != nil {
		name = strings.TrimPrefix(s.Ref, "#/components/schemas/")
	}
	s = ref.resolve(s)
	if s == nil || len(within) > maxFieldDepth || name != "" && slices.Contains(within, name) {
		return nil
	}
	within = append(slices.Clone(within), name)
	for _, one := range s.OneOf {
		if more := ref.fields(one, prefix, within[:len(within)-1]); len(more) > 0 {
			return more
		}
	}
	if s.Items != nil {
		return ref.fields(s.Items, prefix+"[].", within)
	}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[field]
		about := property.Description
		if about == "" {
			if named := ref.resolve(property); named != nil {
				about = named.Description
			}
		}
		all = append(all, apiField{Name: prefix + field, Type: ref.typeOf(property), About: about,
			Required: slices.Contains(s.Required, field)})
		below := prefix + field + "."
		if typeOf := ref.resolve(property); typeOf != nil && typeOf.Items != nil {
			below = prefix + field
		}
		if all = append(all, ref.fields(property, below, within)...); len(all) > maxFields {
			return all[:maxFields]
		}
	}
	return all
}

func (ref *reference) resolve(s *apiSchema) *apiSchema {
	if s != nil && s.Ref != "" {
		return ref.schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

func (ref *reference) typeOf(s *apiSchema) string {
	s = ref.resolve(s)
	switch {
	case s == nil:
		return ""
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			words[i] = fmt.Sprint(value)
		}
		return strings.Join(words, " | ")
	case len(s.OneOf) > 0:
		var words []string
		for _, one := range s.OneOf {
			if word := ref.typeOf(one); !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		return strings.Join(words, " or ")
	case s.Items != nil:
		return "list of " + ref.typeOf(s.Items)
	case s.Format != "":
		return s.Format
	}
	if many, ok := s.Type.([]any); ok {
		words := make([]string, len(many))
		for i, value := range many {
			words[i] = fmt.Sprint(value)
		}
		return strings.Join(words, " or ")
	}
	if name, ok := s.Type.(string); ok {
		return name
	}
	return "object"
}
