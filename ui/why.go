package ui

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
)

// whyView is the page of an address: why it did or did not get its mail.
type whyView struct {
	api.Why
	Named string // the message that was asked about; empty: all
}

// section returns the entry of the navigation that the page belongs to.
func (whyView) section() string { return "search" }

// Verdict returns whether the mail arrived in two words or less.
func (v whyView) Verdict() string {
	return map[string]string{api.ArrivedYes: "arrived", api.ArrivedNo: "did not arrive",
		api.ArrivedNotYet: "not yet", api.ArrivedUnknown: "not known"}[v.Arrived]
}

// Colour returns the class of a chip with the colour of the verdict.
func (v whyView) Colour() string {
	return map[string]string{api.ArrivedYes: "sent", api.ArrivedNo: "failed", api.ArrivedNotYet: "waiting",
		api.ArrivedUnknown: "doubt"}[v.Arrived]
}

// Rest returns the findings after the one whose text is the sentence.
func (v whyView) Rest() []api.WhyFinding { return v.Findings[1:] }

// Steps returns what can be done about the first finding.
func (v whyView) Steps() []api.WhyStep { return v.Findings[0].Do }

// Explanation says what the reply of the first finding means; nil: there is none.
func (v whyView) Explanation() *api.Explanation { return v.Findings[0].Explanation }

// Only returns the path of the page of one message.
func (v whyView) Only(id string) string {
	return whyPath(v.Address) + "?message=" + url.QueryEscape(id)
}

func whyPath(address string) string { return "/to/" + url.PathEscape(address) }

// whyPage says why an address did or did not get its mail.
func (u *UI) whyPage(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	found, err := u.Why.To(r.Context(), boundTo(r), r.PathValue("address"), api.WhyQuery{
		Message: strings.TrimSpace(v.Get("message")), Account: v.Get("account")})
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "why", "Mail to "+found.Address, whyView{Why: found,
		Named: v.Get("message")})
}

// isAddress reports whether a search is an address and nothing else. Then the page of the address answers it.
func isAddress(q string) bool {
	if strings.ContainsAny(q, " :\"()") {
		return false
	}
	_, err := message.NormalizeAddress(q)
	return err == nil
}
