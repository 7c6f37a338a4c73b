package accounts

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
)

func TestConfiguredAccountExistsWithoutBeingStored(t *testing.T) {
	b := setup(t, configuredAccount())
	for _, id := range []string{"", DefaultID} {
		s, err := b.Resolve(t.Context(), id)
		if err != nil || s.ID != DefaultID || s.Name != "Configured" || s.Relay.Password != "from the configuration" {
			t.Errorf("%q: %v, %v", id, s, err)
		}
	}
	info, err := b.Get(t.Context(), DefaultID)
	if err != nil || info.SMTP.Auth.Pass != mask || !info.Created.Equal(start) || info.State != "unset" {
		t.Errorf("%+v, %v", info, err)
	}
	b.Outcome(t.Context(), DefaultID, nil)
	if info, err := b.Get(t.Context(), DefaultID); err != nil || info.State != "connected" {
		t.Errorf("after a success: %+v, %v", info, err)
	}
	if found(t, b.db, "from the configuration") || found(t, b.db, "relay.example.com") {
		t.Error("the configured account is in Redis")
	}
}

func TestConfiguredAccountCannotBeDeleted(t *testing.T) {
	b := setup(t, configuredAccount())
	err := b.Delete(t.Context(), DefaultID)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "configuration") {
		t.Errorf("error %v", err)
	}
	if !b.Configured(DefaultID) || b.Configured("other") {
		t.Error("Configured is wrong")
	}
}

func TestStoredAccountWinsOverTheConfiguredOneUntilItIsDeleted(t *testing.T) {
	b := setup(t, configuredAccount())
	b.create(t, account("other"))
	patch := api.AccountPatch{Name: ptr("Patched"), SMTP: &api.SMTPServer{Host: "relay.example.com", Port: 2525, Auth: &api.SMTPAuth{User: "u", Pass: mask}}}
	if _, err := b.Update(t.Context(), DefaultID, patch); err != nil {
		t.Fatal(err)
	}
	s, err := b.Resolve(t.Context(), "")
	if err != nil || s.Name != "Patched" || s.Relay.Port != 2525 || s.Relay.Password != "from the configuration" {
		t.Errorf("patched: %v %+v, %v", s, s.Relay.Port, err)
	}
	if found(t, b.db, "from the configuration") {
		t.Error("the configured password is in Redis")
	}
	if page, err := b.List(t.Context(), 0, 0); err != nil || page.Total != 2 || page.Accounts[0].Name != "Patched" {
		t.Errorf("list: %+v, %v", page, err)
	}
	if created := b.create(t, account(DefaultID)); created.State != "existing" {
		t.Errorf("replacing it: %+v", created)
	}
	if err := b.Delete(t.Context(), DefaultID); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Resolve(t.Context(), ""); err != nil || s.Name != "Configured" {
		t.Errorf("after deletion: %v, %v", s, err)
	}
	if err := b.Delete(t.Context(), DefaultID); !fault.Is(err, fault.Conflict) {
		t.Errorf("second deletion: %v", err)
	}
}

func TestCreatingTheConfiguredAccountIsNoNewAccount(t *testing.T) {
	b := setup(t, configuredAccount())
	if created := b.create(t, account(DefaultID)); created.State != "existing" {
		t.Errorf("%+v", created)
	}
}

func TestWithoutAnyAccountTheErrorSaysWhatToDo(t *testing.T) {
	b := setup(t, nil)
	for _, id := range []string{"", DefaultID} {
		_, err := b.Resolve(t.Context(), id)
		if fault.CodeOf(err) != "AccountNotFound" || !strings.Contains(err.Error(), "smtp") || !strings.Contains(err.Error(), "POST /v1/account") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	wrong := configuredAccount()
	wrong.Email, wrong.SMTP.Port = "", 0
	_, err := New(db, newRing(t, "s"), Options{Default: wrong})
	if diff := cmp.Diff([]string{"email", "smtp.port"}, wrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

func setup2(t *testing.T) bundle {
	t.Helper()
	return process(t, testredis.URL(t), "secret", nil)
}

func TestOtherProcessesSeeAChangeWithinASecond(t *testing.T) {
	b := setup(t, configuredAccount())
	other := process(t, b.url, "secret", configuredAccount())
	resolve := func(p bundle, id string) string {
		t.Helper()
		s, err := p.Resolve(t.Context(), id)
		if err != nil {
			return string(fault.KindOf(err))
		}
		return s.Name
	}
	b.create(t, account("a"))
	if got := resolve(other, "a"); got != "Sender One" {
		t.Fatalf("created: %s", got)
	}
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{Name: ptr("Renamed")}); err != nil {
		t.Fatal(err)
	}
	if got := resolve(b, "a"); got != "Renamed" {
		t.Errorf("where it was changed: %s", got)
	}
	other.clock.advance(time.Second)
	if got := resolve(other, "a"); got != "Renamed" {
		t.Errorf("elsewhere: %s", got)
	}
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	other.clock.advance(time.Second)
	if got := resolve(other, "a"); got != string(fault.NotFound) {
		t.Errorf("deleted: %s", got)
	}
	if got := resolve(other, ""); got != "Configured" {
		t.Errorf("configured: %s", got)
	}
	b.create(t, account(DefaultID))
	other.clock.advance(time.Second)
	if got := resolve(other, ""); got != "Sender One" {
		t.Errorf("overridden: %s", got)
	}
}

func TestResolveCostsNoRoundTrip(t *testing.T) {
	b := setup(t, configuredAccount())
	b.create(t, account("a"))
	for _, id := range []string{"", "a"} {
		if _, err := b.Resolve(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	sent := countCommands(b.db)
	for range 100 {
		for _, id := range []string{"", "a"} {
			if _, err := b.Resolve(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			b.Outcome(t.Context(), id, nil)
		}
	}
	if n := sent.n.Load(); n > 2 { // the first outcome of each account
		t.Errorf("%d commands for 200 messages", n)
	}
	b.clock.advance(time.Second)
	if _, err := b.Resolve(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if n := sent.n.Load(); n > 3 {
		t.Errorf("%d commands with one look for changes", n)
	}
}

func TestLoadBegunBeforeAChangeIsNotKept(t *testing.T) {
	var c cache
	_, generation, _, _ := c.get("x", start)
	c.confirm("1", start) // the change is noticed while the old record is still on its way
	c.keep(Sender{ID: "x"}, generation)
	if _, _, ok, _ := c.get("x", start); ok {
		t.Error("a sender loaded before the change stayed in the cache")
	}
}

func TestResolveWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), "secret", configuredAccount())
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Errorf("within a second: %v", err)
	}
	b.clock.advance(time.Minute)
	if _, err := b.Resolve(t.Context(), ""); !fault.Is(err, fault.Unavailable) {
		t.Errorf("after a minute: %v", err)
	}
	if _, err := b.Create(t.Context(), account("a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("create: %v", err)
	}
	server.Restart(t)
	if _, err := b.Resolve(t.Context(), ""); err != nil {
		t.Errorf("after Redis is back: %v", err)
	}
}
