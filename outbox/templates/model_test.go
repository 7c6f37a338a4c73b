package templates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// TestWhateverIsDoneIsInOrder has two processes do anything to a few templates, and looks after each step.
// What is stored can be read, a process remembers what is stored, and nothing was refused without a reason.
func TestWhateverIsDoneIsInOrder(t *testing.T) {
	b := setup(t)
	both := []bundle{b, process(t, b.url)}
	r := rand.New(rand.NewPCG(1, 2))
	steps := map[string]int{}
	for range 400 {
		who := both[r.IntN(2)]
		what, err := who.anything(t.Context(), r)
		switch {
		case err == nil:
			steps[what]++
		case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict), fault.Is(err,
			fault.Unprocessable), fault.Is(err, fault.Invalid):
			steps[what+" refused"]++
		default:
			t.Fatalf("%s: %v", what, err)
		}
		inOrder(t, who)
	}
	for _, b := range both {
		b.clock.Advance(time.Second)
		inOrder(t, b)
	}
	for _, what := range []string{"create", "content", "name", "delete", "restore", "create refused",
		"content refused", "name refused", "delete refused"} {
		if steps[what] < 3 {
			t.Errorf("%s: only %d times, of %v", what, steps[what], steps)
		}
	}
}

// anything does something to one of a few templates.
func (b bundle) anything(ctx context.Context, r *rand.Rand) (string, error) {
	of := func(all ...string) string { return all[r.IntN(len(all))] }
	account := of("", "", "shop", "blog")
	kind, name := of("partial", "partial", "template", "layout"), of("a", "b", "c")
	id := account + kind + name
	c := api.TemplateContent{HTML: strings.Join([]string{of("", "{{> a}}"), of("", "{{#if x}}{{> b}}{{/if}}"),
		of("", "{{> c}}"), of("1", "2")}, "")}
	if kind == "layout" {
		c.HTML += "{{> @partial-block}}"
	}
	switch r.IntN(6) {
	case 0, 1:
		req := api.TemplateRequest{ID: id, Name: name, Kind: kind, TemplateDefinition: definition{Content: c}}
		if account != "" {
			req.Account = &account
		}
		if kind == "template" {
			req.Layout = of("", account+"layouta", "layoutb")
		}
		_, err := b.Create(ctx, "", req)
		return "create", err
	case 2:
		_, err := b.Update(ctx, "", id, api.TemplatePatch{Content: &c, Locales: &map[string]api.TemplateContent{
			of("de", "fr"): c}})
		return "content", err
	case 3:
		_, err := b.Update(ctx, "", id, api.TemplatePatch{Name: new(of("a", "b", "c"))})
		return "name", err
	case 4:
		_, err := b.Restore(ctx, "", id, 1)
		return "restore", err
	}
	_, err := b.Delete(ctx, "", id)
	return "delete", err
}

// inOrder looks at everything that is stored.
func inOrder(t *testing.T, b bundle) {
	t.Helper()
	held, err := b.fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored.all, held.all, cmpopts.IgnoreUnexported(entry{}),
		cmpopts.EquateEmpty()); diff != "" || stored.version != held.version {
		t.Fatalf("what is remembered at %s is not what is stored at %s (-stored +remembered):\n%s", held.version,
			stored.version, diff)
	}
	l, err := b.library(t.Context(), held, nil, held.all...)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range held.all {
		wrong, err := l.verify(t.Context(), e)
		if err != nil || len(wrong) > 0 {
			t.Fatalf("%s can't be read: %v, %v", e.ID, wrong, err)
		}
		if n := len(e.Value.Versions); e.Value.Versions[n-1].Number != e.Value.Version ||
			!slices.IsSortedFunc(e.Value.Versions, func(a, b version) int { return a.Number - b.Number }) {
			t.Fatalf("%s has the versions %+v, of which %d is the current one", e.ID, e.Value.Versions,
				e.Value.Version)
		}
		if key := fmt.Sprint(e.Value.Kind, e.Value.Account, e.Value.Name); e.Value.Kind == kindPartial &&
			names[key] {
			t.Fatalf("two partials are named %s", e.Value.Name)
		} else {
			names[key] = true
		}
	}
}
