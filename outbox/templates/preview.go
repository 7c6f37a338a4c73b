package templates

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/outbox/templates/render"
)

// previewTimeout is the timeout of a preview, including all reads.
const previewTimeout = 12 * time.Second

// shownInLayout is the html inside a layout that is previewed alone.
const shownInLayout = "<p>…</p>"

// preview is a preview request.
type preview struct {
	params  json.RawMessage
	locale  string
	tz      string
	account string
	to      *api.Address
}

// Preview renders a stored template with data, without the recipient, and returns the missing variables.
// Missing variables are empty, even in strict templates. A partial or layout is rendered alone. Unknown, or
// hidden from a caller bound to an account: NotFound. Errors with this data: Unprocessable, code
// TemplateFault.
func (t *Templates) Preview(ctx context.Context, bound, id string, req api.TemplatePreviewRequest) (
	api.TemplatePreview, error) {
	e, err := t.seen(ctx, bound, id)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	if req.Account, err = senderFor(bound, req.Account, e.Value.Account); err != nil {
		return api.TemplatePreview{}, err
	}
	number := cmp.Or(req.Version, e.Value.Version)
	d, err := t.versionOf(ctx, e, number)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	shown := *e
	shown.Value.describe(d)
	p, err := t.preview(ctx, &shown, d, preview{req.Params, req.Locale, req.TZ, req.Account, req.To})
	p.Version = number
	return p, err
}

// Try is Preview for a template that is not stored. It returns the same errors as Create.
func (t *Templates) Try(ctx context.Context, bound string, req api.TemplateTrial) (api.TemplatePreview,
	error) {
	account, err := senderFor(bound, req.Account, "")
	if err != nil {
		return api.TemplatePreview{}, err
	}
	req.Kind = cmp.Or(req.Kind, kindTemplate)
	d := &req.TemplateDefinition
	normalise(d)
	// no other has this id
	e := &entry{ID: " ", Value: record{Account: account, Name: "preview", Kind: req.Kind}}
	e.Value.describe(d)
	if err := fault.InvalidFields(checkDefinition(req.Kind, d)); err != nil {
		return api.TemplatePreview{}, err
	}
	return t.preview(ctx, e, d, preview{req.Params, req.Locale, req.TZ, account, req.To})
}

// senderFor returns the account of a preview: the template's account, if it has one.
func senderFor(bound, asked, owner string) (string, error) {
	switch {
	case bound != "" && asked != "" && asked != bound, owner != "" && asked != "" && asked != owner:
		return "", fault.New(fault.Forbidden, "", "Unauthorized account")
	case owner != "":
		return owner, nil
	case bound != "":
		return bound, nil
	}
	return asked, nil
}

// preview renders an entry with a definition that may differ from the stored one.
func (t *Templates) preview(ctx context.Context, e *entry, d *definition, p preview) (api.TemplatePreview,
	error) {
	zone, err := zoneOf(p.tz)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	data, err := t.data(ctx, d, p)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	within, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	mail, err := t.fill(within, e, d, p, render.Input{Data: data, Locale: p.locale, Zone: zone})
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fault.Wrap(err, fault.Unprocessable, "TemplateFault",
			"The template takes too long to read and render")
	}
	return mail, err
}

// fill parses and renders an entry with everything it can currently reach.
func (t *Templates) fill(ctx context.Context, e *entry, d *definition, p preview, in render.Input) (
	api.TemplatePreview, error) {
	l, err := t.libraryNow(ctx, e, d)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	a, read, wrong := l.readVariant(e, p.locale)
	if wrong = append(l.verifyLayout(e), wrong...); len(wrong) > 0 {
		return api.TemplatePreview{}, render.Faults(wrong)
	}
	if e.Value.Kind == kindLayout {
		a.options.Layout, a.source.HTML = a.source.HTML, shownInLayout
		if read, err = render.Parse(a.source, a.options); err != nil {
			return api.TemplatePreview{}, err
		}
	}
	mail, err := read.Render(ctx, in)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	return previewed(read, mail, a.locale), nil
}

// libraryNow returns the current library of an entry, with a definition that may differ from the stored one.
func (t *Templates) libraryNow(ctx context.Context, e *entry, d *definition) (*library, error) {
	for range tries {
		c, err := t.fresh(ctx)
		if err != nil {
			return nil, err
		}
		l, err := t.library(ctx, c.with(e), map[string]*definition{e.ID: d}, e)
		if err != errOutdated {
			return l, err
		}
	}
	return nil, errOutdated
}

// data returns the template data of a preview.
func (t *Templates) data(ctx context.Context, d *definition, p preview) (map[string]any, error) {
	sender, err := t.senders.Sender(ctx, p.account)
	if err != nil {
		return nil, err
	}
	data := render.Context{Account: sender, ServiceURL: t.senders.ServiceURL()}
	if p.to != nil {
		data.Recipient = render.Person{Name: p.to.Name, Address: p.to.Address}
	}
	raw := p.params
	if len(raw) == 0 {
		raw = d.Sample
	}
	if len(raw) == 0 {
		return data.Data(nil), nil
	}
	var params map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // large numbers keep their digits
	if err := decoder.Decode(&params); err != nil {
		return nil, fault.InvalidField("params", "must be of type object")
	}
	return data.Data(params), nil
}

// previewed returns the answer for a rendered mail.
func previewed(read *render.Template, mail render.Mail, locale string) api.TemplatePreview {
	p := api.TemplatePreview{
		Subject: mail.Subject, PreviewText: mail.PreviewText, HTML: mail.HTML, Text: mail.Text, Locale: locale,
		Missing: []api.TemplateMissing{}, Variables: []string{},
	}
	for _, m := range mail.Missing {
		p.Missing = append(p.Missing, api.TemplateMissing{Name: m.Name, Part: m.Part, Partial: m.Template,
			Line: m.Line, Column: m.Column})
	}
	for _, v := range read.Variables() {
		p.Variables = append(p.Variables, v.Name)
	}
	return p
}

// zoneOf finds a time zone by its name; an empty name is UTC.
func zoneOf(name string) (*time.Location, error) {
	zone, err := schedule.Zone(cmp.Or(name, "UTC"))
	if err != nil {
		return nil, fault.InvalidField("tz", "%s", err)
	}
	return zone, nil
}
