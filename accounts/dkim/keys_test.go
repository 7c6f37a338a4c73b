package dkim

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// bundle is a store on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Keys
	db    *redisdb.DB
	clock *testkit.Clock
	url   string
}

func setup(t *testing.T) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), "a")
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, current string, older ...string) bundle {
	t.Helper()
	db := testredis.Connect(t, redisdb.Options{URL: url})
	c := testkit.NewClock()
	k, err := NewKeys(db, testkit.Ring(t, current, older...), Options{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Keys: k, db: db, clock: c, url: url}
}

func key(domain, selector string) api.DKIM {
	return api.DKIM{Domain: domain, Selector: selector, PrivateKey: pems()[Ed25519]}
}

func (b bundle) add(t *testing.T, d api.DKIM) api.DomainKey {
	t.Helper()
	answer, err := b.Put(t.Context(), api.NewDomainKey{DKIM: d})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// signs says with which domain and selector mail from a domain is signed.
func (b bundle) signs(t *testing.T, from string) string {
	t.Helper()
	s, err := b.For(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return "unsigned"
	}
	return s.Selector + " of " + s.Domain
}

func TestAKeyIsStoredShownAndDeleted(t *testing.T) {
	b := setup(t)
	if p, err := b.List(t.Context()); err != nil || p.Total != 0 || p.Keys == nil {
		t.Errorf("nothing stored yet: %+v, %v", p, err)
	}
	answer := b.add(t, key("Bücher.Example", "S1"))
	want := api.DomainKey{
		NewDomainKey: api.NewDomainKey{DKIM: api.DKIM{Domain: "xn--bcher-kva.example", Selector: "s1",
			PrivateKey: records.Mask}},
		Record: record(t, parsed(t, Ed25519)), Created: testkit.ClockStart,
	}
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Errorf("put (-want +got):\n%s", diff)
	}
	got, err := b.Get(t.Context(), "bücher.example")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("get (-want +got):\n%s%v", diff, err)
	}
	b.add(t, key("a.example", "s1"))
	p, err := b.List(t.Context())
	if err != nil || p.Total != 2 || p.Keys[0].Domain != "a.example" || p.Keys[1].Domain != want.Domain {
		t.Errorf("list: %+v, %v", p, err)
	}
	for _, line := range strings.Split(pems()[Ed25519], "\n")[1:2] {
		if testredis.Holds(t, b.db, line) {
			t.Error("the key is readable in Redis")
		}
	}
	if err := b.Delete(t.Context(), "bücher.example"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		b.Delete(t.Context(), "bücher.example"), b.Delete(t.Context(), "a:b"), b.Delete(t.Context(), "version"),
	} {
		if !fault.Is(err, fault.NotFound) || fault.CodeOf(err) != "DomainKeyNotFound" {
			t.Errorf("delete what is not there: %v", err)
		}
	}
	if _, err := b.Get(t.Context(), "bücher.example"); !fault.Is(err, fault.NotFound) {
		t.Errorf("get what is not there: %v", err)
	}
}

