package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
)

var leaveLink = regexp.MustCompile(`https://mail\.example\.com/unsubscribe\?t=[\w-]+`)

// TestSubscriptionsAreTold: webhooks get one event about someone who confirms by a link, unsubscribes by an
// email, or is taken off a list by a program. Endpoints of other accounts get nothing.
func TestSubscriptionsAreTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]map[string]string{} // by endpoint and id of the event
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct {
			EventID, Account string
			Event            event.Type
			Data             event.SubscriptionChange
		}
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		if e.Data.Subscriber == "" {
			return // another type's, for the endpoint that gets all
		}
		mu.Lock()
		defer mu.Unlock()
		if got[r.URL.Path] == nil {
			got[r.URL.Path] = map[string]string{}
		}
		got[r.URL.Path][e.EventID] = strings.Join([]string{string(e.Event), e.Account, e.Data.Email, e.Data.ListID,
			e.Data.Reason}, " ")
	}))
	t.Cleanup(hooks.Close)
	told := func(path string) []string {
		mu.Lock()
		defer mu.Unlock()
		var all []string
		for _, one := range got[path] {
			all = append(all, one)
		}
		slices.Sort(all)
		return all
	}
	a, client, relay := startPublic(t, map[string]string{"webhooks.allowPrivate": "true"})
	_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: "other", Email: "other@example.com",
		SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []api.EndpointRequest{
		{URL: hooks.URL + "/all"}, {URL: hooks.URL + "/confirmed", Events: []string{"subscriberConfirmed"}},
		{URL: hooks.URL + "/own", Events: []string{"subscriberLeft"}, Accounts: []string{"default"}},
		{URL: hooks.URL + "/other", Accounts: []string{"other"}},
	} {
		if _, err := api.CreateEndpoint.Do(t.Context(), client, r); err != nil {
			t.Fatal(err)
		}
	}

	apptest.AsRecipient(t, a, "POST", "/subscribers", formOf("ann@example.net"))
	token := strings.TrimPrefix(linkIn(t, relay.Wait(1)[0]), "https://mail.example.com/subscribers/confirm?t=")
	for range 2 {
		if status, _ := apptest.AsRecipient(t, a, "POST", "/subscribers/confirm", "t="+token); status != 200 {
			t.Fatalf("the button: %d", status)
		}
	}
	link := leaveLink.FindString(apptest.Header(t, relay.Wait(2)[1], "List-Unsubscribe"))
	for range 2 {
		if status, page := apptest.AsRecipient(t, a, "POST", link, "List-Unsubscribe=One-Click"); status != 200 {
			t.Fatalf("%s: %d\n%s", link, status, page)
		}
	}
	apptest.People(t, client, "weekly", "bo@example.net")
	for range 2 {
		if _, err := api.LeaveList.Do(t.Context(), client, api.SubscriberAccount{}, "bo@example.net",
			"weekly"); err != nil {
			t.Fatal(err)
		}
	}

	confirmed := "subscriberConfirmed default ann@example.net weekly form"
	left := []string{"subscriberLeft default ann@example.net weekly unsubscribe",
		"subscriberLeft default bo@example.net weekly api"}
	for path, want := range map[string][]string{"/all": append([]string{confirmed}, left...),
		"/confirmed": {confirmed}, "/own": left} {
		apptest.Eventually(t, path+" is told", func() bool { return len(told(path)) >= len(want) })
		if diff := cmp.Diff(want, told(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if extra := told("/other"); len(extra) > 0 {
		t.Errorf("another account was told: %v", extra)
	}
}
