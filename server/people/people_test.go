package people

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var (
	start  = time.Date(2030, 12, 24, 12, 0, 0, 0, time.UTC)
	home   = netip.MustParseAddr("192.0.2.7")
	homely = netip.MustParsePrefix("192.0.2.7/32")
	far    = netip.MustParseAddr("203.0.113.9")
	farOff = netip.MustParsePrefix("203.0.113.9/32")
)

const password = "correct horse battery"

// bundle is People on a Redis of its own.
type bundle struct {
	*People
	t  *testing.T
	db *redisdb.DB
}

func setup(t *testing.T) bundle {
	t.Parallel()
	return on(t, testredis.New(t), "secret")
}

func on(t *testing.T, db *redisdb.DB, secret string, older ...string) bundle {
	t.Helper()
	p, err := New(db, testkit.Ring(t, secret, older...), Options{PasswordMemory: 64})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{p, t, db}
}

func (b bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// person makes a person with a password.
func (b bundle) person(name string, role api.Role, accounts ...string) {
	b.t.Helper()
	_, err := b.Create(b.t.Context(), api.PersonRequest{Person: name, Role: role, Accounts: accounts}, start)
	b.must(err)
	secret, _, err := b.NewLink(b.t.Context(), name, start)
	b.must(err)
	_, err = b.Use(b.t.Context(), secret, "", password, start)
	b.must(err)
}

// login logs in from home.
func (b bundle) login(name, password, code string, now time.Time) error {
	_, err := b.Login(b.t.Context(), name, password, code, home, homely, now)
	return err
}

// epoch returns the epoch of a person; empty: sessions are over.
func (b bundle) epoch(name string) string {
	b.t.Helper()
	h, err := b.Find(b.t.Context(), name, time.Now())
	b.must(err)
	if h == nil {
		return ""
	}
	return h.Epoch
}

// secondFactor sets up an app, and returns its secret and the recovery codes.
func (b bundle) secondFactor(name string, now time.Time) (string, []string) {
	b.t.Helper()
	s, err := b.Enrol(b.t.Context(), name, password, now)
	b.must(err)
	codes, err := b.Confirm(b.t.Context(), name, b.code(s.Secret, now), now)
	b.must(err)
	return s.Secret, codes.RecoveryCodes
}

func (b bundle) code(secret string, now time.Time) string {
	b.t.Helper()
	code, err := totp.GenerateCode(secret, now)
	b.must(err)
	return code
}

// wrongLogin fails the test unless err is the one refusal of all logins.
func (b bundle) wrongLogin(what string, err error) {
	b.t.Helper()
	if !fault.Is(err, fault.Unauthorized) || err.Error() != "The name, the password or the code is wrong" {
		b.t.Errorf("%s: %v", what, err)
	}
}

func TestWhatIsWrongOfAPerson(t *testing.T) {
	b := setup(t)
	for _, tt := range []struct {
		req api.PersonRequest
		key string // the invalid field; empty if it is accepted
	}{
		{api.PersonRequest{Person: " Ann@Example.com ", Role: api.RoleViewer}, ""},
		{api.PersonRequest{Person: "bob", Role: api.RoleOperator, Accounts: []string{"shop", "shop", "b"}}, ""},
		{api.PersonRequest{Person: "", Role: api.RoleViewer}, "person"},
		{api.PersonRequest{Person: "аnn", Role: api.RoleViewer}, "person"}, // a Cyrillic letter
		{api.PersonRequest{Person: "a:b", Role: api.RoleViewer}, "person"},
		{api.PersonRequest{Person: strings.Repeat("a", 129), Role: api.RoleViewer}, "person"},
		{api.PersonRequest{Person: "x", Role: "owner"}, "role"},
		{api.PersonRequest{Person: "x", Role: api.RoleAdmin, Accounts: []string{"shop"}}, "accounts"},
		{api.PersonRequest{Person: "x", Role: api.RoleViewer, Accounts: []string{"a b"}}, "accounts[0]"},
		{api.PersonRequest{Person: "x", Role: api.RoleViewer, Identity: &api.Identity{Issuer: "x", Subject: "y"}},
			"identity.issuer"},
		{api.PersonRequest{Person: "x", Role: api.RoleViewer, Identity: &api.Identity{Issuer: "https://x.test",
			Subject: strings.Repeat("s", 256)}}, "identity.subject"},
	} {
		p, err := b.Create(t.Context(), tt.req, start)
		if tt.key == "" {
			if err != nil || p.Person != strings.ToLower(strings.TrimSpace(tt.req.Person)) {
				t.Errorf("%+v: %+v, %v", tt.req, p, err)
			}
			continue
		}
		if !strings.Contains(fmt.Sprint(fieldsOf(err)), tt.key) {
			t.Errorf("%+v: %v", tt.req, err)
		}
	}
	if _, err := b.Create(t.Context(), api.PersonRequest{Person: "ANN@example.com", Role: api.RoleAdmin},
		start); fault.CodeOf(err) != "PersonExists" {
		t.Errorf("a name that is taken: %v", err)
	}
	page, err := b.List(t.Context(), 0, 1)
	if err != nil || page.Total != 2 || page.Pages != 2 || len(page.People) != 1 ||
		page.People[0].Person != "ann@example.com" {
		t.Errorf("%+v, %v", page, err)
	}
	if bob, err := b.Get(t.Context(), "Bob"); err != nil || len(bob.Accounts) != 2 {
		t.Errorf("%+v, %v", bob, err)
	}
}

func fieldsOf(err error) (keys []string) {
	if f, ok := err.(*fault.Error); ok {
		for _, field := range f.Fields {
			keys = append(keys, field.Key)
		}
	}
	return keys
}

// TestOneRefusalForEveryWrongLogin: nobody learns which names exist, or what was wrong.
func TestOneRefusalForEveryWrongLogin(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	b.person("off", api.RoleOperator)
	_, err := b.Update(t.Context(), "off", api.PersonPatch{Disabled: new(true)}, start)
	b.must(err)
	for _, name := range []string{"invited", "elsewhere"} {
		req := api.PersonRequest{Person: name, Role: api.RoleViewer}
		if name == "elsewhere" {
			req.Identity = &api.Identity{Issuer: "https://id.test", Subject: "1"}
		}
		_, err := b.Create(t.Context(), req, start)
		b.must(err)
	}
	b.must(b.login(" ANN ", password, "", start))
	b.wrongLogin("wrong password", b.login("ann", "incorrect horse battery", "", start))
	b.wrongLogin("empty password", b.login("ann", "", "", start))
	b.wrongLogin("unknown", b.login("nobody", password, "", start))
	b.wrongLogin("no name", b.login("../x", password, "", start))
	b.wrongLogin("disabled", b.login("off", password, "", start))
	b.wrongLogin("without a password", b.login("invited", "", "", start))
	b.wrongLogin("of another issuer", b.login("elsewhere", "", "", start))
	b.wrongLogin("a long one", b.login("ann", strings.Repeat(password, 100), "", start))
	if _, _, err := b.NewLink(t.Context(), "elsewhere", start); fault.CodeOf(err) != "NoPassword" {
		t.Errorf("a link for who logs in elsewhere: %v", err)
	}
	ann, err := b.Get(t.Context(), "ann")
	if err != nil || ann.LastLogin == nil || !ann.LastLogin.Equal(start) || ann.LastAddress != home.String() {
		t.Errorf("%+v, %v", ann, err)
	}
}

// TestGuessesLockNobodyOut: guesses at a name are limited, but not from where its person logs in.
func TestGuessesLockNobodyOut(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	b.must(b.login("ann", password, "", start))
	for _, name := range []string{"ann", "nobody"} {
		b.must(b.db.Client().Set(t.Context(), failuresKey(name), maxFailures-1, time.Hour).Err())
	}
	from := func(name, password string) error {
		_, err := b.Login(t.Context(), name, password, "", far, farOff, start)
		return err
	}
	b.wrongLogin("the last guess", from("ann", "wrong"))
	b.wrongLogin("the last guess at nobody", from("nobody", "wrong"))
	for _, name := range []string{"ann", "nobody"} {
		if err := from(name, password); fault.CodeOf(err) != "TooManyFailures" {
			t.Errorf("%s after too many guesses: %v", name, err)
		}
	}
	b.must(b.login("ann", password, "", start))
	b.wrongLogin("from home, with a wrong password", b.login("ann", "wrong", "", start))
}

func TestCodesWorkOnce(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	secret, recovery := b.secondFactor("ann", start)
	b.wrongLogin("the code that confirmed", b.login("ann", password, b.code(secret, start), start))
	b.wrongLogin("no code", b.login("ann", password, "", start))
	now := start.Add(5 * time.Minute)
	b.must(b.login("ann", password, b.code(secret, now), now))
	b.wrongLogin("the same code again", b.login("ann", password, b.code(secret, now), now))
	b.wrongLogin("the code before", b.login("ann", password, b.code(secret, now.Add(-30*time.Second)), now))
	b.must(b.login("ann", password, b.code(secret, now.Add(30*time.Second)), now)) // its clock is ahead
	b.wrongLogin("a code of later", b.login("ann", password, b.code(secret, now.Add(5*time.Minute)), now))
	if len(recovery) != recoveryCodes {
		t.Fatal(recovery)
	}
	b.must(b.login("ann", password, recovery[3], now))
	b.wrongLogin("a recovery code again", b.login("ann", password, recovery[3], now))
	b.must(b.login("ann", password, strings.ToUpper(strings.ReplaceAll(recovery[4], "-", " ")), now))
	if ann, err := b.Get(t.Context(), "ann"); err != nil || !ann.TOTP || ann.RecoveryCodes != recoveryCodes-2 {
		t.Errorf("%+v, %v", ann, err)
	}
}

// TestOfTwoLoginsWithOneCodeOneSucceeds even at the same time.
func TestOfTwoLoginsWithOneCodeOneSucceeds(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	secret, _ := b.secondFactor("ann", start)
	now := start.Add(5 * time.Minute)
	code := b.code(secret, now)
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() { errs[i] = b.login("ann", password, code, now) })
	}
	wait.Wait()
	right := 0
	for _, err := range errs {
		if err == nil {
			right++
		}
	}
	if right != 1 {
		t.Errorf("%d logins with one code: %v", right, errs)
	}
}

