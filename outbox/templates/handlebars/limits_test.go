package handlebars

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
)

func TestLimitsOfSource(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("{{#if a}}", n) + strings.Repeat("{{/if}}", n) }
	inner := func(n int) string {
		return "{{#if " + strings.Repeat("(not ", n) + "a" + strings.Repeat(")", n) + "}}{{/if}}"
	}
	for _, test := range []struct {
		name, source string
		partials     map[string]string
		limits       Limits
		fits         bool
	}{
		{name: "size", source: strings.Repeat("a", 256<<10), fits: true},
		{name: "size and one", source: strings.Repeat("a", 256<<10+1)},
		{name: "size as set", source: "abc", limits: Limits{Source: 2}},
		{name: "size with partials", source: "{{> a}}{{> b}}", partials: map[string]string{"a": "1234567",
			"b": "1234567"}, limits: Limits{TotalSource: 20}},
		{name: "nesting", source: deep(64), fits: true},
		{name: "nesting and one", source: deep(65)},
		{name: "nesting of 200,000", source: strings.Repeat("{{#a}}", 40_000)},
		{name: "expressions", source: inner(64), fits: true},
		{name: "expressions and one", source: inner(65)},
		{name: "parentheses without end", source: "{{a " + strings.Repeat("(a ", 80_000)},
		{name: "branches", source: "{{#if a}}" + strings.Repeat("{{else if a}}", 256) + "{{/if}}", fits: true},
		{name: "branches and one", source: "{{#if a}}" + strings.Repeat("{{else if a}}", 257) + "{{/if}}"},
		{name: "partials in a circle", source: "{{> a}}", partials: map[string]string{"a": "{{> b}}",
			"b": "{{> a}}"}},
		{name: "a partial of itself", source: "{{> a}}", partials: map[string]string{"a": "x{{> a}}"}},
	} {
		_, err := Parse(test.source, Options{Partials: test.partials, Limits: test.limits})
		if test.fits && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if !test.fits && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v, want a limit", test.name, err)
		}
	}
}

func TestLimitsOfExecution(t *testing.T) {
	list := make([]any, 1000)
	bomb := map[string]string{}
	for _, c := range "abcdefghij" {
		next := string(c + 1)
		bomb[string(c)] = strings.Repeat("{{> "+next+"}}", 10)
	}
	bomb["k"] = "ha"
	for _, test := range []struct {
		name, source string
		partials     map[string]string
		limits       Limits
		message      string
	}{
		{"loops", "{{#each l}}{{#each @root.l}}{{#each @root.l}}{{/each}}{{/each}}{{/each}}", nil, Limits{},
			"more than 1000000 steps"},
		{"steps as set", "{{#each l}}{{/each}}", nil, Limits{Steps: 500}, "more than 500 steps"},
		{"output", "{{#each l}}{{#each @root.l}}" + strings.Repeat("x", 100) + "{{/each}}{{/each}}", nil, Limits{},
			"longer than 2097152 bytes"},
		{"output of values", "{{#each l}}{{@root.text}}{{/each}}", nil, Limits{Output: 100},
			"longer than 100 bytes"},
		{"printed lists", "{{#each l}}{{@root.l}}{{@root.l}}{{/each}}", nil, Limits{}, "steps"},
		{"a billion laughs", "{{> a}}", bomb, Limits{}, "more than"},
		{"partials that call themselves", "{{> tree}}", map[string]string{"tree": "{{#if l}}{{> tree}}{{/if}}"},
			Limits{}, "more than 16 deep"},
		{"partials with computed names", "{{> (lookup . 'name')}}", map[string]string{
			"p": "{{> (lookup . 'name')}}"}, Limits{}, "more than 16 deep"},
		{"inline partials that call themselves", "{{#*inline 'p'}}{{> p}}{{/inline}}{{> p}}", nil, Limits{},
			"more than 16 deep"},
		{"blocks passed on and on", "{{#*inline 'p'}}{{#> p}}{{> @partial-block}}{{/p}}{{/inline}}{{#> p}}x{{/p}}",
			nil, Limits{}, "more than 16 deep"},
		{"indented", "{{#*inline 'p'}}\n a\n{{/inline}}\n{{#each l}}\n    {{> p}}\n{{/each}}", nil,
			Limits{Output: 200}, "longer than 200"},
	} {
		template, err := Parse(test.source, Options{Partials: test.partials, Limits: test.limits})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		_, err = template.Execute(t.Context(), map[string]any{"l": list, "text": strings.Repeat("y", 60),
			"name": "p"}, Input{})
		if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %s", test.name, err, test.message)
		}
	}
}

