package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testredis"
)

// TestSuppressionsOverTheAPI goes once through all that can be done, with the real store.
func TestSuppressionsOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	added, err := api.AddSuppressions.Do(ctx, w.client, api.SuppressionRequest{
		Suppressions: []api.NewSuppression{api.NewSuppression{Email: "Ann@Example.com", Reason: "hard_bounce",
			Expires: &soon, Source: "old", MessageID: "m1", Response: "550 no such user"}, api.NewSuppression{
			Domain: "example.net"}, api.NewSuppression{
			Email: "ann@example.com", Reason: "unsubscribe", SuppressionScope: api.SuppressionScope{Account: "blog",
				List: "news"}}}})
	if err != nil || added != (api.SuppressionsAdded{Success: true, Added: 3}) {
		t.Fatal(added, err)
	}
	if got := w.do(t, http.MethodPost, "/v1/suppressions", adminToken,
		`{"email":"ann@example.com","reason":"hard_bounce"}`); got.body != `{"success":true,"added":0,"known":1}` {
		t.Error(got.status, got.body)
	}
	found, err := api.CheckSuppression.Do(ctx, w.client, api.SuppressionCheck{Email: "ANN@example.com"})
	want := api.SuppressionFound{Email: "ann@example.com", Suppressions: []api.Suppression{
		// for ever now
		{Email: "ann@example.com", Reason: "hard_bounce", Source: "api", MessageID: "m1",
			Response: "550 no such user"},
		{Email: "ann@example.com", Reason: "unsubscribe", Source: "api", SuppressionScope: api.SuppressionScope{
			Account: "blog", List: "news"}},
	}}
	if diff := cmp.Diff(want, found, cmpopts.IgnoreFields(api.Suppression{}, "Created")); err != nil ||
		diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	page, err := api.ListSuppressions.Do(ctx, w.client, api.SuppressionQuery{
		CursorQuery: api.CursorQuery{PageSize: 2}})
	if err != nil || len(page.Suppressions) != 2 || page.Total != 3 || page.Cursor == "" {
		t.Fatal(page, err)
	}
	rest, err := api.ListSuppressions.Do(ctx, w.client, api.SuppressionQuery{
		CursorQuery: api.CursorQuery{PageSize: 2, Cursor: page.Cursor}})
	if err != nil || len(rest.Suppressions) != 1 || rest.Cursor != "" {
		t.Error(rest, err)
	}
	for n, q := range map[int]api.SuppressionQuery{
		2: {Scope: "instance"}, 1: {List: "news"},
		0: {Account: "shop"},
	} {
		if page, err := api.ListSuppressions.Do(ctx, w.client, q); err != nil || len(page.Suppressions) != n ||
			page.Total != n {
			t.Errorf("%+v: %+v, %v", q, page, err)
		}
	}
	removed, err := api.RemoveSuppression.Do(ctx, w.client, api.SuppressionRemoval{Email: "ann@example.com",
		Reason: "hard_bounce"})
	if err != nil || !removed.Deleted {
		t.Error(removed, err)
	}
	if got := w.do(t, http.MethodDelete, "/v1/suppressions?domain=example.net", adminToken,
		""); got.body != `{"deleted":true}` {
		t.Error(got.status, got.body)
	}
	if list, err := api.GetBlocklist.Do(ctx, w.client, api.BlocklistQuery{}, "News"); err != nil ||
		list.Total != 1 || list.Addresses[0].Recipient != "ann@example.com" {
		t.Error(list, err)
	}
	if gone, err := api.RemoveFromBlocklist.Do(ctx, w.client, api.BlocklistRemoval{Recipient: "ann@example.com"},
		"news"); err != nil || !gone.Deleted {
		t.Error(gone, err)
	}
}

func TestWrongSuppressionsAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, c := range []struct{ name, method, path, body, key string }{
		{"nothing", "POST", "/v1/suppressions", `{}`, "email"},
		{"no address", "POST", "/v1/suppressions", `{"email":"ann"}`, "email"},
		{"a reason of one's own", "POST", "/v1/suppressions", `{"email":"ann@example.com","reason":"dislike"}`,
			"reason"},
		{"one and many", "POST", "/v1/suppressions",
			`{"email":"ann@example.com","suppressions":[{"email":"a@example.com"}]}`, "suppressions"},
		{"one of many", "POST", "/v1/suppressions", `{"suppressions":[{"email":"a@example.com"},{"domain":"a b"}]}`,
			"suppressions[1].domain"},
		{"too many", "POST", "/v1/suppressions", `{"suppressions":[` + strings.Repeat(`{"email":"a@example.com"},`,
			1000) + `{"email":"a@example.com"}]}`, "suppressions"},
		{"an address that is none", "GET", "/v1/suppressions?address=ann", "", "address"},
		{"a cursor of nothing", "GET", "/v1/suppressions?cursor=x", "", "cursor"},
		{"two scopes", "GET", "/v1/suppressions?scope=instance&list=news", "", "scope"},
		{"remove nothing", "DELETE", "/v1/suppressions", "", "email"},
		{"check nothing", "GET", "/v1/suppressions/check", "", "email"},
		{"check what is none", "GET", "/v1/suppressions/check?email=ann", "", "email"},
		{"an id of few letters", "POST", "/v1/suppressions/import?id=x", "", "id"},
		{"block nobody", "POST", "/v1/blocklist/news", `{"recipient":"ann"}`, "recipient"},
		{"a list of no name", "POST", "/v1/blocklist/a%20b", `{"account":"shop","recipient":"ann@example.com"}`,
			"listId"},
		{"a list of nobody", "POST", "/v1/suppressions", `{"email":"ann@example.com","list":"news"}`, "account"},
		{"block on a list of nobody", "POST", "/v1/blocklist/news", `{"recipient":"ann@example.com"}`, "account"},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := []string(nil)
			if strings.Contains(c.path, "import") {
				headers = []string{"Content-Type", "text/csv"}
			}
			got := w.do(t, c.method, c.path, adminToken, c.body, headers...)
			if got.status != 400 || !slices.ContainsFunc(got.problem.Fields, func(f api.ProblemField) bool {
				return f.Key == c.key
			}) {
				t.Errorf("%d %s, want %s", got.status, got.body, c.key)
			}
		})
	}
	if got := w.do(t, "POST", "/v1/suppressions/import", adminToken,
		"{}"); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("JSON as a file: %d %s", got.status, got.body)
	}
}

