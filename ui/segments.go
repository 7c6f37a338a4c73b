package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// segmentsView is the page of all segments.
type segmentsView struct {
	Account  string // whose; empty: of all
	Segments []api.SegmentInfo
	Pager    pager
	// What a link of another page filled into the form of a new segment. Empty: nothing.
	NewName, NewRule string
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

func (u audiencePages) segments(w http.ResponseWriter, r *http.Request) error {
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
	v := segmentsView{Account: account, Segments: got.Segments, NewName: clip(q.Get("name"), 256),
		NewRule: q.Get("rule")}
	v.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: rowsPerPage, path: "/segments",
		values: values(map[string]string{"account": account})}
	return u.show(w, r, http.StatusOK, "segments", "Segments", v)
}

// segmentView is the page of one segment.
type segmentView struct {
	api.SegmentInfo
	RuleText   string
	Count      *api.SegmentCount // nil: it was never counted
	Subscriber string            // about whom the visitor asks; empty: nobody
	Why        *api.SegmentExplanation
	Unknown    bool // there is no such subscriber
}

func (u audiencePages) segment(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	info, err := u.Audience.Segments.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	v := segmentView{SegmentInfo: info, RuleText: string(info.Rule),
		Subscriber: strings.TrimSpace(r.URL.Query().Get("subscriber"))}
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
	return u.show(w, r, http.StatusOK, "segment", info.Name, v)
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

func (u audiencePages) createSegment(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	made, err := u.Audience.Segments.Create(r.Context(), boundTo(r), api.Segment{
		Segment: strings.TrimSpace(f.Get("segment")), Account: strings.TrimSpace(f.Get("account")),
		Name: strings.TrimSpace(f.Get("name")), Rule: readRule(f)})
	if err != nil {
		return undone(w, r, "/segments", err)
	}
	noteMade(r, made)
	return done(w, r, "/segments/"+made.Segment.Segment, "The segment %s was added.", made.Name)
}

func (u audiencePages) changeSegment(w http.ResponseWriter, r *http.Request) error {
	f, at := r.PostForm, "/segments/"+url.PathEscape(r.PathValue("id"))
	version, err := readVersion(f)
	if err == nil {
		_, err = u.Audience.Segments.Update(r.Context(), boundTo(r), r.PathValue("id"), api.SegmentPatch{
			Version: version, Name: new(strings.TrimSpace(f.Get("name"))), Rule: readRule(f)})
	}
	if err != nil {
		return undone(w, r, at, err)
	}
	return done(w, r, at, "Changed.")
}

func (u audiencePages) countSegment(w http.ResponseWriter, r *http.Request) error {
	at := "/segments/" + url.PathEscape(r.PathValue("id"))
	if _, err := u.Audience.Segments.StartCount(r.Context(), boundTo(r), r.PathValue("id")); err != nil {
		return undone(w, r, at, err)
	}
	return done(w, r, at, "The subscribers are being counted. Load the page again to see how far it is.")
}

func (u audiencePages) deleteSegment(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Audience.Segments.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	switch {
	case err != nil:
		return undone(w, r, "/segments", err)
	case !deleted:
		return done(w, r, "/segments", "The segment was gone already.")
	}
	return done(w, r, "/segments", "The segment %s was deleted.", r.PathValue("id"))
}
