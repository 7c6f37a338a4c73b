package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// templateCmd is about what mail is made of.
type templateCmd struct {
	List     templateListCmd     `cmd:"" default:"withargs" help:"List templates, partials and layouts (the default)."`
	Show     templateShowCmd     `cmd:"" help:"Show one template."`
	Render   templateRenderCmd   `cmd:"" help:"Show what a template says, stored or in a directory; nothing is sent."`
	Push     templatePushCmd     `cmd:"" help:"Store a template that is in a directory, or change it to what the directory says."`
	Pull     templatePullCmd     `cmd:"" help:"Write a stored template into a directory."`
	Create   templateCreateCmd   `cmd:"" help:"Store a template made of a few files."`
	Update   templateUpdateCmd   `cmd:"" help:"Change what the flags name of a template."`
	Versions templateVersionsCmd `cmd:"" help:"List the versions that are kept of a template."`
	Restore  templateRestoreCmd  `cmd:"" help:"Give a template the content of a version again."`
	Delete   templateDeleteCmd   `cmd:"" help:"Delete a template that no other one uses."`
}

// templateListCmd lists templates.
type templateListCmd struct {
	Account string `placeholder:"ID" help:"Only those of this account."`
	Kind    string `enum:",template,partial,layout" default:"" placeholder:"KIND" help:"Only this kind: template, partial or layout."`
	Search  string `placeholder:"TEXT" help:"Only those with this in their id, name or description."`
	reachFlags
}

// Run lists templates.
func (t *templateListCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	list, err := pages(func(page int) ([]api.TemplateRow, int, error) {
		p, err := api.ListTemplates.Do(ctx, client, api.TemplateQuery{Account: t.Account, Kind: t.Kind, Search: t.Search, Page: page, PageSize: maxPage})
		return p.Templates, p.Pages, err
	})
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(list)
	}
	if len(list) == 0 {
		con.say("no templates; to store one: postroom template push --help")
		return nil
	}
	con.show(templatesGrid(list, time.Now()))
	return nil
}

func templatesGrid(list []api.TemplateRow, now time.Time) grid {
	g := grid{headings: []string{"template", "name", "kind", "account", "format", "locales", "version", "changed"}}
	for _, row := range list {
		g.add(row.ID, row.Name, row.Kind, accountOf(row.Account), row.Format, orDash(strings.Join(row.Locales, " ")), fmt.Sprint(row.Version), moment(row.Updated, now))
	}
	return g
}

// accountOf words whose a template is.
func accountOf(account *string) string {
	if account == nil {
		return "-"
	}
	return *account
}

// templateShowCmd shows one template.
type templateShowCmd struct {
	Template string `arg:"" help:"Id of the template."`
	Version  int    `placeholder:"N" help:"An earlier version."`
	reachFlags
}

// Run shows one template.
func (t *templateShowCmd) Run(ctx context.Context, con *console) error {
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
		info.TemplateDefinition, info.Version, info.Updated = v.TemplateDefinition, v.Version, v.Created
	}
	if t.JSON {
		return con.printJSON(info)
	}
	con.show(templateGrid(info))
	return nil
}

func templateGrid(info api.Template) grid {
	g := grid{headings: []string{"template", info.ID}}
	add := func(name, value string) {
		if value != "" {
			g.add(name, value)
		}
	}
	add("name", info.Name)
	add("description", info.Description)
	add("kind", info.Kind)
	if info.Account != nil {
		add("account", *info.Account)
	}
	add("format", info.Format)
	add("layout", info.Layout)
	if info.InlineCSS {
		add("css", "inlined")
	}
	add("missing", info.Missing)
	addContent(&g, "", info.Content)
	for _, locale := range sortedLocales(info.Locales) {
		addContent(&g, locale+" ", info.Locales[locale])
	}
	add("sample", string(info.Sample))
	add("version", fmt.Sprint(info.Version))
	add("created", info.Created.Local().Format(time.DateTime))
	add("changed", info.Updated.Local().Format(time.DateTime))
	return g
}

func addContent(g *grid, prefix string, c api.TemplateContent) {
	for _, part := range []struct{ name, text string }{{"subject", c.Subject}, {"preview", c.PreviewText}, {"html", c.HTML}, {"text", c.Text}} {
		if part.text != "" {
			g.add(prefix+part.name, clip(part.text, 2000))
		}
	}
}

func sortedLocales(m map[string]api.TemplateContent) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// templateVersionsCmd lists versions.
type templateVersionsCmd struct {
	reachFlags
	Template string `arg:"" help:"Id of the template."`
}

// Run lists versions.
func (t *templateVersionsCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	all, err := api.ListTemplateVersions.Do(ctx, client, t.Template)
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(all)
	}
	g := grid{headings: []string{"version", "made", "bytes", "remark"}}
	for _, v := range all.Versions {
		remark := ""
		if v.Version == all.Version {
			remark = "current"
		}
		if v.Restored > 0 {
			remark = strings.TrimPrefix(remark+", ", ", ") + fmt.Sprintf("restored from %d", v.Restored)
		}
		g.add(fmt.Sprint(v.Version), moment(v.Created, time.Now()), fmt.Sprint(v.Size), orDash(remark))
	}
	con.show(g)
	return nil
}

// templateRestoreCmd restores a version.
type templateRestoreCmd struct {
	reachFlags
	Template string `arg:"" help:"Id of the template."`
	Version  int    `arg:"" help:"Number of the version, as postroom template versions lists them."`
}

// Run restores a version.
func (t *templateRestoreCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	answer, err := api.RestoreTemplate.Do(ctx, client, api.TemplateRestore{Version: t.Version}, t.Template)
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(answer)
	}
	con.say("template %s: version %d, which says what version %d said", answer.ID, answer.Version, t.Version)
	return nil
}

// templateDeleteCmd deletes a template.
type templateDeleteCmd struct {
	reachFlags
	Template string `arg:"" help:"Id of the template."`
	Yes      bool   `short:"y" help:"Do not ask."`
}

// Run deletes a template.
func (t *templateDeleteCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	if !t.Yes && !con.confirm("Delete template %s with all its versions?", t.Template) {
		return errors.New("nothing was deleted: say --yes to delete the template")
	}
	answer, err := api.DeleteTemplate.Do(ctx, client, t.Template)
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(answer)
	}
	con.say("template %s deleted", answer.ID)
	return nil
}

// isDir reports whether there is a directory of this name.
func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
