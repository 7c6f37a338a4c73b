package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
)

// correction is the form that sends a dead letter again with changes: its choices, and its values after a
// refusal.
type correction struct {
	To, Gateway, Account string
	Gateways, Accounts   []string // the first ones, as choices
}

// Given reports whether something was filled in.
func (c correction) Given() bool { return c.To+c.Gateway+c.Account != "" }

// NoGateway is what the form has for the account's own relays: no gateway can have this id.
func (correction) NoGateway() string { return noGateway }

const noGateway = "-"

// mostChoices is how many gateways and accounts the form offers. An account beyond them can be written.
const mostChoices = 200

// corrections is the form, as it was filled in.
func (u *UI) corrections(ctx context.Context, given url.Values) (*correction, error) {
	c := &correction{
		To: clip(given.Get("to"), shownText), Gateway: clip(given.Get("gateway"), 256),
		Account: clip(given.Get("as"), 256),
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

// replay sends a dead letter again with corrections. If that is refused, the form is shown with its values.
func (u *UI) replay(w http.ResponseWriter, r *http.Request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	if _, err := u.Outbox.Replay(r.Context(), id, readCorrections(r.PostForm)); err != nil {
		filled := url.Values{}
		for _, name := range []string{"to", "gateway", "as"} {
			if value := r.PostForm.Get(name); value != "" && len(value) <= 1000 {
				filled.Set(name, value)
			}
		}
		return undone(w, r, address(messagePath(id), filled), err)
	}
	u.log.InfoContext(r.Context(), "dead letter replayed from the pages", "message_id", id)
	return done(w, r, messagePath(id), "The message is due again.")
}
