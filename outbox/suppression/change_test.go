package suppression_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestAddingAgainProlongs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := suppression.Entry{Address: "ann@example.com", Reason: "hard_bounce", Expires: start.Add(time.Hour),
		Source: "smtp", MessageID: "m1", Response: "550 no such user"}
	b.add(t, 1, e)
	b.Advance(time.Minute)
	shorter := e
	shorter.Expires, shorter.Source, shorter.MessageID, shorter.Response = start.Add(
		30*time.Minute), "ses", "m2", ""
	b.add(t, 0, shorter)
	want := []suppression.Entry{e}
	want[0].Created = start
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("after a shorter one (-want +got)\n%s", diff)
	}
	longer := shorter
	longer.Expires = time.Time{}
	b.add(t, 0, longer)
	want[0] = longer
	want[0].Created = start
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("after one for ever (-want +got)\n%s", diff)
	}
	b.add(t, 0, e)
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("one that ends does not shorten it (-want +got)\n%s", diff)
	}
}

func TestAnExpiredEntryIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 1, suppression.Entry{Address: "ann@example.com", Reason: "manual", Expires: start.Add(time.Hour),
		Response: "old words"})
	b.Advance(2 * time.Hour)
	b.add(t, 1, suppression.Entry{Address: "ann@example.com", Reason: "manual",
		Expires: start.Add(3 * time.Hour), Source: "api"})
	want := []suppression.Entry{{
		Address: "ann@example.com", Reason: "manual", Created: start.Add(2 * time.Hour),
		Expires: start.Add(3 * time.Hour), Source: "api",
	}}
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n, err := b.CountOf(t.Context(), suppression.Filter{}); err != nil || n != 1 {
		t.Errorf("%d are counted, %v", n, err)
	}
}

func TestWrongEntriesAddNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Add(t.Context(),
		suppression.Entry{Address: "ann@example.com", Reason: "manual"},
		suppression.Entry{Address: "ann", Reason: "manual"},
		suppression.Entry{Reason: "manual"},
		suppression.Entry{Address: "ann@example.com", Domain: "example.com", Reason: "manual"},
		suppression.Entry{Address: "ann@example.com", Reason: "dislike"},
		suppression.Entry{Address: "ann@example.com", Reason: "manual", List: "b"},
		suppression.Entry{Domain: "exa mple.com", Reason: "manual"},
		suppression.Entry{Domain: "example.com", Reason: "manual", Account: "shop", List: "the news"},
		suppression.Entry{Domain: "example.com", Reason: "manual", Account: "the shop"},
	)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid {
		t.Fatal(err)
	}
	var keys []string
	for _, field := range f.Fields {
		keys = append(keys, field.Key)
	}
	want := []string{
		"suppressions[1].address", "suppressions[2].address", "suppressions[3].domain", "suppressions[4].reason",
		"suppressions[5].account",
		"suppressions[6].domain", "suppressions[7].list", "suppressions[8].account",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if left := b.all(t, suppression.Filter{}, 10); len(left) > 0 {
		t.Errorf("added all the same: %v", left)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ann := func(account, list string, r suppression.Reason) suppression.Entry {
		return suppression.Entry{Address: "ann@example.com", Account: account, List: list, Reason: r,
			Response: "because"}
	}
	b.add(t, 4, ann("", "", "manual"), ann("shop", "", "manual"), ann("shop", "", "unsubscribe"),
		ann("shop", "news", "unsubscribe"))
	remove := func(want bool, e suppression.Entry) {
		t.Helper()
		e.Address = "ANN@example.com"
		if got, err := b.Remove(t.Context(), e); err != nil || got != want {
			t.Errorf("removed %v, %v; want %v", got, err, want)
		}
	}
	remove(false, suppression.Entry{Account: "blog"})
	remove(false, suppression.Entry{Account: "shop", Reason: "spam_report"})
	remove(true, suppression.Entry{Account: "shop", Reason: "manual"})
	remove(false, suppression.Entry{Account: "blog", List: "news"})
	remove(true, suppression.Entry{Account: "shop", List: "NEWS"})
	remove(true, suppression.Entry{})
	remove(false, suppression.Entry{})
	want := []suppression.Entry{{Address: "ann@example.com", Account: "shop", Reason: "unsubscribe",
		Created: start, Response: "because"}}
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	remove(true, suppression.Entry{Account: "shop"})
	b.onlyKeys(t)
}

// onlyKeys wants nothing left in Redis but bitmaps of expiry and the version.
func (b *bench) onlyKeys(t testing.TB) {
	t.Helper()
	for _, key := range b.keys(t) {
		if !strings.HasSuffix(key, ":expiring") && !strings.HasSuffix(key, ":version") {
			t.Errorf("%s is left", key)
		}
	}
}

func (b *bench) keys(t testing.TB) []string {
	t.Helper()
	keys, err := b.db.Client().Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestSweep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var entries, stay []suppression.Entry
	for i := range 300 {
		e := suppression.Entry{Address: fmt.Sprintf("a%d@example.com", i), Reason: "manual", Created: start,
			Expires: start.Add(time.Duration(i%3) * time.Hour), Response: "words"}
		if i%3 == 0 {
			e.Expires = time.Time{}
			stay = append(stay, e)
		}
		if i%10 == 1 {
			e.Address = strings.Repeat("y", 60) + e.Address[1:]
		}
		entries = append(entries, e)
	}
	for i, e := range entries {
		if i%3 == 0 {
			stay[i/3] = e
		}
	}
	b.add(t, 300, entries...)
	b.Advance(time.Hour)
	if n, err := b.Sweep(t.Context()); err != nil || n != 100 {
		t.Errorf("%d swept away, %v; want 100", n, err)
	}
	b.Advance(time.Hour)
	if n, err := b.Sweep(t.Context()); err != nil || n != 100 {
		t.Errorf("%d swept away, %v; want 100", n, err)
	}
	if n, err := b.Sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("%d swept away, %v; want none", n, err)
	}
	byAddress := func(a, b suppression.Entry) int { return strings.Compare(a.Address, b.Address) }
	got := b.all(t, suppression.Filter{}, 7)
	slices.SortFunc(got, byAddress)
	slices.SortFunc(stay, byAddress)
	if diff := cmp.Diff(stay, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n, err := b.CountOf(t.Context(), suppression.Filter{}); err != nil || n != 100 {
		t.Errorf("%d are counted, %v", n, err)
	}
	for _, e := range stay {
		if ok, err := b.Remove(t.Context(), e); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	b.onlyKeys(t)
}

func TestSoftBouncesAddUp(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.New(t), suppression.Options{SoftBounces: 3, SoftWindow: 24 * time.Hour,
		SoftExpiry: 48 * time.Hour})
	soft := func(id string, want bool) {
		t.Helper()
		e := suppression.Entry{Address: "Ann@example.com", Account: "shop", Source: "smtp", MessageID: id,
			Response: "452 mailbox full"}
		if got, err := b.Soft(t.Context(), e, b.Now()); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", id, got, err, want)
		}
	}
	soft("m1", false)
	soft("m1", false)
	soft("m1", false)
	b.Advance(20 * time.Hour)
	soft("m2", false)
	b.Advance(5 * time.Hour)
	soft("m3", false) // m1 is too long ago
	if got := b.check(t, suppression.Question{Account: "shop"}, "ann@example.com"); got != "" {
		t.Errorf("stopped by %s", got)
	}
	soft("m4", true)
	soft("m4", true)
	if got := b.check(t, suppression.Question{}, "ann@example.com"); got != "" {
		t.Errorf("the instance is stopped by %s", got)
	}
	got := b.check(t, suppression.Question{Account: "shop"}, "ann@example.com")
	if got != suppression.HardBounce {
		t.Errorf("stopped by %q", got)
	}
	want := []suppression.Entry{{
		Address: "ann@example.com", Reason: "hard_bounce", Account: "shop", Source: "smtp", MessageID: "m4",
		Response: "452 mailbox full",
		Created:  b.Now(), Expires: b.Now().Add(48 * time.Hour),
	}}
	if diff := cmp.Diff(want, b.all(t, suppression.Filter{}, 10)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, key := range b.keys(t) {
		ttl, err := b.db.Client().TTL(t.Context(), key).Result()
		if err != nil || strings.Contains(key, ":soft:") && (ttl <= 0 || ttl > 24*time.Hour) {
			t.Errorf("%s lives %v, %v", key, ttl, err)
		}
	}
}

// One email alone confirms nothing, however often it comes; emails about two messages of an account do.
func TestMailsConfirmEachOther(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.New(t), suppression.Options{})
	said := func(reason suppression.Reason, account, id string, want bool) {
		t.Helper()
		got, err := b.Confirmed(t.Context(), suppression.Entry{Address: "Ann@example.com", Reason: reason,
			Account: account, List: "news", MessageID: id}, b.Now())
		if err != nil || got != want {
			t.Errorf("%s of %s by %s: %v, %v; want %v", reason, account, id, got, err, want)
		}
	}
	said(suppression.HardBounce, "shop", "m1", false)
	said(suppression.HardBounce, "shop", "m1", false)
	said(suppression.HardBounce, "other", "m2", false)
	said(suppression.SpamReport, "shop", "m2", false)
	b.Advance(91 * 24 * time.Hour)
	said(suppression.HardBounce, "shop", "m3", false) // m1 is too long ago
	b.Advance(30 * 24 * time.Hour)
	said(suppression.HardBounce, "shop", "m4", true)
	said(suppression.HardBounce, "shop", "m3", true)
	if got := b.check(t, suppression.Question{Account: "shop"}, "ann@example.com"); got != "" {
		t.Errorf("stopped by %s", got)
	}
	for _, key := range b.keys(t) {
		if ttl, err := b.db.Client().TTL(t.Context(), key).Result(); err != nil || ttl <= 0 {
			t.Errorf("%s lives %v, %v", key, ttl, err)
		}
	}
}

