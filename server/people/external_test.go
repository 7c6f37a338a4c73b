package people

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

const issuer = "https://login.test"

// enter logs somebody in at another issuer.
func (b bundle) enter(name, subject string, role api.Role, now time.Time) (*Holder, error) {
	return b.LoginExternal(b.t.Context(), External{api.Identity{Issuer: issuer, Subject: subject}, name, role},
		netip.MustParseAddr("192.0.2.7"), netip.MustParsePrefix("192.0.2.7/32"), now)
}

// external makes a person who logs in at the issuer.
func (b bundle) external(name, subject string, accounts ...string) {
	b.t.Helper()
	_, err := b.Create(b.t.Context(), api.PersonRequest{Person: name, Role: api.RoleOperator, Accounts: accounts,
		Identity: &api.Identity{Issuer: issuer, Subject: subject}}, start)
	b.must(err)
}

// TestTheFirstLoginBindsTheSubject: an address that is given to another user later is not the person.
func TestTheFirstLoginBindsTheSubject(t *testing.T) {
	b := setup(t)
	b.external("ann@example.com", "", "shop")
	h, err := b.enter(" Ann@Example.com", "s1", "", start)
	if err != nil || h.Name != "ann@example.com" || h.Role != api.RoleOperator || len(h.Accounts) != 1 {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, err := b.enter("ann@example.com", "s1", "", start.Add(time.Hour)); err != nil {
		t.Error("again:", err)
	}
	if _, err := b.enter("ann@example.com", "s2", "", start); fault.CodeOf(err) != "OtherUser" {
		t.Error("another user with the name:", err)
	}
	p, err := b.Get(t.Context(), "ann@example.com")
	if err != nil || p.Identity.Subject != "s1" || !p.LastLogin.Equal(start.Add(time.Hour)) ||
		p.LastAddress != "192.0.2.7" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWhoIsNotAdmitted: whatever the issuer says of them.
func TestWhoIsNotAdmitted(t *testing.T) {
	b := setup(t)
	b.person("local", api.RoleAdmin)
	_, err := b.Create(t.Context(), api.PersonRequest{Person: "moved", Role: api.RoleViewer,
		Identity: &api.Identity{Issuer: "https://other.test"}}, start)
	b.must(err)
	b.external("gone", "")
	_, err = b.Update(t.Context(), "gone", api.PersonPatch{Disabled: new(true)}, start)
	b.must(err)
	for name, c := range map[string]struct {
		role api.Role
		code string
	}{
		"local": {api.RoleAdmin, "OtherLogin"}, "moved": {api.RoleAdmin, "OtherLogin"},
		"gone": {api.RoleAdmin, "PersonDisabled"}, "nobody": {"", "NoPerson"},
		"Robert'); DROP": {api.RoleAdmin, "NameUnfit"},
	} {
		_, err := b.enter(name, "s", c.role, start)
		if !fault.Is(err, fault.Forbidden) || fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := b.Count(t.Context()); err != nil || n != 3 {
		t.Errorf("%d persons, %v", n, err)
	}
}

// TestTheIssuerGivesTheRole: it makes somebody a person, and a change of it ends the sessions.
func TestTheIssuerGivesTheRole(t *testing.T) {
	b := setup(t)
	first, err := b.enter("ann", "s1", api.RoleViewer, start)
	if err != nil || first.Role != api.RoleViewer {
		t.Fatalf("%+v, %v", first, err)
	}
	same, err := b.enter("ann", "s1", api.RoleViewer, start)
	if err != nil || same.Epoch != first.Epoch {
		t.Errorf("the same role ends sessions: %+v, %v", same, err)
	}
	b.external("bob", "", "shop")
	h, err := b.enter("bob", "s2", api.RoleAdmin, start)
	if err != nil || h.Role != api.RoleAdmin || len(h.Accounts) != 0 {
		t.Errorf("an admin: %+v, %v", h, err)
	}
	higher, err := b.enter("ann", "s1", api.RoleAdmin, start)
	if err != nil || higher.Role != api.RoleAdmin || higher.Epoch == first.Epoch {
		t.Errorf("a higher role: %+v, %v", higher, err)
	}
}

// TestFirstLoginsAtATime make one person.
func TestFirstLoginsAtATime(t *testing.T) {
	b := setup(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = b.enter("ann", "s1", api.RoleViewer, start) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if n, err := b.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("%d persons, %v", n, err)
	}
}

// TestAPersonThatWasDisabledHasNoOtherName: a user of an issuer is one person, whatever address the issuer
// gives.
func TestAPersonThatWasDisabledHasNoOtherName(t *testing.T) {
	b := setup(t)
	if _, err := b.enter("ada@idp.example", "1", api.RoleAdmin, start); err != nil {
		t.Fatal(err)
	}
	h, err := b.enter("ada2@idp.example", "1", api.RoleAdmin, start)
	if err != nil || h.Name != "ada@idp.example" {
		t.Errorf("under another address: %+v, %v", h, err)
	}
	if p, err := b.Get(t.Context(), "ada@idp.example"); err != nil || p.Alias != "ada2@idp.example" {
		t.Errorf("the address is not shown: %+v, %v", p, err)
	}
	_, err = b.Update(t.Context(), "ada@idp.example", api.PersonPatch{Disabled: new(true)}, start)
	b.must(err)
	for _, name := range []string{"ada@idp.example", "ada2@idp.example", "ada3@idp.example"} {
		if _, err := b.enter(name, "1", api.RoleAdmin, start); fault.CodeOf(err) != "PersonDisabled" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.enter("ada@idp.example", "2", api.RoleAdmin, start); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another user gets her address, and her record: %v", err)
	}
	if h, err := b.enter("ada2@idp.example", "3", api.RoleViewer, start); err != nil ||
		h.Role != api.RoleViewer {
		t.Errorf("another user gets the other address: %+v, %v", h, err)
	}
	if _, err := b.Create(t.Context(), api.PersonRequest{Person: "eve", Role: api.RoleViewer,
		Identity: &api.Identity{Issuer: issuer, Subject: "1"}}, start); !fault.Is(err, fault.Conflict) {
		t.Errorf("an admin creates another person for her: %v", err)
	}
	if n, err := b.Count(t.Context()); err != nil || n != 2 {
		t.Errorf("%d persons, %v", n, err)
	}
	if _, err := b.Delete(t.Context(), "ada@idp.example"); err != nil {
		t.Fatal(err)
	}
	if h, err := b.enter("ada4@idp.example", "1", api.RoleViewer, start); err != nil ||
		h.Name != "ada4@idp.example" {
		t.Errorf("after she was deleted, the issuer alone decides: %+v, %v", h, err)
	}
}

// TestAUserWithTwoAddressesIsOnePerson: if both come at the same time, too.
func TestAUserWithTwoAddressesIsOnePerson(t *testing.T) {
	b := setup(t)
	var wg sync.WaitGroup
	for _, name := range []string{"ann", "ann2", "ann3", "ann4"} {
		wg.Go(func() {
			if _, err := b.enter(name, "s1", api.RoleViewer, start); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, err := b.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("%d persons, %v", n, err)
	}
}

// TestPersonsOfBeforeKeepTheirUser: a record that was stored without its user's entry gets it with the next
// change.
func TestPersonsOfBeforeKeepTheirUser(t *testing.T) {
	b := setup(t)
	b.external("ann", "s1")
	b.external("bob", "s2")
	for _, subject := range []string{"s1", "s2"} {
		b.must(b.store.client.Del(t.Context(), subjectKey(api.Identity{Issuer: issuer, Subject: subject})).Err())
	}
	if _, err := b.enter("ann", "s1", "", start); err != nil {
		t.Error(err)
	}
	_, err := b.Update(t.Context(), "bob", api.PersonPatch{Disabled: new(true)}, start)
	b.must(err)
	if h, err := b.enter("ann2", "s1", api.RoleViewer, start); err != nil || h.Name != "ann" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := b.enter("bob2", "s2", api.RoleViewer, start); fault.CodeOf(err) != "PersonDisabled" {
		t.Error(err)
	}
}
