package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
)

// TestListsOverTheAPI goes once through all that can be done with lists.
func TestListsOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	made, err := api.CreateList.Do(ctx, w.client, api.List{Name: "Weekly news!", Public: true,
		PendingRetention: "48h", Confirmation: &api.ListMail{Subject: "Please confirm", Text: "{{confirmUrl}}"}})
	if err != nil {
		t.Fatal(err)
	}
	want := api.ListInfo{List: api.List{ListID: "weekly-news", Account: "default", Name: "Weekly news!",
		OptIn: "double", Public: true, PendingRetention: "48h",
		Confirmation: &api.ListMail{Subject: "Please confirm", Text: "{{confirmUrl}}"}}, Version: 1}
	times := cmpopts.IgnoreFields(api.ListInfo{}, "Created", "Updated")
	if diff := cmp.Diff(want, made, times); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = api.CreateList.Do(ctx, w.client, api.List{ListID: "weekly-news", Name: "Another"})
	if codeOf(err) != "ListExists" {
		t.Errorf("a second list of this id: %v", err)
	}
	changed, err := api.UpdateList.Do(ctx, w.client, api.ListPatch{Version: new(1), OptIn: new("single"),
		Confirmation: &api.ListMail{}}, "weekly-news")
	want.OptIn, want.Confirmation, want.Version = "single", nil, 2
	if diff := cmp.Diff(want, changed, times); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err = api.UpdateList.Do(ctx, w.client, api.ListPatch{Version: new(1)}, "weekly-news"); codeOf(
		err) != "ListChanged" {
		t.Errorf("a change of an old version: %v", err)
	}
	w.parts.subscriber(t, "default", "ann@example.com", "weekly-news")
	got, err := api.GetList.Do(ctx, w.client, "weekly-news")
	want.Counts.Subscribed = 1
	if diff := cmp.Diff(want, got, times); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	w.parts.account(t, "acme")
	w.parts.list(t, "acme", "offers")
	for q, ids := range map[api.ListQuery]string{
		{}: "offers weekly-news", {Account: "acme"}: "offers", {Account: "nobody"}: "",
		{PageQuery: api.PageQuery{Page: 1, PageSize: 1}}: "weekly-news",
	} {
		page, err := api.ListLists.Do(ctx, w.client, q)
		var found []string
		for _, l := range page.Lists {
			found = append(found, l.ListID)
		}
		if err != nil || strings.Join(found, " ") != ids {
			t.Errorf("%+v lists %q, want %q: %v", q, found, ids, err)
		}
	}
	for _, want := range []bool{true, false} {
		if gone, err := api.DeleteList.Do(ctx, w.client, "weekly-news"); err != nil || gone.Deleted != want {
			t.Errorf("deleted: %v, want %v: %v", gone.Deleted, want, err)
		}
	}
	if _, err := api.GetList.Do(ctx, w.client, "weekly-news"); codeOf(err) != "ListNotFound" {
		t.Errorf("a deleted list: %v", err)
	}
}

