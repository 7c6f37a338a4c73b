package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
)

type digestRecipientsView struct {
	Query      api.DigestRecipientQuery
	Trouble    string // why there are none; empty: they were read
	Recipients []digestRecipientRow
	cursorPager
}

type digestRecipientRow struct{ api.DigestRecipient }

// At returns the path of its page.
func (v digestRecipientRow) At() string { return digestPath("recipients", v.Account, v.Recipient) }

// Events returns how many events wait.
func (v digestRecipientRow) Events() (n int) {
	for _, count := range v.Waiting {
		n += count
	}
	return n
}

// at returns the URL of the same rows at another cursor.
func (v digestRecipientsView) at(cursor string) string {
	return address("/digests/recipients", values(map[string]string{"account": v.Query.Account,
		"q": v.Query.Search, "cursor": cursor}))
}

func (u *UI) digestRecipients(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	v, status := digestRecipientsView{Query: api.DigestRecipientQuery{Account: filterText(in, "account"),
		Search: filterText(in, "q"), Cursor: clip(in.Get("cursor"), 1024), PageSize: rowsPerPage}}, http.StatusOK
	got, err := u.Digests.List(r.Context(), boundTo(r), v.Query)
	if err != nil {
		if status, v.Trouble, err = troubleOf(err, v.Query.Account == ""); err != nil {
			return err
		}
	}
	for _, one := range got.Recipients {
		v.Recipients = append(v.Recipients, digestRecipientRow{one})
	}
	v.cursorPager = cursors(v.at, v.Query.Cursor, got.Cursor)
	return u.show(w, r, status, "digestrecipients", "Recipients of digests", v)
}

type digestRecipientView struct {
	digestRecipientRow
	formValues
	Rows    []digestCategoryRow // form rows
	Trouble string              // why it was refused; empty if it wasn’t
	Choices []digest.Choice     // schedules in use, by category
	Groups  []waitingGroup
	Older   int // pending events that Groups lacks
	Runs    []api.DigestRun
}

// waitingGroup is the pending events about one thing.
type waitingGroup struct {
	Category, Title, URL string
	About                string // type and id of the thing
	Count                int
	Last                 time.Time
	Urgent               bool
	Actors               []string // at most three, newest first
}

// groupsShown is how many groups a recipient's page shows. The API returns all.
const groupsShown = 100

// waitingGroups groups events by the thing that they are about, newest first.
func waitingGroups(events []api.DigestWaitingEvent) []waitingGroup {
	type thing struct{ category, kind, id string }
	byThing := map[thing]*waitingGroup{}
	var all []*waitingGroup
	for _, e := range slices.Backward(events) { // they are the oldest first
		t := thing{e.Category, e.EntityType, e.EntityID}
		g := byThing[t]
		if g == nil {
			g = &waitingGroup{Category: e.Category, Title: e.Title, URL: e.URL, About: e.EntityType + " " + e.EntityID}
			if e.OccurredAt != nil {
				g.Last = *e.OccurredAt
			}
			byThing[t], all = g, append(all, g)
		}
		g.Count++
		g.Urgent = g.Urgent || e.Priority == "urgent"
		if a := e.Actor; a != nil && len(g.Actors) < 3 {
			if name := cmp.Or(a.Name, a.ID); name != "" && !slices.Contains(g.Actors, name) {
				g.Actors = append(g.Actors, name)
			}
		}
	}
	shown := make([]waitingGroup, 0, len(all))
	for _, g := range all[:min(len(all), groupsShown)] {
		shown = append(shown, *g)
	}
	return shown
}

// recipientOf returns the recipient of a request, and what the recipient may choose.
func (u *UI) recipientOf(r *http.Request) (one api.DigestRecipient, reader digest.Reader, err error) {
	of, id := digestOf(r)
	if one, err = u.Digests.Get(r.Context(), boundTo(r), of, id); err == nil {
		reader, err = u.Digests.Reader(r.Context(), boundTo(r), of, id)
	}
	return one, reader, err
}

func (u *UI) digestRecipient(w http.ResponseWriter, r *http.Request) error {
	one, reader, err := u.recipientOf(r)
	if err != nil {
		return err
	}
	return u.showRecipient(w, r, one, reader, recipientValues(one, reader), nil)
}

