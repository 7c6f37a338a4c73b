package ui

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// recipientStates are the choices of the filter.
var recipientStates = []string{"sending", "sent", "deferred", "suppressed", "unsubscribed", "bounced",
	"failed", "inDoubt", "cancelled"}

type recipientsView struct {
	Campaign   api.CampaignInfo
	Query      api.CampaignRecipientQuery
	States     []string
	Recipients []api.CampaignRecipient
	cursorPager
	Export string // URL of all as CSV
}

// Any reports whether there is a filter.
func (v recipientsView) Any() bool {
	return v.Query.State != "" || v.Query.Search != "" || v.Query.Variant != ""
}

// run returns the run of the rows for URLs; empty for the last run.
func (v recipientsView) run() string {
	if v.Query.Run == 0 {
		return ""
	}
	return strconv.Itoa(v.Query.Run)
}

// at returns the URL of the same rows at another cursor.
func (v recipientsView) at(cursor string) string {
	return address(campaignPath(v.Campaign.Campaign.Campaign)+"/recipients", values(map[string]string{
		"state": v.Query.State, "variant": v.Query.Variant, "q": v.Query.Search, "cursor": cursor,
		"run": v.run()}))
}

func (u *UI) campaignRecipients(w http.ResponseWriter, r *http.Request) error {
	in, id := r.URL.Query(), r.PathValue("id")
	v := recipientsView{States: recipientStates, Query: api.CampaignRecipientQuery{State: in.Get("state"),
		Variant:     in.Get("variant"),
		Search:      strings.TrimSpace(in.Get("q")),
		CursorQuery: api.CursorQuery{Cursor: in.Get("cursor"), PageSize: rowsPerPage}}}
	v.Query.Run, _ = strconv.Atoi(in.Get("run")) // anything else: the last
	switch {
	case v.Query.State != "" && !slices.Contains(recipientStates, v.Query.State):
		return wrongField("state", "isn’t a state")
	case len(v.Query.Search)+len(v.Query.Variant) > 512 || len(v.Query.Cursor) > 1024:
		return fault.New(fault.Invalid, "", "A filter is too long")
	}
	var err error
	if v.Campaign, err = u.Campaigns.Get(r.Context(), boundTo(r), id); err != nil {
		return err
	}
	page, err := u.Campaigns.Recipients(r.Context(), boundTo(r), id, v.Query)
	if err != nil {
		return err
	}
	v.Recipients = page.Recipients
	v.cursorPager = cursors(v.at, v.Query.Cursor, page.Cursor)
	v.Export = address("/v1"+campaignPath(id)+"/recipients/export", values(map[string]string{
		"state": v.Query.State, "variant": v.Query.Variant, "search": v.Query.Search,
		"run": v.run()}))
	return u.show(w, r, http.StatusOK, "campaignrecipients", "Recipients of "+v.Campaign.Name, v)
}

// campaignPreviewView is the page with a campaign's email, as one subscriber would get it.
type campaignPreviewView struct {
	Campaign   api.CampaignInfo
	Subscriber string // whom it is filled in for; empty for any subscriber
	Variant    string // empty for the first
	Preview    *api.CampaignPreview
	Trouble    string // why there is no preview
	Faults     []fault.Field
	Frame      string // URL of the HTML; empty if there is none
}

func (u *UI) campaignPreview(w http.ResponseWriter, r *http.Request) error {
	id, who := r.PathValue("id"), strings.TrimSpace(r.URL.Query().Get("subscriber"))
	if len(who) > 512 {
		return wrongField("subscriber", "is longer than 512 bytes")
	}
	v := campaignPreviewView{Subscriber: who, Variant: clip(r.URL.Query().Get("variant"), 32)}
	var err error
	if v.Campaign, err = u.Campaigns.Get(r.Context(), boundTo(r), id); err != nil {
		return err
	}
	mail, err := u.Campaigns.Preview(r.Context(), boundTo(r), id, api.CampaignSample{Subscriber: who,
		Variant: v.Variant})
	switch {
	case err == nil:
		v.Preview = &mail
	case fault.Is(err, fault.Unprocessable), fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound),
		fault.Is(err, fault.Conflict):
		f := wordsOf(err)
		v.Trouble, v.Faults = f.Message, f.Fields
	default:
		return err
	}
	if mail.HTML != "" {
		v.Frame = address(campaignPath(id)+"/preview/mail",
			values(map[string]string{"subscriber": mail.Subscriber, "variant": v.Variant}))
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the mail
	return u.show(w, r, http.StatusOK, "campaignpreview", "Preview of "+v.Campaign.Name, v)
}

// campaignPreviewFrame answers with the HTML of a campaign's email.
func (u *UI) campaignPreviewFrame(w http.ResponseWriter, r *http.Request) error {
	mail, err := u.Campaigns.Preview(r.Context(), boundTo(r), r.PathValue("id"),
		api.CampaignSample{Subscriber: clip(r.URL.Query().Get("subscriber"), 512),
			Variant: clip(r.URL.Query().Get("variant"), 32)})
	if err != nil {
		return err
	}
	writeFrame(w, mail.HTML)
	return nil
}

// writeFrame answers with the HTML of an email, for a frame in a page.
func writeFrame(w http.ResponseWriter, html string) { writeFrameUnder(w, framePolicy, html) }

// writeFrameUnder is writeFrame with another policy.
func writeFrameUnder(w http.ResponseWriter, policy, html string) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-DNS-Prefetch-Control", "off")
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, html)
}
