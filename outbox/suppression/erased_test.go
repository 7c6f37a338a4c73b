package suppression_test

import (
	"context"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func ring(t *testing.T, secrets ...string) *seal.Ring {
	t.Helper()
	var older [][]byte
	for _, s := range secrets[1:] {
		older = append(older, []byte(s))
	}
	r, err := seal.New([]byte(secrets[0]), older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const firstSecret, secondSecret = "the first secret of this instance", "the second secret of this instance"

// stored reports whether a text is in any key or value of Redis.
func stored(t *testing.T, db *redisdb.DB, text string) bool {
	t.Helper()
	found, c := false, db.Client()
	if err := db.Scan(t.Context(), "*", func(keys []string) error {
		for _, key := range keys {
			dump, err := c.Dump(t.Context(), key).Result()
			found = found || err == nil && strings.Contains(key+dump, text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func noTally(int) error { return nil }

func TestErasedPersonIsNotMailedAndNotNamed(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.New(t), suppression.Options{Ring: ring(t, firstSecret)})
	ctx := t.Context()
	const ann = "ann.quux@example.com"
	b.add(t, 4,
		suppression.Entry{Address: ann, Reason: suppression.HardBounce, Account: "a", Response: "550 " + ann},
		suppression.Entry{Address: ann, Reason: suppression.Unsubscribe, Account: "a", List: "news"},
		suppression.Entry{Address: ann, Reason: suppression.Manual, Account: "b"},
		suppression.Entry{Address: "bob@example.com", Reason: suppression.Manual, Account: "a"})
	for _, account := range []string{"a", "c"} {
		e := suppression.Entry{Address: ann, Account: account, MessageID: "m1"}
		if _, err := b.Soft(ctx, e, b.Now()); err != nil {
			t.Fatal(err)
		}
	}
	erase := func(account string, want int) {
		t.Helper()
		n := 0
		err := b.Erase(ctx, account, " Ann.QUUX@example.com",
			func(found int) error { n += found; return nil })
		if err != nil || n != want {
			t.Errorf("erase in %q: %d, %v; want %d", account, n, err, want)
		}
	}
	all := suppression.Question{Account: "a"}
	look := b.Look(all)
	if look == nil {
		t.Fatal("no look")
	}
	erase("a", 2)
	erase("a", 0)
	for account, want := range map[string]suppression.Reason{"a": suppression.Erased,
		"b": suppression.Manual, "c": ""} {
		if got := b.check(t, suppression.Question{Account: account}, "ANN.quux@example.com"); got != want {
			t.Errorf("account %s: %q, want %q", account, got, want)
		}
	}
	erase("", 1)
	if stored(t, b.db, "quux") {
		t.Error("Redis still has the address")
	}
	if got := b.check(t, suppression.Question{Account: "c"}, ann); got != suppression.Erased {
		t.Errorf("another account: %q", got)
	}
	b.add(t, 0, suppression.Entry{Address: ann, Reason: suppression.SpamReport, Account: "a"},
		suppression.Entry{Address: ann, Reason: suppression.Manual})
	if _, err := b.Soft(ctx, suppression.Entry{Address: ann, Account: "c", MessageID: "m2"},
		b.Now()); err != nil {
		t.Fatal(err)
	}
	if stored(t, b.db, "quux") {
		t.Error("a later report stored the address again")
	}
	if got := b.check(t, all, "bob@example.com"); got != suppression.Manual {
		t.Errorf("another person: %q", got)
	}
	found, err := b.Lookup(ctx, "a", ann)
	if err != nil || len(found.Suppressions) != 1 || found.Suppressions[0].Reason != "erased" ||
		found.Suppressions[0].Account != "a" {
		t.Errorf("looked up: %+v, %v", found, err)
	}
	for _, account := range []string{"", "a"} {
		gone, err := b.Delete(ctx, "", api.SuppressionRemoval{Account: account, Email: ann})
		if err != nil || !gone.Deleted {
			t.Errorf("taken back in %q: %+v, %v", account, gone, err)
		}
	}
	if got := b.check(t, all, ann); got != "" {
		t.Errorf("taken back: %q", got)
	}
	err = b.Erase(ctx, "a", "nobody", noTally)
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("no address: %v", err)
	}
}

// What begin.lua and accept.lua compare rises with an erasure, too.
func TestErasureRaisesTheVersion(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.New(t), suppression.Options{Ring: ring(t, firstSecret)})
	version := func() string {
		v, _ := b.db.Client().Get(t.Context(), b.VersionKey()).Result()
		return v
	}
	before := version()
	err := b.Erase(t.Context(), "", "ann@example.com", noTally)
	if err != nil {
		t.Fatal(err)
	}
	if version() == before {
		t.Error("the version is the same")
	}
}

// A process that looked before the first erasure of all notices it.
func TestFirstErasureIsNoticedByOthers(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	first := on(t, db, suppression.Options{Ring: ring(t, firstSecret)})
	other := on(t, db, suppression.Options{Ring: ring(t, firstSecret)})
	q := suppression.Question{Account: "a", Addresses: []string{"ann@example.com"}}
	if got := other.check(t, q, "ann@example.com"); got != "" || stored(t, db, "suppression:key") {
		t.Errorf("before: %q", got)
	}
	before := other.Look(q)
	if err := first.Erase(t.Context(), "",
		"ann@example.com", noTally); err != nil {
		t.Fatal(err)
	}
	found := 0 // as look.lua looks
	for i, key := range before.Keys[1:] {
		for _, value := range db.Client().HMGet(t.Context(), key,
			before.Fields[i*before.Each:(i+1)*before.Each]...).Val() {
			if value != nil {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("a look of before the erasure finds nothing")
	}
	if got := other.check(t, q, "ann@example.com"); got != suppression.Erased {
		t.Errorf("after: %q", got)
	}
	if after := other.Look(q); len(after.Keys) != 4 { // version, digest, address, domain
		t.Errorf("looks at %v", after.Keys)
	}
}

func TestErasedStayErasedUnderAnotherSecret(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	b := on(t, db, suppression.Options{Ring: ring(t, firstSecret)})
	err := b.Erase(t.Context(), "", "ann@example.com", noTally)
	if err != nil {
		t.Fatal(err)
	}
	both := on(t, db, suppression.Options{Ring: ring(t, secondSecret, firstSecret)})
	for _, want := range []int{1, 0} {
		if n, err := both.Reseal(t.Context()); n != want || err != nil {
			t.Errorf("resealed %d, %v; want %d", n, err, want)
		}
	}
	later := on(t, db, suppression.Options{Ring: ring(t, secondSecret)})
	if got := later.check(t, suppression.Question{Account: "a"}, "ann@example.com"); got != suppression.Erased {
		t.Errorf("under the next secret: %q", got)
	}
	lost := on(t, db, suppression.Options{Ring: ring(t, "a secret that was never here, at all")})
	_, err = lost.Check(context.WithoutCancel(t.Context()), suppression.Question{
		Addresses: []string{"x@example.com"}})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the secret: %v", err)
	}
}
