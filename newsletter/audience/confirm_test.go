package audience_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox/suppression"
)

// asking is an audience that sends emails, which are kept.
type asking struct {
	*bench
	*audience.Confirmations
	mu    sync.Mutex
	mails []api.SubmitRequest
	keys  map[string]bool
	url   string
	fail  error
}

func (a *asking) submit(_ context.Context, r api.SubmitRequest) (api.SubmitAnswer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return api.SubmitAnswer{}, a.fail
	}
	if r.IdempotencyKey == "" || !a.keys[r.IdempotencyKey] {
		a.mails = append(a.mails, r)
		a.keys[r.IdempotencyKey] = true
	}
	return api.SubmitAnswer{QueueID: fmt.Sprintf("q%d", len(a.mails))}, nil
}

func setupAsking(t *testing.T) *asking {
	t.Helper()
	a := &asking{bench: on(t, testredis.New(t)), keys: map[string]bool{}, url: "https://mail.example.com/"}
	ring, err := signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("0123456789abcdef0123456789abcdef"))})
	if err != nil {
		t.Fatal(err)
	}
	a.Confirmations, err = audience.NewConfirmations(audience.ConfirmationParts{Subscribers: a.bench.Subscribers,
		Tokens: ring, Submit: a.submit, ServiceURL: func() string { return a.url }},
		audience.ConfirmationOptions{PerDay: 3})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// public makes a public list.
func (a *asking) public(t *testing.T, id, optIn string, change ...func(*api.List)) {
	t.Helper()
	l := api.List{ListID: id, Name: "The " + id, OptIn: optIn, Public: true}
	for _, c := range change {
		c(&l)
	}
	if _, err := a.bench.Lists.Create(t.Context(), "", l); err != nil {
		t.Fatal(err)
	}
}

// form sends in a form.
func (a *asking) form(t *testing.T, email string, lists ...string) {
	t.Helper()
	if err := a.Ask(t.Context(), audience.FormRequest{ListIDs: lists, Email: email, Name: "Buy now",
		RemoteAddress: "192.0.2.7"}); err != nil {
		t.Fatal(err)
	}
}

// sent returns the mails to an address.
func (a *asking) sent(email string) (found []api.SubmitRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.mails {
		if m.To[0].Address == email {
			found = append(found, m)
		}
	}
	return found
}

// link returns the token of the link in the last email to an address.
func (a *asking) link(t *testing.T, email string) string {
	t.Helper()
	mails := a.sent(email)
	if len(mails) == 0 {
		t.Fatal("no mail asks " + email)
	}
	var params struct{ ConfirmURL string }
	if err := json.Unmarshal(mails[len(mails)-1].Render.Params, &params); err != nil {
		t.Fatal(err)
	}
	token, ok := strings.CutPrefix(params.ConfirmURL, "https://mail.example.com/subscribers/confirm?t=")
	if !ok {
		t.Fatalf("a link to %q", params.ConfirmURL)
	}
	return token
}

var visit = audience.Visit{RemoteAddress: "198.51.100.77", Words: "Yes, I want mail of The weekly"}

