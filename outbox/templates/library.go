package templates

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/templates/handlebars"
	"github.com/postroom/postroom/outbox/templates/render"
)

// library assembles templates from a catalog and the definitions of everything they can reach.
type library struct {
	*catalog
	have        map[string]*definition // by id
	refs        map[string]handlebars.References
	escapedOnly bool
}

// definition reads the content of a version, or nil if it is not kept.
func (t *Templates) definition(ctx context.Context, id string, version int) (*definition, error) {
	got, err := t.definitions(ctx, []records.Field{{ID: id, Name: strconv.Itoa(version)}})
	if err != nil {
		return nil, err
	}
	return got[0], nil
}

// definitions reads the contents of versions in one round trip, with nil for contents that aren't kept.
func (t *Templates) definitions(ctx context.Context, of []records.Field) ([]*definition, error) {
	texts, err := t.store.State(ctx, of)
	if err != nil {
		return nil, err
	}
	all := make([]*definition, len(of))
	for i, text := range texts {
		if text == "" {
			continue
		}
		all[i] = new(definition)
		if err := json.Unmarshal([]byte(text), all[i]); err != nil {
			return nil, fmt.Errorf("templates: decode version %s of %s: %w", of[i].Name, of[i].ID, err)
		}
	}
	return all, nil
}

// library returns the library of entries and everything they can reach. It reads only definitions that are
// not known. If a template changed since the catalog was read, a definition may be missing: then it returns
// errOutdated.
func (t *Templates) library(ctx context.Context, c *catalog, known map[string]*definition,
	entries ...*entry) (*library, error) {
	l := &library{catalog: c, have: map[string]*definition{}, refs: map[string]handlebars.References{},
		escapedOnly: t.opts.EscapedOnly}
	var wanted []records.Field
	for _, e := range entries {
		for _, reached := range c.closure(e) {
			if _, have := l.have[reached.ID]; have {
				continue
			}
			l.have[reached.ID] = known[reached.ID]
			if known[reached.ID] == nil {
				wanted = append(wanted, records.Field{ID: reached.ID, Name: strconv.Itoa(reached.Value.Version)})
			}
		}
	}
	got, err := t.definitions(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for i, d := range got {
		if d == nil {
			return nil, errOutdated
		}
		l.have[wanted[i].ID] = d
	}
	return l, nil
}

// assembled is a template in its variant for a locale, with its partials.
type assembled struct {
	source  render.Source
	options render.Options
	locale  string // the variant's; empty for the content itself
}

// assemble assembles an entry for a locale. A layout or partial is assembled like a template.
func (l *library) assemble(e *entry, locale string) assembled {
	d := l.have[e.ID]
	c, chosen := variantOf(d, locale)
	a := assembled{
		source: render.Source{Format: render.Format(formatOf(d)), Subject: c.Subject, PreviewText: c.PreviewText,
			HTML: c.HTML, Text: c.Text},
		options: render.Options{InlineCSS: d.InlineCSS, EscapedOnly: l.escapedOnly},
		locale:  chosen,
	}
	if layout := l.layout(&e.Value); layout != nil {
		c, _ := variantOf(l.have[layout.ID], locale)
		a.options.Layout = c.HTML
	}
	account := e.Value.Account
	inHTML := l.reach(account, locale, false, a.source.HTML, a.options.Layout)
	inText := l.reach(account, locale, true, a.source.Subject, a.source.PreviewText, a.source.Text)
	a.options.Partials, a.options.TextPartials = divide(inHTML, inText)
	return a
}

// reach returns the reachable partials by name; the text version if text is set and a partial has one.
func (l *library) reach(account, locale string, text bool, sources ...string) map[string]string {
	found := map[string]string{}
	for len(sources) > 0 {
		refs := l.refer(sources[0])
		sources = sources[1:]
		names := refs.Partials
		if refs.Computed {
			for _, p := range l.visible(account) {
				names = append(names, p.Value.Name)
			}
		}
		for _, name := range names {
			if _, have := found[name]; have {
				continue
			}
			p := l.partial(account, name)
			if p == nil || l.have[p.ID] == nil {
				continue
			}
			c, _ := variantOf(l.have[p.ID], locale)
			found[name] = c.HTML
			if c.Text != "" && (text || c.HTML == "") {
				found[name] = c.Text
			}
			sources = append(sources, found[name])
		}
	}
	return found
}

// refer returns the partials of a source, cached. An unreadable source has none: parsing reports its error.
func (l *library) refer(source string) handlebars.References {
	refs, known := l.refs[source]
	if !known {
		refs, _ = handlebars.Refer(source, handlebars.Options{})
		l.refs[source] = refs
	}
	return refs
}

// divide returns the partials for package render: text versions separately only where they differ.
func divide(inHTML, inText map[string]string) (partials, texts map[string]string) {
	for name, source := range inText {
		if other, both := inHTML[name]; both && other != source {
			if texts == nil {
				texts = map[string]string{}
			}
			texts[name] = source
		} else if !both {
			inHTML[name] = source
		}
	}
	if len(inHTML) == 0 {
		return nil, texts
	}
	return inHTML, texts
}
