package audit

import (
	"os"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a log on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Log
	db    *redisdb.DB
	clock *testkit.Clock
	url   string
}

func setup(t *testing.T, o Options) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), testkit.NewClock(), testkit.Ring(t, "secret"), o)
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, clock *testkit.Clock, ring *seal.Ring, o Options) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	o.Now = clock.Now
	l, err := New(db, ring, o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{l, db, clock, url}
}

// another is a process that knows nothing of what the first one wrote.
func (b bundle) another(t *testing.T, secrets ...string) bundle {
	t.Helper()
	if secrets == nil {
		secrets = []string{"secret"}
	}
	return process(t, b.url, b.clock, testkit.Ring(t, secrets[0], secrets[1:]...), b.opts)
}

var ann = api.AuditActor{Kind: Token, TokenID: "0123456789", Name: "ann", Address: "192.0.2.1"}

// fill writes entries.
func (b bundle) fill(t *testing.T, n int) []api.AuditEntry {
	t.Helper()
	var all []api.AuditEntry
	for range n {
		e, err := b.Append(t.Context(), api.AuditEntry{Result: api.AuditDone, Action: "PUT /x", Who: ann,
			Object: &api.AuditObject{Kind: "account", ID: "acme"}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func (b bundle) verified(t *testing.T) api.AuditVerified {
	t.Helper()
	v, err := b.Verify(t.Context(), api.AuditHead{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (b bundle) list(t *testing.T, q api.AuditQuery) []api.AuditEntry {
	t.Helper()
	page, err := b.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page.Entries
}
