package oidc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/people"
)

const (
	// known is how long the answers of the issuer about itself are used.
	known = time.Hour
	// patience is the time for all requests to the issuer in one login step.
	patience = 15 * time.Second
)

// Options are the settings of an Issuer. Issuer, ClientID and Redirect are required.
type Options struct {
	Issuer       string   // URL of the issuer, under which its configuration is found
	ClientID     string   // of Postroom, as the issuer knows it
	ClientSecret string   // empty for a public client, which only PKCE protects
	Redirect     string   // URL of Postroom that browsers come back to
	Scopes       []string // asked for; openid is always among them
	NameClaim    string   // the claim with a person's name; defaults to email
	RoleClaim    string   // the claim whose values give a role
	// Roles are the values of the claim that give each role. If empty, the issuer gives none, and a person has
	// the role that it was created with.
	Roles  map[api.Role][]string
	Client *http.Client
	Now    func() time.Time // defaults to time.Now
}

// Issuer is a server that knows people. It is safe for concurrent use.
type Issuer struct {
	o Options

	mu       sync.Mutex
	provider *oidc.Provider
	asked    time.Time // when provider was got
}

// New returns an Issuer. It does no I/O.
func New(o Options) (*Issuer, error) {
	if o.Issuer == "" || o.ClientID == "" || o.Redirect == "" || o.Client == nil {
		return nil, errors.New("oidc: an issuer, a client id, a redirect URL and an HTTP client are needed")
	}
	o.NameClaim = cmp.Or(o.NameClaim, "email")
	if o.Now == nil {
		o.Now = time.Now
	}
	if !slices.Contains(o.Scopes, oidc.ScopeOpenID) {
		o.Scopes = append([]string{oidc.ScopeOpenID}, o.Scopes...)
	}
	return &Issuer{o: o}, nil
}

// Begin begins a login. It returns the URL that the browser is sent to, and the secret for its cookie, of 43
// characters. Unavailable: the issuer does not answer.
func (i *Issuer) Begin(ctx context.Context) (to, secret string, err error) {
	ctx, cancel := i.ask(ctx)
	defer cancel()
	p, err := i.discover(ctx)
	if err != nil {
		return "", "", err
	}
	var random [32]byte
	rand.Read(random[:]) // never fails (crypto/rand)
	secret = base64.RawURLEncoding.EncodeToString(random[:])
	return i.config(p).AuthCodeURL(derive(secret, "state"), oidc.Nonce(derive(secret, "nonce")),
		oauth2.S256ChallengeOption(derive(secret, "verifier"))), secret, nil
}

