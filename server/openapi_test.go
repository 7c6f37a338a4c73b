package server

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

var update = flag.Bool("update", false, "write the OpenAPI document to testdata, after raising specVersion")

// TestContractIsLocked fails when the OpenAPI document changes without a new version: whoever changes the
// contract has to mean it.
func TestContractIsLocked(t *testing.T) {
	t.Parallel()
	spec, err := setup(t).spec()
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

func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for path, want := range map[string]string{"/openapi.json": `"openapi":"3.1.0"`,
		"/openapi.yaml": "openapi: 3.1.0"} {
		resp := w.do(t, http.MethodGet, path, "", "")
		if resp.status != http.StatusOK || !strings.Contains(resp.body, want) {
			t.Errorf("%s: %d %.80s", path, resp.status, resp.body)
		}
	}
}

// TestDocsWorkOffline follows the page's links: everything it needs comes from this server, and its policy
// lets nothing else in.
func TestDocsWorkOffline(t *testing.T) {
	t.Parallel()
	w := setup(t)
	page := w.do(t, http.MethodGet, "/docs", "", "")
	if page.status != http.StatusOK || strings.Contains(page.body, "http:") ||
		strings.Contains(page.body, "https:") {
		t.Errorf("the page is not there or refers to another host: %d", page.status)
	}
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") ||
		strings.Contains(policy, "'unsafe-eval'") {
		t.Errorf("policy: %s", policy)
	}
	for _, file := range regexp.MustCompile(`"(/docs/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		if got := w.do(t, http.MethodGet, file[1], "", ""); got.status != http.StatusOK || len(got.body) == 0 {
			t.Errorf("%s: %d", file[1], got.status)
		}
	}
	if got := w.do(t, http.MethodGet, "/docs/../server.go", "", ""); got.status != http.StatusNotFound {
		t.Errorf("a file outside the docs: %d", got.status)
	}
}
