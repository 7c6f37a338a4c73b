package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/templates/render"
)

// previewers tells previews of templates who would send.
type previewers struct {
	settings *settings.Settings
	accounts *accounts.Accounts
}

// Sender implements templates.Senders. Without a default account, nobody in particular sends.
func (s previewers) Sender(ctx context.Context, account string) (render.Person, error) {
	info, err := s.accounts.Get(ctx, cmp.Or(account, accounts.DefaultID))
	if account == "" {
		err = ignoreNotFound(err)
	}
	return render.Person{Name: info.Name, Address: info.Email}, err
}

// ServiceURL implements templates.Senders.
func (s previewers) ServiceURL() string { return s.settings.Current().ServiceURL }

// verifier tries the login of relays.
type verifier struct {
	router   *routing.Router
	accounts *accounts.Accounts
	gateways *gateways.Store
	tokens   *oauth.Tokens
}

// Verify implements server.Verifier: it tries the relay that the request describes, a stored gateway, or
// all relays of a stored account.
func (v verifier) Verify(ctx context.Context, req api.VerifyRequest) (api.VerifyAnswer, error) {
	sender, err := v.sender(ctx, req)
	if err != nil {
		return api.VerifyAnswer{}, err
	}
	if req.Account == "" { // what was had for somebody who does not exist is not kept
		// it expires by itself
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

// sender is the one whose relays are to be tried: a stored one, or one made up for the occasion.
func (v verifier) sender(ctx context.Context, req api.VerifyRequest) (accounts.Sender, error) {
	described := req.SMTP != nil || req.OAuth2 != nil || req.Proxy != "" || req.LocalAddress != "" ||
		req.SMTPEhloName != ""
	made := accounts.Sender{ID: "verify-" + rand.Text()}
	switch {
	case req.Account != "" && req.Gateway != "":
		return made, fault.InvalidFields([]fault.Field{{Key: "gateway", Message: "can't be combined with account"}})
	case req.Account+req.Gateway != "" && described:
		return made, fault.InvalidFields([]fault.Field{
			{Key: "smtp", Message: "and what belongs to it can't be combined with account or gateway"}})
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

// verified puts what a login met in the words of the API.
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

// ignoreNotFound takes what does not exist for an answer.
func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
