package ui

import (
	"net/http"
	"net/url"

	"github.com/postroom/postroom/api"
)

type erasureView struct {
	api.Erasure
	Rows []erasedPlace
}

// Live reports whether the page loads itself again.
func (v erasureView) Live() bool { return v.State != api.ErasureDone }

type erasedPlace struct {
	Name string
	N    int
}

// eraseSubscriber begins to erase the person of a subscriber, in the account alone.
func (u *UI) eraseSubscriber(w http.ResponseWriter, r *http.Request, of api.SubscriberAccount,
	id string) error {
	sub, err := u.Audience.Get(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	made, err := u.Erasures.Start(r.Context(), boundTo(r), api.ErasureRequest{Email: sub.Email,
		Account: of.Account})
	return told(w, r, subscriberPath(of.Account, id), "/erasures/"+url.PathEscape(made.ID), err,
		"The person is being erased.")
}

func (u *UI) erasure(w http.ResponseWriter, r *http.Request) error {
	e, err := u.Erasures.Get(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	p := e.Places
	return u.show(w, r, http.StatusOK, "erasure", "Erasure", erasureView{Erasure: e, Rows: []erasedPlace{
		{"Subscribers", p.Subscribers}, {"Subscriptions", p.Lists}, {"Campaigns", p.Campaigns},
		{"Live messages", p.Outbox}, {"Dead letters", p.DeadLetters}, {"Entries of the email log", p.Messages},
		{"Past events", p.Events}, {"Documents of the search index", p.Documents},
		{"Readers of digests", p.Digests}, {"Webhook deliveries", p.Deliveries}, {"Suppressions", p.Suppressions}}})
}
