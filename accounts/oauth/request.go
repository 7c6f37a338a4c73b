package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/postroom/postroom/internal/dialing"
)

const (
	askTimeout = 10 * time.Second // for an answer of the token server, retries included
	maxToken   = 16 << 10         // bytes; the limit of the API
	// lifetime of a token if the server sends none (RFC 6749 section 5.1 only recommends it). If a relay refuses
	// the token earlier, it is replaced.
	lifetime = 10 * time.Minute
	maxPause = 10 * time.Minute // bound of Retry-After
)

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
// The client's secret is sent in the body: the servers of all large providers accept that, and some require
// it. A server that accepts it in the header only, as RFC 6749 section 2.3.1 allows, answers invalid_client
// and is asked once more. That does not use up a refresh token.
func (a asker) ask(ctx context.Context, c Client, refreshToken string) (*oauth2.Token, error) {
	got, err := a.request(ctx, c, refreshToken, oauth2.AuthStyleInParams)
	if e, ok := errors.AsType[*Error](err); ok && e.Code == "invalid_client" && c.ClientSecret != "" &&
		c.Provider == "" {
		return a.request(ctx, c, refreshToken, oauth2.AuthStyleInHeader)
	}
	return got, err
}

// request sends one request. oauth2.Config sends no scope with a refresh token, which Microsoft's server
// needs; clientcredentials does, and lets the grant be another.
func (a asker) request(ctx context.Context, c Client, refreshToken string, style oauth2.AuthStyle) (
	*oauth2.Token, error) {
	config := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.TokenURL,
		Scopes: strings.Fields(c.Scope), AuthStyle: style,
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refreshToken}}}
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, a.client))
	if err != nil {
		return nil, a.judge(err, secretsOf(c.ClientSecret, c.RefreshToken, refreshToken))
	}
	if !isToken(got.AccessToken) || got.RefreshToken != refreshToken && !isToken(got.RefreshToken) {
		return nil, &Error{Description: "its answer holds no token that can be used"}
	}
	if got.Type() != "Bearer" {
		return nil, &Error{Permanent: true, Code: "unsupported_token_type", Description: "a bearer token is needed"}
	}
	return got, nil
}

// judge returns the error of a request without a token.
func (a asker) judge(err error, secrets []string) *Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		e := &Error{Err: plain(u)}
		if errors.Is(err, dialing.ErrRefused) {
			e.Permanent, e.Code = true, CodeSettings
		}
		return e
	}
	r, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok { // not JSON, or without a token
		return &Error{Description: scrub(strings.TrimPrefix(err.Error(), "oauth2: "), secrets)}
	}
	e := &Error{Status: r.Response.StatusCode, Code: code(r.ErrorCode, secrets),
		Description: scrub(r.ErrorDescription, secrets)}
	switch s := e.Status; {
	case s == http.StatusTooManyRequests || s == http.StatusRequestTimeout || s >= 500:
		e.RetryAfter = min(dialing.RetryAfter(r.Response.Header, a.now()), maxPause)
	case s >= 300 && s < 400:
		e.Code, e.Description = "", "redirects are not followed"
	default: // some servers answer 200 whatever happens
		if s == http.StatusUnauthorized && e.Code == "" {
			e.Code = "invalid_client" // RFC 6749 section 5.2 has 401 for that alone
		}
		e.Permanent = isPermanent(e.Code)
	}
	return e
}

// lives returns the lifetime of a token. Its Expiry is by another clock than ours.
func lives(token *oauth2.Token) time.Duration {
	n, err := strconv.ParseFloat(fmt.Sprint(token.Extra("expires_in")), 64)
	if err != nil || n <= 0 || n >= 1e9 {
		return lifetime
	}
	return time.Duration(n * float64(time.Second))
}

// isToken reports whether text can be a token: printable ASCII without spaces. A control character would
// break the SASL message, where they separate the fields.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// plain replaces the URL in an error of net/http, which may hold a key, by the host.
func plain(err *url.Error) error {
	host := "the token server"
	if u, wrong := url.Parse(err.URL); wrong == nil {
		host = u.Host
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer of %s in time: %w", host, context.DeadlineExceeded)
	}
	return fmt.Errorf("ask %s: %w", host, err.Err)
}
