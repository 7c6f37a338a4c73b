package suppression

import (
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
)

// TestEntriesOfAnEarlierVersionStopBothSpellings: they have the address with decomposed letters. They are
// found, listed and removed by either spelling, and so is an erasure.
func TestEntriesOfAnEarlierVersionStopBothSpellings(t *testing.T) {
	t.Parallel()
	ring, err := seal.New([]byte("the secret of this instance, which is long"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(testredis.New(t), Options{Ring: ring})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	const apart, composed = "zoe\u0308@a.example", "zo\u00eb@a.example"
	stopped := func(want bool) {
		t.Helper()
		found, err := s.Check(ctx, Question{Account: "shop", Addresses: []string{apart, composed,
			"ZOE\u0308@a.example"}})
		for n := range found {
			if err != nil || (found[n] != nil) != want {
				t.Errorf("%d: %+v, %v", n, found[n], err)
			}
		}
	}
	old := Entry{Address: apart, Account: "shop", Reason: Manual, Created: time.Unix(1, 0)}
	if _, err := s.add(ctx, []Entry{old}, time.Now()); err != nil {
		t.Fatal(err)
	}
	stopped(true)
	for _, address := range []string{apart, composed} {
		if found, err := s.Lookup(ctx, "", address); err != nil || len(found.Suppressions) != 1 {
			t.Errorf("%q: %+v, %v", address, found, err)
		}
		if page, err := s.List(ctx, Filter{Address: address}, "", 10); err != nil || len(page.Entries) != 1 {
			t.Errorf("%q is not listed: %+v, %v", address, page, err)
		}
	}
	if done, err := s.Remove(ctx, Entry{Address: composed, Account: "shop", Reason: Manual}); !done ||
		err != nil {
		t.Errorf("it can't be removed: %v, %v", done, err)
	}
	stopped(false)
	digest, err := s.Digest(ctx, apart)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eraseScript.RunReplicated(ctx, s.db, []string{erasedKey(digest), s.VersionKey()},
		eraseArgs{Field: erasedField(scopeOf("shop", ""), digest), Now: clock(time.Now())}); err != nil {
		t.Fatal(err)
	}
	stopped(true)
	if gone, err := s.Erased(ctx, "shop", apart, composed); err != nil || !gone[0] || !gone[1] {
		t.Errorf("erased: %v, %v", gone, err)
	}
	if done, err := s.Remove(ctx, Entry{Address: composed, Account: "shop"}); !done || err != nil {
		t.Errorf("the erasure can't be taken back: %v, %v", done, err)
	}
	stopped(false)
}
