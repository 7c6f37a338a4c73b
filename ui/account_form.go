package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

var quotaNames = []struct{ name, label string }{{"messages", "Messages that wait"},
	{"bytes", "Bytes of these"}, {"perDay", "Messages a day (UTC)"}, {"templates", "Templates"},
	{"suppressions", "Suppressions"}, {"importSize", "Bytes of an import"},
	{"subscribers", "Subscribers"}, {"events", "Events waiting for digests"},
	{"requests", "Requests a minute with a bound token"}}

// accountForm returns the form of an account; id is empty for a new one.
func accountForm(id string) form {
	f := form{Action: "/accounts", Back: "/accounts", Save: "Add the account",
		Twins: "POST /v1/account · postroom account add"}
	about := []formField{
		{Name: "account", Label: "Id", Required: true, Hint: "Chosen by you: letters, digits and . _ @ + -."},
		{Name: "name", Label: "Name of the sender"},
		{Name: "email", Label: "Address of the sender", Required: true, Most: 320,
			Placeholder: "orders@shop.example"},
		{Name: "gateways", Label: "Gateways", Kind: "lines", Most: 8192, Placeholder: "main\nspare weight=3",
			Hint: "One per line, in order. After the ID, weight=3 shares the load, and lane=bulk or " +
				"lane=transactional limits the gateway to this kind of email. Without gateways, enter a relay below."},
	}
	if id != "" {
		at := "/accounts/" + url.PathEscape(id)
		f = form{Action: at, Back: at, Save: "Save",
			Twins: "PUT /v1/account/" + id + " · postroom account update " + id}
		about = about[1:]
	}
	relay := relayGroups("smtp.", "smtp.auth.")
	relay[0].Legend, relay[0].Folded = "Its own relay, tried before the gateways", id != ""
	relay[1].Folded = id != ""
	f.Groups = append(append([]formGroup{{Legend: "Account", Fields: about}}, relay...), accountGroups()...)
	return f
}

func accountGroups() []formGroup {
	yesOrNo := []string{"", "yes", "no"}
	quota := formGroup{Legend: "Quota", Folded: true}
	for _, q := range quotaNames {
		quota.Fields = append(quota.Fields, formField{Name: "quota." + q.name, Label: q.label, Kind: "number",
			Placeholder: "the setting"})
	}
	quota.Fields[len(quota.Fields)-1].Hint =
		"Leave a quota empty for the default (settings quotas.*), or enter 0 for no limit."
	return []formGroup{
		{Legend: "DKIM key of this account alone", Folded: true, Fields: []formField{
			{Name: "dkim.domain", Label: "Domain", Most: 253},
			{Name: "dkim.selector", Label: "Selector", Most: 253},
			{Name: "dkim.privateKey", Label: "Private key (PEM)", Kind: "key", Most: 16384,
				Hint: "Create it with postroom dkim generate. Leave empty to keep the stored key."},
		}},
		{Legend: "Mail", Folded: true, Fields: []formField{
			{Name: "accountTrouble", Label: "While the login is refused", Kind: "choice",
				Choices: []string{"", "fail", "hold"}, Placeholder: "the setting delivery.accountTrouble"},
			{Name: "retry", Label: "Delays between attempts", Most: 2048, Placeholder: "1m, 5m, 30m",
				Hint: "The last delay repeats. Leave empty for the default."},
			{Name: "idempotencyRequired", Label: "Refuse a submit without an idempotency key", Kind: "check"},
			{Name: "trackOpens", Label: "Count opens", Kind: "choice", Choices: yesOrNo,
				Placeholder: "the setting"},
			{Name: "trackClicks", Label: "Count clicks", Kind: "choice", Choices: yesOrNo,
				Placeholder: "the setting"},
			{Name: "locale", Label: "Language of its mail", Most: 64, Placeholder: "en"},
			{Name: "tz", Label: "Time zone", Most: 64, Placeholder: "UTC"},
		}},
		{Legend: "Webhooks", Folded: true, Fields: []formField{
			{Name: "webhooks", Label: "URL that receives its events", Most: 2048},
		}},
		quota,
	}
}

// readAccount returns the account of a form. Secrets that were left empty are those of old.
func readAccount(v url.Values, old api.Account) (api.Account, error) {
	r := &formReader{Values: v}
	a := api.Account{Senders: old.Senders}
	r.take("", &a)
	relay := r.relay("smtp.", "smtp.auth.", relaySettings{a.SMTP, a.OAuth2}, relaySettings{old.SMTP, old.OAuth2})
	a.Account, a.SMTP, a.OAuth2 = cmp.Or(old.Account, a.Account), relay.SMTP, relay.OAuth2
	a.Gateways = r.gateways()
	if a.DKIM != nil && old.DKIM != nil {
		a.DKIM.PrivateKey = cmp.Or(a.DKIM.PrivateKey, old.DKIM.PrivateKey)
	}
	return a, fault.InvalidFields(r.wrong)
}

