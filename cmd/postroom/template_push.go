package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/postroom/postroom/api"
)

// templatePushCmd stores a template of a directory.
type templatePushCmd struct {
	Dir string `arg:"" help:"Directory with subject.txt, preview.txt, html.hbs (or html.md.hbs), text.hbs, sample.json, template.json and locales/de/…; none of them is required."`
	ID  string `name:"id" placeholder:"ID" help:"Store it under this id. Default: that of template.json, else the directory's name."`
	reachFlags
}

// Run stores the template, as a new one or in place of the one there is.
func (t *templatePushCmd) Run(ctx context.Context, con *console) error {
	if !isDir(t.Dir) {
		return usage("%s is no directory", t.Dir)
	}
	req, err := readTemplate(t.Dir)
	if err != nil {
		return err
	}
	if t.ID != "" {
		req.ID = t.ID
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	old, err := api.GetTemplate.Do(ctx, client, req.ID)
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.StatusCode == http.StatusNotFound {
		answer, err := api.CreateTemplate.Do(ctx, client, req)
		return t.stored(con, req.Format, answer, err, "%s %s: added", orTemplate(req.Kind), answer.ID)
	}
	if err != nil {
		return err
	}
	if kind := orTemplate(req.Kind); kind != old.Kind {
		return fmt.Errorf("%s is a %s, not a %s: delete it first, or push under another --id", old.ID, old.Kind, kind)
	}
	if accountOf(old.Account) != accountOf(req.Account) && req.Account != nil {
		return fmt.Errorf("%s is a template of account %s, not of %s: push under another --id", old.ID, accountOf(old.Account), *req.Account)
	}
	answer, err := api.UpdateTemplate.Do(ctx, client, wholePatch(req), req.ID)
	said := "%s %s: version %d"
	if answer.Version == old.Version {
		said = "%s %s: version %d, as before"
	}
	return t.stored(con, req.Format, answer, err, said, old.Kind, answer.ID, answer.Version)
}

func (t *templatePushCmd) stored(con *console, format string, answer any, err error, said string, args ...any) error {
	switch {
	case err != nil:
		return filed(t.Dir, format, err)
	case t.JSON:
		return con.printJSON(answer)
	}
	con.say(said, args...)
	return nil
}

func orTemplate(kind string) string {
	if kind == "" {
		return "template"
	}
	return kind
}

// wholePatch makes a template all that a directory says, and nothing else.
func wholePatch(req api.TemplateRequest) api.TemplatePatch {
	locales, sample := req.Locales, req.Sample
	if locales == nil {
		locales = map[string]api.TemplateContent{}
	}
	if sample == nil {
		sample = json.RawMessage("{}")
	}
	return api.TemplatePatch{
		Name: &req.Name, Description: &req.Description, Format: &req.Format, Content: &req.Content, Locales: &locales, Layout: &req.Layout,
		InlineCSS: &req.InlineCSS, Missing: &req.Missing, Sample: &sample,
	}
}

// templatePullCmd writes a template into a directory.
type templatePullCmd struct {
	Template string `arg:"" help:"Id of the template."`
	Dir      string `arg:"" help:"Directory, made if it isn't there. Files of a template in it are replaced."`
	Version  int    `placeholder:"N" help:"An earlier version."`
	reachFlags
}

// Run writes the template.
func (t *templatePullCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	info, err := api.GetTemplate.Do(ctx, client, t.Template)
	if err != nil {
		return err
	}
	if t.Version > 0 {
		v, err := api.GetTemplateVersion.Do(ctx, client, t.Template, t.Version)
		if err != nil {
			return err
		}
		info.TemplateDefinition, info.Version = v.TemplateDefinition, v.Version
	}
	if err := writeTemplate(t.Dir, info); err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(info)
	}
	con.say("%s %s: version %d is in %s", info.Kind, info.ID, info.Version, filepath.Clean(t.Dir))
	return nil
}
