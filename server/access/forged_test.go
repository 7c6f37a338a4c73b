package access

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// under is a process with these secrets of the instance, the current one first.
func under(t *testing.T, url, secret string, older ...string) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	a, err := New(db, testkit.Ring(t, secret, older...), Options{Token: bootstrap})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Access: a, db: db, url: url}
}

// TestWhoWritesToRedisIsNoAdmin: records of tokens that Postroom did not write are refused, logged and shown.
func TestWhoWritesToRedisIsNoAdmin(t *testing.T) {
	b := setup(t)
	var log strings.Builder
	b.log = slog.New(slog.NewTextHandler(&log, nil))
	made := b.create(t, api.TokenRequest{Scopes: []api.Scope{api.ScopeSend}})
	row := b.db.Client().HGetAll(t.Context(), tokenKey(made.ID)).Val()
	mine := newSecret()
	id, _ := secretHash(mine)
	record, err := json.Marshal(api.TokenInfo{ID: id, Scopes: []api.Scope{api.ScopeAdmin}, Created: start})
	if err != nil {
		t.Fatal(err)
	}
	widened := strings.Replace(row["record"], `"send"`, `"admin"`, 1)
	for name, tt := range map[string]struct{ token, id, record, mac string }{
		"without a code":            {mine, id, string(record), ""},
		"with a code of another":    {mine, id, string(record), row["mac"]},
		"a copy of another":         {mine, id, row["record"], row["mac"]},
		"a genuine one, but wider":  {made.Token, made.ID, widened, row["mac"]},
		"something that is no JSON": {mine, id, "{", "v1.x.y"},
	} {
		log.Reset()
		b.tokens.Clear()
		stored := b.db.Client().HSet(t.Context(), tokenKey(tt.id), "record", tt.record, "mac", tt.mac)
		if err := stored.Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Authenticate(t.Context(), tt.token, here, start); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(log.String(), "token refused") || !strings.Contains(log.String(), tt.id) {
			t.Errorf("%s: logged %q", name, log.String())
		}
		if info, err := b.Get(t.Context(), tt.id); err != nil || info.ID != tt.id || info.Refused == "" {
			t.Errorf("%s: shown as %+v, %v", name, info, err)
		}
		if !strings.Contains(strings.Join(b.store.ring.Refused(), " "), "token:"+tt.id) {
			t.Errorf("%s: not among the refused", name)
		}
		if ok, err := b.Delete(t.Context(), tt.id); !ok || err != nil {
			t.Errorf("%s: not deleted: %v", name, err)
		}
	}
}

// TestWhoWritesToRedisHasNoSession: a session made in Redis for somebody's token is refused.
func TestWhoWritesToRedisHasNoSession(t *testing.T) {
	b := setup(t)
	admin := b.create(t, api.TokenRequest{Scopes: []api.Scope{api.ScopeAdmin}})
	cookie, err := b.Login(t.Context(), admin.Token, Client{Addr: here}, start)
	if err != nil {
		t.Fatal(err)
	}
	hash, _ := secretHash(cookie)
	genuine := b.db.Client().Get(t.Context(), sessionKey(hash)).Val()
	mine := newSecret()
	hash, _ = secretHash(mine)
	for _, forged := range []string{`{"token":"` + admin.ID + `"}`, genuine, ` {"token":"` + admin.ID + `"}`} {
		if err := b.db.Client().Set(t.Context(), sessionKey(hash), forged, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Session(t.Context(), mine, here, start); fault.CodeOf(err) != "NoSession" {
			t.Errorf("%q: %v", forged, err)
		}
	}
	if _, err := b.Session(t.Context(), cookie, here, start); err != nil {
		t.Error(err)
	}
}

// TestANewInstanceSecretKeepsTokensAndSessions: codes are renewed, so that the older secret can go.
func TestANewInstanceSecretKeepsTokensAndSessions(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	old := under(t, url, "old")
	token := old.create(t, api.TokenRequest{Scopes: []api.Scope{api.ScopeAPI}})
	cookie, err := old.Login(t.Context(), token.Token, Client{Addr: here}, start)
	if err != nil {
		t.Fatal(err)
	}
	during := under(t, url, "new", "old")
	for i, want := range []int{1, 0} {
		if n, err := during.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("time %d: %d, %v", i, n, err)
		}
	}
	if _, err := during.Session(t.Context(), cookie, here, start); err != nil {
		t.Error(err)
	}
	after := under(t, url, "new")
	if _, err := after.Authenticate(t.Context(), token.Token, here, start); err != nil {
		t.Error(err)
	}
	if _, err := after.Session(t.Context(), cookie, here, start); err != nil {
		t.Error(err)
	}
	if _, err := under(t, url, "other").Authenticate(t.Context(), token.Token, here, start); err == nil {
		t.Error("a token is accepted under another secret")
	}
}
