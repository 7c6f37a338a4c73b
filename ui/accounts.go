package ui

import (
	"net/http"

	"github.com/postroom/postroom/api"
)

// accountsView is the data of the accounts' page.
type accountsView struct {
	Accounts []api.AccountInfo
	Pager    pager
}

func (u *UI) accounts(w http.ResponseWriter, r *http.Request) error {
	page := pageOf(r.URL.Query())
	got, err := u.Accounts.List(r.Context(), page, endpointsPerPage)
	if err != nil {
		return err
	}
	if err := u.Outbox.CountEvents(r.Context(), got.Accounts); err != nil {
		return err
	}
	view := accountsView{Accounts: got.Accounts}
	view.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: endpointsPerPage, path: "/accounts"}
	return u.show(w, r, http.StatusOK, "accounts", "Accounts", view)
}
