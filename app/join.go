package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/smtpsend"
)

// previewers gives template previews their sender.
type previewers struct {
	settings *settings.Settings
	accounts *accounts.Accounts
}

// Sender implements templates.Senders. Without a default account the sender is empty.
func (s previewers) Sender(ctx context.Context, account string) (render.Person, error) {
	info, err := s.accounts.Get(ctx, cmp.Or(account, accounts.DefaultID))
	if account == "" {
		err = ignoreNotFound(err)
	}
	return render.Person{Name: info.Name, Address: info.Email}, err
}

// ServiceURL implements templates.Senders.
func (s previewers) ServiceURL() string { return s.settings.Current().ServiceURL }

// verifier tests the logins of relays.
type verifier struct {
	router   *routing.Router
	accounts *accounts.Accounts
	gateways *gateways.Store
	tokens   *oauth.Tokens
	running  *sync.Map // by account: how many logins are being tried, *atomic.Int32
}

// maxVerifying is how many logins are tried together for an account: a silent server holds each.
const maxVerifying = 4

// Verify is server.Parts.Login. It tests the relay that the request describes, a stored gateway, or all
// relays of a stored account.
func (v verifier) Verify(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error) {
	sender, err := v.sender(ctx, req)
	if err != nil {
		return api.VerifyAnswer{}, err
	}
	counter, _ := v.running.LoadOrStore(req.Account, new(atomic.Int32))
	running := counter.(*atomic.Int32)
	defer running.Add(-1)
	if running.Add(1) > maxVerifying {
		f := fault.New(fault.Limited, "TooManyVerifications", "%d logins to relays are already being "+
			"tested. Try again later",
			maxVerifying)
		f.RetryAfter = time.Second
		return api.VerifyAnswer{}, f
	}
	if req.Account == "" { // the access token of a temporary sender is not kept
		// an error is ignored: the token expires anyway
		defer func() { _ = v.tokens.Forget(context.WithoutCancel(ctx), "account:"+sender.ID) }()
	}
	var answer api.VerifyAnswer
	for i, login := range v.router.Verify(ctx, sender) {
		result := verified(login.Err)
		if i == 0 {
			answer.SMTP = result
		}
		if login.Gateway != "" {
			answer.Gateways = append(answer.Gateways, api.GatewayVerifyResult{Gateway: login.Gateway,
				VerifyResult: result})
		}
	}
	return answer, nil
}

// sender returns the sender whose relays must be tested: a stored one or a temporary one.
func (v verifier) sender(ctx context.Context, req api.VerifyRequest) (accounts.Sender, error) {
	described := req.SMTP != nil || req.Type != "" || req.API != nil || req.MX != nil || req.OAuth2 != nil ||
		req.Proxy != "" ||
		req.LocalAddress != "" ||
		req.SMTPEhloName != ""
	made := accounts.Sender{ID: "verify-" + rand.Text()}
	switch {
	case req.Account != "" && req.Gateway != "":
		return made, fault.InvalidField("gateway", "can't be combined with account")
	case req.Account+req.Gateway != "" && described:
		return made, fault.InvalidField("smtp", "and its fields can't be combined with account or gateway")
	case req.Account != "":
		return v.accounts.Resolve(ctx, req.Account)
	}
	route, err := gateways.Relay{}, error(nil)
	if req.Gateway != "" {
		route, err = v.gateways.Resolve(ctx, req.Gateway)
	} else {
		route, err = accounts.Described(req)
	}
	made.Relays = []gateways.Relay{route}
	return made, err
}

// verified returns a login's result as an API type.
func verified(err error) api.VerifyResult {
	if err == nil {
		return api.VerifyResult{Success: true}
	}
	out := api.VerifyResult{Error: err.Error()}
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		out.Code = e.Name()
	}
	return out
}

// ignoreNotFound returns nil for a not-found error, otherwise err.
func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
