package ui

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// campaignFormLimit is the size limit of the form of a campaign in bytes: html of 1 MB, and what the encoding
// of forms adds to it.
const campaignFormLimit = 4 << 20

// campaignFormView is the form of a campaign. After a refusal it has what was filled in.
type campaignFormView struct {
	formValues
	ID      string // empty: a new one
	Trouble string // why it was refused; empty: it was not
	Days    []string
	Tracks  []trackChoice
}

type trackChoice struct{ Name, Label string }

func (u *UI) showCampaignForm(w http.ResponseWriter, r *http.Request, id string, f url.Values,
	refused error) error {
	v := campaignFormView{formValues: formValues{f}, ID: id, Days: weekdays,
		Tracks: []trackChoice{{"trackOpens", "Count opens"}, {"trackClicks", "Count clicks"}}}
	title := "New campaign"
	if id != "" {
		title = "Change " + f.Get("name")
	}
	status, words, err := formTrouble(r, refused)
	if err != nil {
		return err
	}
	v.Trouble = words
	return u.show(w, r, status, "campaignform", title, v)
}

func (u *UI) newCampaign(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	return u.showCampaignForm(w, r, "", url.Values{"account": {clip(in.Get("account"), 256)},
		"lists": {clip(in.Get("list"), 63)}}, nil)
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
	return done(w, r, campaignPath(made.Campaign.Campaign), "The campaign %s is a draft.", made.Name)
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
	return done(w, r, campaignPath(id), "Changed.")
}

func campaignValues(c api.Campaign) url.Values {
	render, window := *cmp.Or(c.Render, &api.Render{}), *cmp.Or(c.Window, &api.CampaignWindow{})
	from := *cmp.Or(c.From, &api.Address{})
	f := url.Values{}
	put(f, "", c)
	maps.Copy(f, values(map[string]string{"fromName": from.Name, "fromAddress": from.Address,
		"format": render.Format, "missing": render.Missing, "params": objectField(render.Params),
		"fallbacks": objectField(c.Fallbacks), "metadata": objectField(c.Metadata),
		"windowFrom": window.From, "windowUntil": window.Until, "windowOf": window.Of}))
	if len(window.Days) > 0 {
		f["windowDays"] = window.Days
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
	maps.Copy(f, values(map[string]string{"replyTo": strings.Join(replies, ", ")}))
	if c.EndAt != nil {
		f.Set("endAt", formMoment(*c.EndAt))
	}
	maps.Copy(f, variantValues(c))
	return f
}

// objectField returns JSON as a field shows it; empty: there is none.
func objectField(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return pretty(raw)
}

// readCampaign returns the campaign of a form. Its error has all that can't be read; the rest is for the
// package below.
func readCampaign(f url.Values) (api.Campaign, error) {
	r := &formReader{Values: f}
	text := r.text
	object := func(name string) json.RawMessage {
		raw := json.RawMessage(text(name))
		if len(raw) > 0 && (raw[0] != '{' || !json.Valid(raw)) {
			r.wrong.Add(name, "must be a JSON object")
		}
		return raw
	}
	var c api.Campaign
	r.take("", &c)
	c.Metadata, c.Fallbacks = object("metadata"), object("fallbacks")
	if render := (api.Render{Format: text("format"), Params: object("params"),
		Missing: text("missing")}); render.Format != "" || render.Missing != "" || len(render.Params) > 0 {
		c.Render = &render
	}
	if text("fromName")+text("fromAddress") != "" {
		c.From = &api.Address{Name: text("fromName"), Address: text("fromAddress")}
	}
	if replies := text("replyTo"); replies != "" {
		list, err := mail.ParseAddressList(replies)
		if err != nil {
			r.wrong.Add("replyTo", "must be addresses, separated by commas")
		}
		for _, a := range list {
			c.ReplyTo = append(c.ReplyTo, api.Address{Name: a.Name, Address: a.Address})
		}
	}
	if text("windowFrom")+text("windowUntil") != "" {
		c.Window = &api.CampaignWindow{Days: f["windowDays"], From: text("windowFrom"), Until: text("windowUntil"),
			Of: text("windowOf")}
	}
	c.Variants, c.Test = readVariants(text, &r.wrong)
	if !(c.Rate >= 0) {
		r.wrong.Add("rate", "must be a number, 0 or more")
	}
	end, err := readMoment(text("endAt"))
	if err != nil {
		r.wrong.Add("endAt", "is not a date and time such as 2026-01-31T08:30")
	}
	if !end.IsZero() {
		c.EndAt = &end
	}
	return c, fault.InvalidFields(r.wrong)
}

// campaignPatch returns the change that makes a campaign what a form says. What the form has not is removed.
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
