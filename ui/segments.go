package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type segmentsView struct {
	Account  string // whose; empty: of all
	Segments []api.SegmentInfo
	Pager    pager
	Form     form // of a new segment, with what a link of another page or a refused form filled in
	Open     bool // the form is
}

// segmentForm returns the form of a segment: of a new one without a version.
func segmentForm(f url.Values) form {
	name := formField{Name: "name", Label: "Name", Required: true}
	rule := formField{Name: "rule", Label: "Rule", Kind: "lines", Most: formLimit,
		Placeholder: `{"attribute":"plan","is":"pro"}`,
		Hint: `JSON: a term such as {"tag":"beta"}, {"attribute":"seats","gte":3} or ` +
			`{"campaign":"spring","did":"opened"}, or terms joined by {"and":[…]}, {"or":[…]} and {"not":…}.`}
	fields := []formField{name, rule}
	if !f.Has("version") {
		fields = []formField{name, {Name: "segment", Label: "ID", Most: 63, Placeholder: "from the name"},
			{Name: "account", Label: "Account", Placeholder: "default"}, rule}
	}
	return form{Groups: []formGroup{{Fields: fields}}}
}

// offeredSegment is a segment that the page of a campaign offers to make.
type offeredSegment struct{ Words, Name, Rule string }

// offeredSegments are those of the people of a campaign.
func offeredSegments(campaign string) []offeredSegment {
	did := func(what string) string { return fmt.Sprintf(`{"campaign":%q,"did":%q}`, campaign, what) }
	return []offeredSegment{
		{"got it", "Got " + campaign, did("got")},
		{"opened it", "Opened " + campaign, did("opened")},
		{"got it and did not open it", "Did not open " + campaign,
			fmt.Sprintf(`{"and":[%s,{"not":%s}]}`, did("got"), did("opened"))},
		{"clicked in it", "Clicked in " + campaign, did("clicked")},
	}
}

func (u *UI) segments(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	return u.showSegments(w, r, values(map[string]string{"name": clip(q.Get("name"), 256), "rule": q.Get("rule"),
		"account": strings.TrimSpace(q.Get("account"))}), nil)
}

// showSegments answers with all segments, and with the form of a new one as it was filled in.
func (u *UI) showSegments(w http.ResponseWriter, r *http.Request, filled url.Values,
	refused error) error {
	q := r.URL.Query()
	account, err := ownAccount(r, strings.TrimSpace(q.Get("account")))
	if err != nil {
		return err
	}
	page := pageOf(q)
	got, err := u.Audience.Segments.Page(r.Context(), boundTo(r), api.SegmentQuery{Account: account,
		PageQuery: api.PageQuery{Page: page, PageSize: rowsPerPage}})
	if err != nil {
		return err
	}
	v := segmentsView{Account: account, Segments: got.Segments, Form: segmentForm(filled)}
	status, err := v.Form.refuse(r, filled, refused)
	if err != nil {
		return err
	}
	v.Open = refused != nil || filled.Get("rule") != ""
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/segments", values(map[string]string{"account": account})}
	return u.show(w, r, status, "segments", "Segments", v)
}

type segmentView struct {
	api.SegmentInfo
	Form       form
	Count      *api.SegmentCount // nil: it was never counted
	Subscriber string            // about whom the visitor asks; empty: nobody
	Why        *api.SegmentExplanation
	Unknown    bool // there is no such subscriber
}

func (u *UI) segment(w http.ResponseWriter, r *http.Request) error {
	return u.showSegment(w, r, nil, nil)
}

// showSegment answers with a segment, and with its form as it was filled in; nil: as the segment is.
func (u *UI) showSegment(w http.ResponseWriter, r *http.Request, filled url.Values,
	refused error) error {
	id := r.PathValue("id")
	info, err := u.Audience.Segments.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	if filled == nil {
		filled = url.Values{"name": {info.Name}, "rule": {string(info.Rule)},
			"version": {strconv.Itoa(info.Version)}}
	}
	v := segmentView{SegmentInfo: info, Form: segmentForm(filled),
		Subscriber: strings.TrimSpace(r.URL.Query().Get("subscriber"))}
	status, err := v.Form.refuse(r, filled, refused)
	if err != nil {
		return err
	}
	count, err := u.Audience.Segments.Count(r.Context(), boundTo(r), id)
	switch {
	case err == nil:
		v.Count = &count
	case !fault.Is(err, fault.NotFound):
		return err
	}
	if v.Subscriber != "" {
		why, err := u.Audience.Segments.Explain(r.Context(), boundTo(r), id, v.Subscriber)
		switch {
		case err == nil:
			v.Why = &why
		case fault.Is(err, fault.NotFound):
			v.Unknown = true
		default:
			return err
		}
	}
	return u.show(w, r, status, "segment", info.Name, v)
}

// readRule returns the rule of a form. What is no JSON is handed over as a text, and refused with the reason.
func readRule(f url.Values) json.RawMessage {
	text := strings.TrimSpace(f.Get("rule"))
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // of a string
	return quoted
}

func (u *UI) createSegment(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	made, err := u.Audience.Segments.Create(r.Context(), boundTo(r), api.Segment{
		Segment: strings.TrimSpace(f.Get("segment")), Account: strings.TrimSpace(f.Get("account")),
		Name: strings.TrimSpace(f.Get("name")), Rule: readRule(f)})
	switch {
	case wordsOf(err).Code == "SegmentExists":
		err = fault.InvalidField("segment", "is taken by another segment")
	case fault.Is(err, fault.NotFound):
		err = fault.InvalidField("account", "isn’t an account; leave it empty for default")
	}
	if err != nil {
		return u.showSegments(w, r, f, err)
	}
	noteMade(r, made)
	return done(w, r, "/segments/"+made.Segment.Segment, "The segment %s was added.", made.Name)
}

func (u *UI) changeSegment(w http.ResponseWriter, r *http.Request) error {
	f, at := r.PostForm, "/segments/"+url.PathEscape(r.PathValue("id"))
	version, err := readVersion(f)
	if err == nil {
		_, err = u.Audience.Segments.Update(r.Context(), boundTo(r), r.PathValue("id"), api.SegmentPatch{
			Version: version, Name: new(strings.TrimSpace(f.Get("name"))), Rule: readRule(f)})
	}
	if err != nil {
		return u.showSegment(w, r, f, err)
	}
	return done(w, r, at, "Changed.")
}

func (u *UI) countSegment(w http.ResponseWriter, r *http.Request) error {
	at := "/segments/" + url.PathEscape(r.PathValue("id"))
	_, err := u.Audience.Segments.StartCount(r.Context(), boundTo(r), r.PathValue("id"))
	return told(w, r, at, at, err,
		"The subscribers are being counted. Load the page again to see how far it is.")
}

func (u *UI) deleteSegment(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Audience.Segments.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	return removed(w, r, "/segments", "/segments", deleted, err,
		"The segment "+r.PathValue("id")+" was deleted.")
}
