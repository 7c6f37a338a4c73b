package ui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// campaignFormLimit is the size limit of the campaign form in bytes. It leaves room for 1 MB of HTML with its
// form encoding.
const campaignFormLimit = 4 << 20

// mostHTML is the maximum length of a text or HTML field in characters.
const mostHTML = 1 << 20

type campaignFormView struct {
	ID   string // empty for a new campaign
	Form form
}

// campaignForm returns the form of a campaign; id is empty for a new one.
func campaignForm(id string, f url.Values, c campaignChoices) form {
	shown := form{Action: "/campaigns", Back: "/campaigns", Save: "Save campaign",
		Twins:  "POST /v1/campaigns · postroom campaign add",
		Groups: []formGroup{audienceFields(id, f, c)}}
	if id != "" {
		at := campaignPath(id)
		shown.Action, shown.Back, shown.Twins = at, at, "PATCH /v1"+at+" · postroom campaign update"
		shown.Hidden = map[string]string{"id": id, "version": f.Get("version"), "account": f.Get("account")}
	}
	shown.Groups = append(shown.Groups, excludedFields(f, c), contentGroup(f, c), deliveryGroup(f, c),
		windowGroup(), moreGroup())
	shown.Groups = append(shown.Groups, variantGroup(f, c)...)
	return shown
}

func audienceFields(id string, f url.Values, c campaignChoices) formGroup {
	g := formGroup{Legend: "Audience", Fields: []formField{
		{Name: "name", Label: "Name", Required: true, Hint: "Only you see it. Recipients see the subject."},
	}}
	if id == "" {
		g.Fields = append(g.Fields,
			formField{Name: "campaign", Label: "ID", Most: 63, Placeholder: "made from the name"},
			oneOf(f, formField{Name: "account", Label: "Account"}, "default", c.accounts))
	}
	g.Fields = append(g.Fields,
		picker(f, "lists", "Lists", "A subscriber who is on several of these lists gets one email.", c.lists),
		picker(f, "segments", "Only these segments", "Leave all unchecked to send to everyone on the lists.",
			c.segments))
	return g
}

func excludedFields(f url.Values, c campaignChoices) formGroup {
	return formGroup{Legend: "Exclusions", Folded: true, Fields: []formField{
		picker(f, "excludeLists", "Except subscribers of these lists", "", c.lists),
		picker(f, "excludeSegments", "Except these segments", "", c.segments),
		picker(f, "excludeCampaigns", "Except recipients of these campaigns", "", c.campaigns),
	}}
}

func contentGroup(f url.Values, c campaignChoices) formGroup {
	return formGroup{Legend: "Content", Fields: []formField{
		{Name: "subject", Label: "Subject", Most: 10240, Placeholder: "the template’s subject"},
		{Name: "previewText", Label: "Preview text", Most: 1024, Hint: "Email apps show it next to the subject."},
		oneOf(f, formField{Name: "template", Label: "Template"}, "none, write the email below", c.templates),
		{Name: "render.format", Label: "Format", Kind: "choice", Choices: []string{"html", "markdown"},
			Words: map[string]string{"html": "HTML", "markdown": "Markdown"}},
		{Name: "html", Label: "HTML or Markdown", Kind: "lines", Most: mostHTML,
			Hint: "You can use variables such as {{subscriber.name}} and {{subscriber.attributes.seats}}."},
		{Name: "text", Label: "Text", Kind: "lines", Most: mostHTML,
			Hint: "Leave empty to generate it from the HTML."},
		{Name: "archive", Label: "Publish it as a web page after sending, if a list is public", Kind: "check"},
	}}
}