// showRecipient answers with the page of a recipient.
func (u *UI) showRecipient(w http.ResponseWriter, r *http.Request, one api.DigestRecipient,
	reader digest.Reader, f url.Values, refused error) error {
	v := digestRecipientView{digestRecipientRow: digestRecipientRow{one}, formValues: formValues{f},
		Choices: reader.Choices, Rows: categoryRows(f, reader)}
	status, words, err := formTrouble(r, refused)
	if err != nil {
		return err
	}
	v.Trouble = words
	of := api.DigestAccount{Account: one.Account}
	waiting, err := u.Digests.Waiting(r.Context(), boundTo(r), of, one.Recipient)
	if err != nil {
		return err
	}
	v.Groups = waitingGroups(waiting.Events)
	v.Older = v.Events()
	for _, g := range v.Groups {
		v.Older -= g.Count
	}
	v.Older = max(0, v.Older)
	runs, err := u.Digests.Runs.List(r.Context(), boundTo(r), api.DigestRunQuery{Account: one.Account,
		Recipient: one.Recipient, CursorQuery: api.CursorQuery{PageSize: runsShown}})
	if err != nil {
		return err
	}
	v.Runs = runs.Runs
	return u.show(w, r, status, "digestrecipient", cmp.Or(one.Name, one.Email, one.Recipient), v)
}

// Live returns the URL of the part that the script refreshes.
func (v digestRecipientView) Live() string { return v.At() + "?part=live" }

// AllRuns returns the URL of the runs of the recipient.
func (v digestRecipientView) AllRuns() string {
	return address("/digests/runs", values(map[string]string{"account": v.Account, "recipient": v.Recipient}))
}

func (u *UI) changeRecipient(w http.ResponseWriter, r *http.Request) error {
	one, reader, err := u.recipientOf(r)
	if err != nil {
		return err
	}
	req, err := readRecipient(r.PostForm)
	if err == nil {
		req.Account = one.Account
		_, err = u.Digests.Patch(r.Context(), boundTo(r), one.Recipient, req)
	}
	if err != nil {
		return u.showRecipient(w, r, one, reader, r.PostForm, err)
	}
	return done(w, r, digestPath("recipients", one.Account, one.Recipient),
		"Recipient saved. Pending events follow the new settings.")
}

func (u *UI) sendNow(w http.ResponseWriter, r *http.Request) error {
	of, id := digestOf(r)
	at := digestPath("recipients", of.Account, id)
	sent, err := u.Digests.Send(r.Context(), boundTo(r), of, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return err
	case err != nil:
		return undone(w, r, at, err)
	case sent.State == api.DigestSkipped:
		return done(w, r, at, "Nothing was sent: %s.", runReason(sent.Reason))
	}
	return done(w, r, "/digests/runs/"+url.PathEscape(sent.Run), "This run contains the pending events.")
}

func (u *UI) deleteRecipient(w http.ResponseWriter, r *http.Request) error {
	of, id := digestOf(r)
	if err := u.Digests.Delete(r.Context(), boundTo(r), of, id); err != nil {
		return err
	}
	return done(w, r, address("/digests/recipients", values(map[string]string{"account": of.Account})),
		"Recipient deleted, with pending events and runs.")
}

// eraseRecipient begins to erase the person with the address of a recipient, in the account alone.
func (u *UI) eraseRecipient(w http.ResponseWriter, r *http.Request) error {
	of, id := digestOf(r)
	one, err := u.Digests.Get(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	made, err := u.Erasures.Start(r.Context(), boundTo(r), api.ErasureRequest{Email: one.Email,
		Account: one.Account})
	return told(w, r, digestPath("recipients", one.Account, id), "/erasures/"+url.PathEscape(made.ID), err,
		"The person is being erased.")
}

// digestPreviewView is the page with the mail that a recipient would get now.
type digestPreviewView struct {
	digestRecipientRow
	Preview api.DigestPreview
	Trouble string // why there is no mail; empty: there is, or nothing waits
	Frame   string // URL of the html; empty: none
}

func (u *UI) digestPreview(w http.ResponseWriter, r *http.Request) error {
	of, id := digestOf(r)
	one, err := u.Digests.Get(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	v := digestPreviewView{digestRecipientRow: digestRecipientRow{one}}
	v.Preview, err = u.Digests.Preview(r.Context(), boundTo(r), of, id)
	switch {
	case err == nil:
	case fault.Is(err, fault.Unprocessable), fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound),
		fault.Is(err, fault.Conflict):
		v.Trouble = sentence(err)
	default:
		return err
	}
	if v.Preview.HTML != "" {
		v.Frame = v.At() + "/preview/mail"
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the mail
	return u.show(w, r, http.StatusOK, "digestpreview", "Preview for "+one.Recipient, v)
}

// digestPreviewFrame answers with the html of the mail that a recipient would get now.
func (u *UI) digestPreviewFrame(w http.ResponseWriter, r *http.Request) error {
	of, id := digestOf(r)
	mail, err := u.Digests.Preview(r.Context(), boundTo(r), of, id)
	if err != nil {
		return err
	}
	writeFrame(w, mail.HTML)
	return nil
}
