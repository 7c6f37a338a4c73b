package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// The secrets of the tests; none may be seen anywhere.
const (
	clientSecret = "client-secret-kept"
	firstRefresh = "refresh-token-0"
)

// tokenServer is a token endpoint that counts.
type tokenServer struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []url.Values
	rotate  bool // a refresh token is good once
	current string
	life    any                                           // expires_in; nil if not said
	instead func(http.ResponseWriter, *http.Request) bool // true: it has answered
	meddle  func()                                        // runs before the answer
}

func newTokenServer(t *testing.T) *tokenServer {
	s := &tokenServer{current: firstRefresh, life: 3600}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	w.Header().Set("Content-Type", "application/json")
	s.mu.Lock()
	s.asked = append(s.asked, r.PostForm)
	n, instead, meddle := len(s.asked), s.instead, s.meddle
	s.mu.Unlock()
	if meddle != nil {
		meddle()
	}
	if instead != nil && instead(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := map[string]any{"access_token": fmt.Sprintf("access-token-%d", n), "token_type": "Bearer",
		"expires_in": s.life}
	if s.rotate {
		if r.PostForm.Get("refresh_token") != s.current {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"used already"}`))
			return
		}
		s.current = fmt.Sprintf("refresh-token-%d", n)
		answer["refresh_token"] = s.current
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// set changes how the server behaves.
func (s *tokenServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// requests gives the form of each request so far.
func (s *tokenServer) requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.asked...)
}

// answering makes the server answer all requests alike.
func (s *tokenServer) answering(status int, body string) {
	s.set(func() {
		s.instead = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
			return true
		}
	})
}

func (s *tokenServer) client() Client {
	return Client{TokenURL: s.URL + "/token?key=url-key", ClientID: "client-id", ClientSecret: clientSecret,
		RefreshToken: firstRefresh}
}

// process is a Tokens with its own clock, one of several on one Redis.
type process struct {
	*Tokens
	db  *redisdb.DB
	log *journal
	*testkit.Clock
}

// journal is a log to look into.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func ring(t *testing.T, secrets ...string) *seal.Ring {
	t.Helper()
	var all [][]byte
	for _, s := range secrets {
		all = append(all, []byte(strings.Repeat(s, 32)))
	}
	r, err := seal.New(all[0], all[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func start(t *testing.T, url string, o Options, secrets ...string) *process {
	t.Helper()
	if secrets == nil {
		secrets = []string{"s"}
	}
	p := &process{db: testredis.Connect(t, redisdb.Options{URL: url}), log: &journal{},
		Clock: testkit.ClockAt(time.Now())}
	o.Logger, o.Now = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})), p.Now
	var err error
	if p.Tokens, err = New(p.db, ring(t, secrets...), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whatever is under way ends before Redis is closed
		ctx, stop := context.WithCancel(context.Background())
		stop()
		_ = p.Run(ctx)
	})
	return p
}

func setup(t *testing.T) (*process, *tokenServer) {
	t.Helper()
	t.Parallel()
	return start(t, testredis.URL(t), Options{}), newTokenServer(t)
}

const shop = "account:shop"

// access wants a token.
func (p *process) access(t *testing.T, c Client, refused, want string) {
	t.Helper()
	got, err := p.Access(t.Context(), shop, c, refused)
	if err != nil || got != want {
		t.Fatalf("access token %q, %v; want %q", got, err, want)
	}
}

// fails wants an error.
func (p *process) fails(t *testing.T, c Client, refused string) *Error {
	t.Helper()
	got, err := p.Access(t.Context(), shop, c, refused)
	e, ok := errors.AsType[*Error](err)
	if !ok || got != "" || e.Owner != shop {
		t.Fatalf("access token %q, %v; want an error of %s", got, err, shop)
	}
	return e
}
