package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

type segmentsView struct {
	Account  string // whose; empty for all
	Segments []api.SegmentInfo
	Pager    pager
	Editor   segmentEditor // for a new segment, with the values of a link or of a refused form
	Open     bool          // the editor is
}

// segmentForm returns the plain fields of a segment. The form of a new segment has no version.
func segmentForm(f url.Values) form {
	name := formField{Name: "name", Label: "Name", Required: true}
	rule := formField{Name: "rule", Label: "Rule (JSON)", Kind: "lines", Most: formLimit,
		Placeholder: `{"attribute":"plan","is":"pro"}`,
		Hint: `For example {"tag":"beta"}, {"attribute":"seats","gte":3} or ` +
			`{"campaign":"spring","did":"opened"}. Combine terms with {"and":[…]}, {"or":[…]} and {"not":…}.`}
	fields := []formField{name}
	if !f.Has("version") {
		fields = []formField{name, {Name: "segment", Label: "ID", Most: 63, Placeholder: "made from the name"},
			{Name: "account", Label: "Account", Placeholder: "default"}}
	}
	return form{Groups: []formGroup{{Fields: fields}, {Fields: []formField{rule}}}}
}

// offeredSegment is a segment that the page of a campaign offers to create.
type offeredSegment struct{ Words, Name, Rule string }

// offeredSegments returns the segments of a campaign's recipients.
func offeredSegments(campaign string) []offeredSegment {
	did := func(what string) string { return fmt.Sprintf(`{"campaign":%q,"did":%q}`, campaign, what) }
	return []offeredSegment{
		{"received it", "Received " + campaign, did("got")},
		{"opened it", "Opened " + campaign, did("opened")},
		{"received it but didn’t open it", "Did not open " + campaign,
			fmt.Sprintf(`{"and":[%s,{"not":%s}]}`, did("got"), did("opened"))},
		{"clicked in it", "Clicked in " + campaign, did("clicked")},
	}
}

func (u *UI) segments(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	return u.showSegments(w, r, values(map[string]string{"name": clip(q.Get("name"), 256),
		"rule": q.Get("rule"), "account": strings.TrimSpace(q.Get("account"))}), nil)
}

// showSegments answers with all segments, and with the editor of a new one as it was filled in.
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
	v := segmentsView{Account: account, Segments: got.Segments}
	if v.Editor, err = u.editor(r, filled, refused); err != nil {
		return err
	}
	status, err := v.Editor.Form.refuse(r, filled, refused)
	if err != nil {
		return err
	}
	v.Open = refused != nil || filled.Get("rule") != "" || r.Method == http.MethodPost || len(got.Segments) == 0
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the count
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/segments", values(map[string]string{"account": account})}
	return u.show(w, r, status, "segments", "Segments", v)
}

type segmentView struct {
	api.SegmentInfo
	Editor     segmentEditor
	Count      *api.SegmentCount // nil if it was never counted
	Subscriber string            // whom the visitor asks about; empty for nobody
	Why        *api.SegmentExplanation
	Unknown    bool // there is no such subscriber
}

func (u *UI) segment(w http.ResponseWriter, r *http.Request) error {
	return u.showSegment(w, r, nil, nil)
}

// showSegment answers with a segment, and with its editor as it was filled in. With nil it shows the segment
// as it is stored.
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
	filled.Set("account", info.Account)
	v := segmentView{SegmentInfo: info, Subscriber: strings.TrimSpace(r.URL.Query().Get("subscriber"))}
	if v.Editor, err = u.editor(r, filled, refused); err != nil {
		return err
	}
	status, err := v.Editor.Form.refuse(r, filled, refused)
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
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the count
	return u.show(w, r, status, "segment", info.Name, v)
}

// readRule returns the rule of a form, from its rows or from the JSON field. Text that isn't JSON becomes a
// JSON string, which package audience refuses with the reason.
func (u *UI) readRule(r *http.Request) (json.RawMessage, error) {
	f := r.PostForm
	text := strings.TrimSpace(f.Get("rule"))
	if fields := readTerms(f); !fields.JSON && len(fields.Rows) > 0 {
		types, err := u.Audience.Attributes(r.Context(), cmp.Or(boundTo(r), strings.TrimSpace(f.Get("account")),
			audience.DefaultAccount))
		if err != nil {
			return nil, err
		}
		text = fields.rule(types)
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	quoted, _ := json.Marshal(text) // a string always encodes
	return quoted, nil
}

func (u *UI) createSegment(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	rule, err := u.readRule(r)
	if err != nil {
		return err
	}
	made, err := u.Audience.Segments.Create(r.Context(), boundTo(r), api.Segment{
		Segment: strings.TrimSpace(f.Get("segment")), Account: strings.TrimSpace(f.Get("account")),
		Name: strings.TrimSpace(f.Get("name")), Rule: rule})
	switch {
	case wordsOf(err).Code == "SegmentExists":
		err = fault.InvalidField("segment", "is already used by another segment")
	case fault.Is(err, fault.NotFound):
		err = fault.InvalidField("account", "isn’t an account; leave it empty for default")
	}
	if err != nil {
		return u.showSegments(w, r, f, err)
	}
	noteMade(r, made)
	return done(w, r, "/segments/"+made.Segment.Segment, "Segment %s created.", made.Name)
}

func (u *UI) changeSegment(w http.ResponseWriter, r *http.Request) error {
	f, at := r.PostForm, "/segments/"+url.PathEscape(r.PathValue("id"))
	version, err := readVersion(f)
	var rule json.RawMessage
	if err == nil {
		rule, err = u.readRule(r)
	}
	if err == nil {
		_, err = u.Audience.Segments.Update(r.Context(), boundTo(r), r.PathValue("id"), api.SegmentPatch{
			Version: version, Name: new(strings.TrimSpace(f.Get("name"))), Rule: rule})
	}
	if err != nil {
		return u.showSegment(w, r, f, err)
	}
	return done(w, r, at, "Segment saved.")
}

func (u *UI) countSegment(w http.ResponseWriter, r *http.Request) error {
	at := "/segments/" + url.PathEscape(r.PathValue("id"))
	_, err := u.Audience.Segments.StartCount(r.Context(), boundTo(r), r.PathValue("id"))
	return told(w, r, at, at, err,
		"Counting subscribers. Reload the page to see the progress.")
}

func (u *UI) deleteSegment(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Audience.Segments.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	return removed(w, r, "/segments", "/segments", deleted, err,
		"Segment "+r.PathValue("id")+" deleted.")
}
