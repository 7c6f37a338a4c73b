package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

type gatewayView struct {
	api.GatewayInfo
	Users []string // accounts that list it
	Form  form
	Tried *trial // nil: it was not tried now

	Lists   bool                // the provider's suppression list can be read
	Import  *api.ProviderImport // of that list; nil: there was none
	Domains []api.GatewayDomain // nil: the provider was not asked now
	Refused string              // why it didn't list its domains
}

// trial is the result of a login to a relay.
type trial struct {
	Name  string // of the relay
	Error string // empty: it let us in
	Code  string
	Steps []trialStep
	Help  string // what to do about Error
}

// trialStep is one step of a login. State is done, failed or open: not reached.
type trialStep struct{ Name, State string }

// triedRelay returns the result of a login, step by step.
func triedRelay(name string, v api.VerifyResult) trial {
	t := trial{Name: name, Error: v.Error, Code: v.Code}
	failed := 3 // none
	if !v.Success {
		t.Help = smtpsend.Advice(v.Code)
		failed = slices.Index([]string{"", "ETLS", "EAUTH"}, v.Code)
		switch v.Code {
		case "ENOAUTH", "EOAUTH2":
			failed = 2
		}
		failed = max(failed, 0)
	}
	for i, step := range []string{"Connect", "TLS", "Login"} {
		state := "done"
		switch {
		case i == failed:
			state = "failed"
		case i > failed:
			state = "open"
		}
		t.Steps = append(t.Steps, trialStep{step, state})
	}
	return t
}

// gatewayForm returns the form of a gateway of a type; id is empty for a new one.
func gatewayForm(id string, kind api.GatewayType) form {
	f := form{Action: "/gateways", Back: "/gateways", Save: "Add the gateway",
		Twins: "POST /v1/gateway · postroom gateway add"}
	about := []formField{
		{Name: "gateway", Label: "Id", Required: true,
			Hint: "Chosen by you: letters, digits and . _ @ + -. Accounts list it under this id."},
		{Name: "name", Label: "Name", Placeholder: "its id"},
		{Name: "verify", Label: "Try to log in first", Kind: "check"},
	}
	if id != "" {
		f = form{Action: "/gateways/" + url.PathEscape(id), Back: "/gateways", Save: "Save",
			Twins: "PUT /v1/gateway/" + id + " · postroom gateway update " + id}
		about = about[1:2]
	}
	groups := relayGroups("", "")
	switch {
	case kind == api.GatewayMX:
		groups = directGroups()
	case isAPI(kind):
		groups = apiGroups(kind)
	}
	if kind == api.GatewayMX || isAPI(kind) {
		f.Hidden = map[string]string{"type": string(kind)}
	}
	f.Groups = append([]formGroup{{Legend: "Gateway", Fields: about}}, groups...)
	f.Groups = append(f.Groups, formGroup{Legend: "Limits for each recipient domain", Folded: true,
		Fields: []formField{{Name: "limitsPerDomain", Label: "Limits", Kind: "lines", Most: 16384,
			Placeholder: "gmail.com perSecond=5 perMinute=100 connections=2",
			Hint: "One domain per line. * applies to all domains without their own line. Domains of one large receiver, " +
				"like gmail.com and googlemail.com, share a limit."}}})
	f.Groups = append(f.Groups, formGroup{Legend: "Warm-up", Folded: true, Fields: []formField{
		{Name: "warmup.perDay", Label: "Recipients on the first day", Kind: "number",
			Hint: "For an address that receivers don’t know yet: a little more every day, until the limit a day."},
		{Name: "warmup.growth", Label: "Times as many each day", Kind: "number", Placeholder: "1.5"},
	}})
	return f
}

func (u *UI) newGateway(w http.ResponseWriter, r *http.Request) error {
	return u.showNewGateway(w, r, values(map[string]string{"verify": "on", "type": r.URL.Query().Get("type")}),
		nil)
}

// newGatewayView is the page of a new gateway: first its type is chosen, then the form has its fields.
type newGatewayView struct {
	Type  api.GatewayType
	Types []api.GatewayType
	Form  form
}

func (u *UI) showNewGateway(w http.ResponseWriter, r *http.Request, v url.Values,
	refused error) error {
	kind := api.GatewayType(v.Get("type"))
	if !isAPI(kind) && kind != api.GatewayMX {
		kind = api.GatewaySMTP
	}
	view := newGatewayView{Type: kind, Types: append([]api.GatewayType{api.GatewaySMTP, api.GatewayMX},
		apisend.Types()...),
		Form: gatewayForm("", kind)}
	status, err := view.Form.refuse(r, v, refused)
	if err != nil {
		return err
	}
	return u.show(w, r, status, "gatewayform", "New gateway", view)
}