// TestSubscribersOverTheAPI goes once through all that can be done with subscribers.
func TestSubscribersOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	w.parts.account(t, "acme")
	w.parts.list(t, "acme", "news")
	if _, err := api.CreateList.Do(ctx, w.client, api.List{ListID: "offers", Name: "Offers",
		Account: "acme"}); err != nil {
		t.Fatal(err)
	}
	consent := &api.Consent{Source: "checkout", Text: "Send me offers", IP: "192.0.2.77"}
	ann, err := api.CreateSubscriber.Do(ctx, w.client, api.SubscriberRequest{Account: "acme",
		Email: "Ann@Example.net", Name: "Ann", Locale: "de-at", TZ: "Europe/Vienna", Tags: []string{"beta"},
		Attributes: map[string]any{"plan": "pro", "seats": 3, "trial": false, "teams": []string{"a", "b"}},
		Lists:      []api.SubscriptionRequest{{ListID: "news"}, {ListID: "offers", State: "subscribed"}},
		Consent:    consent})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Subscriber{ID: ann.ID, Account: "acme", Email: "Ann@example.net", Name: "Ann", Locale: "de-AT",
		TZ: "Europe/Vienna", Tags: []string{"beta"}, Version: 1,
		Attributes: map[string]any{"plan": "pro", "seats": 3.0, "trial": false, "teams": []any{"a", "b"}},
		Lists: []api.Subscription{{ListID: "news", State: "subscribed", Source: "checkout"},
			{ListID: "offers", State: "subscribed", Source: "checkout"}}}
	times := []cmp.Option{cmpopts.IgnoreFields(api.Subscriber{}, "Created", "Updated"),
		cmpopts.IgnoreFields(api.Subscription{}, "Since")}
	if diff := cmp.Diff(want, ann, times...); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	of := api.SubscriberAccount{Account: "acme"}
	for _, name := range []string{ann.ID, "ANN@example.net"} {
		got, err := api.GetSubscriber.Do(ctx, w.client, of, name)
		if diff := cmp.Diff(want, got, times...); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
	_, err = api.CreateSubscriber.Do(ctx, w.client, api.SubscriberRequest{Account: "acme",
		Email: "ann@example.net"})
	if codeOf(err) != "SubscriberExists" {
		t.Errorf("a second one of this address: %v", err)
	}
	changed, err := api.UpdateSubscriber.Do(ctx, w.client, api.SubscriberPatch{Account: "acme",
		Email: new("ann@example.org"), Tags: &[]string{}, Version: new(1),
		Attributes: map[string]any{"plan": nil, "seats": 4}}, ann.ID)
	want.Email, want.Tags, want.Version = "ann@example.org", []string{}, 2
	delete(want.Attributes, "plan")
	want.Attributes["seats"] = 4.0
	if diff := cmp.Diff(want, changed, times...); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	_, err = api.UpdateSubscriber.Do(ctx, w.client, api.SubscriberPatch{Account: "acme", Version: new(1)},
		ann.ID)
	if codeOf(err) != "SubscriberChanged" {
		t.Errorf("a change of an old version: %v", err)
	}
	w.leavesAndComesBack(t, of, ann.ID)
	for _, want := range []bool{true, false} {
		gone, err := api.DeleteSubscriber.Do(ctx, w.client, of, "ann@example.org")
		if err != nil || gone.Deleted != want {
			t.Errorf("deleted: %v, want %v: %v", gone.Deleted, want, err)
		}
	}
	if _, err := api.GetSubscriber.Do(ctx, w.client, of, ann.ID); codeOf(err) != "SubscriberNotFound" {
		t.Errorf("a deleted subscriber: %v", err)
	}
}

