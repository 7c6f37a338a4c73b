package suppression_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestWhomAnEntryStops(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	plain, bulk := suppression.Question{}, suppression.Question{Bulk: true}
	for _, c := range []struct {
		name    string
		entry   suppression.Entry
		ask     suppression.Question
		address string
		stopped bool
	}{
		{"the address", suppression.Entry{Address: "ann@example.com", Reason: "manual"}, plain, "ann@example.com",
			true},
		{"another address", suppression.Entry{Address: "ann@example.com", Reason: "manual"}, plain,
			"ben@example.com", false},
		{"in other case", suppression.Entry{Address: "Ann@Example.COM", Reason: "manual"}, plain, "aNN@example.com",
			true},
		{"an international domain", suppression.Entry{Address: "ann@bücher.example", Reason: "manual"}, plain,
			"ann@xn--bcher-kva.example", true},
		{"an international local part", suppression.Entry{Address: "JÖRG@example.com", Reason: "manual"}, plain,
			"jörg@example.com", true},
		{"a tag is part of the address", suppression.Entry{Address: "ann+news@example.com", Reason: "manual"},
			plain, "ann@example.com", false},
		{"its domain", suppression.Entry{Domain: "Example.com", Reason: "manual"}, plain, "ann@example.com", true},
		{"its domain, written with @", suppression.Entry{Domain: "@example.com", Reason: "manual"}, plain,
			"ann@example.com", true},
		{"a subdomain", suppression.Entry{Domain: "example.com", Reason: "manual"}, plain, "ann@mail.example.com",
			false},
		{"a long address", suppression.Entry{Address: long + "@example.com", Reason: "manual"}, plain,
			long + "@example.com", true},
		{"another long address", suppression.Entry{Address: long + "@example.com", Reason: "manual"}, plain,
			long + "x@example.com", false},
		{"its account", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: "shop"},
			suppression.Question{Account: "shop"}, "ann@example.com", true},
		{"a long id of an account", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: long},
			suppression.Question{Account: long}, "ann@example.com", true},
		{"another account", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: "shop"},
			suppression.Question{Account: "blog"}, "ann@example.com", false},
		{"no account", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: "shop"}, plain,
			"ann@example.com", false},
		{"its list", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: "shop",
			List: "News"}, suppression.Question{Account: "shop", List: "news"}, "ann@example.com", true},
		{"a list of the name of an account", suppression.Entry{Address: "ann@example.com", Reason: "manual",
			Account: "blog", List: "shop"}, suppression.Question{Account: "shop"}, "ann@example.com", false},
		{"a list of this id of another account", suppression.Entry{Address: "ann@example.com", Reason: "manual",
			Account: "blog", List: "news"}, suppression.Question{Account: "shop", List: "news", Bulk: true},
			"ann@example.com", false},
		{"a list, for mail of no account", suppression.Entry{Address: "ann@example.com", Reason: "manual",
			Account: "blog", List: "news"}, suppression.Question{List: "news"}, "ann@example.com", false},
		{"another list", suppression.Entry{Address: "ann@example.com", Reason: "manual", Account: "shop",
			List: "news"}, suppression.Question{Account: "shop", List: "offers"}, "ann@example.com", false},

		{"unsubscribed, bulk", suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe"}, bulk,
			"ann@example.com", true},
		{"unsubscribed, transactional", suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe"}, plain,
			"ann@example.com", false},
		{"unsubscribed from the account, transactional", suppression.Entry{Address: "ann@example.com",
			Reason: "unsubscribe", Account: "shop"}, suppression.Question{Account: "shop"}, "ann@example.com", false},
		{"unsubscribed from the account, bulk", suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe",
			Account: "shop"}, suppression.Question{Account: "shop", Bulk: true}, "ann@example.com", true},
		{"unsubscribed from the list, transactional mail of it", suppression.Entry{Address: "ann@example.com",
			Reason: "unsubscribe", Account: "shop", List: "news"},
			suppression.Question{Account: "shop", List: "news"}, "ann@example.com", true},
		{"unsubscribed from the account, transactional mail of a list", suppression.Entry{
			Address: "ann@example.com", Reason: "unsubscribe", Account: "shop"},
			suppression.Question{Account: "shop", List: "news"}, "ann@example.com", true},
		{"unsubscribed, transactional mail of a list", suppression.Entry{Address: "ann@example.com",
			Reason: "unsubscribe"}, suppression.Question{Account: "shop", List: "news"}, "ann@example.com", true},
		{"unsubscribed from another account, mail of a list", suppression.Entry{Address: "ann@example.com",
			Reason: "unsubscribe", Account: "blog"}, suppression.Question{Account: "shop", List: "news", Bulk: true},
			"ann@example.com", false},
		{"unsubscribed from the list, transactional", suppression.Entry{Address: "ann@example.com",
			Reason: "unsubscribe", Account: "shop", List: "news"},
			suppression.Question{Account: "shop"}, "ann@example.com", false},
		{"bounced, transactional", suppression.Entry{Address: "ann@example.com", Reason: "hard_bounce"}, plain,
			"ann@example.com", true},
		{"complained, transactional", suppression.Entry{Address: "ann@example.com", Reason: "spam_report"}, plain,
			"ann@example.com", true},

		{"expired", suppression.Entry{Address: "ann@example.com", Reason: "manual", Expires: start}, plain,
			"ann@example.com", false},
		{"not expired yet", suppression.Entry{Address: "ann@example.com", Reason: "manual",
			Expires: start.Add(time.Second)}, plain, "ann@example.com", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.add(t, 1, c.entry)
			if got := b.check(t, c.ask, c.address); (got != "") != c.stopped {
				t.Errorf("stopped by %q, want stopped %v", got, c.stopped)
			}
			c.ask.Addresses = []string{"bob@example.org", c.address}
			if version := b.look(t, c.ask); version != "" && c.stopped {
				t.Error("a script that looks itself finds nothing")
			}
		})
	}
}

func TestStrongestReasonIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	who := func(r suppression.Reason) suppression.Entry {
		return suppression.Entry{Address: "ann@example.com", Reason: r}
	}
	ask := suppression.Question{Bulk: true, Account: "shop", List: "news"}
	b.add(t, 1, who("unsubscribe"))
	bounced := who("hard_bounce")
	bounced.Expires = start.Add(time.Hour)
	b.add(t, 1, bounced)
	if got := b.check(t, ask, "ann@example.com"); got != suppression.HardBounce {
		t.Errorf("%q, want the bounce", got)
	}
	domain := suppression.Entry{Domain: "example.com", Reason: "manual", Account: "shop",
		Expires: start.Add(30 * time.Minute)}
	b.add(t, 1, domain)
	if got := b.check(t, ask, "ann@example.com"); got != suppression.Manual {
		t.Errorf("%q, want what was said of the domain", got)
	}
	b.Advance(30 * time.Minute)
	if got := b.check(t, ask, "ann@example.com"); got != suppression.HardBounce {
		t.Errorf("%q, want the bounce again", got)
	}
	b.Advance(30 * time.Minute)
	if got := b.check(t, ask, "ann@example.com"); got != suppression.Unsubscribe {
		t.Errorf("%q, want what is left when the bounce has expired", got)
	}
}

func TestManyAddressesAreCheckedInOneRoundTrip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 2, suppression.Entry{Address: "a3@example.com", Reason: "manual"}, suppression.Entry{
		Domain: "d7.example", Reason: "spam_report"})
	q := suppression.Question{Account: "shop", List: "news"}
	want := make([]suppression.Reason, 0, 200)
	for i := range 100 {
		q.Addresses = append(q.Addresses, fmt.Sprintf("a%d@example.com", i), fmt.Sprintf("b@d%d.example", i))
		want = append(want, map[bool]suppression.Reason{true: "manual"}[i == 3], map[bool]suppression.Reason{
			true: "spam_report"}[i == 7])
	}
	commands := testredis.CountCommands(b.db)
	found, err := b.Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if n := commands.Sent(); n != 1 {
		t.Errorf("%d round trips", n)
	}
	got := make([]suppression.Reason, len(found))
	for i, e := range found {
		if e != nil {
			got[i] = e.Reason
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNobodyIsMailedOnTheWordOfARedisThatIsAway(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t)
	b := on(t, testredis.Connect(t, redisdb.Options{URL: p.URL()}), suppression.Options{})
	p.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := b.Check(ctx, suppression.Question{Addresses: []string{"ann@example.com"}}); !fault.Is(err,
		fault.Unavailable) {
		t.Errorf("check: %v", err)
	}
	if _, err := b.Add(ctx, suppression.Entry{Address: "ann@example.com", Reason: "manual"}); !fault.Is(err,
		fault.Unavailable) {
		t.Errorf("add: %v", err)
	}
}