// TestCodesAreNotGuessed: who knows the password has ten guesses an hour. A recovery code still works.
func TestCodesAreNotGuessed(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	secret, recovery := b.secondFactor("ann", start)
	now := start.Add(5 * time.Minute)
	b.must(b.db.Client().Set(t.Context(), codesKey("ann"), maxCodes-1, time.Hour).Err())
	b.wrongLogin("the tenth guess", b.login("ann", password, "000000", now))
	b.wrongLogin("a right code after ten wrong ones", b.login("ann", password, b.code(secret, now), now))
	b.must(b.login("ann", password, recovery[0], now))
}

// TestSessionsEnd: each of these gives the person another epoch.
func TestSessionsEnd(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	ctx := t.Context()
	for _, tt := range []struct {
		name string
		do   func() error
		ends bool
	}{
		{"login", func() error { return b.login("ann", password, "", start) }, false},
		{"link", func() error { _, _, err := b.NewLink(ctx, "ann", start); return err }, false},
		{"enrol", func() error { _, err := b.Enrol(ctx, "ann", password, start); return err }, false},
		{"role", func() error {
			_, err := b.Update(ctx, "ann", api.PersonPatch{Role: new(api.RoleViewer)}, start)
			return err
		}, true},
		{"accounts", func() error {
			_, err := b.Update(ctx, "ann", api.PersonPatch{Accounts: &[]string{"shop"}}, start)
			return err
		}, true},
		{"password", func() error {
			return b.ChangePassword(ctx, "ann", api.PasswordChange{Password: password,
				NewPassword: password + "!"}, start)
		}, true},
		{"sign out", func() error { _, err := b.EndSessions(ctx, "ann", start); return err }, true},
		{"second factor", func() error { _, err := b.ResetTOTP(ctx, "ann", start); return err }, true},
		{"disabled", func() error {
			_, err := b.Update(ctx, "ann", api.PersonPatch{Disabled: new(true)}, start)
			return err
		}, true},
		{"enabled", func() error {
			_, err := b.Update(ctx, "ann", api.PersonPatch{Disabled: new(false)}, start)
			return err
		}, true},
		{"deleted", func() error { _, err := b.Delete(ctx, "ann"); return err }, true},
	} {
		before := b.epoch("ann")
		b.must(tt.do())
		if got := b.epoch("ann"); (got != before) != tt.ends {
			t.Errorf("%s: the epoch was %q and is %q", tt.name, before, got)
		}
	}
	if deleted, err := b.Delete(ctx, "ann"); deleted || err != nil {
		t.Errorf("deleted again: %v, %v", deleted, err)
	}
}