// TestAllFaultsOfASuppressionAreToldAtOnce: the JSON's errors and the ones that only the store can find.
func TestAllFaultsOfASuppressionAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const (
		noAddress = "is not a valid email address: it has no @"
		reasons   = "must be one of [unsubscribe, hard_bounce, spam_report, manual]"
	)
	for _, c := range []struct {
		name, path, body string
		want             []string
	}{
		{"address and reason", "", `{"email":"ann","reason":"dislike"}`,
			[]string{"reason " + reasons, "email " + noAddress}},
		{"the query too", "?x=1", `{"email":"ann"}`, []string{"x is not allowed", "email " + noAddress}},
		{"scope and source", "", `{"domain":"a b","list":"news","source":"123456789012345678901"}`,
			[]string{
				"source length must be less than or equal to 20 characters long", "domain is not a valid domain",
				"account is required with a list, for each account has its own lists"}},
		{"of many", "", `{"suppressions":[{"email":"ann","reason":"dislike"},{"email":"ben@example.com"},{"domain":"a b","foo":1}]}`, []string{
			"suppressions[0].reason " + reasons, "suppressions[2].foo is not allowed", "suppressions[0].email " +
				noAddress, "suppressions[2].domain is not a valid domain"}},
		{"one and many", "", `{"email":"ann@example.com","foo":1,"suppressions":[{"email":"a@example.com"}]}`,
			[]string{
				"foo is not allowed", "suppressions can't be combined with other fields"}},
		{"what could not be read is told once", "", `{"email":5,"reason":"dislike"}`,
			[]string{"email must be a string", "reason " + reasons}},
		{"a domain that could not be read", "", `{"domain":5}`, []string{"domain must be a string"}},
		{"an entry that could not be read", "", `{"suppressions":[5,{"email":"ann"}]}`,
			[]string{"suppressions[0] must be of type object", "suppressions[1].email " + noAddress}},
		{"none that could be read", "", `{"suppressions":5}`, []string{"suppressions must be an array"}},
		{"two of a kind", "", `{"email":"ann@example.com","domain":"example.com"}`,
			[]string{"domain can't be given together with an address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range w.do(t, "POST", "/v1/suppressions"+c.path, adminToken, c.body).problem.Fields {
				got = append(got, f.Key+" "+strings.TrimPrefix(f.Message, `"`+f.Key+`" `))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if page, err := api.ListSuppressions.Do(t.Context(), w.client, api.SuppressionQuery{}); err != nil ||
		page.Total != 0 {
		t.Errorf("something was added: %+v, %v", page, err)
	}
}

// TestABoundTokenHasItsOwnSuppressions: what holds for everybody is not its to see or to change.
func TestABoundTokenHasItsOwnSuppressions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, list := t.Context(), w.parts.Suppressions
	of := func(account string) api.SuppressionScope { return api.SuppressionScope{Account: account} }
	seed := []api.NewSuppression{
		{Email: "b@example.com"}, {Email: "b@example.com", SuppressionScope: of("acme")},
		{Email: "b@example.com", SuppressionScope: of("other")},
	}
	if _, err := list.Put(ctx, "", seed); err != nil {
		t.Fatal(err)
	}
	for id, account := range map[string]string{"import-1": "acme", "import-2": "other"} {
		if _, err := list.Import(ctx, account, strings.NewReader("c@example.com\n"), api.SuppressionImportOptions{
			ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // in the answer
	}{
		{"GET", "/v1/suppressions", "", 200, `"total":2`},
		{"GET", "/v1/suppressions?account=other", "", 403, ""},
		{"GET", "/v1/suppressions/check?email=b@example.com", "", 200, `"account":"acme"`},
		{"POST", "/v1/suppressions", `{"email":"a@example.com"}`, 200, `"added":1`},
		{"POST", "/v1/suppressions", `{"email":"a@example.com","account":"other"}`, 403, ""},
		{"DELETE", "/v1/suppressions?email=a@example.com", "", 200, `"deleted":true`},
		{"DELETE", "/v1/suppressions?email=a@example.com&account=other", "", 403, ""},
		{"GET", "/v1/suppressions/imports/import-1", "", 200, `"added":1`},
		{"GET", "/v1/suppressions/imports/import-2", "", 404, ""},
		{"GET", "/v1/suppressions/export", "", 200, "b@example.com"},
		{"GET", "/v1/blocklist/news", "", 404, ""},
		{"POST", "/v1/blocklist/news", `{"recipient":"a@example.com"}`, 200, `"added":true`},
		{"POST", "/v1/blocklist/news", `{"account":"other","recipient":"a@example.com"}`, 403, ""},
		{"GET", "/v1/blocklists", "", 200, `"total":1`},
		{"GET", "/v1/blocklist/news", "", 200, `"account":"acme"`},
		{"GET", "/v1/blocklist/news?account=other", "", 403, ""},
		{"DELETE", "/v1/blocklist/news?account=other&recipient=a@example.com", "", 403, ""},
		{"DELETE", "/v1/blocklist/news?recipient=a@example.com", "", 200, `"deleted":true`},
	} {
		got := w.do(t, c.method, c.path, boundToken, c.body)
		if got.status != c.status || !strings.Contains(got.body, c.want) || strings.Contains(got.body, "other") {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	if _, err := api.ImportSuppressions.Do(ctx, w.as(boundToken), strings.NewReader("a@example.com\n"),
		api.SuppressionImportOptions{}); err != nil {
		t.Error(err)
	}
	for account, want := range map[string]int{"acme": 3, "other": 2} {
		if page, err := list.Query(ctx, "", api.SuppressionQuery{Account: account}); err != nil ||
			page.Total != want {
			t.Errorf("%s has %d, want %d: %v", account, page.Total, want, err)
		}
	}
	if page, err := list.Query(ctx, "", api.SuppressionQuery{Scope: "instance"}); err != nil || page.Total != 1 {
		t.Errorf("the instance has %d: %v", page.Total, err)
	}
}

// TestAFileGoesInAndOut: sent in pieces, without a length. Its progress is read in the meantime.
func TestAFileGoesInAndOut(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	// the checked one reads a body before it sends it
	direct := &http.Client{Transport: w.http.Transport.(*checked).inner}
	go func() {
		told, err := api.ImportSuppressions.Do(ctx, api.NewClient(w.URL(), adminToken, direct), reader,
			api.SuppressionImportOptions{ID: "import-42", Reason: "unsubscribe"})
		if err == nil && (told.State != "done" || told.Added != 4999 || told.Bad != 2 ||
			told.Errors[0].Line != 1002) {
			err = fmt.Errorf("%+v", told)
		}
		done <- err
	}()
	send := func(from, to int) {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "a%d@example.com\n", i)
		}
		if _, err := io.WriteString(writer, b.String()); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(writer, "email\n")
	send(0, 1000)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		told, err := api.GetSuppressionImport.Do(ctx, w.client, "import-42")
		if err == nil && told.State == "running" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(told, err)
		}
	}
	_, _ = io.WriteString(writer, "nobody\n@\n")
	send(1000, 4999)
	_ = writer.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := api.ExportSuppressions.Do(ctx, w.client, api.SuppressionQuery{Reason: "unsubscribe"},
		&file); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(file.String(), "\n"); n != 5000 ||
		!strings.HasPrefix(file.String(), "address,domain,reason,") {
		t.Errorf("%d lines, %.60s", n, file.String())
	}
}

func TestAnExportThatFails(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var many []api.NewSuppression
	for i := range 6000 {
		many = append(many, api.NewSuppression{Email: fmt.Sprintf("a%d@example.com", i)})
	}
	if _, err := w.parts.Suppressions.Put(t.Context(), "", many); err != nil {
		t.Fatal(err)
	}
	commands := testredis.CountCommands(w.parts.db)
	if err := api.ExportSuppressions.Do(t.Context(), w.client, api.SuppressionQuery{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	w.parts.failAfter(int(commands.Sent())-1, errors.New("Redis went away"))
	err := api.ExportSuppressions.Do(t.Context(), w.client, api.SuppressionQuery{}, io.Discard)
	if _, refused := errors.AsType[*api.Failure](err); err == nil || refused {
		t.Errorf("one that breaks off looks whole, or refused: %v", err)
	}
	w.parts.failWith(fault.New(fault.Unavailable, "RedisAway", "not now"))
	err = api.ExportSuppressions.Do(t.Context(), w.client, api.SuppressionQuery{}, io.Discard)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one that can't begin: %v", err)
	}
}
