// Package testoidc runs a server for logins with OpenID Connect for tests: zitadel/oidc, with its storage in
// memory and its page for user and password.
package testoidc

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// ClientID and ClientSecret are the only client's.
const (
	ClientID     = "postroom"
	ClientSecret = "the secret of the client"
)

// User is somebody that the server knows. All have the same password.
type User struct {
	ID       string // the claim sub
	Name     string // typed at the login; the claim preferred_username
	Email    string
	Verified bool     // the address is
	Groups   []string // the claim groups
}

// Password is the password of all users.
const Password = "correct horse"

// Server is a running issuer.
type Server struct {
	*httptest.Server
	users map[string]User // by ID
}

// New starts an issuer for one client, whose browsers come back to redirect.
func New(t testing.TB, redirect string, users ...User) *Server {
	t.Helper()
	s := &Server{users: map[string]User{}}
	for _, u := range users {
		s.users[u.ID] = u
	}
	var handler http.Handler
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	handler = exampleop.SetupServer(s.URL, store{storage.NewStorageWithClients(s,
		map[string]*storage.Client{ClientID: storage.WebClient(ClientID, ClientSecret, redirect)}), s}, nil, false)
	return s
}

// GetUserByID returns a user, or nil.
func (s *Server) GetUserByID(id string) *storage.User {
	u, ok := s.users[id]
	if !ok {
		return nil
	}
	return &storage.User{ID: u.ID, Username: u.Name, Password: Password, Email: u.Email,
		EmailVerified: u.Verified}
}

// GetUserByUsername returns a user by what is typed at the login, or nil.
func (s *Server) GetUserByUsername(name string) *storage.User {
	for id, u := range s.users {
		if u.Name == name {
			return s.GetUserByID(id)
		}
	}
	return nil
}

// ExampleClientID is the id of a client that does not log in.
func (s *Server) ExampleClientID() string { return "service" }

// store adds the claim groups to zitadel's storage.
type store struct {
	*storage.Storage
	server *Server
}

func (s store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo,
	id, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, id, subject, origin); err != nil {
		return err
	}
	if groups := s.server.users[subject].Groups; groups != nil {
		info.AppendClaims("groups", groups)
	}
	return nil
}

var _ op.Storage = store{}

// LogIn does what a browser does that was sent to the issuer: it opens the page, types name and password, and
// follows the issuer until that sends it elsewhere. It returns that URL.
func (s *Server) LogIn(t testing.TB, to, name, password string) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var away *url.URL
	c := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), s.URL+"/") {
			return nil
		}
		away = r.URL
		return http.ErrUseLastResponse
	}}
	do := func(res *http.Response, err error) *http.Response {
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res
	}
	page := do(c.Get(to)).Request.URL
	if away != nil {
		return away
	}
	do(c.PostForm(s.URL+"/login/username", url.Values{"id": {page.Query().Get("authRequestID")},
		"username": {name}, "password": {password}}))
	if away == nil {
		t.Fatalf("the issuer did not send %s back", name)
	}
	return away
}