func TestLearnt(t *testing.T) {
	t.Parallel()
	bounce := suppression.Entry{Address: "a@example.com", Reason: "hard_bounce", Account: "shop"}
	complaint := suppression.Entry{Address: "a@example.com", Reason: "spam_report", Account: "shop",
		Expires: start.Add(time.Hour)}
	wish := suppression.Entry{Address: "a@example.com", Reason: "unsubscribe", Account: "shop"}
	for _, c := range []struct {
		name     string
		o        suppression.Options
		in, want suppression.Entry
	}{
		{"bounces hold for their account", suppression.Options{}, bounce, bounce},
		{"bounces hold for the instance", suppression.Options{Instance: true}, bounce, suppression.Entry{
			Address: "a@example.com", Reason: "hard_bounce"}},
		{"bounces end", suppression.Options{HardExpiry: time.Minute}, bounce, suppression.Entry{
			Address: "a@example.com", Reason: "hard_bounce", Account: "shop", Expires: start.Add(time.Minute)}},
		{"a complaint with an expiry", suppression.Options{ComplaintExpiry: time.Minute}, complaint, complaint},
		{"a wish", suppression.Options{HardExpiry: time.Minute, ComplaintExpiry: time.Minute}, wish, wish},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, on(t, testredis.New(t), c.o).WithDefaults(c.in)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestBucketsStayCompact holds the layout to what Redis keeps as listpacks.
func TestBucketsStayCompact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("x", 60) + "@example.com"
	b.add(t, 3,
		suppression.Entry{Address: long, Reason: "manual", Source: "a-source-of-some-length",
			Response: strings.Repeat("words ", 100), Expires: start.Add(time.Hour)},
		suppression.Entry{Address: long, Reason: "unsubscribe", Source: "a-source-of-some-length",
			Account: strings.Repeat("a", 250)},
		suppression.Entry{Domain: "example.com", Reason: "spam_report"},
	)
	for _, key := range b.keys(t) {
		if !strings.Contains(key, ":bucket:") {
			continue
		}
		if encoding, err := b.db.Client().ObjectEncoding(t.Context(), key).Result(); err != nil ||
			encoding != "listpack" {
			t.Errorf("%s is a %s, %v", key, encoding, err)
		}
	}
}

// story goes through everything once, on whatever Redis it is given.
func story(t *testing.T, db *redisdb.DB) {
	b := on(t, db, suppression.Options{SoftBounces: 1})
	long := strings.Repeat("x", 60) + "@example.com"
	b.add(t, 3,
		suppression.Entry{Address: long, Reason: "manual", Response: "words", Expires: start.Add(time.Hour)},
		suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe", Account: "shop", List: "news"},
		suppression.Entry{Domain: "example.net", Reason: "spam_report", Account: "shop", MessageID: "m1"},
	)
	if ok, err := b.Soft(t.Context(), suppression.Entry{Address: "ben@example.com", MessageID: "m2"},
		start); err != nil || !ok {
		t.Errorf("soft: %v, %v", ok, err)
	}
	q := suppression.Question{Account: "shop", List: "news", Addresses: []string{long, "ann@example.com",
		"x@example.net", "ben@example.com", "cat@example.com"}}
	found, err := b.Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range found {
		if e == nil {
			got = append(got, "")
			continue
		}
		got = append(got, string(e.Reason))
	}
	if diff := cmp.Diff([]string{"manual", "unsubscribe", "spam_report", "hard_bounce", ""}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if all := b.all(t, suppression.Filter{}, 1); len(all) != 4 {
		t.Errorf("the list has %v", all)
	}
	if all := b.all(t, suppression.Filter{List: "News"}, 10); len(all) != 1 ||
		all[0].Address != "ann@example.com" {
		t.Errorf("the list has %v", all)
	}
	b.Advance(time.Hour)
	if n, err := b.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("%d swept away, %v", n, err)
	}
	if ok, err := b.Remove(t.Context(), suppression.Entry{Address: "ann@example.com", Account: "shop",
		List: "news"}); err != nil || !ok {
		t.Errorf("remove: %v, %v", ok, err)
	}
	counts, err := b.Counts(t.Context())
	want := []suppression.Count{{Reason: "hard_bounce", Entries: 1}, {Account: "shop", Reason: "spam_report",
		Entries: 1}}
	if diff := cmp.Diff(want, counts); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestStoryOnACluster(t *testing.T) {
	t.Parallel()
	story(t, testredis.Connect(t, redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL(),
		Partitions: 2}))
}