// TestADeletedAccountIsNobodys: a later account of the same name does not belong to the people of the earlier
// one.
func TestADeletedAccountIsNobodys(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator, "a", "b")
	b.person("bob", api.RoleViewer, "a")
	b.person("cat", api.RoleOperator)
	before := b.epoch("cat")
	if n, err := b.ForgetAccount(t.Context(), "a", start); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if h, err := b.Find(t.Context(), "ann", time.Now()); err != nil || len(h.Accounts) != 1 ||
		h.Accounts[0] != "b" {
		t.Errorf("%+v, %v", h, err)
	}
	if bob, err := b.Get(t.Context(), "bob"); err != nil || !bob.Disabled || len(bob.Accounts) != 1 {
		t.Errorf("%+v, %v", bob, err)
	}
	if b.epoch("cat") != before {
		t.Error("a person of all accounts was changed")
	}
}

func TestOwnChangesNeedThePassword(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleViewer)
	ctx := t.Context()
	change := api.PasswordChange{Password: "wrong", NewPassword: "another long password"}
	err := b.ChangePassword(ctx, "ann", change, start)
	if got := fmt.Sprint(fieldsOf(err)); got != "[password]" {
		t.Errorf("wrong password: %v", err)
	}
	if _, err := b.Enrol(ctx, "ann", "wrong", start); fmt.Sprint(fieldsOf(err)) != "[password]" {
		t.Errorf("enrolled with a wrong password: %v", err)
	}
	for _, bad := range []string{"short", strings.Repeat("é", 11), strings.Repeat("a", 40),
		"aaa" + strings.Repeat("b", 2000),
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		err := b.ChangePassword(ctx, "ann", api.PasswordChange{Password: password, NewPassword: bad}, start)
		if got := fmt.Sprint(fieldsOf(err)); got != "[newPassword]" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := validatePassword("password", "annabelle", "annabelle1234"); err == nil {
		t.Error("a password that is the name and four digits")
	}
	b.must(b.db.Client().Set(ctx, codesKey("ann"), maxCodes, time.Hour).Err())
	change.Password = password
	if err := b.ChangePassword(ctx, "ann", change, start); fault.CodeOf(err) != "TooManyFailures" {
		t.Errorf("after ten wrong passwords in a session: %v", err)
	}
}