// readGateway returns the gateway of a form. Secrets that were left empty are those of old.
func readGateway(v url.Values, old api.Gateway) (api.Gateway, error) {
	r := &formReader{Values: v}
	var g api.Gateway
	r.take("", &g)
	if isAPI(g.Type) {
		was := *cmp.Or(old.API, &api.GatewayAPI{})
		g.API = cmp.Or(g.API, &api.GatewayAPI{})
		g.API.Key, g.API.Secret = r.secret("api.key", was.Key), r.secret("api.secret", was.Secret)
		g.API.WebhookSecret = r.secret("api.webhookSecret", was.WebhookSecret)
	} else if g.API = nil; g.Type == api.GatewayMX {
		g.MX = r.direct()
	} else {
		g.Type, g.MX = old.Type, nil
	}
	relay := r.relay("", "", relaySettings{relayOf(g), g.OAuth2}, relaySettings{relayOf(old), old.OAuth2})
	g.Gateway, g.OAuth2, g.User, g.Pass = cmp.Or(old.Gateway, g.Gateway), relay.OAuth2, "", ""
	g.Name = cmp.Or(g.Name, g.Gateway)
	if s := relay.SMTP; s != nil {
		g.TLS = s.TLS
		if s.Auth != nil {
			g.User, g.Pass = s.Auth.User, s.Auth.Pass
		}
	}
	g.LimitsPerDomain = r.domainLimits()
	if g.Warmup != nil && old.Warmup != nil && g.Warmup.PerDay == old.Warmup.PerDay {
		g.Warmup.Started = old.Warmup.Started // it goes on
	}
	return g, fault.InvalidFields(r.wrong)
}

// createGateway tries the relay of a new gateway, if that is wanted, and stores it.
func (u *UI) createGateway(w http.ResponseWriter, r *http.Request) error {
	g, err := readGateway(r.PostForm, api.Gateway{})
	if err == nil {
		err = u.unusedGateway(r, g.Gateway)
	}
	if err == nil && r.PostForm.Get("verify") != "" {
		err = u.tryGateway(r, g)
	}
	var made api.GatewayCreated
	if err == nil {
		made, err = u.Provision().CreateGateway(r.Context(), g)
	}
	if err != nil {
		return u.showNewGateway(w, r, r.PostForm, err)
	}
	noteMade(r, g)
	if made.Secret != "" {
		return done(w, r, "/gateways/"+url.PathEscape(g.Gateway),
			"The gateway %s was added. Its requests are signed "+
				"with %s, which is shown only now: your endpoint needs it.", g.Gateway, made.Secret)
	}
	return done(w, r, "/gateways/"+url.PathEscape(g.Gateway),
		"The gateway %s was added. Accounts that list it send through it.", g.Gateway)
}

// unusedGateway refuses the id of another gateway.
func (u *UI) unusedGateway(r *http.Request, id string) error {
	_, err := u.Gateways.Get(r.Context(), id)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	return fault.InvalidField("gateway", "is already used by another gateway")
}

// tryGateway logs in to the relay of a gateway that is not stored. Its error is beside the field that it is
// about.
func (u *UI) tryGateway(r *http.Request, g api.Gateway) error {
	if wrong := u.Gateways.Check(g); wrong != nil {
		return wrong
	}
	try := api.VerifyRequest{SMTP: relayOf(g), OAuth2: g.OAuth2, Proxy: g.Proxy, LocalAddress: g.LocalAddress,
		SMTPEhloName: g.SMTPEhloName}
	if g.Type == api.GatewayMX {
		try = api.VerifyRequest{Type: g.Type, MX: g.MX}
	}
	if isAPI(g.Type) {
		try = api.VerifyRequest{Type: g.Type, API: g.API, Proxy: g.Proxy}
		if g.Type == api.GatewayHTTP && g.API.Secret == "" {
			return nil // the secret is made with the gateway: the endpoint can't know it yet
		}
	}
	got, err := u.Provision().Verify(r.Context(), try)
	if err != nil || got.SMTP.Success {
		return err
	}
	if isAPI(g.Type) {
		key := map[string]string{"EAUTH": "api.key", "EENVELOPE": "api.key"}[got.SMTP.Code]
		return fault.InvalidField(cmp.Or(key, "api.url"), "was tried: %s", got.SMTP.Error)
	}
	key := map[string]string{"EAUTH": "user", "ENOAUTH": "user", "EOAUTH2": "oauth2.refreshToken",
		"ETLS": "tls.starttls"}[got.SMTP.Code]
	return fault.InvalidField(cmp.Or(key, "host"), "was tried: %s. %s", got.SMTP.Error,
		smtpsend.Advice(got.SMTP.Code))
}

