package suppression_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestFilesOfAllSorts(t *testing.T) {
	t.Parallel()
	ann := suppression.Entry{Address: "ann@example.com", Reason: "manual", Created: start, Source: "csv"}
	with := func(change func(e *suppression.Entry)) []suppression.Entry {
		e := ann
		change(&e)
		return []suppression.Entry{e}
	}
	for _, c := range []struct {
		name, file string
		o          api.SuppressionImportOptions
		want       []suppression.Entry
		bad        []api.BadLine
	}{
		{name: "addresses alone", file: "ann@example.com\n", want: []suppression.Entry{ann}},
		{name: "without a last break", file: "ann@example.com", want: []suppression.Entry{ann}},
		{name: "Windows", file: "\uFEFFemail\r\nann@example.com\r\n\r\n", want: []suppression.Entry{ann}},
		{name: "a Mac of old", file: "\uFEFFemail,response\r\"ann@example.com\",é\r\r",
			want: with(func(e *suppression.Entry) { e.Response = "é" })},
		{name: "Excel's UTF-16", file: "\xff\xfes\x00e\x00p\x00=\x00;\x00\r\x00\n\x00e\x00m\x00a\x00i\x00l\x00;\x00\r\x00" +
			strings.ReplaceAll("a!n!n!@!e!x!a!m!p!l!e!.!c!o!m!", "!", "\x00"), want: []suppression.Entry{ann}},
		{name: "Excel's separator", file: "\uFEFFSEP=|\nemail|response\nann@example.com|a,b\n",
			want: with(func(e *suppression.Entry) { e.Response = "a,b" })},
		{name: "headings alone", file: "email\n"},
		{name: "headings in any order",
			file: "Reason,created_at,Email\nbounce,2029-06-01 10:00:00,Ann@Example.com\n", want: with(
				func(e *suppression.Entry) {
					e.Reason, e.Created = "hard_bounce", time.Date(2029, 6, 1, 10, 0, 0, 0, time.UTC)
				})},
		{name: "semicolons", file: "email;reason\nann@example.com;unsubscribe\n",
			want: with(func(e *suppression.Entry) { e.Reason = "unsubscribe" })},
		{name: "tabs", file: "ann@example.com\t\tspam_report",
			want: with(func(e *suppression.Entry) { e.Reason = "spam_report" })},
		{name: "without headings", file: "ann@example.com,,unsubscribe,shop,,2031-01-01,old-tool\n",
			want: with(func(e *suppression.Entry) {
				e.Reason, e.Account, e.Source, e.Expires = "unsubscribe", "shop", "old-tool", time.Date(2031, 1, 1, 0, 0,
					0, 0, time.UTC)
			})},
		{name: "quotes", file: "email,response\n\"ann@example.com\",\"says \"\"no, thanks\"\"\"\n",
			want: with(func(e *suppression.Entry) { e.Response = `says "no, thanks"` })},
		{name: "domains", file: "domain\nexample.com\n",
			want: with(func(e *suppression.Entry) { e.Address, e.Domain = "", "example.com" })},
		{name: "domains without headings", file: "@example.com\n",
			want: with(func(e *suppression.Entry) { e.Address, e.Domain = "", "example.com" })},
		{name: "both of one thing", file: "email,domain\nann@example.com,example.com\n", want: []suppression.Entry{
			ann}},
		{name: "what holds for all", file: "ann@example.com\n", o: api.SuppressionImportOptions{
			Reason: "unsubscribe", Account: "shop", List: "News", Source: "old"}, want: with(
			func(e *suppression.Entry) {
				e.Reason, e.Account, e.List, e.Source = "unsubscribe", "shop", "news", "old"
			})},
		{name: "of an account, with lists", file: "email,list\nann@example.com,News\n",
			o:    api.SuppressionImportOptions{Account: "shop"},
			want: with(func(e *suppression.Entry) { e.Account, e.List = "shop", "news" })},
		{name: "a list of nobody", file: "email,list\nann@example.com,news\n", want: nil, bad: []api.BadLine{
			{Line: 2, Reason: "account is required with a list, for each account has its own lists"}}},
		{name: "formulas", file: "email,response\n'+ann@example.com,'=1+1\n",
			want: with(func(e *suppression.Entry) { e.Address, e.Response = "+ann@example.com", "=1+1" })},
		{name: "twice", file: "ann@example.com\nANN@example.com\n", want: []suppression.Entry{ann}},
		{name: "bad lines", file: "email,domain,reason,expires\nann@example.com\nann@\n,,manual\nben@example.com,,dislïke\n\"ben@example.com\ncat@example.com,,,soon\n" +
			strings.Repeat("x", 70_000) + "@example.com\n\xff@example.com\nann@example.com,example.net\n",
			want: []suppression.Entry{ann}, bad: []api.BadLine{
				{Line: 3, Reason: "address is not a valid email address: nothing stands after the @"},
				{Line: 4, Reason: "has neither an address nor a domain"},
				{Line: 5, Reason: "reason must be one of unsubscribe, hard_bounce, spam_report, manual"},
				{Line: 6, Reason: "has a quote that does not end; a line break can't be quoted"},
				{Line: 7, Reason: "expires and created must be times such as 2030-12-31 or 2030-12-31T08:00:00Z"},
				{Line: 8, Reason: "is longer than 65,536 bytes"},
				{Line: 9, Reason: "is not in the character set of the file"}, {Line: 10, Reason: "domain can't be given together with an address"},
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			told, err := b.Import(t.Context(), "", strings.NewReader(c.file), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, b.all(t, suppression.Filter{}, 10)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.bad, told.Errors, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("bad lines (-want +got)\n%s", diff)
			}
			if told.State != "done" || told.Bad != len(c.bad) || told.Added != len(c.want) ||
				told.Bytes != int64(len(c.file)) || told.Added+told.Known+told.Bad != told.Lines {
				t.Errorf("told %+v", told)
			}
			progress, err := b.Progress(t.Context(), "", told.ID)
			if diff := cmp.Diff(told, progress); err != nil || diff != "" {
				t.Errorf("%v, progress (-want +got)\n%s", err, diff)
			}
		})
	}
}

func TestAFileOfSomethingElseIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.Import(t.Context(), "", strings.NewReader("name,phone\nAnn,1\n"),
		api.SuppressionImportOptions{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}

// TestAnEmptyFileIsRefused: it is most often a failed export.
func TestAnEmptyFileIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, file := range []string{"", "\uFEFF", "\n \r\n\r", "sep=;\r\n"} {
		if _, err := b.Import(t.Context(), "", strings.NewReader(file),
			api.SuppressionImportOptions{}); !fault.Is(err,
			fault.Invalid) || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestWhatIsExportedCanBeImported(t *testing.T) {
	t.Parallel()
	from, to := setup(t), setup(t)
	var entries []suppression.Entry
	for i := range 3000 {
		e := suppression.Entry{Address: fmt.Sprintf("a%d@example.com", i), Reason: suppression.Reasons[i%4],
			Created: start.Add(-time.Duration(i) * time.Hour), Source: "smtp"}
		switch i % 7 {
		case 1:
			e.Account = "shop"
		case 2:
			e.Account, e.List = "shop", "news"
		case 3:
			e.Address, e.Domain = "", fmt.Sprintf("d%d.example", i)
		case 4:
			e.Expires, e.MessageID, e.Response = start.Add(time.Hour), "m", "550 \"no\", such; user,"
		case 5:
			e.Address = "=" + strings.Repeat("x", 55) + e.Address
		}
		entries = append(entries, e)
	}
	from.add(t, len(entries), entries...)
	from.add(t, 1, suppression.Entry{Address: "expired@example.com", Reason: "manual",
		Expires: start.Add(-time.Hour)})
	var file bytes.Buffer
	if err := from.Export(t.Context(), "", api.SuppressionQuery{}, &file); err != nil {
		t.Fatal(err)
	}
	for _, added := range []int{len(entries), 0} {
		told, err := to.Import(t.Context(), "", bytes.NewReader(file.Bytes()), api.SuppressionImportOptions{})
		if err != nil || told.Added != added || told.Bad != 0 || told.Lines != len(entries) {
			t.Fatalf("%+v, %v", told, err)
		}
	}
	bySubject := func(a, b suppression.Entry) int {
		return strings.Compare(a.Address+"@"+a.Domain, b.Address+"@"+b.Domain)
	}
	got := to.all(t, suppression.Filter{}, 1000)
	slices.SortFunc(got, bySubject)
	slices.SortFunc(entries, bySubject)
	if diff := cmp.Diff(entries, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAnImportThatBreaksOffSaysSo: what was read by then is in place, and the same file again completes it.
func TestAnImportThatBreaksOffSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "a%d@example.com\n", i)
	}
	half := io.MultiReader(strings.NewReader(file.String()[:file.Len()/2]),
		iotest.ErrReader(errors.New("connection reset")))
	told, err := b.Import(t.Context(), "", half, api.SuppressionImportOptions{ID: "the-first-one"})
	if err == nil || told.State != "interrupted" || told.Added == 0 || told.Added >= 5000 {
		t.Fatalf("%+v, %v", told, err)
	}
	progress, err := b.Progress(t.Context(), "", "the-first-one")
	if err != nil || progress.State != "interrupted" || progress.Added != told.Added || progress.Error == "" {
		t.Errorf("%+v, %v", progress, err)
	}
	again, err := b.Import(t.Context(), "", strings.NewReader(file.String()), api.SuppressionImportOptions{
		ID: "the-second"})
	if err != nil || again.Added+told.Added != 5000 || again.State != "done" {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := b.Import(t.Context(), "", strings.NewReader(""), api.SuppressionImportOptions{
		ID: "the-second"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("the id of another import: %v", err)
	}
}

// TestAnImportWhoseProcessDiedSaysSo: nobody writes its progress any more.
func TestAnImportWhoseProcessDiedSaysSo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Import(ctx, "", reader, api.SuppressionImportOptions{ID: "under-way"})
	}()
	// with the second, which means nothing, it is through with the first
	for _, line := range []string{"ann@example.com\n", "\n"} {
		if _, err := writer.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	running, err := b.Progress(t.Context(), "", "under-way")
	if err != nil || running.State != "running" {
		t.Errorf("%+v, %v", running, err)
	}
	b.Advance(2 * time.Minute)
	if dead, err := b.Progress(t.Context(), "", "under-way"); err != nil || dead.State != "interrupted" {
		t.Errorf("%+v, %v", dead, err)
	}
	cancel()
	_ = writer.Close()
	<-done
}

func TestAnImportSaysThatRedisWentAway(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t)
	b := on(t, testredis.Connect(t, redisdb.Options{URL: p.URL()}), suppression.Options{})
	first := strings.Repeat("ann@example.com\n", 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := io.MultiReader(strings.NewReader(first), readerFunc(func([]byte) (int, error) {
		p.Kill()
		time.AfterFunc(2*time.Second, cancel)
		return 0, io.EOF
	}))
	if told, err := b.Import(ctx, "", file, api.SuppressionImportOptions{ID: "under-way"}); !fault.Is(err,
		fault.Unavailable) || told.State != "interrupted" {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestAnImportOutlivesAMomentWithoutRedis: a file of millions of lines is not lost to a failover.
func TestAnImportOutlivesAMomentWithoutRedis(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t)
	db := testredis.Connect(t, redisdb.Options{URL: p.URL()})
	b, commands := on(t, db, suppression.Options{}), testredis.CountCommands(db)
	killed, done := make(chan int64), make(chan error, 1)
	file := io.MultiReader(strings.NewReader("ann@example.com\n"), readerFunc(func([]byte) (int, error) {
		p.Kill()
		killed <- commands.Sent()
		return 0, io.EOF
	}))
	go func() {
		told, err := b.Import(t.Context(), "", file, api.SuppressionImportOptions{})
		if err == nil && (told.State != "done" || told.Added != 1) {
			err = fmt.Errorf("%+v", told)
		}
		done <- err
	}()
	before := <-killed
	for commands.Sent() < before+2 { // it has been tried once in vain
		time.Sleep(10 * time.Millisecond)
	}
	p.Restart(t)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWhoIsConfinedToAnAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 3, suppression.Entry{Address: "ann@example.com", Reason: "manual"}, suppression.Entry{
		Address: "ann@example.com", Reason: "manual", Account: "blog"},
		suppression.Entry{Address: "ann@example.com", Reason: "unsubscribe", Account: "blog", List: "news"})
	told, err := b.Import(t.Context(), "shop",
		strings.NewReader("email,account,list\nann@example.com\nann@example.com,shop\nben@example.com,blog\nben@example.com,blog,news\n"), api.SuppressionImportOptions{ID: "of-the-shop"})
	if err != nil || told.Added != 1 || told.Known != 1 || told.Bad != 2 {
		t.Errorf("%+v, %v", told, err)
	}
	if _, err := b.Progress(t.Context(), "blog", "of-the-shop"); !fault.Is(err, fault.NotFound) {
		t.Errorf("another account sees the import: %v", err)
	}
	page, err := b.Query(t.Context(), "shop", api.SuppressionQuery{})
	if err != nil || len(page.Suppressions) != 1 || page.Total != 1 || page.Suppressions[0].Account != "shop" {
		t.Errorf("%+v, %v", page, err)
	}
	found, err := b.Lookup(t.Context(), "shop", "ann@example.com")
	if err != nil || len(found.Suppressions) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	all, err := b.Lookup(t.Context(), "", "ANN@example.com")
	if err != nil || len(all.Suppressions) != 4 || all.Email != "ann@example.com" {
		t.Errorf("%+v, %v", all, err)
	}
	var file bytes.Buffer
	if err := b.Export(t.Context(), "shop", api.SuppressionQuery{}, &file); err != nil ||
		strings.Count(file.String(), "\n") != 2 {
		t.Errorf("%s, %v", file.String(), err)
	}
	for name, err := range map[string]error{
		"list all": second(b.Query(t.Context(), "shop", api.SuppressionQuery{Scope: "instance"})),
		"list another": second(b.Query(t.Context(), "shop", api.SuppressionQuery{
			Account: "blog"})),
		"list a list": second(b.Query(t.Context(), "shop", api.SuppressionQuery{
			Account: "blog", List: "news"})),
		"add to another": second(b.Put(t.Context(), "shop", []api.NewSuppression{
			{Email: "x@example.com", SuppressionScope: api.SuppressionScope{Account: "blog"}}})),
		"add to a list": second(b.Put(t.Context(), "shop", []api.NewSuppression{
			{Email: "x@example.com", SuppressionScope: api.SuppressionScope{Account: "blog", List: "news"}}})),
		"remove from another": second(b.Delete(t.Context(), "shop", api.SuppressionRemoval{Email: "ann@example.com",
			Account: "blog"})),
		"import for a list": second(b.Import(t.Context(), "shop", strings.NewReader(""),
			api.SuppressionImportOptions{Account: "blog", List: "news"})),
		"export another": b.Export(t.Context(), "shop", api.SuppressionQuery{Scope: "instance"}, io.Discard),
	} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if gone, err := b.Delete(t.Context(), "shop", api.SuppressionRemoval{
		Email: "ann@example.com"}); err != nil || !gone.Deleted {
		t.Errorf("%+v, %v", gone, err)
	}
	if rest := b.all(t, suppression.Filter{}, 10); len(rest) != 3 {
		t.Errorf("what is left: %v", rest)
	}
}

// TestDeletingInAnotherScopeNamesTheAccounts: the answer to a token that may do so says how to delete them.
func TestDeletingInAnotherScopeNamesTheAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, 4, suppression.Entry{Address: "ann+x@example.com", Reason: "manual", Account: "default"},
		suppression.Entry{Address: "ann+x@example.com", Reason: "hard_bounce", Account: "default"},
		suppression.Entry{Address: "ann+x@example.com", Reason: "unsubscribe", Account: "blog", List: "news"},
		suppression.Entry{Domain: "example.com", Reason: "manual", Account: "shop"})
	domain := api.SuppressionElsewhere{SuppressionScope: api.SuppressionScope{Account: "shop"},
		Query: "domain=example.com&account=shop"}
	for _, row := range []struct {
		bound   string
		removal api.SuppressionRemoval
		want    []api.SuppressionElsewhere
	}{
		{"", api.SuppressionRemoval{Email: "ANN+x@example.com"}, []api.SuppressionElsewhere{
			{SuppressionScope: api.SuppressionScope{Account: "blog", List: "news"},
				Query: "email=ann%2Bx%40example.com&account=blog&list=news"},
			{SuppressionScope: api.SuppressionScope{Account: "default"}, Query: "email=ann%2Bx%40example.com&account=default"},
			domain,
		}},
		{"", api.SuppressionRemoval{Domain: "example.com"}, []api.SuppressionElsewhere{domain}},
		{"", api.SuppressionRemoval{Email: "ben@example.net"}, nil},
		{"other", api.SuppressionRemoval{Email: "ann+x@example.com"}, nil},
	} {
		got, err := b.Delete(t.Context(), row.bound, row.removal)
		slices.SortFunc(got.Elsewhere, func(a, b api.SuppressionElsewhere) int {
			return strings.Compare(a.Account, b.Account)
		})
		if diff := cmp.Diff(api.SuppressionRemoved{Elsewhere: row.want}, got); diff != "" || err != nil {
			t.Errorf("%+v: %v\n%s", row.removal, err, diff)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestPagesHaveEachEntryOnce while others come and go.
func TestPagesHaveEachEntryOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entry := func(i int) suppression.Entry {
		e := suppression.Entry{Address: fmt.Sprintf("a%d@d%d.example", i, i%10), Reason: suppression.Reasons[i%4]}
		if i%3 == 0 {
			e.Account = "shop"
		}
		return e
	}
	var entries []suppression.Entry
	for i := range 2000 {
		entries = append(entries, entry(i))
	}
	b.add(t, 2000, entries...)
	for _, c := range []struct {
		name string
		f    suppression.Filter
		size int
		want int
	}{
		{"all", suppression.Filter{}, 77, 2000},
		{"one by one", suppression.Filter{Account: "shop", Reason: "manual"}, 1, 167},
		{"of the instance", suppression.Filter{Instance: true}, 1000, 1333},
		{"of a domain", suppression.Filter{Domain: "D3.example"}, 50, 200},
		{"of an address", suppression.Filter{Address: "A7@d7.example"}, 10, 1},
		{"of a scope that has none", suppression.Filter{List: "news"}, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, e := range b.all(t, c.f, c.size) {
				if seen[e.Address] {
					t.Errorf("%s is there twice", e.Address)
				}
				seen[e.Address] = true
			}
			if len(seen) != c.want {
				t.Errorf("%d entries, want %d", len(seen), c.want)
			}
		})
	}
	seen, cursor, next := map[string]bool{}, "", 2000
	for {
		page, err := b.List(t.Context(), suppression.Filter{}, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			seen[e.Address] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
		for range 20 {
			b.add(t, 1, entry(next))
			next++
		}
		if gone := page.Entries[rand.IntN(len(page.Entries))]; true { // seen already
			if ok, err := b.Remove(t.Context(), gone); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
	}
	for _, e := range entries {
		if !seen[e.Address] {
			t.Errorf("%s was there all the time and is not listed", e.Address)
		}
	}
	if _, err := b.List(t.Context(), suppression.Filter{}, "MTYuMC4", 10); !fault.Is(err, fault.Invalid) {
		t.Errorf("a cursor of nothing: %v", err)
	}
}

// FuzzImport: whatever a file holds, each line is added or reported as bad, and an export of the added lines
// adds nothing.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{
		"ann@example.com\n", "email,reason\nann@example.com,bounce\n", "\"a\"\"b\";;\n;\n",
		"\uFEFFdomain\texpires\nexample.com\t2030-01-01\n",
		"a@b.example,,,,l.x,2031-01-01T00:00:00Z,s,2001-01-01,m,r\n",
		"email\n#@x.example\n\"\"\n\x00@x.example\n", "@\n", "#x y@z.example", "ann@example.com,,,a b",
	} {
		f.Add(seed)
	}
	b := setup(f)
	f.Fuzz(func(t *testing.T, file string) {
		if err := b.db.Client().FlushDB(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		told, err := b.Import(t.Context(), "", strings.NewReader(file), api.SuppressionImportOptions{})
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
			return
		}
		if told.Added+told.Known+told.Bad != told.Lines || told.Bytes != int64(len(file)) || told.State != "done" {
			t.Errorf("%q: %+v", file, told)
		}
		before := b.all(t, suppression.Filter{}, 1000)
		if len(before) != told.Added {
			t.Errorf("%q: %d added, %d there", file, told.Added, len(before))
		}
		var out bytes.Buffer
		if err := b.Export(t.Context(), "", api.SuppressionQuery{}, &out); err != nil {
			t.Fatal(err)
		}
		again, err := b.Import(t.Context(), "", &out, api.SuppressionImportOptions{})
		if err != nil || again.Added > 0 || again.Bad > 0 {
			t.Errorf("%q: again %+v, %v", file, again, err)
		}
		if diff := cmp.Diff(before, b.all(t, suppression.Filter{}, 1000)); diff != "" {
			t.Errorf("%q: (-before +after)\n%s", file, diff)
		}
	})
}
