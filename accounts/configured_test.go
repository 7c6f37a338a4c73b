package accounts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestConfiguredAccountExistsWithoutBeingStored(t *testing.T) {
	b := setup(t, configuredAccount())
	for _, id := range []string{"", DefaultID} {
		s, err := b.Resolve(t.Context(), id)
		if err != nil || s.ID != DefaultID || s.Name != "Configured" ||
			s.Relays[0].SMTP.Password != "from the configuration" {
			t.Errorf("%q: %v, %v", id, s, err)
		}
	}
	info, err := b.Get(t.Context(), DefaultID)
	if err != nil || info.SMTP.Auth.Pass != records.Mask || !info.Created.Equal(testkit.ClockStart) ||
		info.State != "unset" {
		t.Errorf("%+v, %v", info, err)
	}
	b.Outcome(t.Context(), DefaultID, nil)
	if info, err := b.Get(t.Context(), DefaultID); err != nil || info.State != "connected" {
		t.Errorf("after a success: %+v, %v", info, err)
	}
	if testredis.Holds(t, b.db, "from the configuration") || testredis.Holds(t, b.db, "relay.example.com") {
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
	patch := api.AccountPatch{Name: new("Patched"),
		SMTP: new(&api.SMTPServer{Host: "relay.example.com", Port: 587, Auth: &api.SMTPAuth{
			User: "u", Pass: records.Mask}})}
	if _, err := b.Update(t.Context(), DefaultID, patch); err != nil {
		t.Fatal(err)
	}
	s, err := b.Resolve(t.Context(), "")
	if err != nil || s.Name != "Patched" || s.Relays[0].SMTP.Port != 587 ||
		s.Relays[0].SMTP.Password != "from the configuration" {
		t.Errorf("patched: %v %+v, %v", s, s.Relays[0].SMTP.Port, err)
	}
	if testredis.Holds(t, b.db, "from the configuration") {
		t.Error("the configured password is in Redis")
	}
	if page, err := b.List(t.Context(), 0, 0); err != nil || page.Total != 2 ||
		page.Accounts[0].Name != "Patched" {
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
		if fault.CodeOf(err) != "AccountNotFound" || !strings.Contains(err.Error(), "smtp") ||
			!strings.Contains(err.Error(), "POST /v1/account") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestNewRefusesAConfigurationThatCannotWork(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	wrong := configuredAccount()
	wrong.Email, wrong.SMTP.Port = "", 0
	ring := testkit.Ring(t, "s")
	gateways, err := gateways.New(db, ring, gateways.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(db, ring, gateways, Options{Default: wrong})
	if diff := cmp.Diff([]string{"email", "smtp.port"}, testkit.WrongFields(t, err)); diff != "" {
		t.Error(diff)
	}
}

// The relay of the settings file may have a private address, whatever accounts may. That holds even after the
// account was edited over the API, as long as the edit leaves the relay as it is.
func TestTheConfiguredRelayMayBePrivate(t *testing.T) {
	t.Parallel()
	db, ring := testredis.New(t), testkit.Ring(t, "s")
	shared, err := gateways.New(db, ring, gateways.Options{Guard: dialing.New(dialing.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	configured := configuredAccount()
	configured.SMTP.Host = "127.0.0.1"
	a, err := New(db, ring, shared, Options{Default: configured})
	if err != nil {
		t.Fatal(err)
	}
	own := func(id string) bool {
		t.Helper()
		s, err := a.Resolve(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s.Relays[0].SMTP.OperatorsOwn
	}
	if !own(DefaultID) {
		t.Error("the configured relay is nobody's")
	}
	if _, err := a.Update(t.Context(), DefaultID, api.AccountPatch{Name: new("Shop")}); err != nil ||
		!own(DefaultID) {
		t.Errorf("after another name: %v", err)
	}
	elsewhere := *configured.SMTP
	elsewhere.Port = 6379
	for name, p := range map[string]api.AccountPatch{
		"smtp.host": {SMTP: new(&elsewhere)}, "proxy": {Proxy: new("http://10.0.0.1")},
	} {
		_, err := a.Update(t.Context(), DefaultID, p)
		if got := testkit.WrongFields(t, err); !slices.Contains(got, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for host, want := range map[string]string{"127.0.0.1": "smtp.host", "relay.internal": ""} {
		other := account("other")
		other.SMTP.Host = host
		if _, err := a.Create(t.Context(), other); want == "" && (err != nil || own("other")) ||
			want != "" && !slices.Contains(testkit.WrongFields(t, err), want) {
			t.Errorf("another account at %s: %v", host, err)
		}
	}
}