// gateways reads the list of gateways: a line for each, such as "main lane=bulk weight=3".
func (r *formReader) gateways() []api.Route {
	var all []api.Route
	for line := range strings.Lines(r.Get("gateways")) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		route := api.Route{Gateway: words[0]}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			n, err := strconv.Atoi(value)
			switch {
			case name == "lane":
				route.Lane = api.Lane(value)
			case name == "weight" && err == nil:
				route.Weight = n
			default:
				r.wrong.Add("gateways", "%q must be lane=bulk, lane=transactional or a weight like weight=3", word)
			}
		}
		all = append(all, route)
	}
	return all
}

// yesOrNo returns a choice; nil: none.
func (r *formReader) yesOrNo(name string) *bool {
	switch r.Get(name) {
	case "yes":
		return new(true)
	case "no":
		return new(false)
	}
	return nil
}

func accountValues(a api.Account) url.Values {
	f := url.Values{}
	put(f, "", a)
	if a.SMTP != nil {
		setVerified(f, "smtp.", a.SMTP.TLS)
	}
	var lines []string
	for _, g := range a.Gateways {
		line := g.Gateway
		if g.Lane != "" {
			line += " lane=" + string(g.Lane)
		}
		if g.Weight > 0 {
			line += " weight=" + strconv.Itoa(g.Weight)
		}
		lines = append(lines, line)
	}
	f.Set("gateways", strings.Join(lines, "\n"))
	return f
}

func (u *UI) newAccount(w http.ResponseWriter, r *http.Request) error {
	return u.showForm(w, r, "", url.Values{}, nil)
}

// showForm answers with the form of an account; id is empty for a new one.
func (u *UI) showForm(w http.ResponseWriter, r *http.Request, id string, v url.Values,
	refused error) error {
	f, title := accountForm(id), "New account"
	if id != "" {
		title = "Change account " + id
	}
	status, err := f.refuse(r, v, refused)
	if err != nil {
		return err
	}
	return u.show(w, r, status, "accountform", title, f)
}

func (u *UI) createAccount(w http.ResponseWriter, r *http.Request) error {
	a, err := readAccount(r.PostForm, api.Account{})
	if err == nil {
		_, err = u.Accounts.Get(r.Context(), a.Account)
		switch {
		case err == nil:
			err = fault.InvalidField("account", "is already used by another account")
		case fault.Is(err, fault.NotFound):
			_, err = u.Provision().CreateAccount(r.Context(), a)
		}
	}
	if err != nil {
		return u.showForm(w, r, "", r.PostForm, err)
	}
	noteMade(r, a)
	return done(w, r, accountPath(a.Account), "The account %s was added.", a.Account)
}

func (u *UI) onAccount(h func(http.ResponseWriter, *http.Request, api.AccountInfo) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, err := ownAccount(r, r.PathValue("id"))
		if err != nil {
			return err
		}
		info, err := u.Accounts.Get(r.Context(), id)
		if err != nil {
			return err
		}
		return h(w, r, info)
	}
}

func (u *UI) editAccount(w http.ResponseWriter, r *http.Request, info api.AccountInfo) error {
	return u.showForm(w, r, info.Account.Account, accountValues(info.Account), nil)
}

func (u *UI) changeAccount(w http.ResponseWriter, r *http.Request, info api.AccountInfo) error {
	id := info.Account.Account
	a, err := readAccount(r.PostForm, info.Account)
	if err == nil {
		_, err = u.Accounts.Update(r.Context(), id, api.PatchOf[api.AccountPatch](info.Account, a))
	}
	if err != nil {
		return u.showForm(w, r, id, r.PostForm, err)
	}
	return done(w, r, accountPath(id), "Changed. Mail that the account holds is tried again.")
}

func (u *UI) deleteAccount(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if r.PostForm.Get("confirm") != id {
		return undone(w, r, accountPath(id), fault.InvalidField("confirm", "must be the id of the account"))
	}
	got, err := u.Provision().DeleteAccount(r.Context(), id)
	return told(w, r, accountPath(id), "/accounts", err, "The account %s was deleted, and %s cancelled.", id,
		plural(got.Cancelled, "message was", "messages were"))
}

// verifyAccount shows the results of logins to all relays of an account. It changes nothing.
func (u *UI) verifyAccount(w http.ResponseWriter, r *http.Request, info api.AccountInfo) error {
	got, err := u.Provision().Verify(r.Context(), api.VerifyRequest{Account: info.Account.Account})
	if err != nil {
		return err
	}
	var tried []trial
	if info.SMTP != nil {
		tried = append(tried, triedRelay("Its own relay", got.SMTP))
	}
	for _, g := range got.Gateways {
		tried = append(tried, triedRelay("Gateway "+g.Gateway, g.VerifyResult))
	}
	return u.showAccount(w, r, accountView{AccountInfo: info, Tried: slices.Clip(tried)})
}

func accountPath(id string) string { return "/accounts/" + url.PathEscape(id) }