// TestAFormIsConfirmed: a visitor is pending and gets one email, which asks. The link subscribes, leaves the
// proof, welcomes once, and does nothing more when it is followed again.
func TestAFormIsConfirmed(t *testing.T) {
	a := setupAsking(t)
	a.public(t, "weekly", "double", func(l *api.List) {
		l.Welcome = &api.ListMail{Subject: "Welcome", Text: "Hello {{subscriber.name}}"}
	})
	a.form(t, "Ann@example.net", "weekly")
	if got := a.state(t, "ann@example.net", "weekly"); got != "pending" {
		t.Fatalf("after the form: %q", got)
	}
	mails := a.sent("Ann@example.net")
	if len(mails) != 1 {
		t.Fatalf("%d mails", len(mails))
	}
	m := mails[0]
	if m.Lane != api.Transactional || m.ListID != "" || m.Account != "default" || *m.TrackOpens ||
		*m.TrackClicks {
		t.Errorf("the mail: %+v", m)
	}
	if strings.Contains(string(m.Render.Params), "Buy now") {
		t.Errorf("a stranger's words are mailed: %s", m.Render.Params)
	}
	token := a.link(t, "Ann@example.net")
	if _, err := a.Read(t.Context(), token); err != nil || a.state(t, "ann@example.net", "weekly") != "pending" {
		t.Errorf("to look changes something: %v", err)
	}
	a.Advance(time.Hour)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			got, err := a.Confirm(t.Context(), token, visit)
			if err != nil || got.Names() != "The weekly" || got.Masked() != "A…@example.net" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	if _, err := a.Confirm(t.Context(), token, visit); err != nil {
		t.Errorf("again: %v", err)
	}
	if diff := cmp.Diff(api.ListCounts{Subscribed: 1}, a.counts(t, "weekly")); diff != "" {
		t.Error(diff)
	}
	if mails := a.sent("Ann@example.net"); len(mails) != 2 || mails[1].Subject != "Welcome" ||
		mails[1].ListID != "weekly" {
		t.Errorf("the welcome: %+v", mails[1:])
	}
	history, err := a.Consents(t.Context(), "", api.SubscriberAccount{}, "ann@example.net")
	if err != nil {
		t.Fatal(err)
	}
	want := []api.ConsentEntry{
		{ListID: "weekly", State: "subscribed", Since: start.Add(time.Hour).Truncate(time.Second),
			Source: "confirmed", Text: visit.Words, Network: "198.51.100.0/24", Current: true},
		{ListID: "weekly", State: "pending", Since: start, Source: "form", Network: "192.0.2.0/24"},
	}
	if diff := cmp.Diff(want, history.Consents); diff != "" {
		t.Error(diff)
	}
}

// TestConfirmationBringsBackWhoLeft: someone who unsubscribed from the list and the account asks again and
// confirms. Until then nothing is removed.
func TestConfirmationBringsBackWhoLeft(t *testing.T) {
	a := setupAsking(t)
	for _, optIn := range []string{"double", "single"} {
		list, email := optIn, optIn+"@example.net"
		a.public(t, list, optIn)
		a.add(t, email, list)
		a.leave(t, email, list)
		_, err := a.Suppressions.Add(t.Context(), suppression.Entry{Address: email, Account: "default",
			Reason: suppression.Unsubscribe})
		if err != nil {
			t.Fatal(err)
		}
		stopped := func() bool {
			found, err := a.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: list,
				Bulk: true, Addresses: []string{email}})
			return err != nil || found[0] != nil
		}
		a.form(t, email, list)
		if got := a.state(t, email, list); got != "pending" || !stopped() {
			t.Fatalf("%s: a form alone made it %q, stopped %v", optIn, got, stopped())
		}
		if _, err := a.Confirm(t.Context(), a.link(t, email), visit); err != nil {
			t.Fatal(err)
		}
		if got := a.state(t, email, list); got != "subscribed" || stopped() {
			t.Errorf("%s: confirmed, and %q, stopped %v", optIn, got, stopped())
		}
	}
}

// TestAFormSaysNothingAboutAnAddress: the results for known, new, suppressed and caught addresses are one.
func TestAFormSaysNothingAboutAnAddress(t *testing.T) {
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	a.public(t, "single", "single")
	a.add(t, "known@example.net", "weekly", "single")
	for _, e := range []suppression.Entry{
		{Address: "bounced@example.net", Reason: suppression.HardBounce},
		{Address: "angry@example.net", Reason: suppression.SpamReport, Account: "default"},
	} {
		if _, err := a.Suppressions.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	before, err := a.Get(t.Context(), "", api.SubscriberAccount{}, "known@example.net")
	if err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"known@example.net", "new@example.net", "bounced@example.net",
		"angry@example.net"} {
		for range 5 { // even beyond the day's emails
			a.form(t, email, "weekly", "single")
			a.Advance(20 * time.Minute)
		}
	}
	if err := a.Ask(t.Context(), audience.FormRequest{ListIDs: []string{"weekly"}, Email: "robot@example.net",
		Website: "https://spam.example"}); err != nil {
		t.Error(err)
	}
	for email, want := range map[string]int{"known@example.net": 0, "new@example.net": 3,
		"bounced@example.net": 0, "angry@example.net": 0, "robot@example.net": 0} {
		if got := len(a.sent(email)); got != want {
			t.Errorf("%s: %d mails, want %d", email, got, want)
		}
	}
	after, err := a.Get(t.Context(), "", api.SubscriberAccount{}, "known@example.net")
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("a stranger changed somebody: %v %s", err, diff)
	}
	if got := a.state(t, "new@example.net", "single"); got != "subscribed" {
		t.Errorf("single opt-in: %q", got)
	}
	if _, err := a.Get(t.Context(), "", api.SubscriberAccount{}, "robot@example.net"); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("a robot is stored: %v", err)
	}
}

// TestFormsThatAreWrong get an explanation.
func TestFormsThatAreWrong(t *testing.T) {
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	a.list(t, "secret", "double")
	for name, c := range map[string]struct {
		form audience.FormRequest
		kind fault.Kind
	}{
		"no address": {audience.FormRequest{ListIDs: []string{"weekly"}, Email: "ann"}, fault.Invalid},
		"no list":    {audience.FormRequest{Email: "ann@example.net"}, fault.Invalid},
		"unknown":    {audience.FormRequest{ListIDs: []string{"none"}, Email: "ann@example.net"}, fault.NotFound},
		"not public": {audience.FormRequest{ListIDs: []string{"secret"}, Email: "ann@example.net"},
			fault.NotFound},
		"wrong zone": {audience.FormRequest{ListIDs: []string{"weekly"}, Email: "a@b.example", TZ: "CEST"},
			fault.Invalid},
		"eleven of a": {audience.FormRequest{ListIDs: slices.Repeat([]string{"weekly"}, 11)}, fault.Invalid},
	} {
		if err := a.Ask(t.Context(), c.form); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.url = ""
	err := a.Ask(t.Context(), audience.FormRequest{ListIDs: []string{"weekly"}, Email: "ann@example.net"})
	if fault.CodeOf(err) != "NoPublicUrl" || !strings.Contains(err.Error(), "serviceUrl") {
		t.Errorf("without a public address: %v", err)
	}
	_, _, err = a.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net",
		Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
	if fault.CodeOf(err) != "NoPublicUrl" {
		t.Errorf("over the API: %v", err)
	}
	if n, err := a.Count(t.Context(), "default"); n != 0 || err != nil {
		t.Errorf("%d were stored, %v", n, err)
	}
}

// TestAskedAgain: requests in a row send one email, an explicit one another, the fourth of a day none.
func TestAskedAgain(t *testing.T) {
	a := setupAsking(t)
	a.list(t, "weekly", "double")
	in := api.SubscriberRequest{Email: "ann@example.net", Upsert: true,
		Lists: []api.SubscriptionRequest{{ListID: "weekly"}}}
	for range 2 {
		if _, _, err := a.Create(t.Context(), "", in); err != nil {
			t.Fatal(err)
		}
	}
	again := func() (api.ConfirmationSent, error) {
		return a.Again(t.Context(), "", api.SubscriberAccount{}, "ann@example.net", "weekly")
	}
	if n := len(a.sent("ann@example.net")); n != 1 {
		t.Fatalf("%d mails ask, want 1", n)
	}
	for want := 2; want <= 3; want++ {
		if got, err := again(); err != nil || got != (api.ConfirmationSent{Sent: true,
			QueueID: fmt.Sprintf("q%d", want)}) {
			t.Errorf("mail %d: %+v, %v", want, got, err)
		}
	}
	if _, err := again(); fault.CodeOf(err) != "TooManyConfirmations" || !fault.Is(err, fault.Limited) {
		t.Errorf("the fourth: %v", err)
	}
	a.Advance(24 * time.Hour)
	a.fail = errors.New("no relay")
	if _, err := again(); err == nil {
		t.Error("a mail that was not sent is told as sent")
	}
	a.fail = nil
	for range 3 { // what was not sent does not count
		if _, err := again(); err != nil {
			t.Errorf("on the next day: %v", err)
		}
	}
	if _, err := a.Confirm(t.Context(), a.link(t, "ann@example.net"), visit); err != nil {
		t.Fatal(err)
	}
	if got, err := again(); err != nil || got.Sent {
		t.Errorf("who has confirmed: %+v, %v", got, err)
	}
	a.add(t, "bob@example.net")
	_, err := a.Again(t.Context(), "", api.SubscriberAccount{}, "bob@example.net", "weekly")
	if fault.CodeOf(err) != "NotSubscribed" {
		t.Errorf("who is not on the list: %v", err)
	}
}

// TestLinksThatConfirmNothing: forged ones, old ones, and those whose subscription ended.
func TestLinksThatConfirmNothing(t *testing.T) {
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	a.form(t, "ann@example.net", "weekly")
	a.form(t, "bob@example.net", "weekly")
	ann, bob := a.link(t, "ann@example.net"), a.link(t, "bob@example.net")
	for _, forged := range []string{"", ann[:len(ann)-3], "A" + ann} {
		if _, err := a.Confirm(t.Context(), forged, visit); !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", forged, err)
		}
	}
	if _, err := a.Confirm(t.Context(), bob, visit); err != nil {
		t.Fatal(err)
	}
	a.leave(t, "bob@example.net", "weekly")
	if _, err := a.Confirm(t.Context(), bob, visit); fault.CodeOf(err) != audience.CodeLinkTooOld {
		t.Errorf("an old link brings back who left: %v", err)
	}
	_, err := a.Suppressions.Add(t.Context(), suppression.Entry{Address: "ann@example.net", Account: "default",
		Reason: suppression.SpamReport})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Confirm(t.Context(), ann, visit); fault.CodeOf(err) != "AddressSuppressed" {
		t.Errorf("who complained: %v", err)
	}
	a.Advance(168 * time.Hour)
	if _, err := a.Confirm(t.Context(), ann, visit); fault.CodeOf(err) != audience.CodeLinkTooOld {
		t.Errorf("after a week: %v", err)
	}
	if got := a.counts(t, "weekly"); got != (api.ListCounts{Pending: 1, Left: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestOneMailAsksForAllLists of a form, in the language of the visitor, or as a list wants it.
func TestOneMailAsksForAllLists(t *testing.T) {
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	a.public(t, "daily", "double")
	a.public(t, "own", "double", func(l *api.List) {
		l.Confirmation = &api.ListMail{Subject: "Sure?", Text: "{{confirmUrl}}"}
	})
	err := a.Ask(t.Context(), audience.FormRequest{ListIDs: []string{"weekly", "daily", "weekly"},
		Email: "ann@example.net", Locale: "de-AT"})
	if err != nil {
		t.Fatal(err)
	}
	if mails := a.sent("ann@example.net"); len(mails) != 1 || !strings.Contains(mails[0].Subject,
		"bestätigen") ||
		mails[0].Locale != "de-AT" {
		t.Fatalf("%+v", mails)
	}
	got, err := a.Confirm(t.Context(), a.link(t, "ann@example.net"), visit)
	if err != nil || got.Names() != "The weekly, The daily" || got.Locale != "de-AT" {
		t.Errorf("%+v, %v", got, err)
	}
	if a.counts(t, "daily").Subscribed != 1 || a.counts(t, "weekly").Subscribed != 1 {
		t.Error("not all lists were confirmed")
	}
	a.form(t, "bob@example.net", "weekly", "own")
	if mails := a.sent("bob@example.net"); len(mails) != 1 || mails[0].Subject != "Sure?" {
		t.Errorf("%+v", mails)
	}
}

// TestWhoConfirmedAndLeftIsAskedAtOnce: the ten minutes between two emails are about one request that is
// repeated. The day's emails stay limited.
func TestWhoConfirmedAndLeftIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	for n := 1; n <= 3; n++ {
		for range 2 { // the second one is repeated
			a.form(t, "ann@example.net", "weekly")
			if got := len(a.sent("ann@example.net")); got != n {
				t.Fatalf("%d mails ask at round %d", got, n)
			}
		}
		if _, err := a.Confirm(t.Context(), a.link(t, "ann@example.net"), visit); err != nil {
			t.Fatal(err)
		}
		a.leave(t, "ann@example.net", "weekly")
		a.Advance(time.Minute)
	}
	a.form(t, "ann@example.net", "weekly")
	if got := len(a.sent("ann@example.net")); got != 3 {
		t.Errorf("%d mails ask in a day", got)
	}
}