func TestPutReportsEveryWrongField(t *testing.T) {
	b := setup(t)
	_, err := b.Put(t.Context(), api.NewDomainKey{DKIM: api.DKIM{Domain: "localhost", Selector: "a b",
		PrivateKey: "x"}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || len(f.Fields) != 3 {
		t.Errorf("%v", err)
	}
	if _, err := b.Put(t.Context(), api.NewDomainKey{DKIM: api.DKIM{Domain: "a.example", Selector: "s1",
		PrivateKey: records.Mask}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("masked, with nothing stored: %v", err)
	}
}

func TestAMaskedKeyKeepsTheStoredOne(t *testing.T) {
	b := setup(t)
	first := b.add(t, key("a.example", "s1"))
	b.clock.Advance(time.Hour)
	first.Selector = "s2"
	second := b.add(t, first.DKIM)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s, err := b.For(t.Context(), "a.example")
	if err != nil || s == nil || s.Selector != "s2" ||
		!s.Key.signer.Public().(ed25519.PublicKey).Equal(parsed(t, Ed25519).signer.Public()) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWhichKeySignsADomain(t *testing.T) {
	b := setup(t)
	b.add(t, key("example.co.uk", "parent"))
	b.add(t, key("news.example.co.uk", "own"))
	for from, want := range map[string]string{
		"example.co.uk": "parent of example.co.uk", "news.example.co.uk": "own of news.example.co.uk",
		"x.news.example.co.uk": "own of news.example.co.uk",
		"shop.example.co.uk":   "parent of example.co.uk", "other.co.uk": "unsigned", "co.uk": "unsigned",
		"example.com": "unsigned", "notexample.co.uk": "unsigned", "localhost": "unsigned", "": "unsigned",
	} {
		if got := b.signs(t, from); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}

func TestEveryProcessSeesAChangeWithinASecond(t *testing.T) {
	b := setup(t)
	other := process(t, b.url, "a")
	if got := b.signs(t, "a.example") + other.signs(t, "a.example"); got != "unsignedunsigned" {
		t.Fatal(got)
	}
	b.add(t, key("a.example", "s1"))
	if got := b.signs(t, "a.example"); got != "s1 of a.example" {
		t.Errorf("the process that changed it: %s", got)
	}
	other.clock.Advance(time.Second)
	if got := other.signs(t, "a.example"); got != "s1 of a.example" {
		t.Errorf("another process: %s", got)
	}
	if err := b.Delete(t.Context(), "a.example"); err != nil {
		t.Fatal(err)
	}
	other.clock.Advance(time.Second)
	if got := b.signs(t, "a.example") + other.signs(t, "a.example"); got != "unsignedunsigned" {
		t.Error(got)
	}
}

func TestLookingUpCostsNothingWhileItIsFresh(t *testing.T) {
	b := setup(t)
	b.add(t, key("a.example", "s1"))
	for _, from := range []string{"a.example", "unsigned.example"} {
		b.signs(t, from)
		commands := testredis.CountCommands(b.db)
		for range 100 {
			b.signs(t, from)
		}
		if n := commands.Sent(); n != 0 {
			t.Errorf("%s: %d commands", from, n)
		}
	}
}

func TestKeysAreSealedAnewWhenTheSecretChanges(t *testing.T) {
	b := setup(t)
	b.add(t, key("a.example", "s1"))
	b.add(t, key("b.example", "s1"))
	if n, err := b.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("nothing to do: %d, %v", n, err)
	}
	next := process(t, b.url, "b", "a")
	if n, err := next.Reseal(t.Context()); n != 2 || err != nil {
		t.Errorf("sealed %d anew, %v", n, err)
	}
	last := process(t, b.url, "b")
	if got := last.signs(t, "a.example"); got != "s1 of a.example" {
		t.Errorf("with the new secret alone: %s", got)
	}
	if _, err := process(t, b.url, "a").For(t.Context(), "a.example"); !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("with the old secret: %v", err)
	}
	if n, err := process(t, b.url, "c").Reseal(t.Context()); n != 0 || !errors.Is(err, seal.ErrUnknownKey) {
		t.Errorf("without the secret: %d, %v", n, err)
	}
}

func TestRedisAway(t *testing.T) {
	b := setup(t)
	b.signs(t, "a.example")
	b.clock.Advance(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server := testredis.Server(t)
	away := process(t, server.URL(), "a")
	server.Kill()
	for name, try := range map[string]func() error{
		"put": func() error {
			_, err := away.Put(t.Context(), api.NewDomainKey{DKIM: key("a.example", "s1")})
			return err
		},
		"get":    func() error { _, err := away.Get(t.Context(), "a.example"); return err },
		"list":   func() error { _, err := away.List(t.Context()); return err },
		"delete": func() error { return away.Delete(t.Context(), "a.example") },
		"for":    func() error { _, err := away.For(t.Context(), "a.example"); return err },
		"reseal": func() error { _, err := away.Reseal(t.Context()); return err },
	} {
		if err := try(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.For(ctx, "a.example"); err == nil {
		t.Error("a caller that gave up got an answer")
	}
}