// TestTimeIsUp stops a template that would run for minutes if steps weren't counted either.
func TestTimeIsUp(t *testing.T) {
	template, err := Parse("{{#each l}}{{#each @root.l}}{{#each @root.l}}{{json @root.l}}{{/each}}{{/each}}{{/each}}",
		Options{Limits: Limits{Steps: 1 << 40, Output: 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := testkit.CPUUsed(t)
	_, err = template.Execute(ctx, map[string]any{"l": make([]any, 1000)}, Input{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the deadline", err)
	}
	if took := testkit.CPUUsed(t) - start; took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	cancel()
	if _, err := template.Execute(ctx, nil, Input{}); err == nil {
		t.Error("a context that has ended stops nothing")
	}
}

// TestOnlyData refuses what isn't data, whose methods or fields a template might reach.
func TestOnlyData(t *testing.T) {
	template, err := Parse("{{x.Error}}{{y}}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{errors.New("secret"), struct{ Error string }{"secret"},
		func() string { return "secret" }, &struct{}{}, []string{"a"}} {
		r, err := template.Execute(t.Context(), map[string]any{"y": value}, Input{})
		if err == nil || strings.Contains(r.Text, "secret") {
			t.Errorf("%T: %q, %v", value, r.Text, err)
		}
	}
}

func TestLayout(t *testing.T) {
	partials := map[string]string{"layout": "<{{> head}}|{{> @partial-block}}>"}
	template, err := Parse("{{#*inline \"head\"}}H{{/inline}}{{name}}",
		Options{Partials: partials, Layout: "layout"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := template.Execute(t.Context(), map[string]any{"name": "Ann"}, Input{})
	if err != nil || r.Text != "<H|Ann>" {
		t.Errorf("%q, %v", r.Text, err)
	}
	if _, err := Parse("x", Options{Layout: "layout"}); err == nil {
		t.Error("a layout that isn't there is no error")
	}
}

func TestErrorsSayWhere(t *testing.T) {
	partials := map[string]string{"p": "a\nb {{shout 1}}", "q": "{{> nobody}}", "r": "x\n  {{number v}}"}
	for _, test := range []struct{ source, want string }{
		{"line\n  {{#if a}}\n", `line 2, column 3: the block "if" isn't closed`},
		{"äöü {{/if}}", "line 1, column 5: this closes a block that isn't open"},
		{"{{#if a}}\n{{/each}}", `line 2, column 1: "each" closes a block that was opened as "if"`},
		{"{{ name", "line 1, column 8: the template ends inside a tag"},
		{"{{shout a}}", `line 1, column 3: there is no helper "shout"`},
		{"{{truncate a}}", "line 1, column 3: truncate takes 2 to 3 arguments, not 1"},
		{"{{#if}}{{/if}}", "line 1, column 4: if takes 1 argument, not 0"},
		{"{{number a digits=2}}", "line 1, column 3: number has no argument digits=, but decimals=, locale="},
		{"{{upper a b=1}}", "line 1, column 3: upper has no argument b="},
		{"{{each a}}", `line 1, column 3: "each" is a block: {{#each …}}…{{/each}}`},
		{"{{#upper a}}{{/upper}}", `line 1, column 4: "upper" prints a value, it has no block`},
		{"{{> p}}", `partial p, line 2, column 5: there is no helper "shout"`},
		{"{{> q}}", `partial q, line 1, column 1: there is no partial "nobody"`},
		{"{{> r}}", `partial r, line 2, column 5: number: "many" is not a number`},
		{"{{date v}}", `line 1, column 3: date: "many" is not a date`},
		{"{{date n 'L' tz='Mars/Olympus'}}", `line 1, column 3: date: there is no time zone "Mars/Olympus"`},
	} {
		template, err := Parse(test.source, Options{Partials: partials})
		if err == nil {
			_, err = template.Execute(t.Context(), map[string]any{"v": "many", "n": 1}, Input{})
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: %v, want %s", test.source, err, test.want)
		}
	}
}
