package access

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

const bootstrap = "a bootstrap token of the configuration"

var (
	here = netip.MustParseAddr("192.0.2.7")
	// start is far ahead, so that Redis, whose clock is the real one, forgets nothing during a test.
	start = time.Date(2100, 3, 1, 12, 0, 30, 0, time.UTC)
)

// bundle is an Access on a Redis of its own.
type bundle struct {
	*Access
	db  *redisdb.DB
	url string
}

func setup(t *testing.T) bundle {
	t.Helper()
	t.Parallel()
	url := testredis.URL(t)
	return process(t, url, Options{Token: bootstrap})
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, o Options) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	a, err := New(db, testkit.Ring(t, "secret"), o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Access: a, db: db, url: url}
}

func (b bundle) create(t *testing.T, req api.TokenRequest) api.TokenCreated {
	t.Helper()
	if req.Description == "" {
		req.Description = "a test"
	}
	created, err := b.Create(t.Context(), req, start)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// try authenticates and gives the kind of the error, empty for none.
func (b bundle) try(t *testing.T, token string, from netip.Addr, at time.Time) fault.Kind {
	t.Helper()
	g, err := b.Authenticate(t.Context(), token, from, at)
	if (g == nil) != (err != nil) {
		t.Fatalf("Authenticate gave %v and %v", g, err)
	}
	return fault.KindOf(err)
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func TestAuthenticate(t *testing.T) {
	b := setup(t)
	expires := start.Add(time.Hour)
	plain := b.create(t, api.TokenRequest{}).Token
	expiring := b.create(t, api.TokenRequest{Expires: &expires}).Token
	restricted := b.create(t, api.TokenRequest{Restrictions: &api.Restrictions{
		Addresses: []string{"10.0.0.0/8", "2001:db8::/32", "::ffff:198.51.100.0/120", "203.0.113.9"},
	}}).Token
	tests := []struct {
		name, token, from string
		after             time.Duration
		want              fault.Kind
	}{
		{name: "a token", token: plain},
		{name: "a token in capitals is the same bytes", token: strings.ToUpper(plain)},
		{name: "none", want: fault.Unauthorized},
		{name: "unknown", token: strings.Repeat("ab", 32), want: fault.Unauthorized},
		{name: "not hex", token: strings.Repeat("xy", 32), want: fault.Unauthorized},
		{name: "cut short", token: plain[:62], want: fault.Unauthorized},
		{name: "too long", token: plain + "00", want: fault.Unauthorized},
		{name: "the id instead of the token", token: b.create(t, api.TokenRequest{}).ID, want: fault.Unauthorized},
		{name: "bootstrap", token: bootstrap},
		{name: "almost bootstrap", token: bootstrap + " ", want: fault.Unauthorized},
		{name: "before it expires", token: expiring, after: time.Hour - 1},
		{name: "when it expires", token: expiring, after: time.Hour, want: fault.Unauthorized},
		{name: "from a range", token: restricted, from: "10.1.2.3"},
		{name: "from a range, as IPv6 sockets show it", token: restricted, from: "::ffff:10.1.2.3"},
		{name: "from an IPv6 range", token: restricted, from: "2001:db8::5"},
		{name: "from a range that was written as IPv6", token: restricted, from: "198.51.100.4"},
		{name: "from the address", token: restricted, from: "203.0.113.9"},
		{name: "from next to the address", token: restricted, from: "203.0.113.8", want: fault.Forbidden},
		{name: "from nowhere known", token: restricted, from: "", want: fault.Forbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var from netip.Addr
			if tt.from != "" {
				from = netip.MustParseAddr(tt.from)
			}
			if got := b.try(t, tt.token, from, start.Add(tt.after)); got != tt.want {
				t.Errorf("kind %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRefusalsReadAsTheOriginals(t *testing.T) {
	b := setup(t)
	for file, token := range map[string]string{"error-401-bad-token.json": "nonsense",
		"error-401-no-token.json": ""} {
		var recorded struct {
			Response struct{ Body api.Problem }
		}
		readJSON(t, file, &recorded)
		_, err := b.Authenticate(t.Context(), token, here, start)
		if err == nil || err.Error() != recorded.Response.Body.Message {
			t.Errorf("%s: %v, want %s", file, err, recorded.Response.Body.Message)
		}
	}
}

func TestGrantTellsTheToken(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{Account: "acme", Scopes: []api.Scope{api.ScopeSend, api.ScopeOutbox,
		api.ScopeSend}})
	got, err := b.Authenticate(t.Context(), created.Token, here, start)
	if err != nil {
		t.Fatal(err)
	}
	want := &Grant{TokenID: created.ID, Name: "a test", Account: "acme",
		Scopes: []api.Scope{api.ScopeSend, api.ScopeOutbox}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if g, _ := b.Authenticate(t.Context(), bootstrap, here, start); g == nil || g.TokenID != BootstrapID ||
		!g.Allows(api.ScopeAdmin) || !g.CanSee("") {
		t.Errorf("the bootstrap token gives %+v", g)
	}
}

func TestDeletedTokenIsRefusedByEveryProcessWithinASecond(t *testing.T) {
	b := setup(t)
	other := process(t, b.url, Options{})
	created := b.create(t, api.TokenRequest{})
	if got := other.try(t, created.Token, here, start); got != "" {
		t.Fatalf("before: %s", got)
	}
	if existed, err := b.Delete(t.Context(), created.ID); err != nil || !existed {
		t.Fatalf("Delete: %v, %v", existed, err)
	}
	if got := b.try(t, created.Token, here, start); got != fault.Unauthorized {
		t.Errorf("where it was deleted: %q", got)
	}
	if got := other.try(t, created.Token, here, start.Add(time.Second)); got != fault.Unauthorized {
		t.Errorf("elsewhere, after a second: %q", got)
	}
	if existed, err := b.Delete(t.Context(), created.ID); err != nil || existed {
		t.Errorf("second Delete: %v, %v", existed, err)
	}
}

func TestKnownTokenCostsNoRoundTrip(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{})
	b.try(t, created.Token, here, start)
	sent := testredis.CountCommands(b.db)
	for i := range 100 {
		b.try(t, created.Token, here, start.Add(time.Duration(i)*time.Millisecond))
		b.try(t, bootstrap, here, start.Add(time.Duration(i)*time.Millisecond))
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("%d commands for 200 requests within a second", n)
	}
	b.try(t, created.Token, here, start.Add(time.Second))
	if n := sent.Sent(); n != 1 {
		t.Errorf("%d commands to look for deletions, want 1", n)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), Options{Token: bootstrap})
	created := b.create(t, api.TokenRequest{})
	b.try(t, created.Token, here, start)
	server.Kill()
	if got := b.try(t, bootstrap, here, start); got != "" {
		t.Errorf("the bootstrap token needs no Redis, but: %s", got)
	}
	if got := b.try(t, created.Token, here, start.Add(time.Minute)); got != fault.Unavailable {
		t.Errorf("a token remembered for a minute: %q, want unavailable", got)
	}
	server.Restart(t)
	if got := b.try(t, created.Token, here, start.Add(2*time.Minute)); got != "" {
		t.Errorf("after Redis is back: %s", got)
	}
}

func TestNoSecretIsStoredOrLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	b := process(t, testredis.URL(t), Options{Token: bootstrap, MaxFailures: 1,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	created := b.create(t, api.TokenRequest{Description: "findable", Restrictions: &api.Restrictions{
		Addresses: []string{"192.0.2.7"}}})
	secrets := map[string]string{"token": created.Token, "bootstrap token": bootstrap,
		"a wrong guess": "wrong guess"}
	for _, token := range []string{created.Token, bootstrap} {
		cookie, err := b.Login(t.Context(), token, Client{Addr: here}, start)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Session(t.Context(), cookie, here, start); err != nil {
			t.Fatal(err)
		}
		secrets["cookie of "+token] = cookie
	}
	b.try(t, created.Token, netip.MustParseAddr("192.0.2.8"), start)
	for range 3 {
		if _, err := b.Authenticate(t.Context(), "wrong guess", here, start); err == nil ||
			strings.Contains(err.Error(), "wrong guess") {
			t.Errorf("error %v", err)
		}
	}
	if !testredis.Holds(t, b.db, "findable") || !strings.Contains(log.String(), "192.0.2.8") {
		t.Fatal("the search finds nothing at all")
	}
	for name, secret := range secrets {
		if testredis.Holds(t, b.db, secret) {
			t.Errorf("%s is in Redis", name)
		}
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s is in the log", name)
		}
	}
	if testredis.Holds(t, b.db, hex.EncodeToString(b.bootstrap)) {
		t.Error("the hash of the bootstrap token is in Redis")
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	a, err := New(testredis.New(b), testkit.Ring(b, "secret"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	created, err := a.Create(b.Context(), api.TokenRequest{Description: "a benchmark"}, start)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Authenticate(b.Context(), created.Token, here, time.Now()); err != nil {
				b.Error(err)
			}
		}
	})
}
