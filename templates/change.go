package templates

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// tries is how often a change is tried against those of other processes.
const tries = 10

// How long a change may take to check: the template itself, in all its variants, and then those that use it.
const (
	checkTimeout = 2 * time.Second
	usersTimeout = 10 * time.Second
)

// edited is what a change makes of a template.
type edited struct {
	old      *entry // nil: there was none
	next     record
	content  *definition // nil: the content stays
	restored int         // the version it is taken from; 0: none
}

// Create stores a new template, partial or layout. Somebody confined to an account creates for that account. All faults are told at once:
// Invalid where fields are wrong, Unprocessable with code TemplateFault where only the language of templates is. An id or, for a partial, a
// name that is taken is a Conflict, code TemplateExists.
func (t *Templates) Create(ctx context.Context, bound string, req api.TemplateRequest) (api.TemplateCreated, error) {
	if req.Account != nil && *req.Account == "" {
		req.Account = nil
	}
	if bound != "" {
		if req.Account != nil && *req.Account != bound {
			return api.TemplateCreated{}, fault.New(fault.Forbidden, "", "Unauthorized account")
		}
		req.Account = &bound
	}
	if req.Kind == "" {
		req.Kind = kindTemplate
	}
	if req.ID == "" {
		req.ID = newID(t.opts.Now())
	}
	made := record{Name: req.Name, Description: req.Description, Kind: req.Kind}
	if req.Account != nil {
		made.Account = *req.Account
	}
	stored, err := t.change(ctx, req.ID, func(c *catalog, old *entry) (edited, error) {
		if old != nil {
			return edited{}, fault.New(fault.Conflict, "TemplateExists", "There is a template with the id %s already", req.ID)
		}
		if len(c.all) >= t.opts.Max {
			return edited{}, fault.New(fault.Conflict, "TooManyTemplates", "There are %d templates already, as many as the setting templates.max allows", len(c.all))
		}
		return edited{next: made, content: &req.TemplateDefinition}, nil
	})
	if err != nil {
		return api.TemplateCreated{}, err
	}
	return api.TemplateCreated{Created: true, Account: req.Account, ID: req.ID, Version: stored.Version}, nil
}

// Update changes the fields that the patch has. A change of content makes a new version; what says the same as before makes none. The
// errors are those of Create, and besides: a version in the patch that isn't the current one is a Conflict, code TemplateChanged; a change
// that would break templates which use this one is a Conflict, code TemplateInUse.
func (t *Templates) Update(ctx context.Context, bound, id string, p api.TemplatePatch) (api.TemplateUpdated, error) {
	return t.edit(ctx, bound, id, p.Version, func(e *entry, d *definition) (edited, error) {
		next, after := e.Value, patched(*d, p)
		normalise(&after)
		if p.Name != nil {
			next.Name = *p.Name
		}
		if p.Description != nil {
			next.Description = *p.Description
		}
		if same(d, &after) {
			return edited{old: e, next: next}, nil
		}
		return edited{old: e, next: next, content: &after}, nil
	})
}

// Restore returns a template the content of one of its versions again, as a new version. An unknown version is NotFound.
func (t *Templates) Restore(ctx context.Context, bound, id string, number int) (api.TemplateUpdated, error) {
	return t.edit(ctx, bound, id, 0, func(e *entry, d *definition) (edited, error) {
		before, err := t.versionOf(ctx, e, number)
		if err != nil {
			return edited{}, err
		}
		if same(d, before) {
			return edited{old: e, next: e.Value}, nil
		}
		return edited{old: e, next: e.Value, content: before, restored: number}, nil
	})
}

// edit changes a template that is there, by what next makes of it and its present content.
func (t *Templates) edit(ctx context.Context, bound, id string, version int, next func(*entry, *definition) (edited, error)) (api.TemplateUpdated, error) {
	var account string
	stored, err := t.change(ctx, id, func(c *catalog, old *entry) (edited, error) {
		if old == nil || bound != "" && !old.Value.mayUse(bound) {
			return edited{}, notFound(id)
		}
		if err := ownedBy(bound, old); err != nil {
			return edited{}, err
		}
		if version != 0 && version != old.Value.Version {
			return edited{}, fault.New(fault.Conflict, "TemplateChanged", "The template was changed meanwhile: its version is %d, not %d", old.Value.Version, version)
		}
		d, err := t.definition(ctx, id, old.Value.Version)
		if err != nil {
			return edited{}, err
		}
		if d == nil {
			return edited{}, errOutdated
		}
		account = old.Value.Account
		return next(old, d)
	})
	if err != nil {
		return api.TemplateUpdated{}, err
	}
	return api.TemplateUpdated{Updated: true, Account: orNull(account), ID: id, Version: stored.Version}, nil
}

