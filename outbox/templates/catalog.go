package templates

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/templates/render"
)

// catalog is all templates without their content, at one version of the store. Only its cache changes.
type catalog struct {
	version  string
	all      []*entry // in the order of their ids
	byID     map[string]*entry
	partials map[owned]*entry
	edges    func() map[string][]string // ids of the direct users of each id

	mu    sync.RWMutex
	ready map[string]*prepared // by id
	bytes int                  // held by ready
}

// owned is the key of a partial.
type owned struct{ account, name string }

// loadTimeout is the timeout of a load that several callers share: their own deadlines may differ.
const loadTimeout = 10 * time.Second

// maxReady is the maximum size of a catalog's cache, in bytes of template sources. Beyond it the cache is
// emptied.
const maxReady = 64 << 20

// newCatalog returns a catalog of entries, which are sorted by id.
func newCatalog(version string, all []*entry) *catalog {
	c := &catalog{version: version, all: all, byID: make(map[string]*entry, len(all)),
		partials: map[owned]*entry{}, ready: map[string]*prepared{}}
	for _, e := range all {
		c.byID[e.ID] = e
		if e.Value.Kind == kindPartial {
			c.partials[owned{e.Value.Account, e.Value.Name}] = e
		}
	}
	c.edges = sync.OnceValue(c.findEdges)
	return c
}

// load reads all entries. Callers with the same version share one load: entries that are read after the
// version are at least as new.
func (t *Templates) load(ctx context.Context) (*catalog, error) {
	version, err := t.store.Version(ctx)
	if err != nil {
		return nil, err
	}
	loaded := t.loading.DoChan(version, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		var all []*entry
		err := t.store.Each(ctx, func(e *entry) error { all = append(all, e); return nil })
		return newCatalog(version, all), err
	})
	return redisdb.Await[*catalog](ctx, loaded)
}

// with returns the catalog with an entry added, or replaced by id.
func (c *catalog) with(e *entry) *catalog {
	all := slices.Clone(c.all)
	at, found := slices.BinarySearchFunc(all, e.ID, func(e *entry, id string) int {
		return strings.Compare(e.ID, id)
	})
	if found {
		all[at] = e
	} else {
		all = slices.Insert(all, at, e)
	}
	return newCatalog(c.version, all)
}

// count returns the number of entries of an account.
func (c *catalog) count(account string) (n int) {
	for _, e := range c.all {
		if e.Value.Account == account {
			n++
		}
	}
	return n
}

// partial returns an account's partial by name, or a common one (empty account), or nil.
func (c *catalog) partial(account, name string) *entry {
	if own := c.partials[owned{account, name}]; own != nil {
		return own
	}
	return c.partials[owned{"", name}]
}

// layout returns the layout of an entry, or nil.
func (c *catalog) layout(r *record) *entry {
	if e := c.byID[r.Layout]; e != nil && e.Value.Kind == kindLayout && e.Value.mayUse(r.Account) {
		return e
	}
	return nil
}

// uses returns the direct partials of an entry. An entry with a computed partial name may use any visible
// partial.
func (c *catalog) uses(e *entry) []*entry {
	var found []*entry
	if l := c.layout(&e.Value); l != nil {
		found = append(found, l)
	}
	if e.Value.Computed {
		return append(found, c.visible(e.Value.Account)...)
	}
	for _, name := range e.Value.Uses {
		if p := c.partial(e.Value.Account, name); p != nil {
			found = append(found, p)
		}
	}
	return found
}

// visible returns the partials that an account sees: its own, and the common ones that its own do not hide.
func (c *catalog) visible(account string) []*entry {
	var found []*entry
	for _, e := range c.all {
		if e.Value.Kind == kindPartial && c.partial(account, e.Value.Name) == e {
			found = append(found, e)
		}
	}
	return found
}

// closure returns an entry and everything it can reach.
func (c *catalog) closure(e *entry) []*entry {
	found, seen := []*entry{e}, map[string]bool{e.ID: true}
	for i := 0; i < len(found); i++ {
		for _, next := range c.uses(found[i]) {
			if !seen[next.ID] {
				seen[next.ID] = true
				found = append(found, next)
			}
		}
	}
	return found
}

// findEdges inverts uses.
func (c *catalog) findEdges() map[string][]string {
	users := map[string][]string{}
	for _, e := range c.all {
		for _, used := range c.uses(e) {
			if used.ID != e.ID {
				users[used.ID] = append(users[used.ID], e.ID)
			}
		}
	}
	return users
}

// users returns the ids of all entries that can reach an entry.
func (c *catalog) users(id string) []string {
	var found []string
	seen := map[string]bool{id: true}
	for queue := []string{id}; len(queue) > 0; queue = queue[1:] {
		for _, user := range c.edges()[queue[0]] {
			if !seen[user] {
				seen[user] = true
				found = append(found, user)
				queue = append(queue, user)
			}
		}
	}
	return found
}

// list returns a page of the matching entries that a caller bound to an account may see.
func (c *catalog) list(q api.TemplateQuery, bound string) api.TemplatePage {
	rows := []*entry{}
	search := strings.ToLower(q.Search)
	for _, e := range c.all {
		r := &e.Value
		if q.Account != "" && r.Account != q.Account || q.Kind != "" && r.Kind != q.Kind || bound != "" &&
			!r.mayUse(bound) {
			continue
		}
		if search != "" && !strings.Contains(strings.ToLower(e.ID+"\n"+r.Name+"\n"+r.Description), search) {
			continue
		}
		rows = append(rows, e)
	}
	numbers, from, end := api.PageQuery{Page: q.Page, PageSize: q.PageSize}.Of(len(rows))
	page := api.TemplatePage{Account: orNull(q.Account), PageNumbers: numbers, Templates: []api.TemplateRow{}}
	for _, e := range rows[from:end] {
		page.Templates = append(page.Templates, rowOf(e))
	}
	return page
}

func rowOf(e *entry) api.TemplateRow {
	return api.TemplateRow{TemplateHead: headOf(e), Format: e.Value.Format,
		Locales: append([]string{}, e.Value.Locales...), Layout: e.Value.Layout}
}

func headOf(e *entry) api.TemplateHead {
	r := &e.Value
	return api.TemplateHead{
		Account: orNull(r.Account), ID: e.ID, Name: r.Name, Description: r.Description, Kind: r.Kind,
		Version: r.Version,
		Created: e.Created, Updated: e.Updated,
	}
}

// orNull returns an account for a response: null if empty.
func orNull(account string) *string {
	if account == "" {
		return nil
	}
	return &account
}

// chosen returns the variants that a locale selects among everything a template can reach. Equal selections
// give equal mail.
func chosen(reach []*entry, locale string) string {
	var b strings.Builder
	for _, e := range reach {
		if len(e.Value.Locales) > 0 {
			b.WriteString(render.Choose(locale, e.Value.Locales))
		}
		b.WriteByte(',')
	}
	return b.String()
}
