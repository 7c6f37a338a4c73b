package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
)

// withSecrets is a process with these secrets, the current one first.
func withSecrets(t *testing.T, url string, secrets ...string) bundle {
	t.Helper()
	var all [][]byte
	for _, s := range secrets {
		all = append(all, []byte(strings.Repeat(s, 32)))
	}
	ring, err := seal.New(all[0], all[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	db := testredis.Connect(t, redisdb.Options{URL: url})
	s, err := New(db, ring, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Settings: s, db: db, url: url}
}

// resealed wants a number of changed settings.
func (b bundle) resealed(t *testing.T, want int) {
	t.Helper()
	if n, err := b.Reseal(t.Context()); n != want || err != nil {
		t.Errorf("resealed %d, %v; want %d", n, err, want)
	}
}

// headers wants the custom headers.
func (b bundle) headers(t *testing.T, want ...api.CustomHeader) {
	t.Helper()
	got, err := b.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got.WebhooksCustomHeaders); diff != "" {
		t.Error(diff)
	}
}

func TestReseal(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	old := withSecrets(t, url, "o")
	old.resealed(t, 0)
	key := api.CustomHeader{Key: "X-Key", Value: "hunter2"}
	old.update(t, api.Settings{WebhooksCustomHeaders: &[]api.CustomHeader{key}})
	old.resealed(t, 0)

	during := withSecrets(t, url, "n", "o")
	during.headers(t, key)
	during.resealed(t, 1)
	during.resealed(t, 0)
	withSecrets(t, url, "n").headers(t, key)
	if n, err := old.Reseal(t.Context()); n != 0 || err == nil {
		t.Errorf("with the old secret alone: resealed %d, %v", n, err)
	}
}

// TestResealLosesNoEdit: somebody changes the headers between reading and writing.
func TestResealLosesNoEdit(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	old := withSecrets(t, url, "o")
	old.update(t, api.Settings{WebhooksCustomHeaders: &[]api.CustomHeader{{Key: "X-Key", Value: "before"}}})
	b := withSecrets(t, url, "n", "o")
	edited := api.CustomHeader{Key: "X-Key", Value: "edited"}
	b.store.scripts = meddling{Evaler: b.store.scripts, before: func() {
		old.update(t, api.Settings{WebhooksCustomHeaders: &[]api.CustomHeader{edited}})
	}}
	if n, err := b.Reseal(t.Context()); n != 0 || err == nil {
		t.Errorf("while it keeps changing: resealed %d, %v", n, err)
	}
	b.headers(t, edited)
	b.store.scripts = b.store.scripts.(meddling).Evaler
	b.resealed(t, 1)
	b.headers(t, edited)
}
