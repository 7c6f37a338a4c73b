package ui

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
)

// correction is the form to replay a dead letter with corrections: its values after a refusal, and its
// choices.
type correction struct {
	To, Gateway, Account string
	Gateways, Accounts   []string // the first ones, as choices
}

// Given reports whether the form has values.
func (c correction) Given() bool { return c.To+c.Gateway+c.Account != "" }

// NoGateway is the choice of the account's own relays. It is not the id of a gateway.
func (correction) NoGateway() string { return noGateway }

const noGateway = "-"

// mostChoices is the maximum number of gateways and accounts in the form. Other accounts can be typed.
const mostChoices = 200

// corrections returns the form with its values. Who is bound to an account chooses among its gateways.
func (u *UI) corrections(r *http.Request) (*correction, error) {
	ctx, given := r.Context(), r.URL.Query()
	c := &correction{
		To: clip(given.Get("to"), shownBytes), Gateway: clip(given.Get("gateway"), 256),
		Account: clip(given.Get("as"), 256),
	}
	if bound := boundTo(r); bound != "" {
		info, err := u.Accounts.Get(ctx, bound)
		for _, g := range info.Gateways {
			c.Gateways = append(c.Gateways, g.Gateway)
		}
		return c, err
	}
	gateways, err := u.Gateways.List(ctx, 0, mostChoices)
	if err != nil {
		return nil, err
	}
	for _, g := range gateways.Gateways {
		c.Gateways = append(c.Gateways, g.Gateway.Gateway)
	}
	accounts, err := u.Accounts.List(ctx, 0, mostChoices)
	if err != nil {
		return nil, err
	}
	for _, a := range accounts.Accounts {
		c.Accounts = append(c.Accounts, a.Account.Account)
	}
	return c, nil
}

// readCorrections reads the form. Empty fields change nothing.
func readCorrections(form url.Values) api.Corrections {
	c := api.Corrections{Account: strings.TrimSpace(form.Get("as"))}
	if to := strings.FieldsFunc(form.Get("to"), func(r rune) bool {
		return strings.ContainsRune(", ;\r\n\t", r)
	}); len(to) > 0 {
		c.To = to
	}
	if gateway := strings.TrimSpace(form.Get("gateway")); gateway != "" {
		if gateway == noGateway {
			gateway = ""
		}
		c.Gateway = &gateway
	}
	return c
}

// ownCorrections is readCorrections, restricted to what the caller may see.
func ownCorrections(r *http.Request) (api.Corrections, error) {
	c := readCorrections(r.PostForm)
	c.Bound = boundTo(r) != ""
	_, err := ownAccount(r, c.Account)
	return c, err
}

// replay replays a dead letter with corrections. If they are refused, it shows the form with its values.
func (u *UI) replay(w http.ResponseWriter, r *http.Request, id string) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	c, err := ownCorrections(r)
	if err != nil {
		return err
	}
	m, err := u.Outbox.Operations.Replay(r.Context(), id, c)
	if err != nil {
		filled := map[string]string{}
		for _, name := range []string{"to", "gateway", "as"} {
			if value := r.PostForm.Get(name); len(value) <= 1000 {
				filled[name] = value
			}
		}
		return undone(w, r, address(messagePath(id), values(filled)), err)
	}
	u.log.InfoContext(r.Context(), "dead letter replayed from the pages", "message_id", id)
	return done(w, r, messagePath(id), "The message is due again.%s", map[string]string{
		"corrected": " To and Cc name its new recipients, and it is signed anew.",
		"unchanged": " It came in raw, so its header still names the former recipients.",
	}[m.Header])
}
