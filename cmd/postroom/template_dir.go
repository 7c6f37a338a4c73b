package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// The files of a template in a directory. Variants have directories of their own, such as locales/de.
const (
	headFile     = "template.json" // everything except the content; may be missing
	sampleFile   = "sample.json"
	subjectFile  = "subject.txt"
	previewFile  = "preview.txt"
	htmlFile     = "html.hbs"
	markdownFile = "html.md.hbs" // instead of html.hbs, for a template in Markdown
	textFile     = "text.hbs"
	localesDir   = "locales"
)

type templateHead struct {
	ID          string  `json:"id,omitempty"`
	Account     *string `json:"account,omitempty"`
	Name        string  `json:"name,omitempty"`
	Description string  `json:"description,omitempty"`
	Kind        string  `json:"kind,omitempty"`
	Layout      string  `json:"layout,omitempty"`
	InlineCSS   bool    `json:"inlineCss,omitempty"`
	Missing     string  `json:"missing,omitempty"`
}

// readTemplate reads a template from a directory. Its id is that of template.json, else the name of the
// directory. Its name is that of template.json, else its id.
func readTemplate(dir string) (api.TemplateRequest, error) {
	var head templateHead
	text, err := readIfThere(filepath.Join(dir, headFile))
	if err != nil {
		return api.TemplateRequest{}, err
	}
	if text != nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&head); err != nil {
			return api.TemplateRequest{}, fmt.Errorf("%s: %w", filepath.Join(dir, headFile), err)
		}
	}
	req := api.TemplateRequest{ID: head.ID, Account: head.Account, Name: head.Name,
		Description: head.Description, Kind: head.Kind}
	req.Layout, req.InlineCSS, req.Missing = head.Layout, head.InlineCSS, head.Missing
	if req.ID == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return req, err
		}
		req.ID = filepath.Base(whole)
	}
	req.Name = cmp.Or(req.Name, req.ID)
	if req.Sample, err = readIfThere(filepath.Join(dir, sampleFile)); err != nil {
		return req, err
	}
	if req.Sample != nil && !json.Valid(req.Sample) {
		return req, fmt.Errorf("%s is not JSON", filepath.Join(dir, sampleFile))
	}
	return req, readDefinition(dir, &req.TemplateDefinition)
}