func deliveryGroup(f url.Values, c campaignChoices) formGroup {
	settings := "as in the settings"
	return formGroup{Legend: "Delivery", Fields: []formField{
		{Name: "from.address", Label: "From address", Placeholder: cmp.Or(c.from, "the account’s address"),
			List: c.senders, Hint: c.sendersHint},
		{Name: "from.name", Label: "From name", Placeholder: "the account’s name"},
		{Name: "replyTo", Label: "Reply-to addresses", Most: 5000, Placeholder: "the From address"},
		oneOf(f, formField{Name: "gateway", Label: "Gateway"}, "the account’s gateways", c.gateways),
		{Name: "rate", Label: "Maximum emails per second", Kind: "number",
			Hint: "Leave empty to send as fast as the account and its gateways allow."},
		{Name: "endAt", Label: "Stop sending after (UTC)", Kind: "moment"},
		{Name: "trackOpens", Label: "Track opens", Kind: "choice", Choices: []string{"", "yes", "no"},
			Placeholder: settings},
		{Name: "trackClicks", Label: "Track clicks", Kind: "choice", Choices: []string{"", "yes", "no"},
			Placeholder: settings},
	}}
}

func windowGroup() formGroup {
	return formGroup{Legend: "Sending window", Folded: true, Fields: []formField{
		{Name: "window.days", Label: "Days", Kind: "checks", Choices: weekdays,
			Hint: "Leave all unchecked to send every day."},
		{Name: "window.from", Label: "From", Kind: "time"},
		{Name: "window.until", Label: "Until", Kind: "time"},
		{Name: "window.of", Label: "Time zone of the window", Kind: "choice", Choices: []string{"", "recipient"},
			Placeholder: "the campaign’s", Words: map[string]string{"recipient": "each recipient’s"}},
	}}
}

func moreGroup() formGroup {
	return formGroup{Legend: "More settings", Folded: true, Fields: []formField{
		{Name: "fallbacks", Label: "Fallbacks (JSON)", Kind: "lines", Most: 8192,
			Placeholder: `{"firstName":"friend"}`, Hint: "Values for subscribers who lack an attribute."},
		{Name: "render.params", Label: "Parameters (JSON)", Kind: "lines", Most: 65536,
			Placeholder: `{"offer":"20 %"}`, Hint: "In the email, {{params.offer}} inserts this example."},
		{Name: "render.missing", Label: "Missing variables", Kind: "choice",
			Choices: []string{"", "empty", "error"}, Placeholder: "as in the settings",
			Words: map[string]string{"empty": "insert nothing", "error": "don’t send the email"}},
		{Name: "locale", Label: "Language", Most: 64, Placeholder: "the account’s"},
		{Name: "tz", Label: "Time zone", Most: 64, Placeholder: "the account’s, or UTC"},
		{Name: "tags", Label: "Tags", Most: 1000, Hint: "Separate tags with commas."},
		{Name: "metadata", Label: "Metadata (JSON)", Kind: "lines", Most: 8192,
			Hint: "Webhook events about this campaign include it."},
		{Name: "events", Label: "Webhook events", Kind: "choice", Choices: []string{"", "all", "none"},
			Placeholder: "failures, bounces, complaints and unsubscribes"},
		{Name: "keepLog", Label: "Add its emails to the log and the search", Kind: "check"},
	}}
}

// showCampaignForm answers with the form, filled in with f. An error says what is wrong with it.
func (u *UI) showCampaignForm(w http.ResponseWriter, r *http.Request, id string, f url.Values,
	refused error) error {
	choices, err := u.campaignChoices(r, f)
	if err != nil {
		return err
	}
	v, title := campaignFormView{ID: id, Form: campaignForm(id, f, choices)}, "New campaign"
	if id != "" {
		title = "Edit " + f.Get("name")
	}
	status, err := v.Form.refuse(r, f, refused)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the preview
	return u.show(w, r, status, "campaignform", title, v)
}

func (u *UI) newCampaign(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	return u.showCampaignForm(w, r, "", values(map[string]string{"account": clip(in.Get("account"), 256),
		"lists": clip(in.Get("list"), 63)}), nil)
}