func TestLinksWorkOnce(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	_, err := b.Create(ctx, api.PersonRequest{Person: "ann", Role: api.RoleViewer}, start)
	b.must(err)
	link := func() string {
		secret, ends, err := b.NewLink(ctx, "ann", start)
		b.must(err)
		if !ends.Equal(start.Add(LinkTTL)) {
			t.Errorf("it ends %v", ends)
		}
		return secret
	}
	one, other := link(), link()
	for range 2 { // a scanner looks
		if l, err := b.Link(ctx, one, start); err != nil || l.Name != "ann" {
			t.Fatal(l, err)
		}
	}
	if _, err := b.Use(ctx, one, "", "short", start); fmt.Sprint(fieldsOf(err)) != "[password]" {
		t.Errorf("%v", err)
	}
	if _, err := b.Use(ctx, one, "", password, start.Add(LinkTTL)); !fault.Is(err, fault.NotFound) {
		t.Errorf("when it has ended: %v", err)
	}
	_, err = b.Use(ctx, one, "bob", password, start)
	b.must(err)
	b.must(b.login("ann", password, "", start))
	for name, secret := range map[string]string{"used": one, "of before": other, "no": "no"} {
		if _, err := b.Use(ctx, secret, "", "quite another password", start); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last := link()
	_, err = b.Delete(ctx, "ann")
	b.must(err)
	_, err = b.Create(ctx, api.PersonRequest{Person: "ann", Role: api.RoleAdmin}, start.Add(time.Second))
	b.must(err)
	if _, err := b.Link(ctx, last, start); !fault.Is(err, fault.NotFound) {
		t.Errorf("the link of a former person of that name: %v", err)
	}
}

func TestTheFirstLinkMakesOneAdmin(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	one, err := b.FirstLink(ctx, start)
	b.must(err)
	other, err := b.FirstLink(ctx, start)
	b.must(err)
	if _, err := b.Use(ctx, one, "no name", password, start); fmt.Sprint(fieldsOf(err)) != "[person]" {
		t.Errorf("%v", err)
	}
	p, err := b.Use(ctx, one, "Ann", password, start)
	if err != nil || p.Person != "ann" || p.Role != api.RoleAdmin || p.Invited {
		t.Fatal(p, err)
	}
	for _, secret := range []string{one, other} {
		if _, err := b.Use(ctx, secret, "eve", password, start); !fault.Is(err, fault.NotFound) {
			t.Errorf("a second admin: %v", err)
		}
	}
	if again, err := b.FirstLink(ctx, start); again != "" || err != nil {
		t.Errorf("a link beside persons: %q, %v", again, err)
	}
}

// TestWhoWritesToRedisIsNoPerson: records and links that Postroom did not write are refused.
func TestWhoWritesToRedisIsNoPerson(t *testing.T) {
	b := setup(t)
	ctx, c := t.Context(), b.db.Client()
	b.person("ann", api.RoleViewer)
	b.person("root", api.RoleAdmin)
	plain, err := json.Marshal(record{Name: "ann", Role: api.RoleAdmin})
	b.must(err)
	for name, text := range map[string]string{"plain": string(plain),
		"the record of another": c.Get(ctx, personKey("root")).Val()} {
		b.must(c.Set(ctx, personKey("ann"), text, 0).Err())
		b.known.Clear()
		b.wrongLogin(name, b.login("ann", password, "", start))
		if got := b.epoch("ann"); got != "" {
			t.Errorf("%s: a session holds", name)
		}
		if p, err := b.Get(ctx, "ann"); err != nil || p.Refused == "" || p.Role != "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if _, err := b.EndSessions(ctx, "ann", start); fault.CodeOf(err) != "PersonRefused" {
			t.Errorf("%s: changed: %v", name, err)
		}
	}
	if deleted, err := b.Delete(ctx, "ann"); !deleted || err != nil {
		t.Errorf("deleted: %v, %v", deleted, err)
	}
	b.must(c.Set(ctx, linkKey(linkHash("mine")), `{"ends":9999999999}`, time.Hour).Err())
	if _, err := b.Use(ctx, "mine", "eve", password, start); !fault.Is(err, fault.NotFound) {
		t.Errorf("a link of their own: %v", err)
	}
}

