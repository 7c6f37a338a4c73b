package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// tokenPages are the pages of access tokens.
type tokenPages struct{ *UI }

// tokensView is the page of access tokens.
type tokensView struct {
	Tokens   []tokenRow
	Pager    pager
	Scopes   []api.Scope
	Overlaps []overlap
	Made     *api.TokenCreated // the new token; nil: none was made
	Replaced string            // id of the token that Made replaces
	Until    *time.Time        // when that one ends
}

// tokenRow is a token in the list.
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

func (u tokenPages) tokens(w http.ResponseWriter, r *http.Request) error {
	return u.showTokens(w, r, tokensView{})
}

// showTokens shows the list, and above it what was made.
func (u tokenPages) showTokens(w http.ResponseWriter, r *http.Request, v tokensView) error {
	number := pageOf(r.URL.Query())
	page, err := u.Access.List(r.Context(), number, rowsPerPage)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, t := range page.Tokens {
		row := tokenRow{TokenInfo: t, Expired: t.Expires != nil && !now.Before(*t.Expires)}
		if t.Restrictions != nil && t.Restrictions.Quota != nil {
			usage, err := u.Outbox.TokenUsage(r.Context(), t)
			if err != nil {
				return err
			}
			row.Usage = &usage
		}
		v.Tokens = append(v.Tokens, row)
	}
	v.Pager = pager{Page: number, Pages: page.Pages, Total: page.Total, Size: rowsPerPage, path: "/tokens"}
	v.Scopes, v.Overlaps = tokenScopes, overlaps
	return u.show(w, r, http.StatusOK, "tokens", "Tokens", v)
}

// createToken makes the token of the form. Its page is the answer itself: a redirect would have to keep the
// token in a cookie.
func (u tokenPages) createToken(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	req := api.TokenRequest{Description: strings.TrimSpace(f.Get("description")),
		Account: strings.TrimSpace(f.Get("account"))}
	for _, s := range f["scopes"] {
		req.Scopes = append(req.Scopes, api.Scope(s))
	}
	if until := f.Get("expires"); until != "" {
		at, err := time.Parse(time.DateOnly, until)
		if err != nil {
			return undone(w, r, "/tokens", fault.New(fault.Invalid, "", "The last day is no date"))
		}
		req.Expires = new(at.AddDate(0, 0, 1)) // the day itself included
	}
	if from := strings.Fields(strings.ReplaceAll(f.Get("addresses"), ",", " ")); len(from) > 0 {
		req.Restrictions = &api.Restrictions{Addresses: from}
	}
	quota, err := readTokenQuota(f)
	if err != nil {
		return undone(w, r, "/tokens", err)
	}
	if quota != (api.TokenQuota{}) {
		req.Restrictions = cmp.Or(req.Restrictions, &api.Restrictions{})
		req.Restrictions.Quota = &quota
	}
	made, err := u.Access.Create(r.Context(), req, time.Now())
	if err != nil {
		return undone(w, r, "/tokens", err)
	}
	return u.showTokens(w, r, tokensView{Made: &made})
}

// readTokenQuota reads the quota of the form. Empty fields mean any number.
func readTokenQuota(form url.Values) (q api.TokenQuota, _ error) {
	for name, field := range map[string]*int{"messages": &q.Messages, "bytes": &q.Bytes, "perDay": &q.PerDay} {
		text := strings.TrimSpace(form.Get(name))
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return q, fault.InvalidFields([]fault.Field{{Key: name, Message: "must be a number, 0 or more"}})
		}
		*field = n
	}
	return q, nil
}

// rotateToken makes a token in place of another, and shows it.
func (u tokenPages) rotateToken(w http.ResponseWriter, r *http.Request) error {
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

func (u tokenPages) deleteToken(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Access.Delete(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		return undone(w, r, "/tokens", err)
	case !deleted:
		return done(w, r, "/tokens", "The token was gone already.")
	}
	return done(w, r, "/tokens", "The token was deleted. It is refused within a second.")
}