func (u *UI) editCampaign(w http.ResponseWriter, r *http.Request) error {
	info, err := u.Campaigns.Get(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	f := campaignValues(info.Campaign)
	f.Set("version", strconv.Itoa(info.Version))
	return u.showCampaignForm(w, r, info.Campaign.Campaign, f, nil)
}

func (u *UI) createCampaign(w http.ResponseWriter, r *http.Request) error {
	in, err := readCampaign(r.PostForm)
	if err != nil {
		return u.showCampaignForm(w, r, "", r.PostForm, err)
	}
	made, err := u.Campaigns.Create(r.Context(), boundTo(r), in)
	if err != nil {
		return u.showCampaignForm(w, r, "", r.PostForm, err)
	}
	noteMade(r, made)
	return done(w, r, campaignPath(made.Campaign.Campaign), "Campaign %s saved as a draft.", made.Name)
}

func (u *UI) changeCampaign(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	version, err := readVersion(r.PostForm)
	var in api.Campaign
	if err == nil {
		in, err = readCampaign(r.PostForm)
	}
	if err == nil {
		p := campaignPatch(in)
		p.Version = version
		_, err = u.Campaigns.Update(r.Context(), boundTo(r), id, p)
	}
	if err != nil {
		return u.showCampaignForm(w, r, id, r.PostForm, err)
	}
	return done(w, r, campaignPath(id), "Campaign saved.")
}

func campaignValues(c api.Campaign) url.Values {
	f := url.Values{}
	put(f, "", c)
	for i, v := range c.Variants {
		put(f, variantPrefix(i), v)
	}
	if c.Events == "ends" {
		f.Del("events")
	}
	set := func(name, value string) {
		if value != "" {
			f.Set(name, value)
		}
	}
	set("fallbacks", objectField(c.Fallbacks))
	set("metadata", objectField(c.Metadata))
	if c.Render != nil {
		set("render.params", objectField(c.Render.Params))
	}
	if c.Window != nil && len(c.Window.Days) > 0 {
		f["window.days"] = c.Window.Days
	}
	var replies []string
	for _, a := range c.ReplyTo {
		if a.Name == "" {
			replies = append(replies, a.Address)
			continue
		}
		name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name)
		replies = append(replies, `"`+name+`" <`+a.Address+`>`)
	}
	set("replyTo", strings.Join(replies, ", "))
	if c.EndAt != nil {
		f.Set("endAt", formMoment(*c.EndAt))
	}
	return f
}

// objectField returns JSON as a field shows it, or "" if there is none.
func objectField(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return pretty(raw)
}

// readCampaign returns the campaign of a form. Its error names the fields that it can't read; package
// newsletter checks the others.
func readCampaign(f url.Values) (api.Campaign, error) {
	r := &formReader{Values: f}
	var c api.Campaign
	r.take("", &c)
	for name, into := range map[string]*[]string{"lists": &c.Lists, "segments": &c.Segments,
		"excludeLists": &c.ExcludeLists, "excludeSegments": &c.ExcludeSegments,
		"excludeCampaigns": &c.ExcludeCampaigns} {
		*into = picked(f, name)
	}
	c.Metadata, c.Fallbacks = r.object("metadata"), r.object("fallbacks")
	if params := r.object("render.params"); len(params) > 0 {
		c.Render = cmp.Or(c.Render, &api.Render{})
		c.Render.Params = params
	}
	c.Variants = readVariants(r)
	if days := f["window.days"]; len(days) > 0 {
		c.Window = cmp.Or(c.Window, &api.CampaignWindow{})
		c.Window.Days = days
	}
	if replies := r.text("replyTo"); replies != "" {
		list, err := mail.ParseAddressList(replies)
		if err != nil {
			r.wrong.Add("replyTo", "must be email addresses, separated by commas")
		}
		for _, a := range list {
			c.ReplyTo = append(c.ReplyTo, api.Address{Name: a.Name, Address: a.Address})
		}
	}
	if !(c.Rate >= 0) {
		r.wrong.Add("rate", "must be a number, 0 or more")
	}
	end, err := readMoment(r.text("endAt"))
	if err != nil {
		r.wrong.Add("endAt", "must be a date and time such as 2026-01-31T08:30")
	}
	if !end.IsZero() {
		c.EndAt = &end
	}
	return c, fault.InvalidFields(r.wrong)
}

// object returns the JSON object of a field; nil if the field is empty.
func (r *formReader) object(name string) json.RawMessage {
	raw := json.RawMessage(r.text(name))
	if len(raw) > 0 && (raw[0] != '{' || !json.Valid(raw)) {
		r.wrong.Add(name, "must be a JSON object")
	}
	return raw
}

