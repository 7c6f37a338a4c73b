package audience_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox/suppression"
)

// TestImportExisting: what happens to subscribers that are there already.
func TestImportExisting(t *testing.T) {
	t.Parallel()
	for existing, want := range map[string]string{
		"":        `{"email":"ann@example.net","name":"Ann","locale":"de","tags":["a","b","c"],"attributes":{"n":2,"x":"y"}}`,
		"replace": `{"email":"ann@example.net","locale":"de","tags":["b","c"],"attributes":{"n":2}}`,
		"skip":    `{"email":"ann@example.net","name":"Ann","tags":["a"],"attributes":{"n":1,"x":"y"}}`,
	} {
		b := setup(t)
		b.bring(t, "email,name,tags,attributes.n:number,attributes.x\nann@example.net,Ann,a,1,y\n",
			api.SubscriberImportOptions{})
		o := api.SubscriberImportOptions{Existing: existing, Tag: "c"}
		file := "email,tags,attributes.n:number,locale,name,Phone\nANN@example.net,b,2,de,,1\n"
		o.DryRun = true
		dry := b.bring(t, file, o)
		o.DryRun = false
		got := b.bring(t, file, o)
		if dry.Changed != got.Changed || got.Changed+got.Known != 1 || (existing == "skip") != (got.Known == 1) ||
			len(got.Ignored) != 1 {
			t.Errorf("%q: %+v, dry %+v", existing, got, dry)
		}
		line := strings.TrimSpace(b.export(t, "", "jsonl"))
		line = strings.Replace(strings.Replace(line, `"id":"s0",`, "", 1), `,"created":"2030-01-02T03:04:05Z"`,
			"", 1)
		if diff := cmp.Diff(want, line); diff != "" {
			t.Errorf("%q (-want +got):\n%s", existing, diff)
		}
		if again := b.bring(t, file, o); again.Known != 1 {
			t.Errorf("%q again: %+v", existing, again)
		}
	}
}

// TestImportAndSuppressions: unsubscribed or suppressed people are not subscribed, and returning people get
// mail again.
func TestImportAndSuppressions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "double")
	b.add(t, "left@example.net", "weekly")
	b.leave(t, "left@example.net", "weekly")
	_, err := b.Suppressions.Add(t.Context(),
		suppression.Entry{Address: "bounced@example.net", Account: "default", Reason: suppression.HardBounce},
		suppression.Entry{Address: "gone@example.net", Account: "default", List: "weekly",
			Reason: suppression.Unsubscribe})
	if err != nil {
		t.Fatal(err)
	}
	file := "email\nleft@example.net\nbounced@example.net\ngone@example.net\nann@example.net\n"
	o := subscribed("weekly")
	got := b.bring(t, file, o)
	if diff := cmp.Diff(map[string]int{"left": 1, "hard_bounce": 1, "unsubscribe": 1},
		got.Skipped); diff != "" ||
		got.Added != 3 || got.Known != 1 {
		t.Errorf("%+v\n%s", got, diff)
	}
	o.Resubscribe = true
	got = b.bring(t, file, o)
	if diff := cmp.Diff(map[string]int{"hard_bounce": 1}, got.Skipped); diff != "" || got.Changed != 2 {
		t.Errorf("%+v\n%s", got, diff)
	}
	if c := b.counts(t, "weekly"); c != (api.ListCounts{Subscribed: 3}) {
		t.Errorf("%+v", c)
	}
	found, err := b.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
		Addresses: []string{"left@example.net", "gone@example.net"}})
	if err != nil || found[0] != nil || found[1] != nil {
		t.Errorf("they are still suppressed: %v, %v", found, err)
	}
	o = api.SubscriberImportOptions{ListID: []string{"weekly"}, State: "left"}
	got = b.bring(t, file+"new@example.net\n", o)
	if c := b.counts(t, "weekly"); c != (api.ListCounts{Left: 5}) || got.Added != 1 || got.Changed != 4 {
		t.Errorf("%+v, %+v", c, got)
	}
	found, err = b.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
		Addresses: []string{"ann@example.net", "new@example.net"}})
	if err != nil || found[0] == nil || found[1] == nil {
		t.Errorf("they are not suppressed: %v, %v", found, err)
	}
}

// TestImportConfirms: those who are pending by an import are asked once each, if the import wants it.
func TestImportConfirms(t *testing.T) {
	t.Parallel()
	b := setupAsking(t)
	b.list(t, "weekly", "double")
	b.add(t, "ann@example.net", "weekly")
	o := api.SubscriberImportOptions{ListID: []string{"weekly"}, State: "pending"}
	for n, confirm := range []bool{false, true, true} {
		o.Confirm = confirm
		file := fmt.Sprintf("email\nann@example.net\nbob%d@example.net\nbob%d@example.net\n", n, n)
		if _, err := b.Imports.Run(t.Context(), "", strings.NewReader(file), o); err != nil {
			t.Fatal(err)
		}
	}
	for email, want := range map[string]int{"ann@example.net": 0, "bob0@example.net": 0, "bob1@example.net": 1,
		"bob2@example.net": 1} {
		if got := len(b.sent(email)); got != want {
			t.Errorf("%d mails ask %s, want %d", got, email, want)
		}
	}
	b.url = ""
	if _, err := b.Imports.Run(t.Context(), "", strings.NewReader("email\na@example.net\n"),
		o); fault.CodeOf(err) != "NoPublicUrl" {
		t.Errorf("without a public address: %v", err)
	}
	if c := b.counts(t, "weekly"); c != (api.ListCounts{Pending: 3, Subscribed: 1}) {
		t.Errorf("%+v", c)
	}
}

