package ui

import (
	"bytes"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox"
)

// shownBytes bounds a text, a source and a header on a page, so that it stays below 100 kB. All of it can be
// downloaded.
const shownBytes = 32 << 10

// The views of a message's content, as the page's parameter view has them.
const (
	viewHTML    = "html"
	viewText    = "text"
	viewSource  = "source"
	viewHeaders = "headers"
	viewFiles   = "attachments"
)

type contentView struct {
	message.Parsed
	View   string // one of the above
	Path   string // of the message's page
	Texts  []message.Part
	Source string // its beginning, in the view source
	Raw    string // the header as it is, in the view headers
	Cut    bool   // there is more of Texts, Source or Headers
	Frame  string // URL of the html
	Phone  bool   // the frame is as wide as a phone
	Images bool   // the frame loads images of other hosts
	Loads  bool   // the html has such images
}

// contentTab is a link to a view.
type contentTab struct {
	View, Label string
	N           int // how many things it has; negative: not counted
}

// Tabs returns the views that a message has.
func (v contentView) Tabs() []contentTab {
	tabs := []contentTab{{viewText, "Text", -1}, {viewSource, "Source", -1},
		{viewHeaders, "Headers", len(v.Headers)}, {viewFiles, "Attachments", len(v.Files())}}
	if v.HTML() {
		tabs = slices.Insert(tabs, 0, contentTab{viewHTML, "HTML", -1})
	}
	return tabs
}

// HTML reports whether the message has html.
func (v contentView) HTML() bool { return v.Text("text/html") != nil }

// FrameLink returns the link to the html, with the choices changed that are named.
func (v contentView) FrameLink(turned string) string {
	phone, images := v.Phone != (turned == "phone"), v.Images != (turned == "images")
	choices := map[string]string{"view": viewHTML}
	if phone {
		choices["width"] = "phone"
	}
	if images {
		choices["images"] = "1"
	}
	return address(v.Path, values(choices)) + "#content"
}

// previewContent returns the content of a message in the view that is asked for. It is NotFound if the
// content is not stored, with the reason.
func (u *UI) previewContent(r *http.Request, id string) (*contentView, error) {
	raw, err := u.stored(r, id)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	v := &contentView{Parsed: message.Parse(raw), View: q.Get("view"), Path: messagePath(id),
		Phone: q.Get("width") == "phone", Images: q.Get("images") == "1"}
	if !slices.ContainsFunc(v.Tabs(), func(t contentTab) bool { return t.View == v.View }) {
		v.View = v.Tabs()[0].View
	}
	v.fill(raw)
	return v, nil
}

// fill adds what only one view shows.
func (v *contentView) fill(raw []byte) {
	switch v.View {
	case viewHTML:
		v.Frame = v.Path + "/html"
		if v.Images {
			v.Frame += "?images=1"
		}
		page := v.Text("text/html")
		v.Loads = page.Cut || message.LoadsRemote(page.Text) // the rest may have some
	case viewText:
		left := shownBytes
		for _, p := range v.Parts {
			if p.File || p.Type == "text/html" {
				continue
			}
			v.Cut = v.Cut || p.Cut || len(p.Text) > left
			p.Text = clip(p.Text, left)
			left = max(0, left-len(p.Text))
			v.Texts = append(v.Texts, p)
		}
	case viewSource:
		v.Cut = len(raw) > shownBytes
		v.Source = strings.ToValidUTF8(string(raw[:min(len(raw), shownBytes)]), "\uFFFD")
	case viewHeaders:
		v.header()
	}
}

// header cuts the header to what a page shows.
func (v *contentView) header() {
	left := shownBytes
	var whole strings.Builder
	for i, f := range v.Headers {
		if left -= len(f.Raw); left < 0 {
			v.Headers, v.Cut = v.Headers[:i], true
			break
		}
		whole.WriteString(f.Raw)
		whole.WriteString("\n")
	}
	v.Raw = strings.ReplaceAll(whole.String(), "\r\n", "\n")
}

// remotePolicy is framePolicy with images of other hosts.
var remotePolicy = strings.Replace(framePolicy, "img-src data:", "img-src data: https: http:", 1)

// mailFrame answers with the html of a message, for the frame of its page. A message may end between the page
// and its frame: then the frame says so, since an error page is shown in no frame.
func (u *UI) mailFrame(w http.ResponseWriter, r *http.Request, id string) error {
	raw, err := u.stored(r, id)
	if fault.Is(err, fault.NotFound) {
		writeFrame(w, "<p>"+html.EscapeString(err.Error())+"</p>")
		return nil
	}
	if err != nil {
		return err
	}
	policy := framePolicy
	if r.URL.Query().Get("images") == "1" {
		policy = remotePolicy
	}
	writeFrameUnder(w, policy, message.Frame(raw))
	return nil
}

// part answers with a text or a file of a message. Its bytes come from anybody, so no browser shows them.
func (u *UI) part(w http.ResponseWriter, r *http.Request, id string) error {
	raw, err := u.stored(r, id)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(r.PathValue("part"))
	p, ok := message.OpenPart(raw, number)
	if !ok {
		return fault.New(fault.NotFound, "", "The message has no such part")
	}
	h := w.Header()
	h.Set("Content-Security-Policy", filePolicy)
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", p.Disposition())
	_, _ = w.Write(p.Content)
	return nil
}

// filePolicy is the policy of what came in a mail and is no page.
const filePolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// stored returns a message as it is sent to the relay, or says that it is no longer stored.
func (u *UI) stored(r *http.Request, id string) ([]byte, error) {
	raw, err := u.Outbox.Reader.Mail(r.Context(), id)
	if fault.Is(err, fault.NotFound) && fault.CodeOf(err) != outbox.ContentNotKept {
		err = fault.New(fault.NotFound, "", "The content of this message is no longer stored")
	}
	return raw, err
}

// content answers with the message as it is sent to the relay: as a file, or as plain text.
func (u *UI) content(w http.ResponseWriter, r *http.Request, id string) error {
	raw, err := u.stored(r, id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", filePolicy)
	if r.URL.Query().Get("view") == viewText {
		h.Set("Content-Type", "text/plain; charset=utf-8")
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	} else {
		h.Set("Content-Type", "message/rfc822")
		h.Set("Content-Disposition", `attachment; filename="`+id+`.eml"`)
	}
	_, _ = w.Write(raw)
	return nil
}
