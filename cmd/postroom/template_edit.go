package main

import (
	"cmp"
	"maps"

	"github.com/postroom/postroom/api"
)

// contentFlags are the content of a template.
type contentFlags struct {
	Subject *string           `group:"content" placeholder:"TEXT" help:"Subject; @FILE reads a file, here and below."`
	Preview *string           `group:"content" placeholder:"TEXT" help:"What lists of mails show beside the subject."`
	HTML    *string           `group:"content" name:"html" placeholder:"TEXT" help:"html, such as @order.html; or Markdown with --format markdown."`
	Text    *string           `group:"content" placeholder:"TEXT" help:"Text. Default: made from the html."`
	Locale  map[string]string `group:"content" placeholder:"LOCALE=DIR" help:"A variant in a directory with subject.txt, preview.txt, html.hbs and text.hbs, such as de=mails/de; may be repeated."`
	Format  *string           `group:"content" placeholder:"FORMAT" help:"html or markdown."`
	Layout  *string           `group:"content" placeholder:"ID" help:"Layout around the html; '' for none."`
	Inline  *bool             `group:"content" name:"inline-css" negatable:"" help:"Write style sheets into style attributes."`
	Missing *string           `group:"content" placeholder:"WORD" help:"What a variable that the data lacks is: empty, or an error; '' for what the settings say."`
	Sample  *string           `group:"content" placeholder:"JSON" help:"Params for previews, such as @sample.json."`
}

// over returns the definition changed by the flags.
func (f contentFlags) over(d api.TemplateDefinition, con *console) (api.TemplateDefinition, error) {
	for _, part := range []struct {
		flag *string
		into *string
	}{{f.Subject, &d.Content.Subject}, {f.Preview, &d.Content.PreviewText}, {f.HTML, &d.Content.HTML}, {
		f.Text, &d.Content.Text}} {
		if part.flag == nil {
			continue
		}
		text, err := con.read(*part.flag, *part.flag == "-")
		if err != nil {
			return d, err
		}
		*part.into = string(text)
	}
	api.Set(&d.Format, f.Format)
	api.Set(&d.Layout, f.Layout)
	api.Set(&d.InlineCSS, f.Inline)
	api.Set(&d.Missing, f.Missing)
	if f.Sample != nil {
		text, err := con.readJSON("--sample", *f.Sample)
		if err != nil {
			return d, err
		}
		d.Sample = text
	}
	if len(f.Locale) == 0 {
		return d, nil
	}
	locales := map[string]api.TemplateContent{}
	maps.Copy(locales, d.Locales)
	for name, dir := range f.Locale {
		if !isDir(dir) {
			return d, usage("--locale %s: %s is no directory", name, dir)
		}
		c, _, err := readContent(dir)
		if err != nil {
			return d, err
		}
		locales[name] = c
	}
	d.Locales = locales
	return d, nil
}

// templateCreateCmd stores a template.
type templateCreateCmd struct {
	Template    string `arg:"" help:"Id of the template, chosen by you: letters, digits and . _ @ + -"`
	Name        string `placeholder:"TEXT" help:"Its name in lists; templates include a partial by it. Default: its id."`
	Description string `placeholder:"TEXT" help:"What it is for."`
	Kind        string `enum:"template,partial,layout" default:"template" help:"template, partial (included by others) or layout (around the html of others)."`
	Account     string `placeholder:"ID" help:"Account that owns it. Default: every account may use it."`
	contentFlags
}

// Run stores a template.
func (t *templateCreateCmd) Run(s *session) error {
	d, err := t.over(api.TemplateDefinition{}, s.console)
	if err != nil {
		return err
	}
	req := api.TemplateRequest{
		ID: t.Template, Name: cmp.Or(t.Name, t.Template), Description: t.Description, Kind: t.Kind,
		TemplateDefinition: d,
	}
	if t.Account != "" {
		req.Account = &t.Account
	}
	answer, err := api.CreateTemplate.Do(s, s.client, req)
	return s.said(answer, err, "%s %s: added", t.Kind, answer.ID)
}

// templateUpdateCmd changes a template.
type templateUpdateCmd struct {
	Template    string  `arg:"" help:"Id of the template."`
	Name        *string `placeholder:"TEXT" help:"Its name in lists."`
	Description *string `placeholder:"TEXT" help:"What it is for."`
	contentFlags
}

// Run changes what the flags name, unless another request changes the template meanwhile.
func (t *templateUpdateCmd) Run(s *session) error {
	old, err := api.GetTemplate.Do(s, s.client, t.Template)
	if err != nil {
		return err
	}
	d, err := t.over(old.TemplateDefinition, s.console)
	if err != nil {
		return err
	}
	req := api.TemplateRequest{Name: old.Name, Description: old.Description, TemplateDefinition: d}
	api.Set(&req.Name, t.Name)
	api.Set(&req.Description, t.Description)
	patch := wholePatch(req)
	patch.Version = old.Version
	answer, err := api.UpdateTemplate.Do(s, s.client, patch, t.Template)
	if err == nil && !s.json && answer.Version == old.Version && req.Name == old.Name &&
		req.Description == old.Description {
		return errNothing
	}
	return s.said(answer, err, "%s %s: version %d", old.Kind, answer.ID, answer.Version)
}