// leavesAndComesBack takes a subscriber off the list news and puts it on again. Each step has its proof.
func (w *world) leavesAndComesBack(t *testing.T, of api.SubscriberAccount, id string) {
	t.Helper()
	ctx := t.Context()
	for _, want := range []bool{true, false} {
		left, err := api.LeaveList.Do(ctx, w.client, of, id, "news")
		if err != nil || left != (api.ListLeft{Deleted: want, ListID: "news"}) {
			t.Errorf("left: %+v, want %v: %v", left, want, err)
		}
	}
	req := api.SubscribeRequest{Account: of.Account, Lists: []api.SubscriptionRequest{{ListID: "news"}}}
	again, err := api.Subscribe.Do(ctx, w.client, req, id)
	if err != nil || len(again.Skipped) != 1 || again.Skipped[0] != (api.SkippedList{ListID: "news",
		Reason: "unsubscribe"}) && again.Skipped[0] != (api.SkippedList{ListID: "news", Reason: "left"}) {
		t.Errorf("who left was subscribed without consent: %+v, %v", again, err)
	}
	req.Resubscribe, req.Consent = true, &api.Consent{Source: "phone", IP: "2001:db8:1:2::3"}
	again, err = api.Subscribe.Do(ctx, w.client, req, id)
	if err != nil || len(again.Skipped) > 0 {
		t.Errorf("who left could not come back: %+v, %v", again, err)
	}
	history, err := api.ListConsents.Do(ctx, w.client, of, id)
	var steps []string
	for _, e := range history.Consents {
		steps = append(steps, strings.TrimSpace(fmt.Sprintln(e.ListID, e.State, e.Source, e.Text, e.Network,
			e.Current)))
	}
	slices.Sort(steps) // all are of one second
	want := []string{"news left api   false", "news subscribed checkout Send me offers 192.0.2.0/24 false",
		"news subscribed phone  2001:db8:1::/48 true",
		"offers subscribed checkout Send me offers 192.0.2.0/24 true"}
	if diff := cmp.Diff(want, steps); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestSubscribersAreFound(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	w.parts.list(t, "default", "news")
	before := time.Now().Add(-time.Minute)
	for _, email := range []string{"ann@example.com", "ben@example.com", "cat@example.org"} {
		w.parts.subscriber(t, "default", email, "news")
	}
	w.parts.subscriber(t, "default", "dan@example.org")
	_, err := api.LeaveList.Do(ctx, w.client, api.SubscriberAccount{}, "ben@example.com", "news")
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.UpdateSubscriber.Do(ctx, w.client, api.SubscriberPatch{Name: new("Catherine"),
		Tags: &[]string{"vip"}}, "cat@example.org")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		q    api.SubscriberQuery
		want string
	}{
		{api.SubscriberQuery{}, "ann ben cat dan"},
		{api.SubscriberQuery{CursorQuery: api.CursorQuery{PageSize: 3}}, "ann ben cat dan"},
		{api.SubscriberQuery{ListID: "news"}, "ann ben cat"},
		{api.SubscriberQuery{ListID: "news", State: "left"}, "ben"},
		{api.SubscriberQuery{Tag: "vip"}, "cat"}, {api.SubscriberQuery{Search: "cathERINE"}, "cat"},
		{api.SubscriberQuery{Search: "example.org"}, "cat dan"},
		{api.SubscriberQuery{Search: "Dan@example.org"}, "dan"},
		{api.SubscriberQuery{CreatedAfter: before}, "ann ben cat dan"},
		{api.SubscriberQuery{CreatedBefore: before}, ""},
	} {
		var found []string
		for s, err := range api.All(ctx, w.client, api.ListSubscribers, c.q) {
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(s.Email, "@")
			found = append(found, name)
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%+v finds %q, want %q", c.q, got, c.want)
		}
	}
	page, err := api.ListSubscribers.Do(ctx, w.client, api.SubscriberQuery{
		CursorQuery: api.CursorQuery{PageSize: 3}})
	if err != nil || page.Total == nil || *page.Total != 4 || page.Cursor == "" || len(page.Subscribers) != 3 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestWrongListsAndSubscribersAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.account(t, "acme")
	w.parts.subscriber(t, "default", "ann@example.com")
	if _, err := api.CreateList.Do(t.Context(), w.client, api.List{ListID: "news", Name: "News"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, method, path, body, key string }{
		{"no name", "POST", "/v1/lists", `{}`, "name"},
		{"an id with a dot", "POST", "/v1/lists", `{"name":"N","listId":"a.b"}`, "listId"},
		{"an id that is too long", "POST", "/v1/lists", `{"name":"N","listId":"` + strings.Repeat("a", 64) + `"}`,
			"listId"},
		{"an opt-in there isn't", "POST", "/v1/lists", `{"name":"N","optIn":"triple"}`, "optIn"},
		{"a flag that is none", "POST", "/v1/lists", `{"name":"N","public":"yes"}`, "public"},
		{"an hour is the least", "POST", "/v1/lists", `{"name":"N","pendingRetention":"5m"}`, "pendingRetention"},
		{"a mail without text", "POST", "/v1/lists", `{"name":"N","welcome":{"subject":"S"}}`, "welcome.text"},
		{"two accounts", "POST", "/v1/lists?account=acme", `{"name":"N","account":"default"}`, "account"},
		{"a filter of one's own", "GET", "/v1/lists?state=left", "", "state"},
		{"change to nothing", "PUT", "/v1/lists/news", `{"name":""}`, "name"},
		{"the id can't change", "PUT", "/v1/lists/news", `{"listId":"other"}`, "listId"},
		{"no address", "POST", "/v1/subscribers", `{}`, "email"},
		{"half an address", "POST", "/v1/subscribers", `{"email":"ann@"}`, "email"},
		{"a language there isn't", "POST", "/v1/subscribers", `{"email":"b@example.com","locale":"x y"}`, "locale"},
		{"an offset is no zone", "POST", "/v1/subscribers", `{"email":"b@example.com","tz":"+02:00"}`, "tz"},
		{"an empty tag", "POST", "/v1/subscribers", `{"email":"b@example.com","tags":["a"," "]}`, "tags[1]"},
		{"attributes of attributes", "POST", "/v1/subscribers",
			`{"email":"b@example.com","attributes":{"a":{"b":1}}}`, "attributes.a"},
		{"attributes that are a list", "POST", "/v1/subscribers", `{"email":"b@example.com","attributes":[]}`,
			"attributes"},
		{"a number beyond numbers", "POST", "/v1/subscribers", `{"email":"b@example.com","attributes":{"a":1e999}}`,
			"attributes.a"},
		{"an attribute without a name", "POST", "/v1/subscribers", `{"email":"b@example.com","attributes":{"":1}}`,
			"attributes"},
		{"too many bytes", "POST", "/v1/subscribers", `{"email":"b@example.com","attributes":{"a":"` +
			strings.Repeat("a", 5000) + `"}}`, "attributes"},
		{"no list", "POST", "/v1/subscribers", `{"email":"b@example.com","lists":[{}]}`, "lists[0].listId"},
		{"a state that none asks for", "POST", "/v1/subscribers",
			`{"email":"b@example.com","lists":[{"listId":"news","state":"left"}]}`, "lists[0].state"},
		{"subscribed without consent", "POST", "/v1/subscribers",
			`{"email":"b@example.com","lists":[{"listId":"news","state":"subscribed"}]}`, "lists[0].state"},
		{"a consent from nowhere", "POST", "/v1/subscribers", `{"email":"b@example.com","consent":{}}`,
			"consent.source"},
		{"an address that is none", "POST", "/v1/subscribers",
			`{"email":"b@example.com","consent":{"source":"x","ip":"here"}}`, "consent.ip"},
		{"a state without a list", "GET", "/v1/subscribers?state=left", "", "listId"},
		{"a state there isn't", "GET", "/v1/subscribers?listId=news&state=gone", "", "state"},
		{"a time that is none", "GET", "/v1/subscribers?createdAfter=soon", "", "createdAfter"},
		{"a cursor of nothing", "GET", "/v1/subscribers?cursor=%21", "", "cursor"},
		{"too many rows", "GET", "/v1/subscribers?pageSize=1001", "", "pageSize"},
		{"change the address to none", "PUT", "/v1/subscribers/ann@example.com", `{"email":"x"}`, "email"},
		{"two accounts of a subscriber", "PUT", "/v1/subscribers/ann@example.com?account=acme",
			`{"account":"default"}`, "account"},
		{"two accounts of a subscription", "POST", "/v1/subscribers/ann@example.com/lists?account=acme",
			`{"account":"default","lists":[{"listId":"news"}]}`, "account"},
		{"two accounts of a new subscriber", "POST", "/v1/subscribers?account=acme",
			`{"account":"default","email":"b@example.com"}`, "account"},
		{"subscribe to nothing", "POST", "/v1/subscribers/ann@example.com/lists", `{"lists":[]}`, "lists"},
		{"subscribe twice", "POST", "/v1/subscribers/ann@example.com/lists",
			`{"lists":[{"listId":"news"},{"listId":"news"}]}`, "lists[1].listId"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.do(t, c.method, c.path, adminToken, c.body)
			if got.status != http.StatusBadRequest || !slices.ContainsFunc(got.problem.Fields,
				func(f api.ProblemField) bool { return f.Key == c.key }) {
				t.Errorf("%d %s, want %s", got.status, got.body, c.key)
			}
		})
	}
	page, err := api.ListSubscribers.Do(t.Context(), w.client, api.SubscriberQuery{})
	if err != nil || len(page.Subscribers) != 1 {
		t.Errorf("something was stored all the same: %+v, %v", page, err)
	}
}

