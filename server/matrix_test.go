package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

// foreign are the answers to a token of another account about an object of acme, where that is not 404. The
// answer is always that about an object that does not exist.
var foreign = map[string]int{
	// {"deleted":false}, as for an unknown id
	"cancelMessage": 200,
	"getUsage":      403, "getAccountDNS": 403,
	"getAccount": 403, "submitAs": 403, "flushTemplates": 403, "addToBlocklist": 403, // an account is named
	"listSenders": 403, "addSender": 403, "removeSender": 403, "verifySender": 403, "mailSender": 403,
	"removeFromBlocklist":  200, // from the list of that name of its own account
	"endSession":           200, // {"deleted":false}, as for an unknown id
	"deleteSubscriber":     200, // the same
	"stopSubscriberImport": 200, // the same
	"putDigestRecipient":   200, // one of its own
	"whyTo":                200, // what its own account knows of the address
}

// operations returns the routes of the OpenAPI document, by the table's row.
func (w *world) operations(t *testing.T) []route {
	t.Helper()
	written, err := w.spec()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(written.json, &doc); err != nil {
		t.Fatal(err)
	}
	rows := map[string]route{}
	for _, g := range w.routes() {
		for _, r := range g.routes {
			rows[strings.ToLower(r.method)+" "+r.path] = r
		}
	}
	var all []route
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			r, ok := rows[method+" "+path]
			if !ok || r.id != doc.Paths[path][method].OperationID {
				t.Fatalf("%s %s is no route", method, path)
			}
			all = append(all, r)
		}
	}
	return all
}

// identity is somebody who calls a route.
type identity struct {
	token string
	grant *access.Grant // defaults to 401
}

