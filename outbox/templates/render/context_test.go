package render_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/outbox/templates/render"
)

func TestContext(t *testing.T) {
	source := render.Source{
		Subject: "{{params.order}} for {{rcpt.name}} <{{rcpt.address}}>",
		Text:    "{{account.name}} <{{account.email}}> at {{service.url}}",
	}
	full := render.Context{
		Account:   render.Person{Name: "Shop", Address: "shop@example.com"},
		Recipient: render.Person{Name: "Ada", Address: "ada@example.org"}, ServiceURL: "https://mail.example.com",
	}
	for _, test := range []struct {
		name    string
		context render.Context
		params  any
		want    render.Mail
		missing []string
	}{
		{"all", full, map[string]any{"order": 7.0}, render.Mail{
			Subject: "7 for Ada <ada@example.org>", Text: "Shop <shop@example.com> at https://mail.example.com",
		}, nil},
		{"nothing known", render.Context{}, nil, render.Mail{Subject: "for  <>", Text: " <> at "},
			[]string{"params.order"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			template, err := render.Parse(source, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := template.Render(t.Context(), render.Input{Data: test.context.Data(test.params)})
			if err != nil {
				t.Fatal(err)
			}
			var missing []string
			for _, m := range got.Missing {
				missing = append(missing, m.Name)
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			got.Missing = nil
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(got)); diff != "" {
				t.Errorf("mail (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTextHasPartialsOfItsOwn: a footer of html would be no footer in a text.
func TestTextHasPartialsOfItsOwn(t *testing.T) {
	template, err := render.Parse(
		render.Source{Subject: "{{> name}}", HTML: "{{> name}}{{> footer}}", Text: "{{> name}}{{> footer}}"},
		render.Options{
			Partials:     map[string]string{"name": "{{n}}", "footer": "<hr>{{n}}"},
			TextPartials: map[string]string{"footer": "-- {{n}}"},
		})
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Render(t.Context(), render.Input{Data: map[string]any{"n": "A&B"}})
	if err != nil {
		t.Fatal(err)
	}
	want := render.Mail{Subject: "A&B", HTML: "A&amp;B<hr>A&amp;B", Text: "A&B-- A&B"}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheLayoutIsCalledSo: errors in the layout name the layout, and not a partial with a name that no one
// gave.
func TestTheLayoutIsCalledSo(t *testing.T) {
	for _, layout := range []string{"{{> nobody}}{{> @partial-block}}", "{{#if"} {
		_, err := render.Parse(render.Source{HTML: "x"}, render.Options{Layout: layout})
		if err == nil || strings.Contains(err.Error(), "\x00") || !strings.Contains(err.Error(), "layout, line 1") {
			t.Errorf("%q", err)
		}
	}
	template, err := render.Parse(render.Source{HTML: "x"},
		render.Options{Layout: "{{gone}}{{> @partial-block}}"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := template.Render(t.Context(), render.Input{})
	if err != nil || len(m.Missing) != 1 || m.Missing[0].Template != "layout" {
		t.Errorf("%+v, %v", m, err)
	}
}
