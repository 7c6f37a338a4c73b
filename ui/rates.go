package ui

import (
	"net/http"
	"time"

	"github.com/postroom/postroom/api"
)

// ratesView is the page of what became of mail.
type ratesView struct {
	Query api.RatesQuery
	Days  string
	Rates api.Rates
}

// ratePeriods are the choices of how far back the page looks, in days.
var ratePeriods = map[string]int{"1": 1, "7": 7, "30": 30, "90": 90, "365": 365}

func (u *UI) rates(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	view := ratesView{Days: v.Get("days"), Query: api.RatesQuery{Account: v.Get("account"), By: v.Get("by"),
		Name: v.Get("name"), Step: v.Get("step")}}
	if ratePeriods[view.Days] == 0 {
		view.Days = "30"
	}
	view.Query.From = time.Now().AddDate(0, 0, -ratePeriods[view.Days])
	var err error
	if view.Query.Account, err = ownAccount(r, view.Query.Account); err != nil {
		return err
	}
	if view.Rates, err = u.Outbox.Counts.Rates(r.Context(), view.Query); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "rates", "Rates", view)
}
