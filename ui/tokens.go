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
	Made     *api.TokenCreated // the new token; nil: none was made
	Replaced string            // id of the token that Made replaces
	Until    *time.Time        // when that one ends
	Form     form
	Typed    url.Values // into the form
	Refused  error      // why that was refused; nil: it was not
}

type tokenRow struct {
	api.TokenInfo
	Expired bool
	Usage   *api.Usage // nil: it has no quota
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

// tokenScopes are the choices of the form, the usual one first.
var tokenScopes = []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeLists,
	api.ScopeCampaigns, api.ScopeDigests, api.ScopeMetrics, api.ScopeAdmin}

func (u *UI) tokens(w http.ResponseWriter, r *http.Request) error {
	return u.showTokens(w, r, tokensView{})
}

// showTokens shows the list, and above it what was made.
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
	v.Overlaps, v.Form = overlaps, tokenForm(len(v.Tokens) > 0)
	status, err := v.Form.refuse(r, v.Typed, v.Refused)
	if err != nil {
		return err
	}
	return u.show(w, r, status, "tokens", "Tokens", v)
}

func tokenForm(folded bool) form {
	var scopes []string
	for _, s := range tokenScopes {
		scopes = append(scopes, string(s))
	}
	const quota, rate = "restrictions.quota.", "restrictions.rateLimit."
	return form{Action: "/tokens", Back: "/tokens", Save: "Make",
		Twins: "POST /v1/tokens · postroom token create",
		Groups: []formGroup{{Legend: "Make a token", Folded: folded, Fields: []formField{
			{Name: "description", Label: "For what", Most: 1024, Required: true, Placeholder: "web shop"},
			{Name: "scopes", Label: "May do", Kind: "checks", Choices: scopes,
				Hint: "send submits mail, smtp over SMTP only; outbox reads and changes the outbox and the log, " +
					"metrics reads metrics; api is all of these and accounts, templates, webhooks and suppressions; " +
					"admin is everything. None chosen: api."},
			{Name: "account", Label: "Only of account"},
			{Name: "expires", Label: "Last day (UTC)", Kind: "date"},
			{Name: "restrictions.addresses", Label: "From where", Most: 2000,
				Placeholder: "anywhere, or 192.0.2.0/24"},
			{Name: quota + "messages", Label: "Messages waiting, at most", Kind: "number", Placeholder: "any"},
			{Name: quota + "bytes", Label: "Bytes of these", Kind: "number", Placeholder: "any"},
			{Name: quota + "perDay", Label: "Messages a day", Kind: "number", Placeholder: "any"},
			{Name: rate + "maxRequests", Label: "Requests, at most", Kind: "number", Placeholder: "any"},
			{Name: rate + "timeWindow", Label: "Requests are counted for (seconds)", Kind: "number",
				Placeholder: "60"},
			{Name: "restrictions.idempotencyRequired", Label: "Refuse a submit without an idempotency key",
				Kind: "check"},
		}}}}
}

// createToken makes the token of the form. Its page is the answer itself: a redirect would have to keep the
// token in a cookie.
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
		return undone(w, r, "/tokens", fault.New(fault.Invalid, "", "Say how long the old token works"))
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
		"The token was deleted. It is refused within a second.")
}
