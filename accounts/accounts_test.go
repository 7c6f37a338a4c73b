package accounts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// bundle is an Accounts on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Accounts
	relays *gateways.Store
	db     *redisdb.DB
	clock  *testkit.Clock
	url    string
}

func setup(t *testing.T, configured *api.Account) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), "secret", configured)
}

// process is one more process on the same Redis.
func process(t *testing.T, url, secret string, configured *api.Account) bundle {
	t.Helper()
	return processWith(t, url, testkit.Ring(t, secret), configured)
}

func processWith(t *testing.T, url string, ring *seal.Ring, configured *api.Account) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	c := testkit.NewClock()
	gateways, err := gateways.New(db, ring, gateways.Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(db, ring, gateways, Options{Default: configured, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Accounts: a, relays: gateways, db: db, clock: c, url: url}
}

func account(id string) api.Account {
	return api.Account{
		Account: id, Name: "Sender One", Email: "sender@example.com",
		SMTP: &api.SMTPServer{Host: "smtp.example.com", Port: 587, Auth: &api.SMTPAuth{
			User: "u", Pass: "correct horse"}},
	}
}

func configuredAccount() *api.Account {
	a := account("")
	a.Name, a.SMTP.Host, a.SMTP.Auth.Pass = "Configured", "relay.example.com", "from the configuration"
	return &a
}

func (b bundle) create(t *testing.T, a api.Account) api.AccountCreated {
	t.Helper()
	created, err := b.Create(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// masked is an account as answers show it.
func masked(a api.Account) api.Account {
	for _, s := range secrets(&a) {
		if s.Get() != "" {
			s.Set(records.Mask)
		}
	}
	return a
}

func TestAnswersAsTheOriginal(t *testing.T) {
	b := setup(t, nil)
	var create struct {
		Request  struct{ Body api.Account }
		Response struct{ Body api.AccountCreated }
	}
	readJSON(t, "account-create-smtp-only.json", &create)
	if diff := cmp.Diff(create.Response.Body, b.create(t, create.Request.Body)); diff != "" {
		t.Error(diff)
	}
	var get struct {
		Response struct{ Body map[string]any }
	}
	readJSON(t, "account-get-smtp-only.json", &get)
	info, err := b.Get(t.Context(), "snd")
	if err != nil {
		t.Fatal(err)
	}
	got := asMap(t, info)
	for _, name := range []string{"account", "name", "email", "smtp", "state"} {
		if diff := cmp.Diff(get.Response.Body[name], got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var missing struct {
		Response struct{ Body api.Problem }
	}
	readJSON(t, "submit-404-account.json", &missing)
	_, err = b.Resolve(t.Context(), "nosuch")
	if !fault.Is(err, fault.NotFound) || fault.CodeOf(err) != "AccountNotFound" ||
		!strings.HasPrefix(err.Error(), missing.Response.Body.Message) {
		t.Errorf("an unknown account: %v", err)
	}
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

func asMap(t *testing.T, v any) (m map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCreateReplaces(t *testing.T) {
	b := setup(t, nil)
	first := account("a")
	first.Webhooks, first.Retry = "https://example.com/hook", []string{"1m"}
	if got := b.create(t, first); got != (api.AccountCreated{Account: "a", State: "new"}) {
		t.Errorf("first: %+v", got)
	}
	b.clock.Advance(time.Hour)
	second := account("a")
	second.Name = "Renamed"
	if got := b.create(t, second); got != (api.AccountCreated{Account: "a", State: "existing"}) {
		t.Errorf("second: %+v", got)
	}
	got, err := b.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	second.SMTP.Auth.Pass = records.Mask
	want := api.AccountInfo{Account: second, State: "unset", Created: testkit.ClockStart,
		Updated: testkit.ClockStart.Add(time.Hour), Type: "sending", SendOnly: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestListPages(t *testing.T) {
	b := setup(t, configuredAccount())
	for _, id := range []string{"b", "c", "a"} {
		b.create(t, account(id))
	}
	b.Outcome(t.Context(), "c", nil)
	var got []string
	for number := range 2 {
		page, err := b.List(t.Context(), number, 2)
		if err != nil || page.Total != 4 || page.Page != number || page.Pages != 2 {
			t.Errorf("%+v, %v", page, err)
		}
		for _, info := range page.Accounts {
			got = append(got, info.Account.Account+" "+info.State+" "+info.SMTP.Auth.Pass)
		}
	}
	if diff := cmp.Diff([]string{DefaultID + " unset ******", "a unset ******", "b unset ******",
		"c connected ******"}, got); diff != "" {
		t.Error(diff)
	}
	if n, err := b.Count(t.Context()); err != nil || n != 4 {
		t.Errorf("count %d, %v", n, err)
	}
	empty, err := process(t, testredis.URL(t), "secret", nil).List(t.Context(), 0, 0)
	if err != nil || empty.Accounts == nil || empty.Total != 0 {
		t.Errorf("without accounts: %+v, %v", empty, err)
	}
}

func TestDelete(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	b.create(t, account("b"))
	b.Outcome(t.Context(), "a", nil)
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"again":   b.Delete(t.Context(), "a"),
		"get":     second(b.Get(t.Context(), "a")),
		"resolve": second(b.Resolve(t.Context(), "a")),
	} {
		if !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys := b.db.Client().Keys(t.Context(), "*:account:a*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
	if _, err := b.Get(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }
