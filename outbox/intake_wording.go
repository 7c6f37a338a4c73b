package outbox

import (
	"cmp"
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates"
	"github.com/postroom/postroom/templates/batch"
	"github.com/postroom/postroom/templates/render"
)

// lettered says whether a request's message is written from a letter when it is sent, because its words are a template's.
func lettered(req api.SubmitRequest) bool {
	return req.Template != "" && !(req.Render != nil && req.Render.Off)
}

// letterOf is what the messages of a request have in common.
func (in *Intake) letterOf(ctx context.Context, req api.SubmitRequest, account accounts.Sender) (batch.Content, *api.TemplateRef, error) {
	l := batch.Content{
		Source:  render.Source{Subject: req.Subject, PreviewText: req.PreviewText, HTML: req.HTML, Text: req.Text},
		Strict:  in.opts.StrictWords,
		Account: render.Person{Name: account.Name, Address: account.Email},
		Locale:  cmp.Or(req.Locale, account.Locale), TZ: cmp.Or(req.TZ, account.TZ),
	}
	l.ServiceURL = in.publicURL(req)
	d := draftOf(req, account, in.clock.Now())
	l.From, l.ReplyTo, l.Headers, l.Attachments = d.From, d.ReplyTo, d.Headers, d.Attachments
	var version *api.TemplateRef
	if req.Template != "" {
		t, err := in.template(ctx, account.ID, req.Template, l.Locale)
		if err != nil {
			return l, nil, err
		}
		version = &api.TemplateRef{ID: t.ID, Version: t.Version}
		l.Source, l.Options, l.Strict = t.Source, t.Options, t.Strict
		l.Source.Subject = cmp.Or(req.Subject, l.Source.Subject)
		l.Source.PreviewText = cmp.Or(req.PreviewText, l.Source.PreviewText)
	}
	l.Plain = req.Template == "" && req.Render == nil && len(req.MailMerge) == 0
	if r := req.Render; r != nil {
		l.Plain = r.Off
		l.Source.Format = render.Format(cmp.Or(r.Format, string(l.Source.Format)))
		if r.Missing != "" {
			l.Strict = r.Missing == "error"
		}
	}
	return l, version, nil
}

// template finds a stored template.
func (in *Intake) template(ctx context.Context, account, id, locale string) (templates.Template, error) {
	if in.Templates == nil {
		return templates.Template{}, fault.New(fault.NotFound, "TemplateNotFound", "Requested template was not found [%s]", id)
	}
	return in.Templates.Template(ctx, account, id, locale)
}

// fillIn fills in the words of a request that are not a template's, and takes those of a template that are to go as they are. The request
// that comes back is one to be composed.
func (in *Intake) fillIn(ctx context.Context, req api.SubmitRequest, account accounts.Sender) (api.SubmitRequest, *api.TemplateRef, error) {
	if req.Template == "" && (req.Render == nil || req.Render.Off) {
		return req, nil, nil
	}
	l, version, err := in.letterOf(ctx, req, account)
	if err != nil {
		return req, nil, err
	}
	w, err := batch.New(l)
	if err != nil {
		return req, nil, err
	}
	mail, err := w.Fill(ctx, slipOf(req, 0))
	req.Subject, req.PreviewText, req.HTML, req.Text = mail.Subject, mail.PreviewText, mail.HTML, mail.Text
	return req, version, err
}

// slipOf is what the message of a request has of its own.
func slipOf(req api.SubmitRequest, date int64) batch.Personalization {
	s := batch.Personalization{To: people(req.To), Cc: people(req.CC), InReplyTo: req.InReplyTo, References: req.References, Date: date}
	if req.Render != nil {
		s.Params = req.Render.Params
	}
	return s
}

// nameOf is what the message of a request is called.
func nameOf(req api.SubmitRequest, from message.Address, id string) batch.Identity {
	n := batch.Identity{MessageID: cmp.Or(req.MessageID, ownMessageID(id, from)), Bcc: people(req.BCC)}
	if req.Envelope != nil {
		n.Envelope = message.Envelope{From: req.Envelope.From, To: req.Envelope.To}
	}
	return n
}

// checkWords finds what is wrong with the fields of a request that say where its words come from.
func checkWords(req api.SubmitRequest, wrong func(key, format string, args ...any)) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"raw", len(req.Raw) > 0}, {"html", req.HTML != ""}, {"text", req.Text != ""},
	} {
		if f.given && req.Template != "" {
			wrong(f.key, "can't be combined with template")
		}
	}
	r := req.Render
	if r == nil || r.Off {
		return
	}
	if len(req.Raw) > 0 {
		wrong("render", "can't be combined with raw")
	}
	if r.Format != "" && req.Template != "" {
		wrong("render.format", "can't be combined with template: the template says what it is written in")
	}
}
