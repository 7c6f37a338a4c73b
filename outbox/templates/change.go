package templates

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// tries is the number of attempts of a change that conflicts with other processes.
const tries = 10

// Timeouts of the checks of a change: of the template in all variants, and of its users.
const (
	checkTimeout = 2 * time.Second
	usersTimeout = 10 * time.Second
)

// edited is a change of a template.
type edited struct {
	old      *entry // nil if the template is new
	next     record
	content  *definition // nil if the content stays
	restored int         // the version it is restored from; 0 if none
}

// Create stores a new template, partial or layout. A caller bound to an account creates for that account. It
// returns all errors together: Invalid for invalid fields; Unprocessable with code TemplateFault if only the
// template language is wrong. A used id, or a used name of a partial, is a Conflict with code TemplateExists.
func (t *Templates) Create(ctx context.Context, bound string, req api.TemplateRequest) (api.TemplateCreated,
	error) {
	made := record{Account: bound, Name: req.Name, Description: req.Description,
		Kind: cmp.Or(req.Kind, kindTemplate)}
	api.Set(&made.Account, req.Account)
	if made.Account = cmp.Or(made.Account, bound); bound != "" && made.Account != bound {
		return api.TemplateCreated{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	switch req.ID {
	case "":
		req.ID = newID(t.opts.Now())
	case "new":
		return api.TemplateCreated{}, fault.InvalidField("id", `must not be "new", which names a page`)
	}
	stored, err := t.change(ctx, req.ID, func(c *catalog, old *entry) (edited, error) {
		if old != nil {
			return edited{}, fault.New(fault.Conflict, "TemplateExists", "There is already a template "+
				"with the ID %s",
				req.ID)
		}
		if len(c.all) >= t.opts.Max {
			return edited{}, fault.New(fault.Conflict, "TooManyTemplates",
				"There are already %d templates, the limit of the setting templates.max", len(c.all))
		}
		if t.opts.Room != nil && made.Account != "" {
			err := t.opts.Room(ctx, made.Account, func() (used, more int, err error) {
				return c.count(made.Account), 1, nil
			})
			if err != nil {
				return edited{}, err
			}
		}
		return edited{next: made, content: &req.TemplateDefinition}, nil
	})
	if err != nil {
		return api.TemplateCreated{}, err
	}
	return api.TemplateCreated{Created: true, Account: orNull(made.Account), ID: req.ID,
		Version: stored.Version}, nil
}

// Update changes the fields of the patch. A change of content makes a new version; equal content does not. It
// returns the same errors as Create, and two more: Conflict with code TemplateChanged if the patch's version
// is not the current one, and with code TemplateInUse if the change would break templates that use this one.
func (t *Templates) Update(ctx context.Context, bound, id string, p api.TemplatePatch) (api.TemplateUpdated,
	error) {
	return t.edit(ctx, bound, id, p.Version, func(e *entry, d *definition) (edited, error) {
		next, after := e.Value, *d
		api.Patch(&after, p)
		normalise(&after)
		api.Set(&next.Name, p.Name)
		api.Set(&next.Description, p.Description)
		if same(d, &after) {
			return edited{old: e, next: next}, nil
		}
		return edited{old: e, next: next, content: &after}, nil
	})
}

// Restore makes a new version with the content of an old one. An unknown version is NotFound.
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

// edit changes an existing template. next returns its new content from the current one.
func (t *Templates) edit(ctx context.Context, bound, id string, version int,
	next func(*entry, *definition) (edited, error)) (api.TemplateUpdated, error) {
	var account string
	stored, err := t.change(ctx, id, func(c *catalog, old *entry) (edited, error) {
		if err := mayChange(bound, id, old); err != nil {
			return edited{}, err
		}
		if version != 0 && version != old.Value.Version {
			return edited{}, fault.New(fault.Conflict, "TemplateChanged",
				"The template has changed: its version is %d, not %d. Read it again and repeat your change", old.Value.Version, version)
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

// errOutdated means that the data read is outdated: the change must start again.
var errOutdated = fault.New(fault.Conflict, "TemplateChanged",
	"Other requests are changing templates. Try again")

// change stores the result of edit for the current templates. If others change a template in between, it
// calls edit again.
func (t *Templates) change(ctx context.Context, id string, edit func(*catalog, *entry) (edited, error)) (
	record, error) {
	if err := t.turn.Take(ctx); err != nil {
		return record{}, err
	}
	defer t.turn.Give()
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

// put checks a change and stores it, unless a template changed since the catalog was read.
func (t *Templates) put(ctx context.Context, c *catalog, id string, change edited) (bool, record, error) {
	next, state := change.next, map[string]string(nil)
	fields := checkHead(&next)
	if change.content != nil {
		normalise(change.content)
		fields = append(fields, checkDefinition(next.Kind, change.content)...)
		var err error
		if state, err = next.renew(change.content, change.restored,
			t.opts.Now().UTC().Truncate(time.Millisecond)); err != nil {
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

// succeed caches the catalog after a change, so that not every change reloads everything. Its failure does
// not fail the change: the catalog is then loaded when needed.
func (t *Templates) succeed(ctx context.Context, c, after *catalog) {
	t.cached.Clear()
	n, err := strconv.Atoi(c.version)
	if err != nil {
		return
	}
	after.version = strconv.Itoa(n + 1) // the version after the change
	_, _, _ = t.cached.Get(ctx, "", t.opts.Now(), func(ctx context.Context) (*catalog, bool, error) {
		version, err := t.store.Version(ctx)
		return after, err == nil && version == after.version, err
	})
}

// checkName refuses a partial whose name is already used.
func (t *Templates) checkName(c *catalog, e *entry) error {
	if e.Value.Kind != kindPartial {
		return nil
	}
	if other := c.partials[owned{e.Value.Account, e.Value.Name}]; other != nil && other.ID != e.ID {
		return fault.New(fault.Conflict, "TemplateExists", "There is already a partial named %s: %s",
			clip(e.Value.Name), other.ID)
	}
	return nil
}

// same reports whether two definitions are equal.
func same(a, b *definition) bool {
	one, err := json.Marshal(a)
	if err != nil {
		return false
	}
	two, err := json.Marshal(b)
	return err == nil && string(one) == string(two)
}

// Versions lists the kept versions of a template, the current one first. Unknown, or hidden from a caller
// bound to an account: NotFound.
func (t *Templates) Versions(ctx context.Context, bound, id string) (api.TemplateVersions, error) {
	e, err := t.seen(ctx, bound, id)
	if err != nil {
		return api.TemplateVersions{}, err
	}
	answer := api.TemplateVersions{ID: id, Version: e.Value.Version, Versions: []api.TemplateVersionRow{}}
	for _, v := range slices.Backward(e.Value.Versions) {
		answer.Versions = append(answer.Versions, versionRow(v))
	}
	return answer, nil
}

// Version returns a version of a template. If it is not kept: NotFound, code TemplateVersionNotFound.
func (t *Templates) Version(ctx context.Context, bound, id string, number int) (api.TemplateVersion, error) {
	e, err := t.seen(ctx, bound, id)
	if err != nil {
		return api.TemplateVersion{}, err
	}
	d, err := t.versionOf(ctx, e, number)
	if err != nil {
		return api.TemplateVersion{}, err
	}
	v, _ := e.Value.find(number)
	return api.TemplateVersion{ID: id, TemplateVersionRow: versionRow(v), TemplateDefinition: *d}, nil
}

// versionOf reads the content of a version.
func (t *Templates) versionOf(ctx context.Context, e *entry, number int) (*definition, error) {
	if _, kept := e.Value.find(number); !kept {
		return nil, noVersion(e.ID, number)
	}
	d, err := t.definition(ctx, e.ID, number)
	if err == nil && d == nil { // it has been deleted since
		err = noVersion(e.ID, number)
	}
	return d, err
}

func versionRow(v version) api.TemplateVersionRow {
	return api.TemplateVersionRow{Version: v.Number, Created: v.Created, Size: v.Size, Restored: v.Restored}
}

func noVersion(id string, number int) error {
	return fault.New(fault.NotFound, "TemplateVersionNotFound",
		"Template %[2]s has no version %[1]d, or no longer has it", number, id)
}

// Delete removes a template with its versions. If others use it: Conflict, code TemplateInUse, with their
// names.
func (t *Templates) Delete(ctx context.Context, bound, id string) (api.TemplateDeleted, error) {
	if err := t.turn.Take(ctx); err != nil {
		return api.TemplateDeleted{}, err
	}
	defer t.turn.Give()
	for range tries {
		c, err := t.fresh(ctx)
		if err != nil {
			return api.TemplateDeleted{}, err
		}
		e := c.byID[id]
		if err := mayChange(bound, id, e); err != nil {
			return api.TemplateDeleted{}, err
		}
		if users := c.edges()[id]; len(users) > 0 {
			return api.TemplateDeleted{}, fault.New(fault.Conflict, "TemplateInUse", "%s %s is used by %s",
				strings.ToUpper(e.Value.Kind[:1])+e.Value.Kind[1:], id, c.names(users))
		}
		done, err := t.store.DeleteAt(ctx, c.version, id)
		if err != nil {
			return api.TemplateDeleted{}, err
		}
		t.cached.Clear()
		if done {
			return api.TemplateDeleted{Deleted: true, Account: orNull(e.Value.Account), ID: id}, nil
		}
	}
	return api.TemplateDeleted{}, errOutdated
}

// Flush removes all templates of an account and returns their number. No other account can use them.
func (t *Templates) Flush(ctx context.Context, account string) (int, error) {
	if account == "" {
		return 0, nil
	}
	if err := t.turn.Take(ctx); err != nil {
		return 0, err
	}
	defer t.turn.Give()
	c, err := t.fresh(ctx)
	if err != nil {
		return 0, err
	}
	defer t.cached.Clear()
	n := 0
	for _, e := range c.all {
		if e.Value.Account != account {
			continue
		}
		switch err := t.store.Delete(ctx, e.ID); {
		case err == nil:
			n++
		case !fault.Is(err, fault.NotFound):
			return n, err
		}
	}
	return n, nil
}
