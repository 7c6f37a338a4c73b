package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type tokensView struct {
	Tokens   []tokenRow
	Pager    pager
	Overlaps []overlap
	Presets  []tokenPreset
	Made     *api.TokenCreated // the new token; nil: none
	Replaced string            // ID of the token that Made replaces
	Until    *time.Time        // when the replaced token ends
	Form     form
	Typed    url.Values // into the form
	Refused  error      // why the form was refused; nil: it wasn't
}

type tokenRow struct {
	api.TokenInfo
	Expired bool
	Usage   *api.Usage // nil: no quota
}

// Replaceable reports whether the token can be replaced.
func (t tokenRow) Replaceable() bool { return !t.Expired && t.ReplacedBy == "" && t.Refused == "" }

// overlap is a choice of how long a replaced token works.
type overlap struct {
	Seconds int
	Words   string
}

var overlaps = []overlap{{86400, "a day"}, {3600, "an hour"}, {7 * 86400, "a week"}, {30 * 86400, "30 days"},
	{0, "no longer"}}

// tokenScopes are the choices of the form, the most common first.
var tokenScopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeLists,
	api.ScopeCampaigns, api.ScopeDigests, api.ScopeMetrics, api.ScopeAdmin}

func (u *UI) tokens(w http.ResponseWriter, r *http.Request) error {
	return u.showTokens(w, r, tokensView{Typed: presetScopes(r.URL.Query())})
}

// showTokens shows the list, and above it a new token.
func (u *UI) showTokens(w http.ResponseWriter, r *http.Request, v tokensView) error {
	number := pageOf(r.URL.Query())
	page, err := u.Access.List(r.Context(), "", number, rowsPerPage)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, t := range page.Tokens {
		row := tokenRow{TokenInfo: t, Expired: t.Expires != nil && !now.Before(*t.Expires)}
		if t.Restrictions != nil && t.Restrictions.Quota != nil {
			usage, err := u.Outbox.Reader.TokenUsage(r.Context(), t)
			if err != nil {
				return err
			}
			row.Usage = &usage
		}
		v.Tokens = append(v.Tokens, row)
	}
	v.Pager = pager{page.PageNumbers, rowsPerPage, "/tokens", nil}
	v.Overlaps, v.Presets, v.Form = overlaps, tokenPresets, tokenForm(len(v.Tokens) > 0)
	status, err := v.Form.refuse(r, v.Typed, v.Refused)
	if err != nil {
		return err
	}
	return u.show(w, r, status, "tokens", "Tokens", v)
}

// scopeWords are the scopes as the form explains them.
var scopeWords = map[string]string{
	"api": "everything except tokens, people and settings", "send": "submit messages over HTTP and SMTP",
	"smtp": "submit messages over SMTP only", "outbox": "read and change the outbox and the log",
	"lists": "lists and their subscribers", "campaigns": "campaigns; read lists and segments",
	"digests": "digests and their events", "metrics": "read metrics and statistics", "admin": "everything",
}

// tokenPreset is a choice of scopes for a usual purpose.
type tokenPreset struct {
	Name, Label string
	Scopes      []string
}

var tokenPresets = []tokenPreset{
	{"application", "application that sends", []string{"send"}},
	{"newsletters", "newsletter tool", []string{"lists", "campaigns"}},
	{"support", "support desk", []string{"outbox"}},
	{"monitoring", "monitoring", []string{"metrics"}},
}

// presetScopes returns the form's values for the preset that the URL names.
func presetScopes(in url.Values) url.Values {
	for _, p := range tokenPresets {
		if p.Name == in.Get("preset") {
			return url.Values{"scopes": p.Scopes}
		}
	}
	return nil
}

func tokenForm(folded bool) form {
	var scopes []string
	for _, s := range tokenScopes {
		scopes = append(scopes, string(s))
	}
	const quota, rate = "restrictions.quota.", "restrictions.rateLimit."
	return form{Action: "/tokens", Back: "/tokens", Save: "Create token",
		Twins: "POST /v1/tokens · postroom token add",
		Groups: []formGroup{{Legend: "Create a token", Folded: folded, Fields: []formField{
			{Name: "description", Label: "Description", Most: 1024, Required: true, Placeholder: "web shop"},
			{Name: "scopes", Label: "Scopes", Kind: "checks", Choices: scopes, Means: scopeWords,
				Hint: "Without a choice, the token gets the scope api."},
			{Name: "account", Label: "Account (empty: all)"},
			{Name: "expires", Label: "Last day (UTC)", Kind: "date"},
			{Name: "restrictions.addresses", Label: "Allowed addresses", Most: 2000,
				Placeholder: "anywhere, or 192.0.2.0/24"},
			{Name: quota + "messages", Label: "Maximum waiting messages", Kind: "number", Placeholder: "any"},
			{Name: quota + "bytes", Label: "Maximum bytes of waiting messages", Kind: "number", Placeholder: "any"},
			{Name: quota + "perDay", Label: "Maximum messages per day", Kind: "number", Placeholder: "any"},
			{Name: rate + "maxRequests", Label: "Maximum requests", Kind: "number", Placeholder: "any"},
			{Name: rate + "timeWindow", Label: "Period of this maximum (seconds)", Kind: "number",
				Placeholder: "60"},
			{Name: "restrictions.idempotencyRequired", Label: "Require an idempotency key",
				Kind: "check"},
		}}}}
}

// createToken creates the token of the form. It answers with the page itself, because a redirect would have
// to keep the token in a cookie.
func (u *UI) createToken(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := &formReader{Values: r.PostForm}
	req := api.TokenRequest{Expires: f.day("expires")}
	f.take("", &req)
	for _, s := range f.Values["scopes"] {
		req.Scopes = append(req.Scopes, api.Scope(s))
	}
	if of := req.Restrictions; of != nil && of.RateLimit != nil {
		of.RateLimit.TimeWindow = cmp.Or(of.RateLimit.TimeWindow, 60)
	}
	var made api.TokenCreated
	err := fault.InvalidFields(f.wrong)
	if err == nil {
		made, err = u.Access.Create(r.Context(), req, time.Now())
	}
	if err != nil {
		return u.showTokens(w, r, tokensView{Typed: r.PostForm, Refused: err})
	}
	return u.showTokens(w, r, tokensView{Made: &made})
}

func (u *UI) rotateToken(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	seconds, err := strconv.Atoi(r.PostForm.Get("overlap"))
	if err != nil {
		return undone(w, r, "/tokens", fault.New(fault.Invalid, "", "Choose how long the old token works"))
	}
	id := r.PathValue("id")
	made, err := u.Access.Rotate(r.Context(), id, api.TokenRotation{Overlap: &seconds}, time.Now())
	if err != nil {
		return undone(w, r, "/tokens", err)
	}
	old, err := u.Access.Get(r.Context(), id)
	if err != nil {
		return err
	}
	return u.showTokens(w, r, tokensView{Made: &made, Replaced: id, Until: old.Expires})
}

func (u *UI) deleteToken(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Access.Delete(r.Context(), r.PathValue("id"))
	return removed(w, r, "/tokens", "/tokens", deleted, err,
		"The token was deleted. Requests with it fail within a second.")
}
