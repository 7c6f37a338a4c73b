package records

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// thing is what the records of these tests are of.
type thing struct {
	Name  string `json:"name"`
	Host  string `json:"host"` // learns Key.Pass
	Key   *key   `json:"key"`
	Proxy string `json:"proxy"`
}

type key struct {
	Pass  string `json:"pass"`
	Token string `json:"token"`
}

func secretsOf(v *thing) []Secret {
	all := []Secret{{Field: "proxy", Value: &v.Proxy, URL: true}}
	if v.Key != nil {
		v.Key = new(*v.Key)
		all = append(all, Secret{Field: "pass", Value: &v.Key.Pass, Goes: []Place{{"host", v.Host}}},
			Secret{Field: "token", Value: &v.Key.Token})
	}
	return all
}

// kind describes things.
func kind() Kind[thing] {
	return Kind[thing]{
		Key: "thing", Index: "things", Name: "thing", Code: "ThingChanged", Changed: "redis.call('DEL', KEYS[4])",
		Missing: func(id string) error { return fault.New(fault.NotFound, "", "no thing %q", id) },
		Secrets: secretsOf,
	}
}

// bundle is a store on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Store[thing]
	db    *redisdb.DB
	clock *testkit.Clock
	url   string
}

func setup(t *testing.T, standIn *Record[thing]) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), testkit.Ring(t, "secret"), standIn)
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, ring *seal.Ring, standIn *Record[thing]) bundle {
	t.Helper()
	db, clock := testredis.Connect(t, redisdb.Options{URL: url}), testkit.NewClock()
	return bundle{New(db, ring, kind(), Options[thing]{StandIn: standIn, Now: clock.Now}), db, clock, url}
}

func secretive(name string) thing {
	return thing{Name: name, Host: "h", Key: &key{"correct horse", "battery"},
		Proxy: "socks5://u:stap%3Ale@p:1080"}
}

// change makes a record of whatever there was.
func (b bundle) change(t *testing.T, id string, v thing) bool {
	t.Helper()
	existed, err := b.Change(t.Context(), id, func(*Record[thing]) (thing, error) { return v, nil })
	if err != nil {
		t.Fatal(err)
	}
	return existed
}

// get reads a record as it is shown; open as it is used.
func (b bundle) get(t *testing.T, id string) *Record[thing] {
	t.Helper()
	r, err := b.Get(t.Context(), id)
	if err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return r
}

