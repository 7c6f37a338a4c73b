package testapi

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options describe the account at the provider.
type Options struct {
	Key    string // required from requests; default "key"
	Secret string // ses, mailjet, http (signs requests), postmark (account token); default [DefaultSecret]

	Restricted bool // resend: the key may only send; sendgrid: there is no events API, which is sold apart
	PageSize   int  // most rows of a page of a list; default the provider's most

	Region   string   // ses: the region that requests are signed for; default "eu-west-1"
	Domain   string   // mailgun: the sending domain; default "mg.example.com"
	Verified []string // addresses and domains that may send; default all
	// Inactive has the addresses of the suppression list with their reasons, in the provider's words. An empty
	// reason is a hard bounce.
	Inactive map[string]string

	Latency time.Duration    // time between the last byte of a request and its delivery and answer
	Now     func() time.Time // default time.Now
}

// DefaultSecret is the secret if the options have none. Standard Webhooks can sign with it.
const DefaultSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// Delivery is one message that the provider accepted for one recipient.
type Delivery struct {
	To, From string
	ID       string // as the provider answered it
	MIME     []byte
	Header   mail.Header // of MIME
	Tags     []string
	Metadata map[string]string // a message that Postroom sent has postroom_id here, at every provider
	Sandbox  bool              // only validated
	Request  int               // number of the request that brought it
}

// Request is one request that the server received, complete or not.
type Request struct {
	Number   int // the first one has number 1
	Method   string
	Path     string // with the query, as sent
	Header   http.Header
	Body     []byte
	Complete bool // the whole body arrived
}

// Server is a running provider.
type Server struct {
	URL  string
	Name string

	provider provider
	http     *httptest.Server
	closed   chan struct{}
	last     atomic.Int64 // number of the last message
	signer   sync.Once    // makes private
	private  *ecdsa.PrivateKey

	mu        sync.Mutex
	options   Options
	faults    []Fault
	always    Fault
	requests  []Request
	delivered []Delivery
	changed   chan struct{} // closed and replaced whenever something is delivered
	keys      map[string]*keyed
	hooks     []object // webhooks that were created
	happened  []happened
}

// Start runs the API of a provider until the test ends. The name is a gateway's type, such as "postmark".
func Start(t testing.TB, name string, o Options) *Server {
	t.Helper()
	api, ok := providers[name]
	if !ok {
		t.Fatalf("there is no fake of provider %q", name)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for field, value := range map[*string]string{&o.Key: "key", &o.Secret: DefaultSecret, &o.Region: "eu-west-1",
		&o.Domain: "mg.example.com"} {
		if *field == "" {
			*field = value
		}
	}
	s := &Server{Name: name, provider: withLists(name, api()), options: o, closed: newChan(), changed: newChan(),
		keys: map[string]*keyed{}}
	s.http = httptest.NewUnstartedServer(s)
	s.http.Listener = gate{s.http.Listener, s}
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, late{}, c)
	}
	s.http.Start()
	s.URL = s.http.URL
	t.Cleanup(func() {
		close(s.closed)
		s.http.Close()
	})
	return s
}

func newChan() chan struct{} { return make(chan struct{}) }

// Change changes the account while the server runs: an expired key, a recipient that became inactive.
func (s *Server) Change(change func(*Options)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Verified = slices.Clone(s.options.Verified)
	s.options.Inactive = maps.Clone(s.options.Inactive)
	change(&s.options)
}

// CloseConnections closes all connections, as a provider does with those that are idle.
func (s *Server) CloseConnections() { s.http.CloseClientConnections() }

// Requests returns all requests so far, in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Delivered returns what the provider accepted so far.
func (s *Server) Delivered() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.delivered)
}

// Count returns how many messages a recipient got. An empty address counts for all recipients.
func (s *Server) Count(to string) (n int) {
	for _, d := range s.Delivered() {
		if !d.Sandbox && (to == "" || strings.EqualFold(d.To, to)) {
			n++
		}
	}
	return n
}

// Wait waits until the provider has accepted n messages or ctx is done, and returns its error then.
func (s *Server) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		enough, changed := len(s.delivered) >= n, s.changed
		s.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP takes one request through the points of an exchange.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, number := s.begin(r)
	if f.At == Accept { // on a connection that was kept: too late to refuse it
		panic(http.ErrAbortHandler)
	}
	s.pause(r, f, Headers)
	body := s.read(r, f, number)
	c := s.call(r, body, number)
	a, release := s.handle(c, f)
	defer release()
	if f.Say != "" {
		a = s.provider.says(c)[f.Say]
	}
	a, err := s.render(a, f)
	if err != nil {
		panic(err)
	}
	s.send(w, f, a)
}

