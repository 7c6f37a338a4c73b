package mail

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTheDocumentedTemplateRenders: the example is as documented, and every variable of the table exists.
func TestTheDocumentedTemplateRenders(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/digests.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Templates\n")
	table, rest, _ := strings.Cut(section, "```handlebars\n")
	example, _, _ := strings.Cut(rest, "```")

	d := several()
	params, err := Params(d, "en", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(text string) string {
		return rendered(t, Content{Subject: "x", Text: text, Params: params}, "en", "").Text
	}
	got := fill(example)
	for _, want := range []string{"Ann Miller, Bo, Cy, 2 others, reacted to Budget 2027", "5 events."} {
		if !strings.Contains(got, want) {
			t.Errorf("the example lacks %q:\n%s", want, got)
		}
	}
	names := regexp.MustCompile("`(digest|rcpt|…)\\.(\\w+)`").FindAllStringSubmatch(table, -1)
	for _, name := range names {
		if name[1] == "…" {
			fill("{{digest.groups.[0]." + name[2] + "}}")
		} else {
			fill("{{" + name[1] + "." + name[2] + "}}")
		}
	}
	if len(names) < 25 {
		t.Errorf("the table names %d variables", len(names))
	}
}