// Finish ends a login with the secret of the browser's cookie and the query that the browser came back with.
// It returns Unauthorized if this browser began another login, or if the issuer refused it. It returns
// Forbidden if the issuer gives no role or no name, and Unavailable if the issuer does not answer.
func (i *Issuer) Finish(ctx context.Context, secret string, back url.Values) (people.External, error) {
	state := back.Get("state")
	if len(secret) != 43 || subtle.ConstantTimeCompare([]byte(state), []byte(derive(secret, "state"))) != 1 {
		return people.External{}, fault.New(fault.Unauthorized, "LoginUnknown",
			"This browser didn't start this sign-in, or it took too long. Sign in again")
	}
	if code := back.Get("error"); code != "" {
		return people.External{}, fault.New(fault.Unauthorized, "LoginRefused", "%s refused the sign-in: %s",
			i.o.Issuer, strings.TrimSpace(clean(code)+" "+clean(back.Get("error_description"))))
	}
	ctx, cancel := i.ask(ctx)
	defer cancel()
	p, err := i.discover(ctx)
	if err != nil {
		return people.External{}, err
	}
	token, err := i.config(p).Exchange(ctx, back.Get("code"), oauth2.VerifierOption(derive(secret, "verifier")))
	if err != nil {
		return people.External{}, i.failed("exchange the code of a login", err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := p.Verifier(&oidc.Config{ClientID: i.o.ClientID, Now: i.o.Now}).Verify(ctx, raw)
	if err != nil {
		return people.External{}, i.failed("verify its token", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(derive(secret, "nonce"))) != 1 {
		return people.External{}, fault.New(fault.Unauthorized, "LoginUnknown",
			"The token from %s belongs to another sign-in. Sign in again", i.o.Issuer)
	}
	return i.identify(ctx, p, token, id)
}

// identify reads the claims of a verified token. It asks the issuer's userinfo for missing claims.
func (i *Issuer) identify(ctx context.Context, p *oidc.Provider, token *oauth2.Token, id *oidc.IDToken) (
	people.External, error) {
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return people.External{}, i.failed("read its token", err)
	}
	lacks := claims[i.o.NameClaim] == nil || len(i.o.Roles) > 0 && claims[i.o.RoleClaim] == nil
	if lacks && p.UserInfoEndpoint() != "" {
		info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return people.External{}, i.failed("ask for its user", err)
		}
		if info.Subject != id.Subject {
			return people.External{}, fault.New(fault.Unauthorized, "LoginRefused",
				"%s returned another user than the one in its token", i.o.Issuer)
		}
		more := map[string]json.RawMessage{}
		if err := info.Claims(&more); err != nil {
			return people.External{}, i.failed("read its user", err)
		}
		for name, value := range more {
			if claims[name] == nil {
				claims[name] = value
			}
		}
	}
	who := people.External{Identity: api.Identity{Issuer: id.Issuer, Subject: id.Subject}}
	if all := texts(claims[i.o.NameClaim]); len(all) == 1 {
		who.Name = all[0]
	}
	if i.o.NameClaim == "email" && !verified(claims["email_verified"]) {
		return people.External{}, fault.New(fault.Forbidden, "AddressUnverified",
			"%s hasn't verified the address %s. Verify it there and sign in "+
				"again", i.o.Issuer, clean(who.Name))
	}
	if who.Name == "" {
		return people.External{}, fault.New(fault.Forbidden, "NameMissing",
			"%s didn't return the claim %s for this user", i.o.Issuer, i.o.NameClaim)
	}
	if len(i.o.Roles) > 0 {
		if who.Role = i.role(texts(claims[i.o.RoleClaim])); who.Role == "" {
			return people.External{}, fault.New(fault.Forbidden, "NoRole",
				"%s gives %s no role, because its claim %s has none of the configured values", i.o.Issuer,
				clean(who.Name), i.o.RoleClaim)
		}
	}
	return who, nil
}

// role returns the highest role that values give; empty if none.
func (i *Issuer) role(values []string) api.Role {
	for _, role := range []api.Role{api.RoleAdmin, api.RoleOperator, api.RoleViewer} {
		if slices.ContainsFunc(values, func(v string) bool { return slices.Contains(i.o.Roles[role], v) }) {
			return role
		}
	}
	return ""
}

func (i *Issuer) discover(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	p, age := i.provider, i.o.Now().Sub(i.asked)
	i.mu.Unlock()
	if p != nil && age >= 0 && age < known {
		return p, nil
	}
	// the keys are asked for with the context of the provider, long after this request
	fresh, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), i.o.Client), i.o.Issuer)
	switch {
	case err == nil:
		i.mu.Lock()
		i.provider, i.asked = fresh, i.o.Now()
		i.mu.Unlock()
		return fresh, nil
	case p != nil: // its earlier answer will do
		return p, nil
	}
	return nil, i.failed("ask for its configuration", err)
}

func (i *Issuer) ask(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, i.o.Client), patience)
}

func (i *Issuer) config(p *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: i.o.ClientID, ClientSecret: i.o.ClientSecret, Endpoint: p.Endpoint(),
		RedirectURL: i.o.Redirect, Scopes: i.o.Scopes}
}

// failed returns the error of a step: Unauthorized if the issuer answered no, else Unavailable.
func (i *Issuer) failed(what string, err error) error {
	said, answered := errors.AsType[*oauth2.RetrieveError](err)
	var expired *oidc.TokenExpiredError
	forged := strings.HasPrefix(err.Error(), "failed to verify signature") &&
		!strings.Contains(err.Error(), "fetching keys")
	switch {
	case answered && said.Response.StatusCode < http.StatusInternalServerError:
		return fault.New(fault.Unauthorized, "LoginRefused", "%s refused the sign-in: %s", i.o.Issuer,
			strings.TrimSpace(clean(cmp.Or(said.ErrorCode, said.Response.Status))+" "+clean(said.ErrorDescription)))
	case forged, errors.As(err, &expired), strings.HasPrefix(err.Error(), "oidc:"):
		return fault.Wrap(fmt.Errorf("oidc: %s: %w", what, err), fault.Unauthorized, "LoginRefused",
			"The response of %s to this sign-in is invalid. Sign in again", i.o.Issuer)
	}
	return fault.Wrap(fmt.Errorf("oidc: %s: %w", what, err), fault.Unavailable, "IssuerUnavailable",
		"%s doesn't respond, so you can't sign in with it. Try again later, or sign in another "+
			"way", i.o.Issuer)
}

// derive returns a value of a login that only who knows its secret can know.
func derive(secret, purpose string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(purpose))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// texts returns a claim that is a text or a list of texts.
func texts(claim json.RawMessage) []string {
	var many []string
	if json.Unmarshal(claim, &many) == nil {
		return many
	}
	var one string
	if json.Unmarshal(claim, &one) != nil || one == "" {
		return nil
	}
	return []string{one}
}

// verified reports whether the claim email_verified is true. Some issuers write it as a text.
func verified(claim json.RawMessage) bool { return strings.Trim(string(claim), `"`) == "true" }

// clean returns a foreign text for an error: one line, and short.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
