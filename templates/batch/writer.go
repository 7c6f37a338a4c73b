package batch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/locale"
	"github.com/postroom/postroom/templates/render"
)

// Writer writes the messages of one letter.
type Writer struct {
	letter Letter
	zone   *time.Location
	full   *render.Template // nil: the words go as they are
	light  *render.Template // the same without what depends on no slip: the CSS
}

// Name is what a message is called before it is written: its Message-ID, and its envelope; and what it is given that follows from these.
type Name struct {
	MessageID string
	Envelope  message.Envelope
	Bcc       []message.Address // only to be checked; they are in the envelope

	Headers        []message.Header                  // of this message alone, beside the letter's
	UnsubscribeURL string                            // as templates are told; empty: there is none
	PreferencesURL string                            // likewise
	HTML           func(html string) (string, error) // what becomes of the html in the end; nil: nothing. A text that is made of html is made before
}

// Words are what a message says.
type Words struct {
	Subject string
	Text    string
}

// New reads the words of a letter. Its faults are those of render.Parse, and Invalid for a time zone that there isn't.
func New(l Letter) (*Writer, error) {
	zone, err := locale.Zone(l.TZ)
	if err != nil {
		return nil, fault.InvalidFields([]fault.Field{{Key: "tz", Message: err.Error()}})
	}
	w := &Writer{letter: l, zone: zone}
	if l.Plain {
		return w, nil
	}
	if w.full, err = render.Parse(l.Source, l.Options); err != nil {
		return nil, err
	}
	w.light = w.full
	if l.Options.InlineCSS {
		l.Options.InlineCSS = false
		w.light, err = render.Parse(l.Source, l.Options)
	}
	return w, err
}

// Letter is what the messages have in common.
func (w *Writer) Letter() Letter { return w.letter }

// Write writes a message. The errors are faults for whoever gave slip and name, or that of the context.
func (w *Writer) Write(ctx context.Context, s Slip, n Name) (*message.Composed, Words, error) {
	return w.write(ctx, w.full, s, n, w.letter.Attachments)
}

// Check writes a message in all but its attachments and its style, which costs a fraction: what comes back has the envelope, the subject and
// the words of the message, and whatever is wrong with slip and name is the error. The attachments are checked by Write.
func (w *Writer) Check(ctx context.Context, s Slip, n Name) (*message.Composed, Words, error) {
	return w.write(ctx, w.light, s, n, nil)
}

func (w *Writer) write(ctx context.Context, t *render.Template, s Slip, n Name, files []message.Attachment) (*message.Composed, Words, error) {
	mail, err := w.fill(ctx, t, s, n)
	if err != nil {
		return nil, Words{}, err
	}
	if n.HTML != nil && mail.HTML != "" {
		if mail.Text == "" {
			mail.Text = message.TextFromHTML(mail.HTML)
		}
		if mail.HTML, err = n.HTML(mail.HTML); err != nil {
			return nil, Words{}, fmt.Errorf("mark the html of message %s: %w", n.MessageID, err)
		}
	}
	d := message.Draft{
		From: w.letter.From, To: s.To, Cc: s.Cc, Bcc: n.Bcc, ReplyTo: w.letter.ReplyTo, Date: time.UnixMilli(s.Date).UTC(),
		Subject: mail.Subject, Text: mail.Text, HTML: mail.HTML, PreviewText: mail.PreviewText,
		MessageID: n.MessageID, InReplyTo: s.InReplyTo, References: s.References, Headers: slices.Concat(w.letter.Headers, n.Headers), Attachments: files,
	}
	if len(n.Envelope.To) > 0 {
		d.Envelope = &n.Envelope
	}
	c, err := message.Compose(d, rand.NewChaCha8(sha256.Sum256([]byte(n.MessageID))))
	return c, Words{Subject: mail.Subject, Text: mail.Text}, err
}

// Fill gives the words with the params of a slip in them, and nothing else of a message.
func (w *Writer) Fill(ctx context.Context, s Slip) (render.Mail, error) {
	return w.fill(ctx, w.full, s, Name{})
}

// fill gives the words with the params of a slip in them.
func (w *Writer) fill(ctx context.Context, t *render.Template, s Slip, n Name) (render.Mail, error) {
	if w.letter.Plain {
		words := w.letter.Source
		return render.Mail{Subject: words.Subject, PreviewText: words.PreviewText, HTML: words.HTML, Text: words.Text}, nil
	}
	params, err := readParams(s.Params)
	if err != nil {
		return render.Mail{}, err
	}
	about := render.Context{
		Account: w.letter.Account, ServiceURL: w.letter.ServiceURL, UnsubscribeURL: n.UnsubscribeURL, PreferencesURL: n.PreferencesURL,
	}
	for _, to := range [][]message.Address{s.To, s.Cc} {
		if len(to) > 0 {
			about.Recipient = render.Person{Name: to[0].Name, Address: to[0].Address}
			break
		}
	}
	return t.Render(ctx, render.Input{Data: about.Data(params), Locale: w.letter.Locale, Zone: w.zone, Strict: w.letter.Strict})
}

// readParams reads the params of a slip, with all the digits their numbers have.
func readParams(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var params map[string]any
	if err := d.Decode(&params); err != nil {
		return nil, fault.InvalidFields([]fault.Field{{Key: "params", Message: fmt.Sprintf("must be an object: %s", err)}})
	}
	return params, nil
}
