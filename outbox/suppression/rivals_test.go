package suppression_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
)

// TestTwoAccountsHaveListsOfOneName: neither sees, adds to, or releases from the list of the other.
func TestTwoAccountsHaveListsOfOneName(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t), t.Context()
	of := func(account string) api.SuppressionScope {
		return api.SuppressionScope{Account: account, List: "news"}
	}
	b.add(t, 2,
		suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe", Account: "shop", List: "news"},
		suppression.Entry{Address: "ben@example.com", Reason: "unsubscribe", Account: "rival", List: "News"})
	for _, c := range []struct {
		account, address string
		want             suppression.Reason
	}{{"shop", "ann@example.com", "unsubscribe"}, {"shop", "ben@example.com", ""},
		{"rival", "ann@example.com", ""}, {"rival", "ben@example.com", "unsubscribe"}} {
		q := suppression.Question{Account: c.account, List: "news", Bulk: true}
		if got := b.check(t, q, c.address); got != c.want {
			t.Errorf("%s to %s is stopped by %q, want %q", c.account, c.address, got, c.want)
		}
		q.Addresses = []string{c.address}
		if nothing := b.look(t, q) != ""; nothing != (c.want == "") {
			t.Errorf("%s to %s: a script finds nothing: %v", c.account, c.address, nothing)
		}
	}
	lists, err := b.Lists(ctx, "rival", 0, 0)
	if err != nil || len(lists.Blocklists) != 1 || lists.Blocklists[0].Account != "rival" {
		t.Errorf("%+v, %v", lists, err)
	}
	for _, ask := range []struct{ bound, account string }{{"rival", ""}, {"rival", "rival"}, {"", "rival"}} {
		list, err := b.Blocklist(ctx, ask.bound, ask.account, "news", 0, 0)
		if err != nil || list.Total != 1 || len(list.Addresses) != 1 ||
			list.Addresses[0].Recipient != "ben@example.com" || list.Addresses[0].Account != "rival" {
			t.Errorf("%+v: %+v, %v", ask, list, err)
		}
	}
	page, err := b.Query(ctx, "rival", api.SuppressionQuery{})
	if err != nil || page.Total != 1 || len(page.Suppressions) != 1 ||
		page.Suppressions[0].SuppressionScope != of("rival") {
		t.Errorf("%+v, %v", page, err)
	}
	if found, err := b.Lookup(ctx, "rival", "ann@example.com"); err != nil || len(found.Suppressions) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	for name, err := range map[string]error{
		"see": second(b.Blocklist(ctx, "rival", "shop", "news", 0, 0)),
		"block": second(b.Block(ctx, "rival", "news", api.BlocklistRequest{Account: "shop",
			Recipient: "c@x.test"})),
		"unblock": second(b.Unblock(ctx, "rival", "shop", "news", "ann@example.com")),
		"put": second(b.Put(ctx, "rival", []api.NewSuppression{{Email: "c@example.com",
			SuppressionScope: of("shop")}})),
		"delete": second(b.Delete(ctx, "rival", api.SuppressionRemoval{Email: "ann@example.com",
			Account: "shop", List: "news"})),
	} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, gone := range map[string]func() (api.SuppressionRemoved, error){
		"unblock": func() (api.SuppressionRemoved, error) {
			return b.Unblock(ctx, "rival", "", "news", "ann@example.com")
		},
		"delete": func() (api.SuppressionRemoved, error) {
			return b.Delete(ctx, "rival", api.SuppressionRemoval{Email: "ann@example.com",
				List: "news"})
		},
	} {
		if got, err := gone(); err != nil || got.Deleted {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	added, err := b.Block(ctx, "rival", "news", api.BlocklistRequest{Recipient: "ann@example.com"})
	if err != nil || !added.Added {
		t.Errorf("%+v, %v", added, err)
	}
	if _, err := b.Unblock(ctx, "", "", "news", "ann@example.com"); !fault.Is(err, fault.Invalid) {
		t.Errorf("one of two entries is removed without saying which: %v", err)
	}
	if got, err := b.Unblock(ctx, "", "rival", "news", "ann@example.com"); err != nil || !got.Deleted {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := b.Unblock(ctx, "", "", "news", "ann@example.com"); err != nil || !got.Deleted {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAnAccountWithManyListsIsReadWhole: more lists than one page reads the indexes of.
func TestAnAccountWithManyListsIsReadWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 40 {
		e := suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe", List: "news",
			Account: "a" + strings.Repeat("x", i)}
		b.add(t, 1, e)
		e.List, e.Account = "n"+strings.Repeat("x", i), "rival"
		b.add(t, 1, e)
	}
	for _, f := range []suppression.Filter{{Account: "rival"}, {List: "news"}} {
		if all := b.all(t, f, 7); len(all) != 40 {
			t.Errorf("%+v: %d entries", f, len(all))
		}
		if n, err := b.CountOf(t.Context(), f); err != nil || n != 40 {
			t.Errorf("%+v: %d are counted, %v", f, n, err)
		}
	}
}

// TestAnExportHasNoFormulas, and an import reads it back unchanged.
func TestAnExportHasNoFormulas(t *testing.T) {
	t.Parallel()
	b, into := setup(t), setup(t)
	var entries []suppression.Entry
	for _, local := range []string{"=cmd", "+ann", "-ben", "'=cat", "'dan'", "eve"} {
		entries = append(entries, suppression.Entry{Address: local + "@example.com", Reason: "manual",
			Account: "=shop", List: "-news", Response: `=HYPERLINK("https://evil.example","x")`, MessageID: "@m1",
			Source: "test"})
	}
	b.add(t, len(entries), entries...)
	var file bytes.Buffer
	if err := b.Export(t.Context(), "", api.SuppressionQuery{}, &file); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(file.Bytes())).ReadAll()
	if err != nil || len(rows) != 1+len(entries) {
		t.Fatal(rows, err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a cell is a formula: %s", cell)
			}
		}
	}
	told, err := into.Import(t.Context(), "", &file, api.SuppressionImportOptions{})
	if err != nil || told.Added != len(entries) || told.Bad > 0 {
		t.Fatalf("%+v, %v", told, err)
	}
	byAddress := cmpopts.SortSlices(func(a, b suppression.Entry) bool { return a.Address < b.Address })
	want, got := b.all(t, suppression.Filter{}, 10), into.all(t, suppression.Filter{}, 10)
	if diff := cmp.Diff(want, got, byAddress); diff != "" {
		t.Errorf("(-exported +imported)\n%s", diff)
	}
}

