package outbox

import (
	"testing"

	"github.com/postroom/postroom/outbox/templates/render"
)

// TestLinksAreCountedAsTheyStandInTheContent, before params fill them in.
func TestLinksAreCountedAsTheyStandInTheContent(t *testing.T) {
	t.Parallel()
	plain := Snapshot{Links: linksOf(render.Content{Source: render.Source{
		HTML: `<a href="https://t.example/p?id=1#a">x</a>`}})}
	filled := Snapshot{Links: linksOf(render.Content{Source: render.Source{
		HTML: `<a href="https://t.example/p?id=1">1</a> <a href='https://t.example/p?id=2&amp;b=3'>2</a>
<a href="https://t.example/p?u={{subscriber.id}}">3</a> [md](https://m.example/{{subscriber.id}}/x)
<a href="https://t.example/{{#if a}}old{{else}}new{{/if}}?x">4</a> <a href="{{{subscriber.attributes.url}}}">5</a>`},
		Options: render.Options{Partials: map[string]string{"foot": `<a href="https://f.example/?q={{params.q}}">6</a>`}}})}
	for _, c := range []struct {
		of            Snapshot
		address, want string
	}{
		{plain, "https://t.example/p?id=1#a", "https://t.example/p?id=1#a"},
		{plain, "https://t.example/p?id=2", "https://t.example/p?id=2"},
		{filled, "https://t.example/p?id=1", "https://t.example/p?id=1"},
		{filled, "https://t.example/p?id=2&b=3", "https://t.example/p?id=2&b=3"},
		{filled, "https://t.example/p?u=s17", "https://t.example/p?u={{subscriber.id}}"},
		{filled, "https://m.example/s17/x", "https://m.example/{{subscriber.id}}/x"},
		{filled, "https://t.example/new?x", "https://t.example/{{#if a}}old{{else}}new{{/if}}?x"},
		{filled, "https://f.example/?q=a", "https://f.example/?q={{params.q}}"},
		{filled, "https://ann.example/me", "{{{subscriber.attributes.url}}}"},
		{Snapshot{Links: []string{"https://a.example/{{id}}"}}, "https://b.example/?who=ann#x",
			"https://b.example/"},
	} {
		if got := c.of.LinkOf(c.address); got != c.want {
			t.Errorf("%s: %s, want %s", c.address, got, c.want)
		}
	}
}
