package render

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/outbox/links"
)

// Renderer renders the messages of one content.
type Renderer struct {
	content Content
	about   Context // but the recipient
	zone    *time.Location
	full    *Template // nil if the texts are sent unchanged
	light   *Template // full without inlined CSS, which no personalization changes
}

// Identity has what is fixed about one message before it is rendered: its Message-ID, its envelope, and what
// follows from them.
type Identity struct {
	MessageID string
	Envelope  *message.Envelope // nil means the recipients'
	Bcc       []message.Address // only to be checked; the envelope has them

	Headers        []message.Header // for this message only, after the content's
	UnsubscribeURL string           // as templates see it; empty if none
	PreferencesURL string           // likewise
	// how the html's links change; nil if they stay. Text is made of the html before that
	Links func() (links.Options, error)
}

// New parses a content's texts. It returns the same errors as Parse, and Invalid for an unknown time zone.
func New(c Content) (*Renderer, error) {
	zone, err := schedule.Zone(cmp.Or(c.TZ, "UTC"))
	if err != nil {
		return nil, fault.InvalidField("tz", "%s", err)
	}
	r := &Renderer{content: c, zone: zone, about: Context{Account: c.Account, ServiceURL: c.ServiceURL}.shared()}
	if c.Plain {
		return r, nil
	}
	if r.full, err = Parse(c.Source, c.Options); err != nil {
		return nil, err
	}
	r.light = r.full
	if c.Options.InlineCSS {
		c.Options.InlineCSS = false
		r.light, err = Parse(c.Source, c.Options)
	}
	return r, err
}

// Content is the content that the messages share.
func (r *Renderer) Content() Content { return r.content }

// Render renders a message, and returns the composed message and its text. An error is about the
// personalization or the identity, or the context's. Without full, attachments and inlined CSS are left out,
// which costs a fraction. The result has the message's envelope, subject and text, and every error in the
// personalization and the identity is found.
func (r *Renderer) Render(ctx context.Context, p Personalization, id Identity, full bool) (
	*message.Composed, Mail, error) {
	t, files := r.light, []message.Attachment(nil)
	if full {
		t, files = r.full, r.content.Attachments
	}
	mail, err := r.fill(ctx, t, p, id)
	if err != nil {
		return nil, mail, err
	}
	if id.Links != nil && mail.HTML != "" {
		if mail.Text == "" {
			mail.Text = message.TextFromHTML(mail.HTML)
		}
		page := mail.page()
		if mail.changed, err = id.Links(); err == nil {
			mail.HTML, err = page.Rewrite(mail.changed)
		}
		if err != nil {
			return nil, mail, fmt.Errorf("add links and pixel to message %s: %w", id.MessageID, err)
		}
	}
	d := message.Draft{
		From: r.content.From, To: p.To, Cc: p.Cc, Bcc: id.Bcc, ReplyTo: r.content.ReplyTo,
		Date: time.UnixMilli(p.Date).UTC(), Subject: mail.Subject, Text: mail.Text, HTML: mail.HTML,
		PreviewText: mail.PreviewText,
		Envelope:    id.Envelope, MessageID: id.MessageID, InReplyTo: p.InReplyTo, References: p.References,
		Headers: slices.Concat(r.content.Headers, id.Headers), Attachments: files,
	}
	compose := message.Compose
	if t != nil {
		compose = t.composer.Compose
	}
	c, err := compose(d, rand.NewChaCha8(sha256.Sum256([]byte(id.MessageID))))
	return c, mail, err
}

// Fill renders the texts for everybody: there is no recipient, and the unsubscribe links lead to an address.
// Missing params are empty, even where that is otherwise an error.
func (r *Renderer) Fill(ctx context.Context, params map[string]any, leave string) (Mail, error) {
	lax := *r
	lax.content.Strict = false
	mail, err := lax.fill(ctx, r.full, Personalization{Decoded: params},
		Identity{UnsubscribeURL: leave, PreferencesURL: leave})
	mail.shape = nil // the caller may change the words
	return mail, err
}

func (r *Renderer) fill(ctx context.Context, t *Template, p Personalization, id Identity) (Mail,
	error) {
	if r.content.Plain {
		words := r.content.Source
		return Mail{Subject: words.Subject, PreviewText: words.PreviewText, HTML: words.HTML,
			Text: words.Text}, nil
	}
	params, err := p.params()
	if err != nil {
		return Mail{}, err
	}
	about := r.about
	about.UnsubscribeURL, about.PreferencesURL = id.UnsubscribeURL, id.PreferencesURL
	if first := slices.Concat(p.To, p.Cc); len(first) > 0 {
		about.Recipient = Person{Name: first[0].Name, Address: first[0].Address}
	}
	return t.Render(ctx, Input{Data: about.Data(params), Locale: r.content.Locale, Zone: r.zone,
		Strict: r.content.Strict})
}
