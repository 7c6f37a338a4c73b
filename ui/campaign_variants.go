package ui

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
)

const mostVariants = 8

// variantPrefix begins the names of the fields of a variant.
func variantPrefix(i int) string { return fmt.Sprintf("variants[%d].", i) }

// variantGroup returns the parts of the form about variants: those that the form has, two more, and the test.
func variantGroup(f url.Values, c campaignChoices) []formGroup {
	filled := 0
	for name := range f {
		for i := range mostVariants {
			if strings.HasPrefix(name, variantPrefix(i)) && f.Get(name) != "" {
				filled = max(filled, i+1)
			}
		}
	}
	var groups []formGroup
	for i := range min(filled+2, mostVariants) {
		p := variantPrefix(i)
		groups = append(groups, formGroup{Legend: fmt.Sprintf("Variant %d", i+1), Folded: true, Fields: []formField{
			{Name: p + "variant", Label: "ID", Most: 32, Placeholder: "a",
				Hint: "A variant inherits every field that you leave empty."},
			{Name: p + "subject", Label: "Subject", Most: 10240},
			{Name: p + "previewText", Label: "Preview text", Most: 1024},
			{Name: p + "from.address", Label: "From address", List: c.senders},
			{Name: p + "from.name", Label: "From name"},
			oneOf(f, formField{Name: p + "template", Label: "Template"}, "none", c.templates),
			{Name: p + "html", Label: "HTML or Markdown", Kind: "lines", Most: mostHTML},
			{Name: p + "text", Label: "Text", Kind: "lines", Most: mostHTML},
		}})
	}
	return append(groups, formGroup{Legend: "Test of the variants", Folded: true, Fields: []formField{
		{Name: "test.share", Label: "Share of the audience in the test", Kind: "number", Placeholder: "0.1",
			Hint: "The test sends each variant to an equal part of this share. Everyone else gets the winner."},
		{Name: "test.metric", Label: "Winner decided by", Kind: "choice", Choices: []string{"", "opens", "manual"},
			Placeholder: "clicks", Words: map[string]string{"manual": "you"}},
		{Name: "test.wait", Label: "Duration of the test", Placeholder: "4h"},
		{Name: "test.minimum", Label: "Minimum recipients per variant", Kind: "number", Placeholder: "100"},
	}})
}

// readVariants returns the variants of a form. It skips those that are empty.
func readVariants(r *formReader) []api.CampaignVariant {
	var all []api.CampaignVariant
	for i := range mostVariants {
		var v api.CampaignVariant
		if r.take(variantPrefix(i), &v); v != (api.CampaignVariant{}) {
			all = append(all, v)
		}
	}
	return all
}
