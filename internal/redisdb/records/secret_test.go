package records

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
)

func TestMaskedSecretsStayWhereTheyGo(t *testing.T) {
	tests := []struct {
		name   string
		before *thing
		edit   func(v *thing)
		pass   string
		wrong  []string
	}{
		{"as shown", new(secretive("")), func(*thing) {}, "correct horse", nil},
		{"another name", new(secretive("")), func(v *thing) { v.Name = "new" }, "correct horse", nil},
		{"another host", new(secretive("")), func(v *thing) { v.Host = "evil" }, "", []string{"pass"}},
		{"another host, with the password", new(secretive("")), func(v *thing) {
			v.Host, v.Key.Pass = "evil",
				"mine"
		}, "mine", nil},
		{"no host", new(secretive("")), func(v *thing) { v.Host = "" }, "", []string{"pass"}},
		{"no secret any more", new(secretive("")), func(v *thing) { v.Key = nil }, "", nil},
		{"masks where nothing was", &thing{}, func(v *thing) {
			v.Key, v.Proxy = &key{Mask, Mask},
				"http://u:******@p"
		}, "", []string{"proxy", "pass", "token"}},
		{"masks in a new record", nil, func(v *thing) { v.Key = &key{Mask, "known"} }, "", []string{"pass"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil)
			if tt.before != nil {
				b.change(t, "a", *tt.before)
			}
			_, err := b.Change(t.Context(), "a", func(old *Record[thing]) (thing, error) {
				if old == nil {
					old = &Record[thing]{}
				}
				tt.edit(&old.Value)
				return old.Value, nil
			})
			if tt.wrong != nil {
				if diff := cmp.Diff(tt.wrong, testkit.WrongFields(t, err)); diff != "" {
					t.Error(diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v := b.open(t, "a").Value; v.Key != nil && (v.Key.Pass != tt.pass || v.Key.Token != "battery") ||
				v.Proxy != secretive("").Proxy {
				t.Errorf("%+v %+v", v, v.Key)
			}
		})
	}
}

func TestASealedSecretOpensNothingElsewhere(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "victim", secretive(""))
	other := kind()
	other.Key = "other"
	elsewhere := bundle{New(b.db, b.ring, other, Options[thing]{}), b.db, b.clock, b.url}
	row := b.db.Client().HGetAll(t.Context(), b.Key("victim")).Val()
	for _, key := range []string{b.Key("thief"), elsewhere.Key("victim")} {
		if err := b.db.Client().HSet(t.Context(), key, row).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var sealed Record[thing]
	if found, err := b.loadOne(t.Context(), "victim", false); err != nil {
		t.Fatal(err)
	} else {
		sealed = *found
	}
	swapped := sealed
	swapped.ID, swapped.revision, swapped.Value.Key = "swapped", "r", &key{Pass: sealed.Value.Key.Token}
	if _, err := b.write(t.Context(), &swapped, nil, false); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Record[thing]{
		"another record": b.open(t, "thief"), "another kind": elsewhere.open(t, "victim"),
		"another field": b.open(t, "swapped"),
	} {
		if !errors.Is(r.Broken, seal.ErrDamaged) || r.Value.Key.Pass != Mask {
			t.Errorf("%s: %q, %v", name, r.Value.Key.Pass, r.Broken)
		}
	}
}

// TestAHostChangedInRedisGetsNoSecret: who writes to Redis can't redirect a password.
func TestAHostChangedInRedisGetsNoSecret(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", secretive("N"))
	sealed, err := b.loadOne(t.Context(), "a", false)
	if err != nil {
		t.Fatal(err)
	}
	tampered := *sealed
	tampered.Value.Host, tampered.revision = "evil", "r"
	if _, err := b.write(t.Context(), &tampered, sealed, false); err != nil {
		t.Fatal(err)
	}
	b.ring.Refused()
	r := b.open(t, "a")
	if !errors.Is(r.Broken, seal.ErrDamaged) || r.Value.Key.Pass != Mask ||
		!strings.Contains(r.Broken.Error(), "or one of host: enter it again") {
		t.Errorf("%q, %v", r.Value.Key.Pass, r.Broken)
	}
	if got := strings.Join(b.ring.Refused(), " "); got != "thing:a:pass" {
		t.Errorf("refused: %s", got)
	}
	b.change(t, "a", r.Value) // a masked password is kept, and still bound to the host before
	if r := b.open(t, "a"); !errors.Is(r.Broken, seal.ErrDamaged) {
		t.Errorf("after a change of something else: %v", r.Broken)
	}
	b.change(t, "a", secretive("N"))
	if r := b.open(t, "a"); r.Broken != nil {
		t.Errorf("entered again: %v", r.Broken)
	}
}

func TestAChangedInstanceSecretBreaksOnlyWhatNeedsIt(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", secretive("N"))
	later := process(t, b.url, testkit.Ring(t, "another"), nil)
	r := later.open(t, "a")
	if !errors.Is(r.Broken, seal.ErrUnknownKey) || !strings.Contains(r.Broken.Error(), "thing:a") ||
		r.Value.Name != "N" {
		t.Errorf("%+v, %v", r.Value, r.Broken)
	}
	if diff := cmp.Diff(later.get(t, "a").Value, r.Value); diff != "" {
		t.Errorf("open shows more than get: %s", diff)
	}
	later.change(t, "a", secretive("entered again"))
	if r := later.open(t, "a"); r.Broken != nil || r.Value.Key.Pass != "correct horse" {
		t.Errorf("%+v", r)
	}
}

func TestReseal(t *testing.T) {
	b := setup(t, nil)
	for _, id := range []string{"a", "b"} {
		b.change(t, id, secretive(id))
		b.note(t, id)
	}
	b.change(t, "open", thing{})
	during := process(t, b.url, testkit.Ring(t, "new", "secret"),
		&Record[thing]{ID: "d", Value: secretive("")})
	during.change(t, "c", secretive("c"))
	during.clock.Advance(time.Hour)
	for i, want := range []int{2, 0} {
		if n, err := during.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("time %d: %d, %v, want %d", i, n, err, want)
		}
	}
	after := process(t, b.url, testkit.Ring(t, "new"), nil)
	for _, id := range []string{"a", "b", "c"} {
		want := secretive(id)
		if diff := cmp.Diff(want, after.open(t, id).Value); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if r := after.get(t, "a"); r.State["state"] != "seen" || !r.Updated.Equal(testkit.ClockStart) {
		t.Errorf("sealing anew passes for a change: %+v", r)
	}
}

func TestResealGoesOnPastWhatDoesNotOpen(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", secretive(""))
	process(t, b.url, testkit.Ring(t, "later"), nil).change(t, "b", secretive(""))
	last := process(t, b.url, testkit.Ring(t, "last", "later"), nil)
	n, err := last.Reseal(t.Context())
	if n != 1 || !errors.Is(err, seal.ErrUnknownKey) || !strings.Contains(err.Error(), "thing:a") ||
		strings.Contains(err.Error(), "correct") {
		t.Errorf("%d, %v", n, err)
	}
}

func TestResealLosesNoChange(t *testing.T) {
	b := setup(t, nil)
	const things = 20
	for i := range things {
		b.change(t, fmt.Sprint("t", i), secretive("N"))
	}
	ring := testkit.Ring(t, "new", "secret")
	one, two := process(t, b.url, ring, nil), process(t, b.url, ring, nil)
	var wg sync.WaitGroup
	for _, p := range []bundle{one, two} {
		wg.Go(func() {
			if _, err := p.Reseal(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for i := range things {
			_, err := one.Change(t.Context(), fmt.Sprint("t", i), func(old *Record[thing]) (thing, error) {
				old.Value.Name = "edited"
				return old.Value, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if _, err := one.Reseal(t.Context()); err != nil {
		t.Error(err)
	}
	after := process(t, b.url, testkit.Ring(t, "new"), nil)
	for i := range things {
		if v := after.open(t, fmt.Sprint("t", i)).Value; v.Name != "edited" || v.Key.Pass != "correct horse" {
			t.Errorf("%d: %+v", i, v)
		}
	}
}

// FuzzSecretInURL: a password in a URL is read as it was written, and the rest of the URL stays.
func FuzzSecretInURL(f *testing.F) {
	for _, s := range []string{"http://u:p@h:1", "socks5://h", "https://u:%20%40:@[::1]:8443/",
		"http://u:******@h", "socks5://%41:b@h/a?b#c", "x", "//u:p@h"} {
		f.Add(s, "p:@/ ?")
	}
	f.Fuzz(func(t *testing.T, text, password string) {
		u, err := url.Parse(text)
		if err != nil || u.User == nil || u.Scheme == "" || u.Opaque != "" || password == "" {
			return
		}
		s := Secret{Value: &text, URL: true}
		s.Set(password)
		if got := s.Get(); got != password {
			t.Fatalf("%q in %q is %q", password, text, got)
		}
		after, err := url.Parse(text)
		if err != nil || after.Host != u.Host || after.User.Username() != u.User.Username() ||
			after.Path != u.Path || after.RawQuery != u.RawQuery {
			t.Fatalf("%v became %v: %v", u, text, err)
		}
	})
}
