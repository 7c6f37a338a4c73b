package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/docs"
	"github.com/postroom/postroom/smtpsend/replies"
)

// guidePath is where the documentation is served: a page of docs/ under its path, without .md.
const guidePath = "/docs/guide"

// guideView is a page of the documentation.
type guideView struct {
	Title string
	Index bool // the list of all pages
	HTML  template.HTML
	At    string // name of the page
	Q     string // words of the search
	Found []guideHit
}

// guideSection is a heading of the index with the pages below it.
type guideSection struct {
	Title string
	Pages []guideLink
}

// Has reports whether the section has a page.
func (s guideSection) Has(name string) bool {
	return slices.ContainsFunc(s.Pages, func(p guideLink) bool { return p.Name == name })
}

// guideLink is a page of the documentation. Its name is its path without .md.
type guideLink struct{ Name, Title string }

// guideHit is a page that the search found, with the text around the first match.
type guideHit struct {
	guideLink
	Text string
}

var (
	indexLine = regexp.MustCompile(`(?m)^## (.+)$|\[([^\]]+)\]\(([a-z0-9/-]+)\.md\)`)
	markup    = regexp.MustCompile("[`*_#|>]+|\\]\\([^)]*\\)|\\[")
)

// guideMenu returns the pages of the documentation by section, as the index lists them.
var guideMenu = sync.OnceValue(func() (menu []guideSection) {
	index, err := fs.ReadFile(docs.Pages, "index.md")
	if err != nil {
		return nil
	}
	for _, m := range indexLine.FindAllSubmatch(index, -1) {
		if heading := string(m[1]); heading != "" {
			menu = append(menu, guideSection{Title: heading})
			continue
		}
		if page := (guideLink{string(m[3]), string(m[2])}); len(menu) > 0 && !menu[len(menu)-1].Has(page.Name) {
			menu[len(menu)-1].Pages = append(menu[len(menu)-1].Pages, page)
		}
	}
	return slices.DeleteFunc(menu, func(s guideSection) bool { return len(s.Pages) == 0 })
})

// Menu returns the side menu.
func (guideView) Menu() []guideSection { return guideMenu() }

// searchGuide returns the pages that have all words, those with a match in the title first.
func searchGuide(q string) []guideHit {
	var titled, found []guideHit
	words := strings.Fields(strings.ToLower(q))
	for _, section := range guideMenu() {
		for _, page := range section.Pages {
			raw, err := fs.ReadFile(docs.Pages, page.Name+".md")
			if err != nil {
				continue // the index names a page that isn't there
			}
			text := strings.Join(strings.Fields(markup.ReplaceAllString(string(raw), " ")), " ")
			lower := strings.ToLower(text)
			if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, w) }) {
				continue
			}
			at := strings.Index(lower, words[0])
			hit := guideHit{page, clip(strings.ToValidUTF8(text[min(max(0, at-80), len(text)):], ""), 240)}
			if strings.Contains(strings.ToLower(page.Title), words[0]) {
				titled = append(titled, hit)
			} else {
				found = append(found, hit)
			}
		}
	}
	return append(titled, found...)
}

func (p referencePages) guide(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("page")
	name = cmp.Or(name, "index")
	if path.Ext(name) == ".png" {
		return picture(w, name)
	}
	v, err := readGuide(name)
	if err != nil {
		return err
	}
	v.At = name
	if q := strings.TrimSpace(r.URL.Query().Get("q")); q != "" {
		v.Q, v.Found = q, searchGuide(clip(q, 200))
	}
	return p.show(w, r, http.StatusOK, "guide", v.Title, v)
}

// picture answers with a picture of the documentation.
func picture(w http.ResponseWriter, name string) error {
	raw, err := fs.ReadFile(docs.Pages, name)
	if err != nil {
		return noGuide(name)
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(raw)
	return nil
}

func noGuide(name string) error {
	return fault.New(fault.NotFound, "PageNotFound", "There is no page %q; %s lists all", name, guidePath)
}

var firstHeading = regexp.MustCompile(`(?m)^# (.+)$`)

// readGuide returns a page of the documentation, which is named without .md.
func readGuide(name string) (guideView, error) {
	page, err := fs.ReadFile(docs.Pages, name+".md")
	if err != nil { // invalid paths, too
		return guideView{}, noGuide(name)
	}
	page = bytes.Replace(page, []byte("<!-- all reasons -->\n"), allReasons(), 1)
	v := guideView{Title: "Guide", Index: name == "index"}
	if found := firstHeading.FindSubmatch(page); found != nil {
		v.Title = string(found[1])
	}
	reader := goldmark.New(
		goldmark.WithExtensions(extension.Strikethrough, extension.NewTable(
			// the pages' policy allows no style attributes
			extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(),
			parser.WithASTTransformers(util.Prioritized(guideLinks{path.Dir(name)}, 500))),
		goldmark.WithRendererOptions(html.WithUnsafe()), // the pages are ours
	)
	var out bytes.Buffer
	if err := reader.Convert(page, &out); err != nil {
		return guideView{}, fmt.Errorf("render docs/%s.md: %w", name, err)
	}
	// wide tables and code scroll on their own, with the keyboard, too
	v.HTML = template.HTML(strings.NewReplacer("<table>", `<div class="sideways" tabindex="0"><table>`,
		"</table>", "</table></div>", "<pre>", `<pre tabindex="0">`,
		"<th></th>", "<td></td>"). // a heading without words confuses screen readers
		Replace(out.String()))
	return v, nil
}

// allReasons returns a Markdown table of everything that replies can mean.
func allReasons() []byte {
	table := []byte("| reason | meaning | cause | what to do |\n| --- | --- | --- | --- |\n")
	for _, e := range replies.All() {
		table = fmt.Appendf(table, "| `%s` | [%s](%s) | %s | %s |\n", e.Reason, e.Title, e.Source, e.Cause,
			e.Remedy)
	}
	return table
}

// guideLinks points links and pictures to the served pages. It replaces links to other files of the
// repository with their text.
type guideLinks struct{ folder string }

// Transform changes the links of a page.
func (g guideLinks) Transform(page *ast.Document, _ text.Reader, _ parser.Context) {
	var links []*ast.Link
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			links = append(links, link)
		}
		if shown, ok := n.(*ast.Image); ok && entering {
			shown.Destination = []byte(guidePath + "/" + path.Join(g.folder, string(shown.Destination)))
		}
		if cell, ok := n.(*tables.TableCell); ok && entering && cell.Parent().Kind() == tables.KindTableHeader {
			cell.SetAttributeString("scope", []byte("col"))
		}
		return ast.WalkContinue, nil
	})
	for _, link := range links {
		target, anchor, anchored := strings.Cut(string(link.Destination), "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		file := path.Join(g.folder, target)
		name, isPage := strings.CutSuffix(file, ".md")
		if _, err := fs.Stat(docs.Pages, file); err != nil || !isPage {
			for child := link.FirstChild(); child != nil; child = link.FirstChild() {
				link.Parent().InsertBefore(link.Parent(), link, child)
			}
			link.Parent().RemoveChild(link.Parent(), link)
			continue
		}
		to := guidePath + "/" + name
		if name == "index" {
			to = guidePath
		}
		if anchored {
			to += "#" + anchor
		}
		link.Destination = []byte(to)
	}
}