func (b bundle) open(t *testing.T, ids ...string) *Record[thing] {
	t.Helper()
	r, err := b.Open(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Delete reports whether there was a record.
func (b bundle) Delete(ctx context.Context, id string) (bool, error) {
	err := b.Store.Delete(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// note gives a record a state.
func (b bundle) note(t *testing.T, id string) {
	t.Helper()
	if err := b.db.Client().HSet(t.Context(), b.StateKey(id), "state", "seen").Err(); err != nil {
		t.Fatal(err)
	}
}

func TestARecordIsKeptShownUsedAndDeleted(t *testing.T) {
	b := setup(t, nil)
	v := secretive("N")
	if b.change(t, "a", v) {
		t.Error("a new record existed")
	}
	b.note(t, "a")
	shown := thing{Name: "N", Host: "h", Key: &key{Mask, Mask}, Proxy: "socks5://u:******@p:1080"}
	for name, got := range map[string]*Record[thing]{"get": b.get(t, "a"), "open": b.open(t, "none", "a", "b")} {
		want := shown
		if name == "open" {
			want = v
		}
		if diff := cmp.Diff(want, got.Value); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if !got.Stored() || got.ID != "a" || got.State["state"] != "seen" || got.Broken != nil ||
			!got.Created.Equal(testkit.ClockStart) || !got.Updated.Equal(testkit.ClockStart) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, secret := range []string{"correct horse", "battery", "stap"} {
		if testredis.Holds(t, b.db, secret) {
			t.Errorf("%q is in Redis", secret)
		}
	}
	b.clock.Advance(time.Hour)
	v.Name = "Other"
	if !b.change(t, "a", v) {
		t.Error("it did not exist")
	}
	if r := b.get(t, "a"); r.Value.Name != "Other" || !r.Created.Equal(testkit.ClockStart) ||
		!r.Updated.Equal(testkit.ClockStart.Add(time.Hour)) || len(r.State) != 0 {
		t.Errorf("changed: %+v", r)
	}
	b.note(t, "a")
	for i, want := range []bool{true, false} {
		if existed, err := b.Delete(t.Context(), "a"); existed != want || err != nil {
			t.Errorf("delete %d: %t, %v", i, existed, err)
		}
	}
	if got := b.get(t, "a"); got != nil {
		t.Errorf("deleted: %+v", got)
	}
	if keys := b.db.Client().Keys(t.Context(), "*").Val(); !cmp.Equal(keys, []string{b.VersionKey()}) {
		t.Errorf("left behind: %q", keys)
	}
}

// TestEachWriteIsSeenOnce walks one record through all that can happen to it on the way to Redis, and looks
// at its name, its state and the version after each step.
func TestEachWriteIsSeenOnce(t *testing.T) {
	b := setup(t, nil)
	write := func(name, revision, read string, keepState bool) func() (bool, error) {
		return func() (bool, error) {
			next, old := &Record[thing]{ID: "a", Value: thing{Name: name}, revision: revision}, &Record[thing]{
				ID: "a", revision: read}
			if read == "" {
				old = nil
			}
			return b.write(t.Context(), next, old, keepState)
		}
	}
	remove := func() (bool, error) { return b.Delete(t.Context(), "a") }
	steps := []struct {
		name    string
		do      func() (bool, error)
		done    bool
		text    string
		stateOf int64 // 1: a state that was there before the step is still there
		version string
	}{
		{"new", write("one", "r1", "", false), true, "one", 0, "1"},
		{"the same once more, as its answer was lost", write("one", "r1", "", false), true, "one", 1, "1"},
		{"as if it were new", write("two", "r2", "", false), false, "one", 1, "1"},
		{"changed", write("two", "r2", "r1", false), true, "two", 0, "2"},
		{"read too long ago", write("three", "r3", "r1", false), false, "two", 1, "2"},
		{"sealed anew", write("two again", "r3", "r2", true), true, "two again", 1, "3"},
		{"removed", remove, true, "", 0, "4"},
		{"removed twice", remove, false, "", 1, "4"},
		{"changed after it was removed", write("four", "r4", "r3", false), false, "", 1, "4"},
	}
	for _, step := range steps {
		b.note(t, "a")
		done, err := step.do()
		if err != nil || done != step.done {
			t.Errorf("%s: %t, %v", step.name, done, err)
		}
		name := ""
		if r := b.get(t, "a"); r != nil {
			name = r.Value.Name
		}
		if name != step.text {
			t.Errorf("%s: %q, want %q", step.name, name, step.text)
		}
		if n := b.db.Client().Exists(t.Context(), b.StateKey("a")).Val(); n != step.stateOf {
			t.Errorf("%s: %d states, want %d", step.name, n, step.stateOf)
		}
		if v := b.db.Client().Get(t.Context(), b.VersionKey()).Val(); v != step.version {
			t.Errorf("%s: version %s, want %s", step.name, v, step.version)
		}
	}
}

func TestChangesAtTheSameTimeDoNotMix(t *testing.T) {
	b := setup(t, nil)
	other := process(t, b.url, testkit.Ring(t, "secret"), nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				_, err := []bundle{b, other}[i%2].Change(t.Context(), "a", func(old *Record[thing]) (thing, error) {
					if old == nil {
						old = &Record[thing]{}
					}
					old.Value.Name += fmt.Sprint(i)
					return old.Value, nil
				})
				if err == nil {
					return
				}
				if !fault.Is(err, fault.Conflict) || fault.CodeOf(err) != "ThingChanged" {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	all := strings.Split(b.get(t, "a").Value.Name, "")
	if slices.Sort(all); strings.Join(all, "") != "01234567" {
		t.Errorf("%q", all)
	}
}

func TestAChangeThatIsRefusedChangesNothing(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", secretive("N"))
	refused := errors.New("refused")
	if _, err := b.Change(t.Context(), "a", func(old *Record[thing]) (thing, error) {
		old.Value.Key.Pass = "another"
		return old.Value, refused
	}); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	busy := 0
	if _, err := b.Change(t.Context(), "a", func(old *Record[thing]) (thing, error) {
		busy++
		b.change(t, "a", secretive(fmt.Sprint("others ", busy)))
		return thing{Name: "mine"}, nil
	}); fault.CodeOf(err) != "ThingChanged" || busy != tries {
		t.Errorf("after %d tries: %v", busy, err)
	}
	if got := b.open(t, "a").Value; got.Name != "others 5" || got.Key.Pass != "correct horse" {
		t.Errorf("%+v", got)
	}
}

func TestIDsThatAreKeysOfSomethingElse(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", thing{})
	b.note(t, "a")
	for _, id := range []string{"a:state", ""} {
		if b.get(t, id) != nil || b.open(t, id) != nil {
			t.Errorf("%q is a record", id)
		}
		if existed, err := b.Delete(t.Context(), id); existed || err != nil {
			t.Errorf("delete %q: %t, %v", id, existed, err)
		}
		if _, err := b.Change(t.Context(), id, func(*Record[thing]) (thing, error) {
			return thing{},
				nil
		}); err == nil {
			t.Errorf("%q was stored", id)
		}
	}
	if r := b.get(t, "a"); r == nil || r.State["state"] != "seen" {
		t.Errorf("%+v", r)
	}
}

func TestPages(t *testing.T) {
	for _, standIn := range []*Record[thing]{nil, {ID: "d", Value: secretive("stand-in")}} {
		t.Run(fmt.Sprint("stand-in ", standIn != nil), func(t *testing.T) {
			b := setup(t, standIn)
			var want []string
			if standIn != nil {
				want = append(want, "d")
			}
			for _, id := range []string{"f", "b", "e", "a", "c"} {
				b.change(t, id, secretive(id))
			}
			want = append(want, "a", "b", "c", "e", "f")
			check := func() {
				t.Helper()
				for _, size := range []int{1, 2, 3, 0, 5000} {
					var got []string
					for number, pages := 0, 1; number < pages; number++ {
						p, err := b.Page(t.Context(), number, size)
						if err != nil || p.Total != len(want) || p.Number != number {
							t.Fatalf("%+v, %v", p, err)
						}
						for _, r := range p.Records {
							if got = append(got, r.ID); r.Value.Key.Pass != Mask {
								t.Errorf("%s shows %q", r.ID, r.Value.Key.Pass)
							}
						}
						pages = p.Pages
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("pages of %d: %s", size, diff)
					}
				}
				if n, err := b.Count(t.Context()); n != len(want) || err != nil {
					t.Errorf("count %d, %v", n, err)
				}
				var each []string
				if err := b.Each(t.Context(), func(r *Record[thing]) error {
					each = append(each, r.ID+" "+r.Value.Key.Token)
					return nil
				}); err != nil {
					t.Error(err)
				}
				if slices.Sort(each); len(each) != len(want) || each[0] != "a "+Mask {
					t.Errorf("each: %q", each)
				}
			}
			check()
			b.change(t, "d", secretive("stored"))
			want = []string{"a", "b", "c", "d", "e", "f"}
			check()
			if p, err := b.Page(t.Context(), 7, 3); err != nil || len(p.Records) != 0 || p.Records == nil {
				t.Errorf("beyond the end: %+v, %v", p, err)
			}
		})
	}
}

func TestEachEndsWithTheFirstError(t *testing.T) {
	b := setup(t, nil)
	b.change(t, "a", thing{})
	b.change(t, "b", thing{})
	enough, n := errors.New("enough"), 0
	if err := b.Each(t.Context(), func(*Record[thing]) error { n++; return enough }); !errors.Is(err, enough) ||
		n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestAStandInExistsUntilSomethingIsStored(t *testing.T) {
	b := setup(t, &Record[thing]{ID: "d", Value: secretive("stand-in")})
	b.note(t, "d")
	if r := b.get(t, "d"); r.Stored() || r.Value.Key.Pass != Mask || !r.Created.Equal(testkit.ClockStart) ||
		r.State["state"] != "seen" {
		t.Errorf("%+v", r)
	}
	if r := b.open(t, "d"); r.Value.Key.Pass != "correct horse" || r.Value.Proxy != secretive("").Proxy {
		t.Errorf("%+v", r.Value)
	}
	if existed, err := b.Delete(t.Context(), "d"); existed || err != nil {
		t.Errorf("%t, %v", existed, err)
	}
	b.clock.Advance(time.Hour)
	existed, err := b.Change(t.Context(), "d", func(old *Record[thing]) (thing, error) {
		old.Value.Name = "edited"
		return old.Value, nil
	})
	if !existed || err != nil {
		t.Errorf("%t, %v", existed, err)
	}
	if r := b.open(t, "d"); !r.Stored() || r.Value.Name != "edited" || r.Value.Key.Pass != "correct horse" ||
		!r.Created.Equal(testkit.ClockStart) {
		t.Errorf("%+v", r)
	}
	if existed, err := b.Delete(t.Context(), "d"); !existed || err != nil {
		t.Errorf("%t, %v", existed, err)
	}
	if r := b.open(t, "d"); r.Value.Name != "stand-in" || r.Value.Key.Pass != "correct horse" {
		t.Errorf("%+v", r)
	}
}

func TestWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL(), testkit.Ring(t, "secret"), nil)
	b.change(t, "a", thing{})
	server.Kill()
	_, get := b.Get(t.Context(), "a")
	_, open := b.Open(t.Context(), "a")
	_, page := b.Page(t.Context(), 0, 0)
	_, change := b.Change(t.Context(), "a", func(*Record[thing]) (thing, error) { return thing{}, nil })
	_, remove := b.Delete(t.Context(), "a")
	_, reseal := b.Reseal(t.Context())
	for name, err := range map[string]error{"get": get, "open": open, "page": page, "change": change,
		"delete": remove, "reseal": reseal} {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
