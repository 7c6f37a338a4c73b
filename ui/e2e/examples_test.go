package e2e_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/pquerna/otp/totp"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/ui"
)

var update = flag.Bool("update", false, "record the answers to the requests of server/examples/requests.json")

// step is a line of server/examples/requests.json: a request, or the first login of a person.
type step struct {
	Operation string            `json:"operation"`
	Aside     bool              `json:"aside"` // prepares others; it is no example
	Who       string            `json:"who"`   // the person whose session makes it; empty: the admin token
	Params    map[string]any    `json:"params"`
	Type      string            `json:"type"` // media type of the body; empty: JSON
	Body      json.RawMessage   `json:"body"`
	Status    int               `json:"status"` // wanted; 0: 200
	Keep      map[string]string `json:"keep"`   // variables, by the place of their value: items.0.id
	Until     map[string]any    `json:"until"`  // repeated until these places have these values; *: any

	Login, Link, Password string
}

// recording is an example as the OpenAPI document takes it.
type recording struct {
	Operation string          `json:"operation"`
	Params    map[string]any  `json:"params,omitempty"`
	Type      string          `json:"type,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Status    int             `json:"status"`
	Media     string          `json:"media"`
	Answer    json.RawMessage `json:"answer"`
}

// TestExamples makes the requests of server/examples/requests.json in their order, and holds each answer
// against the OpenAPI document. With -update it records the answers, which the document shows.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := newStory(t, testredis.URL(t), nil)
	var all []recording
	for _, step := range s.steps(t) {
		if step.Login != "" {
			s.login(t, step)
			continue
		}
		got := s.play(t, step)
		if !step.Aside {
			all = append(all, got)
		}
	}
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.Operation] {
			t.Errorf("%s has two examples in requests.json: mark one as aside", r.Operation)
		}
		seen[r.Operation] = true
	}
	for id := range s.operations {
		if !seen[id] {
			t.Errorf("operation %s has no example: add a request {\"operation\":%q,…} to server/examples/requests.json, "+
				"where the story has what it needs, and run this test with -update", id, id)
		}
	}
	if *update && !t.Failed() {
		s.write(t, all)
	}
}

// story is a Postroom with what the requests need.
type story struct {
	url, token string
	relay      *testsmtp.Server
	vars       map[string]any
	began      time.Time
	operations map[string]operation
	router     routers.Router
	sessions   map[string]*http.Client
}

type operation struct{ method, path string }

// newStory starts a Postroom and its relay, on a Redis. The demo gives it the pages of postroom demo; nil: it
// has none.
func newStory(t *testing.T, redis string, demo func(*testsmtp.Server) *ui.Demo) *story {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	options := app.Options{Logger: apptest.Logger(t)}
	if demo != nil {
		options.Demo = demo(relay)
	}
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(hooks.Close)
	a := apptest.RunWith(t, map[string]string{"redis.url": redis, "smtp": relay.URL(),
		"from": "Example Shop <shop@example.com>", "webhooks.allowPrivate": "true",
		"serviceUrl": "https://mail.example.com", "senders.mailAccount": "default",
		"digest.failed": "drop", "digest.attempts": "1"}, options)
	at, err := url.Parse(relay.URL())
	if err != nil {
		t.Fatal(err)
	}
	provider := testapi.Start(t, "postmark", testapi.Options{Verified: []string{"example.com"}})
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := &story{url: a.URL(), token: a.Token(), relay: relay, began: time.Now(),
		sessions: map[string]*http.Client{}}
	day := func(after time.Duration) string { return s.began.Add(after).UTC().Format(time.RFC3339) }
	s.vars = map[string]any{
		"relayHost": at.Hostname(), "relayPort": port, "hooks": hooks.URL, "refused": "rcpt-550@example.net",
		"refusedToo": "rcpt-550+2@example.net", "provider": provider.URL, "accountToken": testapi.DefaultSecret,
		"hourAgo": day(-time.Hour), "inAnHour": day(time.Hour), "tomorrow": day(24 * time.Hour),
		"dkimKey": domainKey(t), "password": "correct horse battery", "newPassword": "a better horse battery",
	}
	s.operations, s.router = describedBy(t, s.url)
	return s
}

// domainKey returns a new private key as PEM.
func domainKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// describedBy reads the OpenAPI document of a Postroom: its operations by id, and who compares with it.
func describedBy(t *testing.T, base string) (map[string]operation, routers.Router) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(pageText(t, base+"/openapi.json")))
	if err != nil {
		t.Fatal(err)
	}
	var options []openapi3.ValidationOption
	if *update {
		options = append(options, openapi3.DisableExamplesValidation()) // those that are about to be replaced
	}
	if err := doc.Validate(t.Context(), options...); err != nil {
		t.Fatal(err)
	}
	openapi3filter.RegisterBodyDecoder("message/rfc822", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	operations := map[string]operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			operations[op.OperationID] = operation{method, path}
		}
	}
	return operations, router
}

// pageText returns what a stranger gets from an address.
func pageText(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %s: %v", address, resp.Status, err)
	}
	return string(text)
}

const (
	requestsFile = "../../server/examples/requests.json"
	recordedFile = "../../server/examples/recorded.json"
)

func (s *story) steps(t *testing.T) []step {
	t.Helper()
	return readSteps(t, requestsFile)
}

func readSteps(t *testing.T, file string) (steps []step) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&steps); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return steps
}

// login sets the first password of a person by its link, and logs in.
func (s *story) login(t *testing.T, step step) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	s.sessions[step.Login] = client
	link, err := url.Parse(s.filled(step.Link))
	if err != nil {
		t.Fatal(err)
	}
	password := s.filled(step.Password)
	for _, at := range []struct {
		path string
		form url.Values
	}{
		{"/link", url.Values{"t": {link.Query().Get("t")}, "name": {step.Login}, "newPassword": {password},
			"newPassword2": {password}}},
		{"/login", url.Values{"name": {step.Login}, "password": {password}}},
	} {
		resp, err := client.PostForm(s.url+at.path, at.form)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("POST %s answered %s", at.path, resp.Status)
		}
	}
}

var variable = regexp.MustCompile(`(^|[^{])\{(\w+)\}`)

// filled puts the values of variables into a text.
func (s *story) filled(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		before, name, _ := strings.Cut(strings.TrimSuffix(found, "}"), "{")
		if name == "code" {
			code, err := totp.GenerateCode(fmt.Sprint(s.vars["secret"]), time.Now())
			if err != nil {
				return found
			}
			return before + code
		}
		if value, ok := s.vars[name]; ok {
			return before + fmt.Sprint(value)
		}
		return found
	})
}

// body returns the body of a step with the values of variables, as JSON.
func (s *story) body(step step) string {
	text := strings.ReplaceAll(string(step.Body), `"{relayPort}"`, fmt.Sprint(s.vars["relayPort"])) // a number
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		quoted, err := json.Marshal(s.filled(found))
		if err != nil {
			return found
		}
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\\`, `\`, `\"`, `"`).
			Replace(string(quoted[1 : len(quoted)-1]))
	})
}

// play makes the request of a step until it answers what the step waits for.
func (s *story) play(t *testing.T, step step) recording {
	t.Helper()
	if _, ok := s.operations[step.Operation]; !ok {
		t.Fatalf("requests.json has operation %q, which the OpenAPI document has not", step.Operation)
	}
	if step.Status == 0 {
		step.Status = http.StatusOK
	}
	for late := time.Now().Add(apptest.Patience); ; time.Sleep(50 * time.Millisecond) {
		got, decoded := s.ask(t, step)
		if got.Status == step.Status && holds(decoded, step.Until) {
			for name, place := range step.Keep {
				if s.vars[name] = at(decoded, place); s.vars[name] == nil {
					t.Fatalf("%s: nothing at %s of %s", step.Operation, place, got.Answer)
				}
			}
			return got
		}
		if len(step.Until) == 0 || time.Now().After(late) {
			t.Fatalf("%s answered %d, want %d and %v: %s", step.Operation, got.Status, step.Status, step.Until,
				got.Answer)
		}
	}
}

// ask makes the request of a step once. It returns the answer to be recorded, and as JSON.
func (s *story) ask(t *testing.T, step step) (recording, any) {
	t.Helper()
	op, query := s.operations[step.Operation], url.Values{}
	out := recording{Operation: step.Operation, Params: map[string]any{}}
	path := op.path
	for name, value := range step.Params {
		if text, ok := value.(string); ok {
			value = s.filled(text)
		}
		out.Params[name] = value
		if inPath := strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value))); inPath != path {
			path = inPath
		} else {
			query.Set(name, fmt.Sprint(value))
		}
	}
	target := s.url + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var sent string
	if len(step.Body) > 0 {
		out.Type = step.Type
		sent = s.body(step)
		out.Body = json.RawMessage(sent)
		if out.Type == "" {
			out.Type = "application/json"
		} else if err := json.Unmarshal([]byte(sent), &sent); err != nil {
			t.Fatal(err)
		}
	}
	resp, text := s.exchange(t, step.Who, op.method, target, out.Type, sent)
	out.Status = resp.StatusCode
	out.Media, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	var decoded any
	if out.Media == "application/json" {
		if err := json.Unmarshal(text, &decoded); err != nil {
			t.Fatal(err)
		}
		out.Answer = text
		return out, decoded
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		t.Fatal(err)
	}
	out.Answer = quoted
	return out, nil
}

// exchange makes a request, and holds it and its answer against the OpenAPI document.
func (s *story) exchange(t *testing.T, who, method, target, media, sent string) (*http.Response, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	newRequest := func() *http.Request {
		req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		if media != "" {
			req.Header.Set("Content-Type", media)
		}
		if who == "" {
			req.Header.Set("Authorization", "Bearer "+s.token)
		} else {
			req.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		return req
	}
	client := http.DefaultClient
	if who != "" {
		client = s.sessions[who]
	}
	resp, err := client.Do(newRequest())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	s.compare(t, newRequest(), resp, text)
	return resp, text
}

// compare holds a request and its answer against the OpenAPI document.
func (s *story) compare(t *testing.T, again *http.Request, resp *http.Response, text []byte) {
	t.Helper()
	ctx, method, target := again.Context(), again.Method, again.URL
	route, params, err := s.router.FindRoute(again)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true}
	in := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: route,
		Options: options}
	if err := openapi3filter.ValidateRequest(ctx, in); err != nil && resp.StatusCode < 300 {
		t.Errorf("%s %s was taken, but is not as the OpenAPI document has it: %v", method, target, err)
	}
	answer := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode,
		Header: resp.Header, Options: options}
	answer.SetBodyBytes(text)
	if err := openapi3filter.ValidateResponse(ctx, answer); err != nil {
		t.Errorf("the answer to %s %s is not as the OpenAPI document has it: %v\n%.300s", method, target, err, text)
	}
}

// holds reports whether places of an answer have the wanted values.
func holds(answer any, wanted map[string]any) bool {
	for place, value := range wanted {
		got := at(answer, place)
		if value == "*" && (got == nil || got == 0.0 || got == "") || value != "*" && got != value {
			return false
		}
	}
	return true
}

// at returns the value at a place such as items.0.id, or nil.
func at(answer any, place string) any {
	for name := range strings.SplitSeq(place, ".") {
		switch in := answer.(type) {
		case map[string]any:
			answer = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil
			}
			answer = in[i]
		default:
			return nil
		}
	}
	return answer
}

// write records the examples, with stable values in place of ids, times and secrets.
func (s *story) write(t *testing.T, all []recording) {
	t.Helper()
	n := &normalizer{story: s, seen: map[string]string{}}
	out := bytes.NewBufferString("[\n")
	for i, r := range all {
		n.begin(r.Operation)
		for name, value := range r.Params {
			if text, ok := value.(string); ok {
				r.Params[name] = n.text(text)
			}
		}
		var err error
		if r.Body, err = n.json(r.Body, false); err == nil {
			r.Answer, err = n.json(r.Answer, true)
		}
		if err != nil {
			t.Fatalf("%s: %v", r.Operation, err)
		}
		line, err := marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteString(",\n")
		}
		out.Write(line)
	}
	out.WriteString("\n]\n")
	if err := os.WriteFile(recordedFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// marshal is json.Marshal that leaves angle brackets as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
