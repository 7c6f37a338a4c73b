package access

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/people"
)

const password = "correct horse battery"

// withPeople is a process that knows people, on its own Redis.
func withPeople(t *testing.T, url string, o Options) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	ring := testkit.Ring(t, "secret")
	var err error
	if o.People, err = people.New(db, ring, people.Options{PasswordMemory: 64}); err != nil {
		t.Fatal(err)
	}
	o.Token = bootstrap
	a, err := New(db, ring, o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Access: a, db: db, url: url}
}

// person makes a person with a password.
func (b bundle) person(t *testing.T, name string, role api.Role, accounts ...string) {
	t.Helper()
	_, err := b.people.Create(t.Context(), api.PersonRequest{Person: name, Role: role, Accounts: accounts},
		start)
	var secret string
	if err == nil {
		secret, _, err = b.people.NewLink(t.Context(), name, start)
	}
	if err == nil {
		_, err = b.people.Use(t.Context(), secret, "", password, start)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (b bundle) enter(t *testing.T, name string, now time.Time) string {
	t.Helper()
	cookie, _, err := b.LoginPerson(t.Context(), Password{Name: name, Password: password}, Client{here,
		"Firefox"},
		now)
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

// session returns what a cookie may do; nil: its session has ended.
func (b bundle) session(t *testing.T, cookie string, now time.Time) *Grant {
	t.Helper()
	g, err := b.Session(t.Context(), cookie, here, now)
	if err != nil && !fault.Is(err, fault.Unauthorized) {
		t.Fatal(err)
	}
	return g
}

func TestWhatPersonsMayDo(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{})
	for _, tt := range []struct {
		role     api.Role
		accounts []string
		want     Grant
	}{
		{api.RoleViewer, nil, Grant{Scopes: []api.Scope{api.ScopeAPI}, ReadOnly: true}},
		{api.RoleOperator, nil, Grant{Scopes: []api.Scope{api.ScopeAPI}}},
		{api.RoleAdmin, nil, Grant{Scopes: []api.Scope{api.ScopeAdmin}}},
		{api.RoleOperator, []string{"a", "b"}, Grant{Scopes: []api.Scope{api.ScopeAPI}, Account: "a",
			Accounts: []string{"a", "b"}}},
	} {
		name := string(tt.role) + tt.want.Account
		b.person(t, name, tt.role, tt.accounts...)
		cookie := b.enter(t, name, start)
		got := b.session(t, cookie, start)
		tt.want.Person, tt.want.Name, tt.want.Session = name, name, SessionID(cookie)
		tt.want.SessionHash, _ = secretHash(cookie)
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		want := api.AuditActor{Kind: "person", Name: name, Account: tt.want.Account, Session: SessionID(cookie),
			Address: "192.0.2.1"}
		if diff := cmp.Diff(want, got.Actor("192.0.2.1")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestASessionActsForOneAccountAtATime(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{})
	b.person(t, "ann", api.RoleOperator, "a", "b")
	cookie := b.enter(t, "ann", start)
	g := b.session(t, cookie, start)
	for account, want := range map[string]fault.Kind{"b": "", "c": fault.Forbidden, "": fault.Forbidden} {
		if err := b.SwitchAccount(t.Context(), g, account, start); fault.KindOf(err) != want {
			t.Errorf("to %q: %v", account, err)
		}
	}
	if g := b.session(t, cookie, start); g.Account != "b" || g.CanSee("a") || g.CanSee("") {
		t.Errorf("%+v", g)
	}
}

func TestSessionsOfPersonsEnd(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	b, other := withPeople(t, url, Options{}), withPeople(t, url, Options{})
	b.person(t, "ann", api.RoleOperator)
	now := start
	for name, end := range map[string]func() error{
		"with a new role": func() error {
			_, err := b.people.Update(t.Context(), "ann", api.PersonPatch{Role: new(api.RoleViewer)}, start)
			return err
		},
		"with a new password": func() error {
			return b.people.ChangePassword(t.Context(), "ann", api.PasswordChange{Password: password,
				NewPassword: password}, start)
		},
	} {
		cookie, kept := b.enter(t, "ann", now), b.enter(t, "ann", now)
		g := b.session(t, kept, now)
		if other.session(t, cookie, now) == nil || g == nil {
			t.Fatal("there is no session")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := b.Renew(t.Context(), g, now); err != nil {
			t.Fatal(err)
		}
		later := now.Add(2 * time.Second) // another process knows it within one
		if b.session(t, cookie, now) != nil || other.session(t, cookie, later) != nil {
			t.Errorf("the session did not end %s", name)
		}
		if b.session(t, kept, now) == nil {
			t.Errorf("the renewed session ended %s", name)
		}
		now = later
	}
	cookie := b.enter(t, "ann", now)
	if _, err := b.people.Delete(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	b.person(t, "ann", api.RoleAdmin)
	if b.session(t, cookie, now) != nil {
		t.Error("the session of a former person is one of a later person of that name")
	}
}

// TestSessionsHaveAnEnd however much they are used.
func TestSessionsHaveAnEnd(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{SessionTTL: 24 * time.Hour})
	b.person(t, "ann", api.RoleOperator)
	for name, cookie := range map[string]string{"of a person": b.enter(t, "ann", start),
		"of a token": b.login(t, bootstrap)} {
		for _, hours := range []time.Duration{1, 12, 23} {
			if b.session(t, cookie, start.Add(hours*time.Hour)) == nil {
				t.Errorf("%s: ended after %d hours", name, hours)
			}
		}
		if b.session(t, cookie, start.Add(24*time.Hour)) != nil || b.session(t, cookie, start) != nil {
			t.Errorf("%s: lasts beyond its end", name)
		}
	}
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{})
	b.person(t, "ann", api.RoleOperator, "a")
	b.person(t, "bob", api.RoleAdmin)
	first, second := b.enter(t, "ann", start), b.enter(t, "ann", start.Add(time.Second))
	bob, token := b.enter(t, "bob", start.Add(2*time.Second)), b.login(t, bootstrap)
	gone := b.enter(t, "bob", start)
	if err := b.Logout(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	now := start.Add(time.Minute)
	ids := func(person string, current *Grant) (ids []string) {
		t.Helper()
		all, err := b.Sessions(t.Context(), person, current, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			ids = append(ids, s.ID)
			if s.Current != (current != nil && s.ID == current.Session) {
				t.Errorf("%+v", s)
			}
		}
		return ids
	}
	g := b.session(t, second, now)
	if got, want := ids("ann", g), []string{SessionID(second), SessionID(first)}; !slices.Equal(got, want) {
		t.Errorf("of ann: %v, want %v", got, want)
	}
	if got := ids("", g); len(got) != 4 || got[0] != SessionID(bob) || !slices.Contains(got, SessionID(token)) {
		t.Errorf("of all: %v", got)
	}
	all, err := b.Sessions(t.Context(), "ann", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	s := all[1]
	if s.Person != "ann" || s.Account != "a" || s.Address != here.String() || s.Agent != "Firefox" ||
		!s.Created.Equal(start) || s.Expires.Before(now.Add(SessionTTL-time.Minute)) {
		t.Errorf("%+v", s)
	}
	for _, tt := range []struct {
		id, person string
		want       bool
	}{
		{SessionID(bob), "ann", false}, {SessionID(first), "ann", true}, {SessionID(first), "ann", false},
		{"", "", false}, {SessionID(bob)[:4], "", false}, {SessionID(bob), "", true},
	} {
		if ended, err := b.EndSession(t.Context(), tt.id, tt.person); ended != tt.want || err != nil {
			t.Errorf("%+v: %v, %v", tt, ended, err)
		}
	}
	if b.session(t, first, now) != nil || b.session(t, bob, now) != nil || b.session(t, second, now) == nil {
		t.Error("the wrong sessions ended")
	}
	if _, err := b.people.EndSessions(t.Context(), "ann", now); err != nil {
		t.Fatal(err)
	}
	if got := ids("ann", nil); len(got) != 0 {
		t.Errorf("sessions of a former epoch: %v", got)
	}
}

// TestGuessesAtPasswordsAreLimitedByAddress: from networks that are new to the person. Others are not
// affected.
func TestGuessesAtPasswordsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{MaxFailures: 2})
	b.person(t, "ann", api.RoleOperator)
	from := func(addr netip.Addr, password string) fault.Kind {
		_, _, err := b.LoginPerson(t.Context(), Password{Name: "ann", Password: password}, Client{Addr: addr},
			start)
		return fault.KindOf(err)
	}
	for i, want := range []fault.Kind{fault.Unauthorized, fault.Unauthorized, fault.Limited, fault.Limited} {
		if got := from(here, "wrong"); got != want {
			t.Errorf("guess %d: %q", i, got)
		}
	}
	if got := from(here, password); got != fault.Limited {
		t.Errorf("a right password costs memory, but: %q", got)
	}
	if got := b.try(t, bootstrap, here, start); got != "" {
		t.Errorf("a right token: %q", got)
	}
	if got := from(netip.MustParseAddr("203.0.113.77"), password); got != "" {
		t.Errorf("from elsewhere: %q", got)
	}
}

// TestWrongLoginsOfOthersLockNobodyOut: not from a network where the person has logged in before, for example
// behind one proxy; and wrong tokens don't count as wrong logins.
func TestWrongLoginsOfOthersLockNobodyOut(t *testing.T) {
	t.Parallel()
	b := withPeople(t, testredis.URL(t), Options{MaxFailures: 2})
	b.person(t, "ann", api.RoleOperator)
	b.person(t, "bob", api.RoleOperator)
	from := func(name, password string) fault.Kind {
		_, _, err := b.LoginPerson(t.Context(), Password{Name: name, Password: password}, Client{Addr: here}, start)
		return fault.KindOf(err)
	}
	for range 5 {
		b.try(t, "a wrong token", here, start)
	}
	if got := from("ann", password); got != "" {
		t.Errorf("after wrong tokens: %q", got)
	}
	for range 21 {
		from("nobody", "wrong")
	}
	if got := from("ann", password); got != "" {
		t.Errorf("a person who has logged in from there: %q", got)
	}
	if got := from("ann", "wrong"); got != fault.Limited {
		t.Errorf("a guess at her password: %q", got)
	}
	if got := from("bob", password); got != fault.Limited {
		t.Errorf("a person who is new there: %q", got)
	}
	if got := b.try(t, "a wrong token", netip.MustParseAddr("203.0.113.78"), start); got != fault.Unauthorized {
		t.Errorf("a wrong token from elsewhere: %q", got)
	}
}
