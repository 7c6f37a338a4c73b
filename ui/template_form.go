package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type templateFormView struct {
	ID    string // empty: a new one
	Form  form
	Newer int // the version that somebody else made meanwhile; 0: none
	Was   int // the version that the editor began with
}

// templateForm returns the form of a template with variants for some locales; id is empty for a new one.
func templateForm(id string, locales []string) form {
	const most = 1 << 20
	f := form{Action: "/templates", Back: "/templates", Save: "Store the template",
		Twins: "POST /v1/templates/template · postroom template push"}
	about := []formField{
		{Name: "name", Label: "Name", Required: true},
		{Name: "description", Label: "Description", Most: 1024},
	}
	if id == "" {
		about = append(about,
			formField{Name: "id", Label: "Id", Most: 128, Placeholder: "one is made"},
			formField{Name: "kind", Label: "Kind", Kind: "choice", Choices: templateKinds},
			formField{Name: "account", Label: "Account", Placeholder: "every account may use it"})
	} else {
		f = form{Action: templateAddress(id, "", 0, ""), Back: templateAddress(id, "", 0, ""), Save: "Save",
			Twins: "PUT /v1/templates/template/" + id + " · postroom template push"}
	}
	f.Groups = append([]formGroup{{Legend: "Content", Fields: contentFields("content.", "")}},
		variantGroups(locales)...)
	f.Groups = append(f.Groups,
		formGroup{Legend: "Sample data", Fields: []formField{
			{Name: "sample", Label: "Sample (JSON)", Kind: "lines", Most: most, Placeholder: `{"name": "Ann"}`,
				Hint: "The params of previews and of a test."},
			{Name: "previewLocale", Label: "Locale of the preview", Most: 64, Placeholder: "that of the content"},
		}},
		formGroup{Legend: "Settings", Folded: id != "", Fields: append(about,
			formField{Name: "format", Label: "Format", Kind: "choice", Choices: []string{"html", "markdown"}},
			formField{Name: "layout", Label: "Layout", Most: 128, Placeholder: "none"},
			formField{Name: "missing", Label: "A variable that the data lacks", Kind: "choice",
				Choices: []string{"", "empty", "error"}, Placeholder: "the setting templates.missing"},
			formField{Name: "inlineCss", Label: "Write style sheets into style attributes", Kind: "check"})})
	return f
}

// readTemplate returns the versioned part of a template from its form. A variant that is added becomes one of
// those of the form.
func readTemplate(v url.Values) (api.TemplateDefinition, error) {
	r := &formReader{Values: v}
	r.takeAdded()
	d := api.TemplateDefinition{Format: r.text("format"), Layout: r.text("layout"), Missing: r.text("missing"),
		InlineCSS: r.on("inlineCss"), Content: r.content("content."), Locales: r.variants()}
	if text := r.text("sample"); text != "" {
		if err := objectFault(text); err != "" {
			r.wrong.Add("sample", "%s", err)
		}
		d.Sample = json.RawMessage(text)
	}
	return d, fault.InvalidFields(r.wrong)
}

// objectFault returns why a text is no JSON object, with the line; "": it is one.
func objectFault(text string) string {
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &object)
	at := 0
	switch e := err.(type) {
	case nil:
		return ""
	case *json.SyntaxError:
		at = int(e.Offset)
	default:
		return `must be an object, such as {"name": "Ann"}`
	}
	before := text[:min(max(at-1, 0), len(text))]
	line := strings.Count(before, "\n") + 1
	return "is no JSON: line " + strconv.Itoa(line) + ", column " +
		strconv.Itoa(len(before)-strings.LastIndexByte(before, '\n')) + ": " + err.Error()
}

func (u *UI) newTemplate(w http.ResponseWriter, r *http.Request) error {
	return u.showTemplateForm(w, r, templateFormView{}, url.Values{"kind": {"template"},
		"account": {boundTo(r)}}, nil)
}

// showTemplateForm answers with the editor.
func (u *UI) showTemplateForm(w http.ResponseWriter, r *http.Request, view templateFormView,
	v url.Values, refused error) error {
	title := "New template"
	view.Form = templateForm(view.ID, localesOf(v))
	if view.ID != "" {
		title = "Edit " + view.ID
		t, err := u.Templates.Get(r.Context(), boundTo(r), view.ID)
		if err != nil {
			return err
		}
		view.Was, err = strconv.Atoi(cmp.Or(v.Get("version"), strconv.Itoa(t.Version)))
		if err != nil {
			return fault.InvalidField("version", "must be a number")
		}
		if t.Version != view.Was {
			view.Newer = t.Version
		}
		view.Form.Hidden = map[string]string{"version": strconv.Itoa(view.Was), "kind": t.Kind}
	}
	status, err := view.Form.refuse(r, v, refused)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the preview
	return u.show(w, r, status, "templateform", title, view)
}

func (u *UI) editTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	t, err := u.Templates.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	f := values(map[string]string{"sample": templateView{Template: t}.Sample()})
	put(f, "", t)
	put(f, "content.", t.Content)
	for locale, c := range t.Locales {
		put(f, "locales."+locale+".", c)
	}
	return u.showTemplateForm(w, r, templateFormView{ID: id}, f, nil)
}

