package templates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
)

func TestVersions(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, html("t", "1"))
	for i := 2; i <= 25; i++ {
		b.clock.Advance(time.Minute)
		if err := b.rewrite(ctx, "t", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.Versions(ctx, "", "t")
	if err != nil || all.Version != 25 || len(all.Versions) != keepVersions || all.Versions[0].Version != 25 ||
		all.Versions[19].Version != 6 || all.Versions[0].Size == 0 ||
		!all.Versions[0].Created.Equal(b.clock.Now()) {
		t.Fatalf("%+v, %v", all, err)
	}
	if n := b.db.Client().HLen(ctx, b.store.StateKey("t")).Val(); n != keepVersions {
		t.Errorf("%d versions are in Redis", n)
	}
	v, err := b.Version(ctx, "", "t", 6)
	if err != nil || v.Content.HTML != "6" || v.Version != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = b.Version(ctx, "", "t", 5)
	refused(t, "one that is gone", err, fault.NotFound, "TemplateVersionNotFound")
	_, err = b.Restore(ctx, "", "t", 5)
	refused(t, "restore one that is gone", err, fault.NotFound, "TemplateVersionNotFound")
	answer, err := b.Restore(ctx, "", "t", 7)
	if err != nil || answer.Version != 26 || b.says(t, "", "t", "") != "7" {
		t.Errorf("%+v, %v", answer, err)
	}
	if all, err = b.Versions(ctx, "", "t"); err != nil || all.Versions[0].Restored != 7 ||
		all.Versions[19].Version != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	if answer, err := b.Restore(ctx, "", "t", 26); err != nil || answer.Version != 26 {
		t.Errorf("what it says already: %+v, %v", answer, err)
	}

	b.create(t, partial("p", "x"), html("u", "{{> p}}"))
	if err := b.rewrite(ctx, "u", "plain"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(ctx, "", "p"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Restore(ctx, "", "u", 1)
	refused(t, "one whose partial is gone", err, fault.Unprocessable, "TemplateFault")
}

func TestLargeVersionsAreFewer(t *testing.T) {
	r, now := record{}, testkit.ClockStart
	for range 8 {
		state, err := r.renew(&definition{Content: api.TemplateContent{Text: strings.Repeat("x", 1<<20)}}, 0, now)
		if err != nil || len(state) == 0 {
			t.Fatal(err)
		}
	}
	if len(r.Versions) != 3 || r.Versions[2].Number != 8 {
		t.Errorf("%+v", r.Versions)
	}
}
