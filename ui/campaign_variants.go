package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type variantBlock struct{ Number int }

// Field returns the name of one of its fields.
func (b variantBlock) Field(name string) string {
	return fmt.Sprintf("variants.%d.%s", b.Number-1, name)
}

// Fuller reports whether it has more than a subject.
func (b variantBlock) Fuller(f url.Values) bool {
	return slices.ContainsFunc(variantFields[2:], func(name string) bool { return f.Get(b.Field(name)) != "" })
}

var variantFields = []string{"variant", "subject", "previewText", "fromName", "fromAddress", "template",
	"html",
	"text"}

const mostVariants = 8

// Variants returns the blocks of the variants that the form has, and of two more.
func (v campaignFormView) Variants() []variantBlock {
	var all []variantBlock
	for n, free := 1, 0; n <= mostVariants && free < 2; n++ {
		b := variantBlock{n}
		if v.Get(b.Field("variant"))+v.Get(b.Field("subject")) == "" && !b.Fuller(v.Values) {
			free++
		}
		all = append(all, b)
	}
	return all
}

// variantValues returns the variants of a campaign, and its test, as the form has them.
func variantValues(c api.Campaign) url.Values {
	f := map[string]string{}
	for i, v := range c.Variants {
		b, from := variantBlock{i + 1}, api.Address{}
		if v.From != nil {
			from = *v.From
		}
		for j, value := range []string{v.Variant, v.Subject, v.PreviewText, from.Name, from.Address, v.Template,
			v.HTML, v.Text} {
			f[b.Field(variantFields[j])] = value
		}
	}
	if t := c.Test; t != nil {
		f["testMetric"], f["testWait"] = t.Metric, t.Wait
		if t.Share > 0 {
			f["testShare"] = strconv.FormatFloat(t.Share, 'g', -1, 64)
		}
		if t.Minimum > 0 {
			f["testMinimum"] = strconv.Itoa(t.Minimum)
		}
	}
	return values(f)
}

// readVariants returns the variants of a form, and their test. text returns a field.
func readVariants(text func(name string) string, wrong *fault.Fields) ([]api.CampaignVariant,
	*api.CampaignTrial) {
	var all []api.CampaignVariant
	for n := 1; n <= mostVariants; n++ {
		b := variantBlock{n}
		get := func(name string) string { return text(b.Field(name)) }
		v := api.CampaignVariant{Variant: get("variant"), Subject: get("subject"), PreviewText: get("previewText"),
			Template: get("template"), HTML: get("html"), Text: get("text")}
		if name, address := get("fromName"), get("fromAddress"); name+address != "" {
			v.From = &api.Address{Name: name, Address: address}
		}
		if v != (api.CampaignVariant{}) {
			all = append(all, v)
		}
	}
	t, err := api.CampaignTrial{Metric: text("testMetric"), Wait: text("testWait")}, error(nil)
	if share := text("testShare"); share != "" {
		if t.Share, err = strconv.ParseFloat(share, 64); err != nil {
			wrong.Add("test.share", "must be a number from 0.01 to 1")
		}
	}
	if least := text("testMinimum"); least != "" {
		if t.Minimum, err = strconv.Atoi(least); err != nil {
			wrong.Add("test.minimum", "must be a number")
		}
	}
	if t == (api.CampaignTrial{}) {
		return all, nil
	}
	return all, &t
}