func (u *UI) createTemplate(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	account := strings.TrimSpace(f.Get("account"))
	d, err := readTemplate(f)
	if err == nil && account != "" && boundTo(r) == "" {
		if _, err = u.Accounts.Get(r.Context(), account); fault.Is(err, fault.NotFound) {
			err = fault.InvalidField("account", "is no account")
		}
	}
	var made api.TemplateCreated
	if err == nil {
		req := api.TemplateRequest{ID: strings.TrimSpace(f.Get("id")), Name: strings.TrimSpace(f.Get("name")),
			Description: strings.TrimSpace(f.Get("description")), Kind: f.Get("kind"), TemplateDefinition: d}
		if account != "" {
			req.Account = &account
		}
		made, err = u.Templates.Create(r.Context(), boundTo(r), req)
	}
	if err != nil {
		return u.showTemplateForm(w, r, templateFormView{}, f, err)
	}
	noteMade(r, made)
	return done(w, r, templateAddress(made.ID, "", 0, ""), "The template %s was stored.", made.ID)
}

// changeTemplate stores what was edited, unless somebody else changed the template meanwhile.
func (u *UI) changeTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	f := r.PostForm
	version, err := strconv.Atoi(f.Get("version"))
	if err != nil || version < 1 {
		return fault.InvalidField("version", "must be that of the editor")
	}
	d, err := readTemplate(f)
	var got api.TemplateUpdated
	if err == nil {
		if d.Sample == nil {
			d.Sample = json.RawMessage("{}") // takes it away
		}
		name, description := strings.TrimSpace(f.Get("name")), strings.TrimSpace(f.Get("description"))
		got, err = u.Templates.Update(r.Context(), boundTo(r), id, api.TemplatePatch{Name: &name,
			Description: &description, Format: &d.Format, Content: &d.Content, Layout: &d.Layout,
			Locales: &d.Locales, InlineCSS: &d.InlineCSS, Missing: &d.Missing, Sample: &d.Sample, Version: version})
	}
	if err != nil {
		return u.showTemplateForm(w, r, templateFormView{ID: id}, f, err)
	}
	return done(w, r, templateAddress(id, "", 0, ""), "Saved as version %d.", got.Version)
}

// trialView is what the frame beside the editor shows.
type trialView struct {
	api.TemplatePreview
	Trouble string
	Faults  []fault.Field
	Sheet   string // URL of the style sheet
}

// trialPage is a page of its own: the frame has no script and no cookies. The html of the mail is in a frame
// within it, which can load nothing.
var trialPage = template.Must(template.ParseFS(embedded, "templates/frames/trial.html"))

// tryTemplate answers the frame beside the editor: what the template that was not saved yet says.
func (u *UI) tryTemplate(w http.ResponseWriter, r *http.Request) error {
	if err := parseFormOf(w, r, campaignFormLimit); err != nil {
		return err
	}
	f := r.PostForm
	sheet, err := u.static.url("pages.css")
	if err != nil {
		return err
	}
	view := trialView{Sheet: sheet}
	d, err := readTemplate(f)
	if err == nil {
		account := strings.TrimSpace(f.Get("account"))
		view.TemplatePreview, err = u.Templates.Try(r.Context(), boundTo(r), api.TemplateTrial{
			Kind: f.Get("kind"), TemplateDefinition: d, Account: account,
			Locale: strings.TrimSpace(f.Get("previewLocale"))})
	}
	switch {
	case fault.Is(err, fault.Unprocessable) || fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden):
		view.Trouble, view.Faults = wordsOf(err).Message, wordsOf(err).Fields
	case err != nil:
		return err
	}
	var b bytes.Buffer
	if err := trialPage.ExecuteTemplate(&b, "trial.html", view); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Security-Policy", trialPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes())
	return nil
}

// trialPolicy is that of the frame beside the editor, and of the mail in it: styles and embedded images only.
const trialPolicy = "sandbox; default-src 'none'; img-src data:; style-src 'self' 'unsafe-inline'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// testTemplate sends a template, filled with its sample, to one address.
func (u *UI) testTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	to := templateAddress(id, "", 0, "")
	t, err := u.Templates.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return undone(w, r, to, err)
	}
	f := r.PostForm
	req := api.SubmitRequest{Account: boundTo(r), Template: id, Locale: strings.TrimSpace(f.Get("locale")),
		To: api.Addresses{{Address: strings.TrimSpace(f.Get("to"))}}, Tags: []string{"test"}}
	if t.Account != nil {
		req.Account = *t.Account
	} else if boundTo(r) == "" {
		req.Account = strings.TrimSpace(f.Get("as"))
	}
	if len(t.Sample) > 0 {
		req.Render = &api.Render{Params: t.Sample}
	}
	got, err := u.Outbox.Intake.Submit(r.Context(), req)
	return told(w, r, to, "/messages/"+got.QueueID, err, "The test of template %s was accepted.", id)
}