// errOutdated says that what was read is no longer so, and that a change has to begin anew.
var errOutdated = fault.New(fault.Conflict, "TemplateChanged", "Templates are being changed by others; try again")

// change stores what edit makes of a template and of all the others as they are at that moment. When others change any of them meanwhile,
// edit is asked again.
func (t *Templates) change(ctx context.Context, id string, edit func(*catalog, *entry) (edited, error)) (record, error) {
	release, err := t.takeTurn(ctx)
	if err != nil {
		return record{}, err
	}
	defer release()
	for range tries {
		c, err := t.fresh(ctx)
		if err != nil {
			return record{}, err
		}
		done, next := false, record{}
		change, err := edit(c, c.byID[id])
		if err == nil {
			done, next, err = t.put(ctx, c, id, change)
		}
		if err != nil && err != errOutdated {
			return record{}, err
		}
		if done {
			return next, nil
		}
	}
	return record{}, errOutdated
}

// put checks a change and stores it, if all is still as it was in the catalog.
func (t *Templates) put(ctx context.Context, c *catalog, id string, change edited) (bool, record, error) {
	next, state := change.next, map[string]string(nil)
	fields := checkHead(&next)
	if change.content != nil {
		normalise(change.content)
		fields = append(fields, checkDefinition(next.Kind, change.content)...)
		var err error
		if state, err = next.renew(change.content, change.restored, t.stamp()); err != nil {
			return false, next, err
		}
	}
	e := &entry{ID: id, Value: next}
	after := c.with(e)
	if err := t.checkName(c, e); err != nil {
		return false, next, err
	}
	if change.content != nil || next.Kind == kindPartial && next.Name != change.old.Value.Name {
		if err := t.check(ctx, c, after, e, change.content, fields); err != nil {
			return false, next, err
		}
	} else if err := fault.InvalidFields(fields); err != nil {
		return false, next, err
	}
	stored, err := t.store.PutAt(ctx, c.version, id, next, state)
	if err != nil {
		return false, next, err
	}
	if stored == nil {
		t.cached.Clear()
		return false, next, nil
	}
	*e = *stored
	t.succeed(ctx, c, after)
	return true, next, nil
}

// succeed makes the catalog after a change the one that is in use, so that not everything has to be read again for every change. A failure
// to do so is none of the change: it is read when it is needed.
func (t *Templates) succeed(ctx context.Context, c, after *catalog) {
	t.cached.Clear()
	n, err := strconv.Atoi(c.version)
	if err != nil {
		return
	}
	after.version = strconv.Itoa(n + 1) // as the change left it
	_, _, _ = t.cached.Get(ctx, "", t.opts.Now(), func(ctx context.Context) (*catalog, bool, error) {
		version, err := t.store.Version(ctx)
		return after, err == nil && version == after.version, err
	})
}

// checkName refuses a partial whose name is another one's.
func (t *Templates) checkName(c *catalog, e *entry) error {
	if e.Value.Kind != kindPartial {
		return nil
	}
	if other := c.partials[owned{e.Value.Account, e.Value.Name}]; other != nil && other.ID != e.ID {
		return fault.New(fault.Conflict, "TemplateExists", "There is a partial named %s already: %s", clip(e.Value.Name), other.ID)
	}
	return nil
}

// takeTurn waits until nobody else of this process changes anything.
func (t *Templates) takeTurn(ctx context.Context) (release func(), err error) {
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *Templates) stamp() time.Time { return t.opts.Now().UTC().Truncate(time.Millisecond) }

// patched lays the fields that a patch has over a definition.
func patched(d definition, p api.TemplatePatch) definition {
	set(&d.Format, p.Format)
	set(&d.Content, p.Content)
	set(&d.Locales, p.Locales)
	set(&d.Layout, p.Layout)
	set(&d.InlineCSS, p.InlineCSS)
	set(&d.Missing, p.Missing)
	set(&d.Sample, p.Sample)
	return d
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// same reports whether two definitions say the same.
func same(a, b *definition) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	two, err := json.Marshal(b)
	return err == nil && string(one) == string(two)
}
