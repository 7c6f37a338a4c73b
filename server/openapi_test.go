package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

var update = flag.Bool("update", false, "write the OpenAPI document to testdata, after raising specVersion")

// TestContractIsLocked fails when the OpenAPI document changes without a new version: whoever changes the
// contract has to mean it. Examples may change without.
func TestContractIsLocked(t *testing.T) {
	t.Parallel()
	spec, err := writeSpec(setup(t).routes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "openapi.yaml")
	locked, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if bytes.Equal(locked, spec.yaml) {
		return
	}
	if bytes.Contains(locked, []byte("version: "+specVersion+"\n")) {
		t.Fatalf("the OpenAPI document differs from %s, but specVersion is still %s. If that is meant, raise it "+
			"(a new field: minor; anything a client can trip over: major) and run go test -run %s -update", file,
			specVersion, t.Name())
	}
	if !*update {
		t.Fatalf("specVersion is new: run go test -run %s -update", t.Name())
	}
	if err := os.WriteFile(file, spec.yaml, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryOperationHasItsRoute: the table of routes has each operation of package api once, under its
// heading.
func TestEveryOperationHasItsRoute(t *testing.T) {
	t.Parallel()
	routes := map[string][]string{}
	for _, g := range setup(t).routes() {
		for _, r := range g.routes {
			if r.id != "" {
				routes[r.id] = append(routes[r.id], g.name)
			}
		}
	}
	want := map[string][]string{}
	for _, o := range api.Operations() {
		want[o.ID] = append(want[o.ID], o.Group)
	}
	if diff := cmp.Diff(want, routes); diff != "" {
		t.Errorf("(-operations +routes)\n%s", diff)
	}
}

// TestEveryOperationHasAnExample of a request and its answer in the document.
func TestEveryOperationHasAnExample(t *testing.T) {
	t.Parallel()
	examples, err := readExamples()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range setup(t).operations(t) {
		if _, ok := examples[r.id]; !ok {
			t.Errorf("%s %s has no example: add a request {\"operation\":%q,…} to examples/requests.json, where "+
				"the story has what it needs, and run go test ./ui/e2e -run TestExamples -update", r.method, r.path, r.id)
		}
		delete(examples, r.id)
	}
	for id := range examples {
		t.Errorf("examples/recorded.json has %s, which is no operation: take it out of examples/requests.json, and run "+
			"go test ./ui/e2e -run TestExamples -update", id)
	}
}

// checked holds all traffic of a world against its OpenAPI document: an answer must be as described, and so
// must a request that was taken. Routes outside the document pass.
type checked struct {
	t      *testing.T
	inner  *http.Transport
	router routers.Router
}

func newChecked(t *testing.T, s *Server) *checked {
	t.Helper()
	router, err := describe(s)
	if err != nil {
		t.Fatal(err)
	}
	return &checked{t: t, inner: &http.Transport{ExpectContinueTimeout: time.Minute}, router: router}
}

// described keeps what was made of the document: it is the same for all servers, and takes long to read.
var described struct {
	once   sync.Once
	router routers.Router
	err    error
}

func describe(s *Server) (routers.Router, error) {
	d := &described
	d.once.Do(func() {
		spec, err := s.spec()
		if err != nil {
			d.err = err
			return
		}
		doc, err := openapi3.NewLoader().LoadFromData(spec.json)
		if err == nil {
			err = doc.Validate(context.Background())
		}
		if d.err = err; err == nil {
			d.router, d.err = gorillamux.NewRouter(doc)
		}
	})
	return d.router, d.err
}

func (c *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	route, params, err := c.router.FindRoute(req)
	if err != nil || req.ContentLength > 1<<20 {
		return c.inner.RoundTrip(req)
	}
	var sent []byte
	if req.Body != nil {
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.inner.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	// the latter is net/http's own
	if resp.Header.Get("Content-Encoding") != "" || resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		return resp, nil
	}

	again := req.Clone(context.Background()) //nolint:contextcheck // the request has been made
	again.Body = io.NopCloser(bytes.NewReader(sent))
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true}
	in := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: route,
		Options: options}
	if resp.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(again.Context(), in); err != nil {
			c.t.Errorf("%s %s was taken, but is not as the OpenAPI document has it: %v\n%.300s", req.Method, req.URL,
				err, sent)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode,
		Header: resp.Header, Options: options}
	out.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(again.Context(), out); err != nil {
		c.t.Errorf("the answer to %s %s is not as the OpenAPI document has it: %v\n%.300s", req.Method, req.URL,
			err, body)
	}
	return resp, nil
}

// CloseIdleConnections passes on what http.Client asks for.
func (c *checked) CloseIdleConnections() { c.inner.CloseIdleConnections() }

// TestTextsOfTheDocumentAreWhole: no text of the OpenAPI document has a line break or a tab but between
// paragraphs.
func TestTextsOfTheDocumentAreWhole(t *testing.T) {
	t.Parallel()
	spec, err := writeSpec(setup(t).routes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(spec.json, &document); err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(path string, at any)
	walk = func(path string, at any) {
		switch at := at.(type) {
		case map[string]any:
			for key, value := range at {
				walk(path+"/"+key, value)
			}
		case []any:
			for _, value := range at {
				walk(path, value)
			}
		case string:
			seen++
			if strings.ContainsAny(strings.ReplaceAll(at, "\n\n", ""), "\n\r\t") {
				t.Errorf("%s is broken: %q", path, at)
			}
		}
	}
	walk("", document)
	if seen < 1000 {
		t.Errorf("only %d texts were looked at", seen)
	}
}

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for path, want := range map[string]string{"/openapi.json": `"openapi":"3.1.0"`,
		"/openapi.yaml": "openapi: 3.1.0", "/openapi-3.0.json": `"openapi":"3.0.3"`} {
		resp := w.do(t, http.MethodGet, path, "", "")
		if resp.status != http.StatusOK || !strings.Contains(resp.body, want) {
			t.Errorf("%s: %d %.80s", path, resp.status, resp.body)
		}
	}
}
