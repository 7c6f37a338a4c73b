package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/dialing"
)

const (
	askTimeout = 10 * time.Second // for an answer of the token server, retries included
	maxAnswer  = 256 << 10        // bytes of an answer; the longest known tokens have 16 KiB
	maxToken   = 16 << 10         // bytes; the limit of the API
	// lifetime of a token if the server sends none (RFC 6749 section 5.1 only recommends it). If a relay refuses
	// the token earlier, it is replaced.
	lifetime = 10 * time.Minute
	maxPause = 10 * time.Minute // bound of Retry-After
)

// answer is an answer of a token server: a token (RFC 6749 section 5.1), or an error (section 5.2).
type answer struct {
	AccessToken  string  `json:"access_token"`
	TokenType    string  `json:"token_type"`
	ExpiresIn    seconds `json:"expires_in"`
	RefreshToken string  `json:"refresh_token"`
	Code         string  `json:"error"`
	Description  string  `json:"error_description"`
}

// seconds is a number, which some servers send as a string.
type seconds float64

// UnmarshalJSON accepts both forms. Any other value counts as absent.
func (s *seconds) UnmarshalJSON(text []byte) error {
	if n, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64); err == nil && n > 0 && n < 1e9 {
		*s = seconds(n)
	}
	return nil
}

// lives returns the lifetime of the token.
func (a answer) lives() time.Duration {
	if a.ExpiresIn == 0 {
		return lifetime
	}
	return time.Duration(float64(a.ExpiresIn) * float64(time.Second))
}

// asker sends requests to token servers.
type asker struct {
	client *http.Client
	now    func() time.Time
}

// newAsker returns an asker. Connections are not kept: hours lie between two requests. The proxy of the
// environment is used: token servers are public, and many networks are closed otherwise.
func newAsker(guard *dialing.Guard, now func() time.Time) asker {
	return asker{client: guard.Client(dialing.HTTP{Environment: true}), now: now}
}

// ask requests an access token with a refresh token (RFC 6749 section 6). The error is an *Error without
// owner.
//
// The request is not made by golang.org/x/oauth2: that sends no scope with a refresh token, which Microsoft's
// server needs. It accepts answers that are not JSON, and drops Retry-After and error answers with a
// successful status.
//
// The client's secret is sent in the body: the servers of all large providers accept that, and some require
// it. A server that accepts it in the header only, as RFC 6749 section 2.3.1 allows, answers invalid_client
// and is asked once more. That does not use up a refresh token.
func (a asker) ask(ctx context.Context, c Client, refreshToken string) (answer, error) {
	got, err := a.request(ctx, c, refreshToken, false)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == "invalid_client" && c.ClientSecret != "" &&
		c.Provider == "" {
		return a.request(ctx, c, refreshToken, true)
	}
	return got, err
}

// request sends one request.
func (a asker) request(ctx context.Context, c Client, refreshToken string, basic bool) (answer, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refreshToken}}
	if c.Scope != "" {
		form.Set("scope", c.Scope)
	}
	if !basic {
		form.Set("client_id", c.ClientID)
		if c.ClientSecret != "" {
			form.Set("client_secret", c.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, &Error{Permanent: true, Code: CodeSettings, Description: "the token URL can't be read"}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if basic {
		req.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret))
	}
	res, err := a.client.Do(req)
	switch {
	case errors.Is(err, dialing.ErrRefused):
		return answer{}, &Error{Permanent: true, Code: CodeSettings, Err: plain(err, req.URL.Host)}
	case err != nil:
		return answer{}, &Error{Err: plain(err, req.URL.Host)}
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return answer{}, &Error{Status: res.StatusCode, Err: plain(err, req.URL.Host)}
	}
	return a.judge(res, text, secretsOf(c.ClientSecret, c.RefreshToken, refreshToken))
}

// judge returns the token of an answer, or its error.
func (a asker) judge(res *http.Response, text []byte, secrets []string) (answer, error) {
	var got answer
	err := json.Unmarshal(text, &got)
	secrets = append(secrets, secretsOf(got.AccessToken, got.RefreshToken)...)
	e := &Error{Status: res.StatusCode, Code: code(got.Code, secrets), Description: scrub(got.Description,
		secrets)}
	switch s := res.StatusCode; {
	case len(text) > maxAnswer:
		e.Code, e.Description = "", "its answer is too long"
	case s == http.StatusTooManyRequests || s == http.StatusRequestTimeout || s >= 500:
		e.RetryAfter = a.retryAfter(res.Header.Get("Retry-After"))
	case s >= 300 && s < 400:
		e.Code, e.Description = "", "redirects are not followed"
	case s >= 400 || got.Code != "": // some servers answer 200 whatever happens
		if s == http.StatusUnauthorized && e.Code == "" {
			e.Code = "invalid_client" // RFC 6749 section 5.2 has 401 for that alone
		}
		e.Permanent = isPermanent(e.Code)
	case err != nil:
		e.Description = "its answer is no JSON"
	case !isToken(got.AccessToken) || got.RefreshToken != "" && !isToken(got.RefreshToken):
		e.Description = "its answer holds no token that can be used"
	case got.TokenType != "" && !strings.EqualFold(got.TokenType, "bearer"):
		e.Permanent, e.Code, e.Description = true, "unsupported_token_type", "a bearer token is needed"
	default:
		return got, nil
	}
	return answer{}, e
}

// retryAfter parses seconds or a date (RFC 9110 section 10.2.3).
func (a asker) retryAfter(text string) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(text); err == nil {
		d = time.Duration(min(n, 1<<20)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(a.now())
	}
	return min(max(d, 0), maxPause)
}

// isToken reports whether text can be a token: printable ASCII without spaces. A control character would
// break the SASL message, where they separate the fields.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// plain replaces the URL in an error of net/http, which may hold a key, by the host.
func plain(err error, host string) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer of %s in time: %w", host, context.DeadlineExceeded)
	}
	return fmt.Errorf("ask %s: %w", host, err)
}