// readDefinition reads the content and its variants.
func readDefinition(dir string, d *api.TemplateDefinition) error {
	var err error
	if d.Content, d.Format, err = readContent(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(dir, localesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.Locales = map[string]api.TemplateContent{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		within := filepath.Join(dir, localesDir, e.Name())
		c, format, err := readContent(within)
		if err != nil {
			return err
		}
		if c.HTML != "" && format != d.Format && d.Content.HTML != "" {
			return fmt.Errorf("%s is in %s, %s in %s: all variants are in one format", within, format, dir, d.Format)
		}
		if c.HTML != "" {
			d.Format = format
		}
		d.Locales[e.Name()] = c
	}
	return nil
}

// part is a field of a template's content and its file.
type part struct {
	key, file string
	text      *string
	line      bool // the line break at the end is the file's
}

func parts(c *api.TemplateContent, format string) []part {
	html := htmlFile
	if format == "markdown" {
		html = markdownFile
	}
	return []part{
		{"subject", subjectFile, &c.Subject, true}, {"previewText", previewFile, &c.PreviewText, true},
		{"html", html, &c.HTML, false}, {"text", textFile, &c.Text, false},
	}
}

func readContent(dir string) (c api.TemplateContent, format string, err error) {
	format = "html"
	markdown, err := readIfThere(filepath.Join(dir, markdownFile))
	if err != nil {
		return c, format, err
	}
	if markdown != nil {
		if html, err := readIfThere(filepath.Join(dir, htmlFile)); err != nil || len(html) > 0 {
			return c, format, cmp.Or(err, fmt.Errorf("%s has both %s and %s", dir, htmlFile, markdownFile))
		}
		format = "markdown"
	}
	for _, p := range parts(&c, format) {
		text, err := readIfThere(filepath.Join(dir, p.file))
		if err != nil {
			return c, format, err
		}
		if *p.text = string(text); p.line {
			*p.text = strings.TrimRight(*p.text, "\r\n")
		}
	}
	return c, format, nil
}

// readIfThere reads a file. The text is nil if there is none.
func readIfThere(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// writeTemplate writes a template into a directory, and removes the files of parts that it does not have.
func writeTemplate(dir string, t api.Template) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	head, err := json.MarshalIndent(templateHead{
		ID: t.ID, Account: t.Account, Name: t.Name, Description: t.Description, Kind: t.Kind, Layout: t.Layout,
		InlineCSS: t.InlineCSS, Missing: t.Missing,
	}, "", "  ")
	if err != nil {
		return err
	}
	var sample bytes.Buffer
	if len(t.Sample) > 0 {
		if err := json.Indent(&sample, t.Sample, "", "  "); err != nil {
			return err
		}
		sample.WriteByte('\n')
	}
	if err := errors.Join(
		writeOrRemove(filepath.Join(dir, headFile), string(head)+"\n"),
		writeOrRemove(filepath.Join(dir, sampleFile), sample.String()),
		writeContent(dir, t.Format, t.Content),
	); err != nil {
		return err
	}
	return writeLocales(filepath.Join(dir, localesDir), t)
}

// writeLocales writes the variants, and removes the files of others.
func writeLocales(dir string, t api.Template) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, stays := t.Locales[e.Name()]; e.IsDir() && !stays {
			within := filepath.Join(dir, e.Name())
			if err := writeContent(within, t.Format, api.TemplateContent{}); err != nil {
				return err
			}
			_ = os.Remove(within) // fails if another file is in it
		}
	}
	for _, locale := range slices.Sorted(maps.Keys(t.Locales)) {
		within := filepath.Join(dir, locale)
		if err := os.MkdirAll(within, 0o755); err != nil {
			return err
		}
		if err := writeContent(within, t.Format, t.Locales[locale]); err != nil {
			return err
		}
	}
	return nil
}

// writeContent writes one variant, and removes the html in the other format.
func writeContent(dir, format string, c api.TemplateContent) error {
	other := markdownFile
	if format == "markdown" {
		other = htmlFile
	}
	err := writeOrRemove(filepath.Join(dir, other), "")
	for _, p := range parts(&c, format) {
		if p.line && *p.text != "" {
			*p.text += "\n"
		}
		err = errors.Join(err, writeOrRemove(filepath.Join(dir, p.file), *p.text))
	}
	return err
}

func writeOrRemove(name, text string) error {
	if text != "" {
		return os.WriteFile(name, []byte(text), 0o644)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// filed adds the file to each field of a refusal.
func filed(dir, format string, err error) error {
	f, ok := errors.AsType[*api.Failure](err)
	if !ok || len(f.Problem.Fields) == 0 {
		return err
	}
	lines := []string{f.Problem.Message + ":"}
	for _, field := range f.Problem.Fields {
		lines = append(lines, filepath.Join(dir, fileOf(field.Key, format))+": "+strings.TrimPrefix(field.Message,
			`"`+field.Key+`" `))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// fileOf returns the file of a field, or template.json and the field.
func fileOf(key, format string) string {
	steps := strings.Split(key, ".")
	last := ""
	for _, p := range parts(&api.TemplateContent{}, format) {
		if p.key == steps[len(steps)-1] {
			last = p.file
		}
	}
	switch {
	case key == "sample":
		return sampleFile
	case last == "":
	case steps[0] == "locales" && len(steps) == 3:
		return filepath.Join(localesDir, steps[1], last)
	case steps[0] == "content" && len(steps) == 2, len(steps) == 1:
		return last
	}
	return headFile + ": " + key
}