// TestImportQuota: an import that is larger than its account may have is refused, at the latest where it is.
func TestImportQuota(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, err := audience.New(b.Parts, audience.Options{Now: b.Now, ImportRoom: func(_ context.Context, _ string,
		count func() (int, int, error)) error {
		if _, more, _ := count(); more > 200_000 {
			return fault.New(fault.TooLarge, "QuotaExceeded", "It is too large")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Imports.Run(t.Context(), "", strings.NewReader("x"), api.SubscriberImportOptions{Size: 1 << 20})
	if fault.CodeOf(err) != "QuotaExceeded" {
		t.Errorf("a file of known size: %v", err)
	}
	got, err := s.Imports.Run(t.Context(), "", strings.NewReader(people(0, 20_000)),
		api.SubscriberImportOptions{})
	if fault.CodeOf(err) != "QuotaExceeded" || got.Added == 0 || got.State != "interrupted" || got.Error == "" {
		t.Errorf("a stream: %+v, %v", got, err)
	}
}

// TestExportComesBack: an export that is imported into another account gives the same export, and into its
// own changes nothing.
func TestExportComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := rand.New(rand.NewPCG(1, 2))
	texts := []string{"a", " b ", "=1+1", "'x", "'=x", "a,b", "a;b|c", "line\nbreak", "cr\r\nlf", "quote\"s",
		"ü€😀", "-5", "[", "null", "true"}
	text := func() string { return texts[r.IntN(len(texts))] }
	for n := range 300 {
		in := api.SubscriberRequest{Email: fmt.Sprintf("p%d@example.net", n), Attributes: map[string]any{}}
		if r.IntN(2) == 0 {
			in.Name, in.Locale, in.TZ = fmt.Sprintf("=Ann \"%d\", x", n), "de-AT", "Europe/Vienna"
		}
		for range r.IntN(4) {
			in.Tags = append(in.Tags, fmt.Sprintf("tag,%d", r.IntN(9)))
		}
		for k := range r.IntN(6) {
			values := []any{text(), r.NormFloat64(), float64(r.IntN(9)), r.IntN(2) == 0, []any{text(), text()}}
			in.Attributes[fmt.Sprintf("a%d", k)] = values[r.IntN(len(values))]
		}
		if _, _, err := b.Create(t.Context(), "", in); err != nil {
			t.Fatal(err)
		}
	}
	for n, list := range []string{"weekly", "news", "offers"} {
		b.list(t, list, []string{"single", "double", "double"}[n])
		for k := n; k < 300; k += 3 + n {
			email := fmt.Sprintf("p%d@example.net", k)
			_, err := b.Subscribe(t.Context(), "", api.SubscriberAccount{}, email, api.SubscribeRequest{
				Consent: consent, Lists: []api.SubscriptionRequest{{ListID: list, State: []string{"subscribed",
					"pending"}[k%2]}}})
			if err != nil {
				t.Fatal(err)
			}
			if k%5 == 0 {
				b.leave(t, email, list)
			}
		}
	}
	ids := regexp.MustCompile(`"id":"[^"]*",|(?m)^s[0-9a-z]+,`)
	other := setup(t)
	for n, list := range []string{"weekly", "news", "offers"} {
		other.list(t, list, []string{"single", "double", "double"}[n])
	}
	b.Advance(time.Hour)
	other.Advance(2 * time.Hour)
	since := regexp.MustCompile(`"since":"[^"]*","source":"[^"]*"`) // not in CSV
	want := map[string]string{"csv": b.export(t, "", "csv"), "jsonl": b.export(t, "", "jsonl")}
	for _, format := range []string{"jsonl", "csv"} {
		o := api.SubscriberImportOptions{JSONL: format == "jsonl"}
		if got := b.bring(t, want[format], o); got.Known != 300 {
			t.Errorf("%s into its own account: %+v", format, got)
		}
		for _, to := range []*bench{b, other} {
			for n := range 300 {
				if _, err := to.Delete(t.Context(), "", api.SubscriberAccount{}, fmt.Sprintf("p%d@example.net",
					n)); err != nil {
					t.Fatal(err)
				}
			}
			got := to.bring(t, want[format], o)
			if got.Added != 300 || format == "csv" && !slices.Equal(got.Ignored, []string{"id"}) {
				t.Errorf("%s: %+v", format, got)
			}
			for format2, want := range want {
				got := to.export(t, "", format2)
				if format == "csv" {
					want, got = since.ReplaceAllString(want, ""), since.ReplaceAllString(got, "")
				}
				if diff := cmp.Diff(ids.ReplaceAllString(want, ""), ids.ReplaceAllString(got, "")); diff != "" {
					t.Errorf("%s: the export as %s (-first +second):\n%s", format, format2, diff)
				}
			}
			found, err := to.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
				Bulk:      true,
				Addresses: []string{"p0@example.net", "p3@example.net"}})
			if err != nil || found[0] == nil || found[1] != nil {
				t.Errorf("%s: who left is mailed, or who did not is not: %v, %v", format, found, err)
			}
		}
	}
}

// TestListsOfAFile: what stops mail counts, subscribing needs a consent, and unknown lists are reported.
func TestListsOfAFile(t *testing.T) {
	t.Parallel()
	b := setupAsking(t)
	b.list(t, "weekly", "double")
	b.list(t, "news", "double")
	file := "email,lists\nann@a.example,weekly:left|news:pending\nbob@a.example,news:subscribed\neve@a.example,other:subscribed|news:left\nbad@a.example,weekly\n"
	got := b.bring(t, file, subscribed("weekly"))
	if got.Added != 3 || got.Bad != 1 || !slices.Equal(got.Ignored, []string{"lists:other"}) {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ email, list, want string }{{"ann@a.example", "weekly", "left"},
		{"ann@a.example", "news", "pending"}, {"bob@a.example", "news", "subscribed"},
		{"bob@a.example", "weekly", "subscribed"}, {"eve@a.example", "news", "left"}} {
		if state := b.state(t, c.email, c.list); state != c.want {
			t.Errorf("%s is %s on %s, want %s", c.email, state, c.list, c.want)
		}
	}
	if n := len(b.sent("ann@a.example")); n != 0 {
		t.Errorf("%d mails ask who is pending in the file", n)
	}
	got = b.bring(t, "email,lists\nkim@a.example,news:subscribed\n", api.SubscriberImportOptions{})
	if got.Bad != 1 || !strings.Contains(got.Errors[0].Reason, "consent is required") {
		t.Errorf("without a consent: %+v", got)
	}
	b.leave(t, "bob@a.example", "news")
	got = b.bring(t, "id,email,lists\ns1,bob@a.example,news:subscribed\n", api.SubscriberImportOptions{})
	if state := b.state(t, "bob@a.example", "news"); state != "left" || got.Skipped["left"] != 1 {
		t.Errorf("who left since the export is %s: %+v", state, got)
	}
}

// TestAnExportStopsTheSameMailElsewhere: another instance doesn't know the first instance's suppressions.
func TestAnExportStopsTheSameMailElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.list(t, "news", "single")
	for _, name := range []string{"ann", "bounced", "soon", "spam", "everywhere", "weekly"} {
		b.add(t, name+"@a.example", "weekly", "news")
	}
	soon := start.Add(240 * time.Hour)
	if _, err := b.Suppressions.Add(t.Context(),
		suppression.Entry{Address: "bounced@a.example", Account: "default", Reason: suppression.HardBounce},
		suppression.Entry{Address: "soon@a.example", Account: "default", Reason: suppression.Manual, Expires: soon},
		suppression.Entry{Address: "spam@a.example", Account: "default", Reason: suppression.SpamReport},
		suppression.Entry{Address: "everywhere@a.example", Reason: suppression.Manual},
		suppression.Entry{Address: "weekly@a.example", Account: "default", List: "weekly",
			Reason: suppression.Unsubscribe},
	); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"csv", "jsonl"} {
		other := setup(t)
		other.list(t, "weekly", "single")
		other.list(t, "news", "single")
		file := b.export(t, "", format)
		if got := other.bring(t, file, api.SubscriberImportOptions{JSONL: format == "jsonl"}); got.Added != 6 {
			t.Errorf("%s: %+v", format, got)
		}
		for _, list := range []string{"weekly", "news"} {
			q := suppression.Question{Account: "default", List: list, Bulk: true}
			for _, name := range []string{"ann", "bounced", "soon", "spam", "everywhere", "weekly"} {
				q.Addresses = append(q.Addresses, name+"@a.example")
			}
			want, err := b.Suppressions.Check(t.Context(), q)
			got, err2 := other.Suppressions.Check(t.Context(), q)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for n, email := range q.Addresses {
				if (want[n] == nil) != (got[n] == nil) ||
					want[n] != nil && (want[n].Reason != got[n].Reason || !want[n].Expires.Equal(got[n].Expires)) {
					t.Errorf("%s: %s on %s: %+v, want %+v", format, email, list, got[n], want[n])
				}
				if state := other.state(t, email, list); want[n] == nil && state != "subscribed" {
					t.Errorf("%s: %s is %q on %s", format, email, state, list)
				}
			}
		}
	}
}
