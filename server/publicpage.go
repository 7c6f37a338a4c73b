package server

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	"golang.org/x/text/language"
)

// publicFiles are the pages for recipients: no script, no cookie, no other file loaded.
//
//go:embed public
var publicFiles embed.FS

// publicPages writes the pages for recipients in their language.
type publicPages struct {
	page    *template.Template
	policy  string // Content-Security-Policy
	words   map[string]map[string]string
	tags    []string // keys of words, in the order of matcher
	matcher language.Matcher
}

func newPublicPages() (*publicPages, error) {
	p := &publicPages{}
	raw, err := publicFiles.ReadFile("public/words.json")
	if err == nil {
		err = json.Unmarshal(raw, &p.words)
	}
	if err != nil {
		return nil, fmt.Errorf("words of the public pages: %w", err)
	}
	style, err := publicFiles.ReadFile("public/style.css")
	if err != nil {
		return nil, fmt.Errorf("style of the public pages: %w", err)
	}
	sum := sha256.Sum256(style)
	p.policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	p.page, err = template.New("").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(style) }}).
		ParseFS(publicFiles, "public/*.html")
	if err != nil {
		return nil, fmt.Errorf("template of the public pages: %w", err)
	}
	p.tags = slices.Sorted(maps.Keys(p.words))
	slices.SortStableFunc(p.tags, func(a, _ string) int { // the first is the default
		if a == "en" {
			return -1
		}
		return 0
	})
	tags := make([]language.Tag, len(p.tags))
	for i, tag := range p.tags {
		tags[i] = language.Make(tag)
	}
	p.matcher = language.NewMatcher(tags)
	return p, nil
}

// language returns the best language for a visitor: by Accept-Language, else by the language of the mail.
func (p *publicPages) language(r *http.Request, ofMail string) string {
	wanted := r.Header.Get("Accept-Language")
	_, i := language.MatchStrings(p.matcher, clip(wanted), clip(ofMail))
	return p.tags[i]
}

func (p *publicPages) show(c echo.Context, status int, view publicView) error {
	return p.write(c, status, "unsubscribe.html", true, view)
}

func (p *publicPages) write(c echo.Context, status int, name string, noIndex bool, view any) error {
	body, err := p.render(name, view)
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", p.policy)
	if noIndex {
		h.Set("X-Robots-Tag", "noindex, nofollow")
	}
	h.Add(echo.HeaderVary, "Accept-Language")
	return c.HTMLBlob(status, body)
}

func (p *publicPages) render(name string, view any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.page.ExecuteTemplate(&b, name, view); err != nil {
		return nil, fmt.Errorf("write a public page: %w", err)
	}
	return b.Bytes(), nil
}
