package ui

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

var madeToken = regexp.MustCompile(`<code id="made">([0-9a-f]{64})</code>`)

// grantOf returns what a token may do now.
func (w *world) grantOf(token string) (*access.Grant, error) {
	return w.access.Authenticate(w.t.Context(), token, netip.MustParseAddr("192.0.2.9"), time.Now())
}

// TestTokensAreMadeReplacedAndDeleted: on pages, with an entry in the audit log each that does not have the
// token.
func TestTokensAreMadeReplacedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	if p := b.get("/tokens"); !strings.Contains(p.body, "No tokens yet") {
		t.Error("without tokens:", p.body)
	}
	last := time.Now().AddDate(0, 1, 0).UTC().Truncate(24 * time.Hour)
	p := b.post("/tokens", url.Values{"description": {"<b>shop</b>"}, "scopes": {"send", "outbox"},
		"account": {"snd"}, "restrictions.addresses": {"192.0.2.0/24, 2001:db8::/32"},
		"expires":                   {last.Format(time.DateOnly)},
		"restrictions.quota.perDay": {"1500"}, "restrictions.rateLimit.maxRequests": {"7"},
		"restrictions.idempotencyRequired": {"on"}})
	p.isSafe(t, "the page of a new token")
	first := madeToken.FindStringSubmatch(p.body)
	if first == nil {
		t.Fatal("no token is shown:", p.body)
	}
	g, err := w.grantOf(first[1])
	if err != nil || g.Account != "snd" || g.Name != "<b>shop</b>" || len(g.Scopes) != 2 {
		t.Fatalf("%+v, %v", g, err)
	}
	info, err := w.access.Get(t.Context(), g.TokenID)
	if err != nil || !info.Expires.Equal(last.AddDate(0, 0, 1)) || len(info.Restrictions.Addresses) != 2 ||
		*info.Restrictions.RateLimit != (api.RateLimit{MaxRequests: 7, TimeWindow: 60}) ||
		!info.Restrictions.IdempotencyRequired {
		t.Errorf("%+v, %v", info, err)
	}
	p = b.get("/tokens")
	if strings.Contains(p.body, first[1]) || strings.Contains(p.body, "<b>shop") {
		t.Error("the list shows the token, or markup")
	}
	for _, want := range []string{"works", "from 192.0.2.9", "192.0.2.0/24", "account snd only",
		"0 of 1\u202f500 today"} {
		if !strings.Contains(p.body, want) {
			t.Errorf("the list does not say %q", want)
		}
	}

	p = b.post("/tokens/"+g.TokenID+"/rotate", url.Values{"overlap": {"0"}})
	second := madeToken.FindStringSubmatch(p.body)
	if second == nil || second[1] == first[1] {
		t.Fatal("no new token is shown:", p.body)
	}
	if _, err := w.grantOf(first[1]); err == nil {
		t.Error("the old token works after an overlap of 0")
	}
	next, err := w.grantOf(second[1])
	if err != nil || next.Account != "snd" {
		t.Fatalf("%+v, %v", next, err)
	}
	if p := b.submitForm("/tokens/"+g.TokenID+"/rotate", url.Values{"overlap": {"0"}}); !strings.Contains(p.body,
		"already replaced") {
		t.Error("a second time:", p.body)
	}
	p = b.submitForm("/tokens/"+next.TokenID+"/delete", nil)
	if !strings.Contains(p.body, "The token was deleted") {
		t.Error(p.body)
	}
	if _, err := w.grantOf(second[1]); err == nil {
		t.Error("a deleted token works")
	}
	var actions []string
	for _, e := range w.entries() {
		if e.Object != nil && e.Object.Kind == "token" {
			actions = append(actions, e.Action+" "+string(e.Result))
		}
		for _, c := range e.Changes {
			if strings.Contains(c.After, first[1]) || strings.Contains(c.After, second[1]) {
				t.Error("the audit log has a token")
			}
		}
	}
	want := []string{"POST /tokens/{id}/rotate refused", // refused changes are counted, and written later
		"POST /tokens/{id}/delete done", "POST /tokens/{id}/rotate done", "POST /tokens done"}
	if strings.Join(actions, "\n") != strings.Join(want, "\n") {
		t.Errorf("the audit log has %q", actions)
	}
}

func TestWrongFormsMakeNoToken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	for want, form := range map[string]url.Values{
		`id="description-wrong">`:            {"description": {" "}},
		`id="scopes-wrong">`:                 {"description": {"d"}, "scopes": {"everything"}},
		`id="expires-wrong">must be a date`:  {"description": {"d"}, "expires": {"tomorrow"}},
		`id="restrictions.addresses-wrong">`: {"description": {"d"}, "restrictions.addresses": {"here"}},
		`value="the shop"`:                   {"description": {"the shop"}, "expires": {"never"}},
	} {
		if p := b.post("/tokens", form); p.status != http.StatusBadRequest ||
			!strings.Contains(p.text(), want) || madeToken.MatchString(p.body) {
			t.Errorf("%v is not told that %s is wrong: %s", form, want, p.body)
		}
	}
	if page, err := w.access.List(t.Context(), "", 0, 10); err != nil || page.Total != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestTokensAreForAdmins: a token of the scope api can't make itself an admin.
func TestTokensAreForAdmins(t *testing.T) {
	t.Parallel()
	w := setup(t)
	made, err := w.access.Create(t.Context(), api.TokenRequest{Description: "d"}, time.Now())
	w.must(err)
	b := w.program(made.Token)
	if p := b.get("/tokens"); p.status != http.StatusForbidden {
		t.Errorf("the list: %d", p.status)
	}
	one := "/tokens/" + made.ID
	for _, path := range []string{"/tokens", one + "/rotate", one + "/delete"} {
		form := url.Values{"description": {"d"}, "scopes": {"admin"}, "overlap": {"0"}}
		if p := b.post(path, form); p.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	if page, err := w.access.List(t.Context(), "", 0, 10); err != nil || page.Total != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestATokenNeedsNumbersForItsQuota(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	b.post("/tokens", url.Values{"description": {"x"}, "restrictions.quota.bytes": {"much"}}).has(t,
		`id="restrictions.quota.bytes-wrong">must be a whole number`)
	b.post("/tokens", url.Values{"description": {"x"}, "restrictions.quota.bytes": {"-1"}}).has(t,
		`id="restrictions.quota.bytes-wrong">must be 0 or more`)
}
