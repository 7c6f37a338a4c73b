package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func templateVerbs() []verb {
	return []verb{
		{name: "list", help: "List templates, partials and layouts (the default).",
			run: list(api.ListTemplates, "no templates; to store one: postroom template push --help", templatesGrid)},
		{name: "show", help: "Show one template.", run: &templateShowCmd{}},
		{name: "render", help: "Render a stored template, or a template in a directory. Sends nothing.",
			run: &templateRenderCmd{}},
		{name: "push", help: "Store the template of a directory, or update the stored template.",
			run: &templatePushCmd{}},
		{name: "pull", help: "Write a stored template into a directory.", run: &templatePullCmd{}},
		{name: "delete", help: "Delete a template that no other template uses.", run: &deleteCmd[api.TemplateDeleted]{
			route: api.DeleteTemplate, what: "template", consequence: " with all its versions",
		}},
	}
}

func templatesGrid(list []api.TemplateRow, now time.Time) grid {
	g := newGrid("template", "name", "kind", "account", "format", "locales", "version", "changed")
	for _, row := range list {
		g.add(row.ID, row.Name, row.Kind, templateAccount(row.Account), row.Format,
			orDash(strings.Join(row.Locales, " ")), row.Version, moment(row.Updated, now))
	}
	return g
}

func templateAccount(account *string) string { return *cmp.Or(account, new("-")) }

type templateShowCmd struct {
	Template string `arg:"" help:"ID of the template."`
	Version  int    `placeholder:"N" help:"An earlier version."`
}

func (t *templateShowCmd) Run(s *session) error {
	info, err := s.template(t.Template, t.Version)
	return s.answer(info, err, func() { s.show(templateGrid(info)) })
}

// template returns a stored template as it is, or as an earlier version was.
func (s *session) template(id string, version int) (api.Template, error) {
	info, err := api.GetTemplate.Do(s, s.client, id)
	if err != nil || version == 0 {
		return info, err
	}
	v, err := api.GetTemplateVersion.Do(s, s.client, id, version)
	info.TemplateDefinition, info.Version, info.Updated = v.TemplateDefinition, v.Version, v.Created
	return info, err
}

func templateGrid(info api.Template) grid {
	g := newGrid("template", info.ID)
	add := g.fact
	add("name", info.Name)
	add("description", info.Description)
	add("kind", info.Kind)
	add("account", *cmp.Or(info.Account, new("")))
	add("format", info.Format)
	add("layout", info.Layout)
	if info.InlineCSS {
		add("css", "inlined")
	}
	add("missing", info.Missing)
	addContent(&g, "", info.Content)
	for _, locale := range slices.Sorted(maps.Keys(info.Locales)) {
		addContent(&g, locale+" ", info.Locales[locale])
	}
	add("sample", string(info.Sample))
	add("version", fmt.Sprint(info.Version))
	add("created", info.Created.Local().Format(time.DateTime))
	add("changed", info.Updated.Local().Format(time.DateTime))
	return g
}

func addContent(g *grid, prefix string, c api.TemplateContent) {
	g.fact(prefix+"subject", clip(c.Subject, 2000))
	g.fact(prefix+"preview", clip(c.PreviewText, 2000))
	g.fact(prefix+"html", clip(c.HTML, 2000))
	g.fact(prefix+"text", clip(c.Text, 2000))
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