func TestNothingOfAPersonIsReadableInRedis(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	secret, recovery := b.secondFactor("ann", start)
	link, _, err := b.NewLink(t.Context(), "ann", start)
	b.must(err)
	for name, s := range map[string]string{"password": password, "secret": secret, "recovery code": recovery[0],
		"link": link, "hash": "argon2id", "role": "operator"} {
		if testredis.Holds(t, b.db, s) {
			t.Errorf("the %s is in Redis", name)
		}
	}
}

func TestResealedUnderANewSecret(t *testing.T) {
	b := setup(t)
	b.person("ann", api.RoleOperator)
	both := on(t, b.db, "new", "secret")
	for _, want := range []int{1, 0} {
		if n, err := both.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	b.must(on(t, b.db, "new").login("ann", password, "", start))
}

// TestPasswordsAreDear: what a password costs in use. Other tests save that time.
func TestPasswordsAreDear(t *testing.T) {
	t.Parallel()
	h := newHasher(0)
	stored, err := h.hash(t.Context(), password)
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=65536,t=3,p=4$") {
		t.Fatalf("stored as %s, %v", stored, err)
	}
	for word, want := range map[string]bool{password: true, password + "x": false} {
		if ok, err := newHasher(64).matches(t.Context(), stored, word); ok != want || err != nil {
			t.Errorf("%q is right: %v, %v; want %v", word, ok, err, want)
		}
	}
}

// TestLoginsTakeBoundedMemory: two passwords are computed together, a few wait, others are refused.
func TestLoginsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	h := newHasher(0)
	for range atOnce {
		_, err := h.turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error)
	for range waiting + 1 {
		go func() {
			_, err := h.turn(ctx)
			results <- err
		}()
	}
	if err := <-results; !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "Too many people") {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	for range waiting {
		if err := <-results; !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
	}
}