// begin counts a request and takes the fault that awaits it.
func (s *Server) begin(r *http.Request) (Fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := len(s.requests) + 1
	s.requests = append(s.requests, Request{Number: number, Method: r.Method, Path: r.RequestURI,
		Header: r.Header.Clone()})
	if c, ok := r.Context().Value(late{}).(*late); ok && !c.used {
		c.used = true
		return Fault{}, number
	}
	f := s.next()
	if f.Expire {
		s.options.Key, s.options.Secret = s.options.Key+"-expired",
			"whsec_ZXhwaXJlZCBhbmQgcmVwbGFjZWQgYnkgYW5vdGhlcg=="
	}
	return f, number
}

// read reads the body. It ends the exchange if the client ends it.
func (s *Server) read(r *http.Request, f Fault, number int) []byte {
	var half []byte
	if f.At == Body {
		half = make([]byte, max(1, r.ContentLength/2))
		n, _ := io.ReadFull(r.Body, half)
		half = half[:n]
		s.note(number, half, false)
		s.pause(r, f, Body)
	}
	rest, err := io.ReadAll(r.Body)
	body := append(half, rest...)
	s.note(number, body, err == nil)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

func (s *Server) note(number int, body []byte, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[number-1].Body, s.requests[number-1].Complete = slices.Clone(body), complete
}

func (s *Server) call(r *http.Request, body []byte, number int) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &call{Server: s, r: r, body: body, number: number, o: s.options, now: s.options.Now()}
}

// handle lets the provider answer a request, unless the fault replaces the answer. Until release is called,
// the request's idempotency key is in flight.
func (s *Server) handle(c *call, f Fault) (a answer, release func()) {
	var do func(*call) answer
	key := ""
	if f.Taken || f.Status == 0 && f.Say == "" {
		if a, do = s.provider.route(c); do != nil && s.provider.key != nil {
			key = s.provider.key(c)
		}
	}
	release = func() {}
	if key != "" {
		first, repeated := s.claim(c, key)
		if repeated {
			return first, release
		}
		release = func() { s.release(key) }
	}
	defer func() {
		if e := recover(); e != nil {
			release()
			panic(e)
		}
	}()
	if !f.Taken {
		s.pause(c.r, f, Read)
	}
	c.wait(c.o.Latency)
	if do != nil {
		a = do(c)
		s.keep(c, key, a)
	}
	if f.Taken {
		s.pause(c.r, f, Read)
	}
	return a, release
}

// keep stores what a request delivered, and its answer for those who repeat it.
func (s *Server) keep(c *call, key string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.keys[key]; k != nil && a.status < 300 {
		k.answer, k.done = a, true
	}
	if len(c.taken) > 0 {
		s.delivered = append(s.delivered, c.taken...)
		close(s.changed)
		s.changed = newChan()
	}
}

// answer is what a provider says. A body that is a string is sent as it is, another one as JSON.
type answer struct {
	status int
	header map[string]string
	body   any
}

// with returns the answer with another header.
func (a answer) with(name, value string) answer {
	a.header = merged(a.header, map[string]string{name: value})
	return a
}

// render makes the answer that is sent: the fault's own, or the provider's with what the fault changes.
func (s *Server) render(a answer, f Fault) (answer, error) {
	if f.Status != 0 {
		a = answer{status: f.Status, body: f.Body}
	}
	header := maps.Clone(a.header)
	if header == nil {
		header = map[string]string{}
	}
	if text, isText := a.body.(string); !isText && a.body != nil {
		raw, err := json.Marshal(a.body)
		if err == nil && f.Lie != nil {
			raw, err = lie(raw, f.Lie)
		}
		if err != nil {
			return a, err
		}
		a.body = string(raw)
		header["Content-Type"] = "application/json"
	} else {
		a.body = text
	}
	for name, value := range f.Header { // instead of the provider's own, however that spells it
		maps.DeleteFunc(header, func(other, _ string) bool { return strings.EqualFold(other, name) })
		header[name] = value
	}
	a.header = header
	return a, nil
}
