package apiadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// wanted is the webhook that a gateway needs.
type wanted struct{ url, secret string }

// present is the webhook with that address at the provider.
type present struct {
	id     string // the provider's; empty if there is none
	right  bool   // it is on, and reports all that Postroom reads
	secret string // with which it proves itself; empty if the provider doesn't show it
	state  any    // what put needs to know besides
}

// webhooks is how a provider's webhooks are looked up and set.
type webhooks struct {
	find func(*Client, context.Context, apisend.Target, wanted) (present, error)
	// creates the webhook, or changes the present one. It returns the secret with which it proves itself.
	put func(*Client, context.Context, apisend.Target, wanted, present) (string, error)
	// what the secret is, if only the user can know it; empty if we or the provider make it
	needs string
}

var webhooksOf = map[api.GatewayType]webhooks{
	api.GatewayPostmark:  {find: findPostmark, put: putPostmark},
	api.GatewayResend:    {find: findResend, put: putResend},
	api.GatewaySendGrid:  {find: findSendGrid, put: putSendGrid},
	api.GatewayMailgun:   {findMailgun, putMailgun, "the webhook signing key of Mailgun"},
	api.GatewayMailjet:   {find: findMailjet, put: putMailjet},
	api.GatewaySparkPost: {find: findSparkPost, put: putSparkPost},
	api.GatewayBrevo:     {find: findBrevo, put: putBrevo},
	api.GatewayMandrill:  {find: findMandrill, put: putMandrill},
	api.GatewaySES:       {findSES, putSES, "the ARN of an SNS topic that the address is subscribed to"},
}

// Webhook compares the webhook of this address with the one that Postroom needs. An empty secret is one that
// isn't known yet. The error is ErrLacking or an *smtpsend.Error; the state is unknown then.
func (c *Client) Webhook(ctx context.Context, t apisend.Target, address, secret string) (api.HookState,
	error) {
	w := wanted{address, secret}
	h, err := hooksFor(t, w)
	if err != nil {
		return api.HookUnknown, err
	}
	p, err := h.find(c, ctx, t, w)
	switch {
	case err != nil:
		return api.HookUnknown, withoutSecret(err, secret)
	case p.id == "":
		return api.HookUnset, nil
	case !p.right || p.secret != "" && p.secret != secret || secret == "":
		return api.HookWrong, nil
	}
	return api.HookOK, nil
}

// SetWebhook creates the webhook of this address, or fixes it. It returns the secret with which the webhook
// proves itself: the argument, or the provider's own. A second call makes no other webhook.
func (c *Client) SetWebhook(ctx context.Context, t apisend.Target, address, secret string) (string, error) {
	w := wanted{address, secret}
	h, err := hooksFor(t, w)
	if err != nil {
		return "", err
	}
	p, err := h.find(c, ctx, t, w)
	if err == nil && p.id != "" && p.right && p.secret != "" {
		return p.secret, nil
	}
	if err == nil {
		secret, err = h.put(c, ctx, t, w, p)
	}
	if err == nil && secret == "" {
		err = strange(notTheAPI)
	}
	return secret, withoutSecret(err, w.secret)
}

// hooksFor returns how the webhooks of a target are set.
func hooksFor(t apisend.Target, w wanted) (webhooks, error) {
	h, known := webhooksOf[t.Type]
	switch {
	case !known:
		return h, fmt.Errorf("%w: have your endpoint post its events to %s, signed with api.webhookSecret",
			ErrLacking, w.url)
	case h.needs != "" && w.secret == "":
		return h, fmt.Errorf("%w: set api.webhookSecret first, which is %s", ErrLacking, h.needs)
	case t.Type == api.GatewaySES && t.Pool == "":
		return h, fmt.Errorf("%w: set api.pool first, the configuration set whose events go to the SNS topic",
			ErrLacking)
	}
	return h, nil
}

// withoutSecret returns an error whose text doesn't have the secret: a provider may quote the request.
func withoutSecret(err error, secret string) error {
	e, ok := errors.AsType[*smtpsend.Error](err)
	if !ok || secret == "" || !strings.Contains(e.Line, secret) {
		return err
	}
	clean := *e
	clean.Line = strings.ReplaceAll(e.Line, secret, "******")
	return &clean
}

// sameAddress reports whether two addresses lead to the same place. User, password and query don't count:
// they may have the secret.
func sameAddress(a, b string) bool {
	x, err := url.Parse(a)
	y, wrong := url.Parse(b)
	return err == nil && wrong == nil && x.Scheme == y.Scheme && strings.EqualFold(x.Host, y.Host) &&
		x.Path == y.Path
}

// hasAll reports whether a webhook reports all events that Postroom reads. It may report more.
func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(e string) bool { return !slices.Contains(have, e) })
}

// anyID is an id that is a number or a text.
type anyID string

// UnmarshalJSON implements [json.Unmarshaler].
func (i *anyID) UnmarshalJSON(raw []byte) error {
	*i = anyID(strings.Trim(string(raw), `"`))
	return nil
}

// described is what a provider shows of our webhook in its console.
const described = "Postroom"

// conflict is the error about a webhook of somebody else that is in the way.
func conflict(text string, values ...any) error {
	return &smtpsend.Error{Protocol: "http", Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Policy,
		Scope: smtpsend.ScopeAccount, Err: fmt.Errorf(text, values...)}
}

// status returns the HTTP status of an error; 0 if there was no answer.
func status(err error) int {
	e, _ := errors.AsType[*smtpsend.Error](err)
	return cmp.Or(e, &smtpsend.Error{}).Status
}
