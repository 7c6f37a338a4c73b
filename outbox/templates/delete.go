package templates

import (
	"context"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

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