func TestBlocklists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 25 {
		req := api.BlocklistRequest{Recipient: fmt.Sprintf("a%d@example.com", i), Account: "snd", Reason: []string{
			"", "block", "unsubscribe", "moved away", "spam"}[i%5]}
		answer, err := b.Block(t.Context(), "", "Test-List", req)
		if err != nil || !answer.Success || !answer.Added {
			t.Fatal(answer, err)
		}
	}
	if answer, err := b.Block(t.Context(), "snd", "test-list", api.BlocklistRequest{
		Recipient: "A0@example.com"}); err != nil || !answer.Success || answer.Added {
		t.Errorf("%+v, %v", answer, err)
	}
	b.add(t, 1, suppression.Entry{Domain: "example.net", Reason: "unsubscribe", Account: "shop",
		List: "another"})
	lists, err := b.Lists(t.Context(), "", 0, 0)
	want := api.Blocklists{PageNumbers: api.PageNumbers{Total: 2, Pages: 1}, Blocklists: []api.Blocklist{
		{ListID: "another", Account: "shop", Count: 1},
		{ListID: "test-list", Account: "snd", Count: 25}}}
	if diff := cmp.Diff(want, lists); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	reasons, seen := map[string]int{}, map[string]bool{}
	for page := range 3 {
		got, err := b.Blocklist(t.Context(), "", "", "TEST-list", page, 10)
		if err != nil || got.Total != 25 || got.Pages != 3 || got.Page != page {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, a := range got.Addresses {
			reasons[a.Reason]++
			seen[a.Recipient] = true
		}
	}
	if diff := cmp.Diff(map[string]int{"block": 10, "unsubscribe": 5, "moved away": 5, "spam_report": 5},
		reasons); diff != "" || len(seen) != 25 {
		t.Errorf("%d recipients, reasons (-want +got)\n%s", len(seen), diff)
	}
	if got, err := b.Unblock(t.Context(), "", "", "another", "@example.net"); err != nil || !got.Deleted {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := b.Blocklist(t.Context(), "", "shop", "another", 0, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("an empty list: %v", err)
	}
}