// campaignPatch returns the change that makes a campaign what a form says. It removes fields that are empty.
func campaignPatch(c api.Campaign) api.CampaignPatch {
	return api.CampaignPatch{Name: &c.Name, From: cmp.Or(c.From, &api.Address{}), ReplyTo: &c.ReplyTo,
		Subject: &c.Subject, PreviewText: &c.PreviewText, Template: &c.Template, HTML: &c.HTML, Text: &c.Text,
		Render: cmp.Or(c.Render, &api.Render{}), Gateway: &c.Gateway, Locale: &c.Locale, TZ: &c.TZ,
		Tags: &c.Tags, Metadata: orEmpty(c.Metadata), TrackOpens: &c.TrackOpens, TrackClicks: &c.TrackClicks,
		Fallbacks: orEmpty(c.Fallbacks), Lists: &c.Lists, Segments: &c.Segments, ExcludeLists: &c.ExcludeLists,
		ExcludeSegments: &c.ExcludeSegments, ExcludeCampaigns: &c.ExcludeCampaigns, Rate: &c.Rate,
		Window: cmp.Or(c.Window, &api.CampaignWindow{}), EndAt: cmp.Or(c.EndAt, &time.Time{}),
		Events: new(cmp.Or(c.Events, "ends")), KeepLog: &c.KeepLog, Archive: &c.Archive, Variants: &c.Variants,
		Test: cmp.Or(c.Test, &api.CampaignTrial{})}
}

// orEmpty returns JSON, or an object without fields.
func orEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func wrongField(key, message string) error {
	return fault.InvalidField(key, "%s", message)
}

// reshapeCampaign answers with the form as it was filled in, and saves nothing: with the choices of another
// account, or with an unsubscribe link.
func (u *UI) reshapeCampaign(w http.ResponseWriter, r *http.Request) error {
	if err := parseFormOf(w, r, campaignFormLimit); err != nil {
		return err
	}
	f := r.PostForm
	if f.Has("insert") {
		insertUnsubscribe(f)
	}
	return u.showCampaignForm(w, r, clip(f.Get("id"), 63), f, nil)
}

// unsubscribeLink returns what the button of the editor inserts.
func unsubscribeLink(format string) string {
	if format == "markdown" {
		return "[Unsubscribe]({{rcpt.unsubscribeUrl}})"
	}
	return `<p><a href="{{rcpt.unsubscribeUrl}}">Unsubscribe</a></p>`
}

// insertUnsubscribe adds an unsubscribe link to the HTML of a form, and to its text if it has one.
func insertUnsubscribe(f url.Values) {
	html := strings.TrimRight(f.Get("html"), "\r\n ")
	link := unsubscribeLink(f.Get("render.format"))
	if end := strings.LastIndex(strings.ToLower(html), "</body>"); end >= 0 {
		f.Set("html", html[:end]+link+"\n"+html[end:])
	} else {
		f.Set("html", strings.TrimLeft(html+"\n\n"+link, "\n"))
	}
	if text := strings.TrimSpace(f.Get("text")); text != "" && !strings.Contains(text, "rcpt.unsubscribeUrl") {
		f.Set("text", text+"\n\nUnsubscribe: {{rcpt.unsubscribeUrl}}")
	}
}

// tryCampaign answers the frame next to the form with the email of a campaign that isn't saved yet.
func (u *UI) tryCampaign(w http.ResponseWriter, r *http.Request) error {
	if err := parseFormOf(w, r, campaignFormLimit); err != nil {
		return err
	}
	in, err := readCampaign(r.PostForm)
	if id := r.PostForm.Get("id"); id != "" {
		in.Campaign = id
	}
	var view trialView
	if err == nil {
		var shown api.CampaignPreview
		shown, err = u.Campaigns.Try(r.Context(), boundTo(r), in, api.CampaignSample{})
		view.TemplatePreview = api.TemplatePreview{Subject: shown.Subject, PreviewText: shown.PreviewText,
			HTML: shown.HTML, Text: shown.Text}
		view.Lacks = slices.Sorted(slices.Values(shown.Missing))
	}
	return u.showTrial(w, view, err)
}
