package oauth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"

	"github.com/postroom/postroom/internal/dialing"
)

// answers is a token server that gives one answer.
type answers http.Response

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) { return (*http.Response)(a), nil }

// answered asks a token server that gives this answer, with a secret.
func answered(status int, retryAfter, body, secret string) (*oauth2.Token, error) {
	a := asker{now: func() time.Time { return time.Unix(10, 0) }, client: &http.Client{Transport: &answers{
		StatusCode: status, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {retryAfter}}}}}
	return a.request(context.Background(), Client{TokenURL: "https://login.example.com/token", ClientID: "id",
		ClientSecret: secret, RefreshToken: firstRefresh}, firstRefresh, oauth2.AuthStyleInParams)
}

func TestJudge(t *testing.T) {
	const token = `"access_token":"a"`
	for _, tc := range []struct {
		name   string
		status int
		retry  string // Retry-After
		body   string
		want   *Error // nil: the token is taken
	}{
		{"a token", 200, "", `{` + token + `,"token_type":"Bearer","expires_in":3599}`, nil},
		{"a token in odd form", 200, "", `{` + token + `,"token_type":"bearer","expires_in":"3599","scope":["x"]}`,
			nil},
		{"a token without type or end", 200, "", `{` + token + `}`, nil},
		{"consent taken back", 400, "",
			`{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`,
			&Error{Permanent: true, Status: 400, Code: "invalid_grant",
				Description: "Token has been expired or revoked."}},
		{"wrong secret", 401, "", `{"error":"invalid_client"}`, &Error{Permanent: true, Status: 401,
			Code: "invalid_client"}},
		{"grant not allowed", 400, "", `{"error":"unauthorized_client"}`, &Error{Permanent: true, Status: 400,
			Code: "unauthorized_client"}},
		{"wrong secret without a code", 401, "", `nope`, &Error{Permanent: true, Status: 401,
			Code: "invalid_client"}},
		{"an error with status 200", 200, "", `{"error":"invalid_grant"}`, &Error{Permanent: true, Status: 200,
			Code: "invalid_grant"}},
		{"wrong scope", 400, "", `{"error":"invalid_scope"}`, &Error{Permanent: true, Status: 400,
			Code: "invalid_scope"}},
		{"an unknown code", 400, "", `{"error":"try_tomorrow"}`, &Error{Status: 400, Code: "try_tomorrow"}},
		{"a wall in between", 403, "", `<html>`, &Error{Status: 403}},
		{"no such page", 404, "", `<html>`, &Error{Status: 404}},
		{"an error in another form", 400, "", `{"error":{"code":400,"message":"x"}}`, &Error{Status: 400}},
		{"too many", 429, "17", `{"error":"invalid_request"}`, &Error{Status: 429, Code: "invalid_request",
			RetryAfter: 17 * time.Second}},
		{"away", 503, "Thu, 01 Jan 1970 00:01:40 GMT", ``, &Error{Status: 503, RetryAfter: 90 * time.Second}},
		{"away for long", 503, "99999999", ``, &Error{Status: 503, RetryAfter: maxPause}},
		{"broken", 500, "soon", `{"error":"invalid_grant"}`, &Error{Status: 500, Code: "invalid_grant"}},
		{"elsewhere", 302, "", ``, &Error{Status: 302, Description: "redirects are not followed"}},
		{"no JSON", 200, "", `access_token=a`, &Error{
			Description: "cannot parse json: invalid character 'a' looking for beginning of value"}},
		{"no token", 200, "", `{}`, &Error{Description: "server response missing access_token"}},
		{"a token that breaks the login", 200, "", `{"access_token":"a\u0001auth=x"}`,
			&Error{Description: "its answer holds no token that can be used"}},
		{"a refresh token that breaks", 200, "", `{` + token + `,"refresh_token":"a b"}`,
			&Error{Description: "its answer holds no token that can be used"}},
		{"a token to be used otherwise", 200, "", `{` + token + `,"token_type":"DPoP"}`,
			&Error{Permanent: true, Code: "unsupported_token_type",
				Description: "a bearer token is needed"}},
		{"too long", 200, "", strings.Repeat(" ", 1<<20) + `{}`,
			&Error{Description: "cannot parse json: unexpected end of JSON input"}},
		{"lines and colours", 400, "",
			`{"error":"invalid_grant","error_description":"AADSTS700082: expired\u001b[31m.\r\nTrace ID: 1"}`,
			&Error{Permanent: true, Status: 400, Code: "invalid_grant", Description: "AADSTS700082: expired [31m."}},
		{"secrets sent back", 400, "",
			`{"error":"the-secret","error_description":"the-secret dGhlLXNlY3JldA== is wrong"}`,
			&Error{Status: 400, Description: "*** *** is wrong"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := answered(tc.status, tc.retry, tc.body, "the-secret")
			if tc.want == nil {
				if err != nil || got.AccessToken != "a" {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			e, _ := errors.AsType[*Error](err)
			if diff := cmp.Diff(tc.want, e); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLifetime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		``: lifetime, `,"expires_in":3599`: 3599 * time.Second, `,"expires_in":"3599"`: 3599 * time.Second,
		`,"expires_in":null`: lifetime, `,"expires_in":-1`: lifetime,
	} {
		got, err := answered(200, "", `{"access_token":"a"`+text+`}`, "")
		if err != nil || lives(got) != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestSecretInTheHeader(t *testing.T) {
	p, s := setup(t)
	s.set(func() {
		s.instead = func(w http.ResponseWriter, r *http.Request) bool {
			user, pass, _ := r.BasicAuth()
			if user == "client-id" && pass == clientSecret && r.PostForm.Get("client_secret") == "" {
				return false
			}
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	})
	p.access(t, s.client(), "", "access-token-2")
	c := s.client()
	c.ClientSecret = "wrong"
	c.Scope = "x"
	if e := p.fails(t, c, ""); !e.Permanent || e.Code != "invalid_client" {
		t.Error(e)
	}
}

// TestNoRedirects: whoever can make the token server redirect must not get the secrets.
func TestNoRedirects(t *testing.T) {
	p, s := setup(t)
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer thief.Close()
	s.set(func() {
		s.instead = func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
			return true
		}
	})
	if e := p.fails(t, s.client(), ""); e.Permanent || e.Status != http.StatusTemporaryRedirect {
		t.Error(e)
	}
}

// TestNoAnswer: an error of the transport holds neither the secrets nor the query of the URL.
func TestNoAnswer(t *testing.T) {
	p, s := setup(t)
	c := s.client()
	s.Close()
	e := p.fails(t, c, "")
	if e.Permanent || e.Err == nil || e.Status != 0 {
		t.Error(e)
	}
	for _, secret := range []string{clientSecret, firstRefresh, "url-key"} {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("the error holds %s: %v", secret, e)
		}
	}
}

func TestSlowTokenServer(t *testing.T) {
	p, s := setup(t)
	stop := make(chan struct{})
	defer close(stop)
	s.set(func() { s.meddle = func() { <-stop } })
	p.asker.client.Timeout = 50 * time.Millisecond
	e := p.fails(t, s.client(), "")
	if e.Permanent || e.Err == nil {
		t.Error(e)
	}
}

func TestEndlessAnswer(t *testing.T) {
	p, s := setup(t)
	s.set(func() {
		s.instead = func(w http.ResponseWriter, _ *http.Request) bool {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return true
				}
			}
		}
	})
	if e := p.fails(t, s.client(), ""); !strings.HasPrefix(e.Description, "cannot parse json") {
		t.Error(e)
	}
}

func TestCheckTokenURL(t *testing.T) {
	for text, good := range map[string]bool{
		"https://login.example.com/token": true, "https://login.example.com:8443/token?p=x": true,
		"http://127.0.0.1:8080/token": true,
		"http://[::1]/token":          true, "http://localhost/token": true,
		"http://login.example.com/token": false, "http://10.0.0.1/token": false,
		"http://localhost.example.com/": false, "": false, "https://": false,
		"login.example.com/token": false, "https://user:pass@login.example.com/token": false,
		"ftp://localhost/": false, "https://a b/": false,
	} {
		if err := CheckTokenURL(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestProviders(t *testing.T) {
	for name, want := range map[string]Client{
		"gmail": {TokenURL: "https://oauth2.googleapis.com/token", Scope: "https://mail.google.com/"},
		"office365": {TokenURL: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
			Scope: "https://outlook.office.com/SMTP.Send offline_access"},
	} {
		got, err := Client{Provider: name, ClientID: "c", RefreshToken: "r"}.complete()
		if err != nil || got.TokenURL != want.TokenURL || got.Scope != want.Scope {
			t.Errorf("%s: %s, %s, %v", name, got.TokenURL, got.Scope, err)
		}
		own, err := Client{Provider: name, ClientID: "c", RefreshToken: "r",
			TokenURL: "https://login.example.com/t", Scope: "s"}.complete()
		if err != nil || own.TokenURL != "https://login.example.com/t" || own.Scope != "s" {
			t.Errorf("%s with an address of its own: %s, %s, %v", name, own.TokenURL, own.Scope, err)
		}
	}
}

func TestPrintedClientShowsNoSecret(t *testing.T) {
	c := Client{TokenURL: "https://login.example.com/t?key=url-key", ClientID: "id", ClientSecret: clientSecret,
		RefreshToken: firstRefresh}
	asJSON, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if err != nil {
		t.Fatal(err)
	}
	r := record{Access: "access-token", Refresh: firstRefresh}
	shown := string(asJSON) + fmt.Sprintf("%v %+v %#v %s %q %v %v %+v", c, c, c, c, &c, struct{ C Client }{c}, r,
		struct{ R record }{r})
	for _, secret := range []string{clientSecret, firstRefresh, "url-key", "access-token"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown: %s", secret, shown)
		}
	}
	if !strings.Contains(shown, "login.example.com") {
		t.Errorf("nothing is shown: %s", shown)
	}
}

// FuzzAnswer: whatever a token server sends, no secret gets into the error, and what counts as a token can
// stand in a login.
func FuzzAnswer(f *testing.F) {
	const secret = "the-secret/+ we sent"
	for _, s := range []string{
		`{"access_token":"a","expires_in":3600,"refresh_token":"b"}`,
		`{"error":"invalid_grant","error_description":"` + secret + `"}`, `{"error":"` + secret + `"}`,
		`{"error_description":"` + base64.StdEncoding.EncodeToString([]byte(secret)) + `"}`, ``, `[]`,
		`{"access_token":"a\u0000"}`, `{"expires_in":"x"}`,
	} {
		f.Add(200, s)
		f.Add(400, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		got, err := answered(status, "", body, secret)
		if err == nil {
			if !isToken(got.AccessToken) || lives(got) <= 0 {
				t.Errorf("took %q for %s", got.AccessToken, lives(got))
			}
			return
		}
		if text := err.Error(); strings.Contains(text, secret) || len(text) > 1000 ||
			strings.ContainsAny(text, "\r\n\x1b") {
			t.Errorf("the error says %q", text)
		}
	})
}

// A token server that may not be dialed is a fault of the account's settings: nothing is sent to it.
func TestTokenServersThatMayNotBeDialed(t *testing.T) {
	p, s := setup(t)
	private := s.client()
	p.asker = newAsker(dialing.New(dialing.Options{Setting: "relays.allowPrivate"}), p.Now)
	if e := p.fails(t, private, ""); !e.Permanent || e.Code != CodeSettings ||
		!strings.HasSuffix(e.Error(), "relays.allowPrivate is off") || len(s.requests()) > 0 {
		t.Errorf("private: %v, %d requests", e, len(s.requests()))
	}
	metadata := s.client()
	metadata.TokenURL = "https://169.254.169.254/token"
	p.asker = newAsker(dialing.New(dialing.Options{AllowPrivate: true}), p.Now)
	if e := p.fails(t, metadata, ""); !e.Permanent || !errors.Is(e, dialing.ErrRefused) {
		t.Errorf("metadata: %v", e)
	}
}
