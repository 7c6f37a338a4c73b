package accounts

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/relays"
)

func TestSecretsAreSealedInRedis(t *testing.T) {
	b := setup(t, nil)
	a := account("a")
	a.SMTP.Auth.Pass, a.SMTP.Auth.AccessToken = "correct horse battery", "ya29.access-token"
	b.create(t, a)
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{Name: ptr("findable name")}); err != nil {
		t.Fatal(err)
	}
	b.Outcome(t.Context(), "a", errors.New("refused"))
	if !testredis.Holds(t, b.db, "findable name") {
		t.Fatal("the search finds nothing at all")
	}
	for _, secret := range []string{"correct horse battery", "ya29.access-token"} {
		if testredis.Holds(t, b.db, secret) || testredis.Holds(t, b.db, base64.StdEncoding.EncodeToString([]byte(secret))) {
			t.Errorf("%q is in Redis", secret)
		}
	}
}

func TestSealedValueOpensNothingElsewhere(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("victim"))
	s, err := b.store.load(t.Context(), "victim")
	if err != nil {
		t.Fatal(err)
	}
	s.Account.Account = "thief"
	if plain, err := b.opened(s); err == nil {
		t.Errorf("the victim's password in the thief's account: %q", plain.SMTP.Auth.Pass)
	}
	s.Account.Account = "victim"
	s.Account.SMTP.Auth.AccessToken = s.Account.SMTP.Auth.Pass
	if plain, err := b.opened(s); err == nil {
		t.Errorf("the password in the token's place: %q", plain.SMTP.Auth.AccessToken)
	}
}

func TestChangedInstanceSecretBreaksOnlyWhatNeedsIt(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	later := process(t, b.url, "another secret", nil)
	if _, err := later.Resolve(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("resolve: %v", err)
	}
	if info, err := later.Get(t.Context(), "a"); err != nil || info.SMTP.Auth.Pass != relays.Mask {
		t.Errorf("get: %+v, %v", info, err)
	}
	if _, err := later.Update(t.Context(), "a", api.AccountPatch{SMTP: account("a").SMTP}); err != nil {
		t.Errorf("entering the password again: %v", err)
	}
	if s, err := later.Resolve(t.Context(), "a"); err != nil || s.Routes[0].Relay.Password != "correct horse" {
		t.Errorf("resolve: %v, %v", s, err)
	}
}
