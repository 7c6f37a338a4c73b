package ui

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

// subscriptionStates are the choices of the filter.
var subscriptionStates = []string{"subscribed", "pending", "left"}

type subscribersView struct {
	Query  api.SubscriberQuery
	Page   api.SubscriberPage
	States []string
	cursorPager
}

// Any reports whether there is a filter.
func (v subscribersView) Any() bool {
	q := v.Query
	return q.Search != "" || q.ListID != "" || q.State != "" || q.Tag != "" || q.Segment != ""
}

// at returns the URL of the same rows at another cursor.
func (v subscribersView) at(cursor string) string {
	q := v.Query
	return address("/audience", values(map[string]string{"account": q.Account, "list": q.ListID,
		"state": q.State, "tag": q.Tag, "segment": q.Segment, "q": q.Search, "cursor": cursor}))
}

func (u *UI) subscribers(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	account, err := audienceOf(r, in.Get("account"))
	if err != nil {
		return err
	}
	text := func(name string) string { return strings.TrimSpace(in.Get(name)) }
	v := subscribersView{States: subscriptionStates, Query: api.SubscriberQuery{Account: account,
		ListID: text("list"), State: text("state"), Tag: text("tag"), Search: text("q"),
		Segment: text("segment"), CursorQuery: api.CursorQuery{Cursor: in.Get("cursor"), PageSize: rowsPerPage}}}
	for _, value := range []string{v.Query.ListID, v.Query.Tag, v.Query.Search, v.Query.Segment,
		v.Query.Cursor} {
		if len(value) > 512 {
			return fault.New(fault.Invalid, "", "A filter is too long")
		}
	}
	if v.Page, err = u.Audience.Page(r.Context(), boundTo(r), v.Query); err != nil {
		return err
	}
	v.cursorPager = cursors(v.at, v.Query.Cursor, v.Page.Cursor)
	return u.show(w, r, http.StatusOK, "subscribers", "Subscribers", v)
}

type subscriberView struct {
	api.Subscriber
	Consents []api.ConsentEntry
}

// At returns the path of the page.
func (v subscriberView) At() string { return subscriberPath(v.Account, v.ID) }

func subscriberPath(account, id string) string {
	return "/audience/" + url.PathEscape(account) + "/" + url.PathEscape(id)
}

// onSubscriber calls h with the subscriber in the path.
func onSubscriber(h func(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount,
	id string) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		account, err := audienceOf(r, r.PathValue("account"))
		if err != nil {
			return err
		}
		return h(w, r, api.SubscriberAccount{Account: account}, r.PathValue("id"))
	}
}

func (u *UI) subscriber(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount, id string) error {
	sub, err := u.Audience.Get(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	history, err := u.Audience.Consents(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "subscriber", sub.Email, subscriberView{Subscriber: sub,
		Consents: history.Consents})
}

func (u *UI) createSubscriber(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	account, err := audienceOf(r, f.Get("account"))
	if err != nil {
		return err
	}
	req := api.SubscriberRequest{Account: account, Email: f.Get("email"), Name: f.Get("name"),
		Consent: readConsent(f)}
	if list := strings.TrimSpace(f.Get("list")); list != "" {
		req.Lists = []api.SubscriptionRequest{{ListID: list, State: f.Get("state")}}
	}
	sub, _, err := u.Audience.Create(r.Context(), boundTo(r), req)
	if err != nil {
		return undone(w, r, address("/audience", values(map[string]string{"account": account})), err)
	}
	noteMade(r, struct{ ID string }{sub.ID})
	return u.subscribed(w, r, sub, "Subscriber added.")
}

// readConsent returns the consent of a form; nil if it has none.
func readConsent(f url.Values) *api.Consent {
	source := strings.TrimSpace(f.Get("source"))
	if source == "" {
		return nil
	}
	return &api.Consent{Source: source, Text: strings.TrimSpace(f.Get("words"))}
}

// subscribed redirects to a subscriber’s page, and says which lists the person wasn’t subscribed to.
func (u *UI) subscribed(w http.ResponseWriter, r *http.Request, sub api.Subscriber,
	said string) error {
	for _, skipped := range sub.Skipped {
		said += " Not subscribed to " + skipped.ListID + ": " + skippedWords[skipped.Reason]
	}
	return redirectWith(w, r, subscriberPath(sub.Account, sub.ID), flash{Text: said, Bad: len(sub.Skipped) > 0})
}

// skippedWords say why someone wasn’t subscribed to a list.
var skippedWords = map[string]string{
	"left":        "the person unsubscribed. Record a consent to resubscribe them.",
	"unsubscribe": "the person unsubscribed. Record a consent to resubscribe them.",
	"hard_bounce": "the address doesn’t exist.",
	"spam_report": "the person complained.",
	"manual":      "an operator suppressed the address.",
}

func (u *UI) changeSubscriber(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount,
	id string) error {
	f, at := r.PostForm, subscriberPath(of.Account, id)
	version, err := readVersion(f)
	if err != nil {
		return undone(w, r, at, err)
	}
	old, err := u.Audience.Get(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	attributes, err := readAttributes(f, old.Attributes)
	if err != nil {
		return undone(w, r, at, err)
	}
	text := func(name string) *string { return new(strings.TrimSpace(f.Get(name))) }
	tags := strings.FieldsFunc(f.Get("tags"), func(c rune) bool { return c == ',' })
	_, err = u.Audience.Update(r.Context(), boundTo(r), of, id, api.SubscriberPatch{Version: version,
		Email: text("email"), Name: text("name"), Locale: text("locale"), TZ: text("tz"), Tags: &tags,
		Attributes: attributes})
	return told(w, r, at, at, err, "Subscriber saved.")
}

func (u *UI) subscribe(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount, id string) error {
	f := r.PostForm
	sub, err := u.Audience.Subscribe(r.Context(), boundTo(r), of, id, api.SubscribeRequest{
		Lists:   []api.SubscriptionRequest{{ListID: strings.TrimSpace(f.Get("list")), State: f.Get("state")}},
		Consent: readConsent(f), Resubscribe: f.Has("resubscribe")})
	if err != nil {
		return undone(w, r, subscriberPath(of.Account, id), err)
	}
	said := "Subscribed."
	if len(sub.Skipped) > 0 {
		said = ""
	}
	return u.subscribed(w, r, sub, said)
}

func (u *UI) unsubscribe(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount, id string) error {
	at, list := subscriberPath(of.Account, id), r.PostForm.Get("list")
	left, err := u.Audience.Leave(r.Context(), boundTo(r), of, id, list, audience.SourcePage)
	switch {
	case err != nil:
		return undone(w, r, at, err)
	case !left:
		return done(w, r, at, "The person wasn’t subscribed to %s. They won’t get its emails.", list)
	}
	return done(w, r, at, "Unsubscribed from %s.", list)
}

func (u *UI) askSubscriber(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount,
	id string) error {
	at, list := subscriberPath(of.Account, id), r.PostForm.Get("list")
	answer, err := u.AskAgain(r.Context(), boundTo(r), of, id, list)
	switch {
	case err != nil:
		return undone(w, r, at, err)
	case !answer.Sent:
		return done(w, r, at, "The subscription to %s is already confirmed, so no email was sent.", list)
	}
	return done(w, r, at, "Confirmation email for %s sent.", list)
}

func (u *UI) deleteSubscriber(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount,
	id string) error {
	back := address("/audience", values(map[string]string{"account": of.Account}))
	deleted, err := u.Audience.Delete(r.Context(), boundTo(r), of, id)
	return removed(w, r, back, back, deleted, err,
		"Subscriber deleted. Suppressions of the address are still there.")
}
