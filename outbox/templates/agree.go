package templates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/templates/render"
)

const (
	checkedAtOnce = 100 // templates loaded together while checking the users of a changed one
	maxNamed      = 10  // templates that an error names
)

// check checks the entry after a change (content is nil if only its name changes) and all templates that the
// change affects. fields are its other faults.
func (t *Templates) check(ctx context.Context, before, after *catalog, e *entry, content *definition,
	fields []fault.Field) error {
	known := map[string]*definition{}
	if content != nil {
		known[e.ID] = content
	}
	l, err := t.library(ctx, after, known, e)
	if err != nil {
		return err
	}
	wrong, err := within(ctx, checkTimeout, func(ctx context.Context) ([]fault.Field, error) {
		return l.verify(ctx, e)
	})
	if err != nil {
		return err
	}
	switch {
	case len(fields) > 0:
		reported := fields
		for _, w := range wrong {
			if !slices.ContainsFunc(reported, func(f fault.Field) bool { return f.Key == w.Key }) {
				fields = append(fields, w)
			}
		}
		return fault.InvalidFields(fields)
	case len(wrong) > 0:
		return render.Faults(wrong)
	}
	_, err = within(ctx, usersTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, t.checkUsers(ctx, before, after, e, known)
	})
	return err
}

// within runs a part of a check with a timeout.
func within[V any](ctx context.Context, limit time.Duration, check func(context.Context) (V, error)) (V,
	error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := check(bounded)
	if ctx.Err() == nil && bounded.Err() != nil && err != nil {
		err = fault.Wrap(err, fault.Unprocessable, "TemplateFault",
			"Checking the template and the templates that use it takes longer than %s", limit)
	}
	return v, err
}

// checkUsers checks all templates that could reach an entry before a change, or can after it. It refuses a
// change that breaks one of them.
func (t *Templates) checkUsers(ctx context.Context, before, after *catalog, e *entry,
	known map[string]*definition) error {
	if e.Value.Kind == kindTemplate {
		return nil
	}
	ids := append(before.users(e.ID), after.users(e.ID)...)
	slices.Sort(ids)
	var broken []string
	for batch := range slices.Chunk(slices.Compact(ids), checkedAtOnce) {
		entries := make([]*entry, len(batch))
		for i, id := range batch {
			entries[i] = after.byID[id]
		}
		l, err := t.library(ctx, after, known, entries...)
		if err != nil {
			return err
		}
		for _, user := range entries {
			wrong, err := l.verify(ctx, user)
			if err != nil {
				return err
			}
			if len(wrong) > 0 {
				broken = append(broken, fmt.Sprintf("%s (%s: %s)", user.ID, wrong[0].Key, wrong[0].Message))
			}
		}
		if len(broken) >= maxNamed {
			break
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "TemplateInUse", "The change would break templates that use it: %s",
		strings.Join(broken[:min(len(broken), maxNamed)], "; "))
}

// names returns the names of the first templates of ids.
func (c *catalog) names(ids []string) string {
	text := strings.Join(ids[:min(len(ids), maxNamed)], ", ")
	if more := len(ids) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// verify checks an entry in all variants by locale that it and its partials have. It reports each error once.
func (l *library) verify(ctx context.Context, e *entry) ([]fault.Field, error) {
	reach := l.closure(e)
	locales := map[string]bool{"": true}
	for _, r := range reach {
		for _, locale := range r.Value.Locales {
			locales[locale] = true
		}
	}
	f := l.verifyLayout(e)
	read := map[string]bool{}
	for _, locale := range slices.Sorted(maps.Keys(locales)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if key := chosen(reach, locale); !read[key] {
			read[key] = true
			_, _, wrong := l.readVariant(e, locale)
			f = append(f, wrong...)
		}
	}
	slices.SortStableFunc(f, func(a, b fault.Field) int { return strings.Compare(a.Key, b.Key) })
	return slices.Compact(f), nil
}

// verifyLayout checks that the layout exists.
func (l *library) verifyLayout(e *entry) (f fault.Fields) {
	if layout := l.have[e.ID].Layout; layout != "" && l.layout(&e.Value) == nil {
		f.Add("layout", "there is no layout %q", layout)
	}
	return f
}

// readVariant parses one variant of an entry and reports its faults.
func (l *library) readVariant(e *entry, locale string) (a assembled, read *render.Template, f fault.Fields) {
	a = l.assemble(e, locale)
	own := l.have[e.ID].Locales[a.locale]
	key := func(part string) string {
		given := map[string]string{"subject": own.Subject, "previewText": own.PreviewText, "html": own.HTML,
			"text": own.Text}[part]
		if a.locale == "" || given == "" { // the content itself
			return "content." + part
		}
		return "locales." + a.locale + "." + part
	}
	read, err := render.Parse(a.source, a.options)
	if err != nil {
		wrong, ok := errors.AsType[*fault.Error](err)
		if !ok {
			f.Add("content", "%v", err)
			return a, nil, f
		}
		for _, w := range wrong.Fields {
			if w.Key != "format" { // reported already
				f.Add(key(w.Key), "%s", w.Message)
			}
		}
	}
	l.verifyFormats(e, &f, key("html"), a.source.HTML, formatOf(l.have[e.ID]))
	return a, read, f
}

// verifyFormats refuses an html partial inside Markdown and the reverse: the output would contain the other's
// markup.
func (l *library) verifyFormats(e *entry, f *fault.Fields, key, source, format string) {
	for _, name := range l.refer(source).Partials {
		p := l.partial(e.Value.Account, name)
		if p == nil || l.have[p.ID] == nil || l.have[p.ID].Content.HTML == "" {
			continue
		}
		if is := formatOf(l.have[p.ID]); is != format {
			f.Add(key, "the partial %q is written in %s, this in %s", name, is, format)
		}
	}
}
