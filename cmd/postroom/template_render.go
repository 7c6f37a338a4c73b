package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/postroom/postroom/api"
)

type templateRenderCmd struct {
	Template string `arg:"" help:"ID of the template, or the path of a directory with a template: ./order."`
	As       string `enum:"text,html,subject" default:"text" help:"Part to print: text (with the subject), html or subject."`
	Params   string `placeholder:"JSON" help:"Data, for example @params.json. Defaults to the template's sample."`
	Locale   string `placeholder:"LOCALE" help:"Language of the variant, numbers and dates."`
	TZ       string `name:"tz" placeholder:"ZONE" help:"Time zone of dates, for example Europe/Zurich. Default: UTC."`
	Account  string `placeholder:"ID" help:"Account that would send."`
	To       string `placeholder:"ADDRESS" help:"Recipient."`
	Version  int    `placeholder:"N" help:"An earlier version."`
}

func (t *templateRenderCmd) Run(s *session) error {
	answer, err := t.preview(s)
	return s.answer(answer, err, func() {
		for _, m := range answer.Missing {
			where := m.Part
			if m.Partial != "" {
				where += ", partial " + m.Partial
			}
			s.note("%s is missing (%s, line %d, column %d)", clean(m.Name), clean(where), m.Line, m.Column)
		}
		switch {
		case t.As == "html":
			fmt.Fprintln(s.out, s.lines(answer.HTML))
			return
		case t.As == "subject":
			s.say("%s", clean(answer.Subject))
			return
		case answer.Subject != "":
			s.say("%s\n", clean(answer.Subject))
		}
		fmt.Fprintln(s.out, s.lines(answer.Text))
	})
}

func (t *templateRenderCmd) preview(s *session) (api.TemplatePreview, error) {
	req, none := api.TemplatePreviewRequest{Locale: t.Locale, TZ: t.TZ, Account: t.Account,
		Version: t.Version}, api.TemplatePreview{}
	if t.Params != "" {
		var err error
		if req.Params, err = s.readJSON("--params", t.Params); err != nil {
			return none, err
		}
	}
	if t.To != "" {
		to, err := oneAddress("--to", t.To)
		if err != nil {
			return none, err
		}
		req.To = &to
	}
	if !strings.ContainsAny(t.Template, `/\`) && t.Template != "." {
		return api.PreviewTemplate.Do(s, s.client, req, t.Template)
	}
	of, err := readTemplate(t.Template)
	if err != nil {
		return none, err
	}
	answer, err := api.TryTemplate.Do(s, s.client, api.TemplateTrial{
		Kind: of.Kind, TemplateDefinition: of.TemplateDefinition, Params: req.Params, Locale: req.Locale,
		TZ:      req.TZ,
		Account: cmp.Or(req.Account, *cmp.Or(of.Account, new(""))), To: req.To,
	})
	return answer, filed(t.Template, of.Format, err)
}

// lines makes an untrusted text safe for a terminal, line by line. In a pipe it is unchanged.
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
