package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/postroom/postroom/api"
)

// templateRenderCmd shows what a template says.
type templateRenderCmd struct {
	Template string `arg:"" help:"Id of the template; or a directory with one, as its path: ./order."`
	As       string `enum:"text,html,subject" default:"text" help:"What to print: text (the subject, and the text of the mail), html or subject."`
	Params   string `placeholder:"JSON" help:"The data, such as @params.json. Default: the template's sample."`
	Locale   string `placeholder:"LOCALE" help:"Chooses the variant, and how numbers and dates are written."`
	TZ       string `name:"tz" placeholder:"ZONE" help:"Time zone of dates, such as Europe/Zurich. Default: UTC."`
	Account  string `placeholder:"ID" help:"Who would send."`
	To       string `placeholder:"ADDRESS" help:"Whom it would be for."`
	Version  int    `placeholder:"N" help:"An earlier version."`
	reachFlags
}

// Run fills the template and prints what it says. Variables that are missing are noted beside it.
func (t *templateRenderCmd) Run(ctx context.Context, con *console) error {
	client, err := t.client()
	if err != nil {
		return err
	}
	answer, err := t.preview(ctx, client, con)
	if err != nil {
		return err
	}
	if t.JSON {
		return con.printJSON(answer)
	}
	for _, m := range answer.Missing {
		where := m.Part
		if m.Partial != "" {
			where += ", partial " + m.Partial
		}
		con.note("%s is missing (%s, line %d, column %d)", clean(m.Name), clean(where), m.Line, m.Column)
	}
	switch t.As {
	case "html":
		_, err = fmt.Fprintln(con.out, con.lines(answer.HTML))
	case "subject":
		con.say("%s", clean(answer.Subject))
	default:
		if answer.Subject != "" {
			con.say("%s\n", clean(answer.Subject))
		}
		_, err = fmt.Fprintln(con.out, con.lines(answer.Text))
	}
	return err
}

func (t *templateRenderCmd) preview(ctx context.Context, client *api.Client, con *console) (api.TemplatePreview, error) {
	req := api.TemplatePreviewRequest{Locale: t.Locale, TZ: t.TZ, Account: t.Account, Version: t.Version}
	if t.Params != "" {
		text, err := con.read(t.Params, t.Params == "-")
		if err != nil {
			return api.TemplatePreview{}, err
		}
		if !json.Valid(text) {
			return api.TemplatePreview{}, usage("--params is not JSON")
		}
		req.Params = text
	}
	if t.To != "" {
		list, err := parseAddresses(t.To)
		if err != nil || len(list) != 1 {
			return api.TemplatePreview{}, usage("--to: %q is not one address, such as 'Ada <ada@example.com>'", t.To)
		}
		req.To = &list[0]
	}
	if !strings.ContainsAny(t.Template, `/\`) && t.Template != "." {
		return api.PreviewTemplate.Do(ctx, client, req, t.Template)
	}
	of, err := readTemplate(t.Template)
	if err != nil {
		return api.TemplatePreview{}, err
	}
	if req.Account == "" && of.Account != nil {
		req.Account = *of.Account
	}
	answer, err := api.TryTemplate.Do(ctx, client, api.TemplateTrial{
		Kind: of.Kind, TemplateDefinition: of.TemplateDefinition, Params: req.Params, Locale: req.Locale, TZ: req.TZ, Account: req.Account, To: req.To,
	})
	return answer, filed(t.Template, of.Format, err)
}

// lines makes a text that strangers wrote fit for a terminal, line by line. For programs it stays as it is.
func (c *console) lines(text string) string {
	if !c.outTTY {
		return text
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		all[i] = strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + clean(line)
	}
	return strings.Join(all, "\n")
}