// identities makes a token of every kind: none, wrong, expired, each scope, each scope bound to acme and to
// other. It also makes people with every role, bound to acme and to other too.
func (w *world) identities(t *testing.T) []identity {
	t.Helper()
	ended := time.Now().Add(-time.Minute)
	expired, err := w.parts.Access.Create(t.Context(), api.TokenRequest{Description: "expired",
		Scopes: []api.Scope{api.ScopeAdmin}, Expires: &ended}, ended.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	w.parts.tokens["expired"] = expired.Token
	all := []identity{{"", nil}, {"wrong", nil}, {"expired", nil}}
	for _, account := range []string{"", "acme", "other"} {
		scopes := []api.Scope{api.ScopeAPI, api.ScopeSend, api.ScopeSMTP, api.ScopeOutbox, api.ScopeLists,
			api.ScopeCampaigns, api.ScopeDigests}
		prefix := account + "-"
		if account == "" {
			scopes, prefix = append(scopes, api.ScopeMetrics, api.ScopeAdmin, api.ScopeAll), "any-"
		}
		for _, scope := range scopes {
			name := prefix + string(scope)
			w.parts.token(t, name, api.TokenRequest{Scopes: []api.Scope{scope}, Account: account})
			all = append(all, identity{name, &access.Grant{Scopes: []api.Scope{scope}, Account: account}})
		}
		for _, role := range []api.Role{api.RoleViewer, api.RoleOperator, api.RoleAdmin} {
			name, g := prefix+"person-"+string(role), &access.Grant{Scopes: []api.Scope{api.ScopeAPI},
				Account:  account,
				ReadOnly: role == api.RoleViewer}
			g.Person = name
			switch {
			case account != "" && role == api.RoleAdmin:
				continue
			case account != "":
				w.parts.person(t, name, role, account)
			default:
				w.parts.person(t, name, role)
			}
			if role == api.RoleAdmin {
				g.Scopes = []api.Scope{api.ScopeAdmin}
			}
			all = append(all, identity{name, g})
		}
	}
	return all
}

var volatile = regexp.MustCompile(`"requestId":"[^"]*",?|"(ttl|seconds)":\d+,?`)

// same returns an answer without what differs by the request and the names in it.
func same(r reply, names ...string) string {
	body := volatile.ReplaceAllString(r.body, "")
	for _, name := range names {
		body = strings.ReplaceAll(body, name, "X")
	}
	return strings.TrimSpace(body)
}

// TestMatrix calls every operation of the OpenAPI document as everybody, about an object of the account acme.
// The table of routes says who is admitted. To a token of another account the object does not exist.
func TestMatrix(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.http.Transport = w.http.Transport.(*checked).inner // hundreds of answers that other tests check
	for _, account := range []string{"acme", "other"} {
		w.parts.account(t, account)
	}
	everybody := w.identities(t)
	for _, r := range w.operations(t) {
		kept := w.existing(t, r, "") // a refused call leaves it as it is
		for _, who := range everybody {
			if r.right.public {
				if got := w.call(t, r, who.token); got.status != welcome(r) {
					t.Errorf("%s as %q: %d %s", r.id, who.token, got.status, got.body)
				}
				continue
			}
			if status := refusal(r, who.grant); status != 0 {
				if got := w.send(t, r, who.token, kept); got.status != status {
					t.Errorf("%s as %q: %d, want %d: %s", r.id, who.token, got.status, status, got.body)
				}
				continue
			}
			if who.grant.Account != "other" {
				if got := w.call(t, r, who.token); got.status != welcome(r) {
					t.Errorf("%s as %q: %d %s", r.id, who.token, got.status, got.body)
				}
				continue
			}
			w.isForeign(t, r, who)
			w.isForeignByName(t, r, who)
		}
	}
}

// refusal returns the status for callers that may not call a route; 0 if they may.
func refusal(r route, g *access.Grant) int {
	switch {
	case g == nil:
		return http.StatusUnauthorized
	case r.admits(g) != nil, r.id == "chooseAccount" && g.Account == "":
		return http.StatusForbidden
	}
	return 0
}

// isForeign calls a route about an object of acme as somebody of another account.
func (w *world) isForeign(t *testing.T, r route, who identity) {
	t.Helper()
	place := w.existing(t, r, "acme-api")
	got := w.send(t, r, who.token, place)
	for _, theirs := range []string{"rcpt@example.net", "sender@example.com", `"acme"`} {
		if strings.Contains(got.body, theirs) && !strings.Contains(got.body, `"account":"other"`) {
			t.Errorf("%s as %s tells %s of another account: %s", r.id, who.token, theirs, got.body)
		}
	}
	if !strings.Contains(r.path, "{") || r.path == "/v1/settings/queue/{queue}" {
		if got.status != welcome(r) {
			t.Errorf("%s as %s: %d %s", r.id, who.token, got.status, got.body)
		}
		return
	}
	want := foreign[r.id]
	if want == 0 {
		want = http.StatusNotFound
	}
	if got.status != want {
		t.Errorf("%s as %s about an object of another account: %d, want %d: %s", r.id, who.token, got.status, want,
			got.body)
	}
	if r.id == "putDigestRecipient" {
		return // two of its own, of other times
	}
	var names []string
	for i := 1; i < len(place); i += 2 {
		names = append(names, place[i])
	}
	none := w.send(t, r, who.token, []string{"{queueId}", "none", "{id}", "none", "{account}", "nobody",
		"{listId}", "nolist", "{segment}", "nosegment", "{campaign}", "nocampaign",
		"{subscriber}", "no@example.net", "{recipient}", "noreader", "{category}", "nocategory", "{run}", "norun",
		"acme", "nobody"})
	a, b := same(got, append(names, "acme", "news")...), same(none, "none", "nobody", "nolist", "nosegment",
		"nocampaign", "noreader", "nocategory", "norun", "no@example.net")
	if none.status != got.status || a != b {
		t.Errorf("%s as %s: about an object of another account %d %s\nabout none %d %s", r.id, who.token,
			got.status,
			a, none.status, b)
	}
}

// isForeignByName calls a route with the account acme in its query, as somebody of another account.
func (w *world) isForeignByName(t *testing.T, r route, who identity) {
	t.Helper()
	if r.method != http.MethodGet || !slices.Contains(inputOf(r.input, r.paged).queries, "account") ||
		strings.Contains(r.path, "{") {
		return
	}
	more := ""
	if r.id == "checkSuppression" {
		more = "&email=a@example.com"
	}
	got := w.do(t, r.method, r.path+"?account=acme"+more, who.token, "")
	none := w.do(t, r.method, r.path+"?account=nobody"+more, who.token, "")
	if a, b := same(got, "acme"), same(none, "nobody"); got.status != none.status || a != b ||
		strings.Contains(got.body, "rcpt@example.net") {
		t.Errorf("%s as %s: of another account %d %s\nof none %d %s", r.id, who.token, got.status, a, none.status,
			b)
	}
}
