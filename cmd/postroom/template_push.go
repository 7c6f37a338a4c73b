package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/postroom/postroom/api"
)

type templatePushCmd struct {
	Dir string `arg:"" help:"Directory with subject.txt, preview.txt, html.hbs (or html.md.hbs), text.hbs, sample.json, template.json and locales/de/…; none of them is required."`
	ID  string `name:"id" placeholder:"ID" help:"ID to store it under. Defaults to the ID in template.json, else to the directory's name."`
}

// Run stores the template, as a new one or in place of the one there is.
func (t *templatePushCmd) Run(s *session) error {
	if !isDir(t.Dir) {
		return usage("%s isn't a directory", t.Dir)
	}
	req, err := readTemplate(t.Dir)
	if err != nil {
		return err
	}
	req.ID = cmp.Or(t.ID, req.ID)
	kind := cmp.Or(req.Kind, "template")
	old, err := api.GetTemplate.Do(s, s.client, req.ID)
	if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.StatusCode == http.StatusNotFound {
		answer, err := api.CreateTemplate.Do(s, s.client, req)
		return s.said(answer, filed(t.Dir, req.Format, err), "%s %s: added", kind, answer.ID)
	}
	switch {
	case err != nil:
		return err
	case kind != old.Kind:
		return fmt.Errorf("%s is a %s, not a %s: delete it first, or push under another --id", old.ID, old.Kind,
			kind)
	case req.Account != nil && templateAccount(old.Account) != *req.Account:
		return fmt.Errorf("%s is a template of account %s, not of %s: push under another --id", old.ID,
			templateAccount(old.Account), *req.Account)
	}
	answer, err := api.UpdateTemplate.Do(s, s.client, wholePatch(req), req.ID)
	asBefore := ""
	if answer.Version == old.Version {
		asBefore = ", as before"
	}
	return s.said(answer, filed(t.Dir, req.Format, err), "%s %s: version %d%s", old.Kind, answer.ID,
		answer.Version, asBefore)
}

// wholePatch returns the patch that replaces a template by the request.
func wholePatch(req api.TemplateRequest) api.TemplatePatch {
	locales, sample := req.Locales, req.Sample
	if locales == nil {
		locales = map[string]api.TemplateContent{}
	}
	if sample == nil {
		sample = json.RawMessage("{}")
	}
	return api.TemplatePatch{
		Name: &req.Name, Description: &req.Description, Format: &req.Format, Content: &req.Content,
		Locales: &locales, Layout: &req.Layout,
		InlineCSS: &req.InlineCSS, Missing: &req.Missing, Sample: &sample,
	}
}

type templatePullCmd struct {
	Template string `arg:"" help:"ID of the template."`
	Dir      string `arg:"" help:"Directory, created if it doesn't exist. Replaces template files in it."`
	Version  int    `placeholder:"N" help:"An earlier version."`
}

func (t *templatePullCmd) Run(s *session) error {
	info, err := s.template(t.Template, t.Version)
	if err == nil {
		err = writeTemplate(t.Dir, info)
	}
	return s.said(info, err, "%s %s: version %d is in %s", info.Kind, info.ID, info.Version,
		filepath.Clean(t.Dir))
}