// TestAccountsDoNotSeeEachOthersLists: two accounts that distrust each other, on every route. What is the
// other's does not exist.
func TestAccountsDoNotSeeEachOthersLists(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for _, account := range []string{"acme", "other"} {
		w.parts.account(t, account)
		w.parts.token(t, account, api.TokenRequest{Account: account, Scopes: []api.Scope{api.ScopeLists}})
		w.parts.list(t, account, account+"-news")
		w.parts.subscriber(t, account, "shared@example.com", account+"-news")
	}
	secret := w.parts.subscriber(t, "acme", "secret@example.com", "acme-news")
	state := func() (string, string) {
		list, err := api.GetList.Do(ctx, w.as("acme"), "acme-news")
		if err != nil {
			t.Fatal(err)
		}
		sub, err := api.GetSubscriber.Do(ctx, w.as("acme"), api.SubscriberAccount{}, "secret@example.com")
		if err != nil {
			t.Fatal(err)
		}
		return marshal(t, list), marshal(t, sub)
	}
	list, sub := state()
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/lists/acme-news", "", 404}, {"PUT", "/v1/lists/acme-news", `{"name":"Mine"}`, 404},
		{"DELETE", "/v1/lists/acme-news", "", 404},
		{"POST", "/v1/lists", `{"name":"x","account":"acme"}`, 403},
		{"POST", "/v1/lists?account=acme", `{"name":"x"}`, 403}, {"GET", "/v1/lists?account=acme", "", 403},
		{"GET", "/v1/subscribers?account=acme", "", 403}, {"GET", "/v1/subscribers?listId=acme-news", "", 404},
		{"POST", "/v1/subscribers", `{"email":"x@example.com","account":"acme"}`, 403},
		{"POST", "/v1/subscribers?account=acme", `{"email":"x@example.com"}`, 403},
		{"POST", "/v1/subscribers", `{"email":"x@example.com","lists":[{"listId":"acme-news"}]}`, 404},
		{"GET", "/v1/subscribers/secret@example.com", "", 404}, {"GET", "/v1/subscribers/" + secret, "", 404},
		{"GET", "/v1/subscribers/secret@example.com?account=acme", "", 403},
		{"PUT", "/v1/subscribers/secret@example.com", `{"name":"x"}`, 404},
		{"PUT", "/v1/subscribers/secret@example.com", `{"name":"x","account":"acme"}`, 403},
		{"DELETE", "/v1/subscribers/secret@example.com", "", 200}, // {"deleted":false}
		{"DELETE", "/v1/subscribers/secret@example.com?account=acme", "", 403},
		{"POST", "/v1/subscribers/secret@example.com/lists", `{"lists":[{"listId":"acme-news"}]}`, 404},
		{"POST", "/v1/subscribers/secret@example.com/lists", `{"lists":[{"listId":"other-news"}]}`, 404},
		{"POST", "/v1/subscribers/shared@example.com/lists", `{"lists":[{"listId":"acme-news"}]}`, 404},
		{"DELETE", "/v1/subscribers/secret@example.com/lists/acme-news", "", 404},
		{"DELETE", "/v1/subscribers/shared@example.com/lists/acme-news", "", 404},
		{"DELETE", "/v1/subscribers/secret@example.com/lists/other-news", "", 404},
		{"GET", "/v1/subscribers/secret@example.com/consents", "", 404},
		{"GET", "/v1/subscribers/secret@example.com/consents?account=acme", "", 403},
	} {
		got := w.do(t, c.method, c.path, "other", c.body)
		none := strings.NewReplacer("acme-news", "no-list", "acme", "nobody", "secret@", "none@", secret, "szz")
		unknown := w.do(t, c.method, none.Replace(c.path), "other", none.Replace(c.body))
		if a, b := none.Replace(same(got)), same(unknown); got.status != c.status || a != b {
			t.Errorf("%s %s: %d %s, want %d as of what does not exist: %s", c.method, c.path, got.status, a,
				c.status, b)
		}
	}
	if l, s := state(); l != list || s != sub {
		t.Errorf("changed by another account:\n%s\n%s\nnow\n%s\n%s", list, sub, l, s)
	}
	lists, err := api.ListLists.Do(ctx, w.as("other"), api.ListQuery{})
	if err != nil || len(lists.Lists) != 1 || lists.Total != 1 || lists.Lists[0].ListID != "other-news" {
		t.Errorf("lists of the other account: %+v, %v", lists, err)
	}
	page, err := api.ListSubscribers.Do(ctx, w.as("other"), api.SubscriberQuery{})
	if err != nil || len(page.Subscribers) != 1 || page.Subscribers[0].Account != "other" {
		t.Errorf("subscribers of the other account: %+v, %v", page, err)
	}
}

