package ui

import (
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
)

type accountsView struct {
	Accounts []api.AccountInfo
	Usage    map[string]api.Usage // by account
	Pager    pager
}

// accounts shows all accounts. Who is bound to one sees that.
func (u *UI) accounts(w http.ResponseWriter, r *http.Request) error {
	if bound := boundTo(r); bound != "" {
		info, err := u.Accounts.Get(r.Context(), bound)
		if err != nil {
			return err
		}
		one := []api.AccountInfo{info}
		if err := u.Outbox.Counts.CountEvents(r.Context(), one); err != nil {
			return err
		}
		return u.showAccounts(w, r, "Account "+bound, accountsView{Accounts: one})
	}
	page := pageOf(r.URL.Query())
	got, err := u.Accounts.List(r.Context(), page, endpointsPerPage)
	if err != nil {
		return err
	}
	if err := u.Outbox.Counts.CountEvents(r.Context(), got.Accounts); err != nil {
		return err
	}
	view := accountsView{Accounts: got.Accounts}
	view.Pager = pager{got.PageNumbers, endpointsPerPage, "/accounts", nil}
	return u.showAccounts(w, r, "Accounts", view)
}

// showAccounts shows accounts, with what they use of their quotas.
func (u *UI) showAccounts(w http.ResponseWriter, r *http.Request, title string,
	view accountsView) error {
	ids := make([]string, len(view.Accounts))
	for i, a := range view.Accounts {
		ids[i] = a.Account.Account
	}
	usage, err := u.Outbox.Reader.Usage(r.Context(), ids...)
	if err != nil {
		return err
	}
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
		return undone(w, r, accountPath(account), err)
	case info.Mail == nil:
		return done(w, r, accountPath(account), "Account %s may send as %s already.", account, info.Sender)
	}
	return done(w, r, accountPath(account),
		"A mail to %s asks whether %s may send as it. Its link works for a day.", info.Sender, account)
}

type accountView struct {
	api.AccountInfo
	Usage   api.Usage
	Senders []api.SenderInfo
	MayAsk  bool // for senders
	Changes bool // may change the account
	Tried   []trial
}

func (u *UI) account(w http.ResponseWriter, r *http.Request, info api.AccountInfo) error {
	return u.showAccount(w, r, accountView{AccountInfo: info})
}

// showAccount completes a page of an account.
func (u *UI) showAccount(w http.ResponseWriter, r *http.Request, view accountView) error {
	id := view.Account.Account
	one := []api.AccountInfo{view.AccountInfo}
	if err := u.Outbox.Counts.CountEvents(r.Context(), one); err != nil {
		return err
	}
	view.AccountInfo = one[0]
	usage, err := u.Outbox.Reader.Usage(r.Context(), id)
	if err != nil {
		return err
	}
	senders, err := u.Accounts.Senders(r.Context(), id)
	if err != nil {
		return err
	}
	view.Usage, view.Senders = usage[0], senders.Senders
	view.MayAsk = !grantOf(r).ReadOnly
	view.Changes = view.MayAsk && boundTo(r) == ""
	return u.show(w, r, http.StatusOK, "account", "Account "+id, view)
}

// accountDNS shows the DNS records of an account; with ?check=1 beside what is published.
func (u *UI) accountDNS(w http.ResponseWriter, r *http.Request, info api.AccountInfo) error {
	got, err := u.Provision().AccountDNS(r.Context(), info.Account.Account, r.URL.Query().Has("check"))
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "accountdns", "DNS records of "+got.Account, got)
}
