package suppression_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

var lookScript = redisdb.NewScript[lookArgs, string]("look",
	"-- ARGV: each fields...\nreturn unstopped(1, fields, tonumber(each)) or ''", suppression.LookLua)

type lookArgs struct {
	Each   int
	Fields []string
}

// look asks as a script does. It answers the version where there is nothing, and nothing where there is.
func (b *bench) look(t testing.TB, q suppression.Question) string {
	t.Helper()
	l := b.Look(q)
	if l == nil {
		t.Fatalf("no script can ask about %v", q.Addresses)
	}
	version, err := lookScript.Run(t.Context(), b.db.Client(), l.Keys,
		lookArgs{Each: l.Each, Fields: l.Fields})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// TestVersionRisesWithEachEntry holds what a script remembers of its look to what was added since.
func TestVersionRisesWithEachEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	checkVersions(t, b)
}

func checkVersions(t *testing.T, b *bench) {
	t.Helper()
	ann := suppression.Question{Account: "shop", Addresses: []string{"ann@example.com"}}
	seen := map[string]bool{}
	fresh := func(after string) string {
		t.Helper()
		version := b.look(t, ann)
		if version == "" || seen[version] {
			t.Errorf("after %s the version is %q; there were %v", after, version, seen)
		}
		seen[version] = true
		if got, err := b.db.Client().Get(t.Context(), b.VersionKey()).Result(); err != nil || got != version {
			t.Errorf("after %s Redis has version %q, %v; want %q", after, got, err, version)
		}
		return version
	}
	first := fresh("nothing")
	if again := b.look(t, ann); again != first {
		t.Errorf("looked again, the version is %s, not %s", again, first)
	}
	ben := suppression.Entry{Address: "ben@example.com", Reason: "manual", Expires: start.Add(time.Minute)}
	b.add(t, 1, ben)
	fresh("an entry")
	b.add(t, 0, ben)
	fresh("the same entry")
	for n := range 3 { // within a millisecond or two
		if err := b.db.Client().Del(t.Context(), b.VersionKey()).Err(); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			b.add(t, 0, ben)
		}
		fresh("the version was lost")
	}
	b.Advance(time.Hour)
	b.add(t, 1, ben)
	last := fresh("an entry that had expired")
	if _, err := b.Remove(t.Context(), ben); err != nil {
		t.Fatal(err)
	}
	if version := b.look(t, ann); version != last {
		t.Errorf("what was removed raised the version from %s to %s", last, version)
	}
	b.add(t, 1, suppression.Entry{Address: "ann@example.com", Reason: "manual"})
	if version := b.look(t, ann); version != "" {
		t.Errorf("the look finds nothing, at version %s", version)
	}
}

// TestNoLookForMany bounds the keys of a script: ten addresses' keys, each in its own domain.
func TestNoLookForMany(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var q suppression.Question
	for i := range 10 {
		q.Addresses = append(q.Addresses, fmt.Sprintf("ann@x%d.test", i))
	}
	b.add(t, 1, suppression.Entry{Domain: "x8.test", Reason: "manual"})
	if l := b.Look(q); l == nil || len(l.Keys) != 21 || len(l.Fields) != 20 || l.Each != 1 ||
		b.look(t, q) != "" {
		t.Errorf("for ten: %+v", l)
	}
	q.Addresses = append(q.Addresses, "ann@x.test")
	if l := b.Look(q); l != nil {
		t.Errorf("for eleven: %+v", l)
	}
}

// TestNoLookOnACluster: a script has only one slot's keys there, so a version shows nothing either.
func TestNoLookOnACluster(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.Connect(t, redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL()}),
		suppression.Options{})
	b.add(t, 1, suppression.Entry{Address: "ann@example.com", Reason: "manual"})
	if l, key := b.Look(suppression.Question{Addresses: []string{"ann@example.com"}}),
		b.VersionKey(); l != nil || key != "" {
		t.Errorf("look %+v, version under %q", l, key)
	}
	if err := b.db.Client().Get(t.Context(), redisdb.Key(0, "suppression", "version")).Err(); !errors.Is(err,
		redis.Nil) {
		t.Errorf("there is a version: %v", err)
	}
}