func (u *UI) onGateway(h func(http.ResponseWriter, *http.Request, api.GatewayInfo) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		info, err := u.Gateways.Get(r.Context(), r.PathValue("id"))
		if err != nil {
			return err
		}
		return h(w, r, info)
	}
}

func (u *UI) gateway(w http.ResponseWriter, r *http.Request, info api.GatewayInfo) error {
	return u.showGateway(w, r, gatewayView{GatewayInfo: info}, gatewayValues(info.Gateway), nil)
}

func (u *UI) showGateway(w http.ResponseWriter, r *http.Request, view gatewayView, v url.Values,
	refused error) error {
	view.Form = gatewayForm(view.Gateway.Gateway, view.Type)
	status, err := view.Form.refuse(r, v, refused)
	if err != nil {
		return err
	}
	if view.Users, err = u.Accounts.UsingGateway(r.Context(), view.Gateway.Gateway); err != nil {
		return err
	}
	if err := u.showImport(r, &view); err != nil {
		return err
	}
	return u.show(w, r, status, "gateway", "Gateway "+view.Gateway.Gateway, view)
}

func gatewayValues(g api.Gateway) url.Values {
	f := url.Values{}
	put(f, "", g)
	f.Set("limitsPerDomain", strings.Join(gateways.FormatDomainLimits(g.LimitsPerDomain), "\n"))
	if g.MX != nil {
		var lines []string
		for _, a := range g.MX.Addresses {
			lines = append(lines, a.Address+" "+a.Name)
		}
		f.Set("mx.addresses", strings.Join(lines, "\n"))
	}
	setVerified(f, "", g.TLS)
	return f
}

func (u *UI) changeGateway(w http.ResponseWriter, r *http.Request, info api.GatewayInfo) error {
	id := info.Gateway.Gateway
	g, err := readGateway(r.PostForm, info.Gateway)
	if err == nil {
		_, err = u.Provision().UpdateGateway(r.Context(), id, api.PatchOf[api.GatewayPatch](info.Gateway, g))
	}
	if err != nil {
		return u.showGateway(w, r, gatewayView{GatewayInfo: info}, r.PostForm, err)
	}
	return done(w, r, "/gateways/"+url.PathEscape(id),
		"Changed. Mail goes through the new settings from now on.")
}

// verifyGateway shows the result of a login to a gateway. It changes nothing.
func (u *UI) verifyGateway(w http.ResponseWriter, r *http.Request, info api.GatewayInfo) error {
	got, err := u.Provision().Verify(r.Context(), api.VerifyRequest{Gateway: info.Gateway.Gateway})
	if err != nil {
		return err
	}
	tried := triedRelay(info.Gateway.Gateway, got.SMTP)
	return u.showGateway(w, r, gatewayView{GatewayInfo: info, Tried: &tried}, gatewayValues(info.Gateway), nil)
}

// setGatewayHook creates the webhook at a gateway's provider, or fixes it.
func (u *UI) setGatewayHook(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	back := "/gateways/" + url.PathEscape(id)
	h, err := u.Provision().SetWebhook(r.Context(), id, api.GatewayWebhookRequest{})
	switch {
	case err != nil:
		return undone(w, r, back, err)
	case h.State != api.HookOK:
		return undone(w, r, back, fault.New(fault.Conflict, "WebhookNotSet", "%s", h.Error))
	}
	return done(w, r, back, "The provider reports to %s.", h.URL)
}

// gatewayDomains shows the sender domains that a gateway's provider knows. It changes nothing.
func (u *UI) gatewayDomains(w http.ResponseWriter, r *http.Request, info api.GatewayInfo) error {
	view := gatewayView{GatewayInfo: info}
	got, err := u.Provision().GatewayDomains(r.Context(), info.Gateway.Gateway)
	if err != nil && !fault.Is(err, fault.Conflict) {
		return err
	}
	if view.Domains = got.Domains; err != nil {
		view.Refused = err.Error()
	}
	return u.showGateway(w, r, view, gatewayValues(info.Gateway), nil)
}

func (u *UI) deleteGateway(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := u.Provision().DeleteGateway(r.Context(), id); err != nil {
		return undone(w, r, "/gateways/"+url.PathEscape(id), err)
	}
	return done(w, r, "/gateways", "The gateway %s was deleted.", id)
}