// TestAuditLogNamesNoSubscribers: who wants to be forgotten is not in entries that can't be changed.
func TestAuditLogNamesNoSubscribers(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	w.parts.list(t, "default", "news")
	ann, err := api.CreateSubscriber.Do(ctx, w.client, api.SubscriberRequest{Email: "ann@example.com",
		Name: "Ann Miller", Attributes: map[string]any{"plan": "pro"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.Subscribe.Do(ctx, w.client, api.SubscribeRequest{Lists: []api.SubscriptionRequest{
		{ListID: "news"}}}, "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.DeleteSubscriber.Do(ctx, w.client, api.SubscriberAccount{}, "ann@example.com")
	if err != nil {
		t.Fatal(err)
	}
	page, err := api.ListAudit.Do(ctx, w.client, api.AuditQuery{Kind: "subscriber", ID: ann.ID})
	if err != nil || len(page.Entries) < 3 {
		t.Fatalf("%+v, %v", page, err)
	}
	all := w.do(t, http.MethodGet, "/v1/audit", adminToken, "").body
	for _, word := range []string{"ann@example.com", "Miller", "pro\""} {
		if strings.Contains(all, word) {
			t.Errorf("the audit log has %s: %s", word, all)
		}
	}
	for _, word := range []string{`"account":"default"`, `"field":"lists[0].listId","after":"news"`} {
		if !strings.Contains(all, word) {
			t.Errorf("the audit log does not have %s: %s", word, all)
		}
	}
}

// codeOf returns the code of a refusal; empty for other errors.
func codeOf(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		return f.Problem.Code
	}
	return ""
}
