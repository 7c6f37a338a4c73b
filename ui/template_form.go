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
	"github.com/postroom/postroom/ui/chart"
)

type templateFormView struct {
	ID    string // empty for a new one
	Form  form
	Newer int // the version that someone else saved since then; 0 if none
	Was   int // the version that the editor started from
}

// templateForm returns the form of a template with variants for some locales; id is empty for a new one.
func templateForm(id string, locales []string) form {
	const most = 1 << 20
	f := form{Action: "/templates", Back: "/templates", Save: "Save template",
		Twins: "POST /v1/templates/template · postroom template push"}
	about := []formField{
		{Name: "name", Label: "Name", Required: true},
		{Name: "description", Label: "Description", Most: 1024},
	}
	if id == "" {
		about = append(about,
			formField{Name: "id", Label: "ID", Most: 128, Placeholder: "generated"},
			formField{Name: "kind", Label: "Kind", Kind: "choice", Choices: templateKinds},
			formField{Name: "account", Label: "Account", Placeholder: "all accounts"})
	} else {
		f = form{Action: templateAddress(id, "", 0, ""), Back: templateAddress(id, "", 0, ""),
			Save:  "Save template",
			Twins: "PUT /v1/templates/template/" + id + " · postroom template push"}
	}
	f.Groups = append([]formGroup{{Legend: "Content", Fields: contentFields("content.", "")}},
		variantGroups(locales)...)
	f.Groups = append(f.Groups,
		formGroup{Legend: "Sample data", Fields: []formField{
			{Name: "sample", Label: "Sample (JSON)", Kind: "lines", Most: most, Placeholder: `{"name": "Ann"}`,
				Hint: "Previews and tests use these parameters."},
			{Name: "previewLocale", Label: "Locale of the preview", Most: 64, Placeholder: "the default content"},
		}},
		formGroup{Legend: "Settings", Folded: id != "", Fields: append(about,
			formField{Name: "format", Label: "Format", Kind: "choice", Choices: []string{"html", "markdown"}},
			formField{Name: "layout", Label: "Layout", Most: 128, Placeholder: "none"},
			formField{Name: "missing", Label: "Missing variables", Kind: "choice",
				Choices: []string{"", "empty", "error"}, Placeholder: "as in the settings"},
			formField{Name: "inlineCss", Label: "Inline style sheets", Kind: "check"})})
	return f
}

// readTemplate returns the versioned part of a template from its form. A variant that is added becomes a
// normal variant of the form.
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

// objectFault returns why a text isn't a JSON object, with the line; "" if it is one.
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
	return "isn’t valid JSON: line " + strconv.Itoa(line) + ", column " +
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
			err = fault.InvalidField("account", "isn’t an account")
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
	return done(w, r, templateAddress(made.ID, "", 0, ""), "Template %s saved.", made.ID)
}

// changeTemplate saves the template, unless someone else changed it since the editor was opened.
func (u *UI) changeTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	f := r.PostForm
	version, err := strconv.Atoi(f.Get("version"))
	if err != nil || version < 1 {
		return fault.InvalidField("version", "must be the version of the editor")
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

// trialView is what the frame next to an editor shows.
type trialView struct {
	api.TemplatePreview
	Trouble string
	Faults  []fault.Field
	Lacks   []string // variables that the person lacks
	Sheet   string   // URL of the style sheet
}

// trialPage has the pages of the frames next to editors, which have no script and no cookies. The HTML of an
// email is in another frame within it, which can load nothing.
var trialPage = template.Must(template.New("").Funcs(template.FuncMap{"count": chart.Count}).
	ParseFS(embedded, "templates/frames/*.html"))

// tryTemplate answers the frame next to the editor with a preview of what was typed.
func (u *UI) tryTemplate(w http.ResponseWriter, r *http.Request) error {
	if err := parseFormOf(w, r, campaignFormLimit); err != nil {
		return err
	}
	f := r.PostForm
	var view trialView
	d, err := readTemplate(f)
	if err == nil {
		account := strings.TrimSpace(f.Get("account"))
		view.TemplatePreview, err = u.Templates.Try(r.Context(), boundTo(r), api.TemplateTrial{
			Kind: f.Get("kind"), TemplateDefinition: d, Account: account,
			Locale: strings.TrimSpace(f.Get("previewLocale"))})
	}
	return u.showTrial(w, view, err)
}

// showTrial answers the frame next to an editor with a preview, or with the reason why there is none.
func (u *UI) showTrial(w http.ResponseWriter, view trialView, err error) error {
	switch {
	case fault.Is(err, fault.Unprocessable) || fault.Is(err, fault.Invalid) || fault.Is(err, fault.Forbidden):
		view.Trouble, view.Faults = wordsOf(err).Message, wordsOf(err).Fields
	case err != nil:
		return err
	}
	if view.Sheet, err = u.static.url("pages.css"); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := trialPage.ExecuteTemplate(&b, "trial.html", view); err != nil {
		return err
	}
	writeFrameUnder(w, trialPolicy, b.String())
	return nil
}

// trialPolicy allows styles and embedded images, in the frame next to an editor and in the email in it.
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
	return told(w, r, to, "/messages/"+got.QueueID, err, "Test of template %s sent.", id)
}
