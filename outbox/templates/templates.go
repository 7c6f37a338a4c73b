package templates

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/templates/render"
)

// Senders provides the sender data of previews. Package app makes it from accounts and settings.
type Senders interface {
	// Sender returns an account's name and address (empty means the default account), or NotFound.
	Sender(ctx context.Context, account string) (render.Person, error)
	// ServiceURL returns the public URL of this Postroom, or "".
	ServiceURL() string
}

// Options are the settings of Templates. The zero value works.
type Options struct {
	Strict      bool             // default of templates: a missing variable is an error
	EscapedOnly bool             // templates must not print unescaped values: {{{ }}} is refused
	Max         int              // total of templates, partials and layouts; defaults to 10,000
	Now         func() time.Time // defaults to the machine's clock
	// Room checks an account's quota, if it has one: it calls count for the amounts used and wanted, and returns
	// the error if that has no room. If nil, accounts have no quota.
	Room func(ctx context.Context, account string, count func() (used, more int, err error)) error
	// InUse refuses to delete what something other than templates needs. May be nil.
	InUse records.InUse
}

// Templates is the template store. It is safe for concurrent use, by any number of processes on one Redis.
type Templates struct {
	store   *records.Store[record]
	senders Senders
	opts    Options

	cached  *redisdb.Cache[*catalog]
	loading singleflight.Group
	turn    redisdb.Turn // held by the current change: concurrent ones of this process would only conflict
}

// New returns the store of a database. It does no I/O.
func New(db *redisdb.DB, senders Senders, o Options) (*Templates, error) {
	if db == nil || senders == nil {
		return nil, errors.New("templates: a database and the senders are needed")
	}
	if o.Max <= 0 {
		o.Max = 10_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	store := newStore(db, o)
	return &Templates{
		store: store, senders: senders, opts: o, turn: make(redisdb.Turn, 1),
		cached: redisdb.NewCache[*catalog](db, store.VersionKey(), nil),
	}, nil
}

// List returns a page of templates by id, without their content. A caller bound to an account (empty if it
// isn't) gets the templates that it may see.
func (t *Templates) List(ctx context.Context, bound string, q api.TemplateQuery) (api.TemplatePage, error) {
	c, err := t.fresh(ctx)
	if err != nil {
		return api.TemplatePage{}, err
	}
	return c.list(q, bound), nil
}

// Count returns the number of templates, partials and layouts of an account.
func (t *Templates) Count(ctx context.Context, account string) (int, error) {
	c, err := t.catalog(ctx)
	if err != nil {
		return 0, err
	}
	return c.count(account), nil
}

// Get returns a template. Unknown, or hidden from a caller bound to an account: NotFound.
func (t *Templates) Get(ctx context.Context, bound, id string) (api.Template, error) {
	for range tries {
		e, err := t.seen(ctx, bound, id)
		if err != nil {
			return api.Template{}, err
		}
		d, err := t.definition(ctx, e.ID, e.Value.Version)
		if err != nil {
			return api.Template{}, err
		}
		if d != nil {
			return api.Template{TemplateHead: headOf(e), TemplateDefinition: *d}, nil
		}
	}
	return api.Template{}, errOutdated
}

// seen reads an entry that a caller bound to an account may see.
func (t *Templates) seen(ctx context.Context, bound, id string) (*entry, error) {
	e, err := t.store.Get(ctx, id)
	if err == nil && bound != "" && !e.Value.mayUse(bound) {
		return nil, notFound(id)
	}
	return e, err
}

// mayChange returns the error if a caller bound to an account may not change an entry, or does not see it.
func mayChange(bound, id string, e *entry) error {
	switch {
	case e == nil || bound != "" && !e.Value.mayUse(bound):
		return notFound(id)
	case bound != "" && e.Value.Account != bound:
		return fault.New(fault.Forbidden, "",
			"All accounts share this template, so a token bound to an account can't change it")
	}
	return nil
}

// catalog returns all templates, at most about a second old, usually from memory.
func (t *Templates) catalog(ctx context.Context) (*catalog, error) {
	c, _, err := t.cached.Get(ctx, "", t.opts.Now(), func(ctx context.Context) (*catalog, bool, error) {
		c, err := t.load(ctx)
		return c, err == nil, err
	})
	return c, err
}

// fresh returns the current templates.
func (t *Templates) fresh(ctx context.Context) (*catalog, error) {
	c, err := t.catalog(ctx)
	if err != nil {
		return nil, err
	}
	version, err := t.store.Version(ctx)
	if err != nil || version == c.version {
		return c, err
	}
	t.cached.Clear()
	return t.catalog(ctx)
}

func notFound(id string) error {
	return fault.New(fault.NotFound, "TemplateNotFound", "Requested template was not found [%s]", clip(id))
}

// clip shortens a client's text.
func clip(text string) string {
	if r := []rune(text); len(r) > 128 {
		return string(r[:128]) + "…"
	}
	return text
}
