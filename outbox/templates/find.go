package templates

import (
	"context"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/templates/render"
)

// Template is a parsed template. Shared values must not be changed.
type Template struct {
	ID      string
	Version int
	Source  render.Source  // the variant of a locale
	Options render.Options // with the reachable partials only
	Strict  bool           // a missing variable is an error
}

// prepared is the cache of a template in use.
type prepared struct {
	reach     []*entry            // the entries it can reach; itself first
	byVariant map[string]Template // by the selected variants
}

// Template returns a template that an account may use, in its variant for a locale, with everything that
// rendering needs. The result is at most about a second old and usually needs no round trip. It returns
// NotFound, code TemplateNotFound, for an unknown template, and Unprocessable, code TemplateFault, for a
// partial or layout.
func (t *Templates) Template(ctx context.Context, account, id, locale string) (Template, error) {
	for range tries {
		c, e, err := t.find(ctx, account, id)
		if err != nil {
			return Template{}, err
		}
		if found, ok := c.remembered(e, locale); ok {
			return found, nil
		}
		l, err := t.library(ctx, c, nil, e)
		if err == errOutdated { // the cached content was deleted
			t.cached.Clear()
			continue
		}
		if err != nil {
			return Template{}, err
		}
		a, d := l.assemble(e, locale), l.have[e.ID]
		found := Template{ID: id, Version: e.Value.Version, Source: a.source, Options: a.options,
			Strict: t.strict(d)}
		c.remember(e, locale, found)
		return found, nil
	}
	return Template{}, errOutdated
}

// find finds a template that an account may use. An unknown one may be new, so it reloads the catalog.
func (t *Templates) find(ctx context.Context, account, id string) (*catalog, *entry, error) {
	c, err := t.catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	e := c.byID[id]
	if e == nil {
		if c, err = t.fresh(ctx); err != nil {
			return nil, nil, err
		}
		e = c.byID[id]
	}
	switch {
	case e == nil || !e.Value.mayUse(account):
		return nil, nil, notFound(id)
	case e.Value.Kind != kindTemplate:
		return nil, nil, fault.New(fault.Unprocessable, "TemplateFault",
			"%s is a %s, which can't be sent on its own", id, e.Value.Kind)
	}
	return c, e, nil
}

// strict reports whether a missing variable is an error.
func (t *Templates) strict(d *definition) bool {
	if d.Missing == "" {
		return t.opts.Strict
	}
	return d.Missing == "error"
}

// remembered returns a cached template.
func (c *catalog) remembered(e *entry, locale string) (Template, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p := c.ready[e.ID]
	if p == nil {
		return Template{}, false
	}
	found, ok := p.byVariant[chosen(p.reach, locale)]
	return found, ok
}

// remember caches a template.
func (c *catalog) remember(e *entry, locale string, t Template) {
	size := len(t.Source.Subject) + len(t.Source.PreviewText) + len(t.Source.HTML) + len(t.Source.Text) +
		len(t.Options.Layout)
	for _, partials := range []map[string]string{t.Options.Partials, t.Options.TextPartials} {
		for _, source := range partials {
			size += len(source)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += size; c.bytes > maxReady {
		c.ready, c.bytes = map[string]*prepared{}, size
	}
	p := c.ready[e.ID]
	if p == nil {
		p = &prepared{reach: c.closure(e), byVariant: map[string]Template{}}
		c.ready[e.ID] = p
	}
	p.byVariant[chosen(p.reach, locale)] = t
}
