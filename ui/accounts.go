package ui

import (
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
)

// accountsView is the data of the accounts' page.
type accountsView struct {
	Accounts []api.AccountInfo
	Usage    map[string]api.Usage // by account
	Pager    pager
	MayAsk   bool // for senders
}

// accounts shows all accounts. Who is bound to one sees that.
func (u *UI) accounts(w http.ResponseWriter, r *http.Request) error {
	if bound := boundTo(r); bound != "" {
		info, err := u.Accounts.Get(r.Context(), bound)
		if err != nil {
			return err
		}
		one := []api.AccountInfo{info}
		if err := u.Outbox.CountEvents(r.Context(), one); err != nil {
			return err
		}
		return u.showAccounts(w, r, "Account "+bound, accountsView{Accounts: one})
	}
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
	return u.showAccounts(w, r, "Accounts", view)
}

// showAccounts shows accounts, with what they use of their quotas.
func (u *UI) showAccounts(w http.ResponseWriter, r *http.Request, title string, view accountsView) error {
	ids := make([]string, len(view.Accounts))
	for i, a := range view.Accounts {
		ids[i] = a.Account.Account
	}
	usage, err := u.Outbox.Usage(r.Context(), ids...)
	if err != nil {
		return err
	}
	view.MayAsk = !grantOf(r).ReadOnly
	view.Usage = map[string]api.Usage{}
	for _, of := range usage {
		view.Usage[of.Account] = of
	}
	return u.show(w, r, http.StatusOK, "accounts", title, view)
}

// mailSender sends a mail to the address of the form, whose link lets the account send as it.
func (u *UI) mailSender(w http.ResponseWriter, r *http.Request) error {
	account, err := ownAccount(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	info, err := u.AskSender(r.Context(), account, strings.TrimSpace(r.PostForm.Get("sender")))
	switch {
	case err != nil:
		return undone(w, r, "/accounts", err)
	case info.Mail == nil:
		return done(w, r, "/accounts", "Account %s may send as %s already.", account, info.Sender)
	}
	return done(w, r, "/accounts", "A mail to %s asks whether %s may send as it. Its link works for a day.",
		info.Sender, account)
}
