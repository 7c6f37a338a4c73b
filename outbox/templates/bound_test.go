package templates

import (
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func TestWhoIsConfinedToAnAccount(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, html("all", "everybody's"), in("shop", html("t", "shop's")), in("blog", html("t", "blog's")))
	page, err := b.List(ctx, "shop", api.TemplateQuery{})
	if err != nil || page.Total != 2 || page.Templates[0].ID != "all" || page.Templates[1].ID != "shop-t" {
		t.Errorf("%+v, %v", page, err)
	}
	if got, err := b.Get(ctx, "shop", "all"); err != nil || got.Content.HTML != "everybody's" {
		t.Errorf("%+v, %v", got, err)
	}
	for what, try := range map[string]func(id string) error{
		"update": func(id string) error {
			_, err := b.Update(ctx, "shop", id, api.TemplatePatch{Name: new("x")})
			return err
		},
		"delete":  func(id string) error { _, err := b.Delete(ctx, "shop", id); return err },
		"restore": func(id string) error { _, err := b.Restore(ctx, "shop", id, 1); return err },
	} {
		refused(t, what+" everybody's", try("all"), fault.Forbidden, "")
		refused(t, what+" another's", try("blog-t"), fault.NotFound, "TemplateNotFound")
	}
	for what, try := range map[string]func() error{
		"get":      func() error { _, err := b.Get(ctx, "shop", "blog-t"); return err },
		"versions": func() error { _, err := b.Versions(ctx, "shop", "blog-t"); return err },
		"version":  func() error { _, err := b.Version(ctx, "shop", "blog-t", 1); return err },
		"preview": func() error {
			_, err := b.Preview(ctx, "shop", "blog-t", api.TemplatePreviewRequest{})
			return err
		},
	} {
		refused(t, what+" another's", try(), fault.NotFound, "TemplateNotFound")
	}
	_, err = b.Create(ctx, "shop", in("blog", html("u", "x")))
	refused(t, "create for another", err, fault.Forbidden, "")
	created, err := b.Create(ctx, "shop", html("mine", "x"))
	if err != nil || *created.Account != "shop" {
		t.Errorf("%+v, %v", created, err)
	}
	_, err = b.Preview(ctx, "shop", "all", api.TemplatePreviewRequest{Account: "blog"})
	refused(t, "preview as another", err, fault.Forbidden, "")
	_, err = b.Try(ctx, "shop", api.TemplateTrial{Account: "blog"})
	refused(t, "try as another", err, fault.Forbidden, "")
	if p, err := b.Preview(ctx, "shop", "all", api.TemplatePreviewRequest{}); err != nil ||
		p.HTML != "everybody's" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestFlush(t *testing.T) {
	b := setup(t)
	b.create(t, html("all", "x"), in("shop", partial("p", "x")), in("shop", html("t", "{{> p}}")),
		in("blog", html("t", "x")))
	for _, want := range []int{2, 0} {
		if n, err := b.Flush(t.Context(), "shop"); n != want || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n, err := b.Flush(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("nobody's: %d, %v", n, err)
	}
	if page, err := b.List(t.Context(), "", api.TemplateQuery{}); err != nil || page.Total != 2 {
		t.Errorf("%+v, %v", page, err)
	}
}
