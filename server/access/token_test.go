package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func TestCreateAnswersAsTheOriginal(t *testing.T) {
	b := setup(t)
	var recorded struct {
		Request  struct{ Body api.TokenRequest }
		Response struct{ Body map[string]string }
	}
	readJSON(t, "token-create.json", &recorded)
	if id, _ := secretHash(recorded.Response.Body["token"]); id != recorded.Response.Body["id"] {
		t.Errorf("the recorded token gets the id %s, want %s", id, recorded.Response.Body["id"])
	}
	created, err := b.Create(t.Context(), recorded.Request.Body, start)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(created)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(recorded.Response.Body)),
		slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	for name, value := range recorded.Response.Body {
		if len(got[name]) != len(value) {
			t.Errorf("%s is %q, recorded %q", name, got[name], value)
		}
	}
}

func TestGetShowsAllButTheToken(t *testing.T) {
	b := setup(t)
	expires := start.Add(time.Hour)
	restrictions := &api.Restrictions{Addresses: []string{"127.0.0.0/8"}, RateLimit: &api.RateLimit{
		MaxRequests: 2, TimeWindow: 30}}
	created := b.create(t, api.TokenRequest{Account: "snd", Description: "über", Expires: &expires,
		Restrictions: restrictions})
	got, err := b.Get(t.Context(), created.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := api.TokenInfo{
		ID: created.ID, Account: "snd", Description: "über", Scopes: []api.Scope{api.ScopeAPI}, Created: start,
		Expires:      &expires,
		Restrictions: restrictions,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Get(t.Context(), "nothing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown id: %v", err)
	}
}

func TestWrongRequestsForTokens(t *testing.T) {
	b := setup(t)
	past := start.Add(-time.Second)
	many := make([]string, 101)
	for i := range many {
		many[i] = "10.0.0.1"
	}
	tests := []struct {
		name string
		req  api.TokenRequest
		want []string
	}{
		{"nothing", api.TokenRequest{}, []string{"description"}},
		{"a long description", api.TokenRequest{Description: strings.Repeat("ä", 1025)}, []string{"description"}},
		{"a description of two lines", api.TokenRequest{Description: "a\nb"}, []string{"description"}},
		{"an unknown scope", api.TokenRequest{Description: "d", Scopes: []api.Scope{"api", "imap-proxy"}},
			[]string{"scopes[1]"}},
		{"too much for an account", api.TokenRequest{Description: "d", Account: "a", Scopes: []api.Scope{
			"send", "metrics", "admin", "*"}},
			[]string{"scopes[1]", "scopes[2]", "scopes[3]"}},
		{"an account with a space", api.TokenRequest{Description: "d", Account: "a b"}, []string{"account"}},
		{"expired already", api.TokenRequest{Description: "d", Expires: &past}, []string{"expires"}},
		{"expiring now", api.TokenRequest{Description: "d", Expires: &start}, []string{"expires"}},
		{"restrictions that mean nothing", api.TokenRequest{Description: "d", Restrictions: &api.Restrictions{
			Addresses: []string{"10.0.0.1", "10.0.0.0/33", "localhost", "fe80::1%eth0"}, RateLimit: &api.RateLimit{}}},
			[]string{"restrictions.addresses[1]", "restrictions.addresses[2]", "restrictions.addresses[3]",
				"restrictions.rateLimit.maxRequests", "restrictions.rateLimit.timeWindow"}},
		{"too many addresses", api.TokenRequest{Description: "d", Restrictions: &api.Restrictions{Addresses: many}},
			[]string{"restrictions.addresses"}},
		{"everything at once", api.TokenRequest{Account: "a", Scopes: []api.Scope{"metrics"}, Expires: &past},
			[]string{"description", "scopes[0]", "expires"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Create(t.Context(), tt.req, start)
			f, ok := err.(*fault.Error)
			if !ok || f.Kind != fault.Invalid {
				t.Fatalf("error %v", err)
			}
			var got []string
			for _, field := range f.Fields {
				got = append(got, field.Key)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListPages(t *testing.T) {
	b := setup(t)
	var want []string
	for i := range 5 {
		created, err := b.Create(t.Context(), api.TokenRequest{Description: fmt.Sprint(i)},
			start.Add(time.Duration(i)*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, created.ID)
	}
	var got []string
	for page := range 3 {
		answer, err := b.List(t.Context(), "", page, 2)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Total != 5 || answer.Pages != 3 || answer.Page != page {
			t.Errorf("page %d: %+v", page, answer)
		}
		for _, info := range answer.Tokens {
			got = append(got, info.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	beyond, err := b.List(t.Context(), "", 9, 0)
	if err != nil || beyond.Tokens == nil || len(beyond.Tokens) != 0 || beyond.Total != 5 || beyond.Pages != 1 {
		t.Errorf("beyond the end: %+v, %v", beyond, err)
	}
}

// TestTokensAsEmailEngineListsThem: account may be null, and access is there once it was used.
func TestTokensAsEmailEngineListsThem(t *testing.T) {
	b := setup(t)
	free, bound := b.create(t, api.TokenRequest{}), b.create(t, api.TokenRequest{Account: "snd"})
	if _, err := b.Authenticate(t.Context(), bound.Token, here, start.Add(90*time.Second)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		account, answer string
		tokens          map[string]string
	}{
		{"", `null`, map[string]string{free.ID: `null -`,
			bound.ID: `"snd" {"ip":"` + here.String() + `","time":"` +
				start.Add(90*time.Second).Truncate(time.Minute).Format(time.RFC3339) + `"}`}},
		{"snd", `"snd"`, map[string]string{bound.ID: `"snd" {"ip":"` + here.String() + `","time":"` +
			start.Add(90*time.Second).Truncate(time.Minute).Format(time.RFC3339) + `"}`}},
		{"other", `"other"`, map[string]string{}},
	} {
		page, err := b.List(t.Context(), row.account, 0, 10)
		if err != nil || page.Total != len(row.tokens) {
			t.Fatalf("%q: %+v, %v", row.account, page, err)
		}
		text, err := json.Marshal(page)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Account json.RawMessage
			Tokens  []struct {
				ID      string
				Account json.RawMessage
				Access  map[string]string
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, one := range answer.Tokens {
			access := "-"
			if one.Access != nil {
				text, _ := json.Marshal(one.Access)
				access = string(text)
			}
			got[one.ID] = string(one.Account) + " " + access
		}
		if diff := cmp.Diff(row.tokens, got); diff != "" || string(answer.Account) != row.answer {
			t.Errorf("%q: account %s\n%s", row.account, answer.Account, diff)
		}
	}
}

func TestForgottenTokensLeaveTheList(t *testing.T) {
	b := setup(t)
	expires := start.Add(time.Hour)
	gone, kept := b.create(t, api.TokenRequest{Expires: &expires}), b.create(t, api.TokenRequest{})
	left, err := b.db.Client().PExpireTime(t.Context(), tokenKey(gone.ID)).Result()
	if want := expires.Add(keepExpired); err != nil || int64(left/time.Millisecond) != want.UnixMilli() {
		t.Errorf("forgotten at %v (%v), want %v", left, err, want)
	}
	b.db.Client().Del(t.Context(), tokenKey(gone.ID)) // as Redis does at that time
	for range 2 {
		page, err := b.List(t.Context(), "", 0, 0)
		if err != nil || page.Total != 1 || len(page.Tokens) != 1 || page.Tokens[0].ID != kept.ID {
			t.Errorf("%+v, %v", page, err)
		}
	}
}

func TestLastUseIsKnownToTheMinute(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{})
	for _, after := range []time.Duration{0, time.Second, 10 * time.Second, 2 * time.Minute} {
		b.try(t, created.Token, here, start.Add(after))
	}
	info, err := b.Get(t.Context(), created.ID)
	if want := start.Add(2 * time.Minute).Truncate(time.Minute); err != nil || info.LastUsed == nil ||
		!info.LastUsed.Equal(want) {
		t.Errorf("last used %v (%v), want %v", info.LastUsed, err, want)
	}
}

func TestUseNotedWhileDeletedBringsNothingBack(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{})
	if _, err := b.Delete(t.Context(), created.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.store.touch(t.Context(), created.ID, 1, ""); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Client().Exists(t.Context(), tokenKey(created.ID)).Val(); n != 0 {
		t.Error("half a record came back")
	}
}

func TestDeleteAccountRevokesItsTokens(t *testing.T) {
	b := setup(t)
	mine := []api.TokenCreated{b.create(t, api.TokenRequest{Account: "a"}),
		b.create(t, api.TokenRequest{Account: "a"})}
	others := []api.TokenCreated{b.create(t, api.TokenRequest{Account: "b"}), b.create(t, api.TokenRequest{})}
	if n, err := b.DeleteAccount(t.Context(), "a"); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	for _, c := range mine {
		if got := b.try(t, c.Token, here, start); got != fault.Unauthorized {
			t.Errorf("its token: %q", got)
		}
	}
	for _, c := range others {
		if got := b.try(t, c.Token, here, start); got != "" {
			t.Errorf("another token: %q", got)
		}
	}
	if n := b.db.Client().Exists(t.Context(), accountKey("a")).Val(); n != 0 {
		t.Error("the list of its tokens is left behind")
	}
	if n, err := b.DeleteAccount(t.Context(), ""); err != nil || n != 0 {
		t.Errorf("no account: %d, %v", n, err)
	}
}

func TestListOfAnAccountsTokensDoesNotGrowForEver(t *testing.T) {
	b := setup(t)
	expires := start.Add(time.Hour)
	old := b.create(t, api.TokenRequest{Account: "a", Expires: &expires})
	later := expires.Add(keepExpired)
	for i := range 3 {
		if _, err := b.Create(t.Context(), api.TokenRequest{Account: "a", Description: "d"},
			later.Add(time.Duration(i))); err != nil {
			t.Fatal(err)
		}
	}
	ids, err := b.store.ofAccount(t.Context(), "a")
	if err != nil || len(ids) != 3 || slices.Contains(ids, old.ID) {
		t.Errorf("%v, %v", ids, err)
	}
	if existed, err := b.Delete(t.Context(), ids[0]); err != nil || !existed {
		t.Errorf("%v, %v", existed, err)
	}
	if left, err := b.store.ofAccount(t.Context(), "a"); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

func FuzzPresentedToken(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("ab", 32))
	f.Add(strings.Repeat("\xff", 64))
	f.Fuzz(func(t *testing.T, presented string) {
		id, ok := secretHash(presented)
		if ok && (len(presented) != 64 || len(id) != 64 || id == strings.ToLower(presented)) {
			t.Errorf("%q has the id %q", presented, id)
		}
	})
}

func FuzzAllowedAddress(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "::1", "::ffff:10.0.0.0/104", "::/0", "fe80::1%lo", "10.0.0.0/08"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := parsePrefix(s); err == nil && (!p.IsValid() || p != p.Masked() || p.Addr().Is4In6() &&
			p.Bits() >= 96) {
			t.Errorf("%q reads as %v", s, p)
		}
	})
}
